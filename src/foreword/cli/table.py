"""A table: columns side by side where they fit; where not, each record as a block of its own.

A cell has any number of lines, and each is wrapped where its column is too narrow for it. A column in which nothing
stands is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, TypeAlias

from foreword.cli.terminal import Piece, Row
from foreword.cli.wrapping import cell_len, padded, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from foreword.cli.terminal import Screen

__all__ = ["Cell", "Column", "table"]

_GAP: Final = "  "
_BLANK: Final = Piece("")
_ROOM_TO_INDENT: Final = 8  # cells

Cell: TypeAlias = tuple[Piece, ...]
"""The lines of a cell; their texts are shown as they are, so they have to be safe."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    least: int = 12  # cells; with less for one that needs more, there is no table


def table(columns: Sequence[Column], records: Sequence[Sequence[Cell]], screen: Screen) -> Iterator[Row]:
    """The rows of a table.

    Args:
        columns: what is told of each record; the first names it.
        records: a cell for each column.
        screen: says how wide it may be.
    """
    used = [at for at in range(len(columns)) if any(record[at] for record in records)]
    columns = [columns[at] for at in used]
    records = [[record[at] for at in used] for record in records]
    widths = _widths(columns, records, screen.width)
    yield from _blocks(columns, records, screen) if widths is None else _side_by_side(columns, records, widths)


def _widths(columns: Sequence[Column], records: Sequence[Sequence[Cell]], width: int) -> list[int] | None:
    """How wide each column gets: as wide as it needs, or less for those that can do with less; None if nothing fits."""
    needed = [
        max(cell_len(column.title), *(cell_len(line.text) for record in records for line in record[at]))
        for at, column in enumerate(columns)
    ]
    least = [min(needs, column.least) for needs, column in zip(needed, columns, strict=True)]
    excess = sum(needed) + len(_GAP) * (len(columns) - 1) - width
    while excess > 0:
        at = max(range(len(columns)), key=lambda each: needed[each] - least[each])
        spare = min(needed[at] - least[at], excess)
        if spare == 0:
            return None
        needed[at] -= spare
        excess -= spare
    return needed


def _side_by_side(columns: Sequence[Column], records: Sequence[Sequence[Cell]], widths: Sequence[int]) -> Iterator[Row]:
    titles: list[Cell] = [(Piece(column.title.upper(), "dim"),) for column in columns]
    for record in (titles, *records):
        cells = [list(_lines(cell, width)) for cell, width in zip(record, widths, strict=True)]
        for row in zip_longest(*cells, fillvalue=_BLANK):
            yield tuple(_spread(row, widths))


def _spread(row: Sequence[Piece], widths: Sequence[int]) -> Iterator[Piece]:
    for piece, width in zip(row, widths, strict=True):
        yield piece
        yield Piece(padded("", width - cell_len(piece.text)) + _GAP)


def _blocks(columns: Sequence[Column], records: Sequence[Sequence[Cell]], screen: Screen) -> Iterator[Row]:
    first, *others = columns
    indent = 2 + max((cell_len(column.title) for column in others), default=0) + len(_GAP)
    for record in records:
        for line in _lines(record[0] or (Piece(f"({first.title})"),), screen.width):
            yield (Piece(line.text, f"{line.style} bold".strip()),)
        for column, cell in zip(others, record[1:], strict=True):
            title = column.title
            for line in _lines(cell, screen.width - indent):
                yield (Piece(padded(f"  {title}", indent), "dim"), line)
                title = ""


def _lines(cell: Cell, width: int) -> Iterator[Piece]:
    """The lines of a cell, wrapped; where there are several, what a line goes on with is indented."""
    indent = 2 if len(cell) > 1 and width > _ROOM_TO_INDENT else 0
    for line in cell:
        first, *others = wrapped(line.text, max(width, 2))
        rest = wrapped("".join(others), width - indent) if others else []
        yield Piece(first.rstrip(), line.style)
        yield from (Piece(" " * indent + part.rstrip(), line.style) for part in rest)
