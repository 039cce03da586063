"""Scopes of the workload: a first visit against a further one, a step after a global change, and what is read of it."""

from __future__ import annotations

import statistics
from functools import partial
from itertools import cycle

from benchmarks.entrants import ours
from benchmarks.measures.timing import microseconds, once
from benchmarks.workload import SIZES

__all__ = ["measure"]


def measure() -> dict[str, float]:
    figures: dict[str, float] = {}
    for size in SIZES:
        figures |= visits(size)
    return figures | read()


def visits(size: str) -> dict[str, float]:
    """The first scope is left out: it pays for what all share."""
    entrant, scopes = workload_of(size)
    entrant.step(scopes[0])
    first = statistics.median([once(partial(entrant.step, scope)) for scope in scopes[1:]])
    turns = cycle(scopes[1:])
    again = statistics.median([once(lambda: entrant.step(next(turns))) for _ in range(max(300, len(scopes)))])
    after = statistics.median([after_change(entrant, scope) for scope in scopes[: 60 if size != "large" else 15]])
    return {
        f"visit.{size}.first.us": first,
        f"visit.{size}.again.us": again,
        f"visit.{size}.first.ratio.times": first / again,
        f"visit.{size}.changed.us": after,
        f"visit.{size}.changed.ratio.times": after / again,
    }


def workload_of(size: str) -> tuple[ours.Entrant, list[int]]:
    load = SIZES[size]
    entrant, scopes = ours.Entrant(load), list(range(load.scopes))
    for scope in scopes:
        entrant.add_scope(scope)
    return entrant, scopes


def after_change(entrant: ours.Entrant, scope: int) -> float:
    """The step after a section was registered for all scopes. Undoing it is a change, too, and not timed."""
    with entrant.prompt.section("further", "A further section.", order=5000):
        return once(lambda: entrant.step(scope))


def read() -> dict[str, float]:
    """A step of which trace and digest are used, against one of which the text is: all scopes in turn, or one."""
    entrant, scopes = workload_of("medium")
    for scope in scopes:
        entrant.step(scope)
    return read_of(entrant, scopes, "read") | read_of(entrant, scopes[:1], "read.one")


def read_of(entrant: ours.Entrant, scopes: list[int], name: str) -> dict[str, float]:
    plain, told = cycle(scopes), cycle(scopes)

    def used() -> object:
        rendering = entrant.scopes[next(told)].render_sync()
        return rendering.text, rendering.tools, rendering.trace, rendering.digest

    without, with_them = microseconds(lambda: entrant.step(next(plain)), used)
    return {f"{name}.without.us": without, f"{name}.with.us": with_them, f"{name}.ratio.times": with_them / without}
