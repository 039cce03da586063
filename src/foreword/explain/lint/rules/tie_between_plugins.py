"""FW104: two plugins' sections or contexts have one order, so which comes first depends on who was loaded first."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey
    from foreword.prompt.contributions import OrderedText
    from foreword.prompt.plan import Plan


def find(survey: Survey) -> Iterator[Finding]:
    """Compare neighbours in the canonical order of each scope; a tie between layers is decided by the layers."""
    if survey.config is not None and survey.config.section_ties == "name":
        return
    for branch in survey.branches:
        for lineup in (branch.plan.sections, branch.plan.contexts):
            for one, other in pairwise(lineup):
                if one.order == other.order and _is_tie(one, other, branch.plan):
                    yield _finding(one, other)


def _is_tie(one: OrderedText, other: OrderedText, plan: Plan) -> bool:
    return one.origin.owner != other.origin.owner and _depth(one, plan) == _depth(other, plan)


def _depth(entry: OrderedText, plan: Plan) -> int:
    """The layer that decides between equals: that of the farthest namesake, whose place a shadow takes."""
    tables: list[Any] = [layer.table(entry.KIND) for layer in plan.layers]
    return next((depth for depth, table in enumerate(tables) if entry.name in table), len(tables))


def _finding(one: OrderedText, other: OrderedText) -> Finding:
    message = f'{other.KIND} "{other.name}" has the order {other.order:g}, like {one.ref}: who is loaded first decides'
    way_out = 'give one of them another order, or set section_ties: "name"'
    return RULE.finding(other.origin, other.name, message, way_out)


RULE = Rule(
    "FW104",
    "tie-between-plugins",
    Severity.WARNING,
    Reads.PROMPT,
    "two plugins' sections or contexts with one order: the order of loading decides",
    find,
)
