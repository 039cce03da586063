"""FW202: double braces that are no reference, so the text cannot be rendered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.errors import MalformedReferenceError, RenderError
from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule
from foreword.prompt.assembly import AssembledSection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey, Text


def find(survey: Survey) -> Iterator[Finding]:
    """Look at every template, also at those that a condition leaves out for now."""
    for text in dict.fromkeys(text for branch in survey.branches for text in branch.texts):
        start = text.template.malformed
        fault = None if start is None else _fault(text)
        if fault is not None and start is not None:
            message = f"{text.label} holds {fault.reference} ({text.position(start)}), which is no reference"
            yield RULE.finding(text.origin, text.name, message, fault.way_out, place=text.place(start))


def _fault(text: Text) -> MalformedReferenceError | None:
    """What rendering says of it; None if something else is wrong ahead of it."""
    values: dict[str, str | None] = dict.fromkeys(text.template.names, "")
    try:
        AssembledSection(text.name, text.text, text.origin).render(values)
    except MalformedReferenceError as fault:
        return fault
    except RenderError:  # a lone surrogate, which has a rule of its own
        return None
    return None


RULE = Rule(
    "FW202",
    "malformed-reference",
    Severity.ERROR,
    Reads.PROMPT,
    "double braces that are no reference to a variable",
    find,
)
