"""What the tests of the prompt share: short ways to make things and to look at them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from foreword import AssembleContext, PromptAssembly, Rendering, SystemPrompt, ToolSchema


class Named(Protocol):
    @property
    def name(self) -> str: ...


def tool(name: str, description: str = "") -> ToolSchema:
    return ToolSchema(name, description, {})


def names(entries: Iterable[Named]) -> list[str]:
    return [entry.name for entry in entries]


def facts(view: SystemPrompt, context: AssembleContext | None = None) -> tuple[str, str, list[str]]:
    """All that a model would be told: text, snapshot, names of the tools."""
    rendering = view.render_sync(context)
    return rendering.text, rendering.snapshot.partition("\n\n")[2], names(rendering.tools)


def reasons(rendering: Rendering, name: str) -> list[tuple[str, str, str | None]]:
    """What the trace tells about a name: stage, action and reason of each event."""
    return [(event.stage, event.action, event.reason) for event in rendering.trace.about(name)]


def listener(change: Callable[[PromptAssembly], object]) -> Any:
    """A listener that makes one change and calls on."""

    async def listening(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        change(assembly)
        result: PromptAssembly = await call_next()
        return result

    return listening


class Bell:
    """A change listener that counts its calls, and raises the errors that it was given, one a call."""

    def __init__(self, *errors: Exception | None) -> None:
        self.rung = 0
        self.errors = list(errors)

    def __call__(self) -> None:
        self.rung += 1
        if self.errors and (error := self.errors.pop(0)) is not None:
            raise error
