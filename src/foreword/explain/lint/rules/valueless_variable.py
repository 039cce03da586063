"""FW203: a section in force refers to a variable that has no value, so the prompt cannot be rendered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Branch, Survey, Text


def find(survey: Survey) -> Iterator[Finding]:
    """Look at what each assembly holds. A provider that reads the context may have a value at another step."""
    missing: dict[tuple[Text, str], list[Branch]] = {}
    for branch in survey.branches:
        for text in (*branch.sections, *branch.contexts) if branch.assembly is not None else ():
            for name in dict.fromkeys(text.template.names):
                if name in branch.values and branch.values[name] is None and not _depends_on_step(name, branch):
                    missing.setdefault((text, name), []).append(branch)
    for (text, name), branches in missing.items():
        entry = branches[0].variable(name)
        whose = "" if entry is None else f" of {entry.origin.owner}"
        at = next(each.start for each in text.template.segments if each.is_reference and each.text == name)
        where = survey.in_branches(branch.name for branch in branches)
        message = f'{text.label} refers to variable "{name}"{whose} ({text.position(at)}), which has no value{where}'
        way_out = "let it have a string (an empty one counts), or give the section a condition: when=…"
        yield RULE.finding(text.origin, text.name, message, way_out, place=text.place(at))


def _depends_on_step(name: str, branch: Branch) -> bool:
    entry = branch.variable(name)
    return entry is not None and (entry.provider.takes_context or entry.when is not None)


RULE = Rule(
    "FW203",
    "valueless-variable",
    Severity.ERROR,
    Reads.PROMPT,
    "a reference to a variable that has no value",
    find,
)
