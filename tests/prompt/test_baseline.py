"""What steps share never shows: each text is that of its own assembly, rendered entry by entry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from foreword import (
    AssembledSection,
    PromptAssembly,
    SystemPrompt,
    ToolProviderResult,
    ToolSchema,
    render,
    render_context_snapshot,
    render_prompt,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MANY = 40  # sections: more than are rendered one by one after an edit
ANSWERS = ("first", "second", "", "with {{name}}")
TOOL = ToolSchema("search", "Searches.", {})


@dataclass
class Spoken:
    """What providers say; tests change it between steps."""

    answers: dict[str, str] = field(default_factory=dict[str, str])
    tools: ToolProviderResult = field(default_factory=lambda: ToolProviderResult((TOOL,)))

    def provider(self, name: str) -> Callable[[], str]:
        return lambda: self.answers.get(name, "first")


def prompt_of(spoken: Spoken) -> tuple[SystemPrompt, list[SystemPrompt]]:
    """Many sections, some of them asked; two scopes of the same shape, and one that puts a section between others."""
    prompt = SystemPrompt(persona="You help {{name}}.")
    prompt.variable("name", spoken.provider("name"))
    prompt.variable("place", spoken.provider("place"))
    prompt.tools(lambda: spoken.tools)
    for at in range(MANY):
        text = spoken.provider(f"s{at}") if at % 7 == 3 else f"Section {at} of {{{{{('name', 'place')[at % 2]}}}}}."
        prompt.section(f"s{at}", text, order=at, requires_tools=["search"] if at == 10 else ())
    prompt.context("now", spoken.provider("now"), order=1)
    scopes = [prompt, *(prompt.scope(name) for name in ("one", "other", "between"))]
    for scope in scopes[1:3]:
        scope.section("deployment:persona", f"You are {scope.key.name}, with {{{{name}}}}.", order=0)
        scope.variable("place", scope.key.name)
    scopes[3].section("own", spoken.provider("own"), order=10)
    for at in range(3):
        scopes[3].section(f"own{at}", f"Own {at} at {{{{place}}}}.", order=25)
    scopes[3].section("s20", "Hidden.", order=30)
    scopes[3].section("s3", spoken.provider("s3"), order=3)  # asked in the place of one that is asked
    scopes[3].variable("place", spoken.provider("place"))
    return prompt, scopes


steps = st.tuples(
    st.integers(0, 3),
    st.dictionaries(st.sampled_from(("name", "place", "now", "own", "s3", "s10", "s17")), st.sampled_from(ANSWERS)),
    st.booleans(),
)


@given(taken=st.lists(steps, min_size=1, max_size=12))
def test_each_step_renders_as_its_assembly_does_entry_by_entry(taken: list[tuple[int, dict[str, str], bool]]) -> None:
    """Whatever was said in the steps before, in this scope and in others."""
    spoken = Spoken()
    _, scopes = prompt_of(spoken)
    for scope, answers, has_tool in taken:
        spoken.answers.update(answers)
        spoken.tools = ToolProviderResult((TOOL,) if has_tool else ())
        for _ in range(3):  # shared runs are made when a shape is met again
            rendering, assembly = scopes[scope].render_sync(), scopes[scope].assemble_sync()
            assert rendering.text == render_prompt(assembly)
            assert rendering.snapshot == render_context_snapshot(assembly)
            assert "\n\n".join(rendering.sections) == rendering.text
            assert "".join(rendering.text[span.start : span.end] for span in rendering.spans) == rendering.text


edits = st.lists(
    st.tuples(st.sampled_from(("drop", "swap", "insert")), st.integers(0, MANY), st.integers(1, 3)), max_size=3
)


@example(edits=[("swap", 28, 1)], scope=3, answers={})  # in the middle of what the scope put there
@example(edits=[("drop", 28, 2)], scope=3, answers={})
@example(edits=[("insert", 29, 2), ("drop", 25, 3)], scope=3, answers={})
@given(edits=edits, scope=st.integers(0, 3), answers=st.dictionaries(st.just("s3"), st.sampled_from(ANSWERS)))
def test_an_edited_list_renders_entry_by_entry_too(
    edits: list[tuple[str, int, int]], scope: int, answers: dict[str, str]
) -> None:
    """Wherever the edits are, also where they reach into what a scope put there itself."""
    spoken = Spoken()
    _, scopes = prompt_of(spoken)

    @scopes[scope].on_assemble
    async def edit(assembly: PromptAssembly, context: object, call_next: Callable[[], object]) -> PromptAssembly:
        for action, at, count in edits:
            if action == "drop":
                del assembly.sections[at : at + count]
            elif action == "insert":
                assembly.sections[at:at] = [AssembledSection("new", "Put in by {{place}}.")] * count
            else:
                assembly.sections[at : at + count] = [AssembledSection("changed", "")] * count
        return assembly

    for _ in range(3):
        spoken.answers.update(answers)
        assembly = scopes[scope].assemble_sync()
        assert render(assembly).text == render_prompt(assembly)
        assert "\n\n".join(render(assembly).sections) == render(assembly).text


def test_a_provider_is_asked_in_every_step_even_if_it_always_says_the_same() -> None:
    asked: list[str] = []
    prompt = SystemPrompt()
    prompt.section("s", lambda: asked.append("s") or "same", order=1)
    prompt.variable("v", lambda: asked.append("v") or "same")
    for _ in range(3):
        prompt.render_sync()
    assert asked == ["v", "s"] * 3


def test_what_one_scope_was_answered_is_not_told_to_another() -> None:
    prompt = SystemPrompt()
    prompt.section("who", lambda context: f"for {context.scope.name}", order=1)
    one, other = prompt.scope("one"), prompt.scope("other")
    for scope in (one, other, one, one, other):
        assert scope.render_sync().text == f"for {scope.key.name}"


def test_the_order_of_variables_does_not_depend_on_what_was_said_before() -> None:
    spoken = Spoken()
    prompt, scopes = prompt_of(spoken)
    names = list(prompt.assemble_sync().variables)
    spoken.answers["name"] = "second"
    scopes[1].assemble_sync()
    assert list(prompt.assemble_sync().variables) == names


class Equal:
    """Says that it equals whatever it is asked about."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def test_a_stranger_among_the_sections_is_told_even_if_it_claims_to_be_one() -> None:
    prompt, _ = prompt_of(Spoken())

    @prompt.on_assemble
    async def edit(assembly: PromptAssembly, context: object, call_next: Callable[[], object]) -> PromptAssembly:
        assembly.sections[5] = Equal()  # type: ignore[call-overload]
        return assembly

    with pytest.raises(Exception, match="put an Equal among the sections"):
        prompt.render_sync()
