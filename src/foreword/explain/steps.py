"""The steps of a log as subjects: each request that was about to be sent, with its history and who wrote what.

One walk over a session's events gives all of its requests; what does not change from one to the next (headers, spans,
messages) is the same object in both, so that thousands of steps can be compared. Placeholders stand for what was
erased.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from foreword.errors import UnknownAddressError
from foreword.explain.subject import UNKNOWN, PartTool, RequestMessage, Subject
from foreword.prompt.origin import ASSEMBLER
from foreword.prompt.render import SNAPSHOT_OPENER
from foreword.prompt.spans import SEPARATOR, Span, Spans
from foreword.prompt.trace import Trace
from foreword.session import Location
from foreword.session.address import parse_address
from foreword.session.blobs import BlobFault, Gone
from foreword.session.events import (
    AssistantSaid,
    HeaderWritten,
    HistoryReplaced,
    RequestAttempted,
    RequestEnded,
    StepStart,
    ToolAnswered,
    UserSaid,
)
from foreword.session.trace import StepExplanation, read_trace

if TYPE_CHECKING:
    from typing import Self

    from foreword.session.events import Event, LoggedEvent
    from foreword.session.header import RequestHeader
    from foreword.session.log import Log
    from foreword.session.reading import SessionReader
    from foreword.session.trace import StepTrace

__all__ = ["Subjects", "subject_at", "subject_before", "subjects"]


async def subject_at(log: Log, address: str) -> Subject:
    """The request behind an address.

    Args:
        log: where it is.
        address: see `foreword.session.address`.

    Raises:
        InvalidAddressError: the address is none.
        UnknownAddressError: it leads nowhere.
        DamagedLogError: the log is not what was written.
        NewerLogError: a newer version wrote the log.
    """
    location = await log.locate(address)
    async for subject in Subjects(await log.reader(location.session), location.seq):
        if subject.location is not None and subject.location.seq == location.seq:
            return replace(subject, location=location)
    raise UnknownAddressError(address, "the log changed while it was read; ask again")


async def subject_before(log: Log, address: str) -> Subject | None:
    """The request of the session before the one behind an address; None if that is the first.

    Raises:
        SessionError: as `subject_at`.
    """
    location, last = await log.locate(address), None
    async for subject in Subjects(await log.reader(location.session), location.seq):
        if subject.location is not None and subject.location.seq >= location.seq:
            break
        last = subject
    return last


async def subjects(log: Log, session: str) -> Subjects:
    """All requests of a session, in the order in which they were made.

    Args:
        log: where it is.
        session: its id, the beginning of one, or ``last``.

    Returns:
        An async iterator, which holds few of them at a time.

    Raises:
        InvalidAddressError: no session could bear that id.
        UnknownAddressError: there is no such session, or there are several.
    """
    return Subjects(await log.reader(parse_address(session).session, session))


class Subjects:
    """The requests of a session, one by one; an async iterator.

    Raises:
        SessionError: as `subject_at`.
    """

    def __init__(self, reader: SessionReader, last: int | None = None) -> None:
        """Walk a session.

        Args:
            reader: of the session.
            last: the number of the event after which no request is wanted; None for all.
        """
        self._walk, self._events, self._last = _Walk(reader), reader.events(if_erased="mark"), last
        self._over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Subject:
        while not self._over:
            done = await self._next()
            if done is not None:
                return await self._walk.subject(done)
        raise StopAsyncIteration

    async def _next(self) -> _Attempt | None:
        """Take in one more event; gives the attempt that ended with it."""
        walk = self._walk
        logged = await anext(self._events, None)
        is_past = logged is not None and self._last is not None and logged.seq > self._last and walk.open is None
        if logged is None or is_past:
            self._over = True
            return walk.open
        return walk.take(logged)


class _Attempt:
    """An attempt, with the state of the session when it was made."""

    def __init__(self, walk: _Walk, logged: LoggedEvent, event: RequestAttempted) -> None:
        self.seq, self.time, self.event = logged.seq, logged.time, event
        self.number = walk.steps
        self.header, self.trace = walk.header, walk.trace
        self.messages = tuple(walk.history)
        self.ended: RequestEnded | None = None


class _Walk:
    """Folds the events of a session into its requests."""

    def __init__(self, reader: SessionReader) -> None:
        self.reader = reader
        self.history: list[RequestMessage] = []
        self.header: RequestHeader | None = None
        self.trace: StepTrace | None = None
        self.steps = 0
        self.open: _Attempt | None = None  # an attempt whose outcome has not come yet
        self._explained: tuple[object, StepExplanation] | None = None
        self._last: Subject | None = None

    def take(self, logged: LoggedEvent) -> _Attempt | None:
        """Take the next event in; gives the attempt that ended with it, if one did."""
        event = logged.event
        if isinstance(event, RequestEnded):
            done, self.open = self.open, None
            if done is not None:
                done.ended = event
            return done
        done = self.open if isinstance(event, (RequestAttempted, StepStart)) else None
        if isinstance(event, RequestAttempted):
            self.open = _Attempt(self, logged, event)
        elif isinstance(event, StepStart):
            self.steps, self.trace, self.open = self.steps + 1, event.trace, None
        elif isinstance(event, HeaderWritten):
            self.header = event.header
        else:
            self._remember(logged.seq, event)
        return done

    def _remember(self, seq: int, event: Event) -> None:
        """What an event does to the history; the same as `foreword.session.state` does."""
        if isinstance(event, UserSaid):
            self.history.append(RequestMessage(event.message, seq, event.source))
        elif isinstance(event, ToolAnswered) or (isinstance(event, AssistantSaid) and _says_something(event)):
            self.history.append(RequestMessage(event.message, seq))
        elif isinstance(event, HistoryReplaced):
            count = event.last - event.first + 1
            self.history[event.first : event.last + 1] = [RequestMessage(event.message, seq, replaced=count)]

    async def subject(self, attempt: _Attempt) -> Subject:
        """The subject of an attempt."""
        header, event = attempt.header, attempt.event
        assert header is not None  # noqa: S101 - no attempt is logged without
        number = Location(
            self.reader.id, attempt.number, event.turn, event.step, event.attempt, event.attempt, attempt.seq
        )
        snapshot = _held(attempt.messages)
        explanation = await self._explanation(attempt, header, snapshot)
        subject = Subject(
            str(number),
            explanation.spans,
            _snapshot_spans(explanation.snapshot_spans, snapshot),
            _tools(header, explanation),
            explanation.trace,
            attempt.messages,
            header.config,
            number,
            attempt.time,
            None if attempt.ended is None else attempt.ended.usage,
        )
        return self._sharing(subject)

    def _sharing(self, subject: Subject) -> Subject:
        """The subject, with what is equal in the last one taken from there."""
        last, self._last = self._last, subject
        if last is None:
            return subject
        if last.spans is not subject.spans and last.spans == subject.spans:
            subject = replace(subject, spans=last.spans)
        if last.snapshot_spans is not subject.snapshot_spans and last.snapshot_spans == subject.snapshot_spans:
            subject = replace(subject, snapshot_spans=last.snapshot_spans)
        if last.tools == subject.tools and last.tools is not subject.tools:
            subject = replace(subject, tools=last.tools)
        self._last = subject
        return subject

    async def _explanation(
        self, attempt: _Attempt, header: RequestHeader, snapshot: RequestMessage | None
    ) -> StepExplanation:
        if attempt.trace is None:
            return _unexplained(header)
        text = "" if snapshot is None else snapshot.message.text
        asked = (attempt.trace, header, text)
        if self._explained is not None and self._explained[0] == asked:
            return self._explained[1]
        try:
            gone = Gone(erased=(await self.reader.losses()).erased)
            told = await read_trace(self.reader.blobs, *asked, gone)
        except BlobFault as fault:
            raise await self.reader.told(fault, attempt.seq) from None
        self._explained = (asked, told)
        return told


def _says_something(event: AssistantSaid) -> bool:
    return bool(event.message.text or event.message.tool_calls)


def _held(messages: tuple[RequestMessage, ...]) -> RequestMessage | None:
    """The snapshot of the runtime contexts that the model sees: the newest."""
    return next((each for each in reversed(messages) if each.is_snapshot), None)


def _tools(header: RequestHeader, explanation: StepExplanation) -> tuple[PartTool, ...]:
    origins = explanation.tool_origins
    return tuple(
        PartTool(tool, (origins[at] if at < len(origins) else None) or UNKNOWN) for at, tool in enumerate(header.tools)
    )


def _unexplained(header: RequestHeader) -> StepExplanation:
    """The explanation of a step that was logged without one: its sections are known by their places only."""
    spans: list[Span] = []
    at = 0
    for number, text in enumerate(header.sections, 1):
        if number > 1:
            spans.append(Span(at, at + len(SEPARATOR), "separator", ASSEMBLER))
            at += len(SEPARATOR)
        spans.append(Span(at, at + len(text), "literal", UNKNOWN, f"#{number}", None, None, UNKNOWN))
        at += len(text)
    return StepExplanation(Spans(spans, header.system), Spans(), (), Trace(()))


def _snapshot_spans(explained: Spans, snapshot: RequestMessage | None) -> Spans:
    """Spans of the snapshot that the model sees; from its parts where the step's trace is of another one."""
    if snapshot is None:
        return Spans()
    text = snapshot.message.text
    if explained.text == text:
        return explained
    parts = () if snapshot.source is None else snapshot.source.parts
    opener = SNAPSHOT_OPENER + SEPARATOR
    if not parts or text != opener + SEPARATOR.join(part.text for part in parts):
        return Spans([Span(0, len(text), "separator", ASSEMBLER)], text)  # it says that there are none, or was reworded
    spans = [Span(0, len(opener), "separator", ASSEMBLER)]
    at = len(opener)
    for part in parts:
        if at > len(opener):
            spans.append(Span(at, at + len(SEPARATOR), "separator", ASSEMBLER))
            at += len(SEPARATOR)
        spans.append(Span(at, at + len(part.text), "literal", UNKNOWN, part.name, None, None, UNKNOWN))
        at += len(part.text)
    return Spans(spans, text)
