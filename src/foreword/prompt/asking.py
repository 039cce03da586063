"""Asking async providers: together, each within its timeout, on asyncio or trio. The only module with an event loop.

A provider with a ``timeout`` runs in a task of its own, outside the assembly's task group: a task group waits for its
tasks, and one that swallows its cancellation would hold up the assembly for good. Past its timeout such a task is
cancelled; if it has not gone `GRACE` seconds later it is left behind, and listed in ``SystemPrompt.stuck`` until it
ends. Cancellation and exits are nobody's failure: they stop the siblings and propagate.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from foreword.errors import ProviderTimeoutError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from foreword.errors import EntryRef
    from foreword.prompt.collect import Question

__all__ = ["GRACE", "ask_together", "run_loop", "running_loop"]

T = TypeVar("T")

GRACE: Final = 0.1
"""Seconds that a provider has to go after it was cancelled."""


async def ask_together(questions: list[Question], stuck: dict[object, EntryRef]) -> None:
    """Ask all, and come back when each has answered, failed, or run out of time.

    Args:
        questions: what to ask; each gets its answer or its error.
        stuck: where providers are listed that did not go when they were cancelled.

    Raises:
        BaseException: a cancellation or an exit that a provider raised; the other providers are cancelled first.
    """
    if len(questions) == 1 and questions[0].entry.timeout is None:
        await _ask(questions[0])
    else:
        await _ask_in_group(questions, stuck)
    stop = next((question.stop for question in questions if question.stop is not None), None)
    if stop is not None:
        raise stop


async def _ask(question: Question) -> None:
    start = perf_counter()
    try:
        question.answer = await question.entry.provider.ask(question.context)
    except Exception as error:  # a provider is somebody else's code; collect tells all failures together
        question.error = error
    finally:
        question.seconds = perf_counter() - start


async def _ask_in_group(questions: list[Question], stuck: dict[object, EntryRef]) -> None:
    import anyio

    cancelled = anyio.get_cancelled_exc_class()

    async def ask(question: Question) -> None:
        try:
            if question.entry.timeout is None:
                await _ask(question)
            else:
                await _ask_in_time(question, question.entry.timeout, stuck)
        except cancelled as stop:
            if not group.cancel_scope.cancel_called:
                question.stop = stop
                group.cancel_scope.cancel()
            raise
        except BaseException as stop:  # an exit: taken out of the group by hand, so that it stays what it is
            question.stop = stop
        if question.stop is not None:
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for question in questions:
            group.start_soon(ask, question)


async def _ask_in_time(question: Question, timeout: float, stuck: dict[object, EntryRef]) -> None:
    import anyio

    done = anyio.Event()
    abandoned = False

    async def run() -> None:
        start = perf_counter()
        try:
            question.answer = await question.entry.provider.ask(question.context)
        except Exception as error:  # see `_ask`
            question.error = error
        except BaseException as stop:
            if not cancelled_by_us and not abandoned:
                question.stop = stop
            if abandoned and not isinstance(stop, anyio.get_cancelled_exc_class()):
                raise  # nobody waits for it any more, and an exit must not be lost
        finally:
            question.seconds = perf_counter() - start
            stuck.pop(question, None)
            done.set()

    cancelled_by_us = False
    cancel = question.task = _spawn(run)
    try:
        with anyio.move_on_after(timeout):
            await done.wait()
    finally:
        if not done.is_set():
            cancelled_by_us = True
            cancel()
            with anyio.move_on_after(GRACE, shield=True):
                await done.wait()
            if not done.is_set():
                abandoned = True
                stuck[question] = question.entry.ref
    _judge(question, timeout, gone=done.is_set(), cancelled=cancelled_by_us)


def _judge(question: Question, timeout: float, *, gone: bool, cancelled: bool) -> None:
    """A provider is late by its own time, not by which of two events the loop saw first."""
    if gone and not cancelled and question.seconds <= timeout:
        return
    if not gone:
        how = f"it did not go within {GRACE * 1000:g} ms of being cancelled and was left running"
    elif cancelled:
        how = "it was cancelled"
    else:
        how = f"it came back after {question.seconds:.3g} s; something blocked the event loop"
    question.answer = None
    question.error = ProviderTimeoutError(timeout, how)


def _spawn(run: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], object]:
    """Start a task that belongs to nobody; gives back the function that cancels it once."""
    library = running_loop()
    if library == "trio":
        from contextvars import copy_context

        import trio

        scope = trio.CancelScope()

        async def scoped() -> None:
            with scope:
                await run()

        trio.lowlevel.spawn_system_task(scoped, context=copy_context())
        return scope.cancel
    import asyncio

    task = asyncio.get_running_loop().create_task(run())
    return task.cancel


def running_loop() -> str | None:
    """The async library whose loop runs in this thread, if one does. Imports nothing."""
    trio: Any = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return "trio"
    asyncio: Any = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        return "asyncio"
    return None


def run_loop(main: Callable[[], Awaitable[T]], *, may_hang: bool) -> T:
    """Run async code from plain code, in a new event loop.

    Args:
        main: what to run.
        may_hang: whether something in it may be left running; the loop then lives in a daemon thread, so that neither
            the caller nor the end of the process waits for it.
    """
    import anyio

    if not may_hang:
        return anyio.run(main)
    return _run_in_daemon(main)


def _run_in_daemon(main: Callable[[], Awaitable[T]]) -> T:
    import asyncio
    from contextvars import copy_context
    from threading import Event, Thread

    done = Event()
    outcome: list[T] = []
    failure: list[BaseException] = []
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def watched() -> None:
        running.append((asyncio.get_running_loop(), cast("asyncio.Task[Any]", asyncio.current_task())))
        try:
            outcome.append(await main())
        except BaseException as error:  # handed to the thread that waits; KeyboardInterrupt among them
            failure.append(error)
        finally:
            done.set()  # before the loop is torn down, which waits for what was left running

    def thread() -> None:
        asyncio.run(watched())

    Thread(target=copy_context().run, args=(thread,), name="foreword assembly", daemon=True).start()
    try:
        done.wait()
    except BaseException:  # Ctrl-C while waiting: the assembly goes, the interrupt stays
        for loop, task in running:
            loop.call_soon_threadsafe(task.cancel)
        raise
    if failure:
        raise failure[0]
    return outcome[0]
