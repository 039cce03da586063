"""FW204: a variable that no text refers to. What installed packages offer is theirs to offer, and no finding."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule
from foreword.explain.lint.survey import Text
from foreword.prompt.template import Template

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from foreword.explain.lint.survey import Branch, Survey

_WORD: Final = re.compile(r"[a-z][a-z0-9_]*")


def find(survey: Survey) -> Iterator[Finding]:
    """Look for every name in every text that is registered; not at all where some text was not to be had."""
    if any(_has_unread_text(branch) for branch in survey.branches):
        return
    used = {name for branch in survey.branches for text in branch.texts for name in _mentioned(text.template)}
    for layer in survey.layers:
        for entry in (*layer.sections, *layer.contexts):  # hidden ones, too: somebody may see them again
            if entry.provider.call is None:
                used.update(_mentioned(Text.of(entry.assembled_static(), is_made=False).template))
    used.update(name for each in survey.overrides for name in _mentioned(Template.parse(each.text or "")))
    for layer in survey.layers:
        for variable in layer.variables:
            if variable.name not in used and variable.origin.distribution is None:
                way_out = "take it out, or refer to it in a text: {{" + variable.name + "}}"
                message = f'no text refers to variable "{variable.name}"'
                yield RULE.finding(variable.origin, variable.name, message, way_out)


def _has_unread_text(branch: Branch) -> bool:
    """Whether a provider was not asked, whose text may refer to anything."""
    draft = None if branch.assembly is None else branch.assembly.draft
    if draft is None:
        return True
    plan = branch.plan
    asked = [seat.entry for lineup in (plan.sections, plan.contexts) for seat in lineup.unsettled]
    return any(entry.provider.call is not None and entry not in draft.texts for entry in asked)


def _mentioned(template: Template) -> Iterable[str]:
    """The variables that a text refers to; behind a malformed reference, where it was read no further, every word."""
    if template.malformed is None:
        return template.names
    return (*template.names, *_WORD.findall(template.text, template.malformed))


RULE = Rule(
    "FW204",
    "unused-variable",
    Severity.NOTE,
    Reads.PROMPT,
    "a variable of your own project that no text refers to",
    find,
)
