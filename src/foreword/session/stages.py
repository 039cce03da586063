"""The stages of an assembly as what differs from one to the next, which is little."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from foreword.prompt.trace import StageTrace, Trace, TraceEvent
from foreword.session.told import ToldAdded, ToldChange, ToldStage, ToldStages

__all__ = ["Names", "fold_trace", "unfold_trace"]

Names: TypeAlias = Mapping[str, tuple[str, ...]]
"""Names by kind: sections, contexts, tools, variables."""


def fold_trace(trace: Trace, rendered: Names) -> ToldStages:
    """A trace as what differs: the first stage from what was rendered in the end, then from one list to the next."""
    stages: list[ToldStage] = []
    before = rendered
    for stage in trace.stages:
        events = tuple(event.to_json() for event in stage.events)
        stages.append(
            ToldStage(stage.stage, _changes(before, stage.entered), _changes(stage.entered, stage.left), events)
        )
        before = stage.left
    return ToldStages(tuple(stages))


def unfold_trace(told: ToldStages, rendered: Names) -> Trace:
    """The trace that was folded, given the names that it was folded with."""
    stages: list[StageTrace] = []
    before = rendered
    for stage in told.stages:
        entered = _changed(before, stage.entered)
        left = _changed(entered, stage.left)
        stages.append(StageTrace(stage.stage, entered, left, tuple(TraceEvent(**each) for each in stage.events)))
        before = left
    return Trace(tuple(stages))


def _changes(before: Names, after: Names) -> dict[str, ToldChange]:
    return {kind: _change(before.get(kind, ()), names) for kind, names in after.items() if before.get(kind) != names}


def _change(before: tuple[str, ...], after: tuple[str, ...]) -> ToldChange:
    was, is_now = set(before), set(after)
    without = tuple(name for name in before if name not in is_now)
    added = tuple(ToldAdded(at, name) for at, name in enumerate(after) if name not in was)
    change = ToldChange(without, added)
    return change if _applied(change, before) == after else ToldChange(names=after)  # moved, or namesakes


def _changed(before: Names, changes: dict[str, ToldChange]) -> Names:
    return {**before, **{kind: _applied(change, before.get(kind, ())) for kind, change in changes.items()}}


def _applied(change: ToldChange, before: tuple[str, ...]) -> tuple[str, ...]:
    if change.names is not None:
        return change.names
    gone = set(change.without)
    names = [name for name in before if name not in gone]
    for added in change.added:
        names.insert(added.at, added.name)
    return tuple(names)
