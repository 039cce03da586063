"""What the readers of streams share: fields of events, checked as they are read, and tool calls that come in pieces.

The pieces of an answer are JSON from somebody else's server. Whatever is not as its format says is a
`MalformedAnswerError`, never a guess.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from foreword.jsonvalue import MAX_INTEGER
from foreword.wire.chunks import Finish, ModelFailure, ToolCallChunk, Usage
from foreword.wire.surrogates import Joiner, joined

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CallInPieces",
    "MalformedAnswerError",
    "failed",
    "number_of",
    "object_of",
    "objects_of",
    "text_of",
    "word_of",
]

_LONGEST_SHOWN = 500  # characters of what a provider says that go into a failure


class MalformedAnswerError(ValueError):
    """The answer is not in the format; the message says where. Adapters turn it into a `Finish`."""


@dataclass(slots=True)
class CallInPieces:
    """A tool call that is being told."""

    index: int
    id: str
    name: str
    arguments: Joiner = field(default_factory=Joiner)

    def chunk(self, arguments: str) -> ToolCallChunk:
        """A further piece of it."""
        return ToolCallChunk(self.index, self.id, self.name, arguments)


def failed(code: str, message: str, usage: Usage | None, reason: str, *, transient: bool = False) -> Finish:
    """The end of an answer that is a failure, though the transport did its work."""
    return Finish("error", usage, ModelFailure(joined(message[:_LONGEST_SHOWN]), code, transient=transient), reason)


def number_of(value: object) -> int | None:
    """A number of tokens, as the log can keep it; None if it is none: that alone spoils no answer."""
    return value if type(value) is int and 0 <= value <= MAX_INTEGER else None


def object_of(value: object, what: str) -> Mapping[str, Any]:
    """A JSON object.

    Raises:
        MalformedAnswerError: it is none; so do the other functions.
    """
    if not isinstance(value, dict):
        raise MalformedAnswerError(f"{what} is no JSON object")
    return cast("dict[str, Any]", value)


def objects_of(value: object, what: str) -> list[Mapping[str, Any]]:
    """A list of JSON objects; empty for null."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise MalformedAnswerError(f"{what} is no list")
    return [object_of(each, f"one of {what}") for each in cast("list[object]", value)]


def text_of(value: object, what: str) -> str:
    """A piece of a text, maybe with half of a character at its ends; empty for null."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise MalformedAnswerError(f"{what} is no text")
    return value


def word_of(value: object, what: str) -> str:
    """A text that comes whole; empty for null."""
    return joined(text_of(value, what))
