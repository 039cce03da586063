"""Listeners: one that changes nothing, one that changes a section, and what a section costs under it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from benchmarks.measures.sections import prompt_of
from benchmarks.measures.timing import async_microseconds

if TYPE_CHECKING:
    from foreword import AssembleContext, PromptAssembly, SystemPrompt
    from foreword.prompt.transform import CallNext

__all__ = ["measure"]

SECTIONS = (10, 1000)
LISTENERS = (1, 10)


def measure() -> dict[str, float]:
    few, many = (asyncio.run(changing_adds(sections)) for sections in SECTIONS)
    each = (many - few) / (SECTIONS[1] - SECTIONS[0]) * 1e3
    idle = asyncio.run(idle_adds())
    return {
        "listener.changing.10.us": few,
        "listener.changing.1000.us": many,
        "listener.changing.us": few - each * SECTIONS[0] / 1e3,
        "listener.changing.each.ns": each,
        "listener.idle.1.us": idle[0],
        "listener.idle.10.us": idle[1],
    }


async def changing_adds(sections: int) -> float:
    """Microseconds that a listener adds which changes one of so many sections."""
    plain, changed = prompt_of(sections), prompt_of(sections)
    changed.on_assemble(changing)
    without, with_it = await async_microseconds(plain.render, changed.render, times=100)
    return with_it - without


async def idle_adds() -> list[float]:
    """Microseconds that 1 and 10 listeners add which change nothing."""
    prompts: list[SystemPrompt] = [prompt_of(100) for _ in range(1 + len(LISTENERS))]
    for number, prompt in zip(LISTENERS, prompts[1:], strict=True):
        for _ in range(number):
            prompt.on_assemble(idle)
    without, *taken = await async_microseconds(*(prompt.render for prompt in prompts), times=100)
    return [each - without for each in taken]


async def changing(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
    assembly = await call_next()
    assembly.sections.swap("s5", text="Changed.")
    return assembly


async def idle(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
    return await call_next()
