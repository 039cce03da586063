"""The steps of a log as subjects: each request that was about to be sent, with its history and who wrote what.

One walk over a session's events gives all of its requests; what does not change from one to the next (headers, spans,
messages) is the same object in both, so that thousands of steps can be compared. Placeholders stand for what was erased
or never stored; those in a header tell by a mark whether they stand for the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from foreword.errors import UnknownAddressError
from foreword.explain.kept import KeptBlobs
from foreword.explain.masking import sensitive_in
from foreword.explain.subject import UNKNOWN, PartTool, RequestMessage, Sensitive, Subject
from foreword.explain.unstored import MarkedHeader, is_lossy, marked_header
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
    Note,
    RequestAttempted,
    RequestEnded,
    StepStart,
    ToolAnswered,
    UserSaid,
)
from foreword.session.masking import masked_event
from foreword.session.trace import StepExplanation, read_trace
from foreword.wire.tool_extras import TOOL_EXTRAS, extras_at, noted_extras

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from foreword.prompt.contributions import ToolSchema
    from foreword.session.chain import Record
    from foreword.session.events import Event, LoggedEvent
    from foreword.session.header import RequestHeader
    from foreword.session.log import Log
    from foreword.session.reading import SessionReader
    from foreword.session.trace import StepTrace
    from foreword.wire.request import ModelConfig
    from foreword.wire.tool_extras import ToolExtras

__all__ = ["Request", "Subjects", "subject_at", "subject_before", "subject_pair", "subjects"]

_NOTHING: Final = Sensitive()
_LOST_EXTRAS: Final = ("what tools carry beside their schemas",)


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
    walk = Subjects(await log.reader(location.session), location.seq)
    while (request := await walk.request()) is not None:
        if request.seq == location.seq:
            return replace(await request.subject(), location=location)
    raise UnknownAddressError(address, "the log changed while it was read; ask again")


async def subject_before(log: Log, address: str) -> Subject | None:
    """The request of the session that the one behind an address is held against; None if that is the first.

    An address without an attempt means a step: what it is held against is the last attempt of the step before, or a
    retry would be like the attempt before it, and hide what the step changed. With one it is the request before.

    Raises:
        SessionError: as `subject_at`.
    """
    location = await log.locate(address)
    walk = Subjects(await log.reader(location.session), location.seq)
    is_before = _before(address, location)
    last: Request | None = None
    while (request := await walk.request()) is not None and is_before(request):
        last = request
    return None if last is None else await last.subject()


async def subject_pair(log: Log, address: str) -> tuple[Subject | None, Subject]:
    """What `subject_before` gives of an address, and the request behind it; read in one walk.

    Raises:
        SessionError: as `subject_at`.
    """
    location = await log.locate(address)
    walk = Subjects(await log.reader(location.session), location.seq)
    is_before = _before(address, location)
    last: Request | None = None
    while (request := await walk.request()) is not None:
        if request.seq == location.seq:
            before = None if last is None else await last.subject()
            return before, replace(await request.subject(), location=location)
        last = request if is_before(request) else last
    raise UnknownAddressError(address, "the log changed while it was read; ask again")


def _before(address: str, location: Location) -> Callable[[Request], bool]:
    """Whether a request is one that the request behind an address may be held against."""
    if parse_address(address).attempt is None:
        return lambda request: request.number < location.number
    return lambda request: request.seq < location.seq


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
        self._walk, self._reader, self._last = _Walk(reader), reader, last
        self._records = reader.records()
        self._at_hand: list[tuple[Record, LoggedEvent]] = []  # the next one last
        self._names: dict[str, str] = {}  # of tools, by the ids of calls
        self._over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Subject:
        request = await self.request()
        if request is None:
            raise StopAsyncIteration
        return await request.subject()

    async def request(self) -> Request | None:
        """The next one, whose subject is made only if it is asked for; None behind the last."""
        while not self._over:
            done = await self._next()
            if done is not None:
                return done
        return None

    async def _next(self) -> Request | None:
        """Take in one more event; gives the attempt that ended with it."""
        walk = self._walk
        if not self._at_hand:
            chunk = await anext(self._records, None)
            events = [] if chunk is None else await self._reader.with_contents(chunk, "mark", self._names)
            self._at_hand = [*reversed(list(zip(chunk or (), events, strict=True)))]
        record, logged = self._at_hand.pop() if self._at_hand else (None, None)
        is_past = logged is not None and self._last is not None and logged.seq > self._last and walk.open is None
        if record is None or logged is None or is_past:
            self._over = True
            return walk.open
        return walk.take(logged, await self._lost(record))

    async def _lost(self, record: Record) -> bytes | None:
        """The digest of the message that an event brings, if the log does not hold that."""
        digest = record.refs.get("message")
        if digest is None:
            return None
        losses = await self._reader.losses()
        return digest if digest in losses.erased or digest in losses.withheld else None


class Request:
    """An attempt, with the state of the session when it was made.

    Attributes:
        seq: the number of the event that says that it was made.
        time: when, in milliseconds since 1970.
        header: its configuration, system text and tools.
        messages: its history.
        tool_extras: what its tools carry beside their schemas, as far as that was noted; None if that is lost.
    """

    def __init__(self, walk: _Walk, logged: LoggedEvent, event: RequestAttempted) -> None:
        """Make one in a walk."""
        self._walk = walk
        self.seq, self.time, self.event = logged.seq, logged.time, event
        self.number = walk.steps
        self.header, self.trace, self.tool_extras = walk.header, walk.trace, walk.tool_extras
        self.messages = tuple(walk.history)
        self.ended: RequestEnded | None = None

    @property
    def location(self) -> Location:
        """Where in the log it is."""
        event = self.event
        session = self._walk.reader.id
        return Location(session, self.number, event.turn, event.step, event.attempt, event.attempt, self.seq)

    @property
    def held_parts(self) -> tuple[str, ...]:
        """The names of the runtime contexts that the model goes by."""
        held = _held(self.messages)
        return () if held is None or held.source is None else tuple(part.name for part in held.source.parts)

    async def subject(self) -> Subject:
        """All that is known about it."""
        return await self._walk.subject(self)

    async def config(self) -> ModelConfig:
        """Its model and settings; of one that the log does not hold, the marks that stand for it."""
        return (await self._walk.marked(self)).header.config


class _Walk:
    """Folds the events of a session into its requests."""

    def __init__(self, reader: SessionReader) -> None:
        self.reader, self._blobs = reader, KeptBlobs(reader.blobs)
        self.history: list[RequestMessage] = []
        self.header: RequestHeader | None = None
        self.tool_extras: tuple[ToolExtras, ...] | None = ()
        self.trace: StepTrace | None = None
        self.steps = 0
        self.open: Request | None = None  # an attempt whose outcome has not come yet
        self._explained: tuple[object, StepExplanation] | None = None
        self._last: Subject | None = None
        self._hidden: tuple[tuple[object, ...], Sensitive] | None = None
        self._marks: tuple[RequestHeader, MarkedHeader] | None = None

    def take(self, logged: LoggedEvent, lost: bytes | None) -> Request | None:
        """Take the next event in, and the digest of its message if that is lost; gives the attempt that it ended."""
        event = logged.event
        if isinstance(event, RequestEnded):
            done, self.open = self.open, None
            if done is not None:
                done.ended = event
            return done
        done = self.open if isinstance(event, (RequestAttempted, StepStart)) else None
        if isinstance(event, RequestAttempted):
            self.open = Request(self, logged, event)
        elif isinstance(event, StepStart):
            self.steps, self.trace, self.open = self.steps + 1, event.trace, None
        elif isinstance(event, HeaderWritten):
            self.header = event.header
        elif isinstance(event, Note) and event.name == TOOL_EXTRAS:
            self.tool_extras = noted_extras(event.data)
        else:
            self._remember(logged.seq, event, lost)
        return done

    def _remember(self, seq: int, event: Event, lost: bytes | None) -> None:
        """What an event does to the history; the same as `foreword.session.state` does."""
        message = _message(seq, event, lost)
        if message is not None:
            shown = masked_event(event)
            self.history.append(message if shown is event else replace(message, shown=_message(seq, shown, lost)))
        elif isinstance(event, HistoryReplaced):
            count = event.last - event.first + 1
            self.history[event.first : event.last + 1] = [
                RequestMessage(event.message, seq, replaced=count, unstored=lost)
            ]

    async def subject(self, attempt: Request) -> Subject:
        """The subject of an attempt."""
        marked, number = await self.marked(attempt), attempt.location
        header = marked.header
        snapshot = _held(attempt.messages)
        explanation = await self._explanation(attempt, header, snapshot)
        subject = Subject(
            str(number),
            explanation.spans,
            _snapshot_spans(explanation.snapshot_spans, snapshot),
            _tools(marked, explanation, attempt.tool_extras),
            explanation.trace,
            attempt.messages,
            header.config,
            number,
            attempt.time,
            None if attempt.ended is None else attempt.ended.usage,
            is_recorded=await self._is_recorded(attempt, explanation),
        )
        sensitive = self._sensitive(subject, header, snapshot)
        unstored = (*_unstored(marked, subject), *(_LOST_EXTRAS if attempt.tool_extras is None else ()))
        return self._sharing(replace(subject, sensitive=sensitive, unstored_parts=unstored))

    async def _is_recorded(self, attempt: Request, explanation: StepExplanation) -> bool:
        """Whether its trace was written without an assembly, and not emptied since."""
        if attempt.trace is None or explanation.trace.stages:
            return False
        return not (await self.reader.losses()).erased

    async def marked(self, attempt: Request) -> MarkedHeader:
        """The header of an attempt, in which what the log does not hold is marked."""
        header, digest = attempt.header, attempt.event.header
        assert header is not None  # noqa: S101 - no attempt is logged without
        assert digest is not None  # noqa: S101 - nor read without
        known = self._marks
        if known is None or known[0] is not header:
            try:
                marked = await self._with_marks(digest, header) if is_lossy(header) else MarkedHeader(header)
            except BlobFault as fault:
                raise await self.reader.told(fault, attempt.seq) from None
            known = self._marks = header, marked
        return known[1]

    async def _with_marks(self, digest: bytes, header: RequestHeader) -> MarkedHeader:
        return await marked_header(self._blobs, digest, header, (await self.reader.losses()).erased)

    def _sensitive(self, subject: Subject, header: RequestHeader, snapshot: RequestMessage | None) -> Sensitive:
        masks = {at: told for at, told in header.masks.items() if at not in header.in_place}
        if not masks and (snapshot is None or snapshot.shown is None):
            return _NOTHING
        asked = (subject.spans, header, snapshot)
        if self._hidden is None or any(one is not other for one, other in zip(self._hidden[0], asked, strict=True)):
            self._hidden = asked, sensitive_in(subject.sections, masks, snapshot, subject.text)
        return self._hidden[1]

    def _sharing(self, subject: Subject) -> Subject:
        """The subject, with what is equal in the last one taken from there."""
        last, self._last = self._last, subject
        if last is None:
            return subject
        if last.spans is not subject.spans and last.spans == subject.spans:
            subject = replace(subject, spans=last.spans)
        if last.snapshot_spans is not subject.snapshot_spans and last.snapshot_spans == subject.snapshot_spans:
            subject = replace(subject, snapshot_spans=last.snapshot_spans)
        if _same_tools(last.tools, subject.tools):
            subject = replace(subject, tools=last.tools)
        self._last = subject
        return subject

    async def _explanation(
        self, attempt: Request, header: RequestHeader, snapshot: RequestMessage | None
    ) -> StepExplanation:
        if attempt.trace is None:
            return _unexplained(header)
        text = "" if snapshot is None else snapshot.message.text
        asked = (attempt.trace, header, text)
        if self._explained is not None and self._explained[0] == asked:
            return self._explained[1]
        try:
            gone = Gone(erased=(await self.reader.losses()).erased)
            told = await read_trace(self._blobs, *asked, gone)
        except BlobFault as fault:
            raise await self.reader.told(fault, attempt.seq) from None
        self._explained = (asked, told)
        return told


def _message(seq: int, event: Event, lost: bytes | None) -> RequestMessage | None:
    """The message that an event adds to the history."""
    if isinstance(event, UserSaid):
        return RequestMessage(event.message, seq, event.source, unstored=lost)
    if isinstance(event, ToolAnswered) or (isinstance(event, AssistantSaid) and _says_something(event)):
        return RequestMessage(event.message, seq, unstored=lost)
    return None


def _unstored(marked: MarkedHeader, subject: Subject) -> tuple[str, ...]:
    """In words, what of a header the log does not hold."""
    if not (marked.sections or marked.tools or marked.config):
        return ()
    sections = [f"section {part.name}" for at, part in enumerate(subject.sections) if at in marked.sections]
    pairs = enumerate(zip(marked.header.tools, subject.tools, strict=True))
    tools = [f"tool {at + 1 if was.name == now.name else now.name}" for at, (was, now) in pairs if at in marked.tools]
    return (*sections, *tools, *(("the model and its settings",) if marked.config else ()))


def _says_something(event: AssistantSaid) -> bool:
    return bool(event.message.text or event.message.tool_calls)


def _held(messages: tuple[RequestMessage, ...]) -> RequestMessage | None:
    """The snapshot of the runtime contexts that the model sees: the newest."""
    return next((each for each in reversed(messages) if each.is_snapshot), None)


def _tools(
    marked: MarkedHeader, explanation: StepExplanation, extras: tuple[ToolExtras, ...] | None
) -> tuple[PartTool, ...]:
    origins = explanation.tool_origins
    return tuple(
        PartTool(tool, (origins[at] if at < len(origins) else None) or UNKNOWN, extras_at(extras, at))
        for at, tool in enumerate(_named(marked, explanation.trace))
    )


def _named(marked: MarkedHeader, trace: Trace) -> tuple[ToolSchema, ...]:
    """The tools of a header; those that the log does not hold under the names that the step's trace tells."""
    tools = marked.header.tools
    names = trace.stages[-1].left["tools"] if marked.tools and trace.stages else ()
    if len(names) != len(tools):
        return tools
    return tuple(replace(tool, name=names[at]) if at in marked.tools else tool for at, tool in enumerate(tools))


def _same_tools(one: tuple[PartTool, ...], other: tuple[PartTool, ...]) -> bool:
    """Equal dicts may differ in the order of their keys, so it is the bytes that count."""
    return len(one) == len(other) and all(map(_same_tool, one, other))


def _same_tool(one: PartTool, other: PartTool) -> bool:
    if one.origin != other.origin:
        return False
    return (one.schema is other.schema and one.extras is other.extras) or one.text == other.text


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
