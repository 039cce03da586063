"""``foreword diff --agent '*'``: every agent of a deployment, one after the other, and a table of them all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from foreword.cli.explain_words import share
from foreword.cli.heading import count, heading
from foreword.cli.table import Column, table
from foreword.cli.terminal import Piece
from foreword.cli.typed import is_deployment
from foreword.explain.telling import thing_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from foreword.cli.table import Cell
    from foreword.cli.terminal import Row, Screen
    from foreword.explain.cache import CacheStep
    from foreword.explain.diff import Diff

__all__ = ["ALL", "AgentDiff", "Agents", "agents_of", "agents_rows"]

ALL: Final = "*"


@dataclass(frozen=True, slots=True)
class Agents:
    """Which agents two deployments have."""

    both: tuple[str, ...]
    gone: tuple[str, ...]
    came: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Those that cannot be held against anything."""
        return {"removed_agents": list(self.gone), "added_agents": list(self.came)}


@dataclass(frozen=True, slots=True)
class AgentDiff:
    """What became of one agent's prompt."""

    agent: str
    diff: Diff
    effect: CacheStep
    tokens: tuple[int, int]


def agents_of(old: str, new: str | None, against: str | None) -> Agents:
    """The agents of the deployments that are held against each other; their files are read, and nothing of them is run.

    Raises:
        click.UsageError: these are no deployments, or only one.
        DeploymentError: one of them cannot be read.
        Fault: there is no such revision.
    """
    from foreword.cli.diff_against import agents_at

    if not all(is_deployment(typed) for typed in (old, new)):
        raise click.UsageError("--agent '*' is for deployment files, of which each agent is held against itself")
    if new is None and against is None:
        raise click.UsageError("--agent '*' needs a second deployment, or --against REV, to hold each agent against")
    now = _named_in(old if against is not None else new or old)
    before = agents_at(against, old) if against is not None else _named_in(old)
    return Agents(
        tuple(name for name in before if name in now),
        tuple(name for name in before if name not in now),
        tuple(name for name in now if name not in before),
    )


def _named_in(typed: str) -> tuple[str, ...]:
    from foreword.cli.deployments import EverythingSet
    from foreword.compose.reading import read_deployment

    return tuple(read_deployment(Path(typed), environment=EverythingSet()).agents)


def agents_rows(agents: Agents, told: Sequence[AgentDiff], screen: Screen) -> Iterator[Row]:
    """A table of all agents: how much changed, what they cost, what a provider can reuse."""
    arrow = "→" if screen.can_show("→") else "->"
    changed = sum(not each.diff.is_empty for each in told)
    yield from heading("Agents", f"{changed:,} of {count(len(told), 'agent')} changed", screen)
    for word, names in (("removed", agents.gone), ("added", agents.came)):
        for name in names:
            yield (Piece(f"  {word} ", "dim"), Piece(screen.name(name)))
    if not told:
        return
    names = ("agent", "changes", "tokens", "reusable", "broken by")
    yield ()
    yield from table([Column(name) for name in names], [_record(each, arrow, screen) for each in told], screen)


def _record(each: AgentDiff, arrow: str, screen: Screen) -> tuple[Cell, ...]:
    old, new = each.tokens
    about = "about " if each.effect.is_estimate else ""
    broken_by = each.effect.broken_by
    changes = len(each.diff.changes) + (each.diff.config is not None)
    return (
        (Piece(screen.name(each.agent), "bold"),),
        (Piece(f"{changes:,}"),),
        (Piece(f"{about}{old:,} {arrow} {new:,} ({new - old:+,})"),),
        (Piece(share(each.effect.predicted_share)),),
        () if broken_by is None else (Piece(screen.name(thing_words(broken_by))),),
    )
