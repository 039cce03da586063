"""Sections from a folder: each ``*.md`` file is one, and says in its front matter what it is called and where it goes.

`SystemPrompt.sections_from` registers what is read here. The faults of all files are gathered, and told at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, Final, cast

from foreword.errors import (
    EntryRef,
    Fault,
    InvalidSectionFilesError,
    PromptTooLargeError,
    UnreadableTextError,
    did_you_mean,
    shown,
)
from foreword.kernel.names import shortened, spellable
from foreword.kernel.source import Source
from foreword.prompt import front_matter
from foreword.prompt.text import read_text, within
from foreword.strictyaml import spelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from foreword.prompt.context import AssembleContext
    from foreword.prompt.front_matter import FrontMatter
    from foreword.prompt.origin import Origin

__all__ = ["ForModels", "SectionFile", "read_folder"]

_SUFFIX: Final = ".md"
_MOST_FAULTS: Final = 200  # a folder with more is the wrong folder

# The kinds of faults: what the same fault of a single text is called, and one for what only a folder can have.
_INVALID: Final = InvalidSectionFilesError.kind
_UNREADABLE: Final = UnreadableTextError.kind
_TOO_LARGE: Final = PromptTooLargeError.kind
_DUPLICATE: Final = "duplicate_section"


@dataclass(frozen=True, slots=True)
class ForModels:
    """A condition: the assembly is for a model that one of the globs fits. Without a model it is false."""

    globs: tuple[str, ...]

    def __call__(self, context: AssembleContext) -> bool:
        """Whether the condition holds."""
        model = context.model
        return model is not None and any(model.matches(glob) for glob in self.globs)


@dataclass(frozen=True, slots=True)
class SectionFile:
    """A section as its file has it."""

    name: str
    order: float
    text: str
    source: Source  # the line at which the text begins, behind the front matter
    when: ForModels | None
    requires_tools: tuple[str, ...]
    verbatim: bool


def read_folder(folder: Path, origin: Origin, order: float | None, limit: int) -> tuple[SectionFile, ...]:
    """Read the section files of a folder, in the code-point order of their names.

    Args:
        folder: where they are; hidden files and sub-folders are not looked at.
        origin: whose they are to be; a file without ``name`` is called ``owner:stem``.
        order: the order of files that have none; None makes that a fault.
        limit: bytes in UTF-8 that a text may have.

    Raises:
        InvalidSectionFilesError: the folder cannot be read or holds no such file; or all faults of all files.
    """
    faults = _Faults(str(origin))
    reading = _Reading(origin.owner, order, limit, faults)
    sections = [section for file in _files(folder, faults) if (section := reading.section(file)) is not None]
    faults.check()
    return tuple(sections)


class _Faults:
    """The faults so far, and of which kinds they are."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._held: list[Fault] = []
        self._kinds: set[str] = set()

    def add(self, kind: str, fault: Fault) -> None:
        """Note one; the last place is for saying that there are more."""
        self._kinds.add(kind)
        if len(self._held) == _MOST_FAULTS:
            fault = Fault(fault.file, None, "", "there are more faults than these; mend them first")
        if len(self._held) <= _MOST_FAULTS:
            self._held.append(fault)

    def check(self) -> None:
        """See that there are none.

        Raises:
            InvalidSectionFilesError: with all that there are.
        """
        if self._held:
            kind = self._kinds.pop() if len(self._kinds) == 1 else _INVALID
            raise InvalidSectionFilesError(self._owner, self._held, kind)


# -- the folder --------------------------------------------------------------------------------------------------------


def _files(folder: Path, faults: _Faults) -> list[Path]:
    """The section files of a folder, in order."""
    try:
        names = sorted(each.name for each in folder.iterdir())
    except (OSError, ValueError) as fault:  # ValueError: a name that no folder can have
        faults.add(_UNREADABLE, Fault(_printable(str(folder.absolute())), None, "", _why_no_folder(fault)))
        return []
    names = [name for name in names if name.lower().endswith(_SUFFIX) and not name.startswith(".")]
    if not names:
        why = f"holds no {_SUFFIX} file; hidden files and sub-folders are not looked at"
        faults.add(_UNREADABLE, Fault(_printable(str(folder.absolute())), None, "", why))
    return [folder / name for name in names]


def _why_no_folder(fault: OSError | ValueError) -> str:
    if isinstance(fault, FileNotFoundError):
        return "is not there; a relative path starts at the current folder"
    if isinstance(fault, NotADirectoryError):
        return "is no folder; one file is registered with section(name, Path(…), order=…)"
    return f"cannot be read: {(fault.strerror or fault) if isinstance(fault, OSError) else fault}"


# -- one file ----------------------------------------------------------------------------------------------------------


class _Reading:
    """The files of one folder on their way to sections."""

    def __init__(self, owner: str, order: float | None, limit: int, faults: _Faults) -> None:
        self._owner, self._order, self._limit, self._faults = owner, order, limit, faults
        self._holders: dict[str, str] = {}  # the file that each name is taken by

    def section(self, file: Path) -> SectionFile | None:
        """The section of a file; None if something is wrong with it, which is then noted."""
        place = Source(str(file.absolute()), 1)
        name = _printable(place.file)
        text = self._text(file, name)
        if text is None:
            return None
        matter = front_matter.split(text, name, _CHECKS)
        values = {**self._defaults(file), **(matter.values or {})}
        wrong = sorted(self._wrong(matter, values, name), key=lambda found: found[1].line or 0)
        for kind, fault in wrong:
            self._faults.add(kind, fault)
        if wrong:
            return None
        return SectionFile(
            values["name"],
            values["order"],
            matter.text,
            Source(place.path, matter.line, is_text=True),
            ForModels(_several(values["when_model"])) if "when_model" in values else None,
            _several(values.get("requires_tools", [])),
            values.get("verbatim", False),
        )

    def _defaults(self, file: Path) -> dict[str, Any]:
        name = f"{self._owner}:{file.name.removesuffix(_SUFFIX)}"
        return {"name": name} if self._order is None else {"name": name, "order": self._order}

    def _text(self, file: Path, name: str) -> str | None:
        """All that stands in a file; None, with a fault noted, if it cannot be read."""
        most = 2 * (self._limit + front_matter.MAX_SIZE + 512)  # all that may be there, and a CR more for each byte
        try:
            status = file.stat()
            if not S_ISREG(status.st_mode):  # opening what is no plain file may wait for ever
                self._faults.add(_UNREADABLE, Fault(name, None, "", "is no plain file"))
            elif status.st_size > most:
                why = str(PromptTooLargeError("the file", status.st_size, self._limit))
                self._faults.add(_TOO_LARGE, Fault(name, None, "", why))
            else:
                return read_text(file, EntryRef("section", file.name, self._owner))
        except OSError as fault:
            self._faults.add(_UNREADABLE, Fault(name, None, "", f"cannot be read: {fault.strerror or fault}"))
        except UnreadableTextError as fault:
            self._faults.add(_UNREADABLE, Fault(name, _line_of(fault), "", fault.why))
        return None

    def _wrong(self, matter: FrontMatter, values: dict[str, Any], file: str) -> Iterator[tuple[str, Fault]]:
        """All that is wrong with a file that could be read."""
        yield from ((_INVALID, fault) for fault in matter.faults)
        yield from ((_INVALID, fault) for fault in _misfits(matter, file))
        if not file.endswith(_SUFFIX):
            why = f"its name ends in {file[-len(_SUFFIX) :]}; rename it, so that it ends in {_SUFFIX}"
            yield _INVALID, Fault(file, None, "", why)
        if matter.values is not None and "order" not in {*values, *matter.at_fault}:
            way_out = "give it one in its front matter, or all without one a default: sections_from(…, order=…)"
            yield _INVALID, Fault(file, 1, "", f"has no order; {way_out}")
        try:
            within(self._limit, matter.text, "its text")
        except PromptTooLargeError as fault:
            yield _TOO_LARGE, Fault(file, matter.line, "", str(fault))
        yield from self._taken(matter, values["name"], file)

    def _taken(self, matter: FrontMatter, name: object, file: str) -> Iterator[tuple[str, Fault]]:
        """What is wrong with the name of a file's section, beside its type."""
        if matter.values is None or "name" in matter.at_fault or not isinstance(name, str):
            return
        if not spellable(name):
            yield _INVALID, Fault(file, 1, "", "rename it, or give it a name in its front matter: this one is no UTF-8")
        holder = self._holders.setdefault(name, file)
        if holder is not file:
            why = f'"{shown(name)}" is already the name of {holder}; give one of them another'
            yield _DUPLICATE, Fault(file, matter.line_of("name"), "name", why)


def _line_of(fault: UnreadableTextError) -> int | None:
    """The line of the first bad byte."""
    cause = fault.__cause__
    return cause.object.count(b"\n", 0, cause.start) + 1 if isinstance(cause, UnicodeDecodeError) else None


def _printable(name: str) -> str:
    """A file as messages show it: in full, what cannot be printed escaped."""
    return name if name.isprintable() else name.encode("unicode_escape").decode()


# -- what may stand in front matter ------------------------------------------------------------------------------------


def _misfits(matter: FrontMatter, file: str) -> Iterator[Fault]:
    """The keys that nobody knows, and the values that are not what they should be."""
    for key, value in (matter.values or {}).items():
        path, line = spelled((key,)), matter.line_of(key)
        if key not in _CHECKS:
            why = f"is no key of a section file; {did_you_mean(key, _CHECKS, 'keys')}"
            yield Fault(file, line, path, why)
        elif not _CHECKS[key][0](value):
            at_fault, told = value, _described(value)
            if key in _LISTS and isinstance(value, list) and value:
                at_fault = next(each for each in cast("list[object]", value) if not _is_text(each))
                told = f"a list that holds {_described(at_fault)}"
            is_word = key not in ("order", "verbatim") and isinstance(at_fault, (int, float))
            way_out = "; put it in quotes" if is_word else ""
            yield Fault(file, line, path, f"must be {_CHECKS[key][1]}, not {told}{way_out}")


def _described(value: object) -> str:
    """A value as the file spells it, where that is short."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return "keys and values" if isinstance(value, dict) else shortened(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_several(value: object) -> bool:
    """Whether it is one name, or a list of some. What looks like several in one text would never fit anything."""
    if isinstance(value, str):
        return re.fullmatch(r"[^\s,]+", value) is not None
    names = cast("list[object]", value) if isinstance(value, list) else []
    return bool(names) and all(map(_is_text, names))


def _several(value: str | list[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


_LISTS: Final = ("when_model", "requires_tools")
_CHECKS: Final[dict[str, tuple[Callable[[object], bool], str]]] = {
    "name": (_is_text, "a text that is not empty"),
    "order": (_is_number, "a number"),
    "when_model": (_is_several, "a glob, such as gpt-*, or a list of some: [gpt-*, o3]"),
    "requires_tools": (lambda value: value == [] or _is_several(value), "a tool, or a list of some: [read, write]"),
    "verbatim": (lambda value: isinstance(value, bool), "true or false"),
}
