"""Looking for patterns in the texts of a survey, and telling where they stand; telling how two texts differ."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Sequence

    from foreword.explain.lint.survey import Survey, Text

__all__ = ["change", "characters", "matches", "outside_code", "where"]

_WIDEST: Final = 24  # characters of a text that a message shows


def matches(survey: Survey, pattern: re.Pattern[str]) -> Iterator[tuple[Text, list[re.Match[str]]]]:
    """The texts that hold a pattern, with every place where they do."""
    for text in survey.texts:
        found = list(pattern.finditer(text.text))
        if found:
            yield text, found


def where(text: Text, found: Sequence[re.Match[str]]) -> str:
    """Where the first of some matches stands, and how many more there are."""
    more = len(found) - 1
    return f"at {text.position(found[0].start())}{f', and {more} more' if more else ''}"


def characters(found: Sequence[re.Match[str]]) -> str:
    """Which characters these are, each once: ``U+202E RIGHT-TO-LEFT OVERRIDE``."""
    kinds = list(dict.fromkeys(each[0] for each in found))
    told = [f"U+{ord(each[0]):04X} {unicodedata.name(each[0], '')}".rstrip() for each in kinds[:3]]
    return ", ".join(told) + (f" and {len(kinds) - 3} other kinds" if len(kinds) > 3 else "")


def outside_code(text: str) -> str:
    """A Markdown text in which what stands in backticks or fences is blanked, so that all else keeps its place."""
    parts: list[str] = []
    at = 0
    while (tick := text.find("`", at)) >= 0:
        run = _run(text, tick)
        close = text.find("`" * run, tick + run)
        end = len(text) if close < 0 and run >= 3 else tick + run if close < 0 else close + run
        parts += [text[at:tick], "".join("\n" if each == "\n" else " " for each in text[tick:end])]
        at = end
    return "".join(parts) + text[at:]


def _run(text: str, tick: int) -> int:
    """How many backticks stand there."""
    end = tick
    while end < len(text) and text[end] == "`":
        end += 1
    return end - tick


def change(before: str, after: str) -> str:
    """Where two texts part, and how they go on there."""
    parting = (at for at, (one, other) in enumerate(zip(before, after, strict=False)) if one != other)
    at = next(parting, min(len(before), len(after)))
    back = before[:at]
    start = max(back.rfind(" "), back.rfind("\n"), at - _WIDEST // 2) + 1 if at else 0
    return f"character {at + 1}, {_excerpt(before, start)} → {_excerpt(after, start)}"


def _excerpt(text: str, start: int) -> str:
    line = text[start:].split("\n", 1)[0]
    return repr(line) if len(line) <= _WIDEST else f"{line[:_WIDEST]!r}…"
