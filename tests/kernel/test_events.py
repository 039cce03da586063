"""Events: their modes, who hears what, snapshots, and what becomes of errors."""

# Without `from __future__ import annotations`: the kernel reads the annotations of plugins made in functions.
import functools
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel import held, kernel, made

from foreword import ScopeKey
from foreword.errors import EmptyNameError, EventModeError, InvalidOptionError
from foreword.kernel.context import Context
from foreword.kernel.events import Event, Mode

pytestmark = pytest.mark.anyio

LONG = 20.0


def told(what: str) -> None:
    """Something was told."""


async def asked(what: str) -> object:
    """Something is asked."""


async def around(what: str, call_next: Callable[[], Awaitable[str]]) -> str:
    """Something is worked out."""
    raise NotImplementedError


def about(scope: ScopeKey | None) -> None:
    """Something happened in a scope."""


TOLD = Event("test/told", Mode.EMIT, told)
LOGGED = Event("test/logged", Mode.EMIT, told, on_error="log")
TOGETHER = Event("test/together", Mode.PARALLEL, asked)
IN_TURN = Event("test/in-turn", Mode.SERIAL, asked)
AROUND = Event("test/around", Mode.WATERFALL, around)
SCOPED = Event("test/scoped", Mode.EMIT, about, subject=lambda scope: scope)


@pytest.mark.parametrize("name", ["", 5, "\ud800"], ids=ascii)
def test_an_event_has_a_name_that_can_be_shown(name: Any) -> None:
    """Its name stands in errors and in the catalog."""
    with pytest.raises(EmptyNameError, match="the name of an event must be a non-empty string"):
        Event(name, Mode.EMIT, told)


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"mode": "emit"}, "mode='emit'; give a Mode"),
        ({"signature": 5}, "signature=5; give a function"),
        ({"subject": "scope"}, "subject='scope'; give a function"),
        ({"on_error": "ignore"}, 'on_error=\'ignore\'; give "raise" or "log"'),
        ({"on_error": []}, r"on_error=\[\]; give"),
    ],
    ids=str,
)
def test_an_event_that_cannot_be_is_refused_where_it_is_declared(given: dict[str, Any], hint: str) -> None:
    """The field is named, and what it must be."""
    with pytest.raises(EventModeError, match=f"event test/x is declared with {hint}"):
        Event("test/x", **{"mode": Mode.EMIT, "signature": told, **given})


async def dispatch(ctx: Context, event: Event[..., Any], what: str = "x") -> Any:
    """Dispatch an event as its mode asks."""
    if event.mode is Mode.EMIT:
        return ctx.emit(event, what)
    if event.mode is Mode.PARALLEL:
        return await ctx.parallel(event, what)
    if event.mode is Mode.SERIAL:
        return await ctx.serial(event, what)

    async def default() -> str:
        return what

    return await ctx.waterfall(event, what, default=default)


def noting(event: Event[..., Any], log: list[str], name: str, then: Callable[[], object] = lambda: None) -> Any:
    """A listener that fits the event's mode, notes its name, and calls on."""

    def plain(what: str) -> None:
        log.append(name)
        then()

    async def later(what: str) -> None:
        plain(what)

    async def outer(what: str, call_next: Callable[[], Awaitable[str]]) -> str:
        plain(what)
        return f"{name}({await call_next()})"

    return {Mode.EMIT: plain, Mode.WATERFALL: outer}.get(event.mode, later)


ALL = [TOLD, TOGETHER, IN_TURN, AROUND]
each_mode = pytest.mark.parametrize("event", ALL, ids=lambda event: event.mode.value)


@each_mode
async def test_nobody_listens(event: Event[..., Any]) -> None:
    """Then nothing comes of it; a waterfall gives its default."""
    async with kernel() as ctx:
        assert await dispatch(ctx, event) == ("x" if event is AROUND else None)


@pytest.mark.parametrize("event", [TOLD, IN_TURN, AROUND], ids=lambda event: event.mode.value)
async def test_listeners_run_in_the_order_they_came_in(event: Event[..., Any]) -> None:
    """Across all plugins; those that are prepended before all others, the last of them first."""
    log: list[str] = []
    async with kernel() as ctx:
        await ctx.mount(made("p", lambda ctx: ctx.on(event, noting(event, log, "a")) and None)).ready()
        ctx.on(event, noting(event, log, "b"))
        ctx.on(event, noting(event, log, "p1"), prepend=True)
        ctx.on(event, noting(event, log, "p2"), prepend=True)
        await dispatch(ctx, event)
    assert log == ["p2", "p1", "a", "b"]


@each_mode
async def test_a_dispatch_is_a_snapshot(event: Event[..., Any]) -> None:
    """Listeners that come during a dispatch do not hear it; those that go still do."""
    log: list[str] = []
    async with kernel() as ctx:
        late: list[Any] = []

        def change() -> None:
            if not late:
                late.append(ctx.on(event, noting(event, log, "late")))
                last.close()

        ctx.on(event, noting(event, log, "first", change))
        last = ctx.on(event, noting(event, log, "last", change))
        await dispatch(ctx, event)
        assert sorted(log) == ["first", "last"]
        del log[:]
        await dispatch(ctx, event)
        assert sorted(log) == ["first", "late"]


@each_mode
async def test_one_function_may_listen_twice(event: Event[..., Any]) -> None:
    """Each registration is its own, and is undone on its own."""
    log: list[str] = []
    async with kernel() as ctx:
        listener = noting(event, log, "x")
        first = ctx.on(event, listener)
        ctx.on(event, listener)
        await dispatch(ctx, event)
        first.close()
        first.close()
        await dispatch(ctx, event)
    assert log == ["x"] * 3


@each_mode
async def test_listeners_go_with_their_plugin(event: Event[..., Any]) -> None:
    """None is left, and a reload brings one, not two."""
    log: list[str] = []
    async with kernel() as ctx:
        before = held(ctx)
        fiber = await ctx.mount(made("p", lambda ctx: ctx.on(event, noting(event, log, "x")) and None)).ready()
        await fiber.update(None)
        await dispatch(ctx, event)
        await fiber.dispose()
        await dispatch(ctx, event)
        assert (log, held(ctx)) == (["x"], before)


@each_mode
async def test_an_event_is_dispatched_in_its_mode(event: Event[..., Any]) -> None:
    """Any other way is refused with both modes, by that very error, whether somebody listens or not."""

    async def default() -> str:
        return ""

    async with kernel() as ctx:
        ways: dict[Mode, Callable[[], Any]] = {
            Mode.EMIT: lambda: ctx.emit(event, "x"),
            Mode.PARALLEL: lambda: ctx.parallel(event, "x"),
            Mode.SERIAL: lambda: ctx.serial(event, "x"),
            Mode.WATERFALL: lambda: ctx.waterfall(event, "x", default=default),
        }
        del ways[event.mode]
        for mode, call in ways.items():
            with pytest.raises(EventModeError, match=rf"{event.name} .*{event.mode.value}.*{mode.value}"):
                await call()


class AsyncCall:
    async def __call__(self, what: str) -> None:
        return None


async def later(what: str) -> None:
    return None


@pytest.mark.parametrize(
    "listener", [later, functools.partial(later), AsyncCall()], ids=["function", "partial", "object"]
)
async def test_an_async_listener_of_an_emitted_event_is_refused(listener: Any) -> None:
    """It would never be awaited."""
    async with kernel() as ctx:
        with pytest.raises(EventModeError, match="test/told is emitted to plain functions, and the listener is async"):
            ctx.on(TOLD, listener)
        with pytest.raises(EventModeError):
            ctx.on(TOLD)(listener)
        assert held(ctx).listeners == 0


@pytest.mark.parametrize("event", [TOGETHER, IN_TURN, AROUND], ids=lambda event: event.mode.value)
async def test_a_plain_listener_of_an_awaited_event_is_named(event: Event[..., Any]) -> None:
    """Nothing could be awaited; the error says whose it is."""

    def plain(*told: object) -> None:
        return None

    async with kernel() as ctx:
        await ctx.mount(made("acme", lambda ctx: ctx.on(event, plain) and None)).ready()
        expected = EventModeError if event is not TOGETHER else ExceptionGroup
        with pytest.raises(expected) as caught:
            await dispatch(ctx, event)
        error = caught.value.exceptions[0] if isinstance(caught.value, ExceptionGroup) else caught.value
        assert "told to async functions, and listener" in str(error)
        assert "plain" in str(error)
        assert "of acme" in str(error)


@pytest.mark.parametrize("listener", [3, "print", object()], ids=["int", "str", "object"])
async def test_what_cannot_be_called_does_not_listen(listener: Any) -> None:
    """It is refused where it is registered, and not by every event after."""
    async with kernel() as ctx:
        agent = ctx.scope("agent")
        for register in (lambda: agent.on(TOGETHER, listener), lambda: agent.on(TOGETHER)(listener)):
            with pytest.raises(
                InvalidOptionError, match=r"of agent in scope agent .*must be a function, not an? "
            ) as caught:
                register()
            assert caught.value.option == "listener"
            assert "test_events.py:" in str(caught.value)
        assert held(ctx).listeners == 0


@pytest.mark.parametrize("event", ["test/told", 3, None, told], ids=["name", "int", "None", "signature"])
async def test_only_a_declared_event_is_heard_and_told(event: Any) -> None:
    """Its name, say, is none: who gives that is told to give the event itself."""
    async with kernel() as ctx:
        calls: list[Callable[[], object]] = [
            lambda: ctx.on(event, print),
            lambda: ctx.on(event),
            lambda: ctx.emit(event, "x"),
            lambda: ctx.parallel(event, "x"),
            lambda: ctx.serial(event, "x"),
            lambda: ctx.waterfall(event, "x", default=functools.partial(asked, "x")),
        ]
        for call in calls:
            with pytest.raises(EventModeError, match="is not declared; give the declared Event itself"):
                await call()  # type: ignore[misc]
        assert held(ctx).listeners == 0


async def test_on_is_a_decorator() -> None:
    """It gives the function back unchanged."""
    log: list[str] = []
    async with kernel() as ctx:

        @ctx.on(TOLD)
        def one(what: str) -> None:
            log.append(f"one {what}")

        @ctx.on(TOLD, prepend=True)
        def two(what: str) -> None:
            log.append(f"two {what}")

        ctx.emit(TOLD, "x")
        one("y")
    assert log == ["two x", "one x", "one y"]


# -- emit --------------------------------------------------------------------------------------------------------------


async def test_emit_tells_everybody_before_it_raises() -> None:
    """The first error comes out, later ones noted on it; no listener is left untold."""
    log: list[str] = []

    def fail(what: str) -> None:
        log.append(what)
        raise ValueError(f"number {len(log)}")

    async with kernel() as ctx:
        ctx.on(TOLD, fail)
        ctx.on(TOLD, fail)
        ctx.on(TOLD, log.append)
        with pytest.raises(ValueError, match="number 1") as caught:
            ctx.emit(TOLD, "x")
        assert "number 2" in " ".join(caught.value.__notes__)
        assert log == ["x", "x", "x"]


async def test_an_event_whose_errors_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever emits it hears nothing of them."""

    def fail(what: str) -> None:
        raise ValueError(what)

    async with kernel() as ctx:
        ctx.on(LOGGED, fail)
        ctx.emit(LOGGED, "x")
    assert [record.message for record in caplog.records] == ["a listener of test/logged failed"]


# -- parallel ----------------------------------------------------------------------------------------------------------


async def test_parallel_listeners_run_together() -> None:
    """Each may wait for another."""
    async with kernel() as ctx:
        met = [anyio.Event(), anyio.Event()]

        def meeting(at: int) -> Callable[[str], Awaitable[None]]:
            async def meet(what: str) -> None:
                met[at].set()
                await met[1 - at].wait()

            return meet

        ctx.on(TOGETHER, meeting(0))
        ctx.on(TOGETHER, meeting(1))
        with anyio.fail_after(LONG):
            await ctx.parallel(TOGETHER, "x")


async def test_parallel_gives_all_errors() -> None:
    """As one group, also a single one, when all have ended."""
    log: list[str] = []

    async def fail(what: str) -> None:
        raise ValueError(what)

    async def slow(what: str) -> None:
        await anyio.sleep(0.01)
        log.append(what)

    async with kernel() as ctx:
        ctx.on(TOGETHER, fail)
        ctx.on(TOGETHER, slow)
        with pytest.raises(ExceptionGroup, match="listeners of test/together failed") as caught:
            await ctx.parallel(TOGETHER, "x")
        assert [str(error) for error in caught.value.exceptions] == ["x"]
        assert log == ["x"]


async def test_a_subject_that_raises_is_no_group() -> None:
    """What is wrong with the dispatch itself comes out as it is."""

    def subject(what: str) -> ScopeKey:
        raise LookupError(what)

    event = Event("test/odd", Mode.PARALLEL, asked, subject=subject)
    async with kernel() as ctx:
        with pytest.raises(LookupError):
            await ctx.parallel(event, "x")


# -- serial ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [0, "", 0.0, [], "yes", True], ids=repr)
async def test_the_first_answer_ends_a_serial_event(answer: object) -> None:
    """Everything but None and False is one, zero and the empty text too."""
    log: list[str] = []

    async def answering(what: str, given: object, name: str) -> object:
        log.append(name)
        return given

    async with kernel() as ctx:
        for name, given_answer in (("none", None), ("false", False), ("this", answer), ("later", "late")):
            ctx.on(IN_TURN, functools.partial(answering, given=given_answer, name=name))
        result = await ctx.serial(IN_TURN, "x")
        assert (result, type(result)) == (answer, type(answer))
    assert log == ["none", "false", "this"]


async def test_no_answer_is_none() -> None:
    """If all say None or False, there is no answer."""

    async def no(what: str) -> object:
        return False

    async with kernel() as ctx:
        ctx.on(IN_TURN, no)
        assert await ctx.serial(IN_TURN, "x") is None


async def test_an_error_ends_a_serial_event() -> None:
    """It comes out as it is, and nobody further is asked."""
    log: list[str] = []

    async def fail(what: str) -> object:
        raise ValueError(what)

    async with kernel() as ctx:
        ctx.on(IN_TURN, fail)
        ctx.on(IN_TURN, noting(IN_TURN, log, "later"))
        with pytest.raises(ValueError, match=r"^x$"):
            await ctx.serial(IN_TURN, "x")
    assert log == []


# -- waterfall ---------------------------------------------------------------------------------------------------------


async def test_a_waterfall_goes_around_its_default() -> None:
    """The first listener is outermost, and the results come back in the mirrored order."""
    log: list[str] = []
    async with kernel() as ctx:
        for name in "ab":
            ctx.on(AROUND, noting(AROUND, log, name))
        ctx.on(AROUND, noting(AROUND, log, "p"), prepend=True)
        assert await dispatch(ctx, AROUND, "x") == "p(a(b(x)))"


async def test_a_listener_may_veto() -> None:
    """Without a call to the next, the inner ones and the default are skipped; the outer ones see the replacement."""
    log: list[str] = []

    async def veto(what: str, call_next: Callable[[], Awaitable[str]]) -> str:
        return "no"

    async with kernel() as ctx:
        ctx.on(AROUND, noting(AROUND, log, "a"))
        ctx.on(AROUND, veto)
        ctx.on(AROUND, noting(AROUND, log, "b"))
        assert await dispatch(ctx, AROUND) == "a(no)"
    assert log == ["a"]


async def test_calling_on_twice_is_refused() -> None:
    """The listener is named; what stands further in ran once."""
    log: list[str] = []

    async def twice(what: str, call_next: Callable[[], Awaitable[str]]) -> str:
        await call_next()
        return await call_next()

    async with kernel() as ctx:
        await ctx.mount(made("acme", lambda ctx: ctx.on(AROUND, twice) and None)).ready()
        ctx.on(AROUND, noting(AROUND, log, "inner"))
        with pytest.raises(EventModeError, match=r"call_next\(\) called twice by listener .*twice.* of acme"):
            await dispatch(ctx, AROUND)
    assert log == ["inner"]


async def test_an_outer_listener_may_catch() -> None:
    """An error goes outwards through `call_next`."""

    async def catch(what: str, call_next: Callable[[], Awaitable[str]]) -> str:
        try:
            return await call_next()
        except ValueError as error:
            return f"caught {error}"

    async def fail(what: str, call_next: Callable[[], Awaitable[str]]) -> str:
        raise ValueError("inner")

    async with kernel() as ctx:
        ctx.on(AROUND, catch)
        ctx.on(AROUND, fail)
        assert await dispatch(ctx, AROUND) == "caught inner"


# -- subjects ----------------------------------------------------------------------------------------------------------


async def test_who_hears_what_is_about_a_scope() -> None:
    """Those in it, in the scopes around it, and in none; of None only these last; without a subject everybody."""
    log: list[str] = []
    async with kernel() as ctx:
        outer = ctx.scope("outer")
        inner = ctx.scope("inner", parent=outer)
        sibling = ctx.scope("sibling", parent=outer)
        for each in (ctx, outer, inner, sibling):
            name = each.key.name

            def hear(scope: ScopeKey | None, name: str = name) -> None:
                log.append(name)

            def hear_all(what: str, name: str = name) -> None:
                log.append(name)

            each.on(SCOPED, hear)
            each.on(TOLD, hear_all)

        def heard(scope: ScopeKey | None) -> list[str]:
            del log[:]
            inner.emit(SCOPED, scope)  # who emits does not matter
            return log[:]

        assert heard(inner.key) == ["global", "outer", "inner"]
        assert heard(outer.key) == ["global", "outer"]
        assert heard(sibling.key) == ["global", "outer", "sibling"]
        assert heard(ScopeKey("elsewhere")) == ["global"]
        assert heard(None) == ["global"]
        del log[:]
        ctx.emit(TOLD, "x")
        assert log == ["global", "outer", "inner", "sibling"]


async def test_a_scope_that_moves_hears_elsewhere_at_once() -> None:
    """Who hears is worked out when an event begins."""
    log: list[str] = []
    async with kernel() as ctx:
        one, other = ctx.scope("one"), ctx.scope("other")
        agent = ctx.scope("agent", parent=one)
        one.on(SCOPED, lambda scope: log.append("one"))
        other.on(SCOPED, lambda scope: log.append("other"))
        ctx.emit(SCOPED, agent.key)
        assert agent.binding is not None
        agent.binding.rebind(other)
        ctx.emit(SCOPED, agent.key)
    assert log == ["one", "other"]


async def test_a_plugin_in_a_scope_hears_for_that_scope() -> None:
    """A plugin listens where it was mounted."""
    log: list[object] = []
    async with kernel() as ctx:
        agent, other = ctx.scope("agent"), ctx.scope("other")
        await agent.mount(made("p", lambda ctx: ctx.on(SCOPED, log.append) and None)).ready()
        for key in (agent.key, other.key, None):
            ctx.emit(SCOPED, key)
        assert log == [agent.key]


@given(plan=st.lists(st.tuples(st.booleans(), st.none() | st.integers(0, 9)), max_size=12))
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_order_is_that_of_a_list(plan: list[tuple[bool, int | None]]) -> None:
    """Adding behind, adding in front and removing, in any order: who hears, hears as a plain list would have it."""
    async with kernel() as ctx:
        model: list[int] = []
        log: list[int] = []
        added: dict[int, Any] = {}
        for number, (prepend, gone) in enumerate(plan):
            if gone in model:
                added[gone].close()
                model.remove(gone)

            def hear(what: str, number: int = number) -> None:
                log.append(number)

            added[number] = ctx.on(TOLD, hear, prepend=prepend)
            model.insert(0 if prepend else len(model), number)
        ctx.emit(TOLD, "x")
        assert log == model


def test_an_event_tells_what_it_is() -> None:
    """Its signature's docstring is its documentation."""
    assert (TOLD.doc, TOLD.mode.value) == ("Something was told.", "emit")
    assert Event("test/bare", Mode.EMIT, lambda: None).doc == ""
