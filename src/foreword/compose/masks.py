"""Which tools an agent has: its ``tools: {allow, deny}``, for what it is shown and for what it can call.

Tools of the registry are masked there, so that a masked one is unknown in every respect. Others, which plugins bring to
the prompt alone, are taken out by a listener.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from foreword.errors import ForewordError, did_you_mean, shown
from foreword.tools.masks import is_pattern, matches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.compose.deployment import AgentEntry
    from foreword.prompt.assembly import PromptAssembly
    from foreword.prompt.context import AssembleContext
    from foreword.prompt.system_prompt import SystemPrompt
    from foreword.prompt.transform import CallNext
    from foreword.strictyaml import Path as Way
    from foreword.tools.masks import ToolMask

__all__ = ["Remark", "check_names", "masking"]


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about a name in a mask."""

    path: Way
    message: str
    is_fault: bool


def masking(mask: ToolMask, name: str) -> Any:
    """The listener that takes away what an agent is not to have.

    It acts before the other listeners, which then see no masked tool, and again behind them, lest they bring one in.

    Args:
        mask: which tools the agent has.
        name: what traces call the listener.
    """

    async def listener(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        _mask(assembly, mask)
        result = await call_next()
        _mask(result, mask)
        return result

    listener.__qualname__ = name
    return listener


async def check_names(view: SystemPrompt, entry: AgentEntry) -> list[Remark]:
    """What is to be said about the names in an agent's lists: tools that nobody knows, patterns without effect."""
    listed = [(("deny", at), name) for at, name in enumerate(entry.deny or ())]
    listed += [(("allow", at), name) for at, name in enumerate(entry.allow or ())]
    if not listed:
        return []
    known, can_tell = await _known_tools(view)
    return [
        Remark((*entry.path, "tools", *where), why, is_fault)
        for where, name in listed
        for why, is_fault in _remarks(name, known, can_tell=can_tell)
    ]


def _remarks(name: str, known: frozenset[str], *, can_tell: bool) -> Iterator[tuple[str, bool]]:
    if any(matches(tool, name) for tool in known):
        return
    if is_pattern(name):
        yield f'the pattern "{shown(name)}" matches no tool that is there now', False
    elif can_tell:
        yield f'there is no tool "{shown(name)}"; {did_you_mean(name, known, "tools")}', True
    else:
        yield f'whether there is a tool "{shown(name)}" cannot be told: not every provider of tools answered', False


async def _known_tools(view: SystemPrompt) -> tuple[frozenset[str], bool]:
    """The tools that a scope's providers know, and whether all of them have said so."""
    known, can_tell = view.known_tools()
    if can_tell:
        return known, can_tell
    with suppress(ForewordError):  # what else is wrong with the prompt is told when it is asked for
        await view.assemble()  # asks them
    return view.known_tools()


def _mask(assembly: PromptAssembly, mask: ToolMask) -> None:
    kept = [tool for tool in assembly.tools if mask.admits(tool.name)]
    if len(kept) < len(assembly.tools):
        assembly.tools = kept
