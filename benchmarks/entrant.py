"""One entrant in a process of its own: is it right, and what does it cost? Prints one line of JSON.

    python -m benchmarks.entrant ours --size medium

It is checked before it is timed: nobody may be fast by leaving something out.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import hashlib
import inspect
import json
import math
import statistics
import tracemalloc
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from importlib import import_module
from itertools import cycle
from math import inf
from time import perf_counter
from typing import Any

from benchmarks.workload import SIZES, Workload, workload

Step = tuple[str, Sequence[Any]]
AsyncStep = Callable[[int], Coroutine[Any, Any, Step]]

START = perf_counter()
SHORTEST_SAMPLE = 50e-6
"""Seconds: shorter steps are timed several at a time, or the clock would be measured."""
WARM_UP = 1.0
"""Seconds at most for visiting the scopes beforehand; who keeps something of a visit gets time for all of them."""
NUMBERS = ("sections", "variables", "tools", "scopes")


def main() -> None:
    told = options()
    before = perf_counter()
    module = import_module(f"benchmarks.entrants.{told.entrant}")
    seen: dict[str, Any] = {"import.ms": (perf_counter() - before) * 1e3, "version": module.version()}
    load = workload(told.size, **{name: getattr(told, name) for name in NUMBERS})
    seen |= MEASURES[told.measure](module.Entrant, load, told)
    print(json.dumps(seen))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.entrant", description=__doc__)
    parser.add_argument("entrant", help="a module of benchmarks.entrants")
    parser.add_argument("--variant", help="default: the module's first")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--measure", choices=MEASURES, default="step")
    parser.add_argument("--seconds", type=float, default=0.6, help="how long steps are timed")
    for name in NUMBERS:
        parser.add_argument(f"--{name}", type=int, help="default: the size's")
    return parser.parse_args()


def made(entrant: type[Any], load: Workload, told: argparse.Namespace) -> Any:
    return entrant(load) if told.variant is None else entrant(load, told.variant)


def awaitable(entrant: Any) -> AsyncStep:
    """Its step, to be awaited."""
    own: Any = entrant.step

    async def step(scope: int) -> Step:
        taken: Step = own(scope)
        return taken

    return own if inspect.iscoroutinefunction(own) else step


# -- is it right? ------------------------------------------------------------------------------------------------------


async def checked(entrant: Any, load: Workload) -> dict[str, Any]:
    """What it gives: a text of the right length with the scope's own parts in it, and all tools.

    Raises:
        ValueError: it leaves something out.
    """
    step = awaitable(entrant)
    same = True
    for scope in sorted({0, load.scopes // 2, load.scopes - 1}):
        text, tools = await step(scope)
        same &= check_text(text, load, scope)
    if len(tools) != load.tools:
        raise ValueError(f"{len(tools)} tools, expected {load.tools}")
    viewed = [entrant.view(tool) for tool in tools]
    wanted = [(tool["name"], tool["description"], tool["parameters"]) for tool in load.tool_list()]
    text, tools = await step(0)
    return {
        "characters": len(text),
        "digest": hashlib.sha256(text.encode()).hexdigest()[:16],
        "same_text": same,
        "same_tools": sorted(viewed, key=by_name) == sorted(wanted, key=by_name),
        "sorted_tools": viewed == sorted(viewed, key=by_name),
        "own_tools": detached(entrant.view(tools[0])[2], entrant.view((await step(0))[1][0])[2]),
    }


def check_text(text: str, load: Workload, scope: int) -> bool:
    """Whether it is the expected text to the letter; at least nothing of it may be missing."""
    expected = load.expected(scope)
    if len(text) != len(expected):
        raise ValueError(f"scope {scope}: {len(text)} characters, expected {len(expected)}")
    for own in (f"agent {scope:05d}", load.scope_value(scope)):
        if text.count(own) != expected.count(own):
            raise ValueError(f'scope {scope}: "{own}" is not where it should be')
    return text == expected


def by_name(tool: tuple[str, str, Any]) -> str:
    return tool[0]


def detached(first: Any, second: Any) -> bool:
    """Whether writing into the tools of one step leaves those of another alone; a refusal is as good."""
    one, other = first["properties"]["p0"], second["properties"]["p0"]
    before: object = one["description"]
    try:
        one["description"] = "changed"
    except TypeError:
        return True
    kept: bool = other["description"] == before
    one["description"] = before
    return kept


# -- what does it cost? ------------------------------------------------------------------------------------------------


def measure_step(entrant: type[Any], load: Workload, told: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds a step, scopes in turn, each of which was visited before."""
    return asyncio.run(stepped(made(entrant, load, told), load, told.seconds))


async def stepped(entrant: Any, load: Workload, seconds: float) -> dict[str, Any]:
    for scope in range(load.scopes):
        entrant.add_scope(scope)
    seen = await checked(entrant, load)
    sample = sampler(entrant, load)
    batch = await warmed(sample, load.scopes, limit=inf if hasattr(entrant, "keeps_visits") else WARM_UP)
    gc.collect()
    samples = await enough(sample, batch, seconds)
    return {**seen, "step.ms": statistics.median(samples) * 1e3, "samples": len(samples), "batch": batch}


def sampler(entrant: Any, load: Workload) -> Callable[[int], Awaitable[float]]:
    """A function that takes so many steps and gives the seconds that one of them took."""
    scopes, step = cycle(range(load.scopes)), entrant.step

    async def sample_async(batch: int) -> float:
        start = perf_counter()
        for _ in range(batch):
            await step(next(scopes))
        own = getattr(entrant, "own_seconds", None)
        return (perf_counter() - start) / batch if own is None else own

    async def sample(batch: int) -> float:
        start = perf_counter()
        for _ in range(batch):
            step(next(scopes))
        return (perf_counter() - start) / batch

    return sample_async if inspect.iscoroutinefunction(step) else sample


async def warmed(sample: Callable[[int], Awaitable[float]], scopes: int, limit: float) -> int:
    """Visit every scope once, or as many as the time allows; then say how many steps make a sample."""
    start = perf_counter()
    for _ in range(scopes):
        await sample(1)
        if perf_counter() - start > limit:
            break
    return max(1, math.ceil(SHORTEST_SAMPLE / statistics.median([await sample(1) for _ in range(5)])))


async def enough(sample: Callable[[int], Awaitable[float]], batch: int, seconds: float) -> list[float]:
    """Samples until the time is over, 20 at least."""
    start, samples = perf_counter(), [await sample(batch)]
    while len(samples) < 20 or perf_counter() - start < seconds:
        samples.append(await sample(batch))
    return samples


def measure_registering(entrant: type[Any], load: Workload, told: argparse.Namespace) -> dict[str, Any]:
    """Microseconds to register a section and to take it back, 500 at a time; None where that is not possible."""
    if not hasattr(entrant, "register"):
        return {"register.us": None, "undo.us": None}
    made_entrant = made(entrant, load, told)
    texts = [load.text(1).replace("Section 00001", f"Section {at:05d}") for at in range(90000, 90500)]
    registered: list[float] = []
    undone: list[float] = []
    for _ in range(7):
        start = perf_counter()
        undos = made_entrant.register(texts)
        registered.append((perf_counter() - start) / len(texts) * 1e6)
        if undos is not None:
            start = perf_counter()
            for undo in undos:
                undo()
            undone.append((perf_counter() - start) / len(texts) * 1e6)
    return {
        "register.us": statistics.median(registered),
        "undo.us": statistics.median(undone) if undone else None,
    }


def measure_memory(entrant: type[Any], load: Workload, told: argparse.Namespace) -> dict[str, Any]:
    """MiB that 1,000 scopes hold when they are registered, and when each has taken a step."""
    return asyncio.run(held(made(entrant, load, told)))


async def held(entrant: Any) -> dict[str, Any]:
    step = awaitable(entrant)
    entrant.add_scope(0)
    await step(0)
    gc.collect()
    tracemalloc.start()
    before = mebibytes()
    for scope in range(1, 1001):
        entrant.add_scope(scope)
    registered = mebibytes() - before
    for scope in range(1, 1001):
        await step(scope)
    return {"registered.mib": registered, "stepped.mib": mebibytes() - before}


def mebibytes() -> float:
    gc.collect()
    return tracemalloc.get_traced_memory()[0] / 2**20


def measure_first(entrant: type[Any], load: Workload, told: argparse.Namespace) -> dict[str, Any]:
    """One prompt: its process is timed from outside."""
    made_entrant = made(entrant, load, told)
    made_entrant.add_scope(0)
    text, tools = asyncio.run(awaitable(made_entrant)(0))
    return {"first.ms": (perf_counter() - START) * 1e3, "characters": len(text), "tools": len(tools)}


MEASURES = {
    "step": measure_step,
    "registering": measure_registering,
    "memory": measure_memory,
    "first": measure_first,
}


if __name__ == "__main__":
    main()
