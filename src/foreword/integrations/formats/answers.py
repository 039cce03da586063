"""Answers, whole or as the events of a stream: what the model said, how it ended, what it cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from foreword.wire import anthropic_stream, openai_chat_stream
from foreword.wire.answer import MalformedAnswerError, failed, number_of
from foreword.wire.chunks import Finish, TextChunk, ToolCallChunk, Usage
from foreword.wire.messages import AssistantMessage, ToolCall
from foreword.wire.profiles import ANTHROPIC, OPENAI
from foreword.wire.request import canonical_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from foreword.wire.chunks import Chunk

__all__ = ["Answer", "events_of", "of_chat", "of_messages", "of_responses"]

Events = list[Mapping[str, Any]]


class Answer(NamedTuple):
    """What a model answered."""

    message: AssistantMessage
    finish: Finish


class _Reader(Protocol):
    def read(self, event: object) -> list[Chunk]: ...

    def finish(self) -> Finish: ...


def events_of(content: bytes) -> Events:
    """The JSON events of a stream of server-sent events; what is no JSON object is passed over."""
    found: Events = []
    for block in content.replace(b"\r\n", b"\n").split(b"\n\n"):
        lines = (line for line in block.split(b"\n") if line.startswith(b"data:"))
        data = b"\n".join(line.removeprefix(b"data:").strip() for line in lines)
        if data.startswith(b"{"):
            found.append(json.loads(data))
    return found


def of_chat(events: Events, is_stream: bool) -> Answer:
    """An answer in the format of chat completions."""
    if not is_stream:
        events = [_as_chunk(answer) for answer in events]
    return _read(openai_chat_stream.AnswerReader(OPENAI), events)


def of_messages(events: Events, is_stream: bool) -> Answer:
    """An answer in Anthropic's format."""
    if not is_stream:
        events = [event for answer in events for event in _as_events(answer)]
    message, finish = _read(anthropic_stream.AnswerReader(ANTHROPIC), events)
    calls = tuple(ToolCall(call.id, call.name, _tidy(call.arguments)) for call in message.tool_calls)
    return Answer(AssistantMessage(message.text, calls), finish)


def of_responses(events: Events, is_stream: bool) -> Answer:
    """An answer in the format of responses."""
    ends = ("response.completed", "response.incomplete", "response.failed")
    told = [event["response"] for event in events if event.get("type") in ends] if is_stream else events
    if not told:
        return Answer(AssistantMessage(""), failed("stream_cut", "the stream ended in the middle", None, ""))
    whole = told[-1]
    texts: list[str] = []
    calls: list[ToolCall] = []
    for item in whole.get("output", ()):
        if item.get("type") == "message":
            texts += (part.get("text", "") for part in item.get("content", ()) if part.get("type") == "output_text")
        elif item.get("type") == "function_call":
            calls.append(ToolCall(item["call_id"], item["name"], item["arguments"]))
    return Answer(AssistantMessage("".join(texts), tuple(calls)), _end_of_response(whole, has_calls=bool(calls)))


def _end_of_response(whole: Mapping[str, Any], *, has_calls: bool) -> Finish:
    usage, status = _usage_of_response(whole.get("usage")), str(whole.get("status", ""))
    if status == "failed":
        error: Mapping[str, Any] = whole.get("error") or {}
        return failed("server_error", str(error.get("message", "the response failed")), usage, status)
    if status == "incomplete":
        return Finish("max-tokens", usage, raw_reason=status)
    return Finish("tool-calls" if has_calls else "stop", usage, raw_reason=status)


def _usage_of_response(told: Any) -> Usage | None:
    if not isinstance(told, dict):
        return None
    fields = cast("dict[str, Any]", told)
    given, made = number_of(fields.get("input_tokens")), number_of(fields.get("output_tokens"))
    details: Any = fields.get("input_tokens_details")
    cached = cast("dict[str, Any]", details).get("cached_tokens") if isinstance(details, dict) else None
    return None if given is None or made is None else Usage(given, made, number_of(cached))


# -- by the readers of `foreword.wire` ---------------------------------------------------------------------------------


def _read(reader: _Reader, events: Iterable[Mapping[str, Any]]) -> Answer:
    texts: list[str] = []
    calls: dict[int, ToolCall] = {}
    try:
        for event in events:
            for chunk in reader.read(event):
                if isinstance(chunk, TextChunk):
                    texts.append(chunk.text)
                elif isinstance(chunk, ToolCallChunk):
                    before = calls[chunk.index].arguments if chunk.index in calls else ""
                    calls[chunk.index] = ToolCall(chunk.id, chunk.name, before + chunk.arguments)
        finish = reader.finish()
    except MalformedAnswerError as fault:
        finish = failed("malformed_response", str(fault), None, "")
    return Answer(AssistantMessage("".join(texts), tuple(calls[index] for index in sorted(calls))), finish)


def _as_chunk(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """A whole answer as the one event of a stream."""
    choices = [{**choice, "delta": choice.get("message")} for choice in answer.get("choices") or ()]
    return {**answer, "choices": choices}


def _as_events(answer: Mapping[str, Any]) -> Events:
    """A whole message as the events of a stream."""
    found: Events = [{"type": "message_start", "message": {"usage": answer.get("usage")}}]
    for index, block in enumerate(answer.get("content") or ()):
        found.append({"type": "content_block_start", "index": index, "content_block": block})
        found.append({"type": "content_block_stop", "index": index})
    ended = {"stop_reason": answer.get("stop_reason"), "stop_details": answer.get("stop_details")}
    return [*found, {"type": "message_delta", "delta": ended, "usage": answer.get("usage")}]


def _tidy(arguments: str) -> str:
    """Arguments as the next request has them: there they are no text but a value."""
    try:
        return canonical_json(json.loads(arguments or "{}")).decode()
    except ValueError:
        return arguments
