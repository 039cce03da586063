"""What is being asked right now, and what was left running: async providers, and sync ones in threads of ours.

A plugin that goes waits for its providers that are being asked, so that what it opened for them can be closed; not for
the one that it is called from, and not for what is stuck.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final

from foreword.errors import ThreadsExhaustedError
from foreword.prompt.text import is_unawaited

if TYPE_CHECKING:
    import anyio

    from foreword.errors import EntryRef
    from foreword.kernel.context import Waiting
    from foreword.kernel.effects import Owner
    from foreword.prompt.collect import Question
    from foreword.prompt.contributions import Entry

__all__ = ["MOST_THREADS", "Running"]

MOST_THREADS: Final = 8
"""Threads that one registry has for sync providers with ``thread=True``."""

_inside: ContextVar[tuple[Question, ...]] = ContextVar("the questions that this code was called by", default=())


class Running:
    """The questions under way in one registry. Any thread may use it."""

    __slots__ = ("_asked", "_guarded", "_stuck", "_waiting", "threads")

    def __init__(self, most_threads: int = MOST_THREADS) -> None:
        self.threads = Threads(self, most_threads)
        self._asked: dict[Question, None] = {}
        self._stuck: dict[Question, EntryRef] = {}
        self._guarded: set[Owner] = set()
        self._waiting: list[anyio.Event] = []

    @contextmanager
    def asking(self, question: Question) -> Generator[None]:
        """A question is being asked as long as this is entered."""
        token = _inside.set((*_inside.get(), question))
        self._asked[question] = None
        try:
            yield
        finally:
            _inside.reset(token)
            del self._asked[question]
            self._tell()

    def stuck(self) -> tuple[EntryRef, ...]:
        """The providers that were left running."""
        return tuple(self._stuck.values())

    def is_stuck(self, question: Question) -> bool:
        """Whether a question was left running."""
        return question in self._stuck

    def leave(self, question: Question) -> None:
        """Leave a question running, until `ended`."""
        self._stuck[question] = question.entry.ref
        self._tell()

    def ended(self, question: Question) -> None:
        """What was left running has ended after all; one whose thread goes on has not."""
        if not self.threads.hold(question):
            self._stuck.pop(question, None)

    def guard(self, owner: Owner, waiting: Waiting) -> None:
        """Have an owner wait for its providers when it goes: after its entries are undone, before what it opened is."""
        if owner in self._guarded:
            return

        async def wait() -> None:
            self._guarded.discard(owner)
            await self.wait_for(owner, waiting)

        owner.add(wait)
        self._guarded.add(owner)

    async def wait_for(self, owner: Owner, waiting: Waiting, entry: Entry | None = None) -> None:
        """Wait until nothing of an owner, or only of one entry of it, is being asked that keeps it from going."""
        import anyio

        waiting.told.append(self._tell)
        try:
            while self.busy_for(owner, waiting, entry):
                event = anyio.Event()
                self._waiting.append(event)
                await event.wait()
        finally:
            waiting.told.remove(self._tell)

    def busy_for(self, owner: Owner, waiting: Waiting, entry: Entry | None = None) -> list[Question]:
        """What is asked of an owner (or of one entry of it) now, is not stuck, and does not wait for it to go."""
        callers = {question for call in waiting.calls(owner) for question in call.get(_inside, ())}
        let_go = callers | self._stuck.keys()
        theirs = (each for each in self._asked if each.entry.owner is owner and (entry is None or each.entry is entry))
        return [each for each in theirs if each not in let_go]

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            event.set()


class Threads:
    """Daemon threads for sync providers: they can be left behind, and never keep the process from ending."""

    __slots__ = ("_busy", "_lock", "_most", "_running", "_waiting")

    def __init__(self, running: Running, most: int) -> None:
        self._running, self._most = running, most
        self._lock = Lock()
        self._busy: dict[Question, None] = {}
        self._waiting: list[Callable[[], None]] = []

    def hold(self, question: Question) -> bool:
        """Whether a thread is still busy with a question."""
        return question in self._busy

    async def run(self, question: Question, work: Callable[[], Any], grace: float = 0.0) -> Any:
        """Call a function in a thread, and wait for what it gives. Cancelled, it goes, and the thread is stuck.

        Args:
            question: what the function is called for.
            work: the function.
            grace: seconds that the function has to come back after a cancellation, for one that can learn of it. What
                it then gives counts, but for an awaitable: nobody is left to await it.

        Raises:
            ThreadsExhaustedError: all threads are stuck; names by whom.
            BaseException: what the function raises.
        """
        import anyio

        await self._take_place(question)
        done = anyio.Event()
        tell = _teller(done)
        outcome: list[Any] = []
        failure: list[BaseException] = []

        def body() -> None:
            try:
                outcome.append(work())
            except BaseException as error:  # handed to whoever waits
                failure.append(error)
            finally:
                self._free_place(question)
                tell()

        Thread(target=copy_context().run, args=(body,), name=f"foreword {question.entry.name}", daemon=True).start()
        try:
            await _wait(done, grace, outcome)
        except BaseException:
            with self._lock:
                if question in self._busy:
                    self._running.leave(question)
            raise
        if failure:
            raise failure[0]
        return outcome[0]

    async def _take_place(self, question: Question) -> None:
        import anyio

        while True:
            free = anyio.Event()
            with self._lock:
                if len(self._busy) < self._most:
                    self._busy[question] = None
                    return
                if all(self._running.is_stuck(each) for each in self._busy):
                    raise ThreadsExhaustedError(tuple(each.entry.ref for each in self._busy))
                self._waiting.append(_teller(free))
            await free.wait()

    def _free_place(self, question: Question) -> None:
        with self._lock:
            self._busy.pop(question, None)
            self._running.ended(question)
            waiting, self._waiting = self._waiting, []
        for tell in waiting:
            tell()


async def _wait(done: anyio.Event, grace: float, outcome: list[Any]) -> None:
    """Wait for a thread; after a cancellation, for some seconds more.

    Raises:
        BaseException: the cancellation, unless the thread came back in time with what needs no awaiting.
    """
    import anyio

    try:
        await done.wait()
    except anyio.get_cancelled_exc_class():
        if grace:
            with anyio.move_on_after(grace, shield=True):
                await done.wait()
        if not done.is_set() or any(map(is_unawaited, outcome)):
            raise


def _teller(event: anyio.Event) -> Callable[[], None]:
    """A function that sets an event of this loop from any other thread; a loop that has ended needs no telling."""
    import anyio
    from anyio.from_thread import run_sync
    from anyio.lowlevel import current_token

    token = current_token()

    def tell() -> None:
        try:
            run_sync(event.set, token=token)
        except anyio.RunFinishedError:
            return

    return tell
