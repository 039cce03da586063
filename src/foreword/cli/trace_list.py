"""The trace, stage by stage: how many entries of each kind left it, and what happened to which."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from foreword.cli.terminal import Piece, Row
from foreword.cli.wrapping import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.cli.hiding import Hiding
    from foreword.cli.terminal import Screen
    from foreword.prompt.trace import StageTrace, Trace, TraceEvent

__all__ = ["trace_rows"]

_STAGE: Final = 11  # cells for the name of a stage, the gap behind it included
_NARROW: Final = 60  # below this the details go under the name


def trace_rows(trace: Trace, screen: Screen, hide: Hiding) -> Iterator[Row]:
    """The rows that tell a trace; how long the providers took comes last, since it is never the same twice.

    Args:
        trace: what to tell.
        screen: where it is to be shown.
        hide: takes secrets out of reasons, which may be errors of a provider.
    """
    for stage in trace.stages:
        yield from _told(screen.shown(stage.stage), _counts(stage), "dim", screen)
        for event in stage.events:
            yield from _told("", screen.told(_words(event, hide).removeprefix(f"{event.stage}: ")), "", screen)
    for at, (provider, seconds) in enumerate(trace.timings.items()):
        taken = f"{seconds * 1000:,.1f} ms  {provider}"
        yield from _told("" if at else "time", screen.told(taken.replace("\n", " ")), "dim", screen)


def _words(event: TraceEvent, hide: Hiding) -> str:
    return str(replace(event, reason=None if event.reason is None else hide(event.reason)))


def _told(title: str, text: str, style: str, screen: Screen) -> Iterator[Row]:
    indent = _STAGE if screen.width >= _NARROW else 2
    if title and indent < _STAGE:
        yield (Piece(title, "bold"),)
        title = ""
    first = title.ljust(indent)
    for line in text.replace("\t", " ").split("\n"):
        for row in wrapped(line, screen.width - indent - 2):
            yield (Piece(first, "bold"), Piece(row, style))
            first = " " * (indent + 2)


def _counts(stage: StageTrace) -> str:
    """How many came in and left, by kind: ``12 to 11 sections``; what there is none of is not told."""
    told: list[str] = []
    for kind, names in stage.left.items():
        before, after = len(stage.entered.get(kind, ())), len(names)
        if before or after:
            changed = f"{after}" if before == after else f"{before} to {after}"
            told.append(f"{changed} {kind.removesuffix('s') if before == after == 1 else kind}")
    return ", ".join(told) or "nothing"
