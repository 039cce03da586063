"""Layered storage: the global layer and one layer a scope key, made when first written to, dropped when empty.

A layer carries a number that changes whenever its content changes, and no number is ever used twice. Whoever keeps
something worked out from layers (a plan) notes their numbers and knows later, without looking further, whether it
still holds.
"""

from __future__ import annotations

from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from foreword.kernel.scope import GLOBAL, ScopeKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Layer", "Layers", "NamedTable"]


class Layer(Protocol):
    """What the storage must know of a layer."""

    number: int

    def is_empty(self) -> bool:
        """Whether nothing is registered in it, so that it can be dropped."""
        ...


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_EMPTY: Final[Any] = MappingProxyType[Any, Any]({})

L = TypeVar("L", bound=Layer)
N = TypeVar("N", bound=_Named)


class Layers(Generic[L]):
    """The global layer, and those of the scopes that have content. Not locked: the registry's lock covers it."""

    __slots__ = ("_layers", "_make", "_numbers", "globally")

    def __init__(self, make: Callable[[ScopeKey], L]) -> None:
        self._make = make
        self._numbers = count(1)
        self._layers: dict[ScopeKey, L] = {}
        self.globally: L = make(GLOBAL)  # stands from the start and is never dropped

    def of(self, key: ScopeKey) -> L:
        """The layer of a key, made if it has none yet."""
        if key is GLOBAL:
            return self.globally
        layer = self._layers.get(key)
        if layer is None:
            layer = self._layers[key] = self._make(key)
        return layer

    def peek(self, key: ScopeKey) -> L | None:
        """The layer of a key, if it has content."""
        return self.globally if key is GLOBAL else self._layers.get(key)

    def chain(self, key: ScopeKey) -> tuple[L, ...]:
        """The layers that a key sees: global, then farthest ancestor to nearest; only those that have content."""
        layers = self._layers
        if key.parent is None:  # the common case, and a hot one
            layer = layers.get(key)
            return (self.globally,) if layer is None else (self.globally, layer)
        found = [layers.get(each) for each in key.chain()]
        return (self.globally, *(layer for layer in found if layer is not None))

    def scoped(self) -> Iterator[L]:
        """All layers but the global one, in the order in which they were made."""
        return iter(self._layers.values())

    def touch(self, key: ScopeKey) -> None:
        """Note that a layer's content changed: it gets a new number, or goes when it is empty."""
        layer = self.of(key)
        layer.number = next(self._numbers)
        self.forget_if_empty(key)

    def forget_if_empty(self, key: ScopeKey) -> None:
        """Drop a layer that was made for a write which was then refused."""
        layer = self._layers.get(key)
        if layer is not None and layer.is_empty():
            del self._layers[key]

    def __len__(self) -> int:
        return len(self._layers) + 1


class NamedTable(Generic[N]):
    """Entries of one kind by name, in registration order. Exact: removing an old entry never removes a namesake."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[str, N] = _EMPTY  # until there is one: most tables of most layers stay empty

    def get(self, name: str) -> N | None:
        """The entry of that name, if there is one."""
        return self._entries.get(name)

    def insert(self, entry: N) -> None:
        """Add an entry behind all others; the caller has made sure that the name is free."""
        if self._entries is _EMPTY:
            self._entries = {}
        self._entries[entry.name] = entry

    def exchange(self, old: N, new: N) -> bool:
        """Put a new entry in the very place of an old one, if the old one is still there."""
        if self._entries.get(old.name) is not old:
            return False
        self._entries[old.name] = new
        return True

    def remove(self, entry: N) -> None:
        """Take out this very entry, if it is still there."""
        if self._entries.get(entry.name) is entry:
            del self._entries[entry.name]

    def __iter__(self) -> Iterator[N]:
        return iter(self._entries.values())

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __len__(self) -> int:
        return len(self._entries)
