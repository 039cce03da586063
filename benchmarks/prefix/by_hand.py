"""Layouts: where people put facts that change."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.prefix.session import SECTIONS, STEPS, TASK, Request, exchange, facts, user

__all__ = ["appended", "in_system", "last_message", "no_facts"]

SNAPSHOT = "Current runtime context. This snapshot supersedes earlier runtime-context snapshots."
UPDATE = "Updated runtime context. Each block supersedes the earlier block of the same name."


def in_system(position: float) -> Iterator[Request]:
    """In the system text: an f-string, a template, dynamic instructions."""
    history = [user(TASK)]
    cut = round(len(SECTIONS) * position)
    for step in range(STEPS):
        told = "\n\n".join(facts(step).values())
        yield Request("\n\n".join([*SECTIONS[:cut], told, *SECTIONS[cut:]]), list(history))
        history += exchange(step)


def appended(*, changed_only: bool) -> Iterator[Request]:
    """At the end of the history whenever one changes: all of them, or the one that changed."""
    history = [user(TASK)]
    last: dict[str, str] = {}
    for step in range(STEPS):
        now = facts(step)
        told = {name: text for name, text in now.items() if last.get(name) != text} if changed_only else now
        history.append(user("\n\n".join([UPDATE if changed_only and last else SNAPSHOT, *told.values()])))
        last = now
        yield Request("\n\n".join(SECTIONS), list(history))
        history += exchange(step)


def last_message() -> Iterator[Request]:
    """In one last message, which is replaced in each step and never kept."""
    history = [user(TASK)]
    for step in range(STEPS):
        yield Request("\n\n".join(SECTIONS), [*history, user("\n\n".join(facts(step).values()))])
        history += exchange(step)


def no_facts() -> Iterator[Request]:
    """Nowhere: what the history costs by itself."""
    history = [user(TASK)]
    for step in range(STEPS):
        yield Request("\n\n".join(SECTIONS), list(history))
        history += exchange(step)
