"""The answer in OpenAI's chat-completions format: the events of a stream become neutral chunks.

Pure: no SDK, no network. Servers differ in small things (a tool call's index left out, its name repeated in each piece,
usage beside the last choice, the message as a whole in place of its pieces or after them); what is unambiguous is read,
and all else is a `MalformedAnswerError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from foreword.wire.answer import (
    CallInPieces,
    MalformedAnswerError,
    failed,
    number_of,
    object_of,
    objects_of,
    text_of,
    word_of,
)
from foreword.wire.chunks import Chunk, Finish, TextChunk, ToolCallChunk, Usage
from foreword.wire.surrogates import Joiner

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from foreword.wire.chunks import FinishKind
    from foreword.wire.profiles import ChatProfile

__all__ = ["AnswerReader", "MalformedAnswerError"]

_ENDINGS: dict[str, FinishKind] = {"stop": "stop", "tool-calls": "tool-calls", "max-tokens": "max-tokens"}
_SAYING = ("content", "refusal", "tool_calls")  # what of a message is read


class AnswerReader:
    """Reads one answer: `read` for each event of the stream, then `finish` when the stream is over.

    Attributes:
        usage: what the answer cost, as soon as the provider has said so.
    """

    def __init__(self, profile: ChatProfile) -> None:
        self._reasons = profile.finish_reasons
        self._calls: list[CallInPieces] = []
        self._by_index: dict[int | None, CallInPieces] = {}  # None for the last one
        self._told: Literal["nothing", "pieces", "whole"] = "nothing"
        self._text = Joiner()
        self._refusal = ""
        self._reason = ""
        self.usage: Usage | None = None

    def read(self, event: object) -> list[Chunk]:
        """The chunks that an event brings; often one, sometimes none.

        Args:
            event: a JSON value, as the server sent it.

        Raises:
            MalformedAnswerError: it is not in the format.
        """
        told = object_of(event, "an event")
        self.usage = _usage(told.get("usage")) or self.usage
        choices = objects_of(told.get("choices"), "choices")
        return [chunk for choice in choices if choice.get("index") in (0, None) for chunk in self._choice(choice)]

    @property
    def is_complete(self) -> bool:
        """Whether the provider has said how the answer ended; only its usage may still come."""
        return bool(self._reason)

    def finish(self) -> Finish:
        """How the answer ended, once the stream is over."""
        raw = self._reason
        word = self._reasons.get(raw)
        if not raw:
            return self._failed("stream_cut", "the stream ended in the middle of the answer", transient=True)
        if self._refusal:
            return self._failed("refusal", f"the model refuses: {self._refusal}")
        if word == "content_filter":
            return self._failed("content_filter", "the provider's content filter cut the answer off")
        if word == "overloaded":
            return self._failed("overloaded", f"the provider gave up the answer: {raw}", transient=True)
        if word is None:
            return self._failed("malformed_response", f'the answer ended for a reason that is not known: "{raw}"')
        if word == "tool-calls" and not self._calls:
            return self._failed("malformed_response", "the answer ended in tool calls, but holds none", transient=True)
        # A forced tool call ends in "stop", and some servers always say so: what counts is that there are calls.
        kind = "tool-calls" if word == "stop" and self._calls else _ENDINGS[word]
        return Finish(kind, self.usage, raw_reason=raw)

    def _failed(self, code: str, message: str, *, transient: bool = False) -> Finish:
        return failed(code, message, self.usage, self._reason, transient=transient)

    def _choice(self, choice: Mapping[str, Any]) -> Iterator[Chunk]:
        delta = self._delta(choice)
        text = self._text.add(text_of(delta.get("content"), "content"))
        if text:
            yield TextChunk(text)
        self._refusal += text_of(delta.get("refusal"), "refusal")
        for piece in objects_of(delta.get("tool_calls"), "tool_calls"):
            yield self._piece(piece)
        reason = word_of(choice.get("finish_reason"), "finish_reason")
        if reason:
            self._reason = reason
            yield from self._rest()

    def _delta(self, choice: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a choice adds: a piece of the message; or the message, where no piece of it has come."""
        piece = choice.get("delta")
        is_whole = not piece and bool(choice.get("message"))
        delta = object_of(choice["message"], "message") if is_whole else object_of(piece or {}, "delta")
        if not any(delta.get(name) for name in _SAYING):
            return delta
        if is_whole and self._told == "pieces":  # some servers repeat at the end, as a whole, what came in pieces
            return {}
        if self._told == "whole":
            raise MalformedAnswerError("there is more of a message that has come as a whole")
        self._told = "whole" if is_whole else "pieces"
        return delta

    def _piece(self, piece: Mapping[str, Any]) -> ToolCallChunk:
        function = object_of(piece.get("function") or {}, "function")
        call = self._call_of(piece.get("index"), word_of(piece.get("id"), "id"), word_of(function.get("name"), "name"))
        return call.chunk(call.arguments.add(text_of(function.get("arguments"), "arguments")))

    def _call_of(self, index: object, call_id: str, name: str) -> CallInPieces:
        """The call that a piece belongs to: that of its index, or the last one; unless it brings another id."""
        if not isinstance(index, int | None):
            raise MalformedAnswerError("the index of a tool call is no number")
        known = self._by_index.get(index)
        if known is not None and call_id in ("", known.id):
            return known
        if not call_id or not name:
            raise MalformedAnswerError("a tool call begins without an id or without a name")
        call = CallInPieces(len(self._calls), call_id, name)
        self._calls.append(call)
        self._by_index[index] = self._by_index[None] = call
        return call

    def _rest(self) -> Iterator[Chunk]:
        """The halves of characters whose other halves never came."""
        rest = self._text.rest()
        if rest:
            yield TextChunk(rest)
        for call in self._calls:
            rest = call.arguments.rest()
            if rest:
                yield call.chunk(rest)


def _usage(told: object) -> Usage | None:
    """What an answer cost; None if it is not said, or not in numbers: that alone spoils no answer."""
    if not isinstance(told, dict):
        return None
    fields = cast("dict[str, Any]", told)
    given, made = number_of(fields.get("prompt_tokens")), number_of(fields.get("completion_tokens"))
    if given is None or made is None:
        return None
    details = fields.get("prompt_tokens_details")
    cached = cast("dict[str, Any]", details).get("cached_tokens") if isinstance(details, dict) else None
    if cached is None:
        cached = fields.get("prompt_cache_hit_tokens")  # DeepSeek's name for it
    return Usage(given, made, number_of(cached))
