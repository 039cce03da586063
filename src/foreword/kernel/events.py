"""Events: declared objects that others listen to, in a mode, for a subject.

An event is declared once, as a value, with a signature that documents it:

    CHANGED = Event("acme/changed", Mode.EMIT, changed)

* ``EMIT``: plain functions, in order; ``PARALLEL``: async ones together; ``SERIAL``: async ones one by one, until one
  gives a result; ``WATERFALL``: async ones around each other, each calling the next.
* An event may have a subject, the scope that it is about. Then a listener in a scope hears what is about its scope and
  the scopes below it; one in no scope hears all; a subject of None reaches only those. Without a subject all hear.
* Who is to hear is fixed when the event begins.

`Listeners` is the table behind one event. It stands alone as well: a `SystemPrompt` without a kernel has two of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar, cast

from foreword.errors import EmptyNameError, EntryRef, EventModeError, shown
from foreword.kernel.effects import Owner, Registration
from foreword.kernel.names import plain_name, shortened
from foreword.kernel.scope import GLOBAL, ScopeKey

if TYPE_CHECKING:
    from foreword.kernel.source import Source

__all__ = ["Event", "Listener", "Listeners", "Mode", "is_async_function", "name_of"]

P = ParamSpec("P")
R = TypeVar("R")


class Mode(Enum):
    """How the listeners of an event are called."""

    EMIT = "emit"
    PARALLEL = "parallel"
    SERIAL = "serial"
    WATERFALL = "waterfall"


@dataclass(frozen=True, slots=True, eq=False)
class Event(Generic[P, R]):
    """A declared event. P is what is told, R what a listener gives back.

    Attributes:
        name: ``package/what``; for people and the catalog.
        mode: how its listeners are called.
        signature: a function that is never called: its parameters and docstring are the event's, for the catalog.
        subject: gives the scope that one event is about, from what is told; None for an event about no scope.
        on_error: of an ``EMIT`` event: whether a listener's error reaches whoever emits, or is logged.

    Raises:
        EmptyNameError: the name is no string, an empty one, or none that UTF-8 can spell.
        EventModeError: the mode is no `Mode`, the signature or the subject no function, or on_error neither word.
    """

    name: str
    mode: Mode
    signature: Callable[P, R]
    subject: Callable[..., ScopeKey | None] | None = None
    on_error: Literal["raise", "log"] = "raise"

    def __post_init__(self) -> None:
        if plain_name(self.name) is None:
            raise EmptyNameError("event", None, shortened(self.name))
        for field, fits, wanted in (
            ("mode", isinstance(cast("object", self.mode), Mode), "a Mode, as in Mode.EMIT"),
            ("signature", callable(self.signature), "a function with the parameters and the docstring of the event"),
            ("subject", self.subject is None or callable(self.subject), "a function that gives a scope, or None"),
            ("on_error", self.on_error in ("raise", "log"), '"raise" or "log"'),
        ):
            if not fits:
                why = f"is declared with {field}={shortened(getattr(self, field))}; give {wanted}"
                raise EventModeError(shown(self.name), why)

    @property
    def doc(self) -> str:
        """What the event is for."""
        return inspect.getdoc(self.signature) or ""


@dataclass(frozen=True, slots=True, eq=False)
class Listener:
    """Somebody who listens."""

    name: str
    owner: str
    scope: ScopeKey
    source: Source | None
    rank: int  # place among all: lower is earlier, in a waterfall further out
    call: Callable[..., Any]

    @property
    def ref(self) -> EntryRef:
        """The reference that errors carry."""
        scope = None if self.scope is GLOBAL else self.scope.name
        return EntryRef("listener", self.name, self.owner, scope, None if self.source is None else str(self.source))

    def __str__(self) -> str:
        return str(self.ref)


class Listeners:
    """The listeners of one event, by scope. Any thread may add, remove and ask."""

    __slots__ = ("_behind", "_by_scope", "_in_front", "_lock")

    def __init__(self) -> None:
        self._by_scope: dict[ScopeKey, dict[Listener, None]] = {}
        self._lock = Lock()
        self._behind = count(1)
        self._in_front = count(-1, -1)

    def add(
        self, owner: Owner, scope: ScopeKey, call: Callable[..., Any], source: Source | None, *, prepend: bool = False
    ) -> Registration:
        """Add a listener, behind all others or in front of them.

        Raises:
            InactiveContextError: the owner has gone.
        """
        rank = next(self._in_front if prepend else self._behind)
        listener = Listener(name_of(call), owner.name, scope, source, rank, call)

        def remove() -> None:
            with self._lock:
                held = self._by_scope.get(scope, {})
                held.pop(listener, None)
                if not held:
                    self._by_scope.pop(scope, None)

        registration = Registration(listener, owner, remove)
        owner.add(registration.in_turn)
        with self._lock:
            self._by_scope.setdefault(scope, {})[listener] = None
        return registration

    def about(self, subject: ScopeKey | None) -> tuple[Listener, ...]:
        """Who hears what is about a scope: those of its chain, and those in no scope; in order."""
        if not self._by_scope:
            return ()
        scopes = (GLOBAL,) if subject is None else (GLOBAL, *subject.chain())
        with self._lock:
            found = [listener for scope in scopes for listener in self._by_scope.get(scope, ())]
        return tuple(sorted(found, key=lambda listener: listener.rank))

    def all(self) -> tuple[Listener, ...]:
        """Everybody, in order: who hears what is about no scope."""
        if not self._by_scope:
            return ()
        with self._lock:
            found = [listener for held in self._by_scope.values() for listener in held]
        return tuple(sorted(found, key=lambda listener: listener.rank))

    def scopes(self) -> tuple[ScopeKey, ...]:
        """The scopes that somebody listens in."""
        with self._lock:
            return tuple(scope for scope in self._by_scope if scope is not GLOBAL)

    def __len__(self) -> int:
        return sum(len(held) for held in self._by_scope.values())


def name_of(call: Callable[..., object]) -> str:
    """How a function is called in errors and traces; by its type where it bears no name that can be shown."""
    name = plain_name(getattr(call, "__qualname__", None)) or type(call).__qualname__
    return name.replace("<locals>.", "")


def is_async_function(call: Callable[..., Any]) -> bool:
    """Whether calling it gives an awaitable, as far as can be told without calling it."""
    from functools import partial

    while isinstance(call, partial):
        call = call.func
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)
