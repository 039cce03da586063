"""The part of a session that is in memory: it takes events, gives them their bytes, and holds what is not stored yet.

Synchronous, and whole: an event is accepted or refused, and a refused one leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from foreword.errors import EventRefusedError
from foreword.session import events
from foreword.session.digests import DIGEST_SIZE, SALT_SIZE, event_digest, private_digest, request_digest
from foreword.session.encoding import EVENT_TYPES, Asked, encode
from foreword.session.events import HeldSnapshot, LoggedEvent
from foreword.session.header import RequestHeader, WrittenHeader, write_header
from foreword.session.placeholders import ERASED, item_in_place
from foreword.session.records import DATA_TYPES, VERSION, Envelope
from foreword.session.store.contract import Batch, BlobRow, EventRow
from foreword.session.trace import StepTrace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from foreword.session.encoding import Encoded, Shared
    from foreword.session.state import State
    from foreword.wire.messages import Message

__all__ = ["Clock", "Content", "Entropy", "Ledger", "Pending"]

Clock: TypeAlias = Callable[[], int]
"""Gives the time in milliseconds since 1970."""

Entropy: TypeAlias = Callable[[int], bytes]
"""Gives so many random bytes."""

Content: TypeAlias = Literal["full", "masked", "digests"]
"""How much of what is said is stored.

``full``: all of it. ``masked``: what is sensitive is not; how it reads without that is. ``digests``: nothing of it,
only what proves it to whoever has it from elsewhere, and who contributed what.
"""

_encode = msgspec.json.Encoder().encode
_DECODERS: Final = {type_: msgspec.json.Decoder(shape) for type_, shape in DATA_TYPES.items()}


class Pending(NamedTuple):
    """An event that is accepted and not yet known to be durable."""

    row: EventRow
    blobs: tuple[BlobRow, ...]
    refs: tuple[tuple[bytes, int], ...]


class Ledger:
    """The events of one session as they come.

    Args:
        id: of the session.
        epoch: of the claim.
        state: where the session is.
        head: the digest of its last event, or its genesis.
        messages: the history; runs parallel to that of the state.
        header: the one in force.
        clock: tells the time; should it go back, events do not.
        entropy: makes salts.
        content: how much of it is stored.
    """

    def __init__(
        self,
        id: str,
        epoch: int,
        state: State,
        head: bytes,
        messages: list[Message],
        header: WrittenHeader | None,
        clock: Clock,
        entropy: Entropy,
        content: Content = "full",
    ) -> None:
        self.id, self.epoch, self.state, self.head = id, epoch, state, head
        self.messages, self.header = messages, header
        self.logged: list[LoggedEvent] = []
        self.pending: list[Pending] = []
        self.known: set[bytes] = set()  # shared blobs that are stored or pending
        self._clock, self._entropy, self._content = clock, entropy, content
        self._asked: Asked | None = None
        self._trace: StepTrace | None = None  # of the last step that has one, as it will be read again

    def append(self, event: events.Event, *, time: int | None = None) -> LoggedEvent:
        """Take an event in.

        Args:
            event: which.
            time: when it happened, if not now; never before the last event.

        Raises:
            EventRefusedError: it does not fit here, or cannot be stored. Nothing has changed.
        """
        try:
            header = self._written(event)
            event = self._filled_in(event)
            return self._take(event, encode(event, self._asked, header), header, time)
        except (ValueError, TypeError, OverflowError, msgspec.MsgspecError) as fault:
            raise self._refused(event, str(fault)) from fault

    def begin(self, start: events.SessionStart, *, inherit: bool = False) -> LoggedEvent:
        """Take in the first event, or a fork's first own one.

        Args:
            start: the event.
            inherit: keep the labels of the parent; those of ``start`` are the same then.

        Raises:
            EventRefusedError: it cannot be stored.
        """
        try:
            encoded = encode(start)
            if inherit:
                labels = {f"label/{name}": digest for name, digest in self.state.labels.items()}
                encoded = encoded._replace(private={}, known=labels)
            return self._take(start, encoded)
        except (ValueError, TypeError, msgspec.MsgspecError) as fault:
            raise self._refused(start, str(fault)) from fault

    def forget(self, blobs: AbstractSet[bytes]) -> LoggedEvent:
        """Log that blobs are erased, and put placeholders in the place of what they hold."""
        logged = self.append(events.ContentErased(tuple(sorted(blobs))))
        for at, item in enumerate(self.state.history):
            if item.digest in blobs:
                self.messages[at] = item_in_place(item, ERASED)
        if self.header is not None:
            self.header = self.header.without(dict.fromkeys(blobs, ERASED))
        self.known.clear()  # some of it is not in the store any more
        self._asked = None
        return logged

    def batch(self, first: int, head: bytes) -> Batch:
        """All that is pending, given how many events the store has before it, and the digest of the last of them."""
        pending = self.pending
        return Batch(
            self.id,
            self.epoch,
            first,
            head,
            tuple([each.row for each in pending]),
            tuple([blob for each in pending for blob in each.blobs]),
            tuple([ref for each in pending for ref in each.refs]),
        )

    def held_snapshot(self) -> HeldSnapshot:
        """Which snapshot the model still sees."""
        held = self.state.held
        if held is None:
            return HeldSnapshot("none" if self.state.told_contexts else "never")
        history = zip(reversed(self.state.history), reversed(self.messages), strict=True)
        return HeldSnapshot("held", next(message.text for item, message in history if item.seq == held))

    def _take(
        self, event: Any, encoded: Encoded, header: WrittenHeader | None = None, time: int | None = None
    ) -> LoggedEvent:
        type_ = EVENT_TYPES[type(event)]
        data = _encode(encoded.data)
        _DECODERS[type_].decode(data)  # so it is sure to be read again
        why = self.state.refusal(encoded.data)
        if why is not None:
            raise ValueError(why)
        seq, time = self.state.count, max(self._now() if time is None else time, self.state.time)
        refs, blobs, withheld = self._blobs(encoded)
        hexes = {role: digest.hex() for role, digest in refs.items()}
        envelope = _encode(Envelope(VERSION, seq, time, self.epoch, type_, msgspec.Raw(data), hexes, withheld=withheld))
        # Whatever could fail is behind us.
        self.head = event_digest(self.head, envelope)
        self.state.apply(seq, time, encoded.data, refs, withheld)
        pairs = tuple([(digest, seq) for digest in dict.fromkeys(refs.values())])
        self.pending.append(Pending(EventRow(seq, envelope, self.head), blobs, pairs))
        self._follow(event, header, refs)
        logged = LoggedEvent(seq, time, self._lean(event))
        self.logged.append(logged)
        return logged

    def _now(self) -> int:
        now = self._clock()
        if type(now) is not int:
            raise TypeError(f"the clock gives {now!r}; let it give whole milliseconds since 1970")
        return now

    def _blobs(self, encoded: Encoded) -> tuple[Mapping[str, bytes], tuple[BlobRow, ...], tuple[str, ...]]:
        """The refs of an event by role, the blobs that are new, and the roles of which something is not stored."""
        if not encoded.private and not encoded.shared:
            return encoded.known, (), ()
        refs = dict(encoded.known)
        rows: list[BlobRow] = []
        withheld: list[str] = []
        for role, content in encoded.private.items():
            row = self._private(content)
            refs[role] = row.digest
            masked = encoded.masks.get(role) if self._content == "masked" else None
            if masked is None and (self._content != "digests" or role == "body"):
                rows.append(row)
                continue
            withheld.append(role)
            rows.append(replace(row, body=None))
            if masked is not None:
                rows.append(self._private(masked))
                refs["masked"] = rows[-1].digest
        for role, shared in encoded.shared.items():
            refs[role] = shared.root
            rows += self._shared(shared)
            if (self._content == "digests" and role == "header") or (self._content == "masked" and shared.sensitive):
                withheld.append(role)
        return refs, tuple(rows), tuple(withheld)

    def _private(self, content: bytes) -> BlobRow:
        salt = self._entropy(SALT_SIZE)
        return BlobRow(private_digest(salt, content), salt, content)

    def _shared(self, shared: Shared) -> Iterator[BlobRow]:
        """The blobs of a tree that are new."""
        if shared.root in self.known:
            return
        for digest, body in shared.blobs.items():
            if digest not in self.known:
                self.known.add(digest)
                is_withheld = self._content == "digests" and digest in shared.contents
                yield BlobRow(digest, None, None if is_withheld else body)
        for digest, (salt, body) in shared.salted.items():
            yield BlobRow(digest, salt, body if self._content == "full" else None)

    def _filled_in(self, event: events.Event) -> events.Event:
        """The event with what follows from the log, which a caller need not work out."""
        if isinstance(event, events.HeaderWritten) and event.reason == "resume" and self.header is not None:
            return replace(event, drift=event.header.differs_in(self.header.header))
        if not isinstance(event, events.RequestAttempted):
            return event
        header = self.state.header or bytes(DIGEST_SIZE)  # without one it is refused later
        history = self.state.history_digest
        return events.RequestAttempted(
            event.turn,
            event.step,
            event.attempt,
            event.body,
            header if event.header is None else event.header,
            history if event.history is None else event.history,
            request_digest(header, history) if event.request is None else event.request,
        )

    def _written(self, event: events.Event) -> WrittenHeader | None:
        if not isinstance(event, events.HeaderWritten):
            return None
        if not isinstance(event.header, RequestHeader):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"{type(event.header).__name__} is no RequestHeader")
        return write_header(event.header, self.header, self._entropy)

    def _follow(self, event: events.Event, header: WrittenHeader | None, refs: Mapping[str, bytes]) -> None:
        """Keep messages and header in step with the state."""
        match event:
            case events.UserSaid() | events.ToolAnswered():
                self.messages.append(event.message)
            case events.AssistantSaid():
                calls = enumerate(event.message.tool_calls)
                self._asked = Asked(refs["message"], [(call, at in event.sensitive) for at, call in calls])
                if event.message.text or event.message.tool_calls:
                    self.messages.append(event.message)
            case events.HistoryReplaced():
                self.messages[event.first : event.last + 1] = [event.message]
            case events.HeaderWritten():
                self.header = header if header is None else replace(header, blobs={}, salted={})
            case _:
                pass

    def _lean(self, event: events.Event) -> events.Event:
        """The event as it will be read again: without blobs that the store has. Steps of one trace share it."""
        if not isinstance(event, events.StepStart) or event.trace is None:
            return event
        if event.trace != self._trace:
            self._trace = StepTrace(event.trace.digest, event.trace.resized)
        return events.StepStart(event.turn, event.step, self._trace)

    def _refused(self, event: object, why: str) -> EventRefusedError:
        return EventRefusedError(self.id, EVENT_TYPES.get(type(event), type(event).__name__), why)
