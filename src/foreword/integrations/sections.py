"""Which sections the instructions of a request are: one for each part that a framework names, else one for each text.

A part without a name of its own is called by its place and its first words, and keeps that name for the rest of the
session while it can be told that it is still the same part. So a text that changes is one that changed, and not one
that went and another one that came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from foreword.prompt.spans import SEPARATOR

if TYPE_CHECKING:
    from foreword.integrations.told import Credit, Credits

__all__ = ["Named", "Namer", "Piece", "pieces_of"]

_MOST_WORDS: Final = 4
_LONGEST: Final = 100  # characters in which they are looked for


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the instructions."""

    text: str
    name: str | None
    owner: str


@dataclass(frozen=True, slots=True)
class Named:
    """A section: a piece with a name that no other one of its request bears."""

    name: str
    text: str
    owner: str


def pieces_of(instructions: Sequence[str], credits: Credits) -> list[Piece]:
    """The instructions in the pieces that a framework tells of.

    A framework may send its parts one by one, or join them with blank lines; either way each is found by its text.
    """
    left = list(credits.parts)
    return [piece for text in instructions for piece in _pieces(text, left, credits.owner)]


def _pieces(text: str, left: list[Credit], owner: str) -> Iterator[Piece]:
    whole = next((credit for credit in left if credit.text == text), None)
    if whole is not None:
        left.remove(whole)
        yield Piece(text, whole.name, whole.owner)
        return
    at = 0
    for credit in tuple(left):
        start = _place(text, credit.text, at)
        if start is None:
            continue
        left.remove(credit)
        if start > at:
            yield from _wrapped(text[at : start - len(SEPARATOR)], left, owner)
        yield Piece(credit.text, credit.name, credit.owner)
        at = start + len(credit.text) + len(SEPARATOR)
    if at < len(text):
        yield from _wrapped(text[at:], left, owner)


def _wrapped(text: str, left: list[Credit], owner: str) -> Iterator[Piece]:
    """A stretch that is no part to the letter; but a framework may have put something round one, or round several."""
    held = [credit for credit in left if credit.text and credit.text in text]
    if len(held) > 1:
        end = text.find(SEPARATOR)
        while end >= 0:
            if sum(credit.text in text[:end] for credit in held) == 1:
                yield from _wrapped(text[:end], left, owner)
                yield from _wrapped(text[end + len(SEPARATOR) :], left, owner)
                return
            end = text.find(SEPARATOR, end + 1)
    if len(held) != 1:
        yield Piece(text, None, owner)
        return
    left.remove(held[0])
    yield Piece(text, held[0].name, held[0].owner)


def _place(text: str, part: str, at: int) -> int | None:
    """Where a part stands in a text, from a position on, between two blank lines or the text's ends."""
    start = text.find(part, at) if part else -1
    while start >= 0:
        end = start + len(part)
        begins = start == at or text.endswith(SEPARATOR, at, start)
        ends = end == len(text) or (text.startswith(SEPARATOR, end) and end + len(SEPARATOR) < len(text))
        if begins and ends:
            return start
        start = text.find(part, start + 1)
    return None


class Namer:
    """Names the pieces of the requests of one session, each request in the light of the one before."""

    def __init__(self) -> None:
        self._last: tuple[Piece, ...] = ()
        self._names: tuple[str, ...] = ()

    def name(self, pieces: Sequence[Piece]) -> tuple[Named, ...]:
        """The pieces of the next request, with their names."""
        if tuple(pieces) != self._last:
            self._names = self._named(pieces)
            self._last = tuple(pieces)
        return tuple(Named(name, piece.text, piece.owner) for name, piece in zip(self._names, pieces, strict=True))

    def _named(self, pieces: Sequence[Piece]) -> tuple[str, ...]:
        kept = self._kept(pieces)
        taken = set(kept.values())
        names: list[str] = []
        for at, piece in enumerate(pieces):
            name = kept.get(at) or _free(piece.name or _by_words(at, piece.text), taken)
            taken.add(name)
            names.append(name)
        return tuple(names)

    def _kept(self, pieces: Sequence[Piece]) -> dict[int, str]:
        """The names, by place, of nameless pieces that were there before: with the same text, or in the same place."""
        left = {at: piece for at, piece in enumerate(self._last) if piece.name is None}
        kept: dict[int, str] = {}
        nameless = [at for at, piece in enumerate(pieces) if piece.name is None]
        for at in nameless:
            same = next((was for was, piece in left.items() if piece.text == pieces[at].text), None)
            if same is not None:
                del left[same]
                kept[at] = self._names[same]
        for at in nameless:
            if at not in kept and at in left:
                kept[at] = self._names[at]
        return kept


def _free(name: str, taken: set[str]) -> str:
    """A name that is not taken: itself, or with a number behind."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name} ({number})"
    return free


def _by_words(at: int, text: str) -> str:
    """Place and first words: up to the first that has a digit, since that one is likely to change."""
    words = list(takewhile(lambda word: not any(map(str.isdigit, word)), text[:_LONGEST].split()))
    return " ".join([f"#{at + 1}", *words[:_MOST_WORDS]])
