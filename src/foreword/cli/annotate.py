"""Spans become blocks for the gutter: a section with its owner, the variables in it with theirs."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from foreword.cli.gutter import Block, Note, Stretch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from foreword.cli.terminal import Screen
    from foreword.prompt.origin import Origin
    from foreword.prompt.spans import Span, Spans

__all__ = ["blocks_of", "details_of", "lines_of"]

_TAB = " " * 4


def blocks_of(text: str, spans: Spans, screen: Screen) -> list[Block]:
    """A block for each section, and one for each stretch between them.

    Args:
        text: a rendered text.
        spans: its spans; they cover it.
        screen: says what of the text it can show.
    """
    blocks: list[Block] = []
    for is_between, group in groupby(spans, lambda span: span.kind == "separator"):
        members = list(group)
        block = _between(text, members, screen) if is_between else _section(text, members, screen)
        blocks.append(block)
    return blocks


def details_of(origin: Origin | None) -> tuple[str, ...]:
    """What is not usual about an origin: a scope, a listener."""
    if origin is None:
        return ()
    scope = () if origin.scope is None else (f"in scope {origin.scope}",)
    listener = () if origin.listener is None else (f"by listener {origin.listener}",)
    return (*scope, *listener)


def lines_of(text: str, screen: Screen) -> list[str]:
    """The lines of a text as a row can show them."""
    return [screen.shown(line.replace("\t", _TAB)) for line in text.split("\n")]


def _section(text: str, spans: list[Span], screen: Screen) -> Block:
    first = spans[0]
    origin = first.section_origin or first.origin
    size = spans[-1].end - first.start
    name = screen.name
    notes = [Note(name(origin.owner), name(first.section or ""), size, tuple(map(name, details_of(origin))))]
    lines: list[list[Stretch]] = [[]]
    for span in spans:
        is_value = span.kind == "variable"
        owner = name(span.owner)
        if is_value:
            column = sum(len(stretch.text) for stretch in lines[-1])
            details = tuple(map(name, details_of(span.origin)))
            label = f"{{{{{span.variable}}}}}"
            notes.append(Note(owner, label, span.end - span.start, details, True, len(lines) - 1, column))
        head, *rest = lines_of(text[span.start : span.end], screen)
        lines[-1].append(Stretch(head, owner, is_value))
        lines += [[Stretch(line, owner, is_value)] for line in rest]
    return Block(tuple(map(tuple, lines)), tuple(notes))


def _between(text: str, spans: Iterable[Span], screen: Screen) -> Block:
    """What the assembler put between two sections, or in front of all. The newline that ends a line is no row."""
    lines: list[str] = []
    for span in spans:
        told = lines_of(text[span.start : span.end], screen)
        lines += told[0 if span.start == 0 else 1 : None if span.end == len(text) else -1]
    return Block(tuple((Stretch(line, None, is_aside=True),) for line in lines))
