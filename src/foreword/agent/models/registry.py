"""The registry of model adapters: who serves which provider.

Stands alone, or is a service of a kernel, where an adapter goes with the plugin that registered it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from foreword.agent.models.adapter import ModelAdapter
from foreword.errors import DuplicateAdapterError, EntryRef, UnknownProviderError
from foreword.kernel.context import Context
from foreword.kernel.effects import Registration, UndoStack
from foreword.kernel.plugins import plugin
from foreword.kernel.services import Service
from foreword.kernel.source import caller, calling_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from foreword.kernel.effects import Owner
    from foreword.wire.request import ModelConfig

__all__ = ["ModelAdapters", "model_adapters_plugin"]


@dataclass(frozen=True, slots=True)
class _Held:
    """An adapter, and who registered it."""

    adapter: ModelAdapter
    ref: EntryRef

    def __str__(self) -> str:
        return str(self.ref)


class ModelAdapters(Service):
    """The model adapters of an application, by the provider's name. Stands alone, or serves the plugins of a kernel.

    Args:
        adapters: the first ones to register.

    Raises:
        DuplicateAdapterError: two of them have the same name.
    """

    __slots__ = ("_held", "_owner")

    def __init__(self, *adapters: ModelAdapter) -> None:
        self._held: dict[str, _Held] = {}
        self._owner: Owner = UndoStack("main")
        for adapter in adapters:
            self._register(adapter, str(calling_line(caller(1))))

    @classmethod
    def as_plugin(cls) -> Callable[..., Any]:
        """The plugin that provides a `ModelAdapters` to others; what ``ctx.mount(ModelAdapters)`` mounts."""
        return model_adapters_plugin

    def bind(self, ctx: Context) -> ModelAdapters:
        """The same adapters as a context sees them: what is registered there goes with its plugin."""
        view = type(self).__new__(type(self))
        view._held, view._owner = self._held, ctx.fiber
        return view

    def register(self, adapter: ModelAdapter) -> Registration:
        """Let an adapter serve the provider whose name it bears.

        Closing the registration, or the plugin that made it, takes it away; a request that is under way is not
        disturbed. Closing the adapter itself stays with whoever made it.

        Raises:
            TypeError: it is no model adapter.
            DuplicateAdapterError: the provider has one already.
            InactiveContextError: the plugin that registers has gone.
        """
        return self._register(adapter, str(calling_line(caller(1))))

    def get(self, provider: str) -> ModelAdapter:
        """The adapter of a provider.

        Raises:
            UnknownProviderError: there is none; tells the nearest one that there is.
        """
        held = self._held.get(provider)
        if held is None:
            raise UnknownProviderError(provider, self.names)
        return held.adapter

    def resolve(self, config: ModelConfig) -> tuple[ModelAdapter, ModelConfig]:
        """The adapter of a config's provider, and the config as that adapter would send it.

        Raises:
            UnknownProviderError: there is no adapter for it.
            ModelError: the adapter refuses the config.
        """
        adapter = self.get(config.provider)
        return adapter, adapter.resolve(config)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the providers that have an adapter, sorted."""
        return tuple(sorted(self._held))

    def _register(self, adapter: ModelAdapter, source: str) -> Registration:
        if not isinstance(adapter, ModelAdapter):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"{adapter!r} is no model adapter; give one with name, version, resolve, body and stream")
        held = _Held(adapter, EntryRef("model adapter", adapter.name, self._owner.name, None, source))
        holder = self._held.get(adapter.name)
        if holder is not None:
            raise DuplicateAdapterError(held.ref, holder.ref)
        registration = Registration(held, self._owner, lambda: self._held.pop(held.ref.name))
        self._owner.add(registration.in_turn)
        self._held[held.ref.name] = held
        return registration

    def __repr__(self) -> str:
        return f"<ModelAdapters of {self._owner.name}: {', '.join(self.names) or 'none'}>"


@plugin(name="model-adapters")
def model_adapters_plugin(ctx: Context) -> None:
    """Provide a `ModelAdapters` to the plugins of a kernel."""
    ctx.provide(ModelAdapters())
