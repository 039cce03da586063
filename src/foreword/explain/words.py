"""A word diff: what became of a text, word by word.

What stayed and what went, joined, is the old text; what stayed and what came is the new one. So it can be applied.
Large changes are first told apart by lines, so that the work grows with what changed and not with its square.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from foreword.jsonvalue import JsonValue

__all__ = ["Piece", "new_text", "old_text", "word_diff"]

_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_MOST_WORDS = 2_000  # on each side; larger stretches are told by lines
_MOST_LINES = 5_000  # on each side; larger ones are told as one


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a text that stayed, went or came."""

    what: Literal["same", "gone", "came"]
    text: str

    def to_json(self) -> dict[str, JsonValue]:
        """The piece as JSON."""
        return {"what": self.what, "text": self.text}


def word_diff(old: str, new: str) -> tuple[Piece, ...]:
    """What turned one text into another. Nothing in it is empty, and no two neighbours are of one kind.

    Args:
        old: the text before.
        new: the text after.
    """
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    middle = _by_words(old[head : len(old) - tail], new[head : len(new) - tail])
    pieces = (Piece("same", old[:head]), *middle, Piece("same", old[len(old) - tail :]))
    return tuple(_joined(pieces))


def old_text(pieces: Iterable[Piece]) -> str:
    """The text before."""
    return "".join(piece.text for piece in pieces if piece.what != "came")


def new_text(pieces: Iterable[Piece]) -> str:
    """The text after."""
    return "".join(piece.text for piece in pieces if piece.what != "gone")


def _common(one: str, other: str) -> int:
    """How many characters two texts begin with in common; cut back to where a word begins."""
    size = min(len(one), len(other))
    low, high = 0, size
    while low < high:  # comparing slices is many times faster than comparing characters
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    if low == len(one) == len(other):
        return low
    while low and _in_word(one, low) | _in_word(other, low):
        low -= 1
    return low


def _in_word(text: str, at: int) -> bool:
    return (
        at < len(text) and (text[at - 1].isalnum() or text[at - 1] == "_") and (text[at].isalnum() or text[at] == "_")
    )


def _by_words(old: str, new: str) -> Iterator[Piece]:
    before, after = _WORD.findall(old), _WORD.findall(new)
    if len(before) <= _MOST_WORDS and len(after) <= _MOST_WORDS:
        yield from _matched(before, after)
    else:
        yield from _by_lines(old, new)


def _by_lines(old: str, new: str) -> Iterator[Piece]:
    before, after = _LINE.findall(old), _LINE.findall(new)
    if len(before) > _MOST_LINES or len(after) > _MOST_LINES:
        yield from (Piece("gone", old), Piece("came", new))
        return
    for tag, first, last, start, end in SequenceMatcher(None, before, after).get_opcodes():
        gone, came = before[first:last], after[start:end]
        if tag == "equal":
            yield Piece("same", "".join(gone))
            continue
        words = _WORD.findall("".join(gone)), _WORD.findall("".join(came))
        if tag == "replace" and max(map(len, words)) <= _MOST_WORDS:
            yield from _matched(*words)
        else:
            yield from (Piece("gone", "".join(gone)), Piece("came", "".join(came)))


def _matched(before: Sequence[str], after: Sequence[str]) -> Iterator[Piece]:
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for tag, first, last, start, end in matcher.get_opcodes():
        if tag == "equal":
            yield Piece("same", "".join(before[first:last]))
        else:
            yield from (Piece("gone", "".join(before[first:last])), Piece("came", "".join(after[start:end])))


def _joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces without empty ones, neighbours of one kind as one; between two that stayed, what went comes first."""
    kept, gone, came = "", "", ""
    for piece in pieces:
        if not piece.text:
            continue
        if piece.what == "same":
            if gone or came:
                yield from _told(kept, gone, came)
                kept, gone, came = "", "", ""
            kept += piece.text
        elif piece.what == "gone":
            gone += piece.text
        else:
            came += piece.text
    yield from _told(kept, gone, came)


def _told(kept: str, gone: str, came: str) -> Iterator[Piece]:
    told = (Piece("same", kept), Piece("gone", gone), Piece("came", came))
    yield from (piece for piece in told if piece.text)
