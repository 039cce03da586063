"""FW206: an entry of a scope that every scope below hides again, so no agent ever sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Branch, Survey
    from foreword.prompt.contributions import Entry
    from foreword.prompt.registry import PromptLayer


def find(survey: Survey) -> Iterator[Finding]:
    """Look at layers with others below them. The global one is left out: what stands there may be the fallback."""
    for layer in survey.layers[1:]:
        leaves = [branch for branch in survey.branches if _is_below(branch, layer) and not _has_below(branch, survey)]
        if not leaves:
            continue
        for entry in (*layer.sections, *layer.contexts, *layer.variables):
            hiders = [_hider(entry, layer, branch) for branch in leaves]
            if all(hiders):
                message = f'every scope below hides {entry.KIND} "{entry.name}", {hiders[0]} for one; nobody sees it'
                way_out = "take it out, or take out what hides it"
                yield RULE.finding(entry.origin, entry.name, message, way_out)


def _is_below(branch: Branch, layer: PromptLayer) -> bool:
    return layer.key in branch.scope.chain()[:-1]


def _has_below(branch: Branch, survey: Survey) -> bool:
    return any(branch.scope in other.scope.chain() for other in survey.branches if other is not branch)


def _hider(entry: Entry, layer: PromptLayer, branch: Branch) -> str:
    """The nearer namesake in a scope; empty if there is none."""
    layers = branch.plan.layers
    for nearer in reversed(layers[layers.index(layer) + 1 :]):
        held = nearer.table(entry.KIND).get(entry.name)
        if held is not None:
            return str(held.ref)
    return ""


RULE = Rule(
    "FW206",
    "shadow-never-wins",
    Severity.WARNING,
    Reads.PROMPT,
    "an entry of a scope that every scope below it hides again",
    find,
)
