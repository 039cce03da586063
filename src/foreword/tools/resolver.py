"""The one resolver: which tools a scope has, which it would have unmasked, and who hides what.

Schemas, look-up, execution, and the check of masks all read the same `ScopeTools`, so that a tool which is not shown
cannot be called, and the other way round. In a scope:

* *inherited* are the tools of the global layer and of enclosing scopes, a nearer one in the place of its namesake;
* all masks on the chain, the scope's own included, must admit an inherited tool, or it is hidden;
* the scope's own tools are there whatever any mask says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import is_
from typing import TYPE_CHECKING, Any

from foreword.kernel.events import is_async_function
from foreword.kernel.layers import NamedTable
from foreword.kernel.scope import ScopeKey
from foreword.prompt.contributions import Entry, Provider, ToolProviderResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Self

    from foreword.kernel.effects import Owner
    from foreword.prompt.origin import Origin
    from foreword.tools.definition import ToolDefinition
    from foreword.tools.masks import Mask

__all__ = ["ScopeTools", "Tool", "ToolLayer", "resolve"]


@dataclass(frozen=True, slots=True, eq=False)
class Tool(Entry):
    """A registered tool: a definition, and whose it is."""

    definition: ToolDefinition = field(kw_only=True)
    guard: Callable[[BaseException], BaseException] = field(kw_only=True)  # what its function raises goes through it

    KIND = "tool"

    @classmethod
    def of(
        cls,
        definition: ToolDefinition,
        origin: Origin,
        seq: int,
        owner: Owner,
        guard: Callable[[BaseException], BaseException],
    ) -> Self:
        """Register a definition for an owner."""
        function = definition.function
        return cls(
            definition.name, origin, seq, Provider(None, function), timeout=definition.timeout,
            thread=not is_async_function(function), owner=owner, definition=definition, guard=guard,
        )  # fmt: skip


class ToolLayer:
    """What is registered in one layer."""

    __slots__ = ("key", "masks", "number", "resolved", "tools")

    def __init__(self, key: ScopeKey) -> None:
        self.key = key
        self.number = 0
        self.tools: NamedTable[Tool] = NamedTable()
        self.masks: dict[Mask, None] = {}
        # What was resolved last for the chain that ends here: for this scope itself, and for one below that has no
        # layer. They differ, since what is this scope's own is inherited there.
        self.resolved: dict[bool, ScopeTools] = {}

    def is_empty(self) -> bool:
        """Whether nothing is registered in it."""
        return not self.tools and not self.masks


@dataclass(frozen=True, slots=True, eq=False)
class ScopeTools:
    """The tools of one scope."""

    layers: tuple[ToolLayer, ...]
    numbers: tuple[int, ...]
    visible: dict[str, Tool]
    inherited: frozenset[str]  # names, hidden ones too: what a mask can name
    known: frozenset[str]  # names of all that would be there unmasked
    sensitive: frozenset[str]  # of the visible ones, those that are
    answer: ToolProviderResult  # for the prompt; the same object as long as nothing changes

    def holds(self, layers: tuple[ToolLayer, ...]) -> bool:
        """Whether this still tells what these layers hold."""
        return (
            len(layers) == len(self.layers)
            and all(map(is_, layers, self.layers))
            and self.numbers == tuple(layer.number for layer in layers)
        )


def resolve(layers: tuple[ToolLayer, ...], scope: ScopeKey) -> ScopeTools:
    """Resolve the tools of a scope.

    Args:
        layers: those of its chain that have content, global first; the global one is always there.
        scope: whose.
    """
    is_own = layers[-1].key is scope
    own = {tool.name: tool for tool in layers[-1].tools} if is_own else {}
    inherited = _merged(layers[:-1] if is_own else layers)
    hidden = _hidden(inherited, [mask for layer in layers for mask in layer.masks])
    visible = {name: tool for name, tool in inherited.items() if name not in hidden} | own
    everything = inherited | own
    answer = ToolProviderResult(
        tuple(tool.definition.schema for tool in visible.values()),
        frozenset(everything),
        {name: tool.origin for name, tool in everything.items()},
        {name: mask.ref for name, mask in hidden.items() if name not in own},
    )
    numbers = tuple(layer.number for layer in layers)
    sensitive = frozenset([name for name, tool in visible.items() if tool.definition.sensitive])
    return ScopeTools(layers, numbers, visible, frozenset(inherited), frozenset(everything), sensitive, answer)


def _merged(layers: Iterable[ToolLayer]) -> dict[str, Tool]:
    return {tool.name: tool for layer in layers for tool in layer.tools}


def _hidden(tools: Iterable[Any], masks: Iterable[Mask]) -> dict[str, Mask]:
    """The names that some mask does not admit, with the outermost such mask."""
    found: dict[str, Mask] = {}
    for mask in masks:
        for name in tools:
            if name not in found and not mask.mask.admits(name):
                found[name] = mask
    return found
