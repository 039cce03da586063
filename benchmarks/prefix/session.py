"""The session: facts that change, a history that grows, and the form in which requests are compared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.workload import SIZES

__all__ = ["LOAD", "SECTIONS", "STEPS", "TASK", "Message", "Request", "assistant", "exchange", "facts", "user"]

STEPS: Final = 50
LOAD: Final = SIZES["medium"]
SECTIONS: Final = LOAD.expected(0).split("\n\n")
TOOLS: Final = json.dumps(sorted(LOAD.tool_list(), key=lambda tool: tool["name"]))
TASK: Final = "Refactor the six modules and keep the tests green."

Message = dict[str, str]


@dataclass(frozen=True, slots=True)
class Request:
    """What goes over the wire."""

    system: str
    history: Sequence[Message]
    tools: str = TOOLS

    def sent(self) -> bytes:
        """Its bytes, in the order in which providers cache them."""
        return "\n".join([self.tools, self.system, *map(json.dumps, self.history)]).encode()


def facts(step: int) -> dict[str, str]:
    """The facts before a step; the one that has just changed is number ``step % 3``."""
    hours, edits, done = (step + 2) // 3, (step + 1) // 3, step // 3
    changed = "\n".join(f" M src/module_{at:02d}.py" for at in range(1 + edits % 6))
    tasks = "\n".join(
        f"- [{'x' if at < done else ' '}] task {at:02d}: make part {at:02d} of the change and test it"
        for at in range(18)
    )
    return {
        "time": f"Current time: 2026-01-01 09:{hours:02d}",
        "git": f"Git status ({edits} edits so far):\n{changed}",
        "todo": f"Todo list:\n{tasks}",
    }


def said(step: int) -> str:
    """What the model says in a step, before it calls its tool."""
    return f"Step {step}: reading the next file. "


def arguments(step: int) -> dict[str, str]:
    return {"p0": f"src/module_{step % 6:02d}.py", "p1": f"step {step}"}


def result(step: int) -> str:
    return f"result of step {step}\n" + f"line of output {step:02d}\n" * 60


def exchange(step: int) -> list[Message]:
    """What a step adds to the history."""
    return [
        assistant(said(step), "tool_0001", arguments(step)),
        {"role": "tool", "content": result(step)},
    ]


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str, tool: str, given: object) -> Message:
    return {"role": "assistant", "content": text + json.dumps({"name": tool, "arguments": given})}
