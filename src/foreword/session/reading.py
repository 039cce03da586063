"""Sessions as a store gives them back: events with their contents, and what the model sees in a state.

Whatever is read is checked on the way: envelopes against the chain, blobs against their digests. So what this module
gives is what was logged, or there is an error that names the place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

import msgspec

from foreword.errors import ContentNotStoredError, DamagedLogError, ErasedContentError
from foreword.jsonvalue import freeze
from foreword.session import records
from foreword.session.blobs import NOTHING, BlobFault, Blobs, ErasedBlob, Gone
from foreword.session.chain import Fold, Records
from foreword.session.decoding import decode, decode_marked, decode_masked, decode_message
from foreword.session.events import LoggedEvent
from foreword.session.header import read_header
from foreword.session.placeholders import item_in_place
from foreword.session.records import TREES
from foreword.session.trace import StepTrace, read_recorded_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from foreword.session.chain import Record
    from foreword.session.header import WrittenHeader
    from foreword.session.state import HistoryItem, Seen, State
    from foreword.session.store.contract import SessionRow, Store
    from foreword.session.trace import RecordedTrace
    from foreword.wire.messages import Message

__all__ = ["Events", "IfErased", "Loaded", "Losses", "SessionReader"]

IfErased: TypeAlias = Literal["raise", "mark"]
"""What becomes of a content that was erased, or not stored: an error, or a placeholder that says so."""


class Losses(NamedTuple):
    """What the events of a session say is not in the store."""

    erased: frozenset[bytes]
    withheld: frozenset[bytes]  # what was never stored; not what is so in trees


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

    __slots__ = ("_losses", "blobs", "id", "row", "store")

    def __init__(self, store: Store, row: SessionRow) -> None:
        self.store, self.row, self.id = store, row, row.id
        self.blobs = Blobs(store)
        self._losses: Losses | None = None

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
        erased = state.erased.keys() if state.count == self.row.count else (await self.losses()).erased
        gone = Gone(seen.erased, erased, state.withheld)
        labels, messages = await self._labels(state, gone), await self.messages(seen, gone)
        header = await self.header(seen, replace(gone, any=state.header_withheld))
        return Loaded(state, head, self.row.epoch, messages, header, labels)

    async def _labels(self, state: State, gone: Gone) -> dict[str, str]:
        contents = await self._read(dict.fromkeys(state.labels.values(), state.label_seq), gone)
        texts = {name: self._text(state, digest, contents[digest], gone) for name, digest in state.labels.items()}
        return cast("dict[str, str]", freeze(texts))

    async def gone(self, seen: Seen, if_erased: IfErased) -> Gone:
        """What of a request may be missing: what the model did not see, and if it is to be marked, what it saw."""
        if if_erased == "raise":
            return Gone(seen.erased)
        losses = await self.losses()
        return Gone(seen.erased, losses.erased, losses.withheld)

    async def losses(self, *, anew: bool = False) -> Losses:
        """All that the events of the session say is not there; ``anew``: up to now, not only up to the first look."""
        if self._losses is None or anew:
            erased: set[bytes] = set()
            withheld: set[bytes] = set()
            async for chunk in Records(self.store, await self.store.session(self.id) or self.row):
                for record in chunk:
                    if isinstance(record.data, records.ContentErasedData):
                        erased.update(map(bytes.fromhex, record.data.blobs))
                    withheld.update(record.refs[role] for role in record.withheld if role not in TREES)
            self._losses = Losses(frozenset(erased), frozenset(withheld))
        return self._losses

    async def messages(self, seen: Seen, gone: Gone = NOTHING) -> list[Message]:
        """The messages that the model sees."""
        return [message for message, _ in await self.conversation(seen, gone)]

    async def conversation(self, seen: Seen, gone: Gone = NOTHING) -> list[tuple[Message, Message]]:
        """The messages that the model sees, each also as it may be shown."""
        at = {digest: item.seq for item in seen.history for digest in (item.digest, seen.masked.get(item.digest))}
        contents = await self._read({digest: seq for digest, seq in at.items() if digest is not None}, gone)
        return [self._message(item, contents, seen, gone) for item in seen.history]

    async def header(self, seen: Seen, gone: Gone = NOTHING) -> WrittenHeader | None:
        """The header in force."""
        if seen.header is None:
            return None
        try:
            return await read_header(self.blobs, seen.header, gone)
        except BlobFault as fault:
            raise await self.told(fault, seen.header_seq) from None

    async def recorded_trace(self, loaded: Loaded) -> RecordedTrace | None:
        """What explains the header in force: the trace of the step that wrote it; None if there is none any more."""
        traced, header = loaded.state.header_trace, loaded.header
        if traced is None or header is None:
            return None
        try:
            return await read_recorded_trace(self.blobs, StepTrace(traced.digest, traced.resized), header.header)
        except BlobFault as fault:
            raise await self.told(fault, traced.seq) from None

    async def marked(self, seen: Seen, header: WrittenHeader) -> tuple[str, ...]:
        """In words, what the model saw of a request that is gone since, or was never stored."""
        parts = [place for digest, place in header.gone.items() if digest not in seen.erased]
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
        if if_erased == "raise":
            return await self._with_contents(chunk, Losses(frozenset(), frozenset()), if_erased, names)
        try:
            return await self._with_contents(chunk, await self.losses(), if_erased, names)
        except ErasedContentError:  # while we were reading
            return await self._with_contents(chunk, await self.losses(anew=True), if_erased, names)

    async def _with_contents(
        self, chunk: Sequence[Record], losses: Losses, if_erased: IfErased, names: dict[str, str]
    ) -> list[LoggedEvent]:
        gone = Gone(erased=losses.erased, withheld=losses.withheld)
        roles = [(record, role, digest) for record in chunk for role, digest in record.refs.items()]
        at = {digest: record.seq for record, role, digest in reversed(roles) if role not in TREES}
        contents = await self._read(at, gone)
        made: list[LoggedEvent] = []
        for record in chunk:
            behind: dict[str, Any] = {role: contents.get(digest) for role, digest in record.refs.items()}
            if "header" in behind:
                behind["header"] = await self._header_of(record, losses.erased, if_erased)
            if if_erased == "mark" and isinstance(record.data, records.AssistantMessageData):
                names.update(record.data.calls)
            made.append(LoggedEvent(record.seq, record.time, self._decoded(record, behind, gone, names)))
        return made

    async def _header_of(self, record: Record, erased: frozenset[bytes], if_erased: IfErased) -> Any:
        gone = Gone(erased=erased, any=if_erased == "mark" and "header" in record.withheld)
        try:
            return (await read_header(self.blobs, record.refs["header"], gone)).header
        except BlobFault as fault:
            raise await self.told(fault, record.seq) from None

    def _decoded(self, record: Record, contents: dict[str, Any], gone: Gone, names: dict[str, str]) -> Any:
        try:
            lost = {role: digest for role, digest in record.refs.items() if contents[role] is None}
            if lost.keys() - set(TREES):
                marks = {role: gone.mark(digest) for role, digest in lost.items()}
                return decode_marked(record.data, record.refs, contents, marks, names)
            return decode(record.data, record.refs, contents)
        except (ValueError, msgspec.MsgspecError) as fault:
            raise DamagedLogError(self.id, record.seq, f"its content cannot be read: {fault}") from None

    def _message(
        self, item: HistoryItem, contents: dict[bytes, bytes | None], seen: Seen, gone: Gone
    ) -> tuple[Message, Message]:
        body = contents[item.digest]
        masked = contents.get(seen.masked.get(item.digest, b""))
        try:
            if body is not None:
                message = decode_message(body)
                return message, decode_masked(body) or message
            in_place = decode_message(masked) if masked is not None else item_in_place(item, gone.mark(item.digest))
        except (ValueError, msgspec.MsgspecError) as fault:
            raise DamagedLogError(self.id, item.seq, f"it holds no message: {fault}", item.digest.hex()) from None
        return in_place, in_place

    def _text(self, state: State, digest: bytes, body: bytes | None, gone: Gone) -> str:
        try:
            return gone.mark(digest) if body is None else body.decode()
        except UnicodeDecodeError as fault:
            raise DamagedLogError(self.id, state.label_seq, f"a label is no text: {fault}") from None

    async def told(self, fault: BlobFault, seq: int) -> Exception:
        """A blob's fault as an error that names the event."""
        digest = fault.digest.hex()
        if isinstance(fault, ErasedBlob):
            losses = await self.losses(anew=True)  # it may have been erased while we were reading
            if fault.digest in losses.erased:
                return ErasedContentError(self.id, seq, digest)
            if fault.digest in losses.withheld or await self._withholds_in_tree(seq):
                return ContentNotStoredError(self.id, seq, digest)
        return DamagedLogError(self.id, seq, fault.why, digest)

    async def _withholds_in_tree(self, seq: int) -> bool:
        [[record]] = [chunk async for chunk in self.records(seq, seq + 1)]
        return any(role in TREES for role in record.withheld)
