"""FW211: a scope whose system prompt is empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule
from foreword.prompt.contributions import PERSONA_SECTION
from foreword.prompt.origin import ASSEMBLER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey


def find(survey: Survey) -> Iterator[Finding]:
    """Look at each scope; not where a section could not be rendered, which is told by other rules."""
    empty = [
        branch.name
        for branch in survey.branches
        if branch.assembly is not None and not any(text.text for text in branch.sections)
    ]
    if empty:
        persona = survey.layers[0].sections.get(PERSONA_SECTION)
        message = f"the system prompt is empty{survey.in_branches(empty)}"
        origin = ASSEMBLER if persona is None else persona.origin
        yield RULE.finding(origin, PERSONA_SECTION, message, "give a persona, or a section: prompt.section(…)")


RULE = Rule(
    "FW211",
    "empty-prompt",
    Severity.ERROR,
    Reads.PROMPT,
    "a scope whose system prompt is empty",
    find,
)
