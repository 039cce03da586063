"""Decoding: the event of a record and the contents behind it, the way back of `encoding`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

import msgspec

from foreword.session import events, records
from foreword.session.events import BodyDigest, ContextPart, ForkedFrom, MessageSource, Timings
from foreword.session.masking import MASKED_ARGUMENTS, masked_content
from foreword.session.placeholders import message_in_place
from foreword.session.trace import StepTrace
from foreword.wire.chunks import ModelFailure, Usage
from foreword.wire.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage

if TYPE_CHECKING:
    from foreword.session.records import Data, MessageContent

__all__ = ["decode", "decode_marked", "decode_masked", "decode_message", "message_of", "roles_fault"]

T = TypeVar("T")
Refs: TypeAlias = Mapping[str, bytes]
"""Digests of blobs, by what they are to the event."""
Contents: TypeAlias = Mapping[str, Any]
"""What is behind them: bytes, and for the role ``header`` the header itself."""

_message: msgspec.json.Decoder[MessageContent] = msgspec.json.Decoder(records.MessageContent)
_json: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def decode(data: Data, refs: Refs, contents: Contents) -> events.Event:
    """The event of a record.

    Args:
        data: of its envelope.
        refs: the digests in its envelope, by role.
        contents: what is behind them: bytes, and for the role ``header`` the header itself.

    Raises:
        ValueError: a content is not what it should be.
    """
    return _DECODERS[type(data)](data, refs, contents)


def decode_marked(
    data: Data, refs: Refs, contents: Contents, marks: Mapping[str, str], names: dict[str, str]
) -> events.Event:
    """The event of a record of which something is gone, with placeholders.

    Args:
        data: of its envelope.
        refs: the digests in its envelope, by role.
        contents: what is behind them; None for what is gone.
        marks: the text that marks it, by role.
        names: of tools, by the ids of calls that were seen before.

    Raises:
        ValueError: a content that is left is not what it should be.
    """
    masked = contents.get("masked")
    gone = next((role for role in ("message", "arguments") if role in refs and contents[role] is None), None)
    if gone is not None and masked is not None:
        contents = {**contents, gone: masked}
    if contents.get("message", b"") is not None:
        left = {role: _marked(role, content, marks.get(role, "")) for role, content in contents.items()}
        return decode(data, refs, left)
    message: Any = message_in_place(data, marks["message"], names)
    match data:
        case records.UserMessageData():
            source = None if data.source is None else MessageSource(data.source.kind, data.source.name)
            return events.UserSaid(message, source)
        case records.AssistantMessageData():
            return events.AssistantSaid(data.turn, data.step, message, data.interrupted)
        case records.ToolCallData():
            arguments = MASKED_ARGUMENTS if data.sensitive else marks["message"]
            return events.ToolCalled(data.turn, data.step, ToolCall(data.id, data.name, arguments), data.sensitive)
        case records.ToolResultData():
            return events.ToolAnswered(data.turn, data.step, message, data.code)
        case _:
            replaced = cast("records.HistoryReplacedData", data)
            return events.HistoryReplaced(replaced.first, replaced.last, message)


def _marked(role: str, content: Any, mark: str) -> Any:
    if content is not None:
        return content
    if role == "body":  # the digest of one
        return b""
    return (json.dumps(mark) if role == "data" else mark).encode()  # the data of a note are JSON


def roles_fault(data: Data, refs: Refs, withheld: Sequence[str]) -> str | None:
    """What is wrong with the roles of an envelope's refs, if anything is."""
    kind = (type(data), *refs, *withheld, getattr(data, "asked", None) is None)
    if kind not in _FITTING:
        fault = _roles_fault(data, refs, withheld)
        if fault is not None:
            return fault
        if len(_FITTING) < _MANY:  # labels have any names
            _FITTING.add(kind)
    return None


_FITTING: Final[set[tuple[object, ...]]] = set()
"""Kinds of envelopes whose roles fit: there are few, and a log has many of each."""

_MANY: Final = 1000


def _roles_fault(data: Data, refs: Refs, withheld: Sequence[str]) -> str | None:
    roles: AbstractSet[str] = refs.keys()
    if withheld:
        if not roles >= set(withheld):
            return f"it withholds {sorted(withheld)}, and refers to {sorted(roles)}"
        roles -= {"masked"}
    needed, possible = _ROLES.get(type(data), (roles, roles))
    if isinstance(data, records.ToolCallData):
        needed = possible = _ARGUMENTS if data.asked is None else _MESSAGE
    elif isinstance(data, records.SessionStartData):
        needed, possible = _NONE, frozenset(role for role in roles if role.startswith("label/"))
    if needed <= roles <= possible:
        return None
    return f"it refers to {sorted(roles)}, where {sorted(needed)} are needed"


_NONE: Final = frozenset[str]()
_MESSAGE: Final = frozenset(("message",))
_ARGUMENTS: Final = frozenset(("arguments",))
_ROLES: Final[dict[type[Data], tuple[AbstractSet[str], AbstractSet[str]]]] = {
    records.TurnStartData: (_NONE, _NONE),
    records.TurnEndData: (_NONE, frozenset(("detail",))),
    records.StepStartData: (_NONE, frozenset(("trace",))),
    records.StepEndData: (_NONE, _NONE),
    records.UserMessageData: (_MESSAGE, _MESSAGE),
    records.AssistantMessageData: (_MESSAGE, _MESSAGE),
    records.ToolResultData: (_MESSAGE, _MESSAGE),
    records.HistoryReplacedData: (_MESSAGE, _MESSAGE),
    records.RequestHeaderData: (frozenset(("header",)), frozenset(("header",))),
    records.RequestAttemptData: (_NONE, frozenset(("body",))),
    records.RequestOutcomeData: (_NONE, frozenset(("failure",))),
    records.ContentErasedData: (_NONE, _NONE),
    records.NoteData: (frozenset(("data",)), frozenset(("data",))),
}
"""Which refs an event must have, and which it may."""


# -- messages ----------------------------------------------------------------------------------------------------------


def decode_message(body: bytes) -> Message:
    """The message in a blob.

    Raises:
        ValueError: it holds none.
    """
    return message_of(_message.decode(body))


def decode_masked(body: bytes) -> Message | None:
    """The message in a blob without what is sensitive in it; None if nothing is.

    Raises:
        ValueError: it holds none.
    """
    if _SENSITIVE not in body:
        return None
    content = _message.decode(body)
    masked = masked_content(content)
    return None if masked is content else message_of(masked)


_SENSITIVE: Final = b'"sensitive":true'


def message_of(content: MessageContent) -> Message:
    """The message of a content."""
    match content:
        case records.UserContent():
            return UserMessage(content.content)
        case records.AssistantContent():
            calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in content.tool_calls)
            return AssistantMessage(content.content, calls)
        case records.ToolContent():
            return ToolMessage(content.call_id, content.name, content.content, content.is_error)


def _read_part(part: records.PartContent, text: str) -> ContextPart:
    told = text[slice(*part.at)] if part.at is not None else part.text or ""
    return ContextPart(part.name, told, part.sensitive)


# -- decoding, by type -------------------------------------------------------------------------------------------------


def _read_start(data: records.SessionStartData, refs: Refs, contents: Contents) -> events.Event:
    labels = {role.removeprefix("label/"): contents[role].decode() for role in refs}
    parent = None if data.parent is None else ForkedFrom(data.parent.session, data.parent.events)
    return events.SessionStart(data.id, labels, data.cwd, parent)


def _read_turn_end(data: records.TurnEndData, refs: Refs, contents: Contents) -> events.Event:
    return events.TurnEnd(data.turn, data.reason, contents.get("detail", b"").decode(), data.code)


def _read_step_start(data: records.StepStartData, refs: Refs, contents: Contents) -> events.Event:
    trace = refs.get("trace")
    return events.StepStart(data.turn, data.step, None if trace is None else StepTrace(trace, data.resized))


def _read_user(data: records.UserMessageData, refs: Refs, contents: Contents) -> events.Event:
    content = _expected(contents["message"], records.UserContent)
    source = None
    if data.source is not None:
        parts = tuple(_read_part(part, content.content) for part in content.parts)
        source = MessageSource(data.source.kind, data.source.name, parts)
    return events.UserSaid(UserMessage(content.content), source)


def _read_assistant(data: records.AssistantMessageData, refs: Refs, contents: Contents) -> events.Event:
    content = _expected(contents["message"], records.AssistantContent)
    sensitive = tuple(at for at, call in enumerate(content.tool_calls) if call.sensitive)
    message = cast("AssistantMessage", message_of(content))
    return events.AssistantSaid(data.turn, data.step, message, data.interrupted, sensitive)


def _read_call(data: records.ToolCallData, refs: Refs, contents: Contents) -> events.Event:
    if data.asked is None:
        call = ToolCall(data.id, data.name, contents["arguments"].decode())
        return events.ToolCalled(data.turn, data.step, call, data.sensitive)
    calls = _expected(contents["message"], records.AssistantContent).tool_calls
    if data.asked >= len(calls):
        raise ValueError(f"the answer that it refers to has no tool call {data.asked}")
    told = calls[data.asked]
    return events.ToolCalled(data.turn, data.step, ToolCall(told.id, told.name, told.arguments), told.sensitive)


def _read_result(data: records.ToolResultData, refs: Refs, contents: Contents) -> events.Event:
    content = _expected(contents["message"], records.ToolContent)
    message = cast("ToolMessage", message_of(content))
    return events.ToolAnswered(data.turn, data.step, message, data.code, content.sensitive)


def _read_replaced(data: records.HistoryReplacedData, refs: Refs, contents: Contents) -> events.Event:
    return events.HistoryReplaced(data.first, data.last, decode_message(contents["message"]))


def _read_header(data: records.RequestHeaderData, refs: Refs, contents: Contents) -> events.Event:
    return events.HeaderWritten(contents["header"], data.reason, data.drift)


def _read_attempt(data: records.RequestAttemptData, refs: Refs, contents: Contents) -> events.Event:
    body = None
    if "body" in refs:
        body = BodyDigest(data.adapter or "", data.version or "", contents["body"])
    digests = (bytes.fromhex(each) for each in (data.header, data.history, data.request))
    return events.RequestAttempted(data.turn, data.step, data.attempt, body, *digests)


def _read_outcome(data: records.RequestOutcomeData, refs: Refs, contents: Contents) -> events.Event:
    usage, error, timings = data.usage, data.error, data.timings
    failure = None
    if error is not None:
        told = contents.get("failure", b"").decode()
        failure = ModelFailure(told, error.code, error.status, error.transient, error.retry_after)
    return events.RequestEnded(
        data.turn,
        data.step,
        data.attempt,
        data.finish,
        None if usage is None else Usage(usage.input, usage.output, usage.cached, usage.written),
        failure,
        None if timings is None else Timings(timings.total, timings.first_chunk),
    )


def _expected(body: bytes, wanted: type[T]) -> T:
    content = _message.decode(body)
    if not isinstance(content, wanted):
        raise ValueError(f"it holds a {type(content).__name__}")
    return content


_DECODERS: Final[dict[type[Any], Callable[[Any, Refs, Contents], events.Event]]] = {
    records.SessionStartData: _read_start,
    records.TurnStartData: lambda data, refs, contents: events.TurnStart(data.turn),
    records.TurnEndData: _read_turn_end,
    records.StepStartData: _read_step_start,
    records.StepEndData: lambda data, refs, contents: events.StepEnd(data.turn, data.step),
    records.UserMessageData: _read_user,
    records.AssistantMessageData: _read_assistant,
    records.ToolCallData: _read_call,
    records.ToolResultData: _read_result,
    records.HistoryReplacedData: _read_replaced,
    records.RequestHeaderData: _read_header,
    records.RequestAttemptData: _read_attempt,
    records.RequestOutcomeData: _read_outcome,
    records.ContentErasedData: lambda data, refs, contents: events.ContentErased(tuple(map(bytes.fromhex, data.blobs))),
    records.NoteData: lambda data, refs, contents: events.Note(data.name, _json.decode(contents["data"])),
    records.Unknown: lambda data, refs, contents: events.UnknownEvent(data.type),
}
