"""What the commands cost that ask a log; see `benchmarks.verbs`."""

from __future__ import annotations

import re

from benchmarks.verbs import MOST, STEPS, measured

__all__ = ["measure"]


def measure() -> dict[str, float]:
    """Each command's milliseconds on 1,000 steps, and those of the slowest that has no limit of its own."""
    taken = measured(STEPS)
    slowest = max(seconds for verb, seconds in taken.items() if verb not in MOST)
    return {**{name_of(verb): seconds * 1e3 for verb, seconds in taken.items()}, "verbs.slowest.ms": slowest * 1e3}


def name_of(verb: str) -> str:
    words = re.findall("[a-z0-9]+", verb.lower())
    return f"verbs.{'-'.join(words)}.ms"
