"""What a running turn tells: the answer on stdout, all else on stderr; or everything as JSON, one event a line.

On a terminal the answer appears as it arrives. A pipe gets an answer only when it stands: what an attempt said that
failed afterwards is no part of it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO

from foreword.agent.stream import (
    RetryScheduled,
    StepFinished,
    StepStarted,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnFinished,
)
from foreword.cli.terminal import Screen, aside, stream_json, stream_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from foreword.agent.agent import Agent
    from foreword.agent.stream import TurnEvent

__all__ = ["JsonOutput", "Output", "TextOutput"]

_MOST: Final = 400  # characters of a tool's arguments or answer in one line, where the screen is as wide


class Output(Protocol):
    """Tells a turn."""

    def began(self, agent: Agent) -> None:
        """An agent is about to run."""
        ...

    def tell(self, event: TurnEvent) -> None:
        """Something happened."""
        ...


class TextOutput:
    """Tells a turn as text.

    Args:
        out: where the answer goes.
        hide: takes out of names and messages what nobody is to see.
    """

    def __init__(self, out: TextIO, hide: Callable[[str], str]) -> None:
        self._out, self._hide = out, hide
        self._is_live = out.isatty()
        self._width = Screen.of_stdout().width
        self._waiting: list[str] = []  # of the attempt under way, if the answer is told only when it stands
        self._attempt = 0
        self._in_line = False  # whether what was written last has no newline behind it

    def began(self, agent: Agent) -> None:
        """Nothing: what is to be said of it comes at the end."""

    def tell(self, event: TurnEvent) -> None:
        """Tell an event."""
        match event:
            case TextDelta():
                self._text(event)
            case RetryScheduled():
                self._failed_attempt(event)
            case ToolCallStarted():
                self._stand()
                self._line(f"{event.call.name} {event.call.arguments}")
            case ToolCallFinished() if event.message.is_error:
                self._line(f"{event.call.name} failed: {event.code or 'error'}: {event.message.text}")
            case StepStarted():
                self._stand()
            case TurnFinished():
                self._end(event)
            case _:
                pass

    def _text(self, event: TextDelta) -> None:
        self._attempt = event.attempt
        if self._is_live:
            self._write(event.text)
        else:
            self._waiting.append(event.text)

    def _failed_attempt(self, event: RetryScheduled) -> None:
        said = self._attempt == event.attempt and self._is_live and self._in_line
        self._waiting.clear()
        failure = event.failure
        dropped = "; what it said so far does not count" if said else ""
        again = f"trying again in {event.after:.1f} s" if event.after >= 0.05 else "trying again"
        self._line(f"attempt {event.attempt} failed ({failure.code}): {failure.message}{dropped}; {again}")

    def _end(self, event: TurnFinished) -> None:
        if event.reason == "error":
            self._waiting.clear()
        self._stand()

    def _stand(self) -> None:
        """What was said so far is the answer, or a part of it."""
        said = "".join(self._waiting)
        self._waiting.clear()
        if said:
            self._write(said)
        self._break()

    def _write(self, text: str) -> None:
        stream_text(text, self._out)
        self._in_line = not text.endswith("\n")

    def _break(self) -> None:
        if self._in_line:
            self._write("\n")

    def _line(self, text: str) -> None:
        """Something beside the answer, in one line."""
        if self._is_live:
            self._break()
        told = " ".join(self._hide(text).split())
        width = min(self._width - 2, _MOST) if sys.stderr.isatty() else _MOST
        aside(f"[{told if len(told) <= width else told[: width - 1] + '…'}]")


class JsonOutput:
    """Tells a turn as JSON: an object a line, whatever happens.

    Args:
        out: where they go.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def began(self, agent: Agent) -> None:
        """An agent is about to run."""
        model = None if agent.model is None else str(agent.model)
        told = {"session": agent.id, "agent": agent.name, "model": model}
        stream_json({"event": "session", **told}, self._out)

    def tell(self, event: TurnEvent) -> None:
        """Tell an event."""
        stream_json(_document(event), self._out)


def _document(event: TurnEvent) -> dict[str, Any]:
    match event:
        case StepStarted():
            return {"event": "step", "step": event.step}
        case TextDelta():
            return {"event": "text", "step": event.step, "attempt": event.attempt, "text": event.text}
        case RetryScheduled():
            failure = {"code": event.failure.code, "status": event.failure.status, "message": event.failure.message}
            which = {"step": event.step, "attempt": event.attempt, "after": event.after}
            return {"event": "retry", **which, "failure": failure}
        case ToolCallStarted():
            return {"event": "tool-call", "step": event.step, **event.call.to_json()}
        case ToolCallFinished():
            message = event.message
            told = {"step": event.step, "id": event.call.id, "name": event.call.name}
            return {"event": "tool-result", **told, "text": message.text, "error": message.is_error, "code": event.code}
        case StepFinished():
            return {"event": "step-end", "step": event.step}
        case TurnFinished():
            told = {"turn": event.turn, "reason": event.reason, "text": event.text, "detail": event.detail}
            return {"event": "end", **told}
