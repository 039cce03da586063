"""FW210: the prompt opens with the harness's own sentence because nobody said whether it is to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule
from foreword.prompt.contributions import IDENTITY_SECTION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey


def find(survey: Survey) -> Iterator[Finding]:
    """Look for the section where the configuration leaves it open."""
    config = survey.config
    if config is None or config.identity is not None or config.include_harness_identity is not None:
        return
    entry = survey.layers[0].sections.get(IDENTITY_SECTION)
    if entry is not None and isinstance(entry.provider.static, str):
        message = f'the prompt opens with "{entry.provider.static}", since the configuration does not say otherwise'
        way_out = "set include_harness_identity to true or false, or give an identity of your own"
        yield RULE.finding(entry.origin, entry.name, message, way_out)


RULE = Rule(
    "FW210",
    "open-identity",
    Severity.NOTE,
    Reads.PROMPT,
    "a deployment that does not say whether the harness's identity opens the prompt",
    find,
)
