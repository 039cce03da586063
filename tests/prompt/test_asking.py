"""The sync doors: without a loop where none is needed, with one of their own, or told what to call instead."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from tests.support.short import facts, listener, names, tool

from foreword import (
    AssembleContext,
    ModelRef,
    PromptAssembly,
    ProviderFailedError,
    ProviderTimeoutError,
    Rendering,
    RunningLoopError,
    SystemPrompt,
)

DOORS: dict[str, Callable[[SystemPrompt], Any]] = {
    "assemble_sync": lambda view: view.assemble_sync(),
    "render_sync": lambda view: view.render_sync(),
}
CALLS = {"assemble_sync": "await prompt.assemble(context)", "render_sync": "await prompt.render(context)"}


async def later() -> str:
    return "later"


async def tools_later() -> Any:
    return [tool("later")]


ASYNC: dict[str, tuple[Callable[[SystemPrompt], Any], str]] = {
    "section": (lambda view: view.section("x", later, order=1), 'section "x" of plugin'),
    "context": (lambda view: view.context("x", later, order=1), 'context "x" of plugin'),
    "variable": (lambda view: view.variable("x", later), 'variable "x" of plugin'),
    "tools": (lambda view: view.tools(tools_later), 'tool provider "tools_later" of plugin'),
    "listener": (lambda view: view.on_assemble(listener(lambda a: None)), "of plugin"),
}


# In plain code


def test_sync_providers_need_no_loop() -> None:
    """With nothing async in force the sync doors import no event loop."""
    script = (
        "import sys\n"
        "from foreword import SystemPrompt\n"
        "prompt = SystemPrompt(persona='P {{v}}')\n"
        "prompt.variable('v', lambda: 'V')\n"
        "prompt.section('s', lambda context: 'S', order=1)\n"
        "assert prompt.render_sync().text == 'P V\\n\\nS'\n"
        "assert not {'asyncio', 'anyio', 'trio'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("kind", ASYNC)
def test_async_things_get_a_loop(kind: str) -> None:
    """With an async provider or a listener a sync door in plain code starts a loop of its own."""
    prompt = SystemPrompt(persona="P")
    ASYNC[kind][0](prompt.owner("plugin"))
    rendering = prompt.render_sync()
    assembly = prompt.assemble_sync()
    assert isinstance(rendering, Rendering)
    assert isinstance(assembly, PromptAssembly)
    told = (*facts(prompt), assembly.variables)
    expected: dict[str, tuple[object, ...]] = {
        "section": ("P\n\nlater", "", [], {}),
        "context": ("P", "later", [], {}),
        "variable": ("P", "", [], {"x": "later"}),
        "tools": ("P", "", ["later"], {}),
        "listener": ("P", "", [], {}),
    }
    assert told == expected[kind]


def test_the_sync_and_async_doors_say_the_same() -> None:
    """Text, snapshot, tools, digest and trace are the same through every door."""
    prompt = SystemPrompt(persona="P {{v}}", tool_order=["b", "<unlisted-tools>"])
    prompt.variable("v", later)
    prompt.context("c", "C", order=1)
    prompt.tools([tool("a"), tool("b")])
    prompt.section("gone", "x", order=1, when=lambda context: False)
    prompt.on_assemble(listener(lambda a: a.variables.update(w="W")))
    sync = prompt.render_sync()
    awaited = asyncio.run(prompt.render())
    assert (sync.text, sync.snapshot, names(sync.tools)) == (awaited.text, awaited.snapshot, ["b", "a"])
    assert sync.digest == awaited.digest
    assert sync.trace.to_json() == awaited.trace.to_json()


def test_errors_come_through_a_loop_as_they_are() -> None:
    """Failures are the same errors, whichever door was taken; nothing of the loop is wrapped around them."""
    prompt = SystemPrompt()

    async def failing() -> str:
        raise ValueError("boom")

    prompt.section("s", failing, order=1)
    with pytest.raises(ProviderFailedError, match="boom") as caught:
        prompt.render_sync()
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_timeout_works_in_plain_code() -> None:
    """An async provider with a timeout is cut off in a sync door, too, and named; the one beside it is not."""
    prompt = SystemPrompt()
    cancelled: list[str] = []

    async def hanging() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append("!")
            raise
        return "never"

    prompt.section("slow", hanging, order=1, timeout=0.02)
    prompt.section("quick", later, order=2, timeout=60)
    with pytest.raises(ProviderFailedError, match=r'section "slow" of main.*timeout of 0\.02 s') as caught:
        prompt.render_sync()
    (failure,) = caught.value.failures
    assert failure.kind == "timeout"
    assert isinstance(caught.value.__cause__, ProviderTimeoutError)
    assert cancelled == ["!"]
    assert prompt.stuck == ()


def test_a_skipped_timeout_leaves_the_rest() -> None:
    """With `on_error="skip"` a provider that ran out of time is left out, and the trace names the timeout."""
    prompt = SystemPrompt()

    async def hanging() -> str:
        await asyncio.sleep(60)
        return "never"

    prompt.section("slow", hanging, order=1, timeout=0.02, on_error="skip")
    prompt.section("quick", later, order=2)
    rendering = prompt.render_sync()
    assert rendering.text == "later"
    absence = rendering.missing("slow")
    assert absence is not None
    assert absence.reason.startswith("skipped: ProviderTimeoutError")


@pytest.mark.parametrize("options", [{}, {"timeout": 60}], ids=["without timeout", "with timeout"])
def test_context_variables_reach_providers(options: dict[str, Any]) -> None:
    """A provider sees the context variables of whoever assembles, through every door."""
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant")

    async def provider() -> str:
        return tenant.get("unset")

    prompt = SystemPrompt()
    prompt.section("s", provider, order=1, **options)
    prompt.section("t", lambda: tenant.get("unset"), order=2)
    token = tenant.set("acme")
    try:
        assert prompt.render_sync().text == "acme\n\nacme"
    finally:
        tenant.reset(token)


@pytest.mark.parametrize("options", [{}, {"timeout": 60}], ids=["without timeout", "with timeout"])
def test_an_exit_comes_through_a_loop(options: dict[str, Any]) -> None:
    """SystemExit out of an async provider ends the program as it would elsewhere, not as a failure."""

    async def leaving() -> str:
        raise SystemExit(3)

    prompt = SystemPrompt()
    prompt.section("s", leaving, order=1, **options)
    with pytest.raises(SystemExit) as caught:
        prompt.render_sync()
    assert caught.value.code == 3


# In a running loop


@pytest.mark.anyio
@pytest.mark.parametrize("door", DOORS)
async def test_sync_providers_work_in_a_running_loop(door: str) -> None:
    """With nothing async in force the sync doors work anywhere, inside a running loop too."""
    prompt = SystemPrompt()
    prompt.section("s", lambda: "S", order=1)
    result = DOORS[door](prompt)
    assert "S" in (result.text if isinstance(result, Rendering) else result.sections[-1].text)


@pytest.mark.anyio
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", ASYNC)
async def test_async_things_in_a_running_loop_are_told_what_to_call(kind: str, door: str, anyio_backend: str) -> None:
    """With an async provider or a listener in force a sync door inside a running loop raises, and names the thing, the
    loop and the call to use; nobody is asked."""
    prompt = SystemPrompt()
    asked: list[str] = []
    prompt.variable("first", lambda: asked.append("!") or "")
    register, named = ASYNC[kind]
    register(prompt.owner("plugin"))
    with pytest.raises(RunningLoopError) as caught:
        DOORS[door](prompt)
    error = caught.value
    assert (error.kind, error.call, error.library) == ("running_loop", door, anyio_backend)
    assert error.instead == CALLS[door]
    assert f"`{CALLS[door]}`" in str(error)
    assert named in str(error)
    assert error.why.owner == "plugin"
    assert asked == []
    await prompt.render()
    assert asked == ["!"]


@pytest.mark.anyio
async def test_what_is_left_out_needs_no_loop() -> None:
    """Only what this assembly would ask counts: an async provider that is shadowed, suppressed or left out by its
    condition needs no loop."""
    prompt = SystemPrompt()
    prompt.section("s", later, order=1, when=lambda context: context.model is not None)
    prompt.variable("v", later)
    prompt.context("c", later, order=1)
    agent = prompt.scope("agent")
    agent.variable("v", "V")
    agent.suppress_runtime_context()
    assert agent.render_sync().text == ""
    with pytest.raises(RunningLoopError):
        agent.render_sync(AssembleContext(model=ModelRef("a", "b")))
    with pytest.raises(RunningLoopError, match='variable "v"'):
        prompt.render_sync()


@pytest.mark.anyio
async def test_a_listener_of_another_scope_needs_no_loop() -> None:
    """A listener counts where it would hear, and nowhere else."""
    prompt = SystemPrompt()
    prompt.scope("agent").on_assemble(listener(lambda a: None))
    assert prompt.render_sync().text == ""


@pytest.mark.anyio
async def test_a_sync_door_from_a_listener() -> None:
    """A listener may use the sync door of a prompt without anything async in it."""
    helper = SystemPrompt(persona="helper")
    prompt = SystemPrompt(persona="{{v}}")

    async def asking(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        assembly.variables["v"] = helper.render_sync().text
        result: PromptAssembly = await call_next()
        return result

    prompt.on_assemble(asking)
    assert (await prompt.render()).text == "helper"


def test_a_thread_beside_a_running_loop_has_none() -> None:
    """A loop counts in its own thread only: from another one the sync doors start theirs."""
    prompt = SystemPrompt()
    prompt.section("s", later, order=1)

    async def main() -> str:
        return (await asyncio.to_thread(prompt.render_sync)).text

    assert asyncio.run(main()) == "later"


# Async doors


@pytest.mark.anyio
async def test_the_async_doors_take_everything() -> None:
    """The async doors work with sync and async providers of every kind, and listeners."""
    prompt = SystemPrompt(persona="P")
    for register, _ in ASYNC.values():
        register(prompt)
    prompt.variable("v", "V")
    rendering = await prompt.render()
    assembly = await prompt.assemble()
    assert rendering.text == "P\n\nlater"
    assert rendering.snapshot.endswith("\n\nlater")
    assert names(rendering.tools) == ["later"]
    assert assembly.variables == {"x": "later", "v": "V"}


@pytest.mark.anyio
async def test_answers_take_their_places_by_the_fixed_order() -> None:
    """Async answers stand where their entries stand, whichever came first."""
    gate = anyio.Event()

    async def waits() -> str:
        await gate.wait()
        return "first"

    async def opens() -> str:
        gate.set()
        return "second"

    prompt = SystemPrompt()
    prompt.section("a", waits, order=1)
    prompt.section("b", opens, order=2)
    assert (await prompt.render()).text == "first\n\nsecond"


@pytest.mark.anyio
async def test_timings_stand_beside_the_trace() -> None:
    """How long providers took is in `timings`, async ones by name, sync ones as a group; the trace's comparison and its
    JSON do not know of it."""
    prompt = SystemPrompt()
    prompt.section("s", later, order=1)
    prompt.section("t", lambda: "t", order=1)
    one, other = (await prompt.render()).trace, (await prompt.render()).trace
    assert any('section "s" of main' in name for name in one.timings)
    assert "sync providers" in one.timings
    assert all(seconds >= 0 for seconds in one.timings.values())
    assert one == other
    assert "timings" not in str(one.to_json())
