"""Verifying: walks a log and names the first event or blob that is not what was logged.

It holds all that a store keeps of a session against the chain: each envelope, each reference, each blob down to the
last leaf of a tree, the session's own row. Whoever can write the file can write a new chain as well, so a digest that
was kept elsewhere is the only proof against that: ``head``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from foreword.errors import DamagedLogError, NewerLogError, StoreError
from foreword.session import records
from foreword.session.blobs import BlobFault, ErasedBlob, blob_fault
from foreword.session.reading import SessionReader
from foreword.session.records import TREES
from foreword.session.tree import check_root

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foreword.session.chain import Record
    from foreword.session.log import Log
    from foreword.session.store.contract import BlobRow

__all__ = ["LogFault", "SessionReport", "Verification", "verify"]

_DAMAGED: Final = ("store_corrupt", "store_failed", "store_io")
"""The kinds of a store's errors that mean its file, rather than our way to it."""


@dataclass(frozen=True, slots=True)
class LogFault:
    """The first thing that is wrong with a session."""

    seq: int | None  # the event; None for the session as a whole
    blob: str | None  # the blob's digest, in hex, if it is a blob
    why: str

    def __str__(self) -> str:
        where = "the session" if self.seq is None else f"event {self.seq}"
        return f"{where}{'' if self.blob is None else f', blob {self.blob}'}: {self.why}"


@dataclass(frozen=True, slots=True)
class SessionReport:
    """What was found in one session."""

    id: str
    events: int  # that are as they were logged, up to the fault if there is one
    blobs: int  # that were looked at in this session for the first time
    erased: int  # of them, those that an event says were emptied
    withheld: int  # of them, those that were never stored, as the log was not to hold them
    head: str  # the digest of the last event, in hex
    fault: LogFault | None
    head_at: int | None = None  # the event that has the digest asked for

    @property
    def intact(self) -> bool:
        """Whether nothing is wrong."""
        return self.fault is None


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found in a log."""

    sessions: tuple[SessionReport, ...]
    head: str | None = None  # the digest that was to be found
    erased: int = 0  # blobs that were emptied on purpose, each counted once

    @property
    def intact(self) -> bool:
        """Whether nothing is wrong, and the digest that was asked for is there."""
        return all(report.intact for report in self.sessions) and (self.head is None or self.head_found)

    @property
    def head_found(self) -> bool:
        """Whether some event has the digest that was asked for."""
        return any(report.head_at is not None for report in self.sessions)


async def verify(log: Log, session: str | None = None, *, head: str | None = None) -> Verification:
    """Hold a log against its chains.

    Args:
        log: which.
        session: the id of one session, the beginning of one, or ``last``; None for all of them.
        head: a digest that `Session.flush` gave once, in hex. It must be that of some event: then the log was not
            rewritten up to there.

    Raises:
        UnknownAddressError: there is no such session, or there are several.
        ValueError: ``head`` is no digest.
        StoreError: the store cannot be read at all.
    """
    if head is not None and (len(head) != 64 or head.strip("0123456789abcdef")):
        raise ValueError(f"{head!r} is no digest; give the 64 hexadecimal digits that flush() gave")
    rows = await log.store.sessions() if session is None else [(await log.reader(session)).row]
    sight = _Sight()
    reports = [await _Walk(SessionReader(log.store, row), sight, head).report() for row in rows]
    return Verification(tuple(reports), head, len(sight.erased))


@dataclass(slots=True)
class _Sight:
    """The blobs that were looked at in all sessions."""

    whole: set[bytes] = field(default_factory=set[bytes])  # with all below them; need not be looked at again
    counted: set[bytes] = field(default_factory=set[bytes])
    erased: set[bytes] = field(default_factory=set[bytes])  # emptied on purpose


class _Walk:
    """One session, from its first event to the last."""

    def __init__(self, reader: SessionReader, sight: _Sight, head: str | None) -> None:
        self.reader, self.sight = reader, sight
        self.wanted = None if head is None else bytes.fromhex(head)
        self.head_at: int | None = None
        self.events = self.blobs = 0
        self.last = reader.row.genesis
        self.start: Record | None = None  # the session/start of its own
        self.epoch = reader.row.epoch
        self.looked_at: set[bytes] = set()  # what events refer to
        self.empty: dict[bytes, int] = {}  # emptied blobs, and the first event that refers to each
        self.erased: set[bytes] = set()  # those that an event says were emptied
        self.withheld: set[bytes] = set()  # empty, and said to be so when they were logged

    async def report(self) -> SessionReport:
        """Walk, and say what was found."""
        fault = await self._walked()
        if fault is None or fault.seq is None:  # all events were read, so it is known what was erased on purpose
            fault = await self._emptied() or fault
        erased = self.empty.keys() & self.erased
        self.sight.erased |= erased
        withheld = len(self.withheld - erased)
        return SessionReport(
            self.reader.id, self.events, self.blobs, len(erased), withheld, self.last.hex(), fault, self.head_at
        )

    async def _walked(self) -> LogFault | None:
        try:
            await self._walk()
        except DamagedLogError as fault:
            return LogFault(fault.seq, fault.blob, fault.why)
        except NewerLogError as fault:
            return LogFault(fault.seq, None, f"it {fault.what}; only a newer Foreword can read it")
        except StoreError as fault:
            if fault.kind not in _DAMAGED:
                raise
            return LogFault(self.events, None, f"the store cannot read it: {fault.why}")
        return None

    async def _emptied(self) -> LogFault | None:
        """The first blob that was emptied, and no event says so; known when all events are read."""
        told = self.erased | self.withheld
        if self.empty.keys() - told:
            self.erased |= (await self.reader.losses(anew=True)).erased  # while we were reading
        lost = [(seq, digest) for digest, seq in self.empty.items() if digest not in told | self.erased]
        if not lost:
            return None
        seq, digest = min(lost)
        return LogFault(seq, digest.hex(), ErasedBlob(digest).why)

    async def _walk(self) -> None:
        async for chunk in self.reader.fold():
            await self._check(chunk)
        self._check_row()

    async def _check(self, chunk: Sequence[Record]) -> None:
        """References and blobs of some records, which are as they were logged themselves."""
        first, stop = chunk[0].seq, chunk[-1].seq + 1
        stored: dict[int, set[bytes]] = {}
        for digest, seq in await self.reader.store.refs(self.reader.id, first, stop):
            stored.setdefault(seq, set()).add(digest)
        rows = await self.reader.store.blobs(
            {digest for record in chunk for digest in record.refs.values()} - self.sight.whole
        )
        for record in chunk:
            if record.refs:
                await self._check_refs(record, stored.pop(record.seq, set()), rows)
            self.events, self.last, self.epoch = record.seq + 1, record.digest, record.epoch
            self._note(record)
        for seq in stored:
            raise DamagedLogError(self.reader.id, seq, "the store has references of it that its envelope does not")

    def _note(self, record: Record) -> None:
        if record.digest == self.wanted:
            self.head_at = record.seq
        if isinstance(record.data, records.SessionStartData):
            self.start = record
        elif isinstance(record.data, records.ContentErasedData):
            self.erased.update(map(bytes.fromhex, record.data.blobs))

    async def _check_refs(self, record: Record, stored: set[bytes], rows: dict[bytes, BlobRow]) -> None:
        told = set(record.refs.values())
        if told != stored:
            why = "the store's references of it are other ones"
            raise DamagedLogError(self.reader.id, record.seq, why, min(told ^ stored).hex())
        for role, digest in record.refs.items():
            if digest in self.sight.whole or digest in self.looked_at:
                continue
            try:
                whole, empty = await self._look(role, digest, rows.get(digest))
            except BlobFault as fault:
                raise DamagedLogError(self.reader.id, record.seq, fault.why, fault.digest.hex()) from None
            self._count(whole | empty)
            if role in record.withheld:
                self.withheld |= empty
            self.empty |= dict.fromkeys(empty - self.empty.keys(), record.seq)
            self.looked_at.add(digest)
            if not empty:  # or what is empty would not be seen in the next session
                self.sight.whole |= whole

    async def _look(self, role: str, digest: bytes, row: BlobRow | None) -> tuple[set[bytes], set[bytes]]:
        """What a reference leads to: the blobs that are whole, and those that are empty."""
        fault = blob_fault(row, digest)
        if isinstance(fault, ErasedBlob) and role not in TREES:
            return set(), {digest}
        if fault is not None:
            raise fault
        return await check_root(self.reader.blobs, digest, self.sight.whole) if role in TREES else ({digest}, set())

    def _count(self, blobs: set[bytes]) -> None:
        new = blobs - self.sight.counted
        self.blobs += len(new)
        self.sight.counted |= new

    def _check_row(self) -> None:
        """The session's own row says again what its events say."""
        row, start = self.reader.row, self.start
        if (row.count, row.head) != (self.events, self.last):
            raise DamagedLogError(row.id, None, "its row tells of another number of events, or another head")
        if row.epoch != self.epoch:
            raise DamagedLogError(row.id, None, f"its row is in epoch {row.epoch}, its last event in {self.epoch}")
        if start is None:
            return
        data = start.data
        assert isinstance(data, records.SessionStartData)  # noqa: S101 - `_note` keeps no other
        parent = (None, None) if data.parent is None else (data.parent.session, data.parent.events)
        if (row.id, row.created, row.parent, row.forked_at) != (data.id, start.time, *parent):
            why = "the session's row tells of another id, time or parent than this event"
            raise DamagedLogError(row.id, start.seq, why)
