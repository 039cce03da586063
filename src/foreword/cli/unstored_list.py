"""The note below a report on prompts of which the log does not hold all: what that is, and how to read the marks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.cli.terminal import Piece
from foreword.cli.wrapping import wrapped
from foreword.explain.telling import unstored_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from foreword.cli.terminal import Row, Screen

__all__ = ["unstored_rows"]


def unstored_rows(screen: Screen, *unstored: Sequence[str]) -> Iterator[Row]:
    """The rows of the note, a blank one first; none if the log holds all.

    Args:
        screen: where they are to be shown.
        unstored: what the log does not hold, of each of the prompts.
    """
    told = unstored_words(*unstored)
    if told:
        yield ()
        yield from ((Piece(row, "dim"),) for row in wrapped(screen.told(told), screen.width))
