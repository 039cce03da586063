"""Spans: who put which stretch of a text there. They cover the text without gap or overlap."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from foreword.prompt.origin import ASSEMBLER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from foreword.prompt.assembly import AssembledText
    from foreword.prompt.origin import Origin, Source

__all__ = ["SEPARATOR", "Span", "Spans", "spans_of"]

SEPARATOR = "\n\n"
"""What stands between two sections: one blank line."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text with one origin.

    Attributes:
        start: where it begins, in code points (bytes after `Spans.utf8`).
        end: where it ends, exclusive.
        kind: ``literal`` (text of a section), ``variable`` (a value), ``separator`` (a blank line of the assembler).
        origin: who put it there: for a variable's value the variable's owner, not the section's.
        section: the section or context it stands in; None for a separator.
        variable: the variable's name; None unless the kind is ``variable``.
        source: file and line of the text or of the call that registered it, if known.
    """

    start: int
    end: int
    kind: Literal["literal", "variable", "separator"]
    origin: Origin
    section: str | None = None
    variable: str | None = None
    source: Source | None = None

    @property
    def owner(self) -> str:
        """The plugin that put it there."""
        return self.origin.owner

    @property
    def listener(self) -> str | None:
        """The listener that put it there, if it was not registered."""
        return self.origin.listener


class Spans(tuple[Span, ...]):
    """The spans of one text, in order."""

    __slots__ = ()

    def at(self, position: int) -> Span:
        """The span that holds a position.

        Raises:
            IndexError: the text has no such position.
        """
        if not self or not 0 <= position < self[-1].end:
            raise IndexError(f"position {position} is outside the text")
        return self[bisect_right(self, position, key=lambda span: span.start) - 1]

    def between(self, start: int, end: int) -> tuple[Span, ...]:
        """The spans that touch a stretch."""
        return tuple(span for span in self if span.start < end and start < span.end)

    def utf8(self, text: str) -> Spans:
        """The same spans with positions in UTF-8 bytes; `text` is the text that they cover."""
        made: list[Span] = []
        at = 0
        for span in self:
            size = len(text[span.start : span.end].encode())
            made.append(replace(span, start=at, end=at + size))
            at += size
        return Spans(made)


def spans_of(
    entries: Iterable[AssembledText],
    values: dict[str, str | None],
    variable_origin: Callable[[str], Origin],
    *,
    opener: str = "",
) -> Spans:
    """The spans of a text that joins entries, those that render to nothing left out.

    Args:
        entries: the sections or contexts, in order.
        values: what was spliced in.
        variable_origin: whose value a name has.
        opener: text of the assembler's own in front.
    """
    spans: list[Span] = []
    at = 0
    if opener:
        spans.append(Span(0, len(opener), "separator", ASSEMBLER))
        at = len(opener)
    filled = False
    for entry in entries:
        pieces = [piece for piece in _pieces(entry, values, variable_origin) if piece[1] > 0]
        if not pieces:
            continue
        if filled:
            spans.append(Span(at, at + len(SEPARATOR), "separator", ASSEMBLER))
            at += len(SEPARATOR)
        filled = True
        for span, size in pieces:
            spans.append(replace(span, start=at, end=at + size))
            at += size
    return Spans(spans)


def _pieces(
    entry: AssembledText, values: dict[str, str | None], variable_origin: Callable[[str], Origin]
) -> Iterator[tuple[Span, int]]:
    origin = entry.origin or ASSEMBLER
    lines, counted = 0, 0
    for segment in entry.template.segments:
        if segment.is_reference:
            owner = variable_origin(segment.text)
            value = values[segment.text] or ""
            yield Span(0, 0, "variable", owner, entry.name, segment.text, owner.source), len(value)
        else:
            lines += entry.text.count("\n", counted, segment.start)
            counted = segment.start
            source = None if origin.source is None else origin.source.down(lines)
            yield Span(0, 0, "literal", origin, entry.name, None, source), len(segment.text)


def owners(spans: Sequence[Span]) -> tuple[str, ...]:
    """The owners of some spans, each once, in order."""
    return tuple(dict.fromkeys(span.owner for span in spans))
