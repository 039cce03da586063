"""The part of a session that is in memory: it takes events, gives them their bytes, and holds what is not stored yet.

Synchronous, and whole: an event is accepted or refused, and a refused one leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from foreword.errors import EventRefusedError
from foreword.session import events
from foreword.session.digests import DIGEST_SIZE, SALT_SIZE, event_digest, private_digest
from foreword.session.encoding import EVENT_TYPES, Asked, encode
from foreword.session.events import HeldSnapshot, LoggedEvent
from foreword.session.header import RequestHeader, WrittenHeader, write_header
from foreword.session.placeholders import ERASED, item_in_place
from foreword.session.records import DATA_TYPES, VERSION, Envelope, RequestAttemptData, why_invalid
from foreword.session.store.contract import Batch, BlobRow, EventRow
from foreword.session.trace import StepTrace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from foreword.session.encoding import Encoded, Shared
    from foreword.session.state import State
    from foreword.wire.messages import Message

__all__ = ["Clock", "Content", "Entropy", "Ledger"]

Clock: TypeAlias = Callable[[], int]
"""Gives the time in milliseconds since 1970."""

Entropy: TypeAlias = Callable[[int], bytes]
"""Gives so many random bytes."""

Content: TypeAlias = Literal["full", "masked", "digests"]
"""How much of what is said is stored.

``full``: all of it. ``masked``: what is sensitive is not; how it reads without that is. ``digests``: nothing of it,
only what proves it to whoever has it from elsewhere, and who contributed what.
"""


class _Attempt(RequestAttemptData, frozen=True, kw_only=True):
    """An attempt, its digests any text: the state holds them against its own, and their patterns take 2 µs."""

    header: str
    history: str
    request: str


_encode = msgspec.json.Encoder().encode
_CHECKS: Final = {
    type_: msgspec.json.Decoder(shape).decode for type_, shape in {**DATA_TYPES, "request/attempt": _Attempt}.items()
}
"""What raises if data could not be read again."""


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

    Attributes:
        logged: the events so far.
        rows: those of them that are not known to be durable, with `blobs` and `refs`.
        trace: of the last step that has one.
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
        self.rows: list[EventRow] = []
        self.blobs: list[BlobRow] = []
        self.refs: list[tuple[bytes, int]] = []
        self.trace: StepTrace | None = None
        self.known: set[bytes] = set()  # shared blobs that are stored or pending
        self._clock, self._entropy, self._content = clock, entropy, content
        self._asked: Asked | None = None
        self._lean_trace: StepTrace | None = None  # the same, as it will be read again

    def append(self, event: events.Event, *, time: int | None = None) -> LoggedEvent:
        """Take an event in.

        Args:
            event: which.
            time: when it happened, if not now; never before the last event.

        Raises:
            EventRefusedError: it does not fit here, or cannot be stored. Nothing has changed.
        """
        try:
            header = None
            if isinstance(event, events.RequestAttempted):
                event = self._filled_in(event)
            elif isinstance(event, events.HeaderWritten):
                event, header = self._written(event)
            return self._take(event, encode(event, self._asked, header), header, time)
        except msgspec.ValidationError as fault:
            raise self._refused(event, why_invalid(EVENT_TYPES[type(event)], fault)) from fault
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
                encoded = msgspec.structs.replace(encoded, private={}, known=labels)
            return self._take(start, encoded)
        except msgspec.ValidationError as fault:
            raise self._refused(start, why_invalid(EVENT_TYPES[type(start)], fault)) from fault
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
        self._asked = self.trace = None
        return logged

    def batch(self, first: int, head: bytes) -> Batch:
        """All that is pending, given how many events the store has before it, and the digest of the last of them."""
        return Batch(self.id, self.epoch, first, head, tuple(self.rows), tuple(self.blobs), tuple(self.refs))

    def written(self, batch: Batch) -> None:
        """What was pending when this was made is durable."""
        del self.rows[: len(batch.events)], self.blobs[: len(batch.blobs)], self.refs[: len(batch.refs)]

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
        type_, record, state = EVENT_TYPES[type(event)], encoded.data, self.state
        data = _encode(record)
        _CHECKS[type_](data)
        why = state.refusal(record)
        if why is not None:
            raise ValueError(why)
        seq, time = state.count, self._now() if time is None else time
        if time < state.time:
            time = state.time
        refs, blobs, withheld = self._blobs(encoded)
        hexes = {role: digest.hex() for role, digest in refs.items()} if refs else {}
        envelope = _encode(Envelope(VERSION, seq, time, self.epoch, type_, msgspec.Raw(data), hexes, withheld=withheld))
        # Whatever could fail is behind us.
        head = self.head = event_digest(self.head, envelope)
        state.apply(seq, time, record, refs, withheld)
        self.rows.append(EventRow(seq, envelope, head))
        if refs:
            self.blobs += blobs
            self.refs += [(digest, seq) for digest in refs.values()]
        logged = LoggedEvent(seq, time, self._follow(event, header, refs))
        self.logged.append(logged)
        return logged

    def _now(self) -> int:
        now = self._clock()
        if type(now) is not int:
            raise TypeError(f"the clock gives {now!r}; let it give whole milliseconds since 1970")
        return now

    def _blobs(self, encoded: Encoded) -> tuple[Mapping[str, bytes], Sequence[BlobRow], tuple[str, ...]]:
        """The refs of an event by role, the blobs that are new, and the roles of which something is not stored."""
        if not encoded.private and not encoded.shared:
            return encoded.known, (), ()
        refs = dict(encoded.known)
        rows: list[BlobRow] = []
        withheld: list[str] = []
        for role, content in encoded.private.items():
            row = self._private(content)
            refs[role] = row.digest
            if self._stores(role, encoded):
                rows.append(row)
                continue
            withheld.append(role)
            rows.append(replace(row, body=None))
            if self._content == "masked":
                rows.append(self._private(encoded.masks[role]))
                refs["masked"] = rows[-1].digest
        for role, shared in encoded.shared.items():
            refs[role] = shared.root
            if shared.root not in self.known:
                rows += self._shared(shared)
            if (self._content == "digests" and role == "header") or (self._content == "masked" and shared.sensitive):
                withheld.append(role)
        return refs, rows, tuple(withheld)

    def _stores(self, role: str, encoded: Encoded) -> bool:
        """Whether a private content is stored as it is; of a body it is only the digest."""
        if self._content == "masked":
            return role not in encoded.masks
        return self._content == "full" or role == "body"

    def _private(self, content: bytes) -> BlobRow:
        salt = self._entropy(SALT_SIZE)
        return BlobRow(private_digest(salt, content), salt, content)

    def _shared(self, shared: Shared) -> Iterator[BlobRow]:
        """The blobs of a tree that are new."""
        for digest, body in shared.blobs.items():
            if digest not in self.known:
                self.known.add(digest)
                is_withheld = self._content == "digests" and digest in shared.contents
                yield BlobRow(digest, None, None if is_withheld else body)
        for digest, (salt, body) in shared.salted.items():
            yield BlobRow(digest, salt, body if self._content == "full" else None)

    def _filled_in(self, event: events.RequestAttempted) -> events.RequestAttempted:
        """The event with what follows from the log, which a caller need not work out."""
        header, history, request = self.state.request or (bytes(DIGEST_SIZE),) * 3  # without one it is refused later
        return events.RequestAttempted(
            event.turn,
            event.step,
            event.attempt,
            event.body,
            header if event.header is None else event.header,
            history if event.history is None else event.history,
            request if event.request is None else event.request,
        )

    def _written(self, event: events.HeaderWritten) -> tuple[events.HeaderWritten, WrittenHeader]:
        """The event with what differs from before if the session was resumed, and its header in bytes."""
        last, header = self.header, event.header
        if not isinstance(header, RequestHeader):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"{type(header).__name__} is no RequestHeader")
        written = write_header(header, last, self._entropy)
        if last is not None and event.reason == "resume":
            event = replace(event, drift=header.differs_in(last.header))
        return event, written

    def _follow(self, event: events.Event, header: WrittenHeader | None, refs: Mapping[str, bytes]) -> events.Event:
        """Keep messages and header in step with the state; gives the event as it will be read again."""
        match event:
            case events.StepStart() if event.trace is not None:
                return self._lean(event, event.trace)
            case events.UserSaid() | events.ToolAnswered():
                self.messages.append(event.message)
            case events.AssistantSaid():
                self._asked = Asked(refs["message"], event.message.tool_calls, event.sensitive)
                if event.message.text or event.message.tool_calls:
                    self.messages.append(event.message)
            case events.HistoryReplaced():
                self.messages[event.first : event.last + 1] = [event.message]
            case events.HeaderWritten():
                self.header = header if header is None else replace(header, blobs={}, salted={})
            case _:
                pass
        return event

    def _lean(self, event: events.StepStart, trace: StepTrace) -> events.StepStart:
        """The event without blobs that the store has. Steps of one trace share it."""
        if trace is not self.trace and trace != self._lean_trace:
            self._lean_trace = StepTrace(trace.digest, trace.resized)
        self.trace = trace
        return events.StepStart(event.turn, event.step, self._lean_trace)

    def _refused(self, event: object, why: str) -> EventRefusedError:
        return EventRefusedError(self.id, EVENT_TYPES.get(type(event), type(event).__name__), why)
