"""What all views of one registry share: who registered which tools and masks in which layer, and what runs.

It is one tool provider of the prompt, in the global layer. What scopes see is resolved when it is asked for, and kept
until a layer of their chain changes.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Final

from foreword.errors import ForewordError
from foreword.kernel.layers import Layers
from foreword.kernel.scope import GLOBAL
from foreword.prompt.running import Running
from foreword.tools.resolver import ToolLayer, resolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from foreword.kernel.effects import Registration
    from foreword.kernel.scope import ScopeKey
    from foreword.kernel.source import Source
    from foreword.prompt.context import AssembleContext
    from foreword.prompt.contributions import ToolProviderResult, ToolSource
    from foreword.prompt.registry import Registrar, Registry
    from foreword.prompt.system_prompt import SystemPrompt
    from foreword.tools.resolver import ScopeTools

__all__ = ["MOST_THREADS", "Toolbox"]

MOST_THREADS: Final = 32
"""Threads that one toolbox has for sync tools."""


class Toolbox:
    """The tables of one registry. Any thread may change and read them."""

    def __init__(self, prompt: SystemPrompt, source: Source) -> None:
        self._lock = RLock()  # re-entrant, since a mask is checked against what its own scope inherits
        self.layers: Layers[ToolLayer] = Layers(ToolLayer)
        self.running = Running(MOST_THREADS)
        self.registration = prompt.tools(self.visible, source=source)

    @classmethod
    def of_prompt(cls, registry: Registry) -> ToolSource | None:
        """The provider of the toolbox that a prompt has; None if it has none."""
        for source in registry.layers.globally.tools:
            if isinstance(getattr(source.provider.call, "__self__", None), cls):
                return source
        return None

    def visible(self, context: AssembleContext) -> ToolProviderResult:
        """The tools of the scope that a prompt is assembled for."""
        return self.of(GLOBAL if context.scope is None else context.scope).answer

    def of(self, scope: ScopeKey) -> ScopeTools:
        """The tools of a scope: as resolved last if no layer of its chain has changed."""
        layers = self.layers.chain(scope)
        is_own = layers[-1].key is scope
        held = layers[-1].resolved.get(is_own)
        if held is not None and held.holds(layers):
            return held
        with self._lock:
            layers = self.layers.chain(scope)
            is_own = layers[-1].key is scope
            held = layers[-1].resolved[is_own] = resolve(layers, scope)
            return held

    def scopes(self) -> tuple[ScopeKey, ...]:
        """The keys of the scopes that hold something."""
        with self._lock:
            return tuple(layer.key for layer in self.layers.scoped())

    def add(self, registrar: Registrar, registration: Registration, insert: Callable[[ToolLayer], None]) -> None:
        """Put something into the layer of whoever registers; raises what `insert` and change listeners do."""
        self._change(registrar.scope, insert)
        registrar.registry.keep(registrar.owner, registration)

    def remover(self, registrar: Registrar, remove: Callable[[ToolLayer], None]) -> Callable[[], None]:
        """The undo of an `add`."""

        def undo() -> None:
            self._change(registrar.scope, remove)
            registrar.registry.announce()

        return undo

    def _change(self, scope: ScopeKey, change: Callable[[ToolLayer], None]) -> None:
        with self._lock:
            try:
                change(self.layers.of(scope))
            except ForewordError:
                self.layers.forget_if_empty(scope)
                raise
            stale = (self.layers.globally, *self.layers.scoped()) if scope is GLOBAL else (self.layers.of(scope),)
            for layer in stale:
                layer.resolved.clear()  # it holds no longer, and would only keep alive what has gone
            self.layers.touch(scope)
