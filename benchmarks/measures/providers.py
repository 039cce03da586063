"""Async providers: one, ten together, and one with a timeout, against sync ones that say the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from benchmarks.measures.timing import async_microseconds
from foreword import SystemPrompt

__all__ = ["measure"]


def measure() -> dict[str, float]:
    return asyncio.run(in_a_loop())


async def in_a_loop() -> dict[str, float]:
    one_sync, one, one_timed = asking(1, sync), asking(1, awaited), asking(1, awaited, timeout=5)
    ten_sync, ten = asking(10, sync), asking(10, awaited)
    taken = await async_microseconds(one_sync, one, one_timed, ten_sync, ten, bare, times=100)
    return {
        "async.1.adds.us": taken[1] - taken[0],
        "async.1.timeout.adds.us": taken[2] - taken[0],
        "async.10.adds.us": taken[4] - taken[3],
        "async.10.bare.us": taken[5],
    }


def asking(number: int, provider: Callable[[], Any], **options: Any) -> Callable[[], Any]:
    """A step that asks a provider so many times."""
    prompt = SystemPrompt(persona="You help.")
    for at in range(number):
        prompt.section(f"s{at}", provider, order=at, **options)
    return prompt.render


def sync() -> str:
    return "A section."


async def awaited() -> str:
    await asyncio.sleep(0)
    return "A section."


async def bare() -> list[str]:
    """What ten tasks cost without anything of ours."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(awaited()) for _ in range(10)]
    return [task.result() for task in tasks]
