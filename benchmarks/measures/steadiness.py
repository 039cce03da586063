"""Steadiness: whether 5,000 steps make the garbage collector run, and how slow the slowest are beside the floor's."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from itertools import cycle
from time import thread_time
from typing import Any

from benchmarks.entrants import floor, ours
from benchmarks.workload import SIZES, Workload

__all__ = ["measure"]

STEPS = 5000


def measure() -> dict[str, float]:
    figures = {"garbage.collections.count": float(collections(ready(ours.Entrant, SIZES["medium"])))}
    for size, load in SIZES.items():
        figures |= tail(size, load)
    return figures


def ready(entrant: type[Any], load: Workload) -> Callable[[], object]:
    """A step, the scopes in turn, each of which was visited."""
    made = entrant(load)
    for scope in range(load.scopes):
        made.add_scope(scope)
        made.step(scope)
    scopes = cycle(range(load.scopes))
    return lambda: made.step(next(scopes))


def collections(step: Callable[[], object]) -> int:
    """How often the collector begins, in any of its generations."""
    begun = 0

    def count(phase: str, info: dict[str, int]) -> None:
        nonlocal begun
        begun += phase == "start"

    gc.collect()
    gc.callbacks.append(count)
    try:
        for _ in range(STEPS):
            step()
    finally:
        gc.callbacks.remove(count)
    return begun


def cpu(step: Callable[[], object]) -> float:
    """Microseconds of the processor: a step that waits while others use it is not to blame."""
    start = thread_time()
    step()
    return (thread_time() - start) * 1e6


def tail(size: str, load: Workload) -> dict[str, float]:
    """The 99th percentiles, the two taking turns; and how far each lies off its own median."""
    steps = 1000 if size == "large" else STEPS
    one, other = ready(ours.Entrant, load), ready(floor.Entrant, load)
    gc.collect()
    clock = statistics.median([cpu(lambda: None) for _ in range(steps)])
    taken = [(cpu(one) - clock, cpu(other) - clock) for _ in range(steps)]
    ours_taken, floor_taken = (sorted(column) for column in zip(*taken, strict=True))
    at = int(steps * 0.99)
    off = ours_taken[at] / statistics.median(ours_taken), floor_taken[at] / statistics.median(floor_taken)
    return {
        f"p99.{size}.us": ours_taken[at],
        f"p99.{size}.floor.us": floor_taken[at],
        f"p99.{size}.ratio.times": ours_taken[at] / floor_taken[at],
        f"p99.{size}.tail.times": off[0] / off[1],
    }
