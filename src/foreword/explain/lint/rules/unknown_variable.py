"""FW201: a text refers to a variable that a scope does not have, so the prompt of that scope cannot be rendered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.errors import did_you_mean
from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey, Text


def find(survey: Survey) -> Iterator[Finding]:
    """Look at every text of every scope, also at those that a condition leaves out for now."""
    missing: dict[tuple[Text, str], list[str]] = {}
    known: set[str] = set()
    for branch in survey.branches:
        known |= branch.values.keys()
        for text in branch.texts:
            for name in dict.fromkeys(text.template.names):
                if name not in branch.values:
                    missing.setdefault((text, name), []).append(branch.name)
    for (text, name), branches in missing.items():
        at = next(each.start for each in text.template.segments if each.is_reference and each.text == name)
        where = survey.in_branches(branches)
        message = f'{text.label} refers to "{{{{{name}}}}}" ({text.position(at)}), which nobody registers{where}'
        if name in known:
            way_out = "register it in the global layer, or move the text to where the variable is"
        else:
            way_out = did_you_mean(name, known, "variables")
        yield RULE.finding(text.origin, text.name, message, way_out, place=text.place(at))


RULE = Rule(
    "FW201",
    "unknown-variable",
    Severity.ERROR,
    Reads.PROMPT,
    "a reference to a variable that some scope does not have",
    find,
)
