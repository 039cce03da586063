"""FW502: a section that takes more than its share of the prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey, Text


def find(survey: Survey) -> Iterator[Finding]:
    """Look at each section as it is sent."""
    most: dict[Text, int] = {}
    for branch in survey.branches:
        for section in branch.sections:
            tokens = survey.tokens(branch.rendered.get(section.name, ""))
            if tokens > survey.section_tokens:
                most[section] = max(tokens, most.get(section, 0))
    for section, tokens in most.items():
        message = f"{section.label} has about {tokens:,} tokens, more than the {survey.section_tokens:,} of a section"
        way_out = "split it by who needs it (requires_tools=…, when=…), let a tool read it, or raise section_tokens"
        yield RULE.finding(section.origin, section.name, message, way_out)


RULE = Rule(
    "FW502",
    "oversize-section",
    Severity.WARNING,
    Reads.TEXTS,
    "a section over its budget of estimated tokens",
    find,
)
