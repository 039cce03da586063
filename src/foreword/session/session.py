"""A session that may be written: events go in at once, in memory; `flush` makes them durable."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

from foreword.errors import (
    EventRefusedError,
    FlushFailedError,
    InactiveContextError,
    InvalidAddressError,
    SessionConflictError,
    SessionFencedError,
    StoreError,
)
from foreword.session.bodies import Bodies
from foreword.session.drift import Drift, Resumption
from foreword.session.events import (
    EVENTS_OF_THE_LOG,
    BodyDigest,
    Event,
    HeaderWritten,
    HeldSnapshot,
    HistoryReplaced,
    LoggedEvent,
    TurnEnd,
)
from foreword.session.placeholders import ERASED

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from collections.abc import Set as AbstractSet
    from datetime import datetime, timedelta
    from types import TracebackType
    from typing import Self

    import anyio

    from foreword.session.erasure import ErasureReport
    from foreword.session.header import RequestHeader
    from foreword.session.ledger import Ledger
    from foreword.session.log import Log
    from foreword.session.reading import IfErased
    from foreword.session.store.contract import Batch, Claim, SessionRow
    from foreword.session.trace import RecordedTrace, StepTrace
    from foreword.wire.messages import Message

__all__ = ["Observer", "Session"]

Observer: TypeAlias = Callable[[LoggedEvent], object]
"""Told of each event once it is accepted. It may not append; what it raises is logged and stops nothing."""

_log = logging.getLogger("foreword.session")


class Session:
    """One conversation of one agent, open for writing. A `Log` makes it, and only one may be open at a time.

    Attributes:
        id: its id.
        log: the log that it is in.
        resumption: which header goes out if today's is not the one that was recorded when it was resumed.
        erased_at: the event that told last of an erasure, while this object lives; 0 for none.
    """

    def __init__(
        self,
        log: Log,
        ledger: Ledger,
        claim: Claim,
        labels: Mapping[str, str],
        drift: Drift = "fresh",
        trace: RecordedTrace | None = None,
    ) -> None:
        import anyio

        self.id = ledger.id
        self.log = log
        self.resumption = Resumption(self.id, drift, ledger.header, trace)
        self._ledger, self._claim, self._labels = ledger, claim, labels
        self._observers: list[Observer] = []
        self._telling = False
        self._closed = False
        self._fenced: int | None = None  # the epoch that another writer has begun
        self._messages: tuple[Message, ...] | None = None  # as they were at that digest of the history
        self._messages_at = b""
        self._bodies = Bodies()
        self._events: tuple[LoggedEvent, ...] = ()
        self._durable = claim.row.count, claim.row.head
        self._unsettled: Batch | None = None  # what was handed over, while it is not known whether the store has it
        self.erased_at = 0
        self._writing: anyio.Lock = anyio.Lock(fast_acquire=True)  # the store lets others run when it is written to

    # -- what follows from the events ----------------------------------------------------------------------------------

    @property
    def head(self) -> str:
        """The digest of the last event, flushed or not, in hex. Two logs with one head are equal up to there."""
        return self._ledger.head.hex()

    @property
    def cwd(self) -> str | None:
        """The folder that the session is about, if it was given."""
        return self._ledger.state.cwd

    @property
    def labels(self) -> Mapping[str, str]:
        """What it was labelled with when it began."""
        return self._labels

    @property
    def turn(self) -> int:
        """The number of the last turn that began; 0 before the first."""
        return self._ledger.state.turn

    @property
    def turn_open(self) -> bool:
        """Whether that turn goes on."""
        return self._ledger.state.turn_open

    @property
    def step(self) -> int:
        """The number of the last step that began in that turn; 0 before its first."""
        return self._ledger.state.step

    @property
    def step_open(self) -> bool:
        """Whether that step goes on."""
        return self._ledger.state.step_open

    @property
    def attempt_open(self) -> bool:
        """Whether an attempt was logged that has no outcome yet."""
        return self._ledger.state.attempt_open

    @property
    def messages(self) -> tuple[Message, ...]:
        """The history: what the model sees beside the header."""
        at = self._ledger.state.history_digest
        if self._messages is None or self._messages_at != at:
            self._messages, self._messages_at = tuple(self._ledger.messages), at
        return self._messages

    @property
    def header(self) -> RequestHeader | None:
        """The request header in force; None before the first request."""
        return None if self._ledger.header is None else self._ledger.header.header

    @property
    def trace(self) -> StepTrace | None:
        """The trace of the last step that began while this object lives; `step_trace` takes it, to spare work."""
        return self._ledger.trace

    def body_digest(self, adapter: str, version: str, body: bytes) -> BodyDigest:
        """The digest of the body of a request, for `RequestAttempted`: what `BodyDigest.of` gives, faster.

        Of a body that begins like the last one only the rest is hashed; the last one is kept for that.

        Args:
            adapter: who sends it.
            version: of the adapter's format.
            body: all that is sent.
        """
        return BodyDigest(adapter, version, self._bodies.digest(body))

    @property
    def held_snapshot(self) -> HeldSnapshot:
        """Which snapshot of the runtime contexts the model still sees."""
        return self._ledger.held_snapshot()

    @property
    def events(self) -> tuple[LoggedEvent, ...]:
        """What was logged while this object lives, in order; `read` gives what was logged before, too."""
        if len(self._events) != len(self._ledger.logged):
            self._events = tuple(self._ledger.logged)
        return self._events

    async def read(
        self, first: int = 0, stop: int | None = None, *, if_erased: IfErased = "raise"
    ) -> list[LoggedEvent]:
        """The events from number ``first`` up to, not with, ``stop``, as the store and the memory hold them.

        Args:
            first: number of the first.
            stop: number of the first that is not wanted; None for all.
            if_erased: ``"mark"`` for placeholders in the place of what was erased before this object came to be. What
                was erased since is marked in any case.

        Raises:
            DamagedLogError: one of them is not what was logged.
            ErasedContentError: a content was erased.
        """
        logged = self._ledger.logged
        live = logged[0].seq if logged else self._ledger.state.count
        until = live if stop is None else min(stop, live)
        stored: list[LoggedEvent] = []
        if first < until:
            stored = [event async for event in await self.log.events(self.id, first, until, if_erased=if_erased)]
        return stored + [event for event in logged if first <= event.seq and (stop is None or event.seq < stop)]

    # -- appending -----------------------------------------------------------------------------------------------------

    def append(self, event: Event) -> int:
        """Log an event, in memory; `flush` makes it durable.

        Args:
            event: what happened now.

        Returns:
            The number of the event.

        Raises:
            EventRefusedError: it does not fit where the session is, or holds what cannot be stored. Nothing changed.
            InactiveContextError: the session is closed.
            SessionFencedError: it was taken over, as a flush has found.
        """
        self._check_open()
        if isinstance(event, EVENTS_OF_THE_LOG):
            raise EventRefusedError(self.id, type(event).__name__, "the log writes these itself")
        if self._telling:
            why = "an observer of this session may not append to it; do it when it has returned"
            raise EventRefusedError(self.id, type(event).__name__, why)
        logged = self._ledger.append(event)
        if isinstance(event, HeaderWritten):
            self.resumption.went_on()
        if self._observers:
            self._tell(logged)
        return logged.seq

    def replace_history(self, first: int, last: int, message: Message) -> int:
        """Put one message in the place of a stretch of the history: compaction.

        Args:
            first: position in `messages`, from 0.
            last: the last position that goes, too.
            message: what takes their place.

        Returns:
            The number of the event.

        Raises:
            EventRefusedError: there is no such stretch, or it would part a tool call from its answer.
        """
        return self.append(HistoryReplaced(first, last, message))

    def on_append(self, observer: Observer) -> Callable[[], None]:
        """Have a function told of each event from here on; gives a function that ends it."""
        self._check_open()
        self._observers.append(observer)

        def stop() -> None:
            if observer in self._observers:
                self._observers.remove(observer)

        return stop

    def _tell(self, logged: LoggedEvent) -> None:
        self._telling = True
        try:
            for observer in tuple(self._observers):
                try:
                    observer(logged)
                except Exception:  # an observer is somebody else's code, and the event is logged already
                    _log.exception("an observer of session %s failed at event %d", self.id, logged.seq)
        finally:
            self._telling = False

    # -- making it durable ---------------------------------------------------------------------------------------------

    async def flush(self) -> str:
        """Make all events so far durable.

        Returns:
            The digest of the last of them, in hex. Kept elsewhere, it proves later that the log was not rewritten.

        Raises:
            FlushFailedError: the store could not take them. They are kept; flush again.
            SessionFencedError: the session was taken over by somebody else.
            SessionConflictError: the store does not hold what this session wrote.
            InactiveContextError: the session is closed.
        """
        self._check_open()
        async with self._writing:
            try:
                return await self._flush()
            except SessionFencedError as fault:
                self.fence(fault.now)
                raise

    def fence(self, epoch: int) -> None:
        """Another writer has begun an epoch: what was appended here from now on could never be written."""
        self._fenced = epoch

    async def _flush(self) -> str:
        if self._unsettled is not None:
            await self._settle(self._unsettled)
        if not self._ledger.rows:
            from anyio.lowlevel import checkpoint

            await checkpoint()
            return self._durable[1].hex()
        batch = self._unsettled = self._ledger.batch(*self._durable)
        ends_turn = TurnEnd in [type(each.event) for each in self._ledger.logged[-len(batch.events) :]]
        try:
            await self._claim.write(batch)
        except StoreError as fault:
            raise FlushFailedError(self.id, batch.first, len(batch.events), str(fault)) from fault
        self._written(batch)
        if ends_turn:
            await self.log.store.checkpoint()
        return self._durable[1].hex()

    def _written(self, batch: Batch) -> None:
        self._ledger.written(batch)
        self._durable = batch.count_after, batch.head_after
        self._unsettled = None

    async def _settle(self, batch: Batch) -> None:
        """After a write that failed or was cancelled: find out whether the store holds it."""
        try:
            row = await self._claim.settle()
        except StoreError as fault:
            raise FlushFailedError(self.id, self._durable[0], len(self._ledger.rows), str(fault)) from fault
        if (row.count, row.head) == (batch.count_after, batch.head_after):
            self._written(batch)
        elif (row.count, row.head) == self._durable:
            self._unsettled = None
        else:
            raise self._conflict(row)

    def _conflict(self, row: SessionRow) -> SessionConflictError:
        count, head = self._durable
        return SessionConflictError(self.id, count, head.hex(), row.count, row.head.hex())

    # -- forgetting ----------------------------------------------------------------------------------------------------

    async def erase(
        self,
        address: str | None = None,
        *,
        before: datetime | timedelta | None = None,
        match: str | None = None,
        wait: bool = False,
    ) -> ErasureReport:
        """Take out of the log what this session holds, or some of it; see `Log.erase`.

        What it holds in memory goes too: the model sees placeholders from here on.

        Args:
            address: a step of this session, as in ``"@12"`` or ``"@3.1"``, or an attempt. With none of these the whole
                session is meant.
            before: what was logged before that time, or longer ago than that.
            match: the contents that hold this text.
            wait: wait for sessions that others are writing.

        Raises:
            InvalidAddressError: it is no address of a step here.
            Exception: as `Log.erase`.
        """
        if address is not None and not address.startswith("@"):
            raise InvalidAddressError(address, f"a step of session {self.id} begins with @ here")
        self._check_open()
        if address is None and before is None and match is None:
            return await self.log.erase(session=self.id, wait=wait)
        told = None if address is None else f"{self.id}{address}"
        return await self.log.erase(told, before=before, match=match, within=self.id, wait=wait)

    @asynccontextmanager
    async def writing(self) -> AsyncGenerator[Self]:
        """Nothing but what is done herein writes the session to the store; for an erasure."""
        self._check_open()
        async with self._writing:
            if self._unsettled is not None:
                await self._settle(self._unsettled)
            yield self

    def forgetting(self, blobs: AbstractSet[bytes]) -> tuple[Claim, Batch]:
        """Log that these blobs are erased, and see placeholders in their place; gives all that is to be written.

        For an erasure, within `writing`.
        """
        if blobs:
            logged = self._ledger.forget(blobs)
            self.erased_at = logged.seq
            told = self._ledger.state.labels
            self._labels = {name: ERASED if told[name] in blobs else value for name, value in self._labels.items()}
            self._messages = None
            self._bodies.forget()
            self.resumption.forget(blobs)
            self._tell(logged)
        batch = self._unsettled = self._ledger.batch(*self._durable)  # until `forgot`
        return self._claim, batch

    async def forgot(self, batch: Batch) -> None:
        """It was written: what was logged while this object lives is read anew, without what was erased."""
        self._written(batch)
        logged = self._ledger.logged
        live = await self.log.events(self.id, logged[0].seq, self._durable[0], if_erased="mark")
        logged[: self._durable[0] - logged[0].seq] = [event async for event in live]
        self._events = ()

    # -- its end -------------------------------------------------------------------------------------------------------

    async def fork(
        self, address: str | None = None, *, id: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Session:
        """Begin another session with the events of this one up to a closed turn.

        Args:
            address: a step of this session, as in ``"@12"`` or ``"@3.1"``: the fork begins at the end of its turn. None
                for all that there is.
            id: of the new session; None for a random one.
            labels: of the new session; None for those of this one.

        Raises:
            InvalidAddressError: it is no address of a step here.
            UnknownAddressError: there is no such step, or its turn is still open.
            FlushFailedError: this session cannot be made durable first.
        """
        if address is not None and not address.startswith("@"):
            raise InvalidAddressError(address, f"a step of session {self.id} begins with @ here")
        await self.flush()
        return await self.log.fork(f"{self.id}{address or ''}", id=id, labels=labels)

    async def close(self) -> None:
        """Flush, and let go of the session, also if that fails; a second time does nothing."""
        import anyio

        if self._closed:
            return
        try:
            if self._fenced is None or self._ledger.rows:  # else nothing is lost
                await self.flush()
        finally:
            self._closed = True
            self._bodies.forget()
            self.log.forget(self)
            with anyio.CancelScope(shield=True):
                await self._claim.release()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise InactiveContextError(f"session {self.id}", "resume it from its log")
        if self._fenced is not None:
            raise SessionFencedError(self.id, self._ledger.epoch, self._fenced)

    def __repr__(self) -> str:
        return f"<Session {self.id}: {self._ledger.state.count} events, turn {self.turn}>"
