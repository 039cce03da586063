"""The shape of a body: the JSON that was sent, with everything cut out that the log keeps elsewhere.

A request's texts, tools and settings stand in its header and its history, once. What is left of the body are brackets,
roles and cache marks; with this shape and the rebuilt request the bytes can be made again, and no text is kept twice,
so an erasure leaves none behind.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from foreword.integrations.spelled import spelled, unspelled
from foreword.jsonvalue import thaw
from foreword.wire.messages import AssistantMessage, ToolMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from foreword.wire.messages import Message
    from foreword.wire.request import ModelRequest

__all__ = ["SHAPE", "RecordedBody", "Shape", "leaves", "left_in", "mark"]

SHAPE: Final = "recorder/shape"
"""The name of the note that holds the shape of the body that is sent next."""

_MARK: Final = "\0"  # the key of what was cut out; a body that has such a key itself is told by its digest alone

_STYLES: Final[Mapping[str, Callable[[Any], str]]] = {
    "compact": partial(json.dumps, ensure_ascii=False, separators=(",", ":")),
    "ascii": partial(json.dumps, separators=(",", ":")),
    "plain": json.dumps,
}
"""How bodies are written: with blanks or without, in ASCII or not."""


def mark(*what: Any) -> dict[str, Any]:
    """What stands in a shape for something that was cut out."""
    return {_MARK: list(what)}


def left_in(template: Mapping[str, Any]) -> dict[str, Any]:
    """What of the template of an object was not cut out; what is left of an object in it counts as its own."""
    found: dict[str, Any] = {}
    for key, value in () if _MARK in template else template.items():
        if _is_cut(value):
            found |= {f"{key}.{name}" if name in template else name: each for name, each in left_in(value).items()}
        else:
            found[key] = value
    return found


def _is_cut(value: Any) -> bool:
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return _MARK in fields or any(map(_is_cut, fields.values()))


def leaves(messages: Iterable[Message]) -> list[str]:
    """The texts of a history, in order: what marks of messages count."""
    found: list[str] = []
    for message in messages:
        match message:
            case AssistantMessage(text, calls):
                found.append(text)
                for call in calls:
                    found += (call.id, call.name, call.arguments)
            case ToolMessage(call_id=call_id, text=text):
                found += (call_id, text)
            case _:
                found.append(message.text)
    return found


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of one body.

    Attributes:
        head: what bodies of a session have in common: ``body``, a template; ``kinds``, the templates of messages, each
            with the number of texts in it; ``style``. As a log can hold it, see `spelled`.
        items: which of the kinds follow each other, as pairs of a kind and how often.
        start: how many texts of the history come before the first of these messages.
    """

    head: Mapping[str, Any]
    items: tuple[tuple[int, int], ...]
    start: int = 0

    @classmethod
    def of(cls, body: Mapping[str, Any], items: Sequence[tuple[Any, int]]) -> Shape:
        """The shape of a template and of the templates of its messages."""
        kinds: dict[str, int] = {}
        known: list[list[Any]] = []
        rows: list[tuple[int, int]] = []
        for template, size in items:
            key = json.dumps([template, size])
            if key not in kinds:
                kinds[key] = len(known)
                known.append([spelled(template), size])
            kind = kinds[key]
            if rows and rows[-1][0] == kind:
                rows[-1] = kind, rows[-1][1] + 1
            else:
                rows.append((kind, 1))
        return cls({"body": spelled(body), "kinds": known}, tuple(rows))

    def fitting(self, request: ModelRequest, content: bytes) -> Shape | None:
        """This shape with the style of a body; None if the body is not what comes out of it."""
        filled = _Filling(request, self).body()
        for style, written in _STYLES.items():
            if written(filled).encode() == content:
                return Shape({**self.head, "style": style}, self.items, self.start)
        return None

    def to_json(self, last: Shape | None) -> dict[str, Any]:
        """The shape for the log, without what it has in common with the one before."""
        if last is None or json.dumps(last.head) != json.dumps(self.head):  # equal dicts may differ in their order
            return {"head": self.head, "items": _rows(self.items), "start": self.start}
        pairs = enumerate(zip(self.items, last.items, strict=False))
        same = next((at for at, (mine, its) in pairs if mine != its), min(len(self.items), len(last.items)))
        return {"keep": same, "items": _rows(self.items[same:]), "start": self.start}

    @classmethod
    def from_json(cls, told: Mapping[str, Any], last: Shape | None) -> Shape | None:
        """A shape from the log, given the one before; None if that is needed and not there."""
        items = tuple((kind, count) for kind, count in told["items"])
        if "head" in told:
            return cls(thaw(told["head"]), items, told["start"])
        return None if last is None else cls(last.head, last.items[: told["keep"]] + items, told["start"])


@dataclass(frozen=True, slots=True)
class RecordedBody:
    """Makes a recorded body again: what `foreword.session.rebuild` takes as an adapter."""

    name: str
    version: str
    shape: Shape

    def body(self, request: ModelRequest) -> bytes:
        """The bytes that were sent."""
        return _STYLES[self.shape.head["style"]](_Filling(request, self.shape).body()).encode()


def _rows(items: Sequence[tuple[int, int]]) -> list[list[int]]:
    return [list(row) for row in items]


def _members(template: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", template)


class _Filling:
    """A shape that is being filled with what a request holds."""

    def __init__(self, request: ModelRequest, shape: Shape) -> None:
        self._request, self._shape = request, shape
        self._leaves = leaves(request.messages)
        self._settings: dict[str, Any] = unspelled(dict(request.config.settings))
        self._kinds: list[tuple[Any, int]] = [(unspelled(kind), size) for kind, size in shape.head["kinds"]]
        self._parsed: dict[int, Any] = {}

    def body(self) -> Any:
        return self._fill(unspelled(self._shape.head["body"]), self._shape.start)

    def _fill(self, template: Any, base: int) -> Any:
        if isinstance(template, dict):
            fields = cast("dict[str, Any]", template)
            if len(fields) == 1 and _MARK in fields:
                return self._cut_out(fields[_MARK], base)
            return {key: self._fill(value, base) for key, value in fields.items()}
        if isinstance(template, list):
            return [self._fill(value, base) for value in _members(template)]
        return template

    def _cut_out(self, what: list[Any], base: int) -> Any:
        kind, place = what[0], what[1:]
        match kind:
            case "model":
                return self._request.config.model
            case "setting":
                return self._settings[place[0]]
            case "system":
                return self._request.system[place[0] : place[1]]
            case "tool":
                number: int = place[0]
                tool = self._request.tools[number]
                return unspelled(dict(tool.parameters)) if place[1] == "parameters" else getattr(tool, place[1])
            case "items":
                return self._items(base)
            case "json":
                return self._json(base + place[0], place[1:])
            case _:
                number = place[0]
                text = self._leaves[base + number]
                return text[place[1] : place[2]] if len(place) == 3 else text

    def _json(self, at: int, rest: list[Any]) -> Any:
        """A text that stands for a value, or for a list of which one is meant, with what was taken out of it."""
        if at not in self._parsed:
            self._parsed[at] = json.loads(self._leaves[at])
        value = self._parsed[at]
        if not rest:
            return value
        return {**value[rest[0]], **rest[1]} if len(rest) > 1 else value[rest[0]]

    def _items(self, base: int) -> list[Any]:
        found: list[Any] = []
        for kind, count in self._shape.items:
            template, size = self._kinds[kind]
            for _ in range(count):
                found.append(self._fill(template, base))
                base += size
        return found
