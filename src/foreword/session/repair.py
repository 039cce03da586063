"""Repair: the boundaries and answers that a session lacks whose process died. What really happened stays as it is.

    repair(events)  ─▶  the events that close the open turn; none for a session that is closed

Pure: the same events give the same repair, and a repaired session needs none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from foreword.session import events
from foreword.wire.chunks import ModelFailure
from foreword.wire.messages import ToolMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from foreword.wire.messages import ToolCall

__all__ = ["REQUEST_OUTCOME_UNKNOWN", "TOOL_NOT_STARTED", "TOOL_OUTCOME_UNKNOWN", "repair"]

TOOL_NOT_STARTED: Final = "TOOL_NOT_STARTED"
TOOL_OUTCOME_UNKNOWN: Final = "TOOL_OUTCOME_UNKNOWN"
REQUEST_OUTCOME_UNKNOWN: Final = "REQUEST_OUTCOME_UNKNOWN"

_NOT_STARTED = "This tool call was not started: the program stopped before it. You may call the tool again."
_UNKNOWN = (
    "The program stopped while this tool call was running, so nobody knows what came of it. Call the tool again only "
    "if that changes nothing or may safely be done twice; otherwise check first what was done, or ask."
)
_PERHAPS_SENT = "the program stopped before the answer was complete; the request was perhaps sent"


@dataclass(slots=True)
class _Open:
    """What is open after some events."""

    turn: int | None = None
    step: int | None = None
    attempt: int | None = None
    calls: list[_Call] = field(default_factory=list["_Call"])  # without an answer


@dataclass(slots=True)
class _Call:
    call: ToolCall
    started: bool = False


def repair(logged: Iterable[events.LoggedEvent]) -> tuple[events.Event, ...]:
    """The events to append so that nothing is left open; they happened when the last one did.

    Args:
        logged: those of the session, at least from the start of its last turn on.
    """
    state = _Open()
    for each in logged:
        _follow(state, each.event)
    return tuple(_closers(state))


def _follow(state: _Open, event: events.Event) -> None:
    match event:
        case events.TurnStart():
            state.turn, state.calls = event.turn, []
        case events.TurnEnd():
            state.turn, state.calls = None, []
        case events.StepStart():
            state.step, state.calls = event.step, []
        case events.StepEnd():
            state.step, state.calls = None, []
        case events.RequestAttempted():
            state.attempt = event.attempt
        case events.RequestEnded():
            state.attempt = None
        case events.AssistantSaid():
            state.calls = [_Call(call) for call in event.message.tool_calls]
        case events.ToolCalled():
            _first(state.calls, event.call.id, started=False).started = True
        case events.ToolAnswered():
            state.calls.remove(_first(state.calls, event.message.call_id, started=True))
        case _:
            pass


def _first(calls: list[_Call], id: str, *, started: bool) -> _Call:
    """The call of an id that an event is about; of namesakes rather one that runs, or that does not."""
    fitting = [each for each in calls if each.call.id == id]
    return min(fitting, key=lambda each: each.started is not started)


def _closers(state: _Open) -> Iterator[events.Event]:
    if state.turn is None:
        return
    if state.step is not None:
        for each in state.calls:
            text, code = (_UNKNOWN, TOOL_OUTCOME_UNKNOWN) if each.started else (_NOT_STARTED, TOOL_NOT_STARTED)
            answer = ToolMessage(each.call.id, each.call.name, text, is_error=True)
            yield events.ToolAnswered(state.turn, state.step, answer, code)
        if state.attempt is not None:
            failure = ModelFailure(_PERHAPS_SENT, REQUEST_OUTCOME_UNKNOWN)
            yield events.RequestEnded(state.turn, state.step, state.attempt, "error", failure=failure)
        yield events.StepEnd(state.turn, state.step)
    yield events.TurnEnd(state.turn, "interrupted")
