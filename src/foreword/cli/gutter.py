"""The gutter: text with notes beside it, who owns which stretch; or above it where a terminal is narrow.

A bar stands at the text's left. It is solid at the first row of a line and broken where the line goes on, so that what
the terminal wrapped can be told from what the text says; it is heavy where all of the row is a variable's value; and
there is none beside the blank lines that nobody contributed. The text itself gets no mark.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from zlib import crc32

from foreword.cli.terminal import Piece, Row
from foreword.cli.wrapping import cell_len, clipped, padded, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from foreword.cli.terminal import Screen

__all__ = ["Block", "Gutter", "Note", "Palette", "Stretch"]

_NARROWEST_TEXT: Final = 44  # cells; with less beside them, the notes go above the text
_WIDEST_OWNER: Final = 16
_WIDEST_LABEL: Final = 28
_SILENCE: Final = 24  # rows without a note, after which the section is named again
_GAP: Final = "  "
_BARS: Final = {"solid": "│", "broken": "╎", "heavy solid": "┃", "heavy broken": "╏"}
_ASCII_BARS: Final = {"solid": "|", "broken": ":", "heavy solid": "#", "heavy broken": "%"}

# Of the 256 colours those that can be read on black and on white, neighbours far apart.
_COLOURS: Final = (33, 166, 35, 133, 136, 37, 161, 99, 71, 173, 68, 170)


class Palette:
    """A colour for each owner: always the same for the same owners, and no two alike while there are enough."""

    def __init__(self, owners: Iterable[str]) -> None:
        self._styles: dict[str, str] = {}
        taken: set[int] = set()
        for owner in sorted(set(owners)):
            at = crc32(owner.encode("utf-8", "surrogatepass")) % len(_COLOURS)
            while at in taken and len(taken) < len(_COLOURS):
                at = (at + 1) % len(_COLOURS)
            taken.add(at)
            self._styles[owner] = f"color({_COLOURS[at]})"

    def style(self, owner: str | None) -> str:
        """The owner's colour, in rich's words; empty for none."""
        return "" if owner is None else self._styles.get(owner, "")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Part of a line: text of one owner."""

    text: str
    owner: str | None
    is_value: bool = False  # of a variable
    is_aside: bool = False  # ours, not the text's


@dataclass(frozen=True, slots=True)
class Note:
    """What the gutter says about a stretch."""

    owner: str
    label: str  # section, context, tool, or variable
    size: int  # in characters
    details: tuple[str, ...] = ()
    is_variable: bool = False
    line: int = 0  # of the block, where the stretch begins
    column: int = 0  # in characters of that line


@dataclass(frozen=True, slots=True)
class Block:
    """A section, or what stands between two, with its notes in the order of their places."""

    lines: tuple[tuple[Stretch, ...], ...]
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class _Told:
    """Notes that begin in the same row, on variables of the same owner: told as one."""

    owner: str
    labels: tuple[str, ...]
    size: int
    details: tuple[str, ...]
    is_variable: bool
    row: int


class Gutter:
    """Blocks beside (or, in a narrow terminal, below) what is to be said about them."""

    def __init__(self, blocks: Sequence[Block], screen: Screen, palette: Palette) -> None:
        """Measure the blocks; all that is shown together should be measured together, so that it stands in line."""
        notes = [note for block in blocks for note in block.notes]
        self._screen, self._palette = screen, palette
        self._bars = _BARS if all(map(screen.can_show, _BARS.values())) else _ASCII_BARS
        self._more = "…" if screen.can_show("…") else "."
        self._owner = min(max((cell_len(note.owner) for note in notes), default=0), _WIDEST_OWNER)
        labels = [text for note in notes for text in (note.label, *note.details)]
        labels += [
            clipped(told.labels, _WIDEST_LABEL) for block in blocks for told in _together(block.notes, _anywhere)
        ]
        self._label = min(max(map(cell_len, labels), default=0), _WIDEST_LABEL)
        self._size = max((len(f"{note.size:,}") for note in notes), default=0)
        width = self._owner + self._label + self._size + 2 * len(_GAP)
        self._is_beside = screen.width - width - 3 >= _NARROWEST_TEXT
        self._text = screen.width - 2 - (width + 1 if self._is_beside else 0)

    def rows(self, blocks: Iterable[Block]) -> Iterator[Row]:
        """The rows of some blocks."""
        for block in blocks:
            texts, row_of = self._texts(block)
            if self._is_beside:
                notes = self._note_rows(_together(block.notes, row_of))
                if len(notes) > len(texts):  # too many to stand beside what they are about
                    notes = self._note_rows(_together(block.notes, _anywhere))
                yield from self._beside(texts, notes, self._reminder(block))
            else:
                for each in _together(block.notes, _anywhere):
                    yield from self._heading(each)
                yield from texts

    # -- the text ------------------------------------------------------------------------------------------------------

    def _texts(self, block: Block) -> tuple[list[Row], Callable[[Note], int]]:
        """The rows of the text, bars included; and a function that tells in which of them a note's stretch begins."""
        rows: list[Row] = []
        starts: list[tuple[int, list[int]]] = []  # of each line, its first row, and the columns where its rows begin
        for line in block.lines:
            starts.append((len(rows), []))
            at = 0
            for cut in wrapped("".join(stretch.text for stretch in line), self._text):
                row = _between(line, at, at + len(cut))
                bar = self._bar(row, goes_on=at > 0) if block.notes else Piece("  ")
                rows.append((bar, *(Piece(stretch.text, self._style(stretch)) for stretch in row)))
                starts[-1][1].append(at)
                at += len(cut)

        def row_of(note: Note) -> int:
            first, columns = starts[note.line]
            return first + bisect_right(columns, note.column) - 1

        return rows, row_of

    def _bar(self, row: Sequence[Stretch], *, goes_on: bool) -> Piece:
        told = [stretch for stretch in row if stretch.text] or row
        of_the_text = [stretch for stretch in told if not stretch.is_value]
        bar = self._bars[f"{'' if of_the_text else 'heavy '}{'broken' if goes_on else 'solid'}"]
        return Piece(f"{bar} ", self._palette.style((of_the_text or told)[0].owner))

    def _style(self, stretch: Stretch) -> str:
        if stretch.is_aside:
            return "dim"
        return self._palette.style(stretch.owner) if stretch.is_value else ""

    # -- the notes beside it -------------------------------------------------------------------------------------------

    def _beside(self, texts: list[Row], notes: list[tuple[int, Row]], reminder: Row) -> Iterator[Row]:
        blank = (Piece(" " * (self._owner + self._label + self._size + 2 * len(_GAP) + 1)),)
        waiting = deque(notes)
        silent = 0  # rows since the last note
        for at, text in enumerate(texts):
            silent += 1
            if waiting and waiting[0][0] <= at:
                note, silent = waiting.popleft()[1], 0
            elif reminder and silent >= _SILENCE and len(texts) - at >= _SILENCE // 2:
                note, silent = reminder, 0
            else:
                note = blank
            yield (*note, *text)
        for _, note in waiting:
            yield note

    def _reminder(self, block: Block) -> Row:
        """What stands beside a long section now and then, so that scrolling does not lose its owner."""
        if not block.notes:
            return ()
        section = block.notes[0]
        owner, label = wrapped(section.owner, self._owner)[0], wrapped(section.label, self._label)[0]
        return (
            Piece(padded(owner, self._owner), self._palette.style(section.owner)),
            Piece(f"{_GAP}{padded(label, self._label)}{_GAP}{self._more.rjust(self._size)} ", "dim"),
        )

    def _note_rows(self, told: Iterable[_Told]) -> list[tuple[int, Row]]:
        """The rows of some notes, each with the row of the text beside which it may stand at the earliest."""
        return [(each.row, row) for each in told for row in self._one_note(each)]

    def _one_note(self, told: _Told) -> Iterator[Row]:
        owners = wrapped(told.owner, self._owner)
        labels = [(text, "") for text in wrapped(clipped(told.labels, self._label), self._label)]
        labels += [(text, "dim") for detail in told.details for text in wrapped(detail, self._label)]
        size = f"{told.size:,}".rjust(self._size)
        for at in range(max(len(owners), len(labels))):
            owner = owners[at] if at < len(owners) else ""
            label, style = labels[at] if at < len(labels) else ("", "")
            yield (
                Piece(padded(owner, self._owner), self._palette.style(told.owner)),
                Piece(_GAP + padded(label, self._label) + _GAP, style),
                Piece((size if at == 0 else " " * self._size) + " ", "dim"),
            )

    # -- the notes above it --------------------------------------------------------------------------------------------

    def _heading(self, told: _Told) -> Iterator[Row]:
        """The rows of a note: of a section flush left, of a variable indented below it."""
        width = self._screen.width
        size, indent = f"{told.size:,}", _GAP if told.is_variable else ""
        colour = self._palette.style(told.owner)
        room = width - cell_len(indent + told.owner) - len(size) - 2 * len(_GAP)
        label = clipped(told.labels, room)
        if cell_len(label) <= room:
            yield (
                Piece(indent + told.owner, f"{colour} bold"),
                Piece(_GAP + padded(label, room)),
                Piece(_GAP + size, "dim"),
            )
        else:
            for text in wrapped(told.owner, width - len(indent)):
                yield (Piece(indent + text, f"{colour} bold"),)
            for text in wrapped(f"{label}{_GAP}{size}", width - len(indent + _GAP)):
                yield (Piece(indent + _GAP + text),)
        for detail in told.details:
            for text in wrapped(detail, width - len(indent + _GAP)):
                yield (Piece(indent + _GAP + text, "dim"),)


def _together(notes: Iterable[Note], row_of: Callable[[Note], int]) -> list[_Told]:
    """The notes by the row they begin in; there those on one owner's variables become one."""
    groups: dict[tuple[int, str, tuple[str, ...], bool], list[Note]] = {}
    for note in notes:
        groups.setdefault((row_of(note), note.owner, note.details, note.is_variable), []).append(note)
    return [_told(row, same) for (row, *_), same in groups.items()]


def _anywhere(_: Note) -> int:
    """The row of every note, where its own does not matter."""
    return 0


def _told(row: int, notes: Sequence[Note]) -> _Told:
    labels, size = dict.fromkeys(note.label for note in notes), sum(note.size for note in notes)
    return _Told(notes[0].owner, tuple(labels), size, notes[0].details, notes[0].is_variable, row)


def _between(line: Sequence[Stretch], start: int, end: int) -> list[Stretch]:
    """The part of a line's stretches between two places; stretches without text stay, to say whose a blank line is."""
    found: list[Stretch] = []
    at = 0
    for stretch in line:
        text = stretch.text[max(start - at, 0) : max(end - at, 0)]
        if text or not stretch.text:
            found.append(Stretch(text, stretch.owner, stretch.is_value, stretch.is_aside))
        at += len(stretch.text)
    return found
