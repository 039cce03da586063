"""A step at three sizes, all who take part one after the other, round by round.

The order moves on by one in each round. Ratios are taken within a round, then their median.
"""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.figures import Figures
from benchmarks.peers import FLOOR, HANDWRITTEN, ORIGINAL, OURS, PEERS, run
from benchmarks.report import table
from benchmarks.workload import SIZES

__all__ = ["measure_steps", "steps_table"]

BASES = (ORIGINAL, HANDWRITTEN, FLOOR)

Round = dict[str, dict[str, Any]]


def measure_steps(figures: Figures, rounds: int, seconds: float) -> dict[str, Round]:
    """Measure all sizes.

    Returns:
        Of each size the answers of the last round, by name: what they gave is the same in all.
    """
    return {size: [measure_round(figures, size, at, seconds) for at in range(rounds)][-1] for size in SIZES}


def measure_round(figures: Figures, size: str, number: int, seconds: float) -> Round:
    answers: Round = {}
    shift = number % len(PEERS)
    for peer in PEERS[shift:] + PEERS[:shift]:
        if peer.name in figures.missing:
            continue
        answer = run(peer, size=size, seconds=seconds)
        if isinstance(answer, str):
            figures.missing[peer.name] = answer
        else:
            answers[peer.name] = answer
            figures.add(f"step.{size}.{peer.name}.ms", answer["step.ms"])
    note_ratios(figures, size, answers)
    print(f"  {size}, round {number + 1}", file=sys.stderr, flush=True)
    return answers


def note_ratios(figures: Figures, size: str, answers: Round) -> None:
    """Everybody's time by those of the bases, in one round."""
    for name, answer in answers.items():
        for base in BASES:
            if base.name in answers and base.name != name:
                figures.add(f"ratio.{size}.{name}.{base.name}.times", answer["step.ms"] / answers[base.name]["step.ms"])


# -- as a table --------------------------------------------------------------------------------------------------------


def steps_table(figures: Figures, size: str, answers: Round) -> str:
    """One size: medians, spread, ratios, and what came out."""
    head = ["", "ms a step", "from, to", *(f"/ {base.name}" for base in BASES), "text", "tools", "version"]
    rows = [
        row(figures, size, name, answers[name]) for name in sorted(answers, key=lambda name: rank(figures, size, name))
    ]
    load = SIZES[size]
    title = f"{size}: {load.sections} sections, {load.variables} variables, {load.tools} tools, {load.scopes} scopes"
    return table(title, head, rows)


def rank(figures: Figures, size: str, name: str) -> float:
    return figures[f"step.{size}.{name}.ms"].median


def row(figures: Figures, size: str, name: str, answer: dict[str, Any]) -> list[str]:
    step = figures[f"step.{size}.{name}.ms"]
    ratios = [figures.get(f"ratio.{size}.{name}.{base.name}.times") for base in BASES]
    return [
        f"**{name}**" if name == OURS.name else name,
        f"{step.median:.4f}",
        f"{step.low:.4f}, {step.high:.4f}",
        *("" if ratio is None else f"{ratio.median:.3g}" for ratio in ratios),
        "same" if answer["same_text"] else "other order",
        "own" if answer["own_tools"] and answer["same_tools"] else "shared" if answer["same_tools"] else "changed",
        answer["version"],
    ]
