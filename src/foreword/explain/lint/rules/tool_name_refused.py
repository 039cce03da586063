"""FW304: a tool's name that providers refuse: every request with it fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule
from foreword.wire.profiles import ANTHROPIC, DEEPSEEK, OPENAI

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey

_PROFILES: Final = (OPENAI, DEEPSEEK, ANTHROPIC)


def find(survey: Survey) -> Iterator[Finding]:
    """Hold each tool against the rule of each provider whose rule is known here."""
    tools = {(tool.name, origin): None for branch in survey.branches for tool, origin in branch.tools}
    for name, origin in tools:
        refusing = [profile for profile in _PROFILES if not profile.tool_names.accepts(name)]
        if refusing:
            who = ", ".join(profile.name for profile in refusing)
            message = f'the name of tool "{name}" is refused by {who}: {refusing[0].tool_names.words}'
            yield RULE.finding(origin, name, message, "give the tool another name")


RULE = Rule(
    "FW304",
    "tool-name-refused",
    Severity.ERROR,
    Reads.TEXTS,
    "a tool's name that providers refuse: too long, or with other characters",
    find,
)
