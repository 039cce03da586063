"""What all recorders have in common: requests and answers go into the log, and the agent is never in the way of it.

A request is durable before it is sent, as in Foreword's own loop. What the recorder cannot do is told, and stops
nobody; with ``on_error="raise"`` a request that cannot be logged is not sent.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, get_args

from foreword.errors import RecordingFailedError
from foreword.integrations.book import Book, Entry, Place
from foreword.integrations.scribe import Scribe

if TYPE_CHECKING:
    from foreword.integrations.caller import Caller
    from foreword.integrations.told import Answered, Sent
    from foreword.session.events import TurnEndReason
    from foreword.session.ledger import Content
    from foreword.session.log import Log

__all__ = ["OnError", "Recording"]

OnError: TypeAlias = Literal["warn", "raise"]
T = TypeVar("T")

_MOST_FAULTS: Final = 100  # that are kept; the log itself and the logger have them all
_log: Final = logging.getLogger("foreword.integrations")


class Recording:
    """The log of a recorder, for callers of any thread and event loop.

    Args:
        log: the URL of a store, or a log that is open; its sessions are then written beside those of the recorder.
        content: how much of what is said is stored; None for what the log does, or all of it.
        labels: of every session.
        on_error: what to do with a request that cannot be logged.

    Raises:
        ValueError: ``on_error`` is neither ``"warn"`` nor ``"raise"``.
    """

    def __init__(
        self,
        log: str | Log,
        *,
        content: Content | None = None,
        labels: Mapping[str, str] | None = None,
        on_error: OnError = "warn",
    ) -> None:
        if on_error not in get_args(OnError):
            raise ValueError(f'on_error is {on_error!r}; it is "warn" or "raise"')
        self._book, self._scribe = Book(log, content, dict(labels or {})), Scribe()
        self._raises = on_error == "raise"
        self.faults: deque[str] = deque(maxlen=_MOST_FAULTS)  # what could not be done, the newest last
        self._told: set[str] = set()

    # -- from tasks ----------------------------------------------------------------------------------------------------

    async def begin(self, place: Place, sent: Sent, caller: Caller) -> Entry | None:
        """Log a request, durably; None if it cannot be.

        Raises:
            RecordingFailedError: it cannot be, and that is to be an error.
        """
        return self._begun(*await self._scribe.do(lambda: self._begin(place, sent, caller)))

    async def end(self, entry: Entry, answered: Answered) -> None:
        """Log how a request ended."""
        await self._scribe.do(lambda: self._end(entry, answered))

    async def leave(self, place: Place, reason: TurnEndReason | None = None) -> None:
        """Nothing more comes from there; without a reason its turns ended as their last requests did."""
        await self._scribe.do(lambda: self._leave(place, reason))

    async def close(self) -> None:
        """Write what is left, and let go of all sessions; a second time does nothing.

        Raises:
            ExceptionGroup: what could not be written.
        """
        await self._scribe.do(self._book.close)

    # -- from plain code -----------------------------------------------------------------------------------------------

    def begin_now(self, place: Place, sent: Sent, caller: Caller) -> Entry | None:
        """As `begin`."""
        return self._begun(*self._scribe.do_now(lambda: self._begin(place, sent, caller)))

    def end_now(self, entry: Entry, answered: Answered) -> None:
        """As `end`."""
        self._scribe.do_now(lambda: self._end(entry, answered))

    def end_later(self, entry: Entry, answered: Answered) -> None:
        """As `end`, and nobody waits for it: of an answer that was left lying."""
        self._scribe.leave(lambda: self._end(entry, answered))

    def leave_now(self, place: Place) -> None:
        """As `leave`."""
        self._scribe.do_now(lambda: self._leave(place, None))

    def close_now(self) -> None:
        """As `close`."""
        self._scribe.do_now(self._book.close)

    # -- what cannot be done -------------------------------------------------------------------------------------------

    def miss(self, what: str, fault: Exception) -> None:
        """A request is sent that is not in the log. The log says so as soon as it can.

        Raises:
            RecordingFailedError: that is to be an error; then it is not sent.
        """
        why = f"{what}: {type(fault).__name__}: {fault}"
        if self._raises:
            raise RecordingFailedError(why) from fault
        self._book.missed.add(why)
        self.tell(why, fault)

    def tell(self, why: str, fault: Exception) -> None:
        """Tell of a fault that stops nobody; of one that comes again and again, once."""
        self.faults.append(why)
        if why not in self._told:
            self._told.add(why)
            _log.error("a recorder %s; the agent goes on", why, exc_info=fault)

    # -- in the scribe's thread ----------------------------------------------------------------------------------------

    async def _begin(self, place: Place, sent: Sent, caller: Caller) -> tuple[Entry | None, Exception | None]:
        try:
            entry = await self._book.begin(place, sent, caller)
        except Exception as fault:  # the border: the agent must not feel what goes wrong here
            return None, fault
        try:
            await entry.lane.session.flush()
        except Exception as fault:  # it is in memory, and comes with the next flush
            return entry, fault
        return entry, None

    def _begun(self, entry: Entry | None, fault: Exception | None) -> Entry | None:
        if fault is None:
            return entry
        if entry is None or self._raises:
            self.miss("cannot log a request", fault)
        else:
            self.tell(f"cannot write its log: {fault}", fault)
        return entry

    async def _end(self, entry: Entry, answered: Answered) -> None:
        async def work() -> None:
            self._book.ended(entry)
            if entry.lane.end(entry.attempt, answered):
                await entry.lane.session.flush()

        await self._try("cannot log an answer", work)

    async def _leave(self, place: Place, reason: TurnEndReason | None) -> None:
        await self._try("cannot close a session", lambda: self._book.leave(place, reason))

    async def _try(self, what: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except Exception as fault:  # the border: the agent must not feel what goes wrong here
            self.tell(f"{what}: {type(fault).__name__}: {fault}", fault)
