"""FW208: the deployment has the last word on a section or context that nobody contributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.errors import did_you_mean
from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey


def find(survey: Survey) -> Iterator[Finding]:
    """Look for each name in every layer."""
    names = {entry.name for layer in survey.layers for entry in (*layer.sections, *layer.contexts)}
    for override in survey.overrides:
        if override.name not in names:
            message = f'nobody contributes a section or context "{override.name}", so this override does nothing'
            way_out = did_you_mean(override.name, names, "sections and contexts")
            yield RULE.finding(override.origin, override.name, message, way_out)


RULE = Rule(
    "FW208",
    "override-without-target",
    Severity.WARNING,
    Reads.PROMPT,
    "an override whose name no section or context bears",
    find,
)
