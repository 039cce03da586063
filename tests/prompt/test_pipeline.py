"""One run: everything in force is fixed when an assembly begins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.short import facts, listener, names, tool

from foreword import AssembleContext, PromptAssembly, Registration, SystemPrompt


def register_everything(prompt: SystemPrompt) -> list[Registration]:
    """One contribution of every kind; each changes what is told."""
    return [
        prompt.section("late", "late {{late}}", order=90),
        prompt.context("late", "late {{late}}", order=90),
        prompt.variable("late", "value"),
        prompt.tools([tool("late")]),
        prompt.protect(sections=["victim"], tools=["victim"]),
        prompt.on_assemble(listener(lambda assembly: assembly.sections.swap("here", text="heard"))),
    ]


def furnished() -> SystemPrompt:
    """A prompt with entries that a listener takes out while they are not protected."""
    prompt = SystemPrompt()
    prompt.section("here", "here", order=1)
    prompt.section("victim", "victim", order=2)
    prompt.tools([tool("victim")])
    prompt.context("here", "here", order=1)

    def drop(assembly: PromptAssembly) -> None:
        assembly.sections.drop("victim")
        assembly.tools.drop("victim")

    prompt.on_assemble(listener(drop))
    return prompt


WITHOUT = ("here", "here", [])
WITH = ("heard\n\nvictim\n\nlate value", "here\n\nlate value", ["late", "victim"])


# Who might register in the middle of an assembly: each entry hooks an action in, which must be harmless when it runs
# outside of one, and adds no text.


def from_a_provider(prompt: SystemPrompt, act: Callable[[], object]) -> None:
    prompt.variable("hook", lambda: act() and None)


def from_a_provider_of_tools(prompt: SystemPrompt, act: Callable[[], object]) -> None:
    prompt.tools(lambda: (act() and []) or [])  # type: ignore[arg-type, return-value]


def from_an_async_provider(prompt: SystemPrompt, act: Callable[[], object]) -> None:
    async def provider() -> str:
        act()
        return ""

    prompt.section("hook", provider, order=0)


def from_a_condition(prompt: SystemPrompt, act: Callable[[], object]) -> None:
    prompt.section("hook", "", order=0, when=lambda context: bool(act()))


def from_a_listener(prompt: SystemPrompt, act: Callable[[], object]) -> None:
    prompt.on_assemble(listener(lambda assembly: act()))


def from_a_change_listener(prompt: SystemPrompt, act: Callable[[], object]) -> None:
    """A provider makes a change; the change listener that hears of it acts."""
    state = {"busy": False}

    def change() -> None:
        state["busy"] = True
        prompt.variable("stir", "x").close()
        state["busy"] = False

    def hear() -> None:
        if state["busy"]:
            state["busy"] = False
            act()

    prompt.on_change(hear)
    prompt.variable("hook", lambda: change())


HOOKS = [
    from_a_provider,
    from_a_provider_of_tools,
    from_an_async_provider,
    from_a_condition,
    from_a_listener,
    from_a_change_listener,
]


def once(action: Callable[[], object]) -> Callable[[], object]:
    done: list[object] = []
    return lambda: done or done.append(action())


@pytest.mark.parametrize("hook", HOOKS)
def test_what_is_registered_meanwhile_counts_from_the_next_assembly(hook: Callable[..., None]) -> None:
    """A registration made while an assembly runs, of any kind and from anywhere, is not seen in that assembly."""
    prompt = furnished()
    hook(prompt, once(lambda: register_everything(prompt)))
    assert facts(prompt) == WITHOUT
    assert facts(prompt) == WITH


@pytest.mark.parametrize("hook", HOOKS)
def test_what_is_undone_meanwhile_counts_from_the_next_assembly(hook: Callable[..., None]) -> None:
    """What is undone while an assembly runs, of any kind and from anywhere, stays in force in that assembly."""
    prompt = furnished()
    registrations: list[Registration] = []

    def undo() -> None:
        for registration in registrations:
            registration.close()

    hook(prompt, once(undo))
    registrations += register_everything(prompt)
    assert facts(prompt) == WITH
    assert facts(prompt) == WITHOUT


@pytest.mark.parametrize("hook", HOOKS)
def test_a_suppressor_or_complete_section_of_meanwhile_waits(hook: Callable[..., None]) -> None:
    """Also what decides over others, a suppressor or a complete section, waits for the next assembly."""
    prompt = furnished()

    def decide() -> None:
        prompt.suppress_runtime_context()
        prompt.section("all", "all", order=5, complete=True)

    hook(prompt, once(decide))
    assert facts(prompt) == WITHOUT
    assert facts(prompt) == ("all", "", [])


@pytest.mark.parametrize("hook", HOOKS)
def test_what_is_replaced_meanwhile_counts_from_the_next_assembly(hook: Callable[..., None]) -> None:
    """A replacement made while an assembly runs is seen from the next one on."""
    prompt = SystemPrompt()
    registrations: list[Any] = []
    hook(prompt, once(lambda: [each.replace("new") for each in registrations]))
    registrations += [prompt.section("s", "{{v}} old", order=1), prompt.variable("v", "old")]
    assert prompt.render_sync().text == "old old"
    assert prompt.render_sync().text == "new"


@pytest.mark.parametrize("hook", HOOKS)
def test_a_view_closed_meanwhile_counts_from_the_next_assembly(hook: Callable[..., None]) -> None:
    """A view that closes while an assembly runs, also the one that assembles, takes nothing from that assembly."""
    prompt = SystemPrompt()
    view = prompt.scope("agent")
    hook(prompt, once(lambda: view.close()))
    view.section("s", "S", order=1)
    assert view.render_sync().text == "S"
    assert prompt.render_sync(AssembleContext(scope=view)).text == ""


@pytest.mark.parametrize("hook", HOOKS)
def test_a_scope_moved_meanwhile_counts_from_the_next_assembly(hook: Callable[..., None]) -> None:
    """A key that is rebound while an assembly runs is moved for the next one."""
    prompt = SystemPrompt()
    team = prompt.scope("team")
    team.section("t", "team", order=1)
    agent = prompt.scope("agent", parent=team)
    binding = agent.binding
    assert binding is not None
    hook(prompt, once(lambda: binding.rebind(None)))
    assert agent.render_sync().text == "team"
    assert agent.render_sync().text == ""


# Providers that act on themselves


@pytest.mark.parametrize("kind", ["section", "context", "variable", "tools"])
def test_a_provider_may_undo_itself(kind: str) -> None:
    """A provider that closes its own registration answers this once, and is not asked again."""
    prompt = SystemPrompt()
    held: list[Registration] = []

    def text() -> str:
        held[0].close()
        return "once"

    def tools() -> Any:
        held[0].close()
        return [tool("once")]

    if kind == "tools":
        held.append(prompt.tools(tools))
    elif kind == "variable":
        prompt.section("s", "{{v}}", order=1, when=lambda context: not held[0].closed)
        held.append(prompt.variable("v", text))
    else:
        held.append(getattr(prompt, kind)("x", text, order=1))
    expected = {
        "section": ("once", "", []),
        "context": ("", "once", []),
        "variable": ("once", "", []),
        "tools": ("", "", ["once"]),
    }
    rendering = prompt.render_sync()
    assert (rendering.text, rendering.snapshot[-4:], names(rendering.tools)) == expected[kind]
    assert facts(prompt) == ("", "", [])


@pytest.mark.parametrize("kind", ["section", "context", "variable"])
def test_a_provider_may_replace_itself(kind: str) -> None:
    """A provider that replaces its own registration answers this once; then the new value stands."""
    prompt = SystemPrompt()
    held: list[Any] = []

    def text() -> str:
        held[0].replace("second")
        return "first"

    if kind == "variable":
        held.append(prompt.variable("v", text))
        prompt.section("s", "{{v}}", order=1)
    else:
        held.append(getattr(prompt, kind)("x", text, order=1))
    told = ["".join(map(str, facts(prompt)[:2])) for _ in range(3)]
    assert told == ["first", "second", "second"]


def test_a_condition_may_undo_its_entry() -> None:
    """A condition that closes its own entry still decides over this assembly."""
    prompt = SystemPrompt()
    held: list[Registration] = []
    held.append(prompt.section("s", "S", order=1, when=lambda context: held[0].close() is None))
    assert prompt.render_sync().text == "S"
    assert prompt.render_sync().text == ""


def test_a_listener_may_undo_itself() -> None:
    """A listener that closes its own registration ends its turn as usual, and has no more of them."""
    prompt = SystemPrompt()
    held: list[Registration] = []

    def change(assembly: PromptAssembly) -> None:
        held[0].close()
        assembly.variables["v"] = "once"

    held.append(prompt.on_assemble(listener(change)))
    assert prompt.assemble_sync().variables == {"v": "once"}
    assert prompt.assemble_sync().variables == {}


def test_a_provider_may_assemble() -> None:
    """A provider may ask the same prompt for another scope's text: runs do not meet."""
    prompt = SystemPrompt()
    child = prompt.scope("child")
    child.section("task", "child's task", order=1)
    lead = prompt.scope("lead")
    lead.section("brief", lambda: f"Your child is told: {child.render_sync().text}", order=1)
    assert lead.render_sync().text == "Your child is told: child's task"


@pytest.mark.anyio
async def test_a_listener_may_assemble() -> None:
    """A listener may assemble another scope's prompt within its own run."""
    prompt = SystemPrompt()
    child, lead = prompt.scope("child"), prompt.scope("lead")
    child.section("task", "child's task", order=1)

    async def quoting(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        assembly.variables["child"] = (await child.render()).text
        result: PromptAssembly = await call_next()
        return result

    lead.on_assemble(quoting)
    lead.section("brief", "{{child}}", order=1)
    assert (await lead.render()).text == "child's task"
