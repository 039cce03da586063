"""Runs the benchmarks: all who take part at three sizes, then what grows, then what the parts of Foreword cost.

    make bench                      all of it, which takes a quarter of an hour
    make bench QUICK=1              one short round
    make bench COMPARE=FILE         and what has moved since the run that is in that file

The tables go to stdout, what is under way to stderr, the result to benchmarks/results/ or where --out says.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks import goals, growth, parts, results, steps
from benchmarks.figures import Figures
from benchmarks.peers import OURS, ROOT
from benchmarks.workload import SIZES


def main() -> None:
    told = options()
    rounds, seconds = (1, 0.2) if told.quick else (told.rounds, 0.6)
    figures = Figures()
    answers = steps.measure_steps(figures, rounds, seconds)
    if OURS.name in figures.missing:
        sys.exit(f"Foreword does not take part: {figures.missing[OURS.name]}")
    growth.measure_growth(figures, rounds // 2 + 1, seconds / 3, ends_only=told.quick)
    parts.measure_parts(figures, rounds)
    versions = {name: answer["version"] for name, answer in answers["small"].items()}
    result = results.made(figures, versions, rounds)
    show(result, answers)
    save(result, told.out)
    if told.compare is not None:
        print(f"\n{results.compared(told.compare, result)}")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--compare", type=earlier, help="the result of an earlier run")
    parser.add_argument("--out", type=Path, help="where the result goes")
    return parser.parse_args()


def earlier(path: str) -> results.Result:
    """An earlier run; that it is none is told before anything is measured."""
    try:
        return results.read(Path(path))
    except (OSError, ValueError) as fault:
        raise argparse.ArgumentTypeError(str(fault)) from None


def show(result: results.Result, answers: dict[str, steps.Round]) -> None:
    figures = result.figures
    print(f"\n{result.when}, {result.machine}, {result.rounds} rounds\n")
    for size in SIZES:
        print(steps.steps_table(figures, size, answers[size]))
    print(growth.tables(figures))
    print(parts.tables(figures))
    for who, why in figures.missing.items():
        print(f"{who} was not measured: {why}")
    print(goals.goals_table(figures))


def save(result: results.Result, path: Path | None) -> None:
    if path is None:
        path = ROOT / "benchmarks/results" / f"{result.when:.16}.json".replace(" ", "T").replace(":", "")
    results.write(result, path)
    print(f"Written to {path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}.")


if __name__ == "__main__":
    main()
