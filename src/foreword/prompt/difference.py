"""Which stretch of two lists differs, by identity. Entries are frozen, so what is identical is unchanged."""

from __future__ import annotations

from itertools import takewhile
from operator import is_
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["changed_stretch"]


def changed_stretch(before: Sequence[object], after: Sequence[object]) -> tuple[int, int]:
    """Start and stop of what lies in `after` between the longest common head and the longest common tail.

    Equal lists give an empty stretch. Runs at the speed of C: the lists are walked by `map` and `takewhile`.
    """
    shorter = min(len(before), len(after))
    head = sum(1 for _ in takewhile(bool, map(is_, before, after)))
    if head == shorter == max(len(before), len(after)):
        return head, head
    tail = sum(1 for _ in takewhile(bool, map(is_, reversed(before), reversed(after))))
    return head, len(after) - min(tail, shorter - head)
