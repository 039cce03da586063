"""FW301: ``tool_order`` names tools that there are not, so no prompt of that scope can be assembled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.errors import UnknownToolOrderError, did_you_mean
from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule
from foreword.prompt.contributions import PERSONA_SECTION
from foreword.prompt.origin import ASSEMBLER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey


def find(survey: Survey) -> Iterator[Finding]:
    """Gather what the assemblies of all scopes refuse."""
    missing: dict[str, list[str]] = {}
    known: set[str] = set()
    for branch in survey.branches:
        if isinstance(branch.failure, UnknownToolOrderError):
            known.update(branch.failure.known)
            for name in branch.failure.unknown:
                missing.setdefault(name, []).append(branch.name)
    # the configuration is whoever's who gave the persona: both come with it
    persona = survey.layers[0].sections.get(PERSONA_SECTION)
    for name, branches in missing.items():
        message = f'tool_order lists "{name}", which is no tool{survey.in_branches(branches)}'
        origin = ASSEMBLER if persona is None else persona.origin
        yield RULE.finding(origin, name, message, did_you_mean(name, known, "tools"))


RULE = Rule(
    "FW301",
    "unknown-tool-order",
    Severity.ERROR,
    Reads.PROMPT,
    "a name in tool_order that no tool bears",
    find,
)
