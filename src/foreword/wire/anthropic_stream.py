"""The answer in Anthropic's messages format: the events of a stream become neutral chunks.

Pure: no SDK, no network. Events, blocks and pieces of kinds that are not known here are passed over, as the format asks
of its readers: a model's thoughts are among them. In those that are known, what cannot be understood is a
`MalformedAnswerError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from foreword.wire.answer import CallInPieces, MalformedAnswerError, failed, number_of, object_of, text_of, word_of
from foreword.wire.chunks import Chunk, Finish, TextChunk, Usage
from foreword.wire.request import canonical_json
from foreword.wire.surrogates import Joiner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.wire.chunks import FinishKind
    from foreword.wire.profiles import MessagesProfile

__all__ = ["AnswerReader", "MalformedAnswerError"]

_ENDINGS: dict[str, FinishKind] = {"stop": "stop", "tool-calls": "tool-calls", "max-tokens": "max-tokens"}
_INPUT, _READ, _WRITTEN = "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"
_OUTPUT = "output_tokens"


class AnswerReader:
    """Reads one answer: `read` for each event of the stream, then `finish` when the stream is over."""

    def __init__(self, profile: MessagesProfile) -> None:
        self._reasons = profile.finish_reasons
        self._calls: dict[int, CallInPieces] = {}  # by the index of the block
        self._given: dict[int, str] = {}  # arguments that a block began with, until a piece of them comes
        self._passed_over: set[int] = set()  # indexes of blocks that are no text and no call of ours
        self._text = Joiner()
        self._reason = ""
        self._explanation = ""
        self._counts: dict[str, int] = {}

    def read(self, event: object) -> list[Chunk]:
        """The chunks that an event brings; often one, sometimes none.

        Args:
            event: a JSON value, as the server sent it.

        Raises:
            MalformedAnswerError: it is not in the format.
        """
        told = object_of(event, "an event")
        match told.get("type"):
            case "message_start":
                self._count(object_of(told.get("message"), "message").get("usage"))
                return []
            case "content_block_start":
                return list(self._begin(_index(told), object_of(told.get("content_block"), "content_block")))
            case "content_block_delta":
                return list(self._go_on(_index(told), object_of(told.get("delta"), "delta")))
            case "content_block_stop":
                return list(self._end(_index(told)))
            case "message_delta":
                self._count(told.get("usage"))
                return list(self._stop(object_of(told.get("delta"), "delta")))
            case _:
                return []

    @property
    def is_complete(self) -> bool:
        """Whether the provider has said how the answer ended."""
        return bool(self._reason)

    @property
    def usage(self) -> Usage | None:
        """What the answer cost so far; None until the provider has said so."""
        counts = self._counts
        if _INPUT not in counts or _OUTPUT not in counts:
            return None
        # Of the input, the provider counts apart what it read from its cache and what it wrote there.
        given = number_of(sum(counts.get(name, 0) for name in (_INPUT, _READ, _WRITTEN)))
        return None if given is None else Usage(given, counts[_OUTPUT], counts.get(_READ), counts.get(_WRITTEN))

    def finish(self) -> Finish:
        """How the answer ended, once the stream is over."""
        raw = self._reason
        word = self._reasons.get(raw)
        if not raw:
            return self._failed("stream_cut", "the stream ended in the middle of the answer", transient=True)
        if word == "refusal":
            return self._failed("refusal", f"the model refuses{f': {self._explanation}' if self._explanation else ''}")
        if word not in _ENDINGS:
            return self._failed("malformed_response", f'the answer ended for a reason that is not known: "{raw}"')
        if word == "tool-calls" and not self._calls:
            return self._failed("malformed_response", "the answer ended in tool calls, but holds none", transient=True)
        kind = "tool-calls" if word == "stop" and self._calls else _ENDINGS[word]
        return Finish(kind, self.usage, raw_reason=raw)

    def _failed(self, code: str, message: str, *, transient: bool = False) -> Finish:
        return failed(code, message, self.usage, self._reason, transient=transient)

    def _begin(self, index: int, block: Mapping[str, Any]) -> Iterator[Chunk]:
        self._passed_over.discard(index)
        if block.get("type") == "text":
            yield from self._say(block.get("text"))
        elif block.get("type") == "tool_use":
            call_id, name = word_of(block.get("id"), "id"), word_of(block.get("name"), "name")
            if not call_id or not name:
                raise MalformedAnswerError("a tool call begins without an id or without a name")
            if index in self._calls:
                raise MalformedAnswerError("two tool calls have the same index")
            call = self._calls[index] = CallInPieces(len(self._calls), call_id, name)
            self._given[index] = _json(object_of(block.get("input") or {}, "input"))
            yield call.chunk("")
        else:
            self._passed_over.add(index)

    def _go_on(self, index: int, delta: Mapping[str, Any]) -> Iterator[Chunk]:
        if delta.get("type") == "text_delta":
            yield from self._say(delta.get("text"))
        elif delta.get("type") == "input_json_delta" and index not in self._passed_over:
            piece = text_of(delta.get("partial_json"), "partial_json")
            call = self._calls.get(index)
            if call is None:
                if piece:
                    raise MalformedAnswerError("arguments come for a tool call that has not begun")
                return
            if piece:
                self._given.pop(index, None)
                yield call.chunk(call.arguments.add(piece))

    def _end(self, index: int) -> Iterator[Chunk]:
        """The rest of a block; of a call without any piece of arguments, those that it began with."""
        call = self._calls.get(index)
        if call is not None:
            rest = self._given.pop(index, "") + call.arguments.rest()
            if rest:
                yield call.chunk(rest)

    def _say(self, piece: object) -> Iterator[Chunk]:
        text = self._text.add(text_of(piece, "text"))
        if text:
            yield TextChunk(text)

    def _stop(self, delta: Mapping[str, Any]) -> Iterator[Chunk]:
        reason = word_of(delta.get("stop_reason"), "stop_reason")
        if not reason:
            return
        self._reason = reason
        details = delta.get("stop_details")
        if isinstance(details, dict):
            explanation = cast("dict[str, object]", details).get("explanation")
            self._explanation = explanation if isinstance(explanation, str) else ""
        rest = self._text.rest()
        if rest:
            yield TextChunk(rest)
        for index in list(self._calls):
            yield from self._end(index)

    def _count(self, told: object) -> None:
        """Note what an event says of the cost; the later one counts. Unreadable, it spoils no answer."""
        if not isinstance(told, Mapping):
            return
        for name in (_INPUT, _READ, _WRITTEN, _OUTPUT):
            number = number_of(cast("Mapping[str, object]", told).get(name))
            if number is not None:
                self._counts[name] = number


def _index(event: Mapping[str, Any]) -> int:
    index = event.get("index")
    if type(index) is not int:
        raise MalformedAnswerError("the index of a block is no number")
    return index


def _json(value: Mapping[str, Any]) -> str:
    try:
        return canonical_json(value).decode()
    except (ValueError, RecursionError) as fault:
        raise MalformedAnswerError(f"the input of a tool call is no JSON: {fault}") from None
