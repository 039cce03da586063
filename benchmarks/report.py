"""How results are printed: tables that read well in a terminal, and in Markdown too."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["table"]


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with its heading; the first column is text, the others are set to the right."""
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    rule = [f"{'-' * (width + 1)}{'-' if not at else ':'}" for at, width in enumerate(widths)]
    lines = [line(row, widths) for row in rows]
    return "\n".join([f"### {title}", "", line(head, widths), f"|{'|'.join(rule)}|", *lines, ""])


def line(cells: Sequence[str], widths: Sequence[int]) -> str:
    set_to = [
        cell.rjust(width) if at else cell.ljust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return f"| {' | '.join(set_to)} |"
