"""What the figures must be, and what they should be: a table that says of each whether it is so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from benchmarks.figures import Figure, Figures, short
from benchmarks.report import table
from benchmarks.workload import SIZES

__all__ = ["GOALS", "Goal", "Verdict", "goals_table", "verdict"]

Verdict: TypeAlias = Literal["goal met", "must met", "missed", "not measured"]


@dataclass(frozen=True, slots=True)
class Goal:
    """One row: figures, of which each has its own limits. Less is better."""

    what: str
    figures: tuple[str, ...]
    must: tuple[float, ...]
    goal: tuple[float, ...]


def at_all_sizes(figure: str) -> tuple[str, ...]:
    """A figure's names at small, medium and large."""
    return tuple(figure.format(size) for size in SIZES)


GOALS: Final = (
    Goal(
        "a step, by the original's on Node",
        at_all_sizes("ratio.{}.foreword.original.times"),
        (0.10, 0.06, 0.04),
        (0.03, 0.025, 0.015),
    ),
    Goal(
        "a step, by the hand-written renderer's",
        at_all_sizes("ratio.{}.foreword.handwritten.times"),
        (0.5, 0.25, 0.12),
        (0.25, 0.12, 0.05),
    ),
    Goal("a step, by the floor's", at_all_sizes("ratio.{}.foreword.floor.times"), (15, 10, 4), (8, 5, 2.5)),
    Goal("garbage collections in 5,000 steps", ("garbage.collections.count",), (0,), (0,)),
    Goal("the 99th percentile, by the floor's", at_all_sizes("p99.{}.ratio.times"), (4, 4, 4), (2, 2, 2)),
    Goal("each further section that did not change", ("sections.static.each.us",), (0.12,), (0.08,)),
    Goal("each dynamic section that did change", ("sections.changed.each.us",), (12,), (6,)),
    Goal("a scope's first visit, by a further one, medium", ("visit.medium.first.ratio.times",), (8,), (4,)),
    Goal("a listener that changes one section adds", ("listener.changing.us",), (40,), (10,)),
    Goal("and for each section", ("listener.changing.each.ns",), (50,), (20,)),
    Goal("trace and digest used, by not", ("read.ratio.times",), (1.5,), (1.2,)),
    Goal("the log on, header unchanged, adds", ("log.adds.us",), (50,), (10,)),
    Goal(
        "a step after a global registration, by a normal one, medium",
        ("visit.medium.changed.ratio.times",),
        (30,),
        (10,),
    ),
    Goal("10,000 scopes, by one", ("growth.scopes.foreword.times",), (1.2,), (1.05,)),
    Goal("register a section", ("registering.foreword.register.us",), (15,), (6,)),
    Goal("undo a section", ("registering.foreword.undo.us",), (8,), (1,)),
    Goal("memory of 1,000 scopes, persona and variable each", ("memory.foreword.stepped.mib",), (5,), (3,)),
    Goal("import and a first render, over a bare interpreter", ("startup.first.over.ms",), (100,), (85,)),
    Goal("foreword show on the example, over its libraries", ("startup.show.over.ms",), (250,), (120,)),
    Goal("foreword cache on 1,000 steps", ("verbs.cache-last.ms",), (3000,), (1500,)),
    Goal("the slowest other command on 1,000 steps", ("verbs.slowest.ms",), (1000,), (500,)),
    Goal("prefix cost of 50 steps with snapshots", ("prefix.foreword.cost.index",), (0.98,), (0.973,)),
)


def verdict(goal: Goal, figures: Figures) -> Verdict:
    """How a row stands: as its worst figure does."""
    seen = seen_of(goal, figures)
    if seen is None:
        return "not measured"
    if all(held(figure.median, limit) for figure, limit in zip(seen, goal.goal, strict=True)):
        return "goal met"
    if all(held(figure.median, limit) for figure, limit in zip(seen, goal.must, strict=True)):
        return "must met"
    return "missed"


def seen_of(goal: Goal, figures: Figures) -> list[Figure] | None:
    """The figures of a row; None if one of them was not measured."""
    seen = [figures.get(name) for name in goal.figures]
    found = [figure for figure in seen if figure is not None]
    return found if len(found) == len(seen) else None


def held(seen: float, limit: float) -> bool:
    """Whether a figure is within a limit, to three digits."""
    return float(f"{seen:.3g}") <= limit


def goals_table(figures: Figures) -> str:
    rows = [goal_row(goal, figures) for goal in GOALS]
    told = [verdict(goal, figures) for goal in GOALS]
    counted = ", ".join(f"{told.count(each)} {each}" for each in dict.fromkeys(told))
    return table(f"Goals: {counted}", ["", "seen", "must", "goal", ""], rows)


def goal_row(goal: Goal, figures: Figures) -> list[str]:
    seen = seen_of(goal, figures)
    unit = Figure(goal.figures[0], ()).unit
    numbers = "" if seen is None else together([figure.median for figure in seen], unit)
    return [goal.what, numbers, together(goal.must, unit), together(goal.goal, unit), verdict(goal, figures)]


def together(numbers: list[float] | tuple[float, ...], unit: str) -> str:
    return " / ".join(map(short, numbers)) + unit
