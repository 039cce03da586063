"""FW501: sections that say the same, word for word or nearly so: loaded twice, or copied and changed in one place.

Texts are compared by their shingles, runs of a few words, which an index leads to whoever holds them too. One that is
like another does not go into the index itself, so that a thousand copies of one text are compared with one.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.survey import Survey, Text

LEAST_WORDS: Final = 12
"""Shorter sections may well be alike."""
LIKENESS: Final = 0.8
"""The share of common shingles from which on two sections are nearly identical."""

_SHINGLE: Final = 4  # words
_WORD: Final = re.compile(r"\w+")


def find(survey: Survey) -> Iterator[Finding]:
    """Compare each section with those before it that some scope has beside it; of several the likest is told."""
    holders: dict[int, list[_Section]] = {}  # by shingle
    for section in _sections(survey):
        best, likeness = _nearest(section, holders)
        if best is None:
            for shingle in section.shingles:
                holders.setdefault(shingle, []).append(section)
            continue
        one, other = best.text, section.text
        how = "says the same as" if likeness == 1 else f"is {likeness:.0%} like"
        message = f"{other.label} {how} {one.label} of {one.origin}"
        way_out = "keep one of them; what both need goes into a section of its own"
        yield RULE.finding(other.origin, other.name, message, way_out)


@dataclass(frozen=True, slots=True, eq=False)
class _Section:
    """A section as it is rendered, and where."""

    text: Text
    shingles: frozenset[int]
    branches: set[int]


def _sections(survey: Survey) -> list[_Section]:
    """The sections of all scopes that are long enough, each once; one that is another text elsewhere is another one."""
    found: dict[tuple[Text, str], _Section] = {}
    for at, branch in enumerate(survey.branches):
        for text in branch.sections:
            rendered = branch.rendered.get(text.name, "")
            known = found.get((text, rendered))
            if known is None:
                known = found[text, rendered] = _Section(text, _shingles(rendered), set())
            known.branches.add(at)
    return [section for section in found.values() if section.shingles]


def _nearest(own: _Section, holders: dict[int, list[_Section]]) -> tuple[_Section | None, float]:
    shared: Counter[_Section] = Counter()
    for shingle in own.shingles:
        shared.update(holders.get(shingle, ()))
    best, likeness = None, 0.0
    for section, count in shared.items():
        share = count / (len(own.shingles) + len(section.shingles) - count)
        if share >= LIKENESS and share > likeness and not own.branches.isdisjoint(section.branches):
            best, likeness = section, share
    return best, likeness


def _shingles(text: str) -> frozenset[int]:
    words = _WORD.findall(text.lower())
    if len(words) < LEAST_WORDS:
        return frozenset()
    runs = (" ".join(words[at : at + _SHINGLE]) for at in range(len(words) - _SHINGLE + 1))
    return frozenset(int.from_bytes(blake2b(run.encode(), digest_size=8).digest()) for run in runs)


RULE = Rule(
    "FW501",
    "near-identical-sections",
    Severity.WARNING,
    Reads.TEXTS,
    "sections that say the same, or nearly so",
    find,
)
