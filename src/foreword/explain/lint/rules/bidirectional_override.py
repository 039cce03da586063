"""FW402: characters that turn the direction of writing round, so that people do not read what the model reads."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule
from foreword.explain.lint.scanning import characters, matches, where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey

# Marks (U+200E, U+200F, U+061C) are left out: right-to-left texts need them, and they hide nothing.
_PATTERN = re.compile("[\u202a-\u202e\u2066-\u2069]")


def find(survey: Survey) -> Iterator[Finding]:
    """Look at every text."""
    for text, found in matches(survey, _PATTERN):
        message = f"{text.label} holds {characters(found)} {where(text, found)}"
        way_out = "take it out, and see what the line says without it"
        yield RULE.finding(text.origin, text.name, message, way_out, place=text.place(found[0].start()))


RULE = Rule(
    "FW402",
    "bidirectional-override",
    Severity.ERROR,
    Reads.TEXTS,
    "characters that turn the direction of writing round",
    find,
)
