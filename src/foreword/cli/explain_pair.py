"""Two prompts to hold against each other: of a log, of deployments, of agents, in any combination."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Generator

    from foreword.cli.explain_subject import Looked
    from foreword.explain.subject import Subject

__all__ = ["two"]


@contextmanager
def two(
    old: str, new: str | None, agents: tuple[str, ...], scopes: tuple[str, ...], log: str | None
) -> Generator[tuple[Looked, Looked]]:
    """The two prompts that are meant, one after the other: two deployments need not be open at once."""
    from foreword.cli.explain_subject import Looked, Wanted, looked_at
    from foreword.cli.typed import is_address

    names = [_pair(agents, "--agent"), _pair(scopes, "--scope")]
    if new is None and is_address(old):
        before, now = _last_two(old, log)
        yield Looked.of(before, reveal=True), Looked.of(now, reveal=True)
        return
    if new is None and not any(one != other for one, other in names):
        raise click.UsageError("name a second prompt, or one address to hold its step against the one before")
    looked: list[Looked] = []
    for at, typed in enumerate((old, old if new is None else new)):
        has_names = not is_address(typed)
        agent, scope = (pair[at] if has_names else None for pair in names)
        with looked_at(Wanted(typed, agent, scope, log)) as each:
            looked.append(each)
    yield looked[0], looked[1]


def _pair(given: tuple[str, ...], option: str) -> tuple[str | None, str | None]:
    if len(given) > 2:
        raise click.UsageError(f"{option} may stand twice: for OLD and for NEW")
    return (None, None) if not given else (given[0], given[-1])


def _last_two(address: str, log: str | None) -> tuple[Subject, Subject]:
    from foreword.cli.faults import Fault
    from foreword.cli.logs import asked
    from foreword.explain.steps import subject_pair

    before, now = asked(log, lambda opened: subject_pair(opened, address))
    if before is None:
        what = "request" if "/" in address else "step"
        raise Fault(f'"{address}" is the first {what} of its session; name a second prompt to hold it against')
    return before, now
