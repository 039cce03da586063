"""FW207: a complete section is the whole prompt, so protected sections are not in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey
    from foreword.prompt.contributions import OrderedText


def find(survey: Survey) -> Iterator[Finding]:
    """Look at each scope with a complete section in force."""
    lost: dict[tuple[OrderedText, str], list[str]] = {}
    for branch in survey.branches:
        complete = branch.complete
        if complete is None:
            continue
        for section in branch.plan.sections:
            if section.name in branch.plan.protected_sections and section.name != complete.name:
                lost.setdefault((complete, str(section.ref)), []).append(branch.name)
    for (complete, displaced), branches in lost.items():
        where = survey.in_branches(branches)
        message = f'the complete section "{complete.name}" displaces the protected {displaced}{where}'
        way_out = "repeat what is protected in the complete section, or do without complete=True"
        yield RULE.finding(complete.origin, complete.name, message, way_out)


RULE = Rule(
    "FW207",
    "protected-displaced",
    Severity.WARNING,
    Reads.PROMPT,
    "a protected section that a complete one displaces",
    find,
)
