"""What became of a list of named things: which came, went, moved or changed. Knows nothing of prompts.

Namesakes are told apart by their count. What moved is the smallest number of things whose moving explains the order, so
one that changed places is one move, not a removal and an addition.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

__all__ = ["Edit", "Named", "applied", "edits", "keyed", "moved_keys"]


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...


N = TypeVar("N", bound=Named)
Key = tuple[str, int]
"""A name, and how many of that name stand before."""


@dataclass(frozen=True, slots=True)
class Edit(Generic[N]):
    """What became of one thing.

    Attributes:
        old: as it was; None for one that came.
        new: as it is; None for one that went.
        old_at: its place in the old list, from 0.
        new_at: its place in the new list.
        is_moved: it stands elsewhere among those that are in both lists.
        is_changed: it is not what it was.
    """

    old: N | None
    new: N | None
    old_at: int | None
    new_at: int | None
    is_moved: bool = False
    is_changed: bool = False


def edits(old: Sequence[N], new: Sequence[N], is_same: Callable[[N, N], bool]) -> tuple[Edit[N], ...]:
    """The edits that turn one list into another: first what went, in its old order, then the rest in the new one.

    Args:
        old: the list before.
        new: the list after.
        is_same: whether two of one name are equal.
    """
    before = {key: at for at, key in enumerate(keyed(old))}
    after = {key: at for at, key in enumerate(keyed(new))}
    moved = moved_keys([key for key in before if key in after], [key for key in after if key in before])
    found: list[Edit[N]] = [Edit(old[at], None, at, None) for key, at in before.items() if key not in after]
    for key, at in after.items():
        was = before.get(key)
        if was is None:
            found.append(Edit(None, new[at], None, at))
            continue
        is_changed = not is_same(old[was], new[at])
        if is_changed or key in moved:
            found.append(Edit(old[was], new[at], was, at, key in moved, is_changed))
    return tuple(found)


def applied(made: Iterable[Edit[N]], old: Sequence[N]) -> tuple[N, ...]:
    """The list that some edits of a list lead to.

    Raises:
        LookupError: the list is too short for them.
    """
    kept: list[N | None] = list(old)
    placed: list[tuple[int, N]] = []
    for edit in made:
        if edit.old_at is not None:
            kept[edit.old_at] = edit.new if edit.new is not None and not edit.is_moved else None
        if edit.new is not None and edit.new_at is not None and (edit.is_moved or edit.old is None):
            placed.append((edit.new_at, edit.new))
    result = [each for each in kept if each is not None]
    for at, each in sorted(placed, key=lambda pair: pair[0]):
        result.insert(at, each)
    return tuple(result)


def keyed(things: Iterable[Named]) -> list[Key]:
    """The key of each thing."""
    seen: Counter[str] = Counter()
    keys: list[Key] = []
    for each in things:
        keys.append((each.name, seen[each.name]))
        seen[each.name] += 1
    return keys


def moved_keys(before: Sequence[Key], after: Sequence[Key]) -> set[Key]:
    """What has to move to get from one order to another of the same keys: all but a longest increasing subsequence."""
    if list(before) == list(after):
        return set()
    place = {key: at for at, key in enumerate(before)}
    ranks = [place[key] for key in after]
    tops: list[int] = []  # the lowest rank that ends an increasing run of that length
    ends: list[int] = []  # where in `after` it stands
    previous: list[int | None] = []
    for at, rank in enumerate(ranks):
        length = bisect_left(tops, rank)
        tops[length : length + 1], ends[length : length + 1] = [rank], [at]
        previous.append(ends[length - 1] if length else None)
    stayed: set[Key] = set()
    at_end: int | None = ends[-1] if ends else None
    while at_end is not None:
        stayed.add(after[at_end])
        at_end = previous[at_end]
    return set(after) - stayed
