"""A run as a file: what was measured, when, on what size of a machine, with which versions; and two runs compared."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import Figure, Figures
from benchmarks.peers import OURS, PEERS
from benchmarks.report import table

__all__ = ["Result", "compared", "machine", "read", "write"]

FORMAT: Final = 1
NOTABLE: Final = 1.1
"""A figure that moved by less is the machine's mood."""


@dataclass(frozen=True, slots=True)
class Result:
    """One run."""

    when: str
    machine: str
    versions: dict[str, str]
    rounds: int
    figures: Figures

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "when": self.when,
            "machine": self.machine,
            "versions": self.versions,
            "rounds": self.rounds,
            "missing": self.figures.missing,
            "figures": self.figures.to_json(),
        }


def made(figures: Figures, versions: dict[str, str], rounds: int) -> Result:
    """The result of a run that ends now."""
    return Result(datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), machine(), versions, rounds, figures)


def machine() -> str:
    """Its size, and nothing that tells whose it is."""
    cores = os.cpu_count() or 0
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{cores} cores, {memory:.0f} GiB, {platform.machine()}, {platform.system()}"


def write(result: Result, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result.to_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(path: Path) -> Result:
    """A run that was written.

    Raises:
        ValueError: it is no result of the benchmarks, or one of another format.
    """
    told = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise ValueError(f"{path} is no result of the benchmarks in format {FORMAT}; run them again to have one")
    figures = Figures(told["figures"], told["missing"])
    return Result(told["when"], told["machine"], told["versions"], told["rounds"], figures)


# -- two runs ----------------------------------------------------------------------------------------------------------


def compared(before: Result, now: Result) -> str:
    """The figures of ours that moved, the furthest first.

    One has moved if the spreads of the two runs do not meet and the medians lie a tenth apart. Ratios are paired, and
    hold on a busy machine; times are those of the machine as it was.
    """
    pairs = [pair for name in now.figures.values if is_ours(name) and (pair := pair_of(name, before, now))]
    moved = [pair for pair in pairs if has_moved(*pair)]
    moved.sort(key=lambda pair: abs(growth(*pair) - 1), reverse=True)
    rows = [[one.name, str(one), str(other), f"{growth(one, other):.2f}", better(one, other)] for one, other in moved]
    title = f"Since {before.when} ({before.machine}): {len(moved)} figures have moved"
    return table(title, ["", "then", "now", "now / then", ""], rows)


def is_ours(name: str) -> bool:
    """Whether a figure tells of Foreword, and not only of others."""
    parts = name.split(".")
    return OURS.name in parts or not any(peer.name in parts for peer in PEERS)


def pair_of(name: str, before: Result, now: Result) -> tuple[Figure, Figure] | None:
    one, other = before.figures.get(name), now.figures.get(name)
    return None if one is None or other is None else (one, other)


def has_moved(one: Figure, other: Figure) -> bool:
    apart = one.high < other.low or other.high < one.low
    return apart and not 1 / NOTABLE < growth(one, other) < NOTABLE


def growth(one: Figure, other: Figure) -> float:
    if one.median == 0:
        return 1.0 if other.median == 0 else float("inf")
    return other.median / one.median


def better(one: Figure, other: Figure) -> str:
    if one.name.endswith((".count", "share")):
        return ""
    return "better" if other.median < one.median else "worse"
