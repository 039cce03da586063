"""Contexts: the root that runs a kernel, scopes below it, threads, and two kernels side by side."""

# Without `from __future__ import annotations`: the kernel reads the annotations of plugins made in functions.
import asyncio
import inspect
import logging
from collections.abc import AsyncGenerator, Callable
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from tests.support.kernel import Alpha, held, kernel, logged, made

from foreword import (
    GLOBAL,
    EmptyNameError,
    InactiveContextError,
    InvalidConfigError,
    InvalidOptionError,
    ScopeAlreadyBoundError,
    ScopeCycleError,
    ScopeKey,
    SystemPrompt,
)
from foreword.errors import MissingServiceError, WrongThreadError
from foreword.kernel.context import Context
from foreword.kernel.events import Event, Mode
from foreword.kernel.fiber import FiberState

pytestmark = pytest.mark.anyio

LONG = 20.0


def ping() -> None:
    """Something to listen to."""


PING = Event("test/ping", Mode.EMIT, ping)


# -- entering and leaving ----------------------------------------------------------------------------------------------


async def test_leaving_unloads_everything_last_in_first_out() -> None:
    """Plugins, scopes and undos of the root go in the reverse of the order in which they came."""
    log: list[str] = []
    async with kernel() as ctx:
        ctx.defer(lambda: log.append("-first"))
        await ctx.mount(logged("a", log)).ready()
        ctx.scope("agent").defer(lambda: log.append("-agent"))
        await ctx.mount(logged("b", log)).ready()
    assert log == ["+a", "+b", "-b", "-agent", "-a", "-first"]


@pytest.mark.parametrize(
    "error", [ValueError("mine"), KeyboardInterrupt(), SystemExit(3), ExceptionGroup("mine", [ValueError()])], ids=repr
)
async def test_leaving_on_an_error_raises_that_very_error(error: BaseException) -> None:
    """No group is wrapped around it, and everything is unloaded before."""
    log: list[str] = []

    async def live() -> None:
        async with Context() as ctx:
            await ctx.mount(logged("p", log)).ready()
            raise error

    with pytest.raises(type(error)) as caught:
        await live()
    assert caught.value is error
    assert log == ["+p", "-p"]


async def test_leaving_on_an_error_notes_what_undos_raise() -> None:
    """The error inside the block comes first; what went wrong on the way out is noted on it."""

    def undo() -> None:
        raise KeyError("undo")

    async def live() -> None:
        async with Context() as ctx:
            ctx.defer(undo)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught:
        await live()
    assert "undo" in " ".join(caught.value.__notes__)


async def test_leaving_without_an_error_raises_what_undos_raise() -> None:
    """All of it as one group, when all have run."""
    log: list[str] = []

    def undo() -> None:
        log.append("undo")
        raise KeyError("undo")

    async def live() -> None:
        async with Context() as ctx:
            ctx.defer(undo)
            ctx.defer(undo)

    with pytest.raises(BaseExceptionGroup) as caught:
        await live()
    assert (len(caught.value.exceptions), log) == (2, ["undo", "undo"])


async def test_leaving_by_cancellation() -> None:
    """A cancelled block unloads everything, async undos included, and stays cancelled."""
    log: list[str] = []

    async def undo() -> None:
        await anyio.lowlevel.checkpoint()
        log.append("undone")

    with anyio.CancelScope() as scope:
        async with Context() as ctx:
            ctx.defer(undo)
            await ctx.mount(logged("p", log)).ready()
            scope.cancel()
            await anyio.sleep(LONG)
        log.append("not cancelled")
    assert scope.cancelled_caught
    assert log == ["+p", "-p", "undone"]


async def test_leaving_on_an_error_in_a_cancelled_scope() -> None:
    """Also there the error comes out as it is."""
    caught: list[BaseException] = []
    with anyio.CancelScope() as scope:
        try:
            async with Context() as ctx:
                await ctx.mount(logged("p", [])).ready()
                scope.cancel()
                raise LookupError("mine")
        except LookupError as error:
            caught.append(error)
    assert len(caught) == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_leaving_when_the_task_is_cancelled() -> None:
    """Cancelling the asyncio task that runs a kernel, as Ctrl-C does, unloads everything and cancels that task."""
    log: list[str] = []
    active = asyncio.Event()

    async def undo() -> None:
        await asyncio.sleep(0)
        log.append("undone")

    async def live() -> None:
        async with Context() as ctx:
            await ctx.mount(made("p", lambda ctx: ctx.defer(undo) and None)).ready()
            active.set()
            await asyncio.sleep(LONG)

    task = asyncio.create_task(live())
    await active.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["undone"]
    assert task.cancelled()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_leaving_when_every_task_is_cancelled() -> None:
    """So asyncio ends a program, and no scope shields a task from that: even then everything is undone, and ends."""
    log: list[str] = []
    active = asyncio.Event()

    async def body(ctx: Context) -> AsyncGenerator[None]:
        ctx.defer(lambda: log.append("undone"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            try:
                yield
            finally:
                log.append("closed")

    async def live() -> None:
        async with Context() as ctx:
            await ctx.mount(logged("a", log, provides=[Alpha])).ready()
            await ctx.mount(logged("b", log, needs=[Alpha])).ready()
            await ctx.mount(made("g", body)).ready()
            await ctx.scope("agent").mount(logged("c", log)).ready()
            active.set()
            await asyncio.sleep(LONG)

    others = asyncio.all_tasks()
    task = asyncio.create_task(live())
    await active.wait()
    for each in asyncio.all_tasks() - others:
        each.cancel()
    await asyncio.wait([task], timeout=LONG)
    assert task.cancelled()
    assert sorted(log) == ["+a", "+b", "+c", "-a", "-b", "-c", "closed", "undone"]
    assert asyncio.all_tasks() == others


@pytest.mark.parametrize(
    "timeout", [-1, 0, True, "x", float("nan"), float("inf"), 10**400], ids=lambda each: f"{each!r:.5}"
)
@pytest.mark.parametrize("which", ["setup_timeout", "teardown_timeout"])
def test_a_timeout_that_is_none(which: str, timeout: Any) -> None:
    """It is refused where the kernel is made, and not by whichever plugin is loaded first."""
    with pytest.raises(InvalidConfigError, match=rf"{which}: must be a positive number of seconds.* or None for any"):
        Context(**{which: timeout})


def test_all_settings_of_a_kernel_are_told_at_once() -> None:
    """Who mends one need not come back for the next."""
    with pytest.raises(InvalidConfigError) as caught:
        Context(setup_timeout=-1, teardown_timeout="x", guard=3)  # type: ignore[arg-type]
    assert [fault.field for fault in caught.value.faults] == ["setup_timeout", "teardown_timeout", "guard"]


async def test_a_kernel_runs_once() -> None:
    """It cannot be entered while it runs, nor again afterwards."""
    ctx = Context()
    async with ctx:
        with pytest.raises(InactiveContextError, match=r"make a new one: async with Context"):
            await ctx.__aenter__()
    with pytest.raises(InactiveContextError, match="make a new one"):
        await ctx.__aenter__()


async def test_a_kernel_that_does_not_run_mounts_nothing() -> None:
    """Before and after, `mount` says what to do, and leaves no trace."""
    ctx = Context()
    before = held(ctx)
    with pytest.raises(InactiveContextError, match="enter it first"):
        ctx.mount(logged("p", []))
    assert held(ctx) == before
    async with ctx:
        await ctx.mount(logged("p", [])).ready()
    with pytest.raises(InactiveContextError):
        ctx.mount(logged("p", []))
    with pytest.raises(InactiveContextError):
        ctx.scope("agent")
    assert held(ctx) == (0, 0, 0, before.tasks)


async def test_the_root_can_be_disposed_of_before_it_is_left() -> None:
    """Then everything goes at once; leaving finds nothing to do."""
    log: list[str] = []
    async with kernel() as ctx:
        await ctx.mount(logged("p", log)).ready()
        await ctx.dispose()
        assert log == ["+p", "-p"]
        with pytest.raises(InactiveContextError):
            ctx.mount(logged("p", log))


async def test_a_failed_plugin_does_not_end_the_kernel(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody has to wait for a plugin: its failure is logged, and the block goes on."""

    def bad(ctx: Context) -> None:
        raise ValueError("bad")

    async with kernel() as ctx:
        ctx.mount(made("p", bad))
        await anyio.wait_all_tasks_blocked()
        await ctx.mount(logged("other", [])).ready()
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


# -- undos -------------------------------------------------------------------------------------------------------------


async def test_an_undo_closed_by_hand_runs_once() -> None:
    """At once, and not again when its owner goes."""
    log: list[str] = []
    async with kernel() as ctx:
        registration = ctx.defer(lambda: log.append("undone"))
        registration.close()
        registration.close()
        assert registration.closed
        assert log == ["undone"]
    assert log == ["undone"]


async def test_an_undo_is_a_function() -> None:
    """What cannot be called is refused at the call, whose line is named; a coroutine, the usual slip, is closed."""

    async def aclose() -> None:
        raise AssertionError("nobody asked for it")

    given = aclose()
    async with kernel() as ctx:
        with pytest.raises(InvalidOptionError, match=r"give the function, not what it returned") as caught:
            ctx.defer(given)  # type: ignore[arg-type]
        assert inspect.getcoroutinestate(given) == inspect.CORO_CLOSED
        assert caught.value.entry.owner == "root"
        assert "test_context.py:" in str(caught.value)
        with pytest.raises(InvalidOptionError, match=r"must be a function, not a NoneType"):
            ctx.defer(None)  # type: ignore[arg-type]


async def test_an_async_undo_closed_by_hand_is_started() -> None:
    """Closing cannot wait; the undo runs in a task of the kernel, and is waited for at the end."""
    log: list[str] = []

    async def undo() -> None:
        await anyio.lowlevel.checkpoint()
        log.append("undone")

    async with kernel() as ctx:
        ctx.defer(undo).close()
        assert log == []
        await anyio.wait_all_tasks_blocked()
        assert log == ["undone"]
        ctx.defer(undo).close()
    assert log == ["undone"] * 2


async def test_what_an_async_undo_closed_by_hand_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody waits for it, so nobody else could be told."""

    async def undo() -> None:
        raise ValueError("undo")

    async with kernel() as ctx:
        ctx.defer(undo).close()
    assert [record.message for record in caplog.records] == ["an undo of root failed"]


# -- scopes ------------------------------------------------------------------------------------------------------------


async def test_a_scope_owns_and_files() -> None:
    """A scope's context has a key and an owner of its own; plugins mounted through it stand in its scope."""
    seen: list[Context] = []
    async with kernel() as ctx:
        agent = ctx.scope("agent")
        assert (ctx.key, agent.key.name, agent.name) == (GLOBAL, "agent", "agent")
        await agent.mount(made("p", seen.append)).ready()
        assert seen[0].key is agent.key
        assert seen[0].name == "p"
        assert repr(agent) == "<Context: agent, scope agent>"
        await agent.dispose()
        assert not agent.active
        assert repr(agent) == "<Context: agent, scope agent, disposed>"


@pytest.mark.parametrize("name", [3, "", "\ud800", None], ids=ascii)
async def test_a_scope_has_a_name_that_can_be_shown(name: Any) -> None:
    """Another one is refused, by contexts and by the prompt's views alike, and leaves nothing."""
    async with kernel() as ctx:
        await ctx.mount(SystemPrompt).ready()
        before = held(ctx)
        for make in (ctx.scope, ctx.require(SystemPrompt).scope):
            with pytest.raises(EmptyNameError, match="the name of a scope of root must be a non-empty string"):
                make(name)
        assert held(ctx) == before


async def test_disposing_a_scope_undoes_what_was_done_through_it() -> None:
    """Plugins and scopes made through it included, and nothing else; twice is once."""
    log: list[str] = []
    async with kernel() as ctx:
        before = held(ctx)
        await ctx.mount(logged("outside", log)).ready()
        agent = ctx.scope("agent")
        await agent.mount(logged("inside", log)).ready()
        inner = agent.scope("inner", parent=agent)
        inner.on(PING, print)
        agent.provide(Alpha())
        for _ in range(2):
            await agent.dispose()
        assert not inner.active
        assert log == ["+outside", "+inside", "-inside"]
        assert held(ctx)._replace(fibers=0, tasks=0) == before._replace(fibers=0, tasks=0)
        for call in (lambda: agent.on(PING, print), lambda: agent.scope("x"), lambda: agent.mount(logged("p", log))):
            with pytest.raises(InactiveContextError):
                call()


async def test_a_scope_left_is_disposed_of() -> None:
    """A scope's context can be entered; leaving it disposes, and the kernel goes on."""
    log: list[str] = []
    async with kernel() as ctx:
        agent = ctx.scope("agent")

        async def live() -> None:
            async with agent as entered:
                assert entered is agent
                await agent.mount(logged("p", log)).ready()
                raise ValueError("mine")

        with pytest.raises(ValueError, match="mine"):
            await live()
        assert (log, agent.active, ctx.active) == (["+p", "-p"], False, True)
        await ctx.mount(logged("q", log)).ready()


async def test_a_scope_goes_with_the_plugin_that_made_it() -> None:
    """A scope is part of whoever made it, in its turn."""
    log: list[str] = []

    def body(ctx: Context) -> None:
        ctx.defer(lambda: log.append("first"))
        ctx.scope("agent").defer(lambda: log.append("scope"))
        ctx.defer(lambda: log.append("second"))

    async with kernel() as ctx:
        fiber = await ctx.mount(made("p", body)).ready()
        await fiber.update(None)
        assert log == ["second", "scope", "first"]


async def test_a_scope_of_a_key_that_exists() -> None:
    """Two contexts may share a key; a key is bound once, and a cycle is refused, without leaving a fiber."""
    async with kernel() as ctx:
        outer = ctx.scope("outer")
        key = ScopeKey("agent")
        agent = ctx.scope(key, parent=outer)
        assert agent.binding is not None
        assert ctx.scope(key).key is key
        before = held(ctx)
        with pytest.raises(ScopeAlreadyBoundError):
            ctx.scope(key, parent=outer)
        with pytest.raises(ScopeCycleError):
            agent.binding.rebind(agent)
        assert held(ctx) == before
        await agent.dispose()
        assert key.parent is outer.key, "the link lives as long as the key"


# -- look-up -----------------------------------------------------------------------------------------------------------


async def test_what_nobody_provides() -> None:
    """`get` gives None; `require` names who asks, for what, and what there is."""
    async with kernel() as ctx:
        await ctx.mount(logged("p", [], provides=[Alpha])).ready()
        agent = ctx.scope("agent")
        assert agent.get(int) is None
        with pytest.raises(MissingServiceError, match=r"agent requires the service int.*provided now: Alpha"):
            agent.require(int)


# -- threads -----------------------------------------------------------------------------------------------------------


async def test_another_thread_is_sent_back() -> None:
    """What belongs to the kernel's thread is refused elsewhere, with the way there, and has changed nothing."""
    async with kernel() as ctx:
        provided = ctx.provide(Alpha())
        deferred = ctx.defer(print)
        listening = ctx.on(PING, print)
        before = held(ctx)
        calls: dict[str, Callable[[], Any]] = {
            "mounting": lambda: ctx.mount(logged("p", [])),
            "providing": lambda: ctx.provide(3),
            "listening": lambda: ctx.on(PING, print),
            "making a scope": lambda: ctx.scope("agent"),
            "emitting": lambda: ctx.emit(PING),
            "registering": lambda: ctx.defer(print),
            "closing service Alpha of root": provided.close,
            "closing listener": listening.close,
            "undoing": deferred.close,
        }
        for what, call in calls.items():
            with pytest.raises(WrongThreadError, match=rf"^{what}.*anyio\.from_thread\.run_sync"):
                await anyio.to_thread.run_sync(call)
        assert held(ctx)[:3] == before[:3]
        assert (provided.closed, deferred.closed, listening.closed) == (False, False, False)
        deferred.close()
        assert await anyio.to_thread.run_sync(lambda: anyio.from_thread.run_sync(ctx.scope, "agent")) is not None


# -- two kernels -------------------------------------------------------------------------------------------------------


async def test_two_kernels_do_not_meet() -> None:
    """Services, events and plugins of one are nothing to the other, though the declarations are shared."""
    log: list[str] = []
    async with kernel() as one:
        async with Context() as other:
            one.on(PING, lambda: log.append("one"))
            other.on(PING, lambda: log.append("other"))
            await one.mount(logged("p", [], provides=[Alpha])).ready()
            user = await other.mount(logged("user", [], needs=[Alpha])).ready()
            assert (user.state, other.get(Alpha)) == (FiberState.PENDING, None)
            other.provide(Alpha())
            assert (await user.ready()).state is FiberState.ACTIVE
            other.emit(PING)
        assert one.active
        one.emit(PING)
    assert log == ["other", "one"]


async def test_a_kernel_inside_a_plugin_of_another() -> None:
    """A plugin may run a kernel of its own."""
    log: list[str] = []

    async def body(ctx: Context) -> None:
        async with Context() as inner:
            fiber = await inner.mount(logged("inner", log)).ready()
            await fiber.dispose()
            await inner.mount(logged("inner", log)).ready()

    async with kernel() as ctx:
        await ctx.mount(made("outer", body)).ready()
    assert log == ["+inner", "-inner"] * 2
