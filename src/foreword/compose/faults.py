"""The faults of one file: gathered while it is checked, each with its place, told together in the order of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from foreword.errors import DeploymentError, Fault
from foreword.strictyaml import spelled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from foreword.strictyaml import Path

__all__ = ["Document", "Faults", "paths_in"]

_MOST: Final = 200  # a file with more has one cause for them, and a reader who stops reading


class Document(Protocol):
    """What a file says, in whatever syntax, and where."""

    value: Any

    def place(self, path: Path) -> tuple[int, int] | None:
        """Line and column, from 1, of a key or list item; None where the syntax gives none."""
        ...


class Faults:
    """The faults of a file so far.

    Args:
        name: what to call the file.
        document: what could be read of it.
        found: the faults that reading it gave.
    """

    def __init__(self, name: str, document: Document | None, found: Iterable[Fault] = ()) -> None:
        self.name = name
        self._document = document
        self._ranks = {} if document is None else {path: at for at, path in enumerate(paths_in(document.value))}
        self._held: list[tuple[tuple[int, int], Fault]] = [
            ((fault.line or 0, fault.column or 0), fault) for fault in found
        ]
        self._at: list[Path] = []
        self._found = [fault.path for _, fault in self._held]
        # what could not be read, and is nothing now
        self._unread = {spelled(way) for way in self._ranks if self._found and _at(document, way) is None}
        self._unread &= set(self._found)

    def add(self, path: Path, message: str) -> None:
        """Note a fault at a path; its line is that of the path, or of the nearest thing above that is there."""
        if len(self._held) > _MOST:
            return
        self._at.append(path)
        if spelled(path) in self._unread:  # told already
            return
        if len(self._held) == _MOST:
            path, message = (), "there are more faults than these; mend them first"
        line, column = self._place(path) or (None, None)
        fault = Fault(self.name, line, spelled(path), message, column)
        self._held.append((self._rank(path) if line is None or column is None else (line, column), fault))

    def touch(self, path: Path) -> bool:
        """Whether there is a fault at a path, or below it."""
        if len(self._held) > _MOST:
            return True  # nobody keeps count any more
        here = spelled(path)
        read = any(each == here or each.startswith((f"{here}.", f"{here}[")) for each in self._found)
        return read or any(each[: len(path)] == path for each in self._at)

    def line(self, path: Path) -> int | None:
        """The line of a path."""
        place = self._place(path)
        return None if place is None else place[0]

    def told(self) -> tuple[Fault, ...]:
        """All of them, in the order of the file."""
        return tuple(fault for _, fault in sorted(self._held, key=lambda held: held[0]))

    def check(self) -> None:
        """See that there are none.

        Raises:
            DeploymentError: with all that there are.
        """
        if self._held:
            raise DeploymentError(self.told())

    def _place(self, path: Path) -> tuple[int, int] | None:
        for length in range(len(path), -1, -1):
            place = None if self._document is None else self._document.place(path[:length])
            if place is not None:
                return place
        return None

    def _rank(self, path: Path) -> tuple[int, int]:
        """Where there are no lines: the place of a path among all paths of the document."""
        for length in range(len(path), -1, -1):
            rank = self._ranks.get(path[:length])
            if rank is not None:
                return rank, 0
        return 0, 0


def _at(document: Document | None, path: Path) -> Any:
    value: Any = None if document is None else document.value
    for step in path:
        value = value[step]
    return value


def paths_in(value: object, above: Path = ()) -> Iterator[Path]:
    """Every path of a document, in its order."""
    yield above
    if isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield from paths_in(item, (*above, key))
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from paths_in(item, (*above, index))
