"""FW305: names of tools that become one where a framework or server replaces what it does not allow.

``search-a`` and ``search_a`` are two tools here and one where dashes become underscores, or long names are cut.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey

_LONGEST: Final = 64
_REPLACED: Final = re.compile(r"[^a-zA-Z0-9_]")


def find(survey: Survey) -> Iterator[Finding]:
    """Compare the tools of each scope."""
    told: set[tuple[str, str]] = set()
    for branch in survey.branches:
        seen: dict[str, str] = {}
        for tool, origin in branch.tools:
            other = seen.setdefault(_REPLACED.sub("_", tool.name)[:_LONGEST], tool.name)
            if other != tool.name and (other, tool.name) not in told:
                told.add((other, tool.name))
                message = f'tools "{other}" and "{tool.name}" have one name where it is normalised'
                yield RULE.finding(origin, tool.name, message, "give one of them a name that differs in its letters")


RULE = Rule(
    "FW305",
    "tool-names-collide",
    Severity.WARNING,
    Reads.TEXTS,
    "two tools whose names become one when they are normalised",
    find,
)
