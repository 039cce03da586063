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
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

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

    def ref_at(self, line: int) -> EntryRef:
        """The same for a line of the text, from 1."""
        ...


class Segment(NamedTuple):
    """A stretch of a template: literal text, or a reference to a variable."""

    text: str  # what a literal puts out; the name, for a reference
    is_reference: bool
    start: int  # where it begins in the template, in code points


class Template:
    """A parsed text, ready to be rendered any number of times. Immutable.

    Attributes:
        text: the text.
        is_verbatim: whether it renders as it is.
        malformed: where the first malformed group begins; None if there is none.
        names: the variables that it refers to, in order of appearance, each as often as it appears.
    """

    # Literals are kept as places in a text (mostly the very text that was parsed), not as copies of it: a template of a
    # scope's persona then weighs next to nothing.
    __slots__ = ("_holes", "_is_sound", "_literals", "_tail", "is_verbatim", "malformed", "names", "text")

    def __init__(self, text: str, *, is_verbatim: bool = False) -> None:
        self.text, self.is_verbatim = text, is_verbatim
        self._literals, self._tail = text, 0  # what all literals put out, and where the last one begins there
        self._holes: tuple[tuple[int, int, str], ...] = ()  # a literal from here to there, then the value of this name
        self.names: tuple[str, ...] = ()
        self.malformed = None if is_verbatim or "{{" not in text else self._read()
        self._is_sound = self.malformed is None and _is_sound(self._literals)

    @classmethod
    def parse(cls, text: str) -> Template:
        """Read a text by the rules above. Never raises: a fault is kept, and told when the text is rendered."""
        return cls(text)

    @classmethod
    def verbatim(cls, text: str) -> Template:
        """A text that is no template: it renders as it is."""
        return cls(text, is_verbatim=True)

    def _read(self) -> int | None:
        segments, malformed = _parse(self.text)
        has_escapes = "{{{{" in self.text
        if has_escapes:
            self._literals = "".join([each.text for each in segments if not each.is_reference])
        at = start = 0  # the end and the beginning of the literal that is being read
        holes: list[tuple[int, int, str]] = []
        for each in segments:
            if each.is_reference:
                holes.append((start, at, each.text))
                start = at = at if has_escapes else each.start + len(each.text) + 4
            else:
                at += len(each.text)
        self._holes, self._tail = tuple(holes), start
        self.names = tuple([name for _, _, name in holes])
        return malformed

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Its stretches, in order, up to the first malformed group; read again at each call."""
        if self.is_verbatim:
            return (Segment(self.text, False, 0),) if self.text else ()
        return tuple(_parse(self.text)[0])

    def lacks(self, values: Mapping[str, Any]) -> bool:
        """Whether rendering with these values would raise, as far as can be told without looking into the values."""
        return not self._is_sound or any(type(values.get(name)) is not str for name in self.names)

    def render(self, values: Mapping[str, Any], entry: HasRef) -> str:
        """The text with the values in the places of their names.

        Args:
            values: every known variable; None where it has no value.
            entry: whose text it is; asked for its reference only when there is a fault to tell.

        Raises:
            RenderError: the first fault of the text, with its place.
            NotAStringError: a value that is neither a string nor None.
        """
        if not self._is_sound:
            self._tell(values, entry)
        literals = self._literals
        holes = self._holes
        if not holes:
            return literals
        if len(holes) == 1:  # most have one, and this takes half the time
            _, stop, name = holes[0]
            value = values.get(name)
            if type(value) is str and value.isascii():
                return f"{literals[:stop]}{value}{literals[self._tail :]}"
        pieces: list[str] = []
        try:
            for start, stop, name in holes:
                value = values[name]
                if not value.isascii() and _SURROGATE.search(value):
                    self._tell(values, entry)
                pieces += (literals[start:stop], value)
            pieces.append(literals[self._tail :])
            return "".join(pieces)
        except (KeyError, TypeError, AttributeError):  # unknown, or no string
            pass  # told below, since who reads of it should not have to read of this one first
        return self._tell(values, entry)  # which raises

    def _tell(self, values: Mapping[str, Any], entry: HasRef) -> NoReturn:
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
                what = f'the value of variable "{segment.text}", used in {entry.ref},'
                raise NotAStringError(what, with_article(type(value).__name__), "give a string or None")
            if found := _SURROGATE.search(value):
                raise LoneSurrogateError(_code_point(found), place, segment.text)
        assert self.malformed is not None  # noqa: S101 - the caller has seen a fault, and it was none of the above
        raise self._malformed_error(self.malformed, entry)

    def _malformed_error(self, start: int, entry: HasRef) -> MalformedReferenceError:
        close = self.text.find("}}", start + 2)
        shown = self.text[start : min(close + 2, start + _LONGEST_REFERENCE_SHOWN)]
        if close + 2 > start + _LONGEST_REFERENCE_SHOWN:
            shown += "…"
        shown = _printable(shown)
        inside = self.text[start + 2 : close]
        return MalformedReferenceError(shown, self._place(start, len(shown), entry), _way_out(inside))

    def _place(self, start: int, width: int, entry: HasRef) -> Place:
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
        line = self.text.count("\n", 0, start) + 1
        return Place(entry.ref_at(line), line, start - line_start + 1, f"    {shown}\n    {carets}")


def _is_sound(text: str) -> bool:
    return text.isascii() or _SURROGATE.search(text) is None


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


def _parse(text: str) -> tuple[list[Segment], int | None]:
    """The segments of a text up to the first malformed group, and where that begins."""
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
            return segments, found
        else:
            break  # no close from here on, so all that follows is prose
    literal(at, text[at:])
    return segments, None
