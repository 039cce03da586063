"""Stopwatches. Medians throughout: what else the machine does makes some calls slow, and must not count."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter

__all__ = ["async_microseconds", "microseconds", "once"]

ROUNDS = 7


def once(call: Callable[[], object]) -> float:
    """Microseconds that one call takes."""
    start = perf_counter()
    call()
    return (perf_counter() - start) * 1e6


def microseconds(*calls: Callable[[], object], times: int = 200) -> list[float]:
    """What each of the calls takes. They take turns, so that a slow moment of the machine hits all of them."""
    for call in calls:
        call()
    rounds = [[statistics.median([once(call) for _ in range(times)]) for call in calls] for _ in range(ROUNDS)]
    return medians(rounds)


async def async_microseconds(*calls: Callable[[], Awaitable[object]], times: int = 200) -> list[float]:
    """The same of async calls, within a running loop."""
    for call in calls:
        await call()
    rounds = [[await async_median(call, times) for call in calls] for _ in range(ROUNDS)]
    return medians(rounds)


async def async_median(call: Callable[[], Awaitable[object]], times: int) -> float:
    taken: list[float] = []
    for _ in range(times):
        start = perf_counter()
        await call()
        taken.append((perf_counter() - start) * 1e6)
    return statistics.median(taken)


def medians(rounds: Sequence[Sequence[float]]) -> list[float]:
    return [statistics.median(column) for column in zip(*rounds, strict=True)]
