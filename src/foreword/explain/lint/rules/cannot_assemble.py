"""FW200: a scope whose prompt cannot be assembled: a provider or listener fails, two sections are complete.

Other rules still look at the texts that are there without an assembly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.errors import (
    ListenerError,
    MultipleCompleteSectionsError,
    ProviderFailedError,
    UnknownToolOrderError,
)
from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.errors import AssemblyError, EntryRef
    from foreword.explain.lint.survey import Branch, Survey

_WAY_OUT = "mend it, or say what to do when it fails: on_error=…"


def find(survey: Survey) -> Iterator[Finding]:
    """Tell each failure once, with the first scope that it strikes; `FW301` tells of ``tool_order``."""
    told: set[str] = set()
    for branch in survey.branches:
        for each in branch.rounds:
            if each.failure is None or isinstance(each.failure, UnknownToolOrderError):
                continue
            when = " when the clock is moved" if each.clock == "moved" and branch.failure is None else ""
            for ref, why in _told(each.failure):
                if f"{ref} {why}" not in told:
                    told.add(f"{ref} {why}")
                    yield _finding(ref, why, branch, when)


def _told(failure: AssemblyError) -> list[tuple[EntryRef | None, str]]:
    """Who is to blame, as far as the error says so, and what for."""
    match failure:
        case ProviderFailedError(failures=failures):
            return [(each.entry, f"fails ({each.error}: {each.message})") for each in failures]
        case MultipleCompleteSectionsError(sections=sections):
            return [(sections[-1], f"is complete, and so is {sections[0]}")]
        case ListenerError(listener=listener, why=why):
            return [(listener, why.rstrip("."))]
        case _:
            return [(None, str(failure))]


def _finding(ref: EntryRef | None, why: str, branch: Branch, when: str) -> Finding:
    where = "the global layer" if branch.name == "global" else f'scope "{branch.name}"'
    if ref is None:
        message = f"the prompt of {where} cannot be assembled{when}: {why}"
        return Finding(RULE.code, RULE.severity, "assembler", None, None, message, _WAY_OUT, branch.name)
    message = f'{ref.kind} "{ref.name}" {why}; so the prompt of {where} cannot be assembled{when}'
    return Finding(RULE.code, RULE.severity, ref.owner, ref.scope, ref.source, message, _WAY_OUT, ref.name)


RULE = Rule(
    "FW200",
    "cannot-assemble",
    Severity.ERROR,
    Reads.PROMPT,
    "a scope whose prompt cannot be assembled",
    find,
)
