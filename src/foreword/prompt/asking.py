"""Asking async providers: together, each within its timeout, on asyncio or trio. The only module with an event loop.

A provider with a ``timeout`` runs in a task of its own, outside the assembly's task group: a task group waits for its
tasks, and one that swallows its cancellation would hold up the assembly for good. Past its timeout such a task is
cancelled; if it has not gone `GRACE` seconds later it is left behind, and listed in ``SystemPrompt.stuck`` until it
ends. What it says then counts for nothing. Cancellation and exits are nobody's failure: they stop the siblings and
propagate.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext, suppress
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from foreword.errors import ProviderTimeoutError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractContextManager

    from foreword.prompt.collect import Question


__all__ = ["GRACE", "ask_in_time", "ask_together", "run_loop", "running_loop"]

T = TypeVar("T")

GRACE: Final = 0.1
"""Seconds that a provider has to go after it was cancelled."""


async def ask_together(questions: list[Question]) -> None:
    """Ask all, and come back when each has answered, failed, or run out of time.

    Args:
        questions: what to ask; each gets its answer or its error.

    Raises:
        BaseException: a cancellation or an exit that a provider raised; the other providers are cancelled first.
    """
    if len(questions) == 1 and questions[0].entry.timeout is None:
        await _ask(questions[0])
    else:
        await _ask_in_group(questions)


async def _ask(question: Question) -> None:
    start = perf_counter()
    try:
        question.answer = await question.ask()
    except Exception as error:  # a provider is somebody else's code; collect tells all failures together
        question.error = error
    finally:
        question.seconds = perf_counter() - start


async def _ask_in_group(questions: list[Question]) -> None:
    import anyio

    cancellation = anyio.get_cancelled_exc_class()
    stops: list[BaseException] = []  # taken out of the group by hand, so that they stay what they are

    async def ask(question: Question) -> None:
        try:
            if question.entry.timeout is None:
                await _ask(question)
            else:
                await ask_in_time(question, question.entry.timeout)
        except BaseException as stop:
            if not (isinstance(stop, cancellation) and group.cancel_scope.cancel_called):
                stops.append(stop)
                group.cancel_scope.cancel()
            if isinstance(stop, cancellation):
                raise

    try:
        async with anyio.create_task_group() as group:
            for question in questions:
                group.start_soon(ask, question)
    finally:
        for stop in stops:
            if not isinstance(stop, cancellation):
                raise stop  # an exit, also from a provider that was told to go: it outdoes the cancellation
    if stops:
        raise stops[0]


async def ask_in_time(question: Question, timeout: float, tell: Callable[[], object] | None = None) -> None:
    """Ask in a task of its own, for at most some seconds. When this ends, that task has ended, or was left behind.

    Args:
        question: what to ask; gets its answer or its error.
        timeout: seconds.
        tell: called when the task is cancelled, for what a cancellation does not reach, such as a thread; must be quick
            and must not raise.

    Raises:
        BaseException: a cancellation or an exit that the provider raised.
    """
    import anyio

    attempt = question.again()  # the task writes here: what comes too late changes nothing
    running = question.running
    ended = anyio.Event()

    def end() -> None:
        running.ended(attempt)
        ended.set()

    start = perf_counter()
    cancel = attempt.task = _spawn(attempt, partial(running.is_stuck, attempt), end)
    cancelled_after: float | None = None
    try:
        with anyio.move_on_after(timeout):
            await ended.wait()
    finally:
        if not ended.is_set():
            cancelled_after = perf_counter() - start
            cancel()
            try:
                if tell is not None:
                    tell()
                with anyio.move_on_after(GRACE, shield=True):
                    await ended.wait()
            finally:
                if not ended.is_set():
                    running.leave(attempt)
        stop = attempt.stop
        if stop is not None and (cancelled_after is None or not isinstance(stop, anyio.get_cancelled_exc_class())):
            raise stop
    question.seconds = attempt.seconds if ended.is_set() else perf_counter() - start
    gone = ended.is_set() and not running.is_stuck(attempt)
    too_late = _why_too_late(attempt, timeout, cancelled_after, gone=gone)
    if too_late is None:
        question.answer, question.error = attempt.answer, attempt.error
    else:
        question.error = ProviderTimeoutError(timeout, too_late)


def _why_too_late(attempt: Question, timeout: float, cancelled_after: float | None, *, gone: bool) -> str | None:
    """Why a provider is late; None if it is not. Its own time says so, not which of two events the loop saw first."""
    if not gone:
        return f"it did not go within {GRACE * 1000:g} ms of being cancelled and was left running"
    if cancelled_after is None:
        seconds, how = attempt.seconds, "came back"
        if seconds <= timeout:
            return None
    else:
        seconds, how = cancelled_after, "was cancelled"
        if seconds <= timeout + GRACE:
            return "it was cancelled"
    return f"it {how} after {seconds:.3g} s; something blocked the event loop"


async def _attempt(question: Question, scope: AbstractContextManager[object], abandoned: Callable[[], bool]) -> None:
    try:
        with scope:
            await _ask(question)
    except Exception as error:  # what a provider's own task group left of a cancellation
        question.error = error
    except BaseException as stop:
        question.stop = stop
        if abandoned():
            raise  # nobody waits for it any more, and an exit must not be lost: it goes to the event loop


def _spawn(question: Question, abandoned: Callable[[], bool], end: Callable[[], None]) -> Callable[[], object]:
    """Ask in a task that belongs to nobody; gives back the function that cancels it once."""
    if running_loop() == "trio":
        from contextvars import copy_context

        import trio

        scope = trio.CancelScope()

        async def task_of_trio() -> None:
            try:
                await _attempt(question, scope, abandoned)
            finally:
                end()

        trio.lowlevel.spawn_system_task(task_of_trio, context=copy_context())
        return scope.cancel
    import asyncio

    task = asyncio.get_running_loop().create_task(_attempt(question, nullcontext(), abandoned))
    task.add_done_callback(lambda _: end())  # also runs when the task was cancelled before its first step
    return task.cancel


def running_loop() -> str | None:
    """The async library whose loop runs in this thread, if one does. Imports nothing.

    A library that another thread is just importing lacks the function asked for here, and runs no loop in this one.
    """
    in_trio_run: Any = getattr(sys.modules.get("trio.lowlevel"), "in_trio_run", None)
    if in_trio_run is not None and in_trio_run():
        return "trio"
    get_running_loop: Any = getattr(sys.modules.get("asyncio.events"), "_get_running_loop", None)
    if get_running_loop is not None and get_running_loop() is not None:
        return "asyncio"
    return None


def run_loop(main: Callable[[], Coroutine[Any, Any, T]], *, may_hang: bool) -> T:
    """Run async code from plain code, in a new event loop.

    Args:
        main: what to run.
        may_hang: whether something in it may be left running; the loop then lives in a daemon thread, so that neither
            the caller nor the end of the process waits for it.
    """
    return _InDaemon(main).result() if may_hang else _run(main)


def _run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    import asyncio

    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:  # a factory: the thread's own loop stays set
        return runner.run(main())


class _InDaemon(Generic[T]):
    """Async code in the loop of a daemon thread, and the thread that waits for its outcome but never for its end."""

    def __init__(self, main: Callable[[], Coroutine[Any, Any, T]]) -> None:
        from concurrent.futures import Future

        self._main = main
        self._outcome: Future[T] = Future()
        self._cancel: Callable[[], object] = self._outcome.cancel  # as long as the loop does not run
        self._left_running = False

    def result(self) -> T:
        from contextvars import copy_context
        from threading import Thread

        thread = Thread(target=copy_context().run, args=(self._thread,), name="foreword assembly", daemon=True)
        try:
            thread.start()
            return self._outcome.result()
        except BaseException:
            if not self._outcome.done():  # Ctrl-C while waiting: the assembly goes, the interrupt stays
                with suppress(RuntimeError):  # the loop has just been closed
                    self._cancel()
            raise
        finally:
            if not self._left_running and thread.is_alive():
                thread.join(GRACE)  # an orderly end takes a moment, and leaves no thread behind

    def _thread(self) -> None:
        try:
            _run(self._watched)
        except BaseException as error:
            if self._outcome.done():
                raise
            self._outcome.set_exception(error)  # no loop could be made

    async def _watched(self) -> None:
        """Hand over the outcome before the loop is torn down, which waits for what was left running."""
        import asyncio

        loop, task = asyncio.get_running_loop(), cast("asyncio.Task[None]", asyncio.current_task())
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        if not self._outcome.set_running_or_notify_cancel():
            return
        try:
            hand_over = partial(self._outcome.set_result, await self._main())
        except BaseException as error:  # for the thread that waits; KeyboardInterrupt among them
            hand_over = partial(self._outcome.set_exception, error)
        self._left_running = len(asyncio.all_tasks()) > 1
        hand_over()
