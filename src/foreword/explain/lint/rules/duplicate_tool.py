"""FW306: a tool that is sent twice: providers refuse the request, or a call could be either's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey
    from foreword.prompt.origin import Origin


def find(survey: Survey) -> Iterator[Finding]:
    """Count the tools of each scope."""
    twice: dict[tuple[str, Origin, Origin], list[str]] = {}
    for branch in survey.branches:
        seen: dict[str, Origin] = {}
        for tool, origin in branch.tools:
            if tool.name in seen:
                twice.setdefault((tool.name, seen[tool.name], origin), []).append(branch.name)
            seen.setdefault(tool.name, origin)
    for (name, first, second), branches in twice.items():
        message = f'tool "{name}" is sent twice{survey.in_branches(branches)}: of {first}, and of {second}'
        yield RULE.finding(second, name, message, "rename one of them, or hide it; names are OWNER_TOOL by custom")


RULE = Rule(
    "FW306",
    "duplicate-tool",
    Severity.ERROR,
    Reads.TEXTS,
    "two tools of one name in one prompt",
    find,
)
