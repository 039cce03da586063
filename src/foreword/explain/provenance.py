"""Provenance: who put a stretch of text, or a line, into a prompt.

A stretch may stand in the system text, in the snapshot of the runtime contexts, in a tool's schema or in the history.
Each place where it stands is an `Occurrence`, cut into `Stretch`es of one owner each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from foreword.errors import TextNotFoundError
from foreword.explain.subject import UNKNOWN
from foreword.wire.messages import AssistantMessage
from foreword.wire.request import tool_to_json

if TYPE_CHECKING:
    from foreword.explain.subject import PartTool, RequestMessage, Subject
    from foreword.jsonvalue import JsonValue
    from foreword.prompt.contributions import ToolSchema
    from foreword.prompt.origin import Origin
    from foreword.prompt.spans import Span, Spans
    from foreword.wire.tool_extras import ToolExtras

__all__ = [
    "EARLIER_CONTEXTS",
    "Occurrence",
    "Place",
    "Stretch",
    "explain_line",
    "find_text",
    "message_owner",
    "origin_to_json",
    "texts_of",
    "texts_of_tool",
]

Place: TypeAlias = Literal["system", "contexts", "tool", "message"]
"""Where a stretch stands: in the system text, in the snapshot, in a tool's schema, in a message of the history."""

MOST = 100  # occurrences that are told of one text
EARLIER_CONTEXTS: Final = "earlier contexts"
"""Whose a message is that told the runtime contexts as they were once."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of text with one owner.

    Attributes:
        text: what stands there.
        kind: ``literal`` (a text that was contributed), ``variable`` (a value), ``separator`` (the assembler's).
        origin: who put it there, from where; for a value the variable's owner.
        section: the section or context that it stands in; None between two of them, and outside of sections.
        variable: the variable that it is the value of.
        section_origin: who contributed that section or context.
        source: file and line where that very stretch was written, as far as known.
    """

    text: str
    kind: Literal["literal", "variable", "separator"]
    origin: Origin
    section: str | None = None
    variable: str | None = None
    section_origin: Origin | None = None
    source: str | None = None

    @property
    def owner(self) -> str:
        """The plugin that put it there."""
        return self.origin.owner

    def to_json(self) -> dict[str, JsonValue]:
        """The stretch as JSON."""
        told: dict[str, JsonValue] = {
            "text": self.text,
            "kind": self.kind,
            "section": self.section,
            "variable": self.variable,
            **origin_to_json(self.origin),
        }
        told["source"] = self.source or told["source"]
        section = self.section_origin
        told["section_owner"] = None if section is None else section.owner
        told["section_scope"] = None if section is None else section.scope
        return told


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A place where a text stands.

    Attributes:
        place: in what.
        name: of the tool, or who said the message.
        line: from 1, in the whole text of that place.
        column: from 1, in code points.
        stretches: the text, cut by owners; joined they are the text.
        message: of the history, the number of the message from 0.
        seq: of a logged message, the number of the event that brought it.
    """

    place: Place
    name: str | None
    line: int
    column: int
    stretches: tuple[Stretch, ...]
    message: int | None = None
    seq: int | None = None

    @property
    def text(self) -> str:
        """The text that stands there."""
        return "".join(stretch.text for stretch in self.stretches)

    def to_json(self) -> dict[str, JsonValue]:
        """The occurrence as JSON."""
        return {
            "place": self.place,
            "name": self.name,
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "seq": self.seq,
            "stretches": [stretch.to_json() for stretch in self.stretches],
        }


def find_text(subject: Subject, text: str) -> tuple[Occurrence, ...]:
    """The places where a text stands in a prompt, each with who put it there.

    Args:
        subject: the prompt.
        text: what to look for, to the letter. It may run over several lines and sections.

    Returns:
        The places in the order in which the model reads them: tools, system text, runtime contexts, history; at most
        100 of them.

    Raises:
        TextNotFoundError: it stands nowhere.
    """
    found: list[Occurrence] = []
    for occurrence in _everywhere(subject, text) if text else ():
        found.append(occurrence)
        if len(found) == MOST:
            break
    if not found:
        raise TextNotFoundError(text, subject.title, _nearly(subject, text) + _perhaps(subject))
    return tuple(found)


def explain_line(subject: Subject, number: int, place: Literal["system", "contexts"] = "system") -> Occurrence:
    """Who put a line of the system text, or of the runtime contexts, there.

    Args:
        subject: the prompt.
        number: of the line, from 1.
        place: which of the two texts.

    Raises:
        TextNotFoundError: there is no such line.
    """
    spans = subject.spans if place == "system" else subject.snapshot_spans
    lines = spans.text.split("\n") if spans.text else []
    if not 1 <= number <= len(lines):
        has = f"it has {len(lines)} line{'' if len(lines) == 1 else 's'}"
        raise TextNotFoundError(f"line {number}", subject.title, has)
    start = sum(len(line) + 1 for line in lines[: number - 1])
    end = start + len(lines[number - 1])
    # An empty line shows whose the newline is that makes it.
    stretches = _cut(spans, start, end) or _cut(spans, max(start - 1, 0), start) or _cut(spans, start, start + 1)
    return Occurrence(place, None, number, 1, stretches)


def message_owner(message: RequestMessage) -> str:
    """Who a message of the history is from: the plugin that sent it, else its role."""
    if message.is_snapshot:
        return EARLIER_CONTEXTS
    if message.source is not None:
        return message.source.name
    role = str(message.message.to_json()["role"])
    return "the history" if message.replaced else {"assistant": "the model", "tool": "a tool"}.get(role, f"the {role}")


def origin_to_json(origin: Origin) -> dict[str, JsonValue]:
    """An origin as JSON."""
    return {
        "owner": origin.owner,
        "scope": origin.scope,
        "layer": origin.layer,
        "listener": origin.listener,
        "source": None if origin.source is None else str(origin.source),
        "distribution": origin.distribution,
    }


# -- looking -----------------------------------------------------------------------------------------------------------


def _everywhere(subject: Subject, text: str) -> Iterator[Occurrence]:
    for tool in subject.tools:
        yield from _in_tool(tool, text)
    yield from _in_spans("system", subject.spans, text)
    is_told = any(message.is_snapshot for message in subject.messages)
    if not is_told:
        yield from _in_spans("contexts", subject.snapshot_spans, text)
    for number, message in enumerate(subject.messages):
        if message.is_snapshot and message.message.text == subject.snapshot:
            for each in _in_spans("contexts", subject.snapshot_spans, text):
                yield Occurrence("contexts", None, each.line, each.column, each.stretches, number, message.seq)
        else:
            yield from _in_message(number, message, text)


def _positions(whole: str, text: str) -> Iterator[int]:
    at = whole.find(text)
    while at >= 0:
        yield at
        at = whole.find(text, at + len(text))


def _in_spans(place: Place, spans: Spans, text: str) -> Iterator[Occurrence]:
    for at in _positions(spans.text, text):
        yield Occurrence(place, None, *_line_and_column(spans.text, at), _cut(spans, at, at + len(text)))


def _cut(spans: Spans, start: int, end: int) -> tuple[Stretch, ...]:
    return tuple(_stretch(span, spans.text[span.start : span.end]) for span in spans.between(start, end))


def _stretch(span: Span, text: str) -> Stretch:
    source = span.source or span.origin.source
    return Stretch(
        text, span.kind, span.origin, span.section, span.variable, span.section_origin,
        None if source is None else str(source),
    )  # fmt: skip


def _in_tool(tool: PartTool, text: str) -> Iterator[Occurrence]:
    """In a tool's name or description as they read; in its parameters and further keys as JSON."""
    for part in texts_of_tool(tool.schema, tool.extras):
        for at in _positions(part, text):
            stretch = Stretch(text, "literal", tool.origin, source=_source_of(tool.origin))
            yield Occurrence("tool", tool.name, *_line_and_column(part, at), (stretch,))


def texts_of_tool(tool: ToolSchema, extras: ToolExtras) -> tuple[str, ...]:
    """The texts of a tool, each of which is looked through: name, description, parameters and further keys as JSON."""
    parameters = tool_to_json(tool)["parameters"]
    told = [json.dumps(each, ensure_ascii=False) for each in ((parameters, extras) if extras else (parameters,))]
    return tool.name, tool.description, *told


def _in_message(number: int, message: RequestMessage, text: str) -> Iterator[Occurrence]:
    owner = message_owner(message)
    origin = UNKNOWN.__class__(owner)
    for part in texts_of(message):
        for at in _positions(part, text):
            line, column = _line_and_column(part, at)
            stretches = (Stretch(text, "literal", origin),)
            yield Occurrence("message", owner, line, column, stretches, number, message.seq)


def texts_of(message: RequestMessage) -> Iterator[str]:
    """The texts of a message, each of which is looked through."""
    yield message.message.text
    if isinstance(message.message, AssistantMessage):
        yield from (call.arguments for call in message.message.tool_calls)


def _line_and_column(whole: str, at: int) -> tuple[int, int]:
    return whole.count("\n", 0, at) + 1, at - (whole.rfind("\n", 0, at) + 1) + 1


def _source_of(origin: Origin) -> str | None:
    return None if origin.source is None else str(origin.source)


def _perhaps(subject: Subject) -> str:
    """What to say of what could not be looked through."""
    return f"; not in the log, so not looked through: {', '.join(subject.unstored)}" if subject.unstored else ""


def _nearly(subject: Subject, text: str) -> str:
    """What to say of a text that stands nowhere: whether it does in other letters, or over other blanks."""
    if not text:
        return "give at least one character of it"
    wholes = (subject.text, subject.snapshot, *(tool.schema.description for tool in subject.tools))
    if any(text.casefold() in whole.casefold() for whole in wholes):
        return "it stands there with other capitals; it is matched to the letter"
    words = " ".join(text.split())
    if words and any(words in " ".join(whole.split()) for whole in wholes):
        return "it stands there with other blanks or line breaks; it is matched to the letter"
    return "it is matched to the letter; why something is not there is told by its name, with --missing NAME"
