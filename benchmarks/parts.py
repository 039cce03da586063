"""What the parts cost: measures of ours, and what everybody can be asked beside a step."""

from __future__ import annotations

import sys
from subprocess import CalledProcessError
from typing import Final

from benchmarks.figures import Figures, short
from benchmarks.peers import OURS, PEERS, run, run_module
from benchmarks.report import table
from benchmarks.startup import measure_startup

__all__ = ["measure_parts", "tables"]

MEASURES: Final = ("sections", "visits", "listeners", "providers", "steadiness", "log")
TABLES: Final = {
    "Sections and texts": ("sections.", "text."),
    "Visits of scopes, and a step after a global change": ("visit.",),
    "Trace and digest": ("read.",),
    "Listeners": ("listener.",),
    "Async providers": ("async.",),
    "Garbage, and the slowest steps": ("garbage.", "p99."),
    "The log": ("log.",),
    "Commands that ask a log, on a session of 1,000 steps": ("verbs.",),
    "Registering a section, and undoing it": ("registering.",),
    "Memory of 1,000 scopes (ours at medium, the others at small)": ("memory.",),
    "Processes: the processor's time": ("startup.", "process."),
    "Prefix of a session": ("prefix.",),
}


def measure_parts(figures: Figures, rounds: int) -> None:
    for number in range(rounds):
        for name in MEASURES:
            figures.add_all("", f"measure {name}", run_module("measures", name))
        print(f"  parts, round {number + 1}", file=sys.stderr, flush=True)
    for _ in range(min(rounds, 3)):
        ask_all(figures, "registering")
    ask_all(figures, "memory")
    figures.add_all("", "measure verbs", run_module("measures", "verbs"))
    try:
        measure_startup(figures, 3 * rounds)
    except CalledProcessError as failed:
        figures.missing["processes"] = str(failed)
    measure_prefix(figures)


def ask_all(figures: Figures, measure: str) -> None:
    """Ask everybody who takes part. Ours holds what it is asked to hold at the medium size."""
    for peer in PEERS:
        if peer.name not in figures.missing:
            size = "medium" if peer is OURS and measure == "memory" else "small"
            answer = run(peer, measure=measure, size=size)
            if isinstance(answer, dict):
                del answer["import.ms"]
            figures.add_all(f"{measure}.{peer.name}.", f"{measure} of {peer.name}", answer)


def measure_prefix(figures: Figures) -> None:
    answer = run_module("prefix")
    if isinstance(answer, str):
        figures.missing["prefix"] = answer
        return
    for name, seen in answer.items():
        figures.add_all(f"prefix.{name}.", f"prefix of {name}", seen)


# -- as tables ---------------------------------------------------------------------------------------------------------


def tables(figures: Figures) -> str:
    return "\n".join(part_table(figures, title, prefixes) for title, prefixes in TABLES.items())


def part_table(figures: Figures, title: str, prefixes: tuple[str, ...]) -> str:
    rows = [
        [figure.name.rpartition(".")[0], str(figure), f"{short(figure.low)}, {short(figure.high)}"]
        for figure in figures.named(*prefixes)
    ]
    return table(title, ["", "seen", "from, to"], rows)
