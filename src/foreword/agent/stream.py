"""What a turn tells its caller while it runs: pieces of text, tool calls, steps, retries, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from foreword.session.events import TurnEndReason
    from foreword.wire.chunks import ModelFailure
    from foreword.wire.messages import ToolCall, ToolMessage

__all__ = [
    "RetryScheduled",
    "StepFinished",
    "StepStarted",
    "TextDelta",
    "ToolCallFinished",
    "ToolCallStarted",
    "TurnEvent",
    "TurnFinished",
]


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step was entered: its messages are logged, and a request follows."""

    step: int


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A further piece of the model's answer."""

    step: int
    attempt: int  # what an attempt said that failed afterwards is no part of the answer
    text: str


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """An attempt failed, and another one of the same step follows."""

    step: int
    attempt: int  # that failed
    after: float  # seconds until the next one
    failure: ModelFailure


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """A tool's body is about to run."""

    step: int
    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolCallFinished:
    """A tool has answered, or was not run; the model will read this."""

    step: int
    call: ToolCall
    message: ToolMessage
    code: str | None = None  # of an error, a stable word


@dataclass(frozen=True, slots=True)
class StepFinished:
    """A step is over, however it went."""

    step: int


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The last event of a turn. All of the turn is in the log when this comes, unless ``error`` says otherwise.

    Attributes:
        reason: ``completed``; ``blocked`` by a listener; cut by ``max-tokens``; ``aborted`` by a cancellation; or
            ``error``.
        text: what the model said last; empty if it said nothing.
        detail: who cancelled, why it was blocked, or the error's message.
        error: what failed, when the reason is ``error``.
    """

    turn: int
    reason: TurnEndReason
    text: str = ""
    detail: str = ""
    error: BaseException | None = field(default=None, compare=False)


TurnEvent: TypeAlias = (
    StepStarted | TextDelta | RetryScheduled | ToolCallStarted | ToolCallFinished | StepFinished | TurnFinished
)
