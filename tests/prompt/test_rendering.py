"""What is rendered, and the questions that a rendering answers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.short import listener, tool

from foreword import (
    AssembleContext,
    AssembledSection,
    ModelRef,
    Placeholder,
    PromptAssembly,
    SystemPrompt,
    ToolProviderResult,
)


def failing() -> Any:
    raise ValueError("boom")


# Joining


def test_sections_are_joined_by_one_blank_line() -> None:
    """Texts are joined as they are, nothing trimmed; those that render to nothing leave no gap."""
    prompt = SystemPrompt()
    for at, text in enumerate(("a\n", "", "{{e}}", " ", "\nb")):
        prompt.section(f"s{at}", text, order=at)
    prompt.variable("e", "")
    assert prompt.render_sync().text == "a\n\n\n \n\n\nb"


def test_an_empty_prompt_is_an_empty_text() -> None:
    """Where nobody has anything to say text and snapshot are empty."""
    rendering = SystemPrompt().render_sync()
    assert (rendering.text, rendering.snapshot, rendering.tools) == ("", "", ())
    assert tuple(rendering.spans) == ()


def test_the_snapshot_is_no_part_of_the_text() -> None:
    """Contexts never become part of the system text; the snapshot has its opener and their texts."""
    prompt = SystemPrompt(persona="P")
    prompt.context("b", "B {{v}}", order=2)
    prompt.context("a", "A", order=1)
    prompt.context("none", "", order=3)
    prompt.variable("v", "V")
    rendering = prompt.render_sync()
    opener = "Current runtime context. This snapshot supersedes earlier runtime-context snapshots."
    assert rendering.text == "P"
    assert rendering.snapshot == f"{opener}\n\nA\n\nB V"


def test_dropped_names_what_rendered_to_nothing() -> None:
    """Sections and contexts that rendered to nothing are listed, with their owners."""
    prompt = SystemPrompt(persona="P")
    prompt.owner("plugin").section("s", "{{e}}", order=1)
    prompt.context("c", lambda: "", order=1)
    prompt.variable("e", "")
    assert [(ref.kind, ref.name, ref.owner) for ref in prompt.render_sync().dropped] == [
        ("section", "s", "plugin"),
        ("context", "c", "main"),
    ]


# Digest


def test_equal_texts_have_equal_digests() -> None:
    """The digest is a function of the system text's sections: equal in another registry, in another order of
    registering, and under another owner."""
    one, other = SystemPrompt(), SystemPrompt()
    one.section("a", "A", order=1)
    one.section("b", "B {{v}}", order=2)
    one.variable("v", "V")
    other.owner("x").section("z", "B V", order=2)
    other.owner("y").section("y", lambda: "A", order=1)
    assert one.render_sync().text == other.render_sync().text
    assert one.render_sync().digest == other.render_sync().digest
    assert len(one.render_sync().digest) == 64


@pytest.mark.parametrize("texts", [("A", "B!"), ("A",), ("B", "A"), ("A\n\nB",), ("A", "B", "C"), ()], ids=repr)
def test_another_text_has_another_digest(texts: tuple[str, ...]) -> None:
    """Any difference in a text, in their number or in their order shows in the digest, also where the joined text
    would be the same."""

    def digest(*given: str) -> str:
        prompt = SystemPrompt()
        for at, text in enumerate(given):
            prompt.section(f"s{at}", text, order=at)
        return prompt.render_sync().digest

    assert digest(*texts) != digest("A", "B")
    assert digest(*texts) == digest(*texts)


def test_what_is_not_text_does_not_count_for_the_digest() -> None:
    """Contexts, tools, empty sections and unused variables leave the digest alone."""
    prompt = SystemPrompt(persona="P")
    digest = prompt.render_sync().digest
    prompt.context("c", "C", order=1)
    prompt.tools([tool("t")])
    prompt.section("e", "", order=1)
    prompt.variable("v", "V")
    assert prompt.render_sync().digest == digest


# Missing


def reason(prompt: SystemPrompt, name: str, context: AssembleContext | None = None) -> str | None:
    absence = prompt.render_sync(context).missing(name)
    return None if absence is None else absence.reason


@pytest.mark.parametrize("kind", ["section", "context"])
def test_why_a_text_is_missing(kind: str) -> None:
    """For every way in which a section or context can be gone `missing` tells it; for what is there, nothing."""
    prompt = SystemPrompt()
    register = getattr(prompt, kind)
    register("there", "x", order=1)
    register("when", "x", order=1, when=lambda context: False)
    register("skipped", failing, order=1, on_error="skip")
    register("replaced", failing, order=1, on_error=Placeholder("x"))
    register("requiring", "x", order=1, requires_tools=["bash"])
    register("empty", "{{e}}", order=1)
    register("removed", "x", order=1)
    prompt.variable("e", "")
    prompt.on_assemble(listener(lambda assembly: getattr(assembly, f"{kind}s").drop("removed")))
    assert reason(prompt, "there") is None
    assert reason(prompt, "replaced") is None
    assert reason(prompt, "when") == "when"
    assert reason(prompt, "skipped") == "skipped: ValueError: boom"
    assert reason(prompt, "requiring") == "requires_tools:bash"
    assert reason(prompt, "empty") == "empty"
    assert reason(prompt, "removed") == "removed"
    assert reason(prompt, "nobody") == "never registered"


def test_why_a_section_is_displaced() -> None:
    """Beside a complete section every other one is missing as `complete`."""
    prompt = SystemPrompt(persona="P")
    prompt.section("s", "S", order=1)
    prompt.section("all", "all", order=2, complete=True)
    assert reason(prompt, "s") == "complete"
    assert reason(prompt, "deployment:persona") == "complete"
    assert reason(prompt, "all") is None


def test_why_a_context_is_suppressed() -> None:
    """While contexts are suppressed each one is missing as such."""
    prompt = SystemPrompt()
    prompt.context("c", "C", order=1)
    prompt.suppress_runtime_context()
    assert reason(prompt, "c") == "suppressed"


def test_a_shadow_is_what_it_shadows() -> None:
    """A shadowed name is there, by its shadow; where the shadow is left out, that is the reason."""
    prompt = SystemPrompt()
    prompt.section("s", "S", order=1)
    agent = prompt.scope("agent")
    agent.section("s", "mine", order=1, when=lambda context: context.model is not None)
    assert reason(agent, "s", AssembleContext(model=ModelRef("a", "b"))) is None
    assert reason(agent, "s") == "when"


def test_a_listener_s_own_entry_that_went_again() -> None:
    """What a listener added is there; what another one took out again is told as removed, by that one."""
    prompt = SystemPrompt()
    prompt.owner("out").on_assemble(dropping_after("added"))
    prompt.owner("in").on_assemble(listener(lambda a: a.sections.append(AssembledSection("added", "x"))))
    absence = prompt.render_sync().missing("added")
    assert absence is not None
    assert absence.reason == "removed"
    assert absence.event is not None
    assert "of out" in str(absence.event.by)


def dropping_after(name: str) -> Any:
    async def drop(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        result: PromptAssembly = await call_next()
        result.sections.drop(name)
        return result

    return drop


def test_why_a_tool_is_missing() -> None:
    """A tool can be removed by a listener, hidden by its provider, left out with it, or never have been there."""
    prompt = SystemPrompt()
    works = [True]

    def flaky() -> Any:
        if not works[0]:
            raise OSError("gone")
        return [tool("flaky")]

    prompt.tools([tool("there"), tool("removed")])
    prompt.tools([tool("when")], when=lambda context: False)
    prompt.tools(lambda: ToolProviderResult([], known_names=["hidden"]))
    prompt.tools(flaky, on_error="skip")
    prompt.on_assemble(listener(lambda assembly: assembly.tools.drop("removed")))
    assert reason(prompt, "there") is None
    assert reason(prompt, "flaky") is None
    assert reason(prompt, "removed") == "removed"
    assert reason(prompt, "when") == "when"
    assert reason(prompt, "nobody") == "never registered"
    assert reason(prompt, "hidden") not in (None, "never registered")
    works[0] = False
    assert reason(prompt, "flaky") == "skipped: OSError: gone"


def test_tools_have_origins_too() -> None:
    """Beside each tool stands who put it there: its provider's owner, or the listener that brought or changed it."""
    prompt = SystemPrompt()
    prompt.owner("files").tools([tool("a"), tool("c")])
    agent = prompt.scope("agent")
    agent.tools(lambda: [tool("b")])  # type: ignore[arg-type, return-value]

    def change(assembly: PromptAssembly) -> None:
        assembly.tools.append(tool("d"))
        assembly.tools.swap("c", description="changed")

    prompt.owner("outer").on_assemble(listener(change))
    prompt.owner("inner").on_assemble(listener(lambda assembly: assembly.tools.append(tool("e"))))
    rendering = agent.render_sync()
    told = [
        (each.name, origin.owner, origin.scope, origin.listener is not None)
        for each, origin in zip(rendering.tools, rendering.tool_origins, strict=True)
        if origin is not None
    ]
    assert told == [
        ("a", "files", None, False),
        ("b", "agent", "agent", False),
        ("c", "outer", None, True),
        ("d", "outer", None, True),
        ("e", "inner", None, True),
    ]


def test_why_a_variable_has_no_value() -> None:
    """A variable without a value is missing, with the reason; one with an empty value is there."""
    prompt = SystemPrompt()
    prompt.variable("there", "V")
    prompt.variable("empty", "")
    prompt.variable("when", "V", when=lambda context: False)
    prompt.variable("skipped", failing, on_error="skip")
    prompt.variable("none", None)
    assert reason(prompt, "there") is None
    assert reason(prompt, "empty") is None
    assert reason(prompt, "when") == "when"
    assert reason(prompt, "skipped") == "skipped: ValueError: boom"
    assert reason(prompt, "none") is not None


def test_an_absence_reads_as_a_sentence() -> None:
    """The text of an absence names the entry, its owner, and why it is gone."""
    prompt = SystemPrompt()
    prompt.owner("plugin").section("s", "x", order=1, requires_tools=["bash"])
    rendering = prompt.render_sync()
    told = str(rendering.missing("s"))
    assert all(part in told for part in ('section "s"', "of plugin", "requires_tools:bash"))
    assert str(rendering.missing("nobody")) == '"nobody" was never registered here'


def test_a_rendering_tells_its_sizes() -> None:
    """The text of a rendering says how much is in it."""
    prompt = SystemPrompt(persona="x" * 1234)
    prompt.tools([tool("t")])
    assert repr(prompt.render_sync()) == "<Rendering: 1,234 characters, 0 of snapshot, 1 tools>"
