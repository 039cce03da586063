"""FW103: a section that is made at each step stands ahead of much text that is not.

A provider's cache keeps the unchanged beginning of a request. Whatever stands behind the first change is paid for anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Branch, Survey, Text

LEAST: Final = 256
"""Estimated tokens of fixed text that must stand behind it: less is not worth another order."""


def find(survey: Survey) -> Iterator[Finding]:
    """Look at each scope's sections in their order, from the end."""
    told: set[tuple[str, str | None]] = set()
    for branch in survey.branches:
        behind = 0
        found: list[tuple[Text, str, int]] = []
        for section in reversed(branch.sections):
            why = _why_dynamic(section, branch)
            if why is None:
                behind += survey.tokens(branch.rendered.get(section.name, ""))
            elif behind >= LEAST and (section.name, section.origin.scope) not in told:
                told.add((section.name, section.origin.scope))
                found.append((section, why, behind))
        for section, why, tokens in reversed(found):
            message = f"{section.label} {why}, and about {tokens:,} tokens of fixed text stand behind it"
            way_out = "give it a higher order than the fixed sections, or make a runtime context of it"
            yield RULE.finding(section.origin, section.name, message, way_out)


def _why_dynamic(section: Text, branch: Branch) -> str | None:
    """Why a section may change from step to step; None if nothing about it says so."""
    if section.is_made:
        return "is made anew at each step"
    for name in section.template.names:
        entry = branch.variable(name)
        if entry is not None and entry.provider.takes_context:
            return f'refers to variable "{name}", whose value depends on the step'
    return None


RULE = Rule(
    "FW103",
    "dynamic-before-fixed",
    Severity.WARNING,
    Reads.PROMPT,
    "a section made at each step ahead of fixed ones, which are then paid for anew",
    find,
)
