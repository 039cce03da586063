"""Front matter: the YAML between two lines ``---`` at the top of a text file, and the text behind it.

Stands below whatever reads text files. The YAML is that of `strictyaml`, without aliases, in at most 16 KB. Its faults,
and the text, are told by their lines in the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

from foreword.errors import Fault
from foreword.strictyaml import read, spelled

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from foreword.strictyaml import Document

__all__ = ["MAX_SIZE", "FrontMatter", "split"]

MAX_SIZE: Final = 16 * 1024  # bytes in UTF-8
_OPENING: Final = re.compile(r"---[ \t]*(?:\n|\Z)")
_CLOSING: Final = re.compile(r"^---[ \t]*(?:\n|\Z)", re.MULTILINE)
_EMPTY_LINES: Final = re.compile(r"(?:[ \t]*\n)+")
_KEY: Final = re.compile(r"([\w-]+)[ \t]*:(?:[ \t]|\Z)")  # of a line that is no part of a value
_GOING_ON: Final = ("", " ", "\t", "#", "-", "]", "}")  # how a line begins that has no key
_STAR: Final = re.compile(r"(?:[:,\[]|^\s*-)\s*\*")  # where a value begins with a star


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What a file says about its text, and the text.

    Attributes:
        values: the keys and values, without those at fault; None if nothing could be read.
        text: what stands behind, without one empty line if it begins with one.
        line: the line of the file at which the text begins, from 1.
        faults: what is wrong with the YAML.
        at_fault: the keys that are not among the values for that.
        document: the YAML, for the places of its keys.
    """

    values: Mapping[str, Any] | None
    text: str
    line: int
    faults: tuple[Fault, ...] = ()
    at_fault: frozenset[str] = frozenset()
    document: Document | None = None

    def line_of(self, key: str) -> int:
        """The line of a key; the first one for a key that is not there."""
        place = None if self.document is None else self.document.place((key,))
        return 1 if place is None else place[0]


def split(text: str, file: str, keys: Collection[str] = ()) -> FrontMatter:
    """Part a file's text into front matter and text. Without a first line ``---``, all of it is text.

    Args:
        text: all of it, with LF line ends.
        file: what to call the file in faults.
        keys: which may stand in front matter. What looks like it, has one of them, and stands below empty lines is a
            fault; without keys it is text.
    """
    opening = _OPENING.match(text)
    if opening is None:
        line = _late(text, keys)
        if line is None:
            return FrontMatter({}, text, 1)
        why = 'front matter begins in line 1; drop the empty lines above it, or write "***" if a rule is meant'
        return FrontMatter(None, "", 1, (Fault(file, line, "", why),))
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        why = 'opens front matter that no line "---" closes; add one, or write "***" if a rule is meant'
        return FrontMatter(None, "", 1, (Fault(file, 1, "", why),))
    matter, behind = text[opening.end() : closing.start()], text[closing.end() :]
    held = behind.removeprefix("\n")  # editors that format Markdown put an empty line there
    line = text.count("\n", 0, closing.start()) + 2 + len(behind) - len(held)
    size = len(matter.encode("utf-8", "surrogatepass"))
    if size > MAX_SIZE:
        why = f"front matter of {size:,} bytes, more than the limit of {MAX_SIZE:,}"
        return FrontMatter(None, held, line, (Fault(file, 1, "", why),))
    return _read(matter, held, line, file)


def _late(text: str, keys: Collection[str]) -> int | None:
    """The line at which front matter begins below empty lines; None if there is none. A text may begin with a rule."""
    empty = _EMPTY_LINES.match(text)
    opening = _OPENING.match(text, empty.end()) if empty else None
    closing = _CLOSING.search(text, opening.end()) if opening else None
    if empty is None or opening is None or closing is None:
        return None
    lines = [line for line in text[opening.end() : closing.start()].split("\n") if line[:1] not in _GOING_ON]
    found = [_KEY.match(line) for line in lines]
    names = {match[1] for match in found if match is not None}
    return empty[0].count("\n") + 1 if None not in found and not names.isdisjoint(keys) else None


def _read(matter: str, text: str, line: int, file: str) -> FrontMatter:
    document, faults = read(f"\n{matter}", file, aliases=False)  # the empty line makes its lines those of the file
    if document is None:
        return FrontMatter(None, text, line, tuple(_with_hint(fault, matter) for fault in faults))
    if document.value is None:
        return FrontMatter({}, text, line, faults)
    if not isinstance(document.value, dict):
        why = 'front matter must be keys and values, as in "order: 20"; write "***" if a rule is meant'
        return FrontMatter(None, text, line, (*faults, Fault(file, 2, "", why)))
    paths = {re.split(r"[.\[]", fault.path)[0] for fault in faults}
    held = cast("dict[str, Any]", document.value)
    at_fault = frozenset(key for key in held if spelled((key,)) in paths)
    values = {key: value for key, value in held.items() if key not in at_fault}
    return FrontMatter(values, text, line, faults, at_fault, document)


def _with_hint(fault: Fault, matter: str) -> Fault:
    """A fault of the syntax; where a value begins with a star, as globs do, YAML looks for an alias and is no help."""
    lines = matter.split("\n")
    if fault.line is None or not 2 <= fault.line <= len(lines) + 1 or not _STAR.search(lines[fault.line - 2]):
        return fault
    return replace(fault, message=f"{fault.message}; a text that begins with * needs quotes")
