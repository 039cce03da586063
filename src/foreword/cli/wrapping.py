"""Cutting text by the cells it takes in a terminal: wide characters take two, combining ones none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["cell_len", "clipped", "padded", "wrapped"]

_JOINER: Final = "\u200d"
_WIDEST: Final = 2  # cells of one character; what a joiner makes wider is no one character to a terminal
_FIRST_MARK: Final = "\u0300"  # below it nothing combines
_NEVER_FIRST: Final = frozenset("、。，．・：；！？）］｝」』】〉》ーっゃゅょ々")  # in a row of such writing


def wrapped(line: str, width: int) -> list[str]:
    """Cut a line into rows: between words and around wide characters if possible, else anywhere between characters.

    Args:
        line: without newlines and tabs.
        width: in cells, at least two; blanks at the end of a row may go beyond it.

    Returns:
        At least one row; joined, they are the line again.
    """
    if line.isascii() and len(line) <= width:
        return [line]
    rows: list[str] = []
    start = at = filled = 0  # where the row begins, where we are, and the cells between
    cut = cells_before_cut = 0  # the last good place to end the row
    previous = ""
    for character in _characters(line):
        size = cell_len(character)
        if _may_part(previous, character):
            cut, cells_before_cut = at, filled
        while character != " " and filled + size > width and at > start:
            if not line[start:cut].strip(" "):
                cut, cells_before_cut = at, filled
            rows.append(line[start:cut])
            start, filled, cells_before_cut = cut, filled - cells_before_cut, 0
        at += len(character)
        filled += size
        previous = character
    rows.append(line[start:])
    return rows


def _may_part(before: str, after: str) -> bool:
    """Whether a row may end between two characters of a line."""
    if before == " " or not before:
        return after != " "
    return after not in _NEVER_FIRST and (cell_len(before) > 1 or cell_len(after) > 1) and after != " "


def padded(text: str, width: int) -> str:
    """The text with blanks up to a width."""
    return text + " " * (width - cell_len(text))


def clipped(names: Sequence[str], width: int) -> str:
    """As many of the names as fit a width, and how many more there are; always at least one."""
    for count in range(len(names), 1, -1):
        more = f" +{len(names) - count}" if count < len(names) else ""
        text = " ".join(names[:count]) + more
        if cell_len(text) <= width:
            return text
    return names[0] + (f" +{len(names) - 1}" if len(names) > 1 else "")


def _characters(line: str) -> Iterator[str]:
    """What a reader takes for characters: each with the marks that combine with it."""
    if line.isascii():
        yield from line
        return
    start = 0
    for at in range(1, len(line)):
        joins = line[at - 1] == _JOINER and cell_len(line[start : at + 1]) <= _WIDEST
        if line[at] < _FIRST_MARK or (cell_len(line[at]) > 0 and not joins):
            yield line[start:at]
            start = at
    if line:
        yield line[start:]
