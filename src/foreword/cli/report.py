"""The parts of a rendering one below the other: prompt and contexts in the gutter, tools, trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from foreword.cli.annotate import blocks_of
from foreword.cli.gutter import Gutter, Palette
from foreword.cli.heading import count, heading
from foreword.cli.tool_list import tool_blocks
from foreword.cli.trace_list import trace_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from foreword.cli.gutter import Block
    from foreword.cli.shown import Shown
    from foreword.cli.terminal import Row, Screen

__all__ = ["Part", "report"]

Part: TypeAlias = Literal["prompt", "contexts", "tools", "trace"]


def report(shown: Shown, parts: Sequence[Part], screen: Screen) -> Iterator[Row]:
    """The rows that tell some parts of a rendering."""
    blocks = {part: _blocks(shown, part, screen) for part in parts}
    everything = [block for each in blocks.values() for block in each]
    palette = Palette(note.owner for block in everything for note in block.notes)
    gutter = Gutter(everything, screen, palette)
    for at, part in enumerate(parts):
        if at:
            yield ()
        yield from heading(*_title(shown, part, blocks[part]), screen)
        yield ()
        if part == "trace":
            yield from trace_rows(shown.rendering.trace, screen, shown.hide)
        else:
            yield from gutter.rows(blocks[part])


def _blocks(shown: Shown, part: Part, screen: Screen) -> list[Block]:
    match part:
        case "prompt":
            return blocks_of(shown.spans.text, shown.spans, screen)
        case "contexts":
            return blocks_of(shown.snapshot_spans.text, shown.snapshot_spans, screen)
        case "tools":
            return tool_blocks(shown.rendering, screen)
        case "trace":
            return []


def _title(shown: Shown, part: Part, blocks: Sequence[Block]) -> tuple[str, str]:
    """The title of a part, and the facts behind it."""
    owners = {note.owner for block in blocks for note in block.notes}
    whole = sum(1 for block in blocks if block.notes)
    by = f"by {count(len(owners), 'owner')}"
    match part:
        case "prompt":
            scope = "" if shown.scope is None else f" of {'agent' if shown.is_agent else 'scope'} {shown.scope}"
            size = len(shown.rendering.text)
            return shown.title or f"Prompt{scope}", f"{count(size, 'character')}, {count(whole, 'section')} {by}"
        case "contexts":
            size = len(shown.rendering.snapshot)
            return "Runtime contexts", f"{count(size, 'character')}, {count(whole, 'context')} {by}"
        case "tools":
            size = sum(note.size for block in blocks for note in block.notes)
            return "Tools", f"{count(size, 'character')} as JSON, {count(whole, 'tool')} {by}"
        case "trace":
            return "Trace", "what came in and left, stage by stage"
