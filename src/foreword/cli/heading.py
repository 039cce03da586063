"""The line above a part of a report: what it is, and its facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.cli.terminal import Piece
from foreword.cli.wrapping import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.cli.terminal import Row, Screen

__all__ = ["count", "heading"]


def heading(title: str, facts: str, screen: Screen) -> Iterator[Row]:
    """The rows of a heading: one if it fits, else the facts below the title."""
    title, facts = screen.name(title), screen.name(facts)
    whole = wrapped(f"{title}  {facts}", screen.width)
    if len(whole) == 1:
        yield (Piece(title, "bold"), Piece(f"  {facts}", "dim"))
    else:
        yield from ((Piece(row, "bold"),) for row in wrapped(title, screen.width))
        yield from ((Piece(row, "dim"),) for row in wrapped(facts, screen.width))


def count(number: int, noun: str) -> str:
    """A number of things: ``1 owner``, ``2 owners``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
