"""Encoding: what an event needs on disk, as data of its envelope and as contents of blobs.

`decoding` is the way back. The `ledger` gives blobs their digests and writes the envelope. What passes between the two
are structs, since one is made for each event, five times as fast as a frozen dataclass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from foreword.jsonvalue import freeze
from foreword.session import events, records
from foreword.session.blobs import utf8
from foreword.session.digests import DIGEST_SIZE
from foreword.session.masking import MASKED_ARGUMENTS, masked_content
from foreword.session.trace import StepTrace
from foreword.wire.chunks import ModelFailure, Usage
from foreword.wire.messages import AssistantMessage, ToolMessage, UserMessage

if TYPE_CHECKING:
    from foreword.session.events import ContextPart, MessageSource
    from foreword.session.header import WrittenHeader
    from foreword.session.records import Data, MessageContent
    from foreword.wire.messages import ToolCall

__all__ = ["EVENT_TYPES", "Asked", "Encoded", "Shared", "encode"]

_message: msgspec.json.Decoder[MessageContent] = msgspec.json.Decoder(records.MessageContent)
_encoder = msgspec.json.Encoder()


class Shared(msgspec.Struct, frozen=True):
    """Shared content of an event: the digest of its root, and the blobs that may be new to the store."""

    root: bytes
    blobs: Mapping[bytes, bytes]
    # What is private in it: salts and contents.
    salted: Mapping[bytes, tuple[bytes, bytes]] = MappingProxyType({})
    contents: frozenset[bytes] = frozenset()  # of the blobs, those that hold what somebody said
    sensitive: bool = False  # whether something private is in it, new or not


class Encoded(msgspec.Struct, frozen=True):
    """What an event needs on disk."""

    data: Data
    private: Mapping[str, bytes] = MappingProxyType({})  # contents by role
    shared: Mapping[str, Shared] = MappingProxyType({})
    known: Mapping[str, bytes] = MappingProxyType({})  # digests of blobs that are there already
    masks: Mapping[str, bytes] = MappingProxyType({})  # of contents with something sensitive, how they read without it


class Asked(msgspec.Struct, frozen=True):
    """The answer whose tool calls are about to run."""

    digest: bytes
    calls: Sequence[ToolCall]
    sensitive: Sequence[int] = ()  # positions of those whose arguments are not to be shown

    def position(self, call: ToolCall, *, sensitive: bool) -> int | None:
        """Which of them a call is, as it runs."""
        positions = range(len(self.calls))
        return next((at for at in positions if self.calls[at] == call and (at in self.sensitive) == sensitive), None)


def encode(event: events.Event, asked: Asked | None = None, header: WrittenHeader | None = None) -> Encoded:
    """What an event needs on disk.

    Args:
        event: which.
        asked: the last answer, so that a tool call need not keep the same arguments again.
        header: of a `HeaderWritten`, its blobs.

    Raises:
        TypeError: it is no event that can be appended, or holds something of a wrong type.
        ValueError: it holds what cannot be stored, such as a lone surrogate.
    """
    encoder = _ENCODERS.get(type(event))
    if encoder is not None:
        return encoder(event)
    if isinstance(event, events.ToolCalled):
        return _tool_called(event, asked)
    if isinstance(event, events.HeaderWritten):
        assert header is not None  # noqa: S101 - the ledger makes it
        sensitive = bool(header.header.masks)
        shared = Shared(header.digest, header.blobs, header.salted, header.contents, sensitive)
        return Encoded(records.RequestHeaderData(event.reason, event.drift), shared={"header": shared})
    raise TypeError(f"{type(event).__name__} cannot be appended")


EVENT_TYPES: Final[dict[type[Any], str]] = {
    events.SessionStart: "session/start",
    events.TurnStart: "turn/start",
    events.TurnEnd: "turn/end",
    events.StepStart: "step/start",
    events.StepEnd: "step/end",
    events.UserSaid: "user/message",
    events.AssistantSaid: "assistant/message",
    events.ToolCalled: "tool/call",
    events.ToolAnswered: "tool/result",
    events.HistoryReplaced: "history/replaced",
    events.HeaderWritten: "request/header",
    events.RequestAttempted: "request/attempt",
    events.RequestEnded: "request/outcome",
    events.ContentErased: "content/erased",
    events.Note: "note",
}
"""What events are called on disk."""

# -- messages ----------------------------------------------------------------------------------------------------------


def _user_content(message: UserMessage, source: MessageSource | None) -> records.UserContent:
    parts = () if source is None else source.parts
    return records.UserContent(message.text, tuple(_locate(part, message.text) for part in parts))


def _assistant_content(message: AssistantMessage, sensitive: Sequence[int] = ()) -> records.AssistantContent:
    calls = enumerate(message.tool_calls)
    told = [records.CallContent(each.id, each.name, each.arguments, at in sensitive) for at, each in calls]
    return records.AssistantContent(message.text, tuple(told))


def _tool_content(message: ToolMessage, *, sensitive: bool = False) -> records.ToolContent:
    return records.ToolContent(message.call_id, message.name, message.text, message.is_error, sensitive)


def _message_encoded(data: Data, content: MessageContent, *, sensitive: bool = False) -> Encoded:
    """An event with a message, and how that reads without what is sensitive in it, if anything is."""
    private = {"message": _checked(content, _message)}
    if not sensitive:
        return Encoded(data, private)
    return Encoded(data, private, masks={"message": _encoder.encode(masked_content(content))})


def _locate(part: ContextPart, text: str) -> records.PartContent:
    """A part of a snapshot: a place in the message's text instead of a second copy."""
    start = text.find(part.text) if isinstance(cast("object", text), str) else -1
    if start < 0:
        return records.PartContent(part.name, text=part.text, sensitive=part.sensitive)
    return records.PartContent(part.name, (start, start + len(part.text)), sensitive=part.sensitive)


def _checked(content: Any, decoder: msgspec.json.Decoder[Any]) -> bytes:
    """The JSON of a record that is sure to be read again."""
    body = _encoder.encode(content)
    decoder.decode(body)
    return body


# -- encoding, by type -------------------------------------------------------------------------------------------------


def _session_start(event: events.SessionStart) -> Encoded:
    parent = None if event.parent is None else records.Parent(event.parent.session, event.parent.events)
    labels = {f"label/{name}": utf8(value) for name, value in event.labels.items()}
    return Encoded(records.SessionStartData(event.id, event.cwd, parent), labels)


def _turn_end(event: events.TurnEnd) -> Encoded:
    detail = {"detail": utf8(event.detail)} if event.detail else {}
    return Encoded(records.TurnEndData(event.turn, event.reason, event.code), detail)


def _step_start(event: events.StepStart) -> Encoded:
    trace = event.trace
    if trace is None:
        return Encoded(records.StepStartData(event.turn, event.step))
    _check(trace, StepTrace)
    shared = {"trace": Shared(trace.digest, trace.blobs)}
    return Encoded(records.StepStartData(event.turn, event.step, trace.resized), shared=shared)


def _user_said(event: events.UserSaid) -> Encoded:
    _check(event.message, UserMessage)
    source = event.source
    content = _user_content(event.message, source)
    if source is None:
        return _message_encoded(records.UserMessageData(), content)
    data = records.UserMessageData(records.SourceData(source.kind, source.name))
    return _message_encoded(data, content, sensitive=any(part.sensitive for part in source.parts))


def _assistant_said(event: events.AssistantSaid) -> Encoded:
    message = event.message
    _check(message, AssistantMessage)
    calls = tuple([(call.id, call.name) for call in message.tool_calls])
    empty = not message.text and not calls
    data = records.AssistantMessageData(event.turn, event.step, calls, empty, event.interrupted)
    if event.sensitive and any(not 0 <= at < len(calls) for at in event.sensitive):
        raise ValueError(f"tool calls {event.sensitive} of it are sensitive, and it has {len(calls)}")
    return _message_encoded(data, _assistant_content(message, event.sensitive), sensitive=bool(event.sensitive))


def _tool_called(event: events.ToolCalled, asked: Asked | None) -> Encoded:
    call = event.call
    at = None if asked is None else asked.position(call, sensitive=event.sensitive)
    if asked is not None and at is not None:
        data = records.ToolCallData(event.turn, event.step, call.id, call.name, at, event.sensitive)
        return Encoded(data, known={"message": asked.digest})
    data = records.ToolCallData(event.turn, event.step, call.id, call.name, sensitive=event.sensitive)
    masks = {"arguments": MASKED_ARGUMENTS.encode()} if event.sensitive else {}
    return Encoded(data, {"arguments": utf8(call.arguments)}, masks=masks)


def _tool_answered(event: events.ToolAnswered) -> Encoded:
    _check(event.message, ToolMessage)
    data = records.ToolResultData(event.turn, event.step, event.message.call_id, event.code)
    content = _tool_content(event.message, sensitive=event.sensitive)
    return _message_encoded(data, content, sensitive=event.sensitive)


def _history_replaced(event: events.HistoryReplaced) -> Encoded:
    message = event.message
    first, last = event.first, event.last
    match message:
        case UserMessage():
            return _message_encoded(records.HistoryReplacedData(first, last, "user"), _user_content(message, None))
        case AssistantMessage():
            calls = tuple(call.id for call in message.tool_calls)
            data = records.HistoryReplacedData(first, last, "assistant", calls)
            return _message_encoded(data, _assistant_content(message))
        case ToolMessage():
            data = records.HistoryReplacedData(first, last, "tool", (message.call_id,))
            return _message_encoded(data, _tool_content(message))
        case _:  # pyright: ignore[reportUnnecessaryComparison] - callers may know no types
            raise TypeError(f"{type(message).__name__} is no message")


def _request_attempted(event: events.RequestAttempted) -> Encoded:
    numbers, body = (event.turn, event.step, event.attempt), event.body
    header, history, request = _hex(event.header), _hex(event.history), _hex(event.request)
    if body is None:
        return Encoded(records.RequestAttemptData(*numbers, header, history, request))
    _check(body, events.BodyDigest)
    if len(body.digest) != DIGEST_SIZE:
        raise ValueError(f"the digest of its body has {len(body.digest)} bytes, not {DIGEST_SIZE}; use BodyDigest.of")
    data = records.RequestAttemptData(*numbers, header, history, request, body.adapter, body.version)
    return Encoded(data, {"body": body.digest})


def _hex(digest: bytes | None) -> str:
    return "" if digest is None else bytes.hex(digest)


def _request_ended(event: events.RequestEnded) -> Encoded:
    failure, timings = event.failure, event.timings
    data = records.RequestOutcomeData(
        event.turn,
        event.step,
        event.attempt,
        event.finish,
        None if event.usage is None else _usage(event.usage),
        None if failure is None else _failure(failure),
        None if timings is None else _timings(timings),
    )
    return Encoded(data, {} if failure is None else {"failure": utf8(failure.message)})


def _timings(timings: events.Timings) -> records.TimingsData:
    _check(timings, events.Timings)
    return records.TimingsData(timings.total, timings.first_chunk)


def _usage(usage: Usage) -> records.UsageData:
    _check(usage, Usage)
    return records.UsageData(usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.written_tokens)


def _failure(failure: ModelFailure) -> records.FailureData:
    _check(failure, ModelFailure)
    freeze(failure.retry_after)  # a number that JSON has
    return records.FailureData(failure.code, failure.status, failure.transient, failure.retry_after)


def _check(held: object, kind: type) -> None:
    """See that what an event holds is of its kind: whoever writes events by hand may know no types."""
    if not isinstance(held, kind):
        raise TypeError(f"{type(held).__name__} is no {kind.__name__}")


def _note(event: events.Note) -> Encoded:
    return Encoded(records.NoteData(event.name), {"data": _encoder.encode(event.data)})


_ENCODERS: Final[dict[type[Any], Callable[[Any], Encoded]]] = {
    events.SessionStart: _session_start,
    events.TurnStart: lambda event: Encoded(records.TurnStartData(event.turn)),
    events.TurnEnd: _turn_end,
    events.StepStart: _step_start,
    events.StepEnd: lambda event: Encoded(records.StepEndData(event.turn, event.step)),
    events.UserSaid: _user_said,
    events.AssistantSaid: _assistant_said,
    events.ToolAnswered: _tool_answered,
    events.HistoryReplaced: _history_replaced,
    events.RequestAttempted: _request_attempted,
    events.RequestEnded: _request_ended,
    events.ContentErased: lambda event: Encoded(records.ContentErasedData(tuple(each.hex() for each in event.blobs))),
    events.Note: _note,
}
