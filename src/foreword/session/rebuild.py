"""Rebuilding a request: from the log alone, byte for byte, with all plugins gone.

    rebuilt = await rebuild(log, "last@12")
    rebuilt.canonical                    # what `ModelRequest.canonical` gave when it was sent

The events up to the attempt are folded; the digests that the attempt recorded must be those that come out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, cast, get_args

from foreword.errors import ContentNotStoredError, ErasedContentError, RequestMismatchError
from foreword.session.address import parse_address
from foreword.session.blobs import BlobFault, ErasedBlob, Gone
from foreword.session.events import BodyDigest, RequestAttempted, RequestEnded
from foreword.session.finding import find
from foreword.session.masking import masked_header
from foreword.session.records import RequestOutcomeData, StepEndData
from foreword.session.repair import REQUEST_OUTCOME_UNKNOWN
from foreword.session.trace import StepExplanation, read_trace
from foreword.wire.request import canonical_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from foreword.session.chain import Record
    from foreword.session.finding import Found, Location
    from foreword.session.header import RequestHeader
    from foreword.session.log import Log
    from foreword.session.reading import IfErased, SessionReader
    from foreword.session.session import Session
    from foreword.session.state import Seen
    from foreword.wire.request import ModelRequest

__all__ = ["BodyMaker", "Rebuilt", "RecordedLevel", "rebuild", "verify_request"]

RecordedLevel: TypeAlias = Literal["wire", "assembly"]
"""What a recorder (`foreword.integrations`) saw of a request; the version of its body begins with it."""


class BodyMaker(Protocol):
    """What of a model adapter is needed to make the body of a request again."""

    @property
    def name(self) -> str:
        """The provider."""
        ...

    @property
    def version(self) -> str:
        """The version of the body's format."""
        ...

    def body(self, request: ModelRequest) -> bytes:
        """The bytes that are sent for a request."""
        ...


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A request, made again from the log."""

    location: Location
    request: ModelRequest
    shown: ModelRequest  # as it may be shown: without what is sensitive in it
    header: RequestHeader
    attempted: RequestAttempted  # what was recorded before it was sent
    outcome: RequestEnded | None  # how it ended, as far as the log says
    explanation: StepExplanation | None = None  # if the step has a trace
    body: bytes | None = None  # as the adapter makes it, if one was given
    erased: tuple[str, ...] = ()  # the places that are marked, since what the model saw there is not in the log

    @property
    def canonical(self) -> bytes:
        """The canonical bytes of the request."""
        return self.request.canonical()

    @property
    def level(self) -> RecordedLevel | None:
        """What a recorder saw of the request; None if no recorder wrote it, but whoever sent it.

        ``"wire"``: the bytes that were sent. ``"assembly"``: what a framework was about to make them of.
        """
        body = self.attempted.body
        told = "" if body is None else body.version.partition("/")[0]
        return next((level for level in get_args(RecordedLevel) if level == told), None)

    @property
    def perhaps_sent(self) -> bool:
        """Whether nobody knows if it was sent: the process died before an outcome was logged."""
        ended = self.outcome
        return ended is None or (ended.failure is not None and ended.failure.code == REQUEST_OUTCOME_UNKNOWN)


async def rebuild(
    log: Log, address: str, *, adapter: BodyMaker | None = None, if_erased: IfErased = "raise"
) -> Rebuilt:
    """Make the request behind an address again.

    What was erased before the request was made is no matter: the model saw placeholders then, and they come again.

    Args:
        log: where it is.
        address: see `foreword.session.address`.
        adapter: makes the body again as well; it must be of the name and the version that were recorded.
        if_erased: ``"raise"``, or ``"mark"`` for placeholders in the place of what was erased since. `Rebuilt.erased`
            names them; what comes out is not what was sent then.

    Raises:
        InvalidAddressError: the address is none.
        UnknownAddressError: it leads nowhere.
        DamagedLogError: the log is not what was written.
        ErasedContentError: something of the request was erased since. With an adapter also if it is marked.
        ContentNotStoredError: something of it was never stored.
        NewerLogError: a newer version wrote the log.
        RequestMismatchError: the adapter is another one, or makes another body than was sent.
    """
    asked = parse_address(address)
    reader = await log.reader(asked.session, address)
    found = await find(reader, asked)
    location, seen = found.location, found.seen
    gone = await reader.gone(seen, if_erased)
    header = await reader.header(seen, replace(gone, any=if_erased == "mark" and seen.header_withheld))
    assert header is not None  # noqa: S101 - no attempt fits a state without
    conversation = await reader.conversation(seen, gone)
    request = header.header.request(tuple(message for message, _ in conversation))
    told = [record async for record in _of_attempt(reader, location)]
    attempted, outcome = await _attempt(reader, told)
    body = None if adapter is None else _body(adapter, request, attempted, location, told[0].refs)
    return Rebuilt(
        location,
        request,
        masked_header(header.header).request(tuple(masked for _, masked in conversation)),
        header.header,
        attempted,
        outcome,
        await _explanation(reader, found, header.header, request),
        body,
        await reader.marked(seen, header) if if_erased == "mark" else (),
    )


async def _attempt(reader: SessionReader, told: Sequence[Record]) -> tuple[RequestAttempted, RequestEnded | None]:
    """The event of an attempt, and that of its outcome."""
    try:
        logged = await reader.with_contents(told, "raise", {})
    except (ErasedContentError, ContentNotStoredError):  # of the words of a failure, say; the request may be whole
        logged = await reader.with_contents(told, "mark", {})
    attempted, *ended = (each.event for each in logged)
    assert isinstance(attempted, RequestAttempted)  # noqa: S101 - a location is that of an attempt
    return attempted, cast("RequestEnded", ended[0]) if ended else None


async def _of_attempt(reader: SessionReader, location: Location) -> AsyncIterator[Record]:
    """The record of an attempt, and that of its outcome."""
    async for chunk in reader.records(location.seq):
        for record in chunk:
            if record.seq == location.seq:
                yield record
            elif isinstance(record.data, RequestOutcomeData):
                yield record
                return
            elif isinstance(record.data, StepEndData):
                return


def _snapshot(seen: Seen, request: ModelRequest) -> str:
    """The snapshot of runtime contexts that the model sees; empty if it sees none."""
    pairs = zip(seen.history, request.messages, strict=True)
    return next((message.text for item, message in pairs if item.seq == seen.held), "")


async def _explanation(
    reader: SessionReader, found: Found, header: RequestHeader, request: ModelRequest
) -> StepExplanation | None:
    """Who put what there; of a trace of which something was erased, what is left."""
    if found.trace is None:
        return None
    asked = (found.trace, header, _snapshot(found.seen, request))
    try:
        try:
            return await read_trace(reader.blobs, *asked)
        except ErasedBlob:
            return await read_trace(reader.blobs, *asked, Gone(erased=(await reader.losses(anew=True)).erased))
    except BlobFault as fault:
        raise await reader.told(fault, found.location.seq) from None


def _body(
    adapter: BodyMaker,
    request: ModelRequest,
    attempted: RequestAttempted,
    location: Location,
    refs: Mapping[str, bytes],
) -> bytes:
    recorded = attempted.body
    where = f"the body of {location}"
    if recorded is None:
        raise RequestMismatchError(location.session, where, "none was recorded with that attempt")
    if not recorded.digest:
        raise ErasedContentError(location.session, location.seq, refs["body"].hex())
    if (adapter.name, adapter.version) != (recorded.adapter, recorded.version):
        made = f"it was made by adapter {recorded.adapter} {recorded.version}, not {adapter.name} {adapter.version}"
        raise RequestMismatchError(location.session, where, made)
    body = adapter.body(request)
    if BodyDigest.of(adapter.name, adapter.version, body) != recorded:
        raise RequestMismatchError(location.session, where, "the adapter makes other bytes of that request now")
    return body


# -- what is sent, against the log -------------------------------------------------------------------------------------


def verify_request(session: Session, request: ModelRequest) -> None:
    """Hold a request that is about to be sent against the one that follows from the session's events.

    Whatever a model can see must come from the log, or no step could be rebuilt. It is cheap enough for every test.

    Raises:
        RequestMismatchError: they differ; tells in what first. Or no attempt is open that it could be sent by.
    """
    if not session.attempt_open or session.header is None:
        raise RequestMismatchError(session.id, "a request", "the log holds no attempt that is without its outcome")
    logged = session.header.request(session.messages)
    if request.canonical() != logged.canonical():
        where, why = _difference(request, logged)
        raise RequestMismatchError(session.id, where, why)


def _difference(sent: ModelRequest, logged: ModelRequest) -> tuple[str, str]:
    for part in ("system", "tools", "config"):
        if canonical_json(sent.to_json()[part]) != canonical_json(logged.to_json()[part]):
            return f"the {part} of a request", "it is another one"
    told = [[message.to_json() for message in request.messages] for request in (sent, logged)]
    for at, (one, other) in enumerate(zip(*told, strict=False)):
        if one != other:
            return f"message {at} of a request", f"the log has one of role {other['role']} there"
    return "the messages of a request", f"there are {len(told[0])}, and the log has {len(told[1])}"
