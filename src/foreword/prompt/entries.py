"""The lists of an assembly: what listeners edit, and where they did.

A list notes which of its entries at the beginning and at the end nobody has touched since some earlier state. Most
edits touch one entry of many, so whoever asks what a listener did looks at that one instead of comparing all.
"""

from __future__ import annotations

from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast, overload

from foreword.errors import UnknownEntryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self, SupportsIndex

__all__ = ["Entries"]


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


class _State:
    """How a list once was, and how many of its entries are still those at the beginning and at the end."""

    __slots__ = ("entries", "head", "tail")

    def __init__(self, entries: tuple[Any, ...]) -> None:
        self.entries = entries
        self.head = self.tail = len(entries)

    def touch(self, head: int, tail: int) -> None:
        self.head = min(self.head, head)
        self.tail = min(self.tail, tail)


class Entries(list[N]):
    """A list of frozen entries, with the edits that listeners make. Of several entries of a name the first counts.

    Every method of a list works. Only its own are noticed, not those of `list` called past it: ``list.append(entries,
    entry)`` goes unseen.
    """

    __slots__ = ("_first", "_last", "kind")

    def __init__(self, entries: Iterable[N] = (), kind: str = "entry") -> None:
        super().__init__(entries)
        self.kind = kind
        self._first = self._last = _State(cast("tuple[N, ...]", entries)) if type(entries) is tuple else None

    # -- edits by name -------------------------------------------------------------------------------------------------

    def named(self, name: str) -> N:
        """The entry of that name.

        Raises:
            UnknownEntryError: there is none; so do the other methods.
        """
        return self[self._position(name)]

    def swap(self, name: str, /, **changes: Any) -> N:
        """Put a changed copy in an entry's place and give it back: ``sections.swap("tone", text="Be brief.")``."""
        at = self._position(name)
        old: Any = self[at]
        new: N = replace(old, **changes)
        self[at] = new
        return new

    def drop(self, name: str) -> N:
        """Take an entry out, and give it back."""
        return self.pop(self._position(name))

    def place(self, entry: N, *, before: str | None = None, after: str | None = None) -> N:
        """Put an entry before or after the one of a name; exactly one of the two must be given."""
        if (before is None) == (after is None):
            raise TypeError("place() takes either before=NAME or after=NAME")
        at = self._position(before) if before is not None else self._position(str(after)) + 1
        self.insert(at, entry)
        return entry

    def _position(self, name: str) -> int:
        for position, entry in enumerate(self):
            if entry.name == name:
                return position
        raise UnknownEntryError(self.kind, name, [entry.name for entry in self])

    # -- earlier states ------------------------------------------------------------------------------------------------

    def state(self) -> tuple[N, ...]:
        """The entries as they are now. `untouched` knows this state until the next one is taken."""
        last = self._last
        if last is None or last.head != len(last.entries) or last.head != len(self):
            last = self._last = _State(tuple(self))
            if self._first is None:
                self._first = last
        return last.entries

    def untouched(self, state: Sequence[N]) -> tuple[int, int]:
        """How many entries at the beginning, and how many others at the end, are surely those of an earlier state.

        Args:
            state: the tuple that the list was made of, or its last `state`; of any other one nothing is known.
        """
        for known in (self._last, self._first):
            if known is not None and known.entries is state:
                return known.head, min(known.tail, len(state) - known.head)
        return 0, 0

    def _touch(self, head: int, tail: int) -> None:
        """Note an edit that leaves so many entries at the beginning and at the end as they were."""
        first, last = self._first, self._last
        if first is not None:
            first.touch(head, tail)
        if last is not None and last is not first:
            last.touch(head, tail)

    # -- a list's own methods ------------------------------------------------------------------------------------------

    @overload
    def __setitem__(self, at: SupportsIndex, value: N) -> None: ...
    @overload
    def __setitem__(self, at: slice, value: Iterable[N]) -> None: ...
    def __setitem__(self, at: Any, value: Any) -> None:
        head, tail = self._around(at)
        super().__setitem__(at, value)
        self._touch(head, tail)

    def __delitem__(self, at: SupportsIndex | slice) -> None:
        head, tail = self._around(at)
        super().__delitem__(at)
        self._touch(head, tail)

    def _around(self, at: SupportsIndex | slice) -> tuple[int, int]:
        """How many entries stand before and behind a position or a slice."""
        size = len(self)
        if isinstance(at, slice):
            start, stop, step = at.indices(size)
            return (start, size - max(start, stop)) if step == 1 else (0, 0)
        position = index(at)
        position += size if position < 0 else 0
        return position, size - position - 1

    def __iadd__(self, entries: Iterable[N]) -> Self:  # type: ignore[override,misc]  # as that of a list, told narrower
        self.extend(entries)
        return self

    def __imul__(self, times: SupportsIndex) -> Self:
        self._touch(0, 0)
        return super().__imul__(times)

    def append(self, entry: N) -> None:
        """Put an entry at the end."""
        self._touch(len(self), 0)
        super().append(entry)

    def extend(self, entries: Iterable[N]) -> None:
        """Put entries at the end."""
        self._touch(len(self), 0)
        super().extend(entries)

    def insert(self, at: SupportsIndex, entry: N) -> None:
        """Put an entry before a position."""
        start, stop, _ = slice(at, None).indices(len(self))
        super().insert(at, entry)
        self._touch(start, stop - start)

    def pop(self, at: SupportsIndex = -1) -> N:
        """Take the entry at a position out, and give it back."""
        head, tail = self._around(at)
        entry = super().pop(at)
        self._touch(head, tail)
        return entry

    def remove(self, entry: N) -> None:
        """Take out the first entry that equals one."""
        del self[self.index(entry)]

    def clear(self) -> None:
        """Take out all entries."""
        self._touch(0, 0)
        super().clear()

    def reverse(self) -> None:
        """Turn the order round."""
        self._touch(0, 0)
        super().reverse()

    def sort(self, *, key: Callable[[N], Any] | None = None, reverse: bool = False) -> None:
        """Put the entries in an order."""
        self._touch(0, 0)
        super().sort(key=cast("Any", key), reverse=reverse)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (list(self), self.kind)
