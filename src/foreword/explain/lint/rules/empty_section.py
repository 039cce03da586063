"""FW209: a section or context that says nothing, in no scope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule
from foreword.prompt.contributions import PERSONA_SECTION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey, Text


def find(survey: Survey) -> Iterator[Finding]:
    """Look at texts that are fixed; a provider may have something to say at another step."""
    texts: dict[Text, bool] = {}
    for branch in survey.branches:
        for text in branch.texts:
            if not text.is_made and not _is_slot(text):
                texts[text] = texts.get(text, False) or _says(text, branch.values)
    for text, says in texts.items():
        if not says:
            blank = "holds nothing but blanks" if text.text else "has no text"
            message = f"{text.label} {'is empty, like its variables' if text.template.names else blank}"
            way_out = "give it a text, or take it out; sections: {NAME: {enabled: false}} in a deployment says why"
            yield RULE.finding(text.origin, text.name, message, way_out)


def _is_slot(text: Text) -> bool:
    """An empty persona holds the place for the scopes' own."""
    return text.name == PERSONA_SECTION and not text.text


def _says(text: Text, values: dict[str, str | None]) -> bool:
    """Whether anything is left when its references are filled in; one that cannot be filled in is another rule's."""
    if any(values.get(name) is None for name in text.template.names):
        return True
    return any((values[each.text] if each.is_reference else each.text.strip()) for each in text.template.segments)


RULE = Rule(
    "FW209",
    "empty-section",
    Severity.WARNING,
    Reads.PROMPT,
    "a section or context without text in all scopes",
    find,
)
