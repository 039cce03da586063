"""The events of an agent: where plugins take part in what it does.

    ctx.on(AGENT_PRE_STEP, guard)       # every agent's; agent.ctx.on(…) hears that agent alone

Three are waterfalls: the first listener registered is the outermost, and ``call_next()`` gives what the inner ones and
the loop would do. What is told is frozen; a listener changes something by giving another value back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from foreword.kernel.events import Event, Mode
from foreword.kernel.names import spellable
from foreword.prompt.text import described
from foreword.session.events import UserSaid

if TYPE_CHECKING:
    from foreword.agent.agent import Agent
    from foreword.prompt.context import AssembleContext, CancelToken
    from foreword.wire.chunks import ModelFailure
    from foreword.wire.request import ModelConfig

__all__ = [
    "AGENT_ERROR",
    "AGENT_PRE_STEP",
    "AGENT_REQUEST",
    "AGENT_REQUEST_ERROR",
    "AGENT_TURN_STOPPING",
    "AttemptFailed",
    "Decision",
    "Enter",
    "PreStep",
    "Reject",
    "RequestProposed",
    "Retry",
    "TurnFailed",
    "TurnStopping",
]


@dataclass(frozen=True, slots=True)
class PreStep:
    """A step is proposed: its prompt is assembled and rendered, nothing of it is logged yet."""

    agent: Agent
    turn: int
    step: int  # that it will be, if it is entered
    messages: tuple[UserSaid, ...]  # those taken from the inbox; the snapshot is in what `call_next` gives
    signal: CancelToken  # of the turn; the same in all its steps


@dataclass(frozen=True, slots=True)
class Enter:
    """Enter the step with these messages, in this order: the same, more, fewer or others.

    Raises:
        TypeError: they are no messages.
    """

    messages: tuple[UserSaid, ...]

    def __post_init__(self) -> None:
        given = cast("object", self.messages)
        if not isinstance(given, Iterable) or isinstance(given, str):
            raise TypeError(f"Enter takes a tuple of UserSaid, not {described(given)}")
        messages = tuple(cast("Iterable[object]", given))
        for each in messages:
            if not isinstance(each, UserSaid):
                raise TypeError(
                    f"each message of Enter is a UserSaid, not {described(each)}: UserSaid(UserMessage(text))"
                )
        object.__setattr__(self, "messages", messages)


@dataclass(frozen=True, slots=True)
class Reject:
    """Do not enter the step. The turn ends as ``blocked``, and the messages that were taken are gone.

    Raises:
        TypeError: the reason is no string.
        ValueError: no log could hold it.
    """

    reason: str = ""  # for the log and the caller

    def __post_init__(self) -> None:
        reason = cast("object", self.reason)
        if not isinstance(reason, str):
            raise TypeError(f"the reason of Reject is a string, not {described(reason)}")
        if not spellable(reason):
            raise ValueError(f"the reason {reason!r} of Reject holds half a surrogate pair; repair it where it is read")
        object.__setattr__(self, "reason", "".join((reason,)))  # of a subclass, what it holds


Decision: TypeAlias = Enter | Reject


@dataclass(frozen=True, slots=True)
class RequestProposed:
    """A request is about to be made; also that of each further attempt."""

    agent: Agent
    turn: int
    step: int
    attempt: int  # from 1 in its step
    context: AssembleContext  # that the step was assembled for
    signal: CancelToken


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """A model's adapter has told a failure."""

    agent: Agent
    turn: int
    step: int
    attempt: int
    config: ModelConfig  # as it was sent
    failure: ModelFailure
    signal: CancelToken


@dataclass(frozen=True, slots=True)
class Retry:
    """Make another attempt of the same step.

    Raises:
        TypeError: the wait is no number.
        ValueError: it is negative, or not finite.
    """

    after: float = 0.0  # seconds

    def __post_init__(self) -> None:
        after = cast("object", self.after)
        if not isinstance(after, int | float) or isinstance(after, bool):
            raise TypeError(f"Retry waits for a number of seconds, not for {described(after)}")
        if not 0 <= after < float("inf"):
            raise ValueError(f"Retry waits for a number of seconds from 0 up, not for {after!r}")


@dataclass(frozen=True, slots=True)
class TurnStopping:
    """A turn is about to end well."""

    agent: Agent
    turn: int
    signal: CancelToken


@dataclass(frozen=True, slots=True)
class TurnFailed:
    """A turn fails."""

    agent: Agent
    turn: int
    step: int  # the last one that was entered; 0 for none
    error: BaseException


async def _pre_step(proposed: PreStep, call_next: Callable[[], Awaitable[Decision]]) -> Decision:
    """A step is proposed.

    A listener gives `Enter` with the messages that it is to be entered with, or `Reject`. Unless somebody says
    otherwise these are the messages taken, then the runtime-context snapshot if one is due. What a listener leaves out
    is gone, but for the snapshot, which is proposed again with the next step. What it hands to ``agent.inject`` joins
    the step after this one. A listener that raises fails the turn; nothing of the step is logged then.
    """
    raise NotImplementedError


async def _request(proposed: RequestProposed, call_next: Callable[[], Awaitable[ModelConfig]]) -> ModelConfig:
    """A request is about to be made, once for each attempt.

    ``call_next()`` gives the frozen configuration: the agent's model, or the selected one. A listener gives it back, or
    another one in its place, which counts for this request alone. One that raises fails the turn.
    """
    raise NotImplementedError


async def _request_error(failed: AttemptFailed, call_next: Callable[[], Awaitable[Retry | None]]) -> Retry | None:
    """An attempt has failed at the provider.

    A listener gives `Retry` for another attempt of the same step, or None to have the turn fail. ``call_next()`` gives
    what the agent's `RetryPolicy` says. Prompt and tools of the next attempt are those of this one; the history is
    read anew, so a listener may shorten it first (`Session.replace_history`).
    """
    raise NotImplementedError


async def _turn_stopping(stopping: TurnStopping) -> None:
    """A turn is about to end because nothing more follows. What is handed to ``agent.inject`` now lets it go on."""
    raise NotImplementedError


def _error(failed: TurnFailed) -> None:
    """A turn fails; told once, before its ``turn/end`` is logged, and never for one that was cancelled.

    A listener that raises is logged, and disturbs nobody.
    """
    raise NotImplementedError


def _agent_of(told: Any, *_: object) -> Agent:
    """The agent."""
    agent: Agent = told.agent
    return agent


AGENT_PRE_STEP = Event("agent/pre-step", Mode.WATERFALL, _pre_step, subject=_agent_of)
AGENT_REQUEST = Event("agent/request", Mode.WATERFALL, _request, subject=_agent_of)
AGENT_REQUEST_ERROR = Event("agent/request-error", Mode.WATERFALL, _request_error, subject=_agent_of)
AGENT_TURN_STOPPING = Event("agent/turn-stopping", Mode.SERIAL, _turn_stopping, subject=_agent_of)
AGENT_ERROR = Event("agent/error", Mode.EMIT, _error, subject=_agent_of, on_error="log")
