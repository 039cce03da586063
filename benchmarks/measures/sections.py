"""Sections: what each further one costs that is static, that is asked and says the same, that is asked and changed.

And one text: a template with many references that is read anew in each step.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from benchmarks.measures.timing import microseconds
from benchmarks.workload import FILL, SECTION_CHARACTERS
from foreword import SystemPrompt

__all__ = ["measure", "prompt_of"]

STATIC = (10, 100, 1000, 3000)
DYNAMIC = (0, 50)
REPEATS = (100, 1000, 10_000)


def measure() -> dict[str, float]:
    static = dict(
        zip(STATIC, microseconds(*(prompt_of(number).render_sync for number in STATIC), times=50), strict=True)
    )
    figures = {f"sections.static.{number}.us": taken for number, taken in static.items()}
    figures["sections.static.each.us"] = (static[STATIC[-1]] - static[STATIC[0]]) / (STATIC[-1] - STATIC[0])
    figures["sections.same.each.us"] = each_dynamic(same)
    figures["sections.changed.each.us"] = each_dynamic(changed)
    return figures | in_a_text()


def prompt_of(sections: int) -> SystemPrompt:
    """A prompt of so many static sections, each with a reference."""
    prompt = SystemPrompt(persona="You work on {{project}}.")
    prompt.variable("project", "Foreword")
    for at in range(sections):
        prompt.section(f"s{at}", f"Section {at} of {{{{project}}}}. ".ljust(SECTION_CHARACTERS, "x"), order=at)
    return prompt


def each_dynamic(provider: Callable[[int], Callable[[], str]]) -> float:
    """What each of 50 dynamic sections adds to 100 static ones."""
    prompts = [prompt_of(100) for _ in DYNAMIC]
    for number, prompt in zip(DYNAMIC, prompts, strict=True):
        for at in range(number):
            prompt.section(f"d{at}", provider(at), order=1000 + at)
    without, with_them = microseconds(*(prompt.render_sync for prompt in prompts))
    return (with_them - without) / DYNAMIC[-1]


def same(at: int) -> Callable[[], str]:
    text = f"Dynamic {at} of {{{{project}}}}. ".ljust(SECTION_CHARACTERS, "y")
    return lambda: text


def changed(at: int) -> Callable[[], str]:
    numbers, head = count(), f"Dynamic {at} of {{{{project}}}}: "
    return lambda: f"{head}{next(numbers)} ".ljust(SECTION_CHARACTERS, "y")


def in_a_text() -> dict[str, float]:
    """Nanoseconds a character to read a template and to render it, with a reference every 200 characters or so."""
    figures: dict[str, float] = {}
    for repeats in REPEATS:
        base, numbers = (FILL + "{{project}} ") * repeats, count()
        prompt = SystemPrompt()
        prompt.variable("project", "Foreword")
        prompt.section("long", lambda base=base, numbers=numbers: f"{base}{next(numbers)}", order=1)
        (taken,) = microseconds(prompt.render_sync, times=max(3, 2000 // repeats))
        figures[f"text.{len(base)}.ns"] = taken / len(base) * 1e3
    return figures
