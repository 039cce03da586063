"""What a server of Anthropic's messages says, for a `RecordingServer`.

with RecordingServer(said("It is late."), failing(529, "overloaded_error")) as server:
    adapter = AnthropicAdapter(base_url=server.root, api_key="…")
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from threading import Event
from typing import Any, Literal

from tests.support.recording_server import Answer

USAGE = {"input_tokens": 12, "output_tokens": 1}


def start(**usage: Any) -> dict[str, Any]:
    """The beginning of an answer, with what its request cost."""
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage or USAGE,
    }
    return {"type": "message_start", "message": message}


def block(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    """The beginning of a block."""
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}}


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    """A piece of a block."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def text(piece: str, index: int = 0) -> dict[str, Any]:
    return delta(index, "text_delta", text=piece)


def call(index: int, id: str, name: str, input: Any = None) -> dict[str, Any]:
    """The beginning of a tool call."""
    return block(index, "tool_use", id=id, name=name, input={} if input is None else input)


def arguments(index: int, piece: str) -> dict[str, Any]:
    """A piece of the arguments of a tool call."""
    return delta(index, "input_json_delta", partial_json=piece)


def end(index: int = 0) -> dict[str, Any]:
    """The end of a block."""
    return {"type": "content_block_stop", "index": index}


def stop(reason: str | None = "end_turn", output: int | None = 3, **more: Any) -> dict[str, Any]:
    """How an answer ended."""
    told = {} if output is None else {"output_tokens": output}
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None, **more}, "usage": told}


def error(kind: str, message: str = "It did not work.") -> dict[str, Any]:
    """A failure in the midst of a stream."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def encoded(event: Mapping[str, Any] | bytes | Event) -> bytes | Event:
    """An event as it goes over the wire; bytes go as they are."""
    if isinstance(event, bytes | Event):
        return event
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def streaming(
    *events: Mapping[str, Any] | bytes | Event,
    done: bool = True,
    finish: Literal["whole", "cut", "silent"] = "whole",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """An answer that comes as a stream of events."""
    pieces = [encoded(event) for event in (*events, *(({"type": "message_stop"},) if done else ()))]
    return Answer(200, {"content-type": "text/event-stream; charset=utf-8", **(headers or {})}, tuple(pieces), finish)


def said(words: str, reason: str = "end_turn") -> Answer:
    """A whole answer, with its usage."""
    return streaming(start(), block(0, "text", text=""), {"type": "ping"}, text(words), end(), stop(reason))


def calling(*calls: tuple[str, str, str], words: str = "") -> Answer:
    """A whole answer that calls tools: id, name and arguments of each."""
    events = [block(0, "text", text=""), text(words), end()] if words else []
    for index, (call_id, name, given) in enumerate(calls, len(events) and 1):
        half = len(given) // 2
        events += [
            call(index, call_id, name),
            arguments(index, given[:half]),
            arguments(index, given[half:]),
            end(index),
        ]
    return streaming(start(), *events, stop("tool_use"))


def failing(
    status: int, kind: str = "api_error", message: str = "It did not work.", *, headers: Mapping[str, str] | None = None
) -> Answer:
    """An answer with a failure, as the format has it."""
    told = {**error(kind, message), "request_id": "req_1"}
    return Answer(status, {"content-type": "application/json", **(headers or {})}, (json.dumps(told).encode(),))
