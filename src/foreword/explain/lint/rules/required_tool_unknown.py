"""FW303: ``requires_tools`` names a tool that nobody has in any scope, so the text is never there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.errors import did_you_mean
from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey
    from foreword.prompt.contributions import OrderedText


def find(survey: Survey) -> Iterator[Finding]:
    """Compare with all tools of all scopes; not at all where some provider has not said what it has."""
    if not all(branch.are_all_tools_known for branch in survey.branches):
        return
    known = frozenset(name for branch in survey.branches for name in branch.known_tools)
    entries: dict[OrderedText, None] = {}
    for branch in survey.branches:
        entries.update(dict.fromkeys([*branch.plan.sections, *branch.plan.contexts]))
    for entry in entries:
        for name in entry.requires_tools:
            if name not in known:
                message = f'{entry.KIND} "{entry.name}" requires the tool "{name}", which nobody has; it is never told'
                yield RULE.finding(entry.origin, entry.name, message, did_you_mean(name, known, "tools"))


RULE = Rule(
    "FW303",
    "required-tool-unknown",
    Severity.WARNING,
    Reads.PROMPT,
    "a text that requires a tool which no scope has",
    find,
)
