"""FW404: half of a surrogate pair, which UTF-8 cannot spell: rendering fails, and so would the request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule
from foreword.explain.lint.scanning import characters, matches, where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey

_PATTERN = re.compile("[\ud800-\udfff]")


def find(survey: Survey) -> Iterator[Finding]:
    """Look at every text."""
    for text, found in matches(survey, _PATTERN):
        message = f"{text.label} holds {characters(found)}, half of a surrogate pair, {where(text, found)}"
        way_out = 'repair it where it is read: text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")'
        yield RULE.finding(text.origin, text.name, message, way_out, place=text.place(found[0].start()))


RULE = Rule(
    "FW404",
    "lone-surrogate",
    Severity.ERROR,
    Reads.TEXTS,
    "half of a surrogate pair",
    find,
)
