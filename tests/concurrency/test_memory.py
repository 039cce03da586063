"""What comes and goes leaves nothing: memory, references, threads."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from tests.concurrency.support import FAR, Clinging, until

from foreword import (
    AssembleContext,
    PromptAssembly,
    Registration,
    ScopeKey,
    SystemPrompt,
    ToolProviderResult,
    ToolSchema,
)

CYCLES = 100_000
SLACK = 1_000
"""Blocks of memory that may come and go with caches; one block lost in every tenth of a hundredth would be more."""


async def on_assemble(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
    return await call_next()


def on_change() -> None:
    """Hear, and do nothing."""


def blocks_lost(cycle: Callable[[], object], times: int) -> int:
    """How many blocks of memory more are in use after so many cycles than after a few."""
    for _ in range(50):
        cycle()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(times):
        cycle()
    gc.collect()
    return sys.getallocatedblocks() - before


def replaced(registration: Any, value: object) -> None:
    registration.replace(value)
    registration.close()


def kinds_of_cycles(prompt: SystemPrompt) -> dict[str, Callable[[], object]]:
    """Everything that can be registered and undone, by each way of undoing it."""
    tools = [ToolSchema("bash", "Runs.", {"type": "object"})]
    scope = prompt.scope("standing")
    key = scope.key

    def closing(*registrations: Registration) -> None:
        for each in registrations:
            each.close()

    def owner_view() -> None:
        with prompt.owner("owner") as view:
            view.section("s", "text", order=1)
            view.variable("v", "value")
            view.on_change(on_change)

    def scope_view() -> None:
        with prompt.scope("passing") as view:
            view.section("s", "text", order=1)
            view.on_assemble(on_assemble)

    def refused() -> None:
        with prompt.section("s", "text", order=1):
            try:
                prompt.section("s", "text", order=1)
            except ValueError:
                return

    return {
        "section": lambda: closing(prompt.section("s", "text {{v}}", order=1)),
        "provider": lambda: closing(prompt.section("s", lambda: "text", order=1)),
        "context": lambda: closing(prompt.context("c", "text", order=1)),
        "variable": lambda: closing(scope.variable("v", "value")),
        "tools": lambda: closing(prompt.tools(tools), scope.tools(lambda: tools)),
        "protection": lambda: closing(prompt.protect(sections=["s"], tools=["bash"])),
        "suppressor": lambda: closing(scope.suppress_runtime_context()),
        "listener": lambda: closing(prompt.on_assemble(on_assemble, prepend=True)),
        "change listener": lambda: closing(prompt.on_change(on_change)),
        "replace": lambda: replaced(scope.section("s", "one", order=1), "two"),
        "replace of a value": lambda: replaced(prompt.variable("v", "one"), lambda: "two"),
        "owner view": owner_view,
        "scope view": scope_view,
        "scope view of a key": lambda: prompt.scope(key).close(),
        "binding": lambda: prompt.scope(ScopeKey("bound"), scope).close(),
        "refused": refused,
    }


KINDS = sorted(kinds_of_cycles(SystemPrompt()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_cycles_of_each_kind_leave_memory_where_it_was(kind: str) -> None:
    """Registering and undoing, again and again, keeps nothing, with assemblies between."""
    prompt = SystemPrompt(persona="base")
    cycle = kinds_of_cycles(prompt)[kind]
    turn = iter(range(10**9))

    def with_an_assembly_now_and_then() -> None:
        cycle()
        if next(turn) % 25 == 0:
            prompt.render_sync()

    assert blocks_lost(with_an_assembly_now_and_then, 1_000) < 100


@pytest.mark.slow
def test_100_000_cycles_leave_memory_where_it_was() -> None:
    """Sections, variables, tools, listeners, views and replacements, all through one `SystemPrompt`."""
    prompt = SystemPrompt(persona="base")
    cycles = kinds_of_cycles(prompt).values()

    def every_kind() -> None:
        for cycle in cycles:
            cycle()

    assert blocks_lost(every_kind, CYCLES // len(cycles)) < SLACK
    assert prompt.render_sync().text == "base"


@pytest.mark.slow
def test_10_000_scope_views_made_used_and_closed_leave_memory_where_it_was() -> None:
    """A scope a run: with its own texts, values and tools, below a scope that stands."""
    prompt = SystemPrompt(persona="{{name}}")
    prompt.variable("name", "nobody")
    prompt.section("shared", lambda: "shared", order=1)
    agents = prompt.scope("agents")
    tools = [ToolSchema("bash", "Runs.", {"type": "object"})]

    def run() -> None:
        with prompt.scope("run", agents) as view:
            view.variable("name", "somebody")
            view.section("own", lambda: "own", order=2)
            view.tools(lambda: ToolProviderResult(tools))
            rendering = view.render_sync()
            assert (rendering.text, len(rendering.tools)) == ("somebody\n\nshared\n\nown", 1)

    assert blocks_lost(run, 10_000) < SLACK


@pytest.mark.slow
def test_tools_made_anew_at_each_assembly_leave_memory_where_it_was() -> None:
    """What is remembered of answers is bounded, however many differ."""
    prompt = SystemPrompt()
    number = iter(range(10**9))
    prompt.tools(lambda: [ToolSchema(f"tool{next(number)}", "", {"type": "object"})])
    prompt.section("s", lambda: f"text {next(number)}", order=1)
    prompt.variable("v", lambda: str(next(number)))
    assert blocks_lost(prompt.render_sync, 3_000) < 5 * SLACK


# -- references ----------------------------------------------------------------------------------------------------------


class Provider:
    """A provider of everything, which can be seen to be dropped."""

    def __call__(self) -> str:
        return "text"

    def tools(self) -> list[ToolSchema]:
        return []

    async def listen(self, assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        return await call_next()

    def hear(self) -> None:
        """Hear of a change."""


def register_everything(view: SystemPrompt, provider: Provider) -> None:
    view.section("s", provider, order=1)
    view.context("c", provider, order=1)
    view.variable("v", provider)
    view.tools(provider.tools)
    view.on_assemble(provider.listen)
    view.on_change(provider.hear)


@pytest.mark.anyio
@pytest.mark.parametrize("assembled", [False, True])
@pytest.mark.parametrize("where", ["owner", "scope", "middle"])
async def test_nothing_holds_on_to_a_closed_views_provider(where: str, assembled: bool) -> None:
    """After the view is closed and the next assembly made, what it registered is garbage."""
    prompt = SystemPrompt(persona="base")
    prompt.section("standing", lambda: "standing", order=5)
    outer = prompt.scope("outer")
    outer.section("outer", "outer", order=6)
    view = prompt.owner("passing") if where == "owner" else prompt.scope("passing", outer)
    below = prompt.scope("below", view)
    if where == "middle":
        below.section("below", "below", order=7)
    provider = Provider()
    reference = weakref.ref(provider)
    register_everything(view, provider)
    del provider
    if assembled:
        for each in (prompt, outer, view, below):
            await each.render()
    view.close()
    for each in (prompt, outer, below):
        await each.render()
    gc.collect()
    assert reference() is None


def test_nothing_holds_on_to_a_closed_scopes_provider_even_without_another_assembly() -> None:
    """A scope that is gone is gone: no plan of its own keeps what it held."""
    prompt = SystemPrompt(persona="base")
    with prompt.scope("passing") as view:
        provider = Provider()
        reference = weakref.ref(provider)
        view.section("s", provider, order=1)
        view.variable("v", provider)
        view.tools(provider.tools)
        assert view.render_sync().text == "base\n\ntext"
        del provider
    gc.collect()
    assert reference() is None


def test_a_replaced_provider_is_dropped() -> None:
    """The registration holds what is in force, not what was."""
    prompt = SystemPrompt()
    provider = Provider()
    reference = weakref.ref(provider)
    registration = prompt.section("s", provider, order=1)
    prompt.render_sync()
    registration.replace("another")
    del provider
    assert prompt.render_sync().text == "another"
    gc.collect()
    assert reference() is None


def test_a_closed_registration_that_is_kept_holds_no_provider() -> None:
    """Whoever keeps a closed registration keeps a handle, not what was registered."""
    prompt = SystemPrompt()
    kept: list[Registration] = []

    def register() -> weakref.ref[Provider]:
        provider = Provider()
        kept.extend(
            [prompt.tools(provider.tools), prompt.on_assemble(provider.listen), prompt.on_change(provider.hear)]
        )
        return weakref.ref(provider)

    reference = register()
    for each in kept:
        each.close()
    prompt.render_sync()
    gc.collect()
    assert reference() is None


@pytest.mark.anyio
async def test_what_providers_said_is_garbage_after_the_assembly() -> None:
    """Answers and errors of async providers, with and without a timeout, are not kept when nobody keeps the rendering."""

    class Value(str):
        """A string that can be seen to be dropped."""

        __slots__ = ("__weakref__",)

    prompt = SystemPrompt()
    references: list[weakref.ref[Value]] = []

    def giving(failing: bool) -> Callable[[AssembleContext], Awaitable[str]]:
        async def provider(context: AssembleContext) -> str:
            value = Value("text")
            references.append(weakref.ref(value))
            await anyio.sleep(0.001)
            if failing:
                raise LookupError(value)
            return value

        return provider

    for number, timeout in enumerate((None, FAR)):
        prompt.section(f"fine{number}", giving(False), order=number, timeout=timeout)
        prompt.section(f"fails{number}", giving(True), order=number, timeout=timeout, on_error="skip")
    await prompt.render()
    gc.collect()
    assert [reference() for reference in references] == [None] * 4


@pytest.mark.anyio
async def test_a_provider_that_was_left_running_is_garbage_once_it_ended() -> None:
    """`stuck` keeps it only as long as it runs."""
    prompt = SystemPrompt()
    clinging = Clinging()
    registration = prompt.section("s", clinging, order=1, timeout=0.02, on_error="skip")
    await prompt.render()
    registration.close()
    del registration
    clinging.released.set()
    await until(lambda: not prompt.stuck)
    await prompt.render()
    reference = weakref.ref(clinging)
    del clinging
    await anyio.sleep(0.001)
    gc.collect()
    assert reference() is None


# -- threads -------------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_assembling_in_a_running_loop_starts_no_thread() -> None:
    """Timeouts, stuck providers and listeners in async code need none."""
    prompt = SystemPrompt()
    clinging = Clinging()
    prompt.section("s", clinging, order=1, timeout=0.02, on_error="skip")
    prompt.on_assemble(on_assemble)
    before = set(threading.enumerate())
    await prompt.render()
    assert set(threading.enumerate()) == before
    clinging.released.set()
    await until(lambda: not prompt.stuck)
