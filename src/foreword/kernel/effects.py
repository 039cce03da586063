"""Doing and undoing: every registration is an undo that runs once, and belongs to an owner.

`Owner` is all that a registry must know of whoever registers. Standing alone it is an `UndoStack`; under a kernel of
plugins it is the plugin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Protocol, TypeAlias

from foreword.errors import EntryRef, InactiveContextError, WrongThreadError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

__all__ = ["Batch", "Owner", "Registration", "Undo", "UndoStack", "add_later_error", "notes_of"]

Undo: TypeAlias = Callable[[], object]
"""Takes something back. A plugin's may be async; what it gives is then awaited."""


class Owner(Protocol):
    """Whoever registers: a name, and a list of what to undo when it goes."""

    @property
    def name(self) -> str:
        """The name that errors and traces show."""
        ...

    @property
    def active(self) -> bool:
        """Whether it may still register."""
        ...

    @property
    def within_reach(self) -> bool:
        """Whether what it has registered may be undone from this thread."""
        ...

    def add(self, undo: Undo) -> None:
        """Keep an undo until the owner goes.

        Raises:
            InactiveContextError: the owner has gone.
        """
        ...

    def discard(self, undo: Undo) -> None:
        """Forget an undo that has run already; unknown ones are no fault."""
        ...


class UndoStack:
    """An owner that stands alone: undoes last in, first out, each once, all of them even when one raises."""

    __slots__ = ("_lock", "_undos", "active", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.active = True
        self._undos: dict[Undo, None] = {}  # a dict, so that one undo in the middle is dropped at once
        self._lock = Lock()

    @property
    def within_reach(self) -> bool:
        """True: standing alone, any thread may undo."""
        return True

    def add(self, undo: Undo) -> None:
        """Keep an undo until `close`; see `Owner.add`."""
        with self._lock:
            if not self.active:
                raise InactiveContextError(f"owner {self.name}")
            self._undos[undo] = None

    def discard(self, undo: Undo) -> None:
        """Forget an undo that has run already."""
        with self._lock:
            self._undos.pop(undo, None)

    def close(self) -> None:
        """Run every undo. The first error is raised when all have run, with later ones noted on it."""
        with self._lock:
            self.active = False
        first: Exception | None = None
        while (undo := self._take()) is not None:
            try:
                undo()
            except Exception as error:  # an undo ends in others' code (change listeners); the rest must run
                first = add_later_error(first, error)
        if first is not None:
            raise first

    def _take(self) -> Undo | None:
        with self._lock:
            return self._undos.popitem()[0] if self._undos else None


@dataclass(frozen=True, slots=True)
class Batch:
    """Entries that are registered in one change."""

    label: str
    refs: tuple[EntryRef, ...]

    def __str__(self) -> str:
        return self.label


class Registration:
    """Something registered, and its undo. Use ``close()`` or ``with``; closing twice does nothing."""

    __slots__ = ("_owner", "_undo", "_what")

    def __init__(self, what: object, owner: Owner, undo: Undo) -> None:
        self._what = what  # worked out to a label only when somebody reads it
        self._owner = owner
        self._undo = [undo]  # a list, since list.pop hands the undo to exactly one of several threads

    @property
    def label(self) -> str:
        """What is registered, in words."""
        return str(self._what)

    @property
    def ref(self) -> EntryRef | None:
        """The reference of the entry or listener that is registered; None for anything else."""
        return self._what if isinstance(self._what, EntryRef) else getattr(self._what, "ref", None)

    @property
    def refs(self) -> tuple[EntryRef, ...]:
        """The references of all that is registered: one, several if they came together, none for anything else."""
        return self._what.refs if isinstance(self._what, Batch) else (self.ref,) if self.ref is not None else ()

    @property
    def closed(self) -> bool:
        """Whether it was undone."""
        return not self._undo

    @property
    def in_turn(self) -> Undo:
        """What the owner keeps and runs when it goes: this itself, unless there is more to do then than `close`."""
        return self

    def close(self) -> None:
        """Undo it, at once and once. Never waits for a running assembly: what is in force there stays in force.

        Raises:
            WrongThreadError: under a kernel, this is not its thread; nothing was undone.
            Exception: the first error of a change listener; the undo itself is done all the same.
        """
        if self._undo and not self._owner.within_reach:
            raise WrongThreadError(f"closing {self.label}")
        try:
            undo = self._undo.pop()
        except IndexError:
            return
        self._owner.discard(self.in_turn)
        try:
            self._take_back(undo)
        finally:
            self._what = self.ref or Batch(self.label, self.refs)  # so that a closed one keeps no provider alive

    @staticmethod
    def behind(undo: object) -> Registration | None:
        """The registration that an owner's undo belongs to; None if it was given as a function."""
        found: object = undo if isinstance(undo, Registration) else getattr(undo, "__self__", None)
        return found if isinstance(found, Registration) else None

    def __call__(self) -> None:
        """As `close`: a registration is its own undo, so that an owner of many need keep no method of each."""
        self.close()

    def _take_back(self, undo: Undo) -> None:
        undo()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.label}{' (closed)' if self.closed else ''}>"


def add_later_error(first: Exception | None, later: Exception) -> Exception:
    """The first of two errors, with the later one noted on it: the first reaches the caller, no other is lost."""
    if first is None:
        return later
    first.add_note(f"afterwards also: {type(later).__name__}: {later}")
    for note in notes_of(later):
        first.add_note(note)
    return first


def notes_of(error: BaseException) -> list[str]:
    """What was added to an error."""
    return list(getattr(error, "__notes__", ()))
