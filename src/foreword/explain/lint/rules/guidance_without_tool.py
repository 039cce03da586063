"""FW302: guidance that stays when its tool is gone: the model calls what is not there.

Three signs: a section named ``tool:NAME`` without ``requires_tools``; one whose tool is not among the tools of a scope;
and any text that names, in backticks, a tool that is hidden from the scope.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Branch, Survey, Text
    from foreword.prompt.contributions import OrderedText

_PREFIX = "tool:"
_IN_BACKTICKS = re.compile(r"`([^`\n]{1,128})`")


def find(survey: Survey) -> Iterator[Finding]:
    """Look at the sections that each scope renders."""
    loose: dict[tuple[Text, str], list[str]] = {}
    mentions: dict[tuple[Text, str], list[str]] = {}
    for branch in survey.branches:
        if branch.assembly is None:
            continue
        visible = {tool.name for tool, _ in branch.tools}
        for text in branch.sections:
            tool = text.name.removeprefix(_PREFIX)
            if text.name.startswith(_PREFIX) and not _is_bound(text, branch):
                loose.setdefault((text, tool), [])
                if tool not in visible:
                    loose[text, tool].append(branch.name)
            for name in _hidden_mentions(text, branch.known_tools - visible):
                mentions.setdefault((text, name), []).append(branch.name)
    for (text, tool), branches in loose.items():
        gone = f', and there is no tool "{tool}"{survey.in_branches(branches)}' if branches else ""
        message = f"{text.label} is guidance for a tool and does not require it{gone}"
        way_out = f'bind it: requires_tools=["{tool}"]; then it goes where the tool goes'
        yield RULE.finding(text.origin, text.name, message, way_out)
    for (text, tool), branches in mentions.items():
        if (text, tool) not in loose:
            message = f"{text.label} speaks of the tool `{tool}`, which is hidden{survey.in_branches(branches)}"
            way_out = f'move that into a section of its own with requires_tools=["{tool}"]'
            yield RULE.finding(text.origin, text.name, message, way_out)


def _is_bound(text: Text, branch: Branch) -> bool:
    """Whether its author has said when it is there."""
    entry: OrderedText | None = next((each for each in branch.plan.sections if each.name == text.name), None)
    return entry is not None and (bool(entry.requires_tools) or entry.when is not None)


def _hidden_mentions(text: Text, hidden: frozenset[str]) -> list[str]:
    if not hidden:
        return []
    quoted = {word for found in _IN_BACKTICKS.findall(text.text) for word in re.split(r"[\s(]", found)[:1]}
    return sorted(quoted & hidden)


RULE = Rule(
    "FW302",
    "guidance-without-tool",
    Severity.WARNING,
    Reads.PROMPT,
    "guidance that stays when its tool is gone, or speaks of a hidden one",
    find,
)
