"""What a step costs: assembling and rendering, beside the bare join of ready strings.

    python benchmarks/assemble.py

Two tables. The first grows the number of sections, a tenth of them providers whose text changes at every step, and
shows milliseconds a step and the ratio to the join; a step costs what is dynamic in it, so most of the growth is the
join's. The second grows one text and shows that reading and rendering a template takes time linear in it. Medians of
interleaved rounds; judge by the ratios, machines differ.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from time import perf_counter

from foreword import SystemPrompt

FILL = "Read the file before you change it, keep the change small, and say what you did not check. "
SECTION_CHARACTERS = 640
ROUNDS = 7


def build(sections: int) -> Callable[[], str]:
    """A prompt of that many sections; gives back a step."""
    prompt = SystemPrompt(persona="You work on {{project}}.")
    prompt.variable("project", "Foreword")
    clock = itertools.count()
    for at in range(sections):
        text = f"Section {at} of {{{{project}}}}. ".ljust(SECTION_CHARACTERS, "x")
        if at % 10 == 5:
            prompt.section(f"s{at}", lambda text=text: f"{text}{next(clock)}", order=at)
        else:
            prompt.section(f"s{at}", text, order=at)
    return lambda: prompt.render_sync().text


def milliseconds(step: Callable[[], object], times: int) -> float:
    """Median time of a step in one round."""
    measured: list[float] = []
    for _ in range(times):
        start = perf_counter()
        step()
        measured.append((perf_counter() - start) * 1000)
    return statistics.median(measured)


def interleaved(steps: list[Callable[[], object]], times: int) -> list[float]:
    """Medians over rounds in which the steps take turns, so that a slow moment of the machine hits all of them."""
    rounds = [[milliseconds(step, times) for step in steps] for _ in range(ROUNDS)]
    return [statistics.median(column) for column in zip(*rounds, strict=True)]


def growth_in_sections() -> None:
    """The first table."""
    print(f"{'sections':>8} {'characters':>11} {'ms a step':>10} {'ms bare join':>13} {'ratio':>6}")
    for sections in (20, 100, 1000):
        step = build(sections)
        parts = step().split("\n\n")
        ours, join = interleaved([step, lambda parts=parts: "\n\n".join(parts)], 300)
        print(f"{sections:>8} {len(step()):>11,} {ours:>10.4f} {join:>13.4f} {ours / join:>6.1f}")


def growth_in_text() -> None:
    """The second table: a template with a reference every 90 characters or so, read anew at each step."""
    print(f"\n{'characters':>11} {'ms a step':>10} {'ns a character':>15}")
    for repeats in (100, 1000, 10_000):
        prompt = SystemPrompt()
        prompt.variable("project", "Foreword")
        base = (FILL + "{{project}} ") * repeats
        clock = itertools.count()
        prompt.section("long", lambda base=base, clock=clock: f"{base}{next(clock)}", order=1)
        (taken,) = interleaved([prompt.render_sync], max(5, 3000 // repeats))
        print(f"{len(base):>11,} {taken:>10.4f} {taken / len(base) * 1e6:>15.2f}")


if __name__ == "__main__":
    growth_in_sections()
    growth_in_text()
