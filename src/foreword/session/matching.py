"""Finding a text in what a log stores: in the contents of blobs, and in envelopes, which nothing can be taken out of.

A text may stand there as it is, or as JSON spells it, or as JSON within JSON does (the arguments of a tool call within
a message). What only names a field of ours is no content, so "user" is not found in each message of a user.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from foreword.session.records import CONTENTS
from foreword.session.store.contract import EventRow
from foreword.session.told import TRACE_FIELDS

__all__ = ["Needle", "Remains"]

_DEPTH: Final = 3
"""How many times a text may be spelled in JSON within JSON."""

_FIELDS: Final = TRACE_FIELDS.union(name for shape in CONTENTS for name in shape.__struct_fields__)
"""Names of fields in the contents that we write as JSON: what stands behind them is content, they are not."""

_BESIDE: Final = frozenset(("reason", "finish", "role", "header", "history", "request", "blobs", "drift", "version"))
"""Fields of envelopes that hold words or digests of ours."""


@dataclass(frozen=True, slots=True)
class Remains:
    """A place where a text stands in an envelope: the name of a tool or a folder, say. It cannot be taken out."""

    session: str
    seq: int


class Needle:
    """A text that is looked for.

    Args:
        text: not empty.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.spellings = tuple(dict.fromkeys(_spellings(text)))
        self._bytes = tuple(spelling.encode() for spelling in self.spellings)

    @property
    def candidates(self) -> tuple[bytes, ...]:
        """Bytes of which a content holds some if it holds the text."""
        return self._bytes

    def is_in(self, body: bytes, kind: str | None) -> bool:
        """Whether a content holds the text.

        Args:
            body: the content.
            kind: what it is, if it stands in a tree: ``"section"``, ``"tool"``, ``"config"`` or ``"trace"``.
        """
        if not any(spelling in body for spelling in self._bytes):
            return False
        if kind == "section" or body[:1] not in (b"{", b"["):
            return True
        try:
            told = msgspec.json.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return True  # no JSON, so a text that begins like some
        if kind is None:
            if not (isinstance(told, dict) and "role" in told):
                return True  # somebody's own JSON, or a text: no message
            del told["role"]
        return any(self._is_in_text(text) for text in _walk(told))

    def is_in_envelope(self, row: EventRow) -> bool:
        """Whether the text stands in what an envelope says besides references."""
        if not any(spelling in row.envelope for spelling in self._bytes):
            return False
        envelope: dict[str, Any] = msgspec.json.decode(row.envelope)
        data = {name: value for name, value in envelope["data"].items() if name not in _BESIDE}
        labels = [role for role in envelope["refs"] if role.startswith("label/")]
        return any(self._is_in_text(text) for text in (*_strings(data), *labels))

    def _is_in_text(self, text: str) -> bool:
        return any(spelling in text for spelling in self.spellings)


def _spellings(text: str) -> Iterator[str]:
    """The text, and what becomes of it in JSON strings, in JSON strings in those, and so on."""
    spelled = {text}
    for _ in range(_DEPTH):
        yield from sorted(spelled)
        spelled = {each for one in spelled for each in _in_json(one)}
    yield from sorted(spelled)


def _in_json(text: str) -> Iterable[str]:
    """How a text may be spelled in a JSON string."""
    ascii_only = json.dumps(text)[1:-1]
    for spelled in (json.dumps(text, ensure_ascii=False)[1:-1], ascii_only, _upper(ascii_only)):
        yield spelled
        yield spelled.replace("/", "\\/")


def _upper(escaped: str) -> str:
    """The same with hexadecimal digits in capitals."""
    head, *rest = escaped.split("\\u")
    return head + "".join(f"\\u{each[:4].upper()}{each[4:]}" for each in rest)


def _walk(value: Any) -> Iterator[str]:
    """All that a content says, without the names of our fields."""
    match value:
        case dict():
            for name, inner in value.items():  # pyright: ignore[reportUnknownVariableType]
                if name not in _FIELDS:
                    yield str(name)  # pyright: ignore[reportUnknownArgumentType]
                yield from _walk(inner)
        case list():
            for inner in value:  # pyright: ignore[reportUnknownVariableType]
                yield from _walk(inner)
        case str():
            yield value
        case _:
            yield json.dumps(value)


def _strings(value: Any) -> Iterator[str]:
    """The strings in a value, without names of fields and without numbers."""
    match value:
        case dict():
            yield from (each for inner in value.values() for each in _strings(inner))  # pyright: ignore[reportUnknownVariableType]
        case list():
            yield from (each for inner in value for each in _strings(inner))  # pyright: ignore[reportUnknownVariableType]
        case str():
            yield value
        case _:
            return
