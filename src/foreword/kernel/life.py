"""One life of a loaded plugin: set-up, a rest, and every undo, all in one task of its own.

What a plugin opens (a task group, a cancel scope, a connection) must be closed by the task that opened it, and in the
order in which it nests. So a whole life runs in one task, under one cancel scope whose deadline moves from phase to
phase. The fiber's own task stays outside, and is not hurt when what the plugin holds open is torn down.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from foreword.errors import InvalidPluginError, PluginTimeoutError, with_article

if TYPE_CHECKING:
    from foreword.kernel.effects import Owner, Undo

__all__ = ["AFTER_SET_UP", "SET_UP", "Life", "Unwind", "run_undo", "when_it_failed"]

SET_UP: Final = "set-up"
AFTER_SET_UP: Final = "after set-up"  # while it was active: a task that it had started failed


def when_it_failed(phase: str) -> str:
    """A phase as a sentence tells it: in set-up, after set-up."""
    return phase if phase == AFTER_SET_UP else f"in {phase}"


Body: TypeAlias = Generator[Any, Any, Any] | AsyncGenerator[Any, Any]
Unwind: TypeAlias = "Callable[[Callable[[Undo], Awaitable[None]]], Awaitable[None]]"
"""Runs every undo of an owner, by the function it is given, and keeps what they raise."""


class Life:
    """One life of a loaded plugin.

    Attributes:
        up: is set when set-up has ended, well or not.
        leave: to be set when the plugin is to go; its undos then run.
        over: is set when they have run.
        torn: a scope that the plugin holds open was cancelled while it was at rest, so it must go.
        error: why set-up failed, or what tore it.
    """

    def __init__(
        self, owner: Owner, setup_timeout: float | None, teardown_timeout: float | None, wake: Callable[[], None]
    ) -> None:
        import anyio

        self.up, self.leave, self.over = anyio.Event(), anyio.Event(), anyio.Event()
        self.torn = False
        self.error: BaseException | None = None
        self._owner = owner
        self._setup_timeout, self._teardown_timeout = setup_timeout, teardown_timeout
        self._seconds = setup_timeout  # of the phase that it is in
        self._wake = wake  # tells that it was torn
        self._limit = anyio.CancelScope(shield=True)  # around all that the plugin does
        self._body: Body | None = None  # of a generator plugin that has reached its yield
        self._torn_by: BaseException | None = None

    @property
    def failed_in(self) -> str:
        """The phase in which it failed, as a `Guard` is told it."""
        return AFTER_SET_UP if self.torn else SET_UP

    def hurry(self) -> None:
        """Somebody waits for the plugin to go: a set-up under way has no more time than a teardown."""
        import anyio

        seconds = self._teardown_timeout
        if seconds is None or self.up.is_set():
            return
        self._setup_timeout = seconds if self._setup_timeout is None else min(seconds, self._setup_timeout)
        deadline = anyio.current_time() + seconds
        if deadline < self._limit.deadline:  # it has begun
            self._limit.deadline, self._seconds = deadline, seconds

    async def run(self, call: Callable[[], object], unwind: Unwind) -> None:
        """Live. `call` calls the plugin; what it gives is judged here."""
        with self._limit:
            try:
                await self._in_time(SET_UP, self._setup_timeout, lambda: self._set_up(call))
            except BaseException as error:  # a plugin is somebody else's code; whatever it raises, it is rolled back
                self.error = error
            self.up.set()
            await self._rest()
            await unwind(self._undo)
        self.over.set()

    async def _set_up(self, call: Callable[[], object]) -> None:
        result = call()
        if isinstance(result, (Generator, AsyncGenerator)):
            # entered before all that it registers, so left after it: what it opened is there while others may ask
            self._owner.add(self._leave)
            body: Body = result  # pyright: ignore[reportUnknownVariableType]
            if not await _resumed(body):
                why = "never yields; a plugin yields once, between set-up and teardown"
                raise InvalidPluginError(self._owner.name, why)
            self._body = body
            return
        given: object = await result if inspect.isawaitable(result) else result
        if given is not None:
            why = f"gave back {with_article(type(given).__name__)}; give nothing, or yield once"
            raise InvalidPluginError(self._owner.name, why)

    async def _rest(self) -> None:
        """Wait until the plugin is to go."""
        import anyio

        try:
            await self.leave.wait()
        except anyio.get_cancelled_exc_class() as cancelled:
            if self.error is None:
                self.torn, self._torn_by = True, cancelled
                self.error = RuntimeError("a cancel scope that it holds open was cancelled")
                self._wake()
            with anyio.CancelScope(shield=True):
                await self.leave.wait()

    async def _undo(self, undo: Undo) -> None:
        # Where a generator rests inside what it holds open, the other undos must not be hurt by that; where there is
        # none, an undo may be what closes what set-up opened.
        if undo == self._leave or (self._body is None and not self._limit.cancel_called):
            await self._in_time("teardown", self._teardown_timeout, undo)
        else:
            await run_undo(self._owner.name, undo, self._teardown_timeout)

    async def _leave(self) -> None:
        """Run the teardown of a generator plugin."""
        import anyio

        body, self._body = self._body, None
        if body is None:
            return
        try:
            again = await _resumed(body, self._torn_by)
        except anyio.get_cancelled_exc_class():
            if self._limit.cancel_called or not self.torn:
                raise
            return  # it came out as it went in: there is no more to say
        except BaseException as error:
            if not self.torn:
                raise
            self.error = error  # what a task of the plugin's raised, not its teardown
            return
        if again:
            await _close(body)
            raise InvalidPluginError(self._owner.name, "yields more than once; a plugin yields once")

    async def _in_time(self, phase: str, seconds: float | None, work: Callable[[], object]) -> None:
        """Do the work of a phase.

        Raises:
            PluginTimeoutError: its time is over.
        """
        import anyio

        self._seconds = seconds
        self._limit.deadline = float("inf") if seconds is None else anyio.current_time() + seconds
        try:
            result = work()
            if inspect.isawaitable(result):
                await result
        except anyio.get_cancelled_exc_class() as cancelled:
            if self._limit.cancel_called:
                raise PluginTimeoutError(self._owner.name, phase, self._seconds or 0) from cancelled
            raise _cancelled_inside(self._owner.name, phase) from cancelled
        finally:
            self._limit.deadline = float("inf")


async def run_undo(name: str, undo: Undo, seconds: float | None) -> None:
    """Run an undo that closes nothing that was opened around it.

    Raises:
        PluginTimeoutError: its time is over; it was cancelled.
    """
    import anyio

    result = undo()
    if not inspect.isawaitable(result):
        return
    with anyio.move_on_after(seconds, shield=True) as scope:
        try:
            await result
        except anyio.get_cancelled_exc_class() as cancelled:
            if scope.cancel_called:
                raise
            raise _cancelled_inside(name, "teardown") from cancelled
    if scope.cancelled_caught:
        raise PluginTimeoutError(name, "teardown", seconds or 0)


def _cancelled_inside(name: str, phase: str) -> RuntimeError:
    return RuntimeError(f"the {phase} of plugin {name} was cancelled by something that it awaits")


async def _resumed(body: Body, thrown: BaseException | None = None) -> bool:
    """Let a generator go on to its next yield; False at its end."""
    try:
        if isinstance(body, AsyncGenerator):
            await (anext(body) if thrown is None else body.athrow(thrown))
        elif thrown is None:
            next(body)
        else:
            body.throw(thrown)
    except (StopIteration, StopAsyncIteration):
        return False
    return True


async def _close(body: Body) -> None:
    if isinstance(body, AsyncGenerator):
        await body.aclose()
    else:
        body.close()
