"""Docstrings of tools: the description of the tool, and those of its parameters, from an ``Args:`` section.

An entry is ``name: text``, or ``name (type): text``; deeper lines go on with it. The section is taken out; all else is
the description, to the letter.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import Final

__all__ = ["Docstring", "read_docstring"]

_HEADING: Final = re.compile(r"(Args|Arguments|Parameters):\s*")
_ENTRY: Final = re.compile(r"\*{0,2}(?P<name>\w+)(?:\s*\([^)]*\))?:(?:\s+(?P<text>.*))?")


@dataclass(frozen=True, slots=True)
class Docstring:
    """What a docstring says."""

    description: str
    parameters: dict[str, str]  # by name


def read_docstring(text: str | None) -> Docstring:
    """Read a docstring.

    Raises:
        ValueError: a line of its ``Args:`` section is no ``name: text``.
    """
    lines = inspect.cleandoc(text or "").split("\n")
    start = next((at for at, line in enumerate(lines) if _HEADING.fullmatch(line)), None)
    if start is None:
        return Docstring("\n".join(lines).strip(), {})
    stop = start + 1
    while stop < len(lines) and (not lines[stop].strip() or lines[stop][0].isspace()):
        stop += 1
    before, after = "\n".join(lines[:start]).strip(), "\n".join(lines[stop:]).strip()
    return Docstring("\n\n".join(filter(None, (before, after))), _entries(lines[start + 1 : stop]))


def _entries(lines: list[str]) -> dict[str, str]:
    """The entries of a section; deeper lines go on with the one before them."""
    body = [line.expandtabs() for line in lines if line.strip()]
    margin = min((_indent(line) for line in body), default=0)
    found: dict[str, list[str]] = {}
    name = ""
    for line in body:
        if _indent(line) > margin and name:
            found[name].append(line.strip())
            continue
        entry = _ENTRY.fullmatch(line.strip())
        if entry is None:
            raise ValueError(f'the line "{line.strip()}" of its docstring\'s Args section is no "name: text"')
        name = entry["name"]
        found[name] = [entry["text"] or ""]
    return {name: " ".join(filter(None, texts)) for name, texts in found.items()}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
