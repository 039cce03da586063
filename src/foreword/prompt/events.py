"""The events of the system prompt; under a kernel, `Context.on` and `SystemPrompt.on_assemble` reach the same ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from foreword.kernel.events import Event, Mode

if TYPE_CHECKING:
    from foreword.kernel.scope import ScopeKey
    from foreword.prompt.assembly import PromptAssembly
    from foreword.prompt.context import AssembleContext

__all__ = ["SYSTEM_PROMPT_ASSEMBLE", "SYSTEM_PROMPT_CHANGE"]


async def _assemble(
    assembly: PromptAssembly, context: AssembleContext, call_next: Callable[[], Awaitable[PromptAssembly]]
) -> PromptAssembly:
    """An assembly is made.

    A listener may change it before or after ``await call_next()``, give back another one, or not call on. One that
    raises fails the assembly, with a `ListenerError` that names it.
    """
    raise NotImplementedError


def _change() -> None:
    """Something that assemblies are made from was registered, replaced or undone, in whatever scope.

    A listener that raises takes the registration back, and hears of that, too.
    """
    raise NotImplementedError


def _scope_of(assembly: PromptAssembly, context: AssembleContext) -> ScopeKey | None:
    """The scope that the assembly is for."""
    return context.scope


SYSTEM_PROMPT_ASSEMBLE = Event("system-prompt/assemble", Mode.WATERFALL, _assemble, subject=_scope_of)
SYSTEM_PROMPT_CHANGE = Event("system-prompt/change", Mode.EMIT, _change)
