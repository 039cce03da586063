"""Services: provided once, found by type, bound to whoever asks, seen while their provider is active."""

# Without `from __future__ import annotations`: the kernel reads the annotations of plugins made in functions.
from typing import Any

import anyio
import pytest
from tests.support.kernel import Alpha, Beta, held, kernel, logged, made

from foreword.errors import DuplicateServiceError, MissingServiceError, PluginFailedError
from foreword.kernel.context import Context
from foreword.kernel.fiber import FiberState
from foreword.kernel.services import Service

pytestmark = pytest.mark.anyio


class Desk(Service):
    """A service that acts for whoever uses it, and writes down for whom."""

    def __init__(self, log: list[str], ctx: Context | None = None) -> None:
        self.log, self.ctx = log, ctx

    def bind(self, ctx: Context) -> "Desk":
        return Desk(self.log, ctx)

    def take(self, what: str) -> None:
        """Take something, until the user goes."""
        assert self.ctx is not None
        name = f"{what} of {self.ctx.name} in {self.ctx.key.name}"
        self.log.append(f"+{name}")
        self.ctx.defer(lambda: self.log.append(f"-{name}"))


def desk(log: list[str]) -> Any:
    return made("desk", lambda ctx: ctx.provide(Desk(log)) and None)


async def test_a_service_acts_for_its_caller() -> None:
    """What is done through it belongs to the plugin that asked and stands in its scope; the provider owns nothing."""
    log: list[str] = []
    async with kernel() as ctx:
        provider = await ctx.mount(desk(log)).ready()
        user = made("user", lambda ctx, desk: desk.take("pen"), needs=[Desk])
        fiber = await ctx.scope("agent").mount(user).ready()
        assert log == ["+pen of user in agent"]
        await fiber.dispose()
        assert log == ["+pen of user in agent", "-pen of user in agent"]
        await provider.dispose()


async def test_a_service_looked_up_acts_for_its_caller() -> None:
    """`get` and `require` bind as parameters do; a scope's own context binds to the scope."""
    log: list[str] = []
    async with kernel() as ctx:
        await ctx.mount(desk(log)).ready()
        agent = ctx.scope("agent")
        agent.require(Desk).take("pen")
        found = ctx.get(Desk)
        assert found is not None
        found.take("ink")
        await agent.dispose()
        assert log == ["+pen of agent in agent", "+ink of root in global", "-pen of agent in agent"]


async def test_any_object_can_be_provided() -> None:
    """What is no `Service` is handed over as it is, under its own type or the one that is named."""
    seen: list[object] = []
    async with kernel() as ctx:
        ctx.provide(3)
        ctx.provide(True, key=object)
        assert (ctx.get(int), ctx.get(object), ctx.get(bool)) == (3, True, None)
        await ctx.mount(made("p", lambda ctx, number: seen.append(number), needs=[int])).ready()
    assert seen == [3]


async def test_the_second_provider_is_refused() -> None:
    """It is told who holds the place, fails, and finds it free when that one has gone."""
    async with kernel() as ctx:
        first = await ctx.mount(logged("first", [], provides=[Alpha])).ready()
        second = ctx.mount(logged("second", [], provides=[Beta, Alpha]))
        with pytest.raises(PluginFailedError) as caught:
            await second.ready()
        error = caught.value.__cause__
        assert isinstance(error, DuplicateServiceError)
        assert (error.service, error.plugin, error.holder) == ("Alpha", "second", "first")
        assert ctx.get(Beta) is None
        await first.dispose()
        await second.update(None)
        assert ctx.root.services.provided() == {Beta: second, Alpha: second}


async def test_a_service_is_seen_while_its_provider_is_active() -> None:
    """While it loads or unloads, the provider itself and its scopes see its service, and nobody else."""
    seen: dict[str, tuple[bool, bool, bool]] = {}
    async with kernel() as ctx:

        def look(when: str, own: Context) -> None:
            inner = own.scope("inner") if own.active else own
            seen[when] = tuple(each.get(Alpha) is not None for each in (own, inner, ctx))  # type: ignore[assignment]

        async def body(own: Context) -> None:
            look("before", own)
            own.provide(Alpha())
            look("loading", own)
            own.defer(lambda: look("unloading", own))

        fiber = await ctx.mount(made("p", body)).ready()
        look("active", fiber.ctx)
        await fiber.dispose()
        look("disposed", fiber.ctx)
    assert seen == {
        "before": (False, False, False),
        "loading": (True, True, False),
        "active": (True, True, True),
        "unloading": (True, True, False),
        "disposed": (False, False, False),
    }


async def test_a_service_of_a_failed_plugin_is_gone() -> None:
    """Nobody ever saw it."""

    def bad(ctx: Context) -> None:
        ctx.provide(Alpha())
        raise ValueError

    async with kernel() as ctx:
        user = await ctx.mount(logged("user", [], needs=[Alpha])).ready()
        with pytest.raises(PluginFailedError):
            await ctx.mount(made("bad", bad)).ready()
        assert (user.state, ctx.root.services.provided()) == (FiberState.PENDING, {})


async def test_a_service_withdrawn_by_hand() -> None:
    """Its users unload and wait; provided again, they load again; closing twice is closing once."""
    log: list[str] = []
    given: list[Any] = []

    def provider(ctx: Context) -> None:
        given.extend((ctx, ctx.provide(Alpha())))

    async with kernel() as ctx:
        await ctx.mount(made("provider", provider)).ready()
        user = await ctx.mount(logged("user", log, needs=[Alpha])).ready()
        given[1].close()
        given[1].close()
        assert ctx.get(Alpha) is None
        assert (await user.ready()).state is FiberState.PENDING
        given[0].provide(Alpha())
        assert (await user.ready()).state is FiberState.ACTIVE
    assert log == ["+user", "-user", "+user", "-user"]


async def test_a_service_of_the_root_and_of_a_scope() -> None:
    """They, too, unload their users before they go."""
    log: list[str] = []
    async with kernel() as ctx:
        agent = ctx.scope("agent")
        agent.provide(Alpha())
        agent.defer(lambda: log.append("-agent"))
        ctx.provide(Beta())
        ctx.defer(lambda: log.append("-root"))
        one = await ctx.mount(logged("one", log, needs=[Alpha])).ready()
        await ctx.mount(logged("two", log, needs=[Beta])).ready()
        await agent.dispose()
        assert one.state is FiberState.PENDING
    assert log == ["+one", "+two", "-one", "-agent", "-two", "-root"]


async def test_dependents_unload_before_their_provider_unwinds() -> None:
    """All of them, their async undos and their own dependents included, before the first undo of the provider."""
    log: list[str] = []

    async def slowly(name: str) -> None:
        await anyio.lowlevel.checkpoint()
        log.append(name)

    def provider(ctx: Context) -> None:
        ctx.defer(lambda: log.append("-provider first"))
        ctx.provide(Alpha())
        ctx.defer(lambda: log.append("-provider last"))

    def user(name: str) -> Any:
        def body(ctx: Context, alpha: Alpha) -> None:
            ctx.defer(lambda: slowly(f"-{name}"))
            if name == "b":
                ctx.provide(Beta())

        return made(name, body, needs=[Alpha])

    async with kernel() as ctx:
        fiber = await ctx.mount(made("provider", provider)).ready()
        for name in "abc":
            await ctx.mount(user(name)).ready()
        await ctx.mount(made("d", lambda ctx, beta: ctx.defer(lambda: slowly("-d")) and None, needs=[Beta])).ready()
        await fiber.dispose()
        assert log[4:] == ["-provider last", "-provider first"]
        assert sorted(log[:4]) == ["-a", "-b", "-c", "-d"]
        assert log.index("-d") < log.index("-b")


@pytest.mark.parametrize("key", ["A", 5, list[int], []], ids=repr)
async def test_a_service_is_found_by_a_class(key: Any) -> None:
    """Any other key is refused, and named with whoever gave it."""

    def provides(ctx: Context) -> None:
        for call in (ctx.get, ctx.require, lambda key: ctx.provide(5, key=key)):
            with pytest.raises(TypeError, match=r"provides names a service by .*, which is no class"):
                call(key)

    async with kernel() as ctx:
        await ctx.mount(provides).ready()


async def test_a_service_outlives_the_look_up_of_no_one() -> None:
    """After its provider has gone, requiring it names nothing that is gone."""
    async with kernel() as ctx:
        before = held(ctx)
        fiber = await ctx.mount(logged("p", [], provides=[Alpha, Beta])).ready()
        await fiber.dispose()
        with pytest.raises(MissingServiceError, match="provided now: nothing"):
            ctx.require(Alpha)
        assert held(ctx) == before
