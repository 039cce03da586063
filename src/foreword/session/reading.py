"""Sessions as a store gives them back: events with their contents, and what the model sees in a state.

Whatever is read is checked on the way: envelopes against the chain, blobs against their digests. So what this module
gives is what was logged, or there is an error that names the place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

import msgspec

from foreword.errors import DamagedLogError, ErasedContentError
from foreword.jsonvalue import freeze
from foreword.session import records
from foreword.session.blobs import NOTHING, BlobFault, Blobs, ErasedBlob, Gone
from foreword.session.chain import Fold, Records
from foreword.session.decoding import decode, decode_erased, decode_message
from foreword.session.events import LoggedEvent
from foreword.session.header import read_header
from foreword.session.placeholders import ERASED, erased_history_item

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from foreword.session.chain import Record
    from foreword.session.header import WrittenHeader
    from foreword.session.state import HistoryItem, Seen, State
    from foreword.session.store.contract import SessionRow, Store
    from foreword.wire.messages import Message

__all__ = ["TREES", "Events", "IfErased", "Loaded", "SessionReader"]

IfErased: TypeAlias = Literal["raise", "mark"]
"""What becomes of a content that was erased: an error, or a placeholder that says so."""

TREES: Final = ("header", "trace")
"""The roles of refs that lead to the root of a tree."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A session, or its beginning, as it was read: its state, and what the model sees of it."""

    state: State
    head: bytes
    epoch: int
    messages: list[Message]
    header: WrittenHeader | None
    labels: dict[str, str]


class Events:
    """The events of a session with their contents, in flat memory; an async iterator.

    Raises:
        DamagedLogError: one of them is missing, or is not what was logged.
        ErasedContentError: a content was erased.
        NewerLogError: one of them can only be read by a newer version.
    """

    __slots__ = ("_at_hand", "_if_erased", "_more", "_names", "_reader", "_records")

    def __init__(
        self, reader: SessionReader, records: Records, if_erased: IfErased, more: Sequence[LoggedEvent] = ()
    ) -> None:
        self._reader, self._records = reader, records
        self._if_erased: IfErased = if_erased
        self._names: dict[str, str] = {}  # of tools, by the ids of calls
        self._at_hand: list[LoggedEvent] = []  # the next one last
        self._more = more  # that come when those of the store are through

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> LoggedEvent:
        if not self._at_hand:
            try:
                chunk = await anext(self._records)
                self._at_hand = [*reversed(await self._reader.with_contents(chunk, self._if_erased, self._names))]
            except StopAsyncIteration:
                if not self._more:
                    raise
                self._at_hand, self._more = [*reversed(self._more)], ()
        return self._at_hand.pop()


class SessionReader:
    """Reads one session.

    Args:
        store: where it is.
        row: as the store knows it.
    """

    __slots__ = ("_erased", "blobs", "id", "row", "store")

    def __init__(self, store: Store, row: SessionRow) -> None:
        self.store, self.row, self.id = store, row, row.id
        self.blobs = Blobs(store)
        self._erased: frozenset[bytes] | None = None

    def records(self, first: int = 0, stop: int | None = None) -> Records:
        """The records from number ``first`` up to, not with, ``stop``."""
        return Records(self.store, self.row, first, stop)

    def fold(self, stop: int | None = None, *, each: Callable[[State, Record], None] | None = None) -> Fold:
        """The records from the first on, and the state that they lead to."""
        return Fold(self.store, self.row, stop, each)

    def events(self, first: int = 0, stop: int | None = None, *, if_erased: IfErased = "raise") -> Events:
        """The events from number ``first`` up to, not with, ``stop``."""
        return Events(self, self.records(first, stop), if_erased)

    async def load(self, stop: int | None = None) -> Loaded:
        """Where the session is, and what the model sees of it: as a whole, or after its first ``stop`` events.

        Placeholders stand for what was erased, by whichever of its events.
        """
        fold = self.fold(stop)
        await fold.to_its_end()
        if fold.state.count == self.row.count and fold.head != self.row.head:
            raise DamagedLogError(self.id, fold.state.count - 1, "it is not the head that the session's row names")
        return await self._loaded(fold.state, fold.head)

    async def _loaded(self, state: State, head: bytes) -> Loaded:
        """What the model sees in a state."""
        seen = state.seen()
        gone = await self.gone(seen, "raise" if state.count == self.row.count else "mark")
        labels = await self._labels(state, gone)
        messages, header = await self.messages(seen, gone), await self.header(seen, gone)
        return Loaded(state, head, self.row.epoch, messages, header, labels)

    async def _labels(self, state: State, gone: Gone) -> dict[str, str]:
        gone = Gone(gone.unseen, gone.erased | state.erased.keys())
        contents = await self._read(dict.fromkeys(state.labels.values(), state.label_seq), gone)
        texts = {name: self._text(state, contents[digest]) for name, digest in state.labels.items()}
        return cast("dict[str, str]", freeze(texts))

    async def gone(self, seen: Seen, if_erased: IfErased) -> Gone:
        """What of a request may be missing: what the model did not see, and if it is to be marked, what it saw."""
        return Gone(seen.erased, await self.erased() if if_erased == "mark" else frozenset())

    async def erased(self, *, anew: bool = False) -> frozenset[bytes]:
        """All that the events of the session say was erased; ``anew``: up to now, and not only up to the first look."""
        if self._erased is None or anew:
            row = await self.store.session(self.id) or self.row
            data = [each.data async for chunk in Records(self.store, row) for each in chunk]
            said = [each.blobs for each in data if isinstance(each, records.ContentErasedData)]
            self._erased = frozenset(bytes.fromhex(digest) for blobs in said for digest in blobs)
        return self._erased

    async def was_erased(self, digest: bytes) -> bool:
        """Whether an event says that a blob was emptied on purpose; it may have been while we read."""
        return digest in await self.erased() or digest in await self.erased(anew=True)

    async def messages(self, seen: Seen, gone: Gone = NOTHING) -> list[Message]:
        """The messages that the model sees."""
        contents = await self._read({item.digest: item.seq for item in seen.history}, gone)
        return [self._message(item, contents[item.digest]) for item in seen.history]

    async def header(self, seen: Seen, gone: Gone = NOTHING) -> WrittenHeader | None:
        """The header in force."""
        if seen.header is None:
            return None
        try:
            return await read_header(self.blobs, seen.header, gone)
        except BlobFault as fault:
            raise await self.told(fault, seen.header_seq) from None

    async def marked(self, seen: Seen, header: WrittenHeader, gone: Gone) -> tuple[str, ...]:
        """In words, what the model saw of a request that is gone since."""
        if not gone.erased:
            return ()
        parts = [place for digest, place in header.erased.items() if digest not in seen.erased]
        contents = await self.blobs.held(item.digest for item in seen.history)
        lost = [contents[item.digest] is None and item.digest not in seen.erased for item in seen.history]
        return (*parts, *(f"message {number}" for number, is_lost in enumerate(lost, 1) if is_lost))

    async def _read(self, at: dict[bytes, int], gone: Gone) -> dict[bytes, bytes | None]:
        """Contents of blobs, given an event that refers to each; None for what is gone."""
        try:
            return await self.blobs.read_what_is_left(at, gone)
        except BlobFault as fault:
            raise await self.told(fault, at[fault.digest]) from None

    async def with_contents(
        self, chunk: Sequence[Record], if_erased: IfErased, names: dict[str, str]
    ) -> list[LoggedEvent]:
        """The events of some records.

        Args:
            chunk: the records.
            if_erased: what to do about what is gone.
            names: of tools, by the ids of calls in the records before; those of these are added.
        """
        gone = Gone(erased=await self.erased()) if if_erased == "mark" else NOTHING
        roles = [(record, role, digest) for record in chunk for role, digest in record.refs.items()]
        at = {digest: record.seq for record, role, digest in reversed(roles) if role not in TREES}
        contents = await self._read(at, gone)
        made: list[LoggedEvent] = []
        for record in chunk:
            behind: dict[str, Any] = {role: contents.get(digest) for role, digest in record.refs.items()}
            if "header" in behind:
                behind["header"] = await self._header_of(record, gone)
            if if_erased == "mark" and isinstance(record.data, records.AssistantMessageData):
                names.update(record.data.calls)
            made.append(LoggedEvent(record.seq, record.time, self._decoded(record, behind, names)))
        return made

    async def _header_of(self, record: Record, gone: Gone) -> Any:
        try:
            return (await read_header(self.blobs, record.refs["header"], gone)).header
        except BlobFault as fault:
            raise await self.told(fault, record.seq) from None

    def _decoded(self, record: Record, contents: dict[str, Any], names: dict[str, str]) -> Any:
        try:
            if any(content is None and role not in TREES for role, content in contents.items()):
                return decode_erased(record.data, record.refs, contents, names)
            return decode(record.data, record.refs, contents)
        except (ValueError, msgspec.MsgspecError) as fault:
            raise DamagedLogError(self.id, record.seq, f"its content cannot be read: {fault}") from None

    def _message(self, item: HistoryItem, body: bytes | None) -> Message:
        try:
            return erased_history_item(item) if body is None else decode_message(body)
        except (ValueError, msgspec.MsgspecError) as fault:
            raise DamagedLogError(self.id, item.seq, f"it holds no message: {fault}", item.digest.hex()) from None

    def _text(self, state: State, body: bytes | None) -> str:
        try:
            return ERASED if body is None else body.decode()
        except UnicodeDecodeError as fault:
            raise DamagedLogError(self.id, state.label_seq, f"a label is no text: {fault}") from None

    async def told(self, fault: BlobFault, seq: int) -> Exception:
        """A blob's fault as an error that names the event."""
        digest = fault.digest.hex()
        if isinstance(fault, ErasedBlob) and await self.was_erased(fault.digest):
            return ErasedContentError(self.id, seq, digest)
        return DamagedLogError(self.id, seq, fault.why, digest)
