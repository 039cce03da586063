"""How events look on disk: the envelope, what stands in it by type, and what the blobs behind it hold.

Decoding validates: a record that is read has the fields and types that are written here, and no others. What is
stored is hashed as stored, so none of this is ever encoded a second time.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias, Union, get_args

import msgspec

from foreword.errors import shown
from foreword.jsonvalue import MAX_INTEGER

__all__ = ["CONTENTS", "DATA_TYPES", "TREES", "VERSION", "WHOLE_ENVELOPE", "Data", "Envelope", "why_invalid"]

VERSION: Final = 1
"""``v``: the version of the envelope. A reader refuses newer ones."""

Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_INTEGER)]
Ordinal: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MAX_INTEGER)]
Hex: TypeAlias = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """What all that is stored has in common."""


class Envelope(Record, frozen=True):
    """An event as stored: metadata in ``data``, all content in blobs behind ``refs``."""

    v: int
    seq: Natural
    time: int  # milliseconds since 1970
    epoch: Natural  # of the claimant that wrote it
    type: str
    data: msgspec.Raw
    refs: dict[str, Hex]  # digests of blobs by what they are to the event
    ignorable: bool = False  # a reader that does not know the type may pass over it
    withheld: tuple[str, ...] = ()  # of the refs those whose content was not stored, or not all of it


# -- data, by type of event --------------------------------------------------------------------------------------------


class Parent(Record, frozen=True):
    """Where a fork left its parent."""

    session: str
    events: Natural


class SessionStartData(Record, frozen=True):
    """``session/start``; refs: ``label/NAME`` for each label."""

    id: str
    cwd: str | None = None
    parent: Parent | None = None


class TurnStartData(Record, frozen=True):
    """``turn/start``."""

    turn: Ordinal


class TurnEndData(Record, frozen=True):
    """``turn/end``; refs: ``detail`` if there is one."""

    turn: Ordinal
    reason: Literal["completed", "blocked", "max-tokens", "aborted", "error", "interrupted"]
    code: str | None = None


class Resized(Record, frozen=True, array_like=True):
    """A text behind a trace whose spans have other sizes than its blob says; see `foreword.session.resized`."""

    text: Natural  # its number: sections first, then contexts
    sizes: tuple[Natural, ...]  # of the spans that have one in the blob


class StepStartData(Record, frozen=True):
    """``step/start``; refs: ``trace`` if there is one."""

    turn: Ordinal
    step: Ordinal
    resized: tuple[Resized, ...] = ()  # what differs from the trace


class StepEndData(Record, frozen=True):
    """``step/end``."""

    turn: Ordinal
    step: Ordinal


class SourceData(Record, frozen=True):
    """Who wrote a user-role message; the parts of a snapshot are in its blob."""

    kind: Name
    name: str


class UserMessageData(Record, frozen=True):
    """``user/message``; refs: ``message``."""

    source: SourceData | None = None


class AssistantMessageData(Record, frozen=True):
    """``assistant/message``; refs: ``message``."""

    turn: Ordinal
    step: Ordinal
    calls: tuple[tuple[str, str], ...] = ()  # id and name of each tool call
    empty: bool = False  # it says nothing and calls nothing, so it stays out of the history
    interrupted: bool = False


class ToolCallData(Record, frozen=True):
    """``tool/call``; refs: ``message`` if the arguments are those of a call in that answer, else ``arguments``."""

    turn: Ordinal
    step: Ordinal
    id: str
    name: str
    asked: Natural | None = None  # the position of the call in ``message``
    sensitive: bool = False  # the arguments


class ToolResultData(Record, frozen=True):
    """``tool/result``; refs: ``message``."""

    turn: Ordinal
    step: Ordinal
    id: str  # of the call
    code: str | None = None


class HistoryReplacedData(Record, frozen=True):
    """``history/replaced``; refs: ``message``."""

    first: Natural
    last: Natural
    role: Literal["user", "assistant", "tool"]
    calls: tuple[
        str, ...
    ] = ()  # of an assistant message, the ids of its tool calls; of a tool message, the one it answers


class RequestHeaderData(Record, frozen=True):
    """``request/header``; refs: ``header``, the root of its tree."""

    reason: Literal["initial", "resume", "change"]
    drift: tuple[Literal["config", "sections", "tools"], ...] = ()


class RequestAttemptData(Record, frozen=True):
    """``request/attempt``; refs: ``body`` if there is one."""

    turn: Ordinal
    step: Ordinal
    attempt: Ordinal
    header: Hex
    history: Hex
    request: Hex
    adapter: str | None = None
    version: str | None = None


class UsageData(Record, frozen=True):
    """What an attempt cost, in tokens."""

    input: Natural
    output: Natural
    cached: Natural | None = None
    written: Natural | None = None


class FailureData(Record, frozen=True):
    """Why an attempt failed; the words are in the blob ``failure``."""

    code: str
    status: Natural | None = None
    transient: bool = False
    retry_after: float | None = None


class TimingsData(Record, frozen=True):
    """Milliseconds."""

    total: Natural
    first_chunk: Natural | None = None


class RequestOutcomeData(Record, frozen=True):
    """``request/outcome``; refs: ``failure`` if it failed."""

    turn: Ordinal
    step: Ordinal
    attempt: Ordinal
    finish: Literal["stop", "tool-calls", "max-tokens", "error", "aborted"]
    usage: UsageData | None = None
    error: FailureData | None = None
    timings: TimingsData | None = None


class ContentErasedData(Record, frozen=True):
    """``content/erased``."""

    blobs: tuple[Hex, ...]


class NoteData(Record, frozen=True):
    """``note``; refs: ``data``."""

    name: Name


class Unknown(Record, frozen=True):
    """An event of a newer version that may be passed over."""

    type: str


Data: TypeAlias = (
    SessionStartData
    | TurnStartData
    | TurnEndData
    | StepStartData
    | StepEndData
    | UserMessageData
    | AssistantMessageData
    | ToolCallData
    | ToolResultData
    | HistoryReplacedData
    | RequestHeaderData
    | RequestAttemptData
    | RequestOutcomeData
    | ContentErasedData
    | NoteData
    | Unknown
)

DATA_TYPES: Final[dict[str, type[Data]]] = {
    "session/start": SessionStartData,
    "turn/start": TurnStartData,
    "turn/end": TurnEndData,
    "step/start": StepStartData,
    "step/end": StepEndData,
    "user/message": UserMessageData,
    "assistant/message": AssistantMessageData,
    "tool/call": ToolCallData,
    "tool/result": ToolResultData,
    "history/replaced": HistoryReplacedData,
    "request/header": RequestHeaderData,
    "request/attempt": RequestAttemptData,
    "request/outcome": RequestOutcomeData,
    "content/erased": ContentErasedData,
    "note": NoteData,
}


def why_invalid(type_: str, fault: msgspec.MsgspecError) -> str:
    """Why data of a type is invalid, as whoever made the event reads it: which field, and what it may be.

    Args:
        type_: of the event.
        fault: what the decoder says of its data, or of its content.
    """
    what, _, path = str(fault).removesuffix("`").partition(" - at `$.")
    if not path:
        return str(fault)
    if not what.startswith(_NO_SUCH_VALUE):
        return f"its {path} is wrong: {what[0].lower()}{what[1:].replace('`', '')}"
    value = what.removeprefix(_NO_SUCH_VALUE).strip("'")
    known = _known_values(DATA_TYPES[type_], path.partition("[")[0])
    return f'its {path} is "{shown(value)}"; it is one of {", ".join(known)}'


_NO_SUCH_VALUE: Final = "Invalid enum value "


def _known_values(data: type[Data], name: str) -> tuple[str, ...]:
    """The values that a field may have, or each of its items."""
    [type_] = [field.type for field in msgspec.structs.fields(data) if field.name == name]
    values: tuple[Any, ...] = get_args(type_)
    return values if isinstance(values[0], str) else get_args(values[0])


def _whole(type_: str, data: type[Data]) -> Any:
    """An envelope of one type, its data in their shape: what most events are read by, in one go."""
    fields = [
        (field.name, field.type, field.default) for field in msgspec.structs.fields(Envelope) if not field.required
    ]
    needed = [("v", int), ("seq", Natural), ("time", int), ("epoch", Natural), ("data", data), ("refs", dict[str, Hex])]
    name = f"{data.__name__}Envelope"
    return msgspec.defstruct(
        name, [*needed, *fields], frozen=True, gc=False, forbid_unknown_fields=True, tag_field="type", tag=type_
    )


WHOLE_ENVELOPE: Final[Any] = Union[tuple(_whole(*each) for each in DATA_TYPES.items())]  # noqa: UP007 - of a tuple
"""An envelope with its data, of any known type."""


# -- contents of blobs -------------------------------------------------------------------------------------------------


class PartContent(Record, frozen=True):
    """A runtime context in a snapshot: where its text stands in that of the message, or else the text."""

    name: str
    at: tuple[Natural, Natural] | None = None  # start and end, in code points
    text: str | None = None
    sensitive: bool = False


class UserContent(Record, frozen=True, tag_field="role", tag="user"):
    """A user-role message."""

    content: str
    parts: tuple[PartContent, ...] = ()


class CallContent(Record, frozen=True):
    """A tool call; the arguments as the model wrote them."""

    id: str
    name: str
    arguments: str
    sensitive: bool = False  # the arguments


class AssistantContent(Record, frozen=True, tag_field="role", tag="assistant"):
    """A model's answer."""

    content: str
    tool_calls: tuple[CallContent, ...] = ()


class ToolContent(Record, frozen=True, tag_field="role", tag="tool"):
    """A tool's answer."""

    call_id: str
    name: str
    content: str
    is_error: bool = False
    sensitive: bool = False


MessageContent: TypeAlias = UserContent | AssistantContent | ToolContent


class ConfigContent(Record, frozen=True):
    """The configuration in a header."""

    provider: Name
    model: Name
    settings: dict[str, Any]


class ToolSchemaContent(Record, frozen=True):
    """A tool in a header."""

    name: str
    description: str
    parameters: dict[str, Any]


class StableContent(Record, frozen=True):
    """How much of a header's system text, from its start, is the same in every step; there if it is not nothing."""

    head: Ordinal  # characters


CONTENTS: Final[tuple[type[Record], ...]] = (
    PartContent,
    UserContent,
    CallContent,
    AssistantContent,
    ToolContent,
    ConfigContent,
    ToolSchemaContent,
)
"""The contents that are JSON of ours, and hold what somebody said."""


TREES: Final = ("header", "trace")
"""The roles of refs that lead to the root of a tree."""


class Node(Record, frozen=True):
    """A node of a tree: the digests of what is below it, at most five."""

    k: Annotated[tuple[Hex, ...], msgspec.Meta(max_length=10)]


class Root(Record, frozen=True):
    """Lists and single blobs bound together: first the roots of the lists' trees, then the single ones."""

    k: tuple[Hex, ...]
    n: tuple[Natural, ...]  # the sizes of the lists
    p: tuple[Natural, ...] = ()  # of a header, the positions of its sensitive sections
