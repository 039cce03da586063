"""A thread of ours that does what is handed over to it, in order, for tasks of any event loop.

What was handed over is done, whatever becomes of the task that handed it over: event loops cancel tasks, and their own
worker threads are left behind when a process ends. Ours lives as long as there is work and is no daemon, so the end of
the process waits for the work, and for nothing else.
"""

from __future__ import annotations

from collections import deque
from threading import Lock, Thread
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    import anyio

__all__ = ["Handed", "Worker"]

T = TypeVar("T")


class Worker:
    """Does jobs one after the other. Any thread may hand one over; a job must not raise."""

    __slots__ = ("_busy", "_jobs", "_lock", "_name", "_running")

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = Lock()
        self._jobs: deque[Callable[[], None]] = deque()
        self._running = False
        self._busy = Lock()  # Ctrl-C may break off the start of a thread that runs all the same: then there are two

    def hand_over(self, job: Callable[[], None]) -> None:
        """Have a job done after those that were handed over before.

        Raises:
            RuntimeError: there is no thread to be had, since the process is ending; the job is not done.
        """
        with self._lock:
            self._jobs.append(job)
            if self._running:
                return
            try:
                Thread(target=self._work, name=self._name, daemon=False).start()
            except RuntimeError:
                self._jobs.pop()
                raise
            self._running = True

    def _work(self) -> None:
        with self._busy:
            while (job := self._next()) is not None:
                job()

    def _next(self) -> Callable[[], None] | None:
        with self._lock:
            if self._jobs:
                return self._jobs.popleft()
            self._running = False
            return None


class Handed(Generic[T]):
    """Work for a `Worker`, made by a task that may wait for what comes of it, or go."""

    __slots__ = ("_done", "_failure", "_outcome", "_tell", "_work")

    def __init__(self, work: Callable[[], T]) -> None:
        import anyio

        self._work = work
        self._done = anyio.Event()
        self._tell = _teller(self._done)
        self._outcome: list[T] = []
        self._failure: BaseException | None = None

    def __call__(self) -> None:
        """Do it."""
        try:
            self._outcome.append(self._work())
        except BaseException as error:  # handed to whoever waits
            self._failure = error
        self._tell()

    @property
    def outcome(self) -> T | None:
        """What came of it; None if it failed or was not done yet."""
        return self._outcome[0] if self._outcome else None

    async def result(self) -> T:
        """Wait for what comes of it.

        Raises:
            BaseException: what the work raised.
        """
        await self._done.wait()
        if self._failure is not None:
            try:
                raise self._failure
            finally:
                self._failure = None  # its traceback holds this frame, which holds us
        return self._outcome[0]


def _teller(event: anyio.Event) -> Callable[[], None]:
    """A function that sets an event of this loop from any thread.

    It does not wait for the loop, which may have been stopped in between and then never answers.
    """
    from foreword.prompt.asking import running_loop

    if running_loop() == "trio":
        import trio

        token = trio.lowlevel.current_trio_token()

        def tell_trio() -> None:
            try:
                token.run_sync_soon(event.set)
            except trio.RunFinishedError:
                return  # nobody waits any more

        return tell_trio

    import asyncio

    loop = asyncio.get_running_loop()

    def tell_asyncio() -> None:
        try:
            loop.call_soon_threadsafe(event.set)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    return tell_asyncio
