"""How a step grows with sections, scopes, variables and tools, for ours and for those whose ratios count.

What does not grow: 100 sections, 10 scopes, 30 variables, 20 tools.
"""

from __future__ import annotations

import sys
from typing import Final

from benchmarks.figures import Figures
from benchmarks.peers import FLOOR, HANDWRITTEN, ORIGINAL, OURS, run
from benchmarks.report import table

__all__ = ["measure_growth", "tables"]

FIXED: Final = {"sections": 100, "variables": 30, "tools": 20, "scopes": 10}
GROWN: Final = {
    "sections": (10, 30, 100, 300, 1000, 3000),
    "scopes": (1, 10, 100, 1000, 10_000),
    "variables": (10, 100, 1000),
    "tools": (1, 10, 100, 1000),
}
GROWING: Final = (OURS, FLOOR, HANDWRITTEN, ORIGINAL)


def measure_growth(figures: Figures, rounds: int, seconds: float, *, ends_only: bool) -> None:
    for number in range(rounds):
        for kind, numbers in GROWN.items():
            for each in (numbers[0], numbers[-1]) if ends_only else numbers:
                measure_point(figures, kind, each, seconds)
            note_flatness(figures, kind)
            print(f"  growth in {kind}, round {number + 1}", file=sys.stderr, flush=True)


def measure_point(figures: Figures, kind: str, number: int, seconds: float) -> None:
    for peer in GROWING:
        if peer.name in figures.missing:
            continue
        answer = run(peer, seconds=seconds, **{**FIXED, kind: number})
        if isinstance(answer, str):
            figures.missing[peer.name] = f"with {number} {kind}: {answer}"
        else:
            figures.add(f"growth.{kind}.{number}.{peer.name}.ms", answer["step.ms"])


def note_flatness(figures: Figures, kind: str) -> None:
    """The last round's time with the most of a kind, by that with the fewest."""
    fewest, most = GROWN[kind][0], GROWN[kind][-1]
    for peer in GROWING:
        ends = [figures.values.get(f"growth.{kind}.{number}.{peer.name}.ms") for number in (most, fewest)]
        if ends[0] and ends[1]:
            figures.add(f"growth.{kind}.{peer.name}.times", ends[0][-1] / ends[1][-1])


# -- as tables ---------------------------------------------------------------------------------------------------------


def tables(figures: Figures) -> str:
    return "\n".join(growth_table(figures, kind) for kind in GROWN)


def growth_table(figures: Figures, kind: str) -> str:
    numbers = GROWN[kind]
    rest = ", ".join(f"{number} {name}" for name, number in FIXED.items() if name != kind)
    head = ["ms a step", *(f"{number:,}" for number in numbers), "last / first"]
    rows = [growth_row(figures, kind, peer.name) for peer in GROWING if peer.name not in figures.missing]
    return table(f"Growth in {kind} ({rest})", head, rows)


def growth_row(figures: Figures, kind: str, name: str) -> list[str]:
    points = [figures.get(f"growth.{kind}.{number}.{name}.ms") for number in GROWN[kind]]
    flatness = figures[f"growth.{kind}.{name}.times"]
    return [name, *("" if point is None else f"{point.median:.4f}" for point in points), f"{flatness.median:.3g}"]
