"""What a session logs: one frozen value per type of event.

An agent appends them (`Session.append`), a reader gets them back equal (`Session.read`). How they look on disk is
`records`; which of them may follow which is `state`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from foreword.jsonvalue import freeze

if TYPE_CHECKING:
    from foreword.jsonvalue import JsonValue
    from foreword.session.header import RequestHeader
    from foreword.session.trace import StepTrace
    from foreword.wire.chunks import FinishKind, ModelFailure, Usage
    from foreword.wire.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage

__all__ = [
    "RUNTIME_CONTEXT",
    "AssistantSaid",
    "BodyDigest",
    "ContentErased",
    "ContextPart",
    "Event",
    "ForkedFrom",
    "HeaderPart",
    "HeaderReason",
    "HeaderWritten",
    "HeldSnapshot",
    "HistoryReplaced",
    "LoggedEvent",
    "MessageSource",
    "Note",
    "RequestAttempted",
    "RequestEnded",
    "SessionStart",
    "StepEnd",
    "StepStart",
    "Timings",
    "ToolAnswered",
    "ToolCalled",
    "TurnEnd",
    "TurnEndReason",
    "TurnStart",
    "UnknownEvent",
    "UserSaid",
]

RUNTIME_CONTEXT: Final = "runtime-context"
"""The kind of a message source that only the loop writes: the message is a snapshot of the runtime contexts."""

TurnEndReason: TypeAlias = Literal["completed", "blocked", "max-tokens", "aborted", "error", "interrupted"]
HeaderReason: TypeAlias = Literal["initial", "resume", "change"]
"""Why a header is written: the session's first, a new agent object's first, or it differs from the last one."""
HeaderPart: TypeAlias = Literal["config", "sections", "tools"]


# -- boundaries --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ForkedFrom:
    """Where a forked session left its parent."""

    session: str
    events: int  # how many the two share, so the number of the first event that is the fork's own


@dataclass(frozen=True, slots=True)
class SessionStart:
    """``session/start``: the first event of a session, and in a fork the first that is its own. Written by the log."""

    id: str
    labels: Mapping[str, str] = field(default_factory=dict[str, str])  # tenant, ticket, release, …; values are private
    cwd: str | None = None
    parent: ForkedFrom | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", freeze(dict(self.labels)))


@dataclass(frozen=True, slots=True)
class TurnStart:
    """``turn/start``: a prompt from outside arrived. Turns are numbered from 1 over the life of the log."""

    turn: int


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """``turn/end``: nothing more follows from that prompt."""

    turn: int
    reason: TurnEndReason
    detail: str = ""  # the error's message, or what cancelled the turn; private
    code: str | None = None  # the kind of the error


@dataclass(frozen=True, slots=True)
class StepStart:
    """``step/start``: one logical request, and the tool calls it asks for. Steps are numbered from 1 in their turn."""

    turn: int
    step: int
    trace: StepTrace | None = None  # who put what into the prompt; made by `step_trace`


@dataclass(frozen=True, slots=True)
class StepEnd:
    """``step/end``: the step is over, however it went."""

    turn: int
    step: int


# -- messages ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ContextPart:
    """One runtime context in a snapshot."""

    name: str
    text: str
    sensitive: bool = False  # not to be shown to whoever looks on


@dataclass(frozen=True, slots=True)
class MessageSource:
    """Who wrote a user-role message, if it was not the user."""

    kind: str  # `RUNTIME_CONTEXT` is the loop's own
    name: str  # the plugin, say
    parts: tuple[ContextPart, ...] = ()  # of a snapshot, its contexts


@dataclass(frozen=True, slots=True)
class HeldSnapshot:
    """Which snapshot of the runtime contexts the model still sees. It follows from the log, so a resume repeats none.

    ``never``: there was none. ``none``: there was one, and a compaction took it. ``held``: this text is in the history.
    """

    state: Literal["never", "none", "held"]
    text: str | None = None  # of the message, if it is held


@dataclass(frozen=True, slots=True)
class UserSaid:
    """``user/message``: a user-role message joins the history."""

    message: UserMessage
    source: MessageSource | None = None


@dataclass(frozen=True, slots=True)
class AssistantSaid:
    """``assistant/message``: the model's answer. It joins the history unless it is empty."""

    turn: int
    step: int
    message: AssistantMessage
    interrupted: bool = False  # cut by a cancellation: what had arrived of it
    sensitive: tuple[int, ...] = ()  # positions of the tool calls whose arguments are not to be shown


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """``tool/call``: a tool's body is about to run. To be flushed before it does."""

    turn: int
    step: int
    call: ToolCall  # with the arguments as they are passed on, which may differ from what the model wrote
    sensitive: bool = False  # its arguments are not to be shown


@dataclass(frozen=True, slots=True)
class ToolAnswered:
    """``tool/result``: the answer to a tool call joins the history."""

    turn: int
    step: int
    message: ToolMessage
    code: str | None = None  # of an error, a stable word
    sensitive: bool = False  # not to be shown


@dataclass(frozen=True, slots=True)
class HistoryReplaced:
    """``history/replaced``: one message takes the place of a stretch of the history (compaction)."""

    first: int  # positions in the history, from 0, both included
    last: int
    message: Message


# -- requests ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeaderWritten:
    """``request/header``: all of the requests from here on that is not history."""

    header: RequestHeader
    reason: HeaderReason
    drift: tuple[HeaderPart, ...] = ()  # of a resumed session, what differs from before; the session fills it in


@dataclass(frozen=True, slots=True)
class BodyDigest:
    """The digest of the body that an adapter sends, and what is needed to make that body again."""

    adapter: str
    version: str  # of the adapter's format
    digest: bytes  # 32 bytes; private, since a body could be guessed from it; none if it was erased

    @classmethod
    def of(cls, adapter: str, version: str, body: bytes) -> BodyDigest:
        """The digest of these bytes."""
        from foreword.session.digests import body_digest

        return cls(adapter, version, body_digest(body))


@dataclass(frozen=True, slots=True)
class RequestAttempted:
    """``request/attempt``: a request is about to be sent. To be flushed before it is.

    The three digests say which request. The session fills them in; what a caller gives there must agree.
    """

    turn: int
    step: int
    attempt: int  # from 1 in its step
    body: BodyDigest | None = None
    header: bytes | None = None
    history: bytes | None = None
    request: bytes | None = None  # over the other two


@dataclass(frozen=True, slots=True)
class Timings:
    """How long an attempt took, in whole milliseconds."""

    total: int
    first_chunk: int | None = None


@dataclass(frozen=True, slots=True)
class RequestEnded:
    """``request/outcome``: how an attempt ended. One without it was *perhaps sent*: its process died."""

    turn: int
    step: int
    attempt: int
    finish: FinishKind
    usage: Usage | None = None
    failure: ModelFailure | None = None  # its message is private
    timings: Timings | None = None


# -- the rest ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ContentErased:
    """``content/erased``: these blobs were emptied on purpose."""

    blobs: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """``note``: something that somebody wants to find in the log. The model never sees it; the data is private."""

    name: str
    data: JsonValue = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", freeze(self.data))


@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """An event of a newer version, marked as one that may be ignored. It can be read, not appended."""

    type: str


Event: TypeAlias = (
    SessionStart
    | TurnStart
    | TurnEnd
    | StepStart
    | StepEnd
    | UserSaid
    | AssistantSaid
    | ToolCalled
    | ToolAnswered
    | HistoryReplaced
    | HeaderWritten
    | RequestAttempted
    | RequestEnded
    | ContentErased
    | Note
    | UnknownEvent
)


EVENTS_OF_THE_LOG: Final = (SessionStart, ContentErased, UnknownEvent)
"""What no caller appends."""


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event at its place in the log."""

    seq: int  # from 0, without gaps
    time: int  # milliseconds since 1970; never less than that of the event before
    event: Event
