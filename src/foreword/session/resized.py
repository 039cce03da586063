"""Texts whose spans have other sizes than their blob says, and are otherwise what it says.

A variable that has another value, or a section that says something else, moves boundaries and nothing more: the same
owners, in the same order. The step then tells the new sizes itself and keeps the trace of the step before, because a
few numbers there take less room than a new blob and the nodes above it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from foreword.session.records import Resized

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foreword.session.told import ToldSpan, ToldText

__all__ = ["resized", "with_sizes"]

MOST: Final = 100
"""Sizes that a step tells at most: half a kilobyte. Each later step tells them again, so more go into a new trace."""


def resized(was: Sequence[ToldText], now: Sequence[ToldText]) -> tuple[Resized, ...] | None:
    """The sizes in which texts differ.

    Args:
        was: the texts that the blobs of a trace hold.
        now: those of a step.

    Returns:
        The sizes of each text that has others; None if more than sizes differ, or too many of them.
    """
    if len(was) != len(now):
        return None
    others: list[Resized] = []
    left = MOST
    for at, (before, after) in enumerate(zip(was, now, strict=True)):
        if before is after or before == after:
            continue
        if _shape(before) != _shape(after):
            return None
        sizes = tuple(span.size for span in after.spans if span.size is not None)
        left -= len(sizes)
        if left < 0:
            return None
        others.append(Resized(at, sizes))
    return tuple(others)


def with_sizes(texts: Sequence[ToldText], others: Sequence[Resized]) -> list[ToldText]:
    """The texts with the sizes that a step told.

    Raises:
        ValueError: there is no such text, or it has another number of sizes.
    """
    told = list(texts)
    for other in others:
        if other.text >= len(told):
            raise ValueError(f"it has {len(told)} texts, and text {other.text} should have other sizes")
        told[other.text] = _with_sizes(told[other.text], other.sizes)
    return told


def _with_sizes(text: ToldText, sizes: tuple[int, ...]) -> ToldText:
    sized = [at for at, span in enumerate(text.spans) if span.size is not None]
    if len(sized) != len(sizes):
        raise ValueError(f"{text.name!r} has {len(sized)} sizes, and {len(sizes)} should stand in their place")
    spans = list(text.spans)
    for at, size in zip(sized, sizes, strict=True):
        spans[at] = msgspec.structs.replace(spans[at], size=size)
    return msgspec.structs.replace(text, spans=tuple(spans))


def _shape(text: ToldText) -> tuple[object, ...]:
    """What of a text must stay for its sizes to be told alone."""
    return text.name, text.origin, text.variables, [_kind(span) for span in text.spans]


def _kind(span: ToldSpan) -> tuple[bool, int | str | None]:
    return span.size is None, span.what
