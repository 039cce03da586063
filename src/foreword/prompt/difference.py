"""Which stretch of two lists differs. Entries are frozen, so equal ones are the same to us."""

from __future__ import annotations

from itertools import compress, count
from operator import ne
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["changed_stretch"]

_SHORT: Final = 16  # entries that are compared one by one


def changed_stretch(
    before: Sequence[object], after: Sequence[object], same: tuple[int, int] = (0, 0)
) -> tuple[int, int]:
    """Start and stop of what lies in `after` between the longest common head and the longest common tail.

    Equal lists give an empty stretch. Lists are compared by halves: Python compares two long lists of the same objects
    at 3 ns an entry, and one by one it takes ten times that.

    Args:
        before: a list.
        after: what became of it.
        same: how many entries at the beginning, and how many others at the end, need not be compared.
    """
    head, tail = same
    start, stop = _stretch(before[head : len(before) - tail], after[head : len(after) - tail])
    return head + start, head + stop


def _stretch(before: Sequence[object], after: Sequence[object]) -> tuple[int, int]:
    before, after = tuple(before), tuple(after)  # lists and tuples are never equal
    shorter = min(len(before), len(after))
    head = _common(before[:shorter], after[:shorter])
    if head == shorter == max(len(before), len(after)):
        return head, head
    left = shorter - head
    tail = _common(before[len(before) - left :][::-1], after[len(after) - left :][::-1])
    return head, len(after) - tail


def _common(before: Sequence[object], after: Sequence[object]) -> int:
    """How many entries two lists of one length have in common at their beginning."""
    low, high = 0, len(before)
    while high - low > _SHORT:
        middle = (low + high) // 2
        if before[low:middle] == after[low:middle]:
            low = middle
        else:
            high = middle
    return next(compress(count(low), map(ne, before[low:high], after[low:high])), high)
