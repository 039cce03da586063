"""Two renderings that are explained alike: told at once, and never of two that are not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from foreword import AssembleContext, PromptAssembly, SystemPrompt, ToolSchema, render

TOOL = ToolSchema("search", "Finds.", {"type": "object"})


def furnished(told: dict[str, str]) -> SystemPrompt:
    prompt = SystemPrompt(persona="You are {{who}}.")
    prompt.variable("who", lambda: told["who"])
    prompt.section("rules", lambda: told["rules"], order=20)
    prompt.context("git", lambda: told["git"], order=1)
    prompt.tools(lambda: [TOOL] if told["tools"] else [])
    return prompt


def fresh() -> dict[str, str]:
    return {"who": "a clerk", "rules": "Be brief.", "git": "clean", "tools": "yes"}


def test_the_sections_make_the_text() -> None:
    """The texts of the sections, with a blank line between them, are the system text; silent ones are none of them."""
    told = fresh()
    prompt = furnished(told)
    assert prompt.render_sync().sections == ("You are a clerk.", "Be brief.")
    told["rules"] = ""
    assert prompt.render_sync().sections == ("You are a clerk.",)
    assert SystemPrompt().render_sync().sections == ()
    by_hand = render(PromptAssembly(prompt.assemble_sync().sections, variables={"who": "me"}))
    assert by_hand.sections == ("You are me.",)
    assert by_hand.text == "You are me."


def test_a_step_like_the_last_is_explained_alike() -> None:
    """Nothing changed, and that is told without working out spans or trace; in a scope as well."""
    prompt = furnished(fresh())
    for view in (prompt, prompt.scope("agent")):
        first, second = view.render_sync(), view.render_sync()
        assert first.explains_as(second)
        assert (first.spans, first.snapshot_spans, first.trace) == (second.spans, second.snapshot_spans, second.trace)


@pytest.mark.parametrize(
    "change",
    [
        lambda prompt, told: told.update(who="a poet"),
        lambda prompt, told: told.update(rules="Be long."),
        lambda prompt, told: told.update(rules=""),
        lambda prompt, told: told.update(git="dirty"),
        lambda prompt, told: told.update(git=""),
        lambda prompt, told: told.update(tools=""),
        lambda prompt, told: prompt.section("more", "", order=30),
        lambda prompt, told: prompt.variable("unused", "x"),
        lambda prompt, told: prompt.suppress_runtime_context(),
        lambda prompt, told: prompt.protect(sections=["rules"]),
        lambda prompt, told: prompt.on_assemble(passing_on),
        lambda prompt, told: prompt.on_assemble(dropping),
    ],
)
def test_what_differs_is_not_explained_alike(change: Callable[[SystemPrompt, dict[str, str]], object]) -> None:
    """Whatever changes text, snapshot, tools or trace makes another explanation."""
    told = fresh()
    prompt = furnished(told)
    before = prompt.render_sync()
    change(prompt, told)
    after = prompt.render_sync()
    if before.explains_as(after):
        assert (before.spans, before.trace, before.tool_origins) == (after.spans, after.trace, after.tool_origins)
    else:
        assert not after.explains_as(before)


async def passing_on(assembly: PromptAssembly, context: AssembleContext, call_next: object) -> PromptAssembly:
    return await call_next()  # type: ignore[operator, no-any-return]


async def dropping(assembly: PromptAssembly, context: AssembleContext, call_next: object) -> PromptAssembly:
    assembly.sections.drop("rules")
    return await call_next()  # type: ignore[operator, no-any-return]


@pytest.mark.parametrize("listener", [passing_on, dropping])
def test_listeners_that_do_the_same_again(listener: object) -> None:
    """A listener that did the same as before changes no explanation; what it did is in both traces."""
    prompt = furnished(fresh())
    prompt.on_assemble(listener)  # type: ignore[arg-type]
    first, second = prompt.render_sync(), prompt.render_sync()
    assert first.trace == second.trace
    assert first.explains_as(second)


def test_nothing_is_said_of_renderings_by_hand() -> None:
    """Of an assembly that no registry made it cannot be told so cheaply."""
    assembly = PromptAssembly(furnished(fresh()).assemble_sync().sections, variables={"who": "me"})
    assert not render(assembly).explains_as(render(assembly))
