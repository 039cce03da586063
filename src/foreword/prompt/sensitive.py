"""What of a rendering is sensitive, and how it reads to whoever is not to see it.

A section is sensitive if it holds the value of a sensitive variable; then this value is masked. A runtime context may
be sensitive as a whole, too. A listener that writes such a value into a text of its own has hidden it from us.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from foreword.prompt.spans import Span, Spans

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from foreword.prompt.plan import Plan

__all__ = ["SENSITIVE", "masked_parts", "masked_spans", "sensitive_names"]

SENSITIVE: Final = "[sensitive]"
"""What stands in the place of something sensitive."""


def sensitive_names(plan: Plan) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the sensitive variables and runtime contexts in force; the plan keeps them."""
    if plan.sensitive is None:
        variables = plan.variables.names().values()
        plan.sensitive = (
            frozenset([each.name for each in variables if each.sensitive]),
            frozenset([each.name for each in plan.contexts if each.sensitive]),
        )
    return plan.sensitive


def masked_spans(spans: Spans, variables: AbstractSet[str], entries: AbstractSet[str] = frozenset()) -> Spans:
    """The spans of a text in which what is sensitive is masked.

    Args:
        spans: of the text as it is: of its sections, or of its runtime contexts.
        variables: names of those whose values are sensitive.
        entries: names of the parts that are sensitive as a whole; such a part becomes one span.
    """
    told: list[Span] = []
    texts: list[str] = []
    at, hidden = 0, False  # where we are, and whether the span before was of such a part
    for span in spans:
        whole = span.kind != "separator" and span.section in entries
        if whole and hidden:
            continue
        hidden = whole
        text = SENSITIVE if whole or span.variable in variables else spans.text[span.start : span.end]
        told.append(replace(span, start=at, end=at + len(text)))
        texts.append(text)
        at += len(text)
    return Spans(told, "".join(texts))


def masked_parts(spans: Spans, masked: Spans) -> dict[int, str]:
    """The parts of a text that read otherwise when they are masked, by their positions, and how they read then."""
    pairs = enumerate(zip(_parts(spans), _parts(masked), strict=True))
    return {at: shown for at, (part, shown) in pairs if part != shown}


def _parts(spans: Spans) -> list[str]:
    """What stands between separators."""
    parts: list[str] = []
    fresh = True
    for span in spans:
        if span.kind == "separator":
            fresh = True
            continue
        text = spans.text[span.start : span.end]
        if fresh:
            parts.append(text)
        else:
            parts[-1] += text
        fresh = False
    return parts
