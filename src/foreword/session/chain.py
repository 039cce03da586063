"""The chain: the records of a session as a store gives them back, each held against the one before it.

Records come in chunks, so a log of any length is walked in flat memory. A fault is raised where it is: what stands
before it is given first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from foreword.errors import DamagedLogError, NewerLogError
from foreword.session import records
from foreword.session.decoding import roles_fault
from foreword.session.digests import event_digest
from foreword.session.records import DATA_TYPES, VERSION, WHOLE_ENVELOPE, Data, Envelope
from foreword.session.state import State

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from foreword.session.store.contract import EventRow, SessionRow, Store

__all__ = ["CHUNK", "Fold", "Record", "Records", "read_record"]

CHUNK: Final = 1000
"""How many records are read at a time."""

_NO_REFS: Final[dict[str, bytes]] = {}
_whole: msgspec.json.Decoder[Any] = msgspec.json.Decoder(WHOLE_ENVELOPE)
_envelope: msgspec.json.Decoder[Envelope] = msgspec.json.Decoder(Envelope)
_DECODERS: Final = {type_: msgspec.json.Decoder(shape) for type_, shape in DATA_TYPES.items()}


class Record(NamedTuple):  # made a hundred thousand at a time, and twice as fast as a frozen dataclass
    """An event without its contents."""

    seq: int
    time: int
    epoch: int
    data: Data
    refs: dict[str, bytes]
    digest: bytes
    withheld: tuple[str, ...] = ()  # the roles of refs whose content was not stored, or not all of it


class Records:
    """The records of a session from one number up to, not with, another, in chunks; an async iterator.

    Raises:
        DamagedLogError: one of them is missing, or is not what was logged.
        NewerLogError: one of them can only be read by a newer version.
    """

    __slots__ = ("_before", "_fault", "_next", "_row", "_stop", "_store")

    def __init__(self, store: Store, row: SessionRow, first: int = 0, stop: int | None = None) -> None:
        self._store, self._row = store, row
        self._next, self._stop = first, row.count if stop is None else min(stop, row.count)
        self._before = row.genesis if first == 0 else None
        self._fault: Exception | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[Record]:
        if self._fault is not None:
            raise self._fault
        if self._next >= self._stop:
            raise StopAsyncIteration
        before = await self._digest_before()
        until = min(self._next + CHUNK, self._stop)
        made: list[Record] = []
        try:
            for row in await self._store.events(self._row.id, self._next, until):
                made.append(self._read(row, before))
                before = row.digest
            if self._next < until:
                raise DamagedLogError(self._row.id, self._next, "it is missing")
        except (DamagedLogError, NewerLogError) as fault:
            if not made:
                raise
            self._fault = fault
        self._before = before
        return made

    def _read(self, row: EventRow, before: bytes) -> Record:
        if row.seq != self._next:
            raise DamagedLogError(self._row.id, self._next, "it is missing")
        record = read_record(self._row.id, row, before)
        self._next += 1
        return record

    async def _digest_before(self) -> bytes:
        if self._before is not None:
            return self._before
        rows = await self._store.events(self._row.id, self._next - 1, self._next)
        if not rows:
            raise DamagedLogError(self._row.id, self._next - 1, "it is missing")
        return rows[0].digest


class Fold:
    """The same from the first record on, each held against the state before it.

    Args:
        store: where the session is.
        row: as the store knows it.
        stop: before which number to stop.
        each: is called with the state and the record that it has just taken in.

    Attributes:
        state: after the records given so far.
        head: the digest of the last of them.
    """

    __slots__ = ("_each", "_epoch", "_fault", "_records", "_session", "head", "state")

    def __init__(
        self,
        store: Store,
        row: SessionRow,
        stop: int | None = None,
        each: Callable[[State, Record], None] | None = None,
    ) -> None:
        self._each = each
        self._records, self._session = Records(store, row, 0, stop), row.id
        self._epoch = 0
        self._fault: DamagedLogError | None = None
        self.state = State()
        self.head = row.genesis

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[Record]:
        if self._fault is not None:
            raise self._fault
        chunk, state = await anext(self._records), self.state
        for at, record in enumerate(chunk):
            why = self._refusal(record) if record.time < state.time or record.epoch < self._epoch else None
            why = why or state.refusal(record.data)
            if why is not None:
                self._fault = DamagedLogError(self._session, record.seq, f"it does not fit there: {why}")
                if at == 0:
                    raise self._fault
                return chunk[:at]
            state.apply(record.seq, record.time, record.data, record.refs, record.withheld)
            self._epoch, self.head = record.epoch, record.digest
            if self._each is not None:
                self._each(state, record)
        return chunk

    async def to_its_end(self) -> None:
        """Take in all that is left."""
        async for _ in self:
            pass

    def _refusal(self, record: Record) -> str:
        what = "time" if record.time < self.state.time else "epoch"
        return f"its {what} is before that of the event before it"


def read_record(session: str, row: EventRow, before: bytes) -> Record:
    """The record in a row.

    Args:
        session: its id, for errors.
        row: as stored.
        before: the digest of the event before, or the genesis.

    Raises:
        DamagedLogError: it is not what was logged.
        NewerLogError: only a newer version can read it.
    """
    if event_digest(before, row.envelope) != row.digest:
        raise DamagedLogError(session, row.seq, "its envelope does not match its digest and the one before it")
    try:
        envelope = _whole.decode(row.envelope)
        data: Data = envelope.data
    except (msgspec.MsgspecError, UnicodeDecodeError):  # in parts it can be told what is wrong, or new
        envelope = _read_envelope(session, row)
        data = _read_data(session, envelope)
    if envelope.v > VERSION:
        raise NewerLogError(session, row.seq, f"has version {envelope.v}")
    if envelope.seq != row.seq:
        raise DamagedLogError(session, row.seq, f"it says that it is event {envelope.seq}")
    refs = {role: bytes.fromhex(digest) for role, digest in envelope.refs.items()} if envelope.refs else _NO_REFS
    why = roles_fault(data, refs, envelope.withheld)
    if why is not None:
        raise DamagedLogError(session, row.seq, why)
    return Record(row.seq, envelope.time, envelope.epoch, data, refs, row.digest, envelope.withheld)


class _Version(msgspec.Struct):
    v: int = 0


def _unreadable(session: str, row: EventRow, fault: Exception) -> Exception:
    """A newer version may have other fields, so the version is looked at alone."""
    try:
        version = msgspec.json.decode(row.envelope, type=_Version).v
    except (msgspec.MsgspecError, UnicodeDecodeError):
        version = 0
    if version > VERSION:
        return NewerLogError(session, row.seq, f"has version {version}")
    return DamagedLogError(session, row.seq, f"its envelope cannot be read: {fault}")


def _read_envelope(session: str, row: EventRow) -> Envelope:
    try:
        envelope = _envelope.decode(row.envelope)
    except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise _unreadable(session, row, fault) from None
    if envelope.v > VERSION:
        raise NewerLogError(session, row.seq, f"has version {envelope.v}")
    return envelope


def _read_data(session: str, envelope: Envelope) -> Data:
    decoder = _DECODERS.get(envelope.type)
    if decoder is None:
        if envelope.ignorable:
            return records.Unknown(envelope.type)
        raise NewerLogError(session, envelope.seq, f'is of the unknown type "{envelope.type}"')
    try:
        return decoder.decode(envelope.data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise DamagedLogError(session, envelope.seq, f"its data cannot be read: {fault}") from None
