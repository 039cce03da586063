"""Whom a step asks: the part of a plan that the collect stage works through, in a fixed order.

The global layer has one row of questions. A scope's agenda is that row and what its chain changes in it, so a scope
costs what it contributed, and what was answered at a place can be compared for all scopes (see `baseline`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from foreword.prompt.contributions import Entry, ToolSource

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["UNASKED", "Agenda", "Call", "Place"]

T = TypeVar("T")

UNASKED: Final = object()
"""Stands for the answer of an entry that was not asked, or failed."""

Call: TypeAlias = "tuple[Callable[..., Any], bool]"
"""A provider's function, and whether it takes the context."""

Place: TypeAlias = "tuple[int, Entry]"
"""An entry that is asked, and where in the row."""

_NOBODY: Final[Call] = (lambda: UNASKED, False)


class Agenda:
    """Whom a step asks: the global layer's row of questions, and what a chain changes in it.

    Every question has a place. In the global layer these are variables, tools, sections, contexts, each in their order.
    All scopes share that row, so what was answered last at a place can be compared by the place (see `baseline`). A
    chain asks somebody else at some places, or nobody, and has further places behind the row.
    """

    __slots__ = ("added", "awaited", "calls", "conditional", "entries", "instead", "kept", "places")

    def __init__(
        self,
        entries: tuple[Entry, ...],
        calls: list[Call],
        places: dict[Entry, int],
        instead: tuple[tuple[int, Entry | None], ...],
        added: tuple[Entry, ...],
    ) -> None:
        self.entries, self.calls, self.places = entries, calls, places  # of the global layer
        self.instead = instead  # at the place of a hidden entry: its namesake if that is asked, else nobody
        self.added = added
        self.conditional: tuple[Place, ...] = ()  # those that have a condition
        self.awaited: tuple[Place, ...] = ()  # those whose answers have to be waited for
        self.kept: tuple[Place, ...] = ()  # those whose good answers are kept

    @classmethod
    def of_global(cls, entries: list[Entry]) -> Agenda:
        """The agenda of the global layer.

        Args:
            entries: who is asked, in the fixed order.
        """
        places = {entry: at for at, entry in enumerate(entries)}
        made = cls(tuple(entries), [_call(entry) for entry in entries], places, (), ())
        return made._sorted_out(list(enumerate(entries)))

    def extended(self, hidden: Iterable[Entry], own: Iterable[Entry], in_order: Callable[[], list[Entry]]) -> Agenda:
        """This global agenda as a chain of layers changes it.

        Args:
            hidden: global entries that the chain hides, also such as are not asked.
            own: the chain's own entries that are asked.
            in_order: gives all that are asked, in the fixed order.
        """
        gone = [self.places[entry] for entry in hidden if entry in self.places]
        mine = list(own)
        if not gone and not mine:
            return self
        names = {(entry.KIND, entry.name): entry for entry in mine if not isinstance(entry, ToolSource)}
        instead = [(at, names.pop((self.entries[at].KIND, self.entries[at].name), None)) for at in gone]
        taken = {entry: at for at, entry in instead if entry is not None}
        added = tuple([entry for entry in mine if entry not in taken])
        made = Agenda(self.entries, self.calls, self.places, tuple(instead), added)
        if self.conditional or self.awaited or self.kept or any(map(_is_special, mine)):
            where = {**self.places, **taken, **{entry: at for at, entry in enumerate(added, len(self.entries))}}
            made._sorted_out([(where[entry], entry) for entry in in_order()])
        return made

    def _sorted_out(self, asked: list[Place]) -> Agenda:
        self.conditional = tuple([place for place in asked if place[1].when is not None])
        self.awaited = tuple([place for place in asked if place[1].is_awaited])
        self.kept = tuple([place for place in asked if place[1].last_good is not None])
        return self

    def row(self, skipped: Iterable[int]) -> list[Call]:
        """The functions to call, by their places; nobody answers at those that are skipped."""
        if not (self.instead or self.added or skipped):
            return self.calls
        calls = self.calls.copy()
        for at, entry in self.instead:
            calls[at] = _NOBODY if entry is None else _call(entry)
        if self.added:
            calls += map(_call, self.added)
        for at in skipped:
            calls[at] = _NOBODY
        return calls


def _call(entry: Entry) -> Call:
    provider = entry.provider
    return (
        (partial(_same, provider.static), False) if provider.call is None else (provider.call, provider.takes_context)
    )


def _same(value: T) -> T:
    return value


def _is_special(entry: Entry) -> bool:
    return entry.when is not None or entry.is_awaited or entry.last_good is not None
