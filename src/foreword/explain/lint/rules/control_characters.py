"""FW401: control characters, odd line ends, and the mark of a lost byte."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule
from foreword.explain.lint.scanning import characters, matches, where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey

_PATTERN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufffd]")


def find(survey: Survey) -> Iterator[Finding]:
    """Look at every text."""
    for text, found in matches(survey, _PATTERN):
        what = "a carriage return" if found[0][0] == "\r" else "a lost byte" if found[0][0] == "\ufffd" else "control"
        message = f"{text.label} holds {characters(found)} ({what}) {where(text, found)}"
        way_out = "take it out where the text comes from; a Path is read without BOM and carriage returns"
        yield RULE.finding(text.origin, text.name, message, way_out, place=text.place(found[0].start()))


RULE = Rule(
    "FW401",
    "control-characters",
    Severity.WARNING,
    Reads.TEXTS,
    "control characters, carriage returns, odd line separators, the mark of a lost byte",
    find,
)
