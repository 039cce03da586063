"""Templates: text with ``{{name}}`` references. Nothing but names is looked up; values are spliced in, never read.

The rules, scanning from the left for ``{{`` (they are the seeds', and one escape more):

1. Where ``{{{{``, a variable name and ``}}}}`` stand, ``{{name}}`` is emitted and the scan goes on behind.
2. A group ``{{…}}`` without a brace inside must hold a variable name, else it is malformed.
3. Where no such group starts, a later ``}}`` makes it malformed; without one the two braces are prose.

Parsing stops at the first malformed group, since the first fault of a text is the one told. Parsing and splicing take
time linear in text and values: each character is looked at a fixed number of times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from foreword.errors import (
    LoneSurrogateError,
    MalformedReferenceError,
    NotAStringError,
    Place,
    UnknownVariableError,
    ValuelessVariableError,
    with_article,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foreword.errors import EntryRef

__all__ = ["Segment", "Template", "is_variable_name"]

_NAME = r"[a-z][a-z0-9_]*"
_VARIABLE_NAME = re.compile(_NAME)
_ESCAPE = re.compile(r"\{\{\{\{(" + _NAME + r")\}\}\}\}")
_GROUP = re.compile(r"\{\{([^{}]*)\}\}")
_SURROGATE = re.compile("[\ud800-\udfff]")

_WIDEST_EXCERPT = 120  # characters of a text that an error shows
_LONGEST_REFERENCE_SHOWN = 60


def is_variable_name(name: str) -> bool:
    """Whether a ``{{…}}`` reference can spell this name."""
    return _VARIABLE_NAME.fullmatch(name) is not None


class HasRef(Protocol):
    """Whatever has a text: an entry of an assembly."""

    @property
    def ref(self) -> EntryRef:
        """The reference that errors carry."""
        ...


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a template: literal text, or a reference to a variable."""

    text: str  # what a literal puts out; the name, for a reference
    is_reference: bool
    start: int  # where it begins in the template, in code points


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed text, ready to be rendered any number of times."""

    text: str
    segments: tuple[Segment, ...]
    malformed: int | None = None  # where the first malformed group begins

    # what `splice` fills in: the literals with holes, and which hole takes which variable
    _pieces: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _holes: tuple[tuple[int, str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        pieces = tuple("" if each.is_reference else each.text for each in self.segments)
        holes = tuple((index, each.text) for index, each in enumerate(self.segments) if each.is_reference)
        object.__setattr__(self, "_pieces", pieces)
        object.__setattr__(self, "_holes", holes)

    @classmethod
    def parse(cls, text: str) -> Template:
        """Read a text by the rules above. Never raises: a fault is kept, and told when the text is rendered."""
        return _parse(text)

    @classmethod
    def verbatim(cls, text: str) -> Template:
        """A text that is no template: it renders as it is."""
        return cls(text, (Segment(text, False, 0),) if text else ())

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that it refers to, in order of appearance, each as often as it appears."""
        return tuple(name for _, name in self._holes)

    def render(self, values: Mapping[str, Any], entry: HasRef) -> str:
        """The text with the values in the places of their names.

        Args:
            values: every known variable; None where it has no value.
            entry: whose text it is; asked for its reference only when there is a fault to tell.

        Raises:
            RenderError: the first fault of the text, with its place.
            NotAStringError: a value that is neither a string nor None.
        """
        if self.malformed is not None:
            self._tell(values, entry.ref)
        pieces = list(self._pieces)
        try:
            for index, name in self._holes:
                pieces[index] = values[name]
            text = "".join(pieces)
        except (KeyError, TypeError):  # unknown, or no string
            self._tell(values, entry.ref)
        if not text.isascii() and _SURROGATE.search(text):
            self._tell(values, entry.ref)
        return text

    def _tell(self, values: Mapping[str, Any], entry: EntryRef) -> NoReturn:
        """Raise the first fault. Only called when there is one, so the common way pays nothing for good messages."""
        for segment in self.segments:
            if not segment.is_reference:
                if found := _SURROGATE.search(segment.text):
                    place = self._place(segment.start + found.start(), 1, entry)
                    raise LoneSurrogateError(_code_point(found), place)
                continue
            place = self._place(segment.start, len(segment.text) + 4, entry)
            if segment.text not in values:
                raise UnknownVariableError(segment.text, place, sorted(values))
            value = values[segment.text]
            if value is None:
                raise ValuelessVariableError(segment.text, place)
            if not isinstance(value, str):
                what = f'the value of variable "{segment.text}", used in {entry},'
                raise NotAStringError(what, with_article(type(value).__name__), "give a string or None")
            if found := _SURROGATE.search(value):
                raise LoneSurrogateError(_code_point(found), place, segment.text)
        assert self.malformed is not None  # noqa: S101 - the caller has seen a fault, and it was none of the above
        raise self._malformed_error(self.malformed, entry)

    def _malformed_error(self, start: int, entry: EntryRef) -> MalformedReferenceError:
        close = self.text.find("}}", start + 2)
        shown = self.text[start : min(close + 2, start + _LONGEST_REFERENCE_SHOWN)]
        if close + 2 > start + _LONGEST_REFERENCE_SHOWN:
            shown += "…"
        shown = _printable(shown)
        inside = self.text[start + 2 : close]
        return MalformedReferenceError(shown, self._place(start, len(shown), entry), _way_out(inside))

    def _place(self, start: int, width: int, entry: EntryRef) -> Place:
        """Line, column and an excerpt with carets under `width` characters from `start` (or what fits of them)."""
        line_start = self.text.rfind("\n", 0, start) + 1
        line_end = self.text.find("\n", start)
        line_end = len(self.text) if line_end < 0 else line_end
        # a long line is cut around the place, with room to read what comes before it
        is_long = line_end - line_start > _WIDEST_EXCERPT
        begin = max(line_start, start - _WIDEST_EXCERPT // 3) if is_long else line_start
        end = min(line_end, begin + _WIDEST_EXCERPT)
        shown = _printable(self.text[begin:end])
        carets = " " * (start - begin) + "^" * max(1, min(width, end - start))
        return Place(entry, self.text.count("\n", 0, start) + 1, start - line_start + 1, f"    {shown}\n    {carets}")


def _printable(text: str) -> str:
    """The text on one line, with a blank for what cannot be shown; as long as before, so that carets fit."""
    return "".join(each if each.isprintable() else " " for each in text)


def _way_out(inside: str) -> str:
    """What to do about a malformed group with this inside."""
    if is_variable_name(inside.strip()):
        return f"write it without blanks: {{{{{inside.strip()}}}}}"
    if "{" in inside:
        return "for literal braces write {{{{name}}}}, which renders {{name}}, or register the text with verbatim=True"
    return (
        "only variable names ([a-z][a-z0-9_]*) go into {{…}}: no blanks, attributes, calls, filters or formats; "
        "register text in another template language with verbatim=True"
    )


def _code_point(found: re.Match[str]) -> str:
    return f"U+{ord(found[0]):04X}"


def _parse(text: str) -> Template:
    segments: list[Segment] = []
    at = 0
    last_close = text.rfind("}}")

    def literal(start: int, output: str) -> None:
        if output:
            segments.append(Segment(output, False, start))

    while True:
        found = text.find("{{", at)
        if found < 0:
            break
        if escape := _ESCAPE.match(text, found):
            literal(at, text[at:found])
            literal(found, f"{{{{{escape[1]}}}}}")
            at = escape.end()
        elif (group := _GROUP.match(text, found)) and is_variable_name(group[1]):
            literal(at, text[at:found])
            segments.append(Segment(group[1], True, found))
            at = group.end()
        elif last_close >= found + 2:  # rules 2 and 3: a wrong inside, or no group though a close follows
            literal(at, text[at:found])
            return Template(text, tuple(segments), found)
        else:
            break  # no close from here on, so all that follows is prose
    literal(at, text[at:])
    return Template(text, tuple(segments))
