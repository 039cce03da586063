"""The thread that writes: recorders hand their work over to it, from tasks of any event loop and from plain code.

All sessions of a recorder are written here, one piece of work after the other, so that agents may run in several loops
and threads. The thread is there while there is work; what was handed over is done, whatever becomes of who waits.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeAlias, TypeVar

from foreword.prompt.asking import run_loop
from foreword.session.store.worker import Handed, Worker

__all__ = ["Scribe", "Work"]

T = TypeVar("T")

Work: TypeAlias = Callable[[], Coroutine[Any, Any, T]]


class Scribe:
    """Does what it is told, in order."""

    def __init__(self) -> None:
        self._worker = Worker("foreword recorder")

    async def do(self, work: Work[T]) -> T:
        """Have something done, and wait for what comes of it.

        Raises:
            BaseException: what the work raises.
        """
        handed = Handed(lambda: run_loop(work, may_hang=False))
        self._worker.hand_over(handed)
        return await handed.result()

    def do_now(self, work: Work[T]) -> T:
        """The same for plain code: the thread waits.

        Raises:
            BaseException: what the work raises.
        """
        outcome: Future[T] = Future()

        def job() -> None:
            try:
                outcome.set_result(run_loop(work, may_hang=False))
            except BaseException as error:  # handed to whoever waits
                outcome.set_exception(error)

        self._worker.hand_over(job)
        return outcome.result()

    def leave(self, work: Work[None]) -> None:
        """Have something done some time; nobody waits. The work must not raise."""
        self._worker.hand_over(lambda: run_loop(work, may_hang=False))
