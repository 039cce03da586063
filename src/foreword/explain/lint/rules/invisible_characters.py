"""FW403: characters that nobody sees and the model reads: zero-width ones, stray BOMs, tags, fillers.

Joiners inside emoji and between the letters of scripts that need them, and the tags of flags, are where they belong.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule
from foreword.explain.lint.scanning import characters, matches, where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey

_FLAG = "\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f"
_PATTERN = re.compile(
    f"(?:{_FLAG})"  # a flag as a whole, taken here so that its tags are not
    "|[\u00ad\u115f\u1160\u180e\u200b\u2060-\u2064\u3164\ufeff\uffa0]"
    "|[\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
    "|(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"  # a joiner beside ASCII joins nothing
)


def find(survey: Survey) -> Iterator[Finding]:
    """Look at every text."""
    for text, every in matches(survey, _PATTERN):
        found = [each for each in every if len(each[0]) == 1]
        if found:
            message = f"{text.label} holds {characters(found)}, which nobody sees, {where(text, found)}"
            way_out = "take it out; text that hides may be meant to be hidden"
            yield RULE.finding(text.origin, text.name, message, way_out, place=text.place(found[0].start()))


RULE = Rule(
    "FW403",
    "invisible-characters",
    Severity.WARNING,
    Reads.TEXTS,
    "zero-width characters, stray BOMs, tags and fillers",
    find,
)
