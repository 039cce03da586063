"""Fibers: plugins load and unload, fail and are tried again, hang, wait for each other, and leave nothing behind."""

# Without `from __future__ import annotations`: the kernel reads the annotations of plugins made in functions.
import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.support.kernel import Alpha, Beta, Gamma, comes_to, held, kernel, logged, made

from foreword.errors import (
    InactiveContextError,
    InvalidPluginConfigError,
    InvalidPluginError,
    PluginDeadlockError,
    PluginFailedError,
    PluginTimeoutError,
)
from foreword.kernel.context import Context
from foreword.kernel.events import Event, Mode
from foreword.kernel.fiber import FiberState, PluginFiber
from foreword.kernel.plugins import plugin

pytestmark = pytest.mark.anyio

LONG = 20.0  # no test waits that long: what is bounded by it would hang otherwise
SHORT = 0.05


def ping() -> None:
    """Something to listen to."""


PING = Event("test/ping", Mode.EMIT, ping)


# -- loading -----------------------------------------------------------------------------------------------------------


async def test_mounting_does_not_run_the_plugin() -> None:
    """`mount` comes back before the body runs; `ready` comes back when it has run."""
    log: list[str] = []
    async with kernel() as ctx:
        fiber = ctx.mount(logged("p", log))
        assert (log, fiber.state) == ([], FiberState.PENDING)
        assert await fiber.ready() is fiber
        assert (log, fiber.state) == (["+p"], FiberState.ACTIVE)
    assert log == ["+p", "-p"]


@pytest.mark.parametrize("ticks", range(5))
async def test_a_plugin_disposed_before_it_ran_never_runs(ticks: int) -> None:
    """A load that was overtaken is skipped, however far it had come."""
    log: list[str] = []
    async with kernel() as ctx:
        fiber = ctx.mount(logged("p", log))
        for _ in range(ticks):
            await anyio.lowlevel.checkpoint()
        ran = bool(log)
        await fiber.dispose()
    assert log == (["+p", "-p"] if ran else [])


async def test_waiting_for_a_service_is_settled() -> None:
    """A plugin that needs what nobody provides is pending, says for what, and `ready` does not wait for that."""
    log: list[str] = []
    async with kernel() as ctx:
        fiber = await ctx.mount(logged("p", log, needs=[Alpha, Beta])).ready()
        assert (fiber.state, fiber.missing) == (FiberState.PENDING, ("Alpha", "Beta"))
        await ctx.mount(logged("b", log, provides=[Beta])).ready()
        assert (await fiber.ready()).missing == ("Alpha",)
    assert log == ["+b", "-b"]


async def test_a_plugin_follows_its_service() -> None:
    """It loads when the service comes, unloads before it goes, and loads again when it returns."""
    log: list[str] = []
    async with kernel() as ctx:
        user = ctx.mount(logged("user", log, needs=[Alpha]))
        provider = await ctx.mount(logged("provider", log, provides=[Alpha])).ready()
        assert (await user.ready()).state is FiberState.ACTIVE
        await provider.dispose()
        assert user.state is FiberState.PENDING
        await ctx.mount(logged("provider", log, provides=[Alpha])).ready()
        assert (await user.ready()).state is FiberState.ACTIVE
    assert log == ["+provider", "+user", "-user", "-provider"] * 2


async def test_a_chain_starts_each_once_whatever_the_order() -> None:
    """Dependents wait for providers, however late these are mounted."""
    log: list[str] = []
    async with kernel() as ctx:
        fibers = [
            ctx.mount(logged("c", log, needs=[Beta])),
            ctx.mount(logged("b", log, needs=[Alpha], provides=[Beta])),
            ctx.mount(logged("a", log, provides=[Alpha])),
        ]
        for fiber in reversed(fibers):
            assert (await fiber.ready()).state is FiberState.ACTIVE
    assert log == ["+a", "+b", "+c", "-c", "-b", "-a"]


async def test_an_optional_service_is_none_until_it_comes() -> None:
    """With `X | None` the plugin is loaded without, anew when it comes, and anew when it goes."""
    seen: list[bool] = []
    async with kernel() as ctx:
        user = ctx.mount(made("user", lambda ctx, alpha: seen.append(alpha is not None), wants=[Alpha]))
        await user.ready()
        provider = await ctx.mount(logged("provider", [], provides=[Alpha])).ready()
        await user.ready()
        await provider.dispose()
        await user.ready()
    assert seen == [False, True, False]


async def test_dependents_wait_for_the_end_of_an_async_set_up() -> None:
    """A service is seen when its provider is active, not when it is provided."""
    log: list[str] = []
    go_on = anyio.Event()

    async def provider(ctx: Context) -> None:
        ctx.provide(Alpha())
        await go_on.wait()
        log.append("provider")

    async with kernel() as ctx:
        user = await ctx.mount(logged("user", log, needs=[Alpha])).ready()
        mounted = ctx.mount(provider)
        await anyio.wait_all_tasks_blocked()
        assert (user.state, mounted.state) == (FiberState.PENDING, FiberState.LOADING)
        go_on.set()
        await mounted.ready()
        await user.ready()
        assert log == ["provider", "+user"]


async def slow(ctx: Context, started: anyio.Event, go_on: anyio.Event, log: list[object], alpha: Alpha) -> None:
    log.append(alpha)
    ctx.defer(lambda: log.append("undone"))
    started.set()
    await go_on.wait()


async def test_a_provider_replaced_during_loading() -> None:
    """The load is not cut off: it ends, is undone, and the plugin is loaded with the new service."""
    log: list[object] = []
    first, second = Alpha(), Alpha()
    started, go_on = anyio.Event(), anyio.Event()
    async with kernel() as ctx, anyio.create_task_group() as tasks:
        provider = await ctx.mount(made("first", lambda ctx: ctx.provide(first) and None)).ready()
        user = ctx.mount(made("user", lambda ctx, alpha: slow(ctx, started, go_on, log, alpha), needs=[Alpha]))
        await started.wait()
        tasks.start_soon(provider.dispose)
        await anyio.wait_all_tasks_blocked()
        assert provider.state is FiberState.UNLOADING, "it waits for the plugin that is loading with it"
        assert user.state is FiberState.LOADING
        go_on.set()
        await provider.dispose()
        assert (await user.ready()).state is FiberState.PENDING
        ctx.mount(made("second", lambda ctx: ctx.provide(second) and None))
        await anyio.wait_all_tasks_blocked()
        assert (await user.ready()).state is FiberState.ACTIVE
    assert log == [first, "undone", second, "undone"]


@pytest.mark.parametrize("same", [True, False])
async def test_a_service_lost_and_back_during_loading(same: bool) -> None:
    """The very same service of the very same provider needs no new load; another object does."""
    log: list[object] = []
    service, other = Alpha(), Alpha()
    started, go_on = anyio.Event(), anyio.Event()
    given: list[Any] = []

    def provider(ctx: Context) -> None:
        given.extend((ctx, ctx.provide(service)))

    async with kernel() as ctx:
        await ctx.mount(provider).ready()
        user = ctx.mount(made("user", lambda ctx, alpha: slow(ctx, started, go_on, log, alpha), needs=[Alpha]))
        await started.wait()
        given[1].close()
        given[0].provide(service if same else other)
        go_on.set()
        assert (await user.ready()).state is FiberState.ACTIVE
        assert log == ([service] if same else [service, "undone", other])


async def test_a_service_exchanged_by_its_provider_reaches_its_users() -> None:
    """A provider that provides another object in place of the first has its dependents loaded with that."""
    log: list[object] = []
    first, second = Alpha(), Alpha()
    given: list[Any] = []

    def provider(ctx: Context) -> None:
        given.extend((ctx, ctx.provide(first)))

    async with kernel() as ctx:
        await ctx.mount(provider).ready()
        user = await ctx.mount(made("user", lambda ctx, alpha: log.append(alpha), needs=[Alpha])).ready()
        given[1].close()
        given[0].provide(second)
        await user.ready()
        assert log == [first, second]


async def test_a_plugin_that_is_to_go_never_serves() -> None:
    """Disposed while it loads, a provider wakes nobody when its set-up ends."""
    log: list[str] = []
    started, go_on = anyio.Event(), anyio.Event()

    async def provider(ctx: Context) -> None:
        ctx.provide(Alpha())
        started.set()
        await go_on.wait()

    async with kernel() as ctx, anyio.create_task_group() as tasks:
        user = ctx.mount(logged("user", log, needs=[Alpha]))
        mounted = ctx.mount(provider)
        await started.wait()
        tasks.start_soon(mounted.dispose)
        await anyio.wait_all_tasks_blocked()
        go_on.set()
        await mounted.dispose()
        assert (await user.ready()).state is FiberState.PENDING
    assert log == []


@pytest.mark.parametrize("how", ["itself", "a child", "a dependent"])
async def test_what_comes_from_a_plugin_is_no_reason_to_load_it_anew(how: str) -> None:
    """An optional service that would come and go with the plugin itself is left out, or it would reload for ever."""
    loads: list[object] = []

    def body(ctx: Context, alpha: Alpha | None) -> None:
        loads.append(alpha)
        assert len(loads) < 5, "it reloads for ever"
        if how == "itself":
            ctx.provide(Alpha())
        elif how == "a child":
            ctx.mount(logged("child", [], provides=[Alpha]))
        else:
            ctx.provide(Beta())

    async with kernel() as ctx:
        ctx.mount(logged("dependent", [], needs=[Beta], provides=[Alpha] if how == "a dependent" else []))
        fiber = await ctx.mount(made("p", body, wants=[Alpha])).ready()
        await anyio.wait_all_tasks_blocked()
        assert (await fiber.ready()).state is FiberState.ACTIVE
        assert ctx.get(Alpha) is not None
        assert loads == [None]


async def test_plugins_that_want_each_other_come_to_rest() -> None:
    """Of two that each want what the other provides, one gets it."""
    got: dict[str, object] = {}

    def a(ctx: Context, beta: Beta | None) -> None:
        got["a"] = beta
        ctx.provide(Alpha())

    def b(ctx: Context, alpha: Alpha | None) -> None:
        got["b"] = alpha
        ctx.provide(Beta())

    async with kernel() as ctx:
        fibers = [ctx.mount(made("a", a, wants=[Beta])), ctx.mount(made("b", b, wants=[Alpha]))]
        with anyio.fail_after(LONG):
            await anyio.wait_all_tasks_blocked()
            for fiber in fibers:
                assert (await fiber.ready()).state is FiberState.ACTIVE
        assert len([service for service in got.values() if service is None]) == 1


# -- going -------------------------------------------------------------------------------------------------------------


async def test_undos_run_last_in_first_out_one_after_the_other() -> None:
    """Sync and async undos of a plugin run in one line, the latest first."""
    log: list[str] = []

    def body(ctx: Context) -> None:
        for name in "abc":

            async def undo(name: str = name) -> None:
                log.append(f"{name} starts")
                await anyio.lowlevel.checkpoint()
                log.append(f"{name} ends")

            ctx.defer(undo)
            ctx.defer(lambda name=name: log.append(f"after {name}"))

    async with kernel() as ctx:
        await (await ctx.mount(made("p", body)).ready()).dispose()
    assert log == [
        "after c", "c starts", "c ends", "after b", "b starts", "b ends", "after a", "a starts", "a ends",
    ]  # fmt: skip


async def test_disposal_is_shared() -> None:
    """However many tasks dispose of a plugin, and however often, it is undone once, and all wait for the end."""
    log: list[str] = []
    go_on = anyio.Event()

    async def undo() -> None:
        log.append("starts")
        await go_on.wait()
        log.append("ends")

    async with kernel() as ctx:
        fiber = await ctx.mount(made("p", lambda ctx: ctx.defer(undo) and None)).ready()

        async def dispose() -> None:
            await fiber.dispose()
            log.append("disposed")

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(dispose)
            await anyio.wait_all_tasks_blocked()
            assert log == ["starts"]
            go_on.set()
        await fiber.dispose()
    assert log == ["starts", "ends", *["disposed"] * 3]


async def test_who_waits_for_a_disposal_may_stop_waiting() -> None:
    """Cancelling one who waits does not stop the teardown."""
    log: list[str] = []
    go_on = anyio.Event()

    async def undo() -> None:
        await go_on.wait()
        log.append("undone")

    async with kernel() as ctx:
        fiber = await ctx.mount(made("p", lambda ctx: ctx.defer(undo) and None)).ready()
        with anyio.move_on_after(SHORT):
            await fiber.dispose()
        assert fiber.state is FiberState.UNLOADING
        go_on.set()
        await fiber.dispose()
        assert log == ["undone"]


async def test_a_plugin_disposes_of_itself() -> None:
    """From its own body, `dispose` comes back at once; the plugin goes when the body has ended."""
    log: list[str] = []
    fibers: list[PluginFiber] = []

    async def body(ctx: Context) -> None:
        ctx.defer(lambda: log.append("undone"))
        await fibers[0].dispose()
        log.append("body ends")

    async with kernel() as ctx:
        fibers.append(ctx.mount(made("p", body)))
        with pytest.raises(InactiveContextError, match="mount it again"):
            await fibers[0].ready()
    assert log == ["body ends", "undone"]


async def test_a_plugin_disposes_of_itself_in_its_teardown() -> None:
    """There, too, it does not wait for itself."""
    fibers: list[PluginFiber] = []
    async with kernel() as ctx:
        fibers.append(ctx.mount(made("p", lambda ctx: ctx.defer(fibers[0].dispose) and None)))
        with anyio.fail_after(LONG):
            await (await fibers[0].ready()).dispose()


async def test_a_plugin_disposes_of_itself_from_a_task_of_its_own() -> None:
    """A background task may end the plugin that started it, though its teardown waits for that task."""
    fibers: list[PluginFiber] = []

    async def body() -> AsyncGenerator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(end)
            yield

    async def end() -> None:
        await anyio.sleep(SHORT)
        await fibers[0].dispose()

    async with kernel() as ctx:
        fibers.append(ctx.mount(made("p", lambda ctx: body())))
        await comes_to(fibers[0], FiberState.DISPOSED)


async def test_a_failure_after_set_up_is_told_as_one() -> None:
    """A task that an active plugin had started fails: the error, and a guard, are told that set-up was over."""
    phases: list[str] = []
    fail = anyio.Event()

    async def poll() -> None:
        await fail.wait()
        raise ConnectionError("no route")

    async def body() -> AsyncGenerator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(poll)
            yield

    def guard(plugin: str, phase: str, error: BaseException) -> BaseException:
        phases.append(phase)
        return error

    async with kernel(guard=guard) as ctx:
        fiber = await ctx.mount(made("poller", lambda ctx: body())).ready()
        fail.set()
        await comes_to(fiber, FiberState.FAILED)
        with pytest.raises(
            PluginFailedError, match="plugin poller failed after set-up and was rolled back: "
        ) as caught:
            await fiber.ready()
        assert caught.value.phase == "after set-up"
        assert isinstance(caught.value.__cause__, ExceptionGroup)
    assert phases == ["after set-up"]


async def test_nothing_is_registered_during_unloading() -> None:
    """Who registers, listens, provides, mounts or makes a scope in a teardown is told that it is too late."""
    refused: list[str] = []

    def late(ctx: Context) -> None:
        calls: list[Callable[[], object]] = [
            lambda: ctx.defer(print),
            lambda: ctx.on(PING, print),
            lambda: ctx.provide(Alpha()),
            lambda: ctx.mount(logged("child", [])),
            lambda: ctx.scope("s"),
        ]
        for call in calls:
            with pytest.raises(InactiveContextError, match=r"plugin p .unloading"):
                call()
            refused.append("")

    async with kernel() as ctx:
        before = held(ctx)
        fiber = await ctx.mount(made("p", lambda ctx: ctx.defer(lambda: late(ctx)) and None)).ready()
        await fiber.dispose()
        assert len(refused) == 5
        assert held(ctx) == before
        with pytest.raises(InactiveContextError, match=r"plugin p .disposed"):
            fiber.ctx.on(PING, print)


async def test_what_was_registered_while_pending_goes_too() -> None:
    """A plugin may register through its context before it is loaded; that is undone when it is disposed."""
    log: list[str] = []
    async with kernel() as ctx:
        before = held(ctx)
        fiber = await ctx.mount(logged("p", log, needs=[Alpha])).ready()
        fiber.ctx.on(PING, lambda: log.append("ping"))
        fiber.ctx.defer(lambda: log.append("undone"))
        ctx.emit(PING)
        await fiber.dispose()
        ctx.emit(PING)
        assert held(ctx) == before
    assert log == ["ping", "undone"]


async def test_what_was_registered_while_failed_goes_too() -> None:
    """The same holds for a failed plugin, which is legal to register for."""
    log: list[str] = []

    def bad(ctx: Context) -> None:
        raise ValueError

    async with kernel() as ctx:
        before = held(ctx)
        fiber = ctx.mount(made("p", bad))
        with pytest.raises(PluginFailedError):
            await fiber.ready()
        fiber.ctx.on(PING, lambda: log.append("ping"))
        await fiber.dispose()
        ctx.emit(PING)
        assert (log, held(ctx)) == ([], before)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
async def test_an_undo_that_raises_stops_no_other(error: type[BaseException]) -> None:
    """Whatever undos raise, sync or async, all run, once, and the errors come as one group, to everybody who asks."""
    log: list[str] = []

    def fail(name: str) -> None:
        log.append(name)
        raise error(name)

    async def fail_later(name: str) -> None:
        await anyio.lowlevel.checkpoint()
        fail(name)

    def body(ctx: Context) -> None:
        ctx.defer(lambda: log.append("first"))
        ctx.defer(lambda: fail("sync"))
        ctx.defer(lambda: log.append("second"))
        ctx.defer(lambda: fail_later("async"))
        ctx.on(PING, print)

    async with kernel() as ctx:
        before = held(ctx)
        fiber = await ctx.mount(made("p", body)).ready()
        for _ in range(2):
            with pytest.raises(BaseExceptionGroup, match="undoing p") as caught:
                await fiber.dispose()
            assert len(caught.value.exceptions) == 2
        assert log == ["async", "second", "sync", "first"]
        assert held(ctx) == before


async def test_undo_errors_below_come_with_those_above() -> None:
    """A parent's group holds what its children's undos raised; all of both ran."""
    log: list[str] = []

    def fail(name: str) -> None:
        log.append(name)
        raise ValueError(name)

    def parent(ctx: Context) -> None:
        ctx.defer(lambda: fail("parent"))
        ctx.mount(made("child", lambda ctx: ctx.defer(lambda: fail("child")) and None))
        ctx.scope("agent").defer(lambda: fail("scope"))

    async def live() -> None:
        async with Context() as ctx:
            await ctx.mount(made("parent", parent)).ready()
            await anyio.wait_all_tasks_blocked()

    with pytest.raises(BaseExceptionGroup) as caught:
        await live()
    assert log == ["scope", "child", "parent"]
    leaves: list[str] = []

    def walk(error: BaseException) -> None:
        if isinstance(error, BaseExceptionGroup):
            for each in error.exceptions:
                walk(each)
        else:
            leaves.append(str(error))

    walk(caught.value)
    assert leaves == log


async def test_undo_errors_of_a_reload_are_logged_and_done_with(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody waits when a plugin is only loaded anew; what its undos raise is logged, once, and not raised later."""
    rounds = iter([ValueError("once"), None])

    def undo() -> None:
        error = next(rounds)
        if error is not None:
            raise error

    async with kernel() as ctx:
        fiber = await ctx.mount(made("p", lambda ctx: ctx.defer(undo) and None)).ready()
        await fiber.update(None)
        assert [record.message for record in caplog.records] == ["undoing plugin p failed"]
        await fiber.dispose()


# -- failing -----------------------------------------------------------------------------------------------------------


async def test_a_failed_plugin_is_rolled_back_and_says_why() -> None:
    """All it registered is undone, `ready` raises and names it, its error and the cause."""
    log: list[str] = []

    async def body(ctx: Context) -> None:
        ctx.defer(lambda: log.append("undone"))
        ctx.on(PING, lambda: log.append("ping"))
        ctx.provide(Alpha())
        ctx.mount(logged("child", log))
        await anyio.wait_all_tasks_blocked()
        raise LookupError("no such currency")

    async with kernel() as ctx:
        before = held(ctx)
        user = await ctx.mount(logged("user", log, needs=[Alpha])).ready()
        fiber = ctx.mount(made("acme", body))
        with pytest.raises(PluginFailedError, match=r"plugin acme .*LookupError: no such currency") as caught:
            await fiber.ready()
        assert isinstance(caught.value.__cause__, LookupError)
        assert fiber.state is FiberState.FAILED
        assert fiber.error is caught.value
        assert user.state is FiberState.PENDING
        ctx.emit(PING)
        assert log == ["+child", "-child", "undone"]
        await fiber.dispose()
        await user.dispose()
        assert held(ctx) == before


@pytest.mark.parametrize("awaited", [True, False])
async def test_a_failure_that_reaches_nobody_is_logged(awaited: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Once; who waits for `ready` is told by that, and the log is not told as well."""

    def body(ctx: Context) -> None:
        raise ValueError("bad")

    async with kernel() as ctx:
        fiber = ctx.mount(made("acme", body))
        if awaited:
            with pytest.raises(PluginFailedError):
                await fiber.ready()
        else:
            await comes_to(fiber, FiberState.FAILED)
    assert [record.message for record in caplog.records] == ([] if awaited else ["plugin acme failed"])


async def test_only_the_failing_one_of_two_mounts_is_failed() -> None:
    """A plugin mounted twice is two fibers, each with a fate of its own."""

    def body(ctx: Context, config: dict[str, bool]) -> None:
        ctx.on(PING, print)
        if config["fails"]:
            raise ValueError

    async with kernel() as ctx:
        good = await ctx.mount(body, {"fails": False}).ready()
        bad = ctx.mount(body, {"fails": True})
        with pytest.raises(PluginFailedError):
            await bad.ready()
        assert (good.state, bad.state) == (FiberState.ACTIVE, FiberState.FAILED)
        assert held(ctx).listeners == 1


async def test_rolling_back_never_hides_why_it_failed(caplog: pytest.LogCaptureFixture) -> None:
    """An undo that raises during the roll-back is logged; `ready` tells the set-up's error."""

    def undo() -> None:
        raise KeyError("undo")

    def body(ctx: Context) -> None:
        ctx.defer(undo)
        raise ValueError("set-up")

    async with kernel() as ctx:
        fiber = ctx.mount(made("p", body))
        with pytest.raises(PluginFailedError, match="ValueError: set-up"):
            await fiber.ready()
        assert [record.message for record in caplog.records] == ["undoing plugin p failed"]
        await fiber.dispose()


async def test_a_parent_that_fails_with_its_child_names_both() -> None:
    """What a child's `ready` raises in a parent's body is the parent's failure, and tells the child's."""

    def bad(ctx: Context) -> None:
        raise ValueError("deep")

    async def parent(ctx: Context) -> None:
        await ctx.mount(made("child", bad)).ready()

    async with kernel() as ctx:
        with pytest.raises(PluginFailedError, match=r"plugin parent .*plugin child .*deep"):
            await ctx.mount(made("parent", parent)).ready()


async def test_a_failed_plugin_is_tried_again_on_update() -> None:
    """Another config is another try; so is the same one."""
    tries: list[object] = []

    def body(ctx: Context, config: dict[str, int]) -> None:
        tries.append(config)
        if len(tries) < 3:
            raise ValueError

    async with kernel() as ctx:
        fiber = ctx.mount(body, {"try": 1})
        with pytest.raises(PluginFailedError):
            await fiber.ready()
        with pytest.raises(PluginFailedError):
            await fiber.update({"try": 2})
        assert (await fiber.update({"try": 2})).state is FiberState.ACTIVE
        assert fiber.error is None
    assert tries == [{"try": 1}, {"try": 2}, {"try": 2}]


@pytest.mark.parametrize("how", ["another provider", "the same provider, updated", "another service", "the same one"])
async def test_a_failed_plugin_is_tried_again_when_its_services_change(how: str) -> None:
    """Each complete set of services is tried once."""
    tries: list[object] = []

    def body(ctx: Context, alpha: Alpha, beta: Beta | None) -> None:
        tries.append((alpha, beta))
        if len(tries) == 1:
            raise ValueError

    alpha = Alpha()
    provides_one = made("provider", lambda ctx: ctx.provide(alpha) and None)
    async with kernel() as ctx:
        again = how == "the same one"
        provider = await ctx.mount(provides_one if again else logged("provider", [], provides=[Alpha])).ready()
        fiber = ctx.mount(made("p", body, needs=[Alpha], wants=[Beta]))
        with pytest.raises(PluginFailedError):
            await fiber.ready()
        await anyio.wait_all_tasks_blocked()
        assert len(tries) == 1, "it is not tried again without a reason"
        if how == "another provider":
            await provider.dispose()
            await ctx.mount(logged("provider", [], provides=[Alpha])).ready()
        elif how == "another service":
            await ctx.mount(logged("other", [], provides=[Beta])).ready()
        else:
            await provider.update(None)
        assert (await fiber.ready()).state is FiberState.ACTIVE
        assert len(tries) == 2


async def test_a_plugin_that_fails_while_its_provider_goes_is_tried_again() -> None:
    """What comes back is another try, even if it is the very same service of the very same provider."""
    tries: list[Alpha] = []
    alpha = Alpha()
    started, go_on = anyio.Event(), anyio.Event()

    async def body(ctx: Context, alpha: Alpha) -> None:
        tries.append(alpha)
        if len(tries) == 1:
            started.set()
            await go_on.wait()
            raise ValueError

    async with kernel() as ctx, anyio.create_task_group() as tasks:
        provider = await ctx.mount(made("provider", lambda ctx: ctx.provide(alpha) and None)).ready()
        fiber = ctx.mount(made("p", body, needs=[Alpha]))
        await started.wait()
        tasks.start_soon(provider.update, None)
        await anyio.wait_all_tasks_blocked()
        go_on.set()
        await provider.ready()
        await comes_to(fiber, FiberState.ACTIVE)
        assert tries == [alpha, alpha]


async def test_a_provider_that_fails_on_update_leaves_its_users_waiting() -> None:
    """A dependent goes down with its provider's old life, not with an error of its own, and comes back with it."""
    log: list[str] = []

    def provider(ctx: Context, config: dict[str, bool]) -> None:
        ctx.provide(Alpha())
        if config["fails"]:
            raise ValueError

    async with kernel() as ctx:
        fiber = await ctx.mount(provider, {"fails": False}).ready()
        user = await ctx.mount(logged("user", log, needs=[Alpha])).ready()
        with pytest.raises(PluginFailedError):
            await fiber.update({"fails": True})
        assert (await user.ready()).state is FiberState.PENDING
        await fiber.update({"fails": False})
        assert (await user.ready()).state is FiberState.ACTIVE
    assert log == ["+user", "-user", "+user", "-user"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("form", ["plain", "async", "generator"])
async def test_an_interrupt_in_a_plugin_leaves_the_kernel(error: type[BaseException], form: str) -> None:
    """What is no mere error unloads everything and comes out of `async with` as itself."""
    log: list[str] = []
    raised = error("stop")

    def plain(ctx: Context) -> None:
        ctx.defer(lambda: log.append("undone"))
        raise raised

    async def later(ctx: Context) -> None:
        await anyio.lowlevel.checkpoint()
        plain(ctx)

    def generator(ctx: Context) -> Generator[None]:
        plain(ctx)
        yield

    form_of: dict[str, Callable[..., object]] = {"plain": plain, "async": later, "generator": generator}

    async def live() -> None:
        async with Context() as ctx:
            await ctx.mount(logged("other", log)).ready()
            ctx.mount(made("p", form_of[form]))
            await anyio.sleep(LONG)

    with pytest.raises(error) as caught:
        await live()
    assert caught.value is raised
    assert log == ["+other", "undone", "-other"]


# -- hanging -----------------------------------------------------------------------------------------------------------


async def hang_undone(log: list[str]) -> None:
    try:
        await anyio.sleep(LONG)
    finally:
        log.append("cancelled")


async def hang_generator(log: list[str]) -> AsyncGenerator[None]:
    await hang_undone(log)
    yield


@pytest.mark.parametrize("form", ["async", "generator"])
async def test_a_set_up_that_hangs_is_named(form: str) -> None:
    """After `setup_timeout` it is cancelled, rolled back and failed; others do not notice."""
    log: list[str] = []

    def body(ctx: Context) -> object:
        ctx.defer(lambda: log.append("undone"))
        return hang_undone(log) if form == "async" else hang_generator(log)

    async with kernel(setup_timeout=SHORT) as ctx:
        other = await ctx.mount(logged("other", [])).ready()
        fiber = ctx.mount(made("sloth", body))
        with (
            anyio.fail_after(LONG / 2),
            pytest.raises(PluginTimeoutError, match="plugin sloth hangs in set-up") as caught,
        ):
            await fiber.ready()
        assert (caught.value.plugin, caught.value.seconds) == ("sloth", SHORT)
        assert log == ["cancelled", "undone"]
        assert (fiber.state, other.state) == (FiberState.FAILED, FiberState.ACTIVE)


async def test_time_at_rest_does_not_count() -> None:
    """`setup_timeout` and `teardown_timeout` bound these phases, not how long a plugin is active."""
    log: list[str] = []

    async def body() -> AsyncGenerator[None]:
        await anyio.lowlevel.checkpoint()
        yield
        await anyio.lowlevel.checkpoint()
        log.append("torn down")

    async with kernel(setup_timeout=SHORT, teardown_timeout=SHORT) as ctx:
        fiber = await ctx.mount(made("p", lambda ctx: body())).ready()
        await anyio.sleep(2 * SHORT)
        assert fiber.state is FiberState.ACTIVE
        await fiber.dispose()
    assert log == ["torn down"]


@pytest.mark.parametrize("place", ["undo", "generator"])
async def test_a_teardown_that_hangs_is_named(place: str) -> None:
    """After `teardown_timeout` it is cancelled and named in the group; all other undos run, with time of their own."""
    log: list[str] = []

    async def undo() -> None:
        await anyio.lowlevel.checkpoint()
        log.append("undone")

    async def body(ctx: Context) -> AsyncGenerator[None]:
        ctx.defer(undo)
        if place == "undo":
            ctx.defer(lambda: hang_undone(log))
        ctx.defer(undo)
        yield
        if place == "generator":
            await hang_undone(log)
        else:
            await undo()

    async with kernel(teardown_timeout=SHORT) as ctx:
        fiber = await ctx.mount(made("sloth", body)).ready()
        with anyio.fail_after(LONG / 2), pytest.raises(BaseExceptionGroup) as caught:
            await fiber.dispose()
        [error] = caught.value.exceptions
        assert isinstance(error, PluginTimeoutError)
        assert (error.plugin, error.phase) == ("sloth", "teardown")
        assert log == (
            ["undone", "cancelled", "undone", "undone"] if place == "undo" else ["undone", "undone", "cancelled"]
        )


@pytest.mark.parametrize("form", ["plain", "generator"])
async def test_an_undo_that_hangs_leaves_time_to_the_others(form: str) -> None:
    """Also where nothing is held open, an undo behind one that was cancelled is not cancelled with it."""
    log: list[str] = []

    async def undo() -> None:
        await anyio.lowlevel.checkpoint()
        log.append("undone")

    def plain(ctx: Context) -> None:
        ctx.defer(undo)
        ctx.defer(lambda: hang_undone(log))

    def generator(ctx: Context) -> Generator[None]:
        plain(ctx)
        yield
        log.append("torn down")

    async with kernel(teardown_timeout=SHORT) as ctx:
        fiber = await ctx.mount(made("p", plain if form == "plain" else generator)).ready()
        with pytest.raises(BaseExceptionGroup):
            await fiber.dispose()
    assert log == ["cancelled", "undone", *(["torn down"] if form == "generator" else [])]


@pytest.mark.parametrize("who", ["it is disposed", "its parent is", "its provider is", "the kernel is left"])
async def test_a_set_up_that_hangs_holds_nobody_up_for_ever(who: str) -> None:
    """Without a `setup_timeout`, too: once somebody waits for it to go, it has the time of a teardown."""
    log: list[str] = []
    parents: list[PluginFiber] = []
    hanging = made("sloth", lambda ctx, *alpha: hang_undone(log), needs=[Alpha])
    with anyio.fail_after(LONG / 2):
        async with kernel(teardown_timeout=SHORT) as ctx:
            if who == "its parent is":
                parents.append(await ctx.mount(made("parent", lambda ctx: ctx.mount(hanging) and None)).ready())
            else:
                parents.append(ctx.mount(hanging))
            provider = await ctx.mount(logged("provider", [], provides=[Alpha])).ready()
            await anyio.wait_all_tasks_blocked()
            assert log == []
            if who == "its provider is":
                await provider.dispose()
            elif who != "the kernel is left":
                await parents[0].dispose()
            assert log == ([] if who == "the kernel is left" else ["cancelled"])
    assert log == ["cancelled"]


# -- waiting for each other --------------------------------------------------------------------------------------------


async def failing(fiber: PluginFiber) -> PluginDeadlockError:
    """The deadlock that a plugin failed with."""
    with anyio.fail_after(LONG), pytest.raises(PluginFailedError) as caught:
        await fiber.ready()
    assert isinstance(caught.value.__cause__, PluginDeadlockError)
    return caught.value.__cause__


@pytest.mark.parametrize("target", ["provider", "parent", "root", "scope"])
async def test_a_body_that_waits_for_what_waits_for_it(target: str) -> None:
    """A plugin whose set-up awaits the disposal of its provider, parent, scope or root is told, and fails."""
    async with kernel() as ctx:
        provider = await ctx.mount(logged("provider", [], provides=[Alpha])).ready()
        parents: list[Context] = []
        await ctx.mount(made("parent", parents.append)).ready()
        scope = parents[0].scope("agent")
        targets = {"provider": provider, "parent": parents[0].fiber, "root": ctx.fiber, "scope": scope.fiber}

        async def body(ctx: Context, alpha: Alpha) -> None:
            await targets[target].dispose()

        fiber = scope.mount(made("p", body, needs=[Alpha]))
        error = await failing(fiber)
        assert (error.waiting, error.target) == ("p", targets[target].name)
        assert targets[target].state is FiberState.ACTIVE, "a refused disposal changes nothing"


async def test_a_teardown_that_waits_for_what_waits_for_it() -> None:
    """The error is the teardown's, and everything goes all the same."""
    log: list[str] = []
    async with kernel() as ctx:
        provider = await ctx.mount(logged("provider", log, provides=[Alpha])).ready()

        async def undo() -> None:
            log.append("undo")
            await provider.dispose()

        user = await ctx.mount(made("user", lambda ctx, alpha: ctx.defer(undo) and None, needs=[Alpha])).ready()
        with anyio.fail_after(LONG):
            with pytest.raises(BaseExceptionGroup) as caught:
                await user.dispose()
            await provider.dispose()
        [error] = caught.value.exceptions
        assert isinstance(error, PluginDeadlockError)
        assert (error.waiting, error.target) == ("user", "provider")
    assert log == ["+provider", "undo", "-provider"]


async def test_two_teardowns_that_wait_for_each_other() -> None:
    """The one that closes the ring is told; both go."""
    fibers: list[PluginFiber] = []
    errors: list[BaseException] = []

    def undoing(at: int) -> Callable[..., Any]:
        async def undo() -> None:
            try:
                await fibers[at].dispose()
            except PluginDeadlockError as error:
                errors.append(error)

        return made(f"p{1 - at}", lambda ctx: ctx.defer(undo) and None)

    async with kernel() as ctx, anyio.create_task_group() as tasks:
        fibers += [ctx.mount(undoing(1)), ctx.mount(undoing(0))]
        for fiber in fibers:
            await fiber.ready()
        with anyio.fail_after(LONG):
            for fiber in fibers:
                tasks.start_soon(fiber.dispose)
            await anyio.wait_all_tasks_blocked()
            for fiber in fibers:
                await fiber.dispose()
    assert len(errors) == 1


async def test_a_child_teardown_that_waits_for_its_parent() -> None:
    """A child that is going because its parent is cannot wait for that."""
    errors: list[PluginDeadlockError] = []
    parents: list[PluginFiber] = []

    async def undo() -> None:
        try:
            await parents[0].dispose()
        except PluginDeadlockError as error:
            errors.append(error)

    child = made("child", lambda ctx: ctx.defer(undo) and None)
    async with kernel() as ctx:
        parents.append(await ctx.mount(made("parent", lambda ctx: ctx.mount(child) and None)).ready())
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(LONG):
            await parents[0].dispose()
    [error] = errors
    assert (error.waiting, error.target) == ("child", "parent")


@pytest.mark.parametrize("call", ["ready", "update"])
async def test_a_plugin_that_waits_for_itself(call: str) -> None:
    """`ready` in its own body is a deadlock, and told; `update` is noted, and the plugin is loaded anew afterwards."""
    fibers: list[PluginFiber] = []
    loads: list[object] = []

    async def body(ctx: Context, config: dict[str, int]) -> None:
        loads.append(config)
        if call == "ready":
            await fibers[0].ready()
        elif len(loads) == 1:
            await fibers[0].update({"load": 2})

    async with kernel() as ctx:
        fibers.append(ctx.mount(made("p", body, config=dict), {"load": 1}))
        if call == "ready":
            assert (await failing(fibers[0])).waiting == "p"
        else:
            with anyio.fail_after(LONG):
                assert (await fibers[0].ready()).state is FiberState.ACTIVE
            assert loads == [{"load": 1}, {"load": 2}]


async def test_a_body_that_updates_its_provider_and_waits() -> None:
    """The provider would have to unload the plugin first; it is told, and the provider keeps its config."""
    async with kernel() as ctx:
        given: list[object] = []

        def provider(ctx: Context, config: dict[str, int]) -> None:
            given.append(config)
            ctx.provide(Alpha())

        fiber = await ctx.mount(made("provider", provider, config=dict), {"n": 1}).ready()

        async def body(ctx: Context, alpha: Alpha) -> None:
            await fiber.update({"n": 2})

        await failing(ctx.mount(made("user", body, needs=[Alpha])))
        assert given == [{"n": 1}]


async def test_a_child_may_wait_for_a_parent_that_does_not_wait_for_it() -> None:
    """What merely looks like a ring is none: the parent's set-up goes on without the child."""
    parents: list[PluginFiber] = []
    log: list[str] = []

    async def child(ctx: Context) -> None:
        await parents[0].ready()
        log.append("child")

    async def parent(ctx: Context) -> None:
        ctx.mount(made("child", child))
        await anyio.wait_all_tasks_blocked()
        log.append("parent")

    async with kernel() as ctx:
        parents.append(ctx.mount(made("parent", parent)))
        with anyio.fail_after(LONG):
            await parents[0].ready()
            await anyio.wait_all_tasks_blocked()
    assert log == ["parent", "child"]


async def test_a_child_that_waits_for_a_parent_that_comes_to_wait_for_it() -> None:
    """A ring that closes only later, when the parent has to be loaded anew, is found then."""
    parents: list[PluginFiber] = []
    errors: list[BaseException] = []
    go_on = anyio.Event()

    async def child(ctx: Context) -> None:
        try:
            await parents[0].ready()
        except PluginDeadlockError as error:
            errors.append(error)

    async def parent(ctx: Context, config: dict[str, int]) -> None:
        if config["n"] == 1:
            ctx.mount(made("child", child))
            await go_on.wait()

    async with kernel(teardown_timeout=LONG) as ctx, anyio.create_task_group() as tasks:
        parents.append(ctx.mount(made("parent", parent, config=dict), {"n": 1}))
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(parents[0].update, {"n": 2})
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(LONG / 2):
            go_on.set()
            await parents[0].ready()
    assert len(errors) == 1


async def test_a_body_may_wait_for_its_children_and_others() -> None:
    """Waiting for what does not wait for you is no deadlock."""
    log: list[str] = []
    async with kernel() as ctx:
        other = await ctx.mount(logged("other", log)).ready()

        async def body(ctx: Context) -> None:
            child = await ctx.mount(logged("child", log)).ready()
            await child.dispose()
            await other.dispose()

        with anyio.fail_after(LONG):
            await ctx.mount(made("p", body)).ready()
    assert log == ["+other", "+child", "-child", "-other"]


# -- what a plugin holds open ------------------------------------------------------------------------------------------


async def test_a_life_is_one_task() -> None:
    """Set-up, the undos and teardown of a plugin run in one task, so that scopes close where they were opened."""
    seen: list[int] = []

    def note() -> None:
        seen.append(anyio.get_current_task().id)

    async def body(ctx: Context) -> AsyncGenerator[None]:
        note()
        ctx.defer(note)
        with anyio.CancelScope():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.sleep, LONG)
                yield
                tasks.cancel_scope.cancel()
        note()

    async with kernel() as ctx:
        fiber = await ctx.mount(made("p", body)).ready()
        await fiber.dispose()
    assert len(seen) == 3
    assert len(set(seen)) == 1


async def test_a_scope_held_open_by_a_plain_generator() -> None:
    """A cancel scope around the yield of a sync generator is closed in order, too."""
    log: list[str] = []

    def body(ctx: Context) -> Generator[None]:
        ctx.defer(lambda: log.append("undone"))
        with anyio.CancelScope():
            yield
        log.append("closed")

    async with kernel(setup_timeout=LONG, teardown_timeout=LONG) as ctx:
        fiber = await ctx.mount(made("p", body)).ready()
        await fiber.update(None)
    assert log == ["undone", "closed"] * 2


async def test_a_stack_closed_by_an_undo() -> None:
    """An async function may open a task group on a stack, and defer the stack's closing."""
    log: list[str] = []

    async def work() -> None:
        try:
            await anyio.sleep(LONG)
        finally:
            log.append("stopped")

    async def body(ctx: Context) -> None:
        stack = AsyncExitStack()
        ctx.defer(stack.aclose)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        tasks.start_soon(work)
        await anyio.lowlevel.checkpoint()

    async with kernel(setup_timeout=LONG) as ctx:
        fiber = await ctx.mount(made("p", body)).ready()
        await anyio.wait_all_tasks_blocked()
        await fiber.dispose()
    assert log == ["stopped"]


async def test_what_a_generator_holds_open_outlasts_what_it_registered() -> None:
    """The teardown behind the yield runs last: until the registrations are undone, others may use what is open."""
    log: list[str] = []

    async def body(ctx: Context) -> AsyncGenerator[None]:
        log.append("open")
        ctx.defer(lambda: log.append("unregister"))
        yield
        log.append("close")

    async with kernel() as ctx:
        await (await ctx.mount(made("p", body)).ready()).dispose()
    assert log == ["open", "unregister", "close"]


async def test_a_plugin_whose_own_task_crashes_fails(caplog: pytest.LogCaptureFixture) -> None:
    """It is unloaded, dependents first, and failed with that error; the kernel and all others go on."""
    log: list[str] = []
    crash = anyio.Event()

    async def work() -> None:
        await crash.wait()
        raise ValueError("lost connection")

    async def undo() -> None:
        await anyio.lowlevel.checkpoint()
        log.append("-p")

    async def body(ctx: Context) -> AsyncGenerator[None]:
        ctx.provide(Alpha())
        ctx.defer(undo)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            yield
            tasks.cancel_scope.cancel()

    async with kernel() as ctx:
        fiber = await ctx.mount(made("p", body)).ready()
        user = await ctx.mount(logged("user", log, needs=[Alpha])).ready()
        other = await ctx.mount(logged("other", [])).ready()
        crash.set()
        await comes_to(fiber, FiberState.FAILED)
        with pytest.raises(PluginFailedError) as caught:
            await fiber.ready()
        group = caught.value.__cause__
        assert isinstance(group, ExceptionGroup)
        assert str(group.exceptions[0]) == "lost connection"
        assert log == ["+user", "-user", "-p"]
        assert (user.state, other.state) == (FiberState.PENDING, FiberState.ACTIVE)
        crash = anyio.Event()
        assert (await fiber.update(None)).state is FiberState.ACTIVE
        await fiber.dispose()


async def body_cancelled_within(started: anyio.Event, scopes: list[anyio.CancelScope]) -> AsyncGenerator[None]:
    with anyio.CancelScope() as scope:
        scopes.append(scope)
        started.set()
        yield


async def test_a_plugin_that_cancels_its_own_scope_fails() -> None:
    """A plugin cannot be at rest in a scope that was cancelled; that is told, and nobody else is cancelled."""
    scopes: list[anyio.CancelScope] = []
    async with kernel() as ctx:
        fiber = await ctx.mount(made("p", lambda ctx: body_cancelled_within(anyio.Event(), scopes))).ready()
        scopes[0].cancel()
        await comes_to(fiber, FiberState.FAILED)
        with pytest.raises(PluginFailedError, match="a cancel scope that it holds open was cancelled"):
            await fiber.ready()


@pytest.mark.parametrize("sync", [True, False])
async def test_a_generator_that_never_yields(sync: bool) -> None:
    """It is no plugin, and is rolled back."""
    log: list[str] = []

    def never(ctx: Context) -> Generator[None]:
        ctx.defer(lambda: log.append("undone"))
        if log is None:
            yield

    async def never_async(ctx: Context) -> AsyncGenerator[None]:
        ctx.defer(lambda: log.append("undone"))
        if log is None:
            yield

    async with kernel() as ctx:
        fiber = ctx.mount(made("p", never if sync else never_async))
        with pytest.raises(InvalidPluginError, match="plugin p: never yields"):
            await fiber.ready()
        assert (log, fiber.state) == (["undone"], FiberState.FAILED)


@pytest.mark.parametrize("sync", [True, False])
async def test_a_generator_that_yields_twice(sync: bool) -> None:
    """It is closed where it yields again, and named in the group; all else is undone."""
    log: list[str] = []

    def twice(ctx: Context) -> Generator[None]:
        ctx.defer(lambda: log.append("undone"))
        try:
            yield
            yield
        finally:
            log.append("closed")

    async def twice_async(ctx: Context) -> AsyncGenerator[None]:
        ctx.defer(lambda: log.append("undone"))
        try:
            yield
            yield
        finally:
            log.append("closed")

    async with kernel() as ctx:
        fiber = await ctx.mount(made("p", twice if sync else twice_async)).ready()
        with pytest.raises(BaseExceptionGroup) as caught:
            await fiber.dispose()
        [error] = caught.value.exceptions
        assert isinstance(error, InvalidPluginError)
        assert "yields more than once" in str(error)
    assert log == ["undone", "closed"]


@pytest.mark.parametrize("sync", [True, False])
async def test_a_generator_that_raises_in_its_teardown(sync: bool) -> None:
    """The error comes in the group; what was registered is undone."""
    log: list[str] = []

    def bad(ctx: Context) -> Generator[None]:
        ctx.defer(lambda: log.append("undone"))
        yield
        raise ValueError("teardown")

    async def bad_async(ctx: Context) -> AsyncGenerator[None]:
        ctx.defer(lambda: log.append("undone"))
        yield
        raise ValueError("teardown")

    async with kernel() as ctx:
        fiber = await ctx.mount(made("p", bad if sync else bad_async)).ready()
        with pytest.raises(BaseExceptionGroup) as caught:
            await fiber.dispose()
        assert [str(error) for error in caught.value.exceptions] == ["teardown"]
    assert log == ["undone"]


@pytest.mark.parametrize("sync", [True, False])
async def test_a_generator_that_fails_in_its_set_up_has_no_teardown(sync: bool) -> None:
    """What stands behind the yield runs only if the yield was reached."""
    log: list[str] = []

    def bad(ctx: Context) -> Generator[None]:
        raise ValueError("set-up")
        yield
        log.append("teardown")

    async def bad_async(ctx: Context) -> AsyncGenerator[None]:
        raise ValueError("set-up")
        yield
        log.append("teardown")

    async with kernel() as ctx:
        fiber = ctx.mount(made("p", bad if sync else bad_async))
        with pytest.raises(PluginFailedError, match="ValueError: set-up"):
            await fiber.ready()
        await fiber.dispose()
    assert log == []


@pytest.mark.parametrize("form", ["plain", "async"])
async def test_a_plugin_that_gives_something_back(form: str) -> None:
    """There is nothing to do with it, so it is a mistake."""

    async def later() -> int:
        return 3

    async with kernel() as ctx:
        fiber = ctx.mount(made("p", lambda ctx: later() if form == "async" else 3))
        with pytest.raises(InvalidPluginError, match="gave back an int; give nothing, or yield once"):
            await fiber.ready()


# -- updating ----------------------------------------------------------------------------------------------------------


class Positive:
    """A config that checks itself."""

    def __init__(self, n: int) -> None:
        if n <= 0:
            raise ValueError("must be positive")
        self.n = n


async def test_an_update_loads_the_plugin_anew() -> None:
    """The old life ends before the new one begins, and children come again with it."""
    log: list[str] = []

    def body(ctx: Context, config: Positive) -> None:
        log.append(f"+{config.n}")
        ctx.mount(logged(f"child{config.n}", log))
        ctx.defer(lambda: log.append(f"-{config.n}"))

    async with kernel() as ctx:
        fiber = await ctx.mount(made("p", body, config=Positive), {"n": 1}).ready()
        await anyio.wait_all_tasks_blocked()
        assert await fiber.update({"n": 2}) is fiber
        await anyio.wait_all_tasks_blocked()
        assert isinstance(fiber.config, Positive)
        assert (fiber.state, fiber.config.n) == (FiberState.ACTIVE, 2)
        assert log == ["+1", "+child1", "-1", "-child1", "+2", "+child2"]


async def test_a_refused_update_changes_nothing() -> None:
    """The plugin goes on with its old config, now and when it is loaded anew for another reason."""
    log: list[int] = []
    async with kernel() as ctx:
        provider = await ctx.mount(logged("provider", [], provides=[Alpha])).ready()
        body = made("p", lambda ctx, alpha, config: log.append(config.n), needs=[Alpha], config=Positive)
        fiber = await ctx.mount(body, {"n": 1}).ready()
        with pytest.raises(InvalidPluginConfigError, match="must be positive"):
            await fiber.update({"n": -1})
        assert (fiber.state, log) == (FiberState.ACTIVE, [1])
        await provider.update(None)
        await fiber.ready()
        assert log == [1, 1]


async def test_a_config_that_is_changed_behind_the_kernel_s_back() -> None:
    """What was mounted with stays, though the caller, or the plugin, changes the dict that it came in."""
    given: dict[str, Any] = {"n": 1, "more": [1]}
    seen: list[object] = []

    def body(ctx: Context, alpha: Alpha, config: dict[str, Any]) -> None:
        seen.append({**config, "more": list(config["more"])})
        config["n"] = 3
        config["more"].append(2)

    async with kernel() as ctx:
        provider = await ctx.mount(logged("provider", [], provides=[Alpha])).ready()
        fiber = await ctx.mount(made("p", body, needs=[Alpha], config=dict), given).ready()
        given["n"] = 2
        given["more"].append(3)
        await provider.update(None)
        await fiber.ready()
    assert seen == [{"n": 1, "more": [1]}] * 2


async def test_the_config_is_validated_at_each_activation() -> None:
    """A config that does not fit makes the plugin fail when it would be loaded, not when it is mounted."""
    async with kernel() as ctx:
        fiber = await ctx.mount(made("p", lambda *given: None, needs=[Alpha], config=Positive), {"n": 0}).ready()
        assert fiber.state is FiberState.PENDING
        await ctx.mount(logged("provider", [], provides=[Alpha])).ready()
        with pytest.raises(InvalidPluginConfigError, match="plugin p has 1 fault"):
            await fiber.ready()
        assert fiber.state is FiberState.FAILED
        await fiber.update({"n": 1})
        assert fiber.state is FiberState.ACTIVE


async def test_an_update_while_pending_counts_when_it_loads() -> None:
    """A plugin that waits for a service takes the config that it was given last."""
    seen: list[int] = []
    async with kernel() as ctx:
        body = made("p", lambda ctx, alpha, config: seen.append(config.n), needs=[Alpha], config=Positive)
        fiber = await ctx.mount(body, {"n": 1}).ready()
        assert (await fiber.update({"n": 2})).state is FiberState.PENDING
        await ctx.mount(logged("provider", [], provides=[Alpha])).ready()
        await fiber.ready()
    assert seen == [2]


async def test_updates_while_loading_count_once() -> None:
    """Of several updates during one load, the last is what the plugin is loaded with next."""
    seen: list[int] = []
    started, go_on = anyio.Event(), anyio.Event()

    async def body(ctx: Context, config: Positive) -> None:
        seen.append(config.n)
        started.set()
        await go_on.wait()

    async with kernel() as ctx, anyio.create_task_group() as tasks:
        fiber = ctx.mount(made("p", body, config=Positive), {"n": 1})
        await started.wait()
        for n in (2, 3, 4):
            tasks.start_soon(fiber.update, {"n": n})
            await anyio.wait_all_tasks_blocked()
        go_on.set()
    assert seen == [1, 4]


async def test_a_disposed_plugin_is_not_updated() -> None:
    """It is gone for good; mount it again."""
    async with kernel() as ctx:
        fiber = await ctx.mount(logged("p", [])).ready()
        await fiber.dispose()
        with pytest.raises(InactiveContextError, match="mount it again"):
            await fiber.update(None)


# -- parents and children ----------------------------------------------------------------------------------------------


async def test_nothing_is_loaded_on_the_way_out() -> None:
    """What loses an optional service because everything goes is not loaded once more without it."""
    log: list[str] = []
    async with kernel() as ctx:
        user = ctx.mount(logged("user", log, wants=[Alpha]))
        await ctx.mount(logged("provider", log, provides=[Alpha])).ready()
        await user.ready()
        del log[:]
    assert log == ["-user", "-provider"]


async def test_children_go_with_their_parent_in_turn() -> None:
    """A child is undone in its place among the parent's registrations, and waited for."""
    log: list[str] = []

    async def undo() -> None:
        await anyio.lowlevel.checkpoint()
        log.append("-child")

    def parent(ctx: Context) -> None:
        ctx.defer(lambda: log.append("first"))
        ctx.mount(made("child", lambda ctx: ctx.defer(undo) and None))
        ctx.defer(lambda: log.append("second"))

    async with kernel() as ctx:
        fiber = await ctx.mount(made("parent", parent)).ready()
        await anyio.wait_all_tasks_blocked()
        await fiber.dispose()
        assert len(ctx.root.fibers) == 1
    assert log == ["second", "-child", "first"]


async def test_a_child_disposed_on_its_own_is_forgotten() -> None:
    """The parent does not undo it again, and holds nothing of it."""
    log: list[str] = []
    async with kernel() as ctx:
        contexts: list[Context] = []
        parent = await ctx.mount(made("parent", contexts.append)).ready()
        for _ in range(3):
            await (await contexts[0].mount(logged("child", log)).ready()).dispose()
        assert parent.children == ()
        await parent.dispose()
    assert log == ["+child", "-child"] * 3


async def test_a_parent_disposed_at_once_takes_children_that_never_ran() -> None:
    """A child mounted by a body that is then rolled back does not run, or is undone."""
    log: list[str] = []

    def parent(ctx: Context) -> None:
        ctx.mount(logged("child", log))
        raise ValueError

    async with kernel() as ctx:
        with suppress(PluginFailedError):
            await ctx.mount(made("parent", parent)).ready()
        assert log in ([], ["+child", "-child"])
        assert len(ctx.root.fibers) == 2


async def test_a_child_that_needs_what_its_parent_provides_is_loaded_after_it() -> None:
    """A provider serves its own children, too, only when it is active, and they go before it."""
    log: list[str] = []

    async def parent(ctx: Context) -> None:
        ctx.provide(Gamma())
        child = await ctx.mount(logged("child", log, needs=[Gamma])).ready()
        assert child.state is FiberState.PENDING
        log.append("parent")
        ctx.defer(lambda: log.append("-parent"))

    async with kernel() as ctx:
        await ctx.mount(made("parent", parent)).ready()
        await anyio.wait_all_tasks_blocked()
    assert log == ["parent", "+child", "-child", "-parent"]


def test_the_states_have_names() -> None:
    """A fiber tells its name and state."""
    assert [state.value for state in FiberState] == ["pending", "loading", "active", "failed", "unloading", "disposed"]


async def test_a_fiber_tells_what_it_is() -> None:
    """In logs and in the debugger."""

    @plugin(name="acme")
    def acme() -> None:
        return None

    async with kernel() as ctx:
        assert repr(await ctx.mount(acme).ready()) == "<PluginFiber acme: active>"
