"""What the tests of tools share."""

from __future__ import annotations

import threading
from typing import Any

from foreword import SystemPrompt, ToolDefinition, ToolRegistry

OBJECT: dict[str, Any] = {"type": "object"}


def registry(**fields: Any) -> tuple[SystemPrompt, ToolRegistry]:
    """A prompt that stands alone, and its tools."""
    prompt = SystemPrompt(**fields)
    return prompt, ToolRegistry(prompt)


def stub(name: str, answer: object = "done") -> ToolDefinition:
    """A tool without parameters that gives the same answer each time."""
    return ToolDefinition(name, f"The tool {name}.", OBJECT, lambda arguments: answer)


def names(tools: ToolRegistry, scope: Any = None) -> list[str]:
    """The names of a scope's visible tools."""
    return [schema.name for schema in tools.schemas(scope)]


class Gate:
    """Something that a plain function in a thread waits at. Opened in any case when the test has long failed."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        self.open.wait(20)
