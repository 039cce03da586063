"""Scope keys: who sees what. A key stands below one parent, or directly under the global layer.

A chain of scopes sees the global layer, then its farthest ancestor, …, then its own layer. Keys compare by identity:
two agents of one name are two scopes. The parent is kept on the key, so that no table outlives it.
"""

from __future__ import annotations

from threading import Lock
from typing import Final, Protocol

from foreword.errors import EmptyNameError, ScopeAlreadyBoundError, ScopeCycleError, with_article
from foreword.kernel.names import plain_name, shortened

__all__ = ["GLOBAL", "HasKey", "ParentBinding", "ScopeKey", "as_key", "bind_parent"]


class ScopeKey:
    """The identity of a scope. ``name`` is for people; two keys of one name are two scopes.

    Raises:
        EmptyNameError: the name is no string, an empty one, or none that UTF-8 can spell.
    """

    __slots__ = ("__weakref__", "_bound", "_parent", "name")

    def __init__(self, name: str) -> None:
        plain = plain_name(name)
        if plain is None:
            raise EmptyNameError("scope", None, shortened(name))
        self.name = plain
        self._parent: ScopeKey | None = None
        self._bound = False

    @property
    def parent(self) -> ScopeKey | None:
        """The enclosing scope; None directly under the global layer."""
        return self._parent

    @property
    def bound(self) -> bool:
        """Whether somebody holds the binding of this key to its parent."""
        return self._bound

    def chain(self) -> tuple[ScopeKey, ...]:
        """This key and its ancestors, farthest first; without `GLOBAL`, so empty for `GLOBAL` itself."""
        keys: list[ScopeKey] = []
        key: ScopeKey | None = self
        while key is not None and key is not GLOBAL:
            keys.append(key)
            key = key._parent
        return tuple(reversed(keys))

    def __repr__(self) -> str:
        return f"ScopeKey({self.name!r})"


GLOBAL: Final = ScopeKey("global")
"""The layer that every scope sees. As a context's ``scope`` it asks for the prompt of no scope in particular."""


_moving = Lock()  # keys know no registry, so one lock for all: looking for a cycle and moving must be one step


class HasKey(Protocol):
    """What stands for its scope: a view of a `SystemPrompt`."""

    @property
    def key(self) -> ScopeKey:
        """The scope's key."""
        ...


def as_key(scope: ScopeKey | HasKey) -> ScopeKey:
    """The key of a scope that is given as a key or a view.

    Raises:
        TypeError: it is neither.
    """
    key: object = scope if isinstance(scope, ScopeKey) else getattr(scope, "key", None)
    if not isinstance(key, ScopeKey):
        raise TypeError(f"a scope is a ScopeKey or a view of a SystemPrompt, not {with_article(type(scope).__name__)}")
    return key


class ParentBinding:
    """The right to move a key: whoever bound it holds this, and nobody else can."""

    __slots__ = ("key",)

    def __init__(self, key: ScopeKey) -> None:
        self.key = key

    @property
    def parent(self) -> ScopeKey | None:
        """Where the key stands now; None directly under the global layer."""
        return self.key.parent

    def rebind(self, parent: ScopeKey | HasKey | None) -> None:
        """Move the key below another parent; counts from the next assembly.

        Raises:
            ScopeCycleError: the parent is the key itself or stands below it.
        """
        with _moving:
            _move(self.key, parent)

    def __repr__(self) -> str:
        return f"<ParentBinding of {self.key.name} to {'global' if self.parent is None else self.parent.name}>"


def bind_parent(key: ScopeKey, parent: ScopeKey | HasKey | None) -> ParentBinding:
    """Put a key below a parent, once.

    Args:
        key: the key to bind; `GLOBAL` has no parent.
        parent: the enclosing scope, a key or a view; None or `GLOBAL` for directly under the global layer.

    Returns:
        The only thing that can move the key again.

    Raises:
        ScopeAlreadyBoundError: the key is bound already.
        ScopeCycleError: the parent is the key itself or stands below it.
    """
    if key is GLOBAL:
        raise ScopeCycleError(key.name, "another scope" if parent is None else as_key(parent).name)
    with _moving:
        if key.bound:
            raise ScopeAlreadyBoundError(key.name, None if key.parent is None else key.parent.name)
        _move(key, parent)
        key._bound = True  # pyright: ignore[reportPrivateUsage]
    return ParentBinding(key)


def _move(key: ScopeKey, parent: ScopeKey | HasKey | None) -> None:
    above = None if parent is None else as_key(parent)
    if above is not None and key in above.chain():
        raise ScopeCycleError(key.name, above.name)
    key._parent = None if above is GLOBAL else above  # pyright: ignore[reportPrivateUsage]
