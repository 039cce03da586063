"""Spans: who put which stretch of a text there. They cover the text without gap or overlap."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, overload

from foreword.prompt.origin import ASSEMBLER

if TYPE_CHECKING:
    from foreword.kernel.source import Source
    from foreword.prompt.assembly import AssembledText
    from foreword.prompt.origin import Origin

__all__ = ["SEPARATOR", "Span", "Spans", "spans_of"]

SEPARATOR = "\n\n"
"""What stands between two sections: one blank line."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a text with one origin.

    Attributes:
        start: where it begins, in code points (bytes in what `Spans.utf8` gives).
        end: where it ends, exclusive.
        kind: ``literal`` (text of a section), ``variable`` (a value), ``separator`` (a blank line of the assembler).
        origin: who put it there: for a variable's value the variable's owner, not the section's.
        section: the section or context it stands in; None for a separator.
        variable: the variable's name; None unless the kind is ``variable``.
        section_origin: who contributed that section or context; for a literal the same as `origin`.
        source: file and line of the text or of the call that registered it, if known.
    """

    start: int
    end: int
    kind: Literal["literal", "variable", "separator"]
    origin: Origin
    section: str | None = None
    variable: str | None = None
    source: Source | None = None
    section_origin: Origin | None = None

    @property
    def owner(self) -> str:
        """The plugin that put it there."""
        return self.origin.owner

    @property
    def listener(self) -> str | None:
        """The listener that put it there, if it was not registered."""
        return self.origin.listener


class Spans(Sequence[Span]):
    """The spans of one text, in order; with the text, so that positions can be told in bytes, too."""

    __slots__ = ("_spans", "text")

    def __init__(self, spans: Iterable[Span] = (), text: str = "") -> None:
        self._spans = tuple(spans)
        self.text = text

    def at(self, position: int) -> Span:
        """The span that holds a position.

        Raises:
            IndexError: the text has no such position.
        """
        if not self._spans or not 0 <= position < self._spans[-1].end:
            raise IndexError(f"position {position} is outside the text")
        return self._spans[bisect_right(self._spans, position, key=lambda span: span.start) - 1]

    def between(self, start: int, end: int) -> tuple[Span, ...]:
        """The spans of a stretch, cut to it; the source of each is the line at which its part begins."""
        return tuple(self._cut(span, start, end) for span in self._spans if span.start < end and start < span.end)

    def _cut(self, span: Span, start: int, end: int) -> Span:
        first = max(span.start, start)
        lines = self.text.count("\n", span.start, first) if span.kind == "literal" else 0
        source = None if span.source is None else span.source.down(lines)
        return replace(span, start=first, end=min(span.end, end), source=source)

    def utf8(self) -> tuple[Span, ...]:
        """The same spans with positions in bytes of the text's UTF-8."""
        made: list[Span] = []
        at = 0
        for span in self._spans:
            size = len(self.text[span.start : span.end].encode())
            made.append(replace(span, start=at, end=at + size))
            at += size
        return tuple(made)

    @overload
    def __getitem__(self, index: int) -> Span: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Span, ...]: ...
    def __getitem__(self, index: int | slice) -> Span | tuple[Span, ...]:
        return self._spans[index]

    def __len__(self) -> int:
        return len(self._spans)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spans) and (self._spans, self.text) == (other._spans, other.text)

    def __hash__(self) -> int:
        return hash((self._spans, self.text))

    def __repr__(self) -> str:
        return f"Spans({list(self._spans)!r})"


def spans_of(
    text: str,
    entries: Iterable[AssembledText],
    values: dict[str, str | None],
    variable_origin: Callable[[str], Origin],
    *,
    opener: str = "",
) -> Spans:
    """The spans of a text that joins entries, those that render to nothing left out.

    Args:
        text: the text, as rendered.
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
    return Spans(spans, text)


def _pieces(
    entry: AssembledText, values: dict[str, str | None], variable_origin: Callable[[str], Origin]
) -> Iterator[tuple[Span, int]]:
    origin = entry.origin or ASSEMBLER
    lines, counted = 0, 0
    pending: list[tuple[Span, int]] = []  # neighbouring literals (an escape parts them) make one span
    for segment in entry.template.segments:
        if segment.is_reference:
            yield from _joined(pending)
            pending = []
            owner = variable_origin(segment.text)
            value = values[segment.text] or ""
            yield Span(0, 0, "variable", owner, entry.name, segment.text, owner.source, origin), len(value)
        else:
            lines += entry.text.count("\n", counted, segment.start)
            counted = segment.start
            source = None if origin.source is None else origin.source.down(lines)
            pending.append((Span(0, 0, "literal", origin, entry.name, None, source, origin), len(segment.text)))
    yield from _joined(pending)


def _joined(literals: list[tuple[Span, int]]) -> Iterator[tuple[Span, int]]:
    if literals:
        yield literals[0][0], sum(size for _, size in literals)
