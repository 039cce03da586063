"""What was measured: each figure has a name and the values that it had in the rounds of a run.

A name's last word is the unit: ``step.medium.foreword.ms``, ``ratio.medium.floor.times``.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Figure", "Figures"]

UNITS = {
    "times": "×",
    "index": "",
    "count": "",
    "share": "",
    "ms": " ms",
    "us": " µs",
    "ns": " ns",
    "mib": " MiB",
    "kb": " kB",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a run."""

    name: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)

    @property
    def unit(self) -> str:
        return UNITS[self.name.rpartition(".")[2]]

    def __str__(self) -> str:
        return f"{short(self.median)}{self.unit}"


@dataclass(slots=True)
class Figures:
    """The figures of a run, and why some of them could not be had."""

    values: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    missing: dict[str, str] = field(default_factory=dict[str, str])  # who does not take part, and why

    def add(self, name: str, value: float | None) -> None:
        """Note the value that a figure had in a further round; None: it has none."""
        if value is not None:
            self.values.setdefault(name, []).append(float(value))

    def add_all(self, prefix: str, who: str, answer: Mapping[str, Any] | str) -> None:
        """Note what an answer tells under names with units; one that is a line says why there is nothing to tell."""
        if isinstance(answer, str):
            self.missing.setdefault(who, answer)
            return
        for name, value in answer.items():
            if name.rpartition(".")[1] and name.rpartition(".")[2] in UNITS:
                self.add(prefix + name, value)

    def named(self, *prefixes: str) -> list[Figure]:
        """The figures whose names begin so."""
        return [Figure(name, tuple(values)) for name, values in self.values.items() if name.startswith(prefixes)]

    def get(self, name: str) -> Figure | None:
        """A figure; None if it was not measured."""
        return self[name] if name in self.values else None

    def __getitem__(self, name: str) -> Figure:
        return Figure(name, tuple(self.values[name]))

    def to_json(self) -> dict[str, Any]:
        return {name: [float(f"{value:.5g}") for value in values] for name, values in self.values.items()}


def short(value: float) -> str:
    """A number with three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
