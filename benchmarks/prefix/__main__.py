"""Measures all layouts and prints them as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, Final, Literal

from benchmarks.prefix.by_hand import appended, in_system, last_message, no_facts
from benchmarks.prefix.session import STEPS, Request

CACHED: Final = 0.1
"""What a cached byte costs beside a fresh one, which is a common rate. What writing to the cache costs is left out."""


def foreword() -> Iterable[Request]:
    from benchmarks.prefix.ours import requests

    return requests()


def pydantic_ai(on_change: Literal["rewrite", "append"]) -> Iterable[Request]:
    from benchmarks.prefix.pydantic_ai import requests

    return requests(on_change)


LAYOUTS: Final[dict[str, Callable[[], Iterable[Request]]]] = {
    "foreword": foreword,
    "on top": lambda: in_system(0.01),
    "in the middle": lambda: in_system(0.5),
    "at the end": lambda: in_system(1.0),
    "pydantic-ai": lambda: pydantic_ai("rewrite"),
    "pydantic-ai append": lambda: pydantic_ai("append"),
    "last message": last_message,
    "appended": lambda: appended(changed_only=False),
    "appended, changed only": lambda: appended(changed_only=True),
    "no facts": no_facts,
}


def measured(requests: Iterable[Request]) -> dict[str, float]:
    """What is kept of each request, and what the session costs."""
    sent = [request.sent() for request in requests]
    if len(sent) != STEPS:
        raise ValueError(f"{len(sent)} requests, expected {STEPS}")
    pairs = [(common(before, after), len(after)) for before, after in pairwise(sent)]
    total, kept = sum(length for _, length in pairs), sum(same for same, _ in pairs)
    return {
        "prefix.share": sum(same / length for same, length in pairs) / len(pairs),
        "worst.share": min(same / length for same, length in pairs),
        "fresh.kb": (total - kept) / len(pairs) / 1000,
        "cost.index": (CACHED * kept + total - kept) / 1e6,
    }


def common(one: bytes, other: bytes) -> int:
    """How many bytes the two begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


def layouts() -> dict[str, Any]:
    """All layouts; in place of the figures of one that lacks its library, what it lacks."""
    seen: dict[str, Any] = {}
    for name, requests in LAYOUTS.items():
        try:
            seen[name] = measured(requests())
        except ImportError as missing:
            seen[name] = str(missing)
    return seen


if __name__ == "__main__":
    print(json.dumps(layouts()))
