"""A prompt as a file that people read and git keeps: texts, tools and variables, with their owners in the margin.

    System text

      deployment deployment:persona │ You are a clerk.

      acme-billing billing:rules    │ Quote prices in EUR.
                                    │ Round to cents.

Each entry stands for itself, so a change of one touches no line of another. The file holds no versions of packages and
no lines of files, which change for other reasons than the prompt; and of what is sensitive, only that it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from foreword.explain.masking import masked
from foreword.explain.subject import Part, PartTool, Subject, Variable, subject_of
from foreword.jsonvalue import thaw
from foreword.prompt.contributions import ToolSchema
from foreword.prompt.origin import Origin
from foreword.prompt.spans import SEPARATOR, Span
from foreword.session.trace import RecordedOrigin

if TYPE_CHECKING:
    from foreword.explain.subject import PartKind, RequestMessage
    from foreword.prompt.rendering import Rendering
    from foreword.wire.request import ModelConfig

__all__ = ["PromptFile", "UnreadablePromptFile"]

_FIRST: Final = "# The prompt as foreword rendered it, format 1. Written by pytest --prompt-update; not to be edited."
_BAR: Final = "│"
_INDENT: Final = "  "
_OWNER: Final = 16  # cells of the margin that an owner has at least
_NAME: Final = 24
_TITLES: Final = {
    "section": "System text",
    "context": "Runtime contexts",
    "tool": "Tools",
    "variable": "Variables",
}
_NOTHING: Final = "(none)"
_UNSAFE: Final = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, delete, C1
    "\u00ad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u2069\ufeff"  # unseen, or turning the direction of writing
    "\ud800-\udfff"  # halves of a surrogate pair
    "\U000e0000-\U000e007f"  # tags
    "]"
    "|\u27e8(?=U\\+)"  # what spells the others out
)
_AT_THE_END: Final = re.compile(r"[ \t]$", re.MULTILINE)  # editors take it away
_IN_A_NAME: Final = re.compile(rf"[\s{_BAR}=]|^$")


class UnreadablePromptFile(ValueError):  # noqa: N818 - it never leaves this package as an error
    """A text that `PromptFile.read` cannot read; says where."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of the file."""

    kind: str
    owner: str
    name: str
    about: str  # a scope, a listener
    text: str


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A prompt as such a file holds it; two can be compared by `foreword.explain.diff.compared`."""

    title: str
    sections: tuple[Part, ...]
    contexts: tuple[Part, ...]
    tools: tuple[PartTool, ...]
    variables: tuple[Variable, ...]
    text: str  # of the file; its lines end with LF
    messages: tuple[RequestMessage, ...] = ()
    config: ModelConfig | None = None

    @classmethod
    def of(cls, rendering: Rendering, title: str = "the prompt") -> PromptFile:
        """The file of a rendering. Its origins still tell where in the code things come from."""
        subject = masked(subject_of(rendering, title))
        text = "\n".join(_lines(subject)) + "\n"
        return _with_sources(cls.read(text, title), subject)

    @classmethod
    def read(cls, text: str, title: str) -> PromptFile:
        """The prompt that a file holds.

        Args:
            text: of the file; its lines may end as Windows ends them.
            title: what it is, for people.

        Raises:
            UnreadablePromptFile: it is no such file, or was edited.
        """
        text = text.replace("\r\n", "\n")
        entries = list(_entries(text))
        return cls(
            title,
            tuple(_parts(entries, "section")),
            tuple(_parts(entries, "context")),
            tuple(PartTool(_schema(each), _origin(each)) for each in entries if each.kind == "tool"),
            tuple(Variable(each.name, each.text, _origin(each), ()) for each in entries if each.kind == "variable"),
            text,
        )


# -- writing -----------------------------------------------------------------------------------------------------------


def _lines(subject: Subject) -> Iterator[str]:
    yield _FIRST
    for kind, title in _TITLES.items():
        yield from ("", title)
        entries = list(_of(subject, kind))
        if not entries:
            yield f"{_INDENT}{_NOTHING}"
        for entry in entries:
            yield ""
            yield from _entry_lines(entry)


def _of(subject: Subject, kind: str) -> Iterator[_Entry]:
    match kind:
        case "section" | "context":
            for part in subject.sections if kind == "section" else subject.contexts:
                yield _entry(kind, part.name, part.origin, part.text)
        case "tool":
            for tool in subject.tools:
                parameters = json.dumps(thaw(dict(tool.schema.parameters)), ensure_ascii=False, indent=2)
                yield _entry(kind, tool.name, tool.origin, f"{tool.schema.description}\n{parameters}")
        case _:
            for variable in subject.variables:
                yield _entry(kind, variable.name, variable.origin, variable.value)


def _entry(kind: str, name: str, origin: Origin, text: str) -> _Entry:
    scope = [] if origin.scope is None else [f"scope={_name(origin.scope)}"]
    listener = [] if origin.listener is None else [f"listener={_name(origin.listener)}"]
    return _Entry(kind, _name(origin.owner), _name(name), " ".join([*scope, *listener]), _spelled(text))


def _entry_lines(entry: _Entry) -> Iterator[str]:
    margin = f"{_INDENT}{entry.owner.ljust(_OWNER)} {entry.name.ljust(_NAME)}"
    if entry.about:
        margin = f"{margin.rstrip()} {entry.about}"
    margin = f"{margin.ljust(len(_INDENT) + _OWNER + 1 + _NAME)} "
    for line in entry.text.split("\n"):
        yield f"{margin}{_BAR} {line}" if line else f"{margin}{_BAR}"
        margin = " " * len(margin)


def _spelled(text: str) -> str:
    """A text in which every character can be seen, and none is lost in an editor or a checkout."""
    told = _UNSAFE.sub(_code_point, text)
    return _AT_THE_END.sub(_code_point, told)


def _name(name: str) -> str:
    """A name as one word."""
    return _IN_A_NAME.sub(lambda found: _code_point(found) if found[0] else "\u27e8\u27e9", _spelled(name))


def _code_point(found: re.Match[str]) -> str:
    return f"\u27e8U+{ord(found[0]):04X}\u27e9"


# -- reading -----------------------------------------------------------------------------------------------------------


def _entries(text: str) -> Iterator[_Entry]:
    lines = text.split("\n")
    if lines[0] != _FIRST:
        raise UnreadablePromptFile("its first line is not that of a prompt's file of this version")
    titles = {title: kind for kind, title in _TITLES.items()}
    kind, entry = "", None
    for number, line in enumerate(lines[1:], 2):
        margin, bar, told = line.partition(_BAR)
        if bar and margin.strip():
            if entry is not None:
                yield entry
            entry = _opened(kind, margin.split(maxsplit=2), told.removeprefix(" "), number)
        elif bar and entry is not None:
            entry = replace(entry, text=f"{entry.text}\n{told.removeprefix(' ')}")
        elif line in titles:
            kind = titles[line]
        elif line and line.strip() != _NOTHING:
            raise UnreadablePromptFile(f"its line {number} is none that was written")
    if entry is not None:
        yield entry


def _opened(kind: str, margin: Sequence[str], told: str, number: int) -> _Entry:
    if len(margin) < 2 or not kind:
        raise UnreadablePromptFile(f"its line {number} has no owner and name in the margin")
    return _Entry(kind, margin[0], margin[1], " ".join(margin[2:]).strip(), told)


def _origin(entry: _Entry) -> Origin:
    told = {key: value for key, _, value in (each.partition("=") for each in entry.about.split())}
    return RecordedOrigin(entry.owner, told.get("scope"), None, told.get("listener"))


def _parts(entries: Sequence[_Entry], kind: PartKind) -> Iterator[Part]:
    at = 0
    for entry in entries:
        if entry.kind != kind:
            continue
        origin, end = _origin(entry), at + len(entry.text)
        span = Span(at, end, "literal", origin, entry.name, None, None, origin)
        yield Part(kind, entry.name, entry.text, origin, (span,), at)
        at = end + len(SEPARATOR)


def _schema(entry: _Entry) -> ToolSchema:
    lines = entry.text.split("\n")
    start = max((at for at, line in enumerate(lines) if line.startswith("{")), default=len(lines))
    try:
        parameters: Any = json.loads("\n".join(lines[start:]))
    except ValueError:
        raise UnreadablePromptFile(f"the parameters of its tool {entry.name} are no JSON") from None
    return ToolSchema(entry.name, "\n".join(lines[:start]), parameters)


def _with_sources(file: PromptFile, subject: Subject) -> PromptFile:
    """The same, with the places in the code that only a live prompt knows."""
    return replace(
        file,
        sections=tuple(_placed(one, other) for one, other in zip(file.sections, subject.sections, strict=True)),
        contexts=tuple(_placed(one, other) for one, other in zip(file.contexts, subject.contexts, strict=True)),
        tools=tuple(_placed(one, other) for one, other in zip(file.tools, subject.tools, strict=True)),
        variables=tuple(_placed(one, other) for one, other in zip(file.variables, subject.variables, strict=True)),
    )


def _placed(one: Any, other: Part | PartTool | Variable) -> Any:
    return replace(one, origin=replace(one.origin, source=other.origin.source))
