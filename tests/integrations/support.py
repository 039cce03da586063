"""Servers of three formats that answer by script, and agents of Pydantic AI that ask them, for tests of recorders."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import anthropic_events, recording_server
from tests.support.recording_server import Answer, RecordingServer, Request

from foreword.explain.steps import subjects
from foreword.integrations.rebuilding import rebuild_recorded
from foreword.session import Log, Rebuilt

JSON = {"content-type": "application/json"}

Calls = Sequence[tuple[str, str, str]]
"""Tool calls: id, name, arguments."""


@dataclass(frozen=True)
class Wire:
    """One format: how its server answers."""

    name: str
    whole: Callable[[str, Calls], Answer]
    stream: Callable[[str, Calls], Answer]
    failing: Callable[..., Answer]

    def answer(self, text: str = "", *calls: tuple[str, str, str], stream: bool) -> Answer:
        return self.stream(text, calls) if stream else self.whole(text, calls)


def _as_json(told: Mapping[str, Any]) -> Answer:
    return Answer(200, JSON, (json.dumps(told).encode(),))


# -- chat completions --------------------------------------------------------------------------------------------------

CHAT_USAGE = {
    "prompt_tokens": 1200,
    "completion_tokens": 3,
    "total_tokens": 1203,
    "prompt_tokens_details": {"cached_tokens": 1024, "audio_tokens": 0},
}


def _chat(text: str, calls: Calls) -> Answer:
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": given}}
            for call_id, name, given in calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    told = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return _as_json({**told, "usage": CHAT_USAGE})


def _chat_stream(text: str, calls: Calls) -> Answer:
    events = [recording_server.chunk({"role": "assistant", "content": ""})]
    if text:
        events.append(recording_server.text(text))
    for index, (call_id, name, given) in enumerate(calls):
        events.append(recording_server.call(index, given[:3], id=call_id, name=name))
        events.append(recording_server.call(index, given[3:]))
    events.append(recording_server.chunk(finish="tool_calls" if calls else "stop"))
    return recording_server.streaming(*events, recording_server.usage(1200, 3, 1024))


# -- responses ---------------------------------------------------------------------------------------------------------


def _response(text: str, calls: Calls) -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if text:
        part = {"type": "output_text", "text": text, "annotations": []}
        output.append({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]})
    for number, (call_id, name, given) in enumerate(calls):
        call = {"id": f"fc_{number}", "call_id": call_id, "name": name, "arguments": given, "status": "completed"}
        output.append({"type": "function_call", **call})
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 1200,
            "input_tokens_details": {"cached_tokens": 1024},
            "output_tokens": 3,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 1203,
        },
    }


def _responses(text: str, calls: Calls) -> Answer:
    return _as_json(_response(text, calls))


def _responses_stream(text: str, calls: Calls) -> Answer:
    whole = _response(text, calls)
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {**whole, "output": []}}]
    for index, item in enumerate(whole["output"]):
        begun = {**item, "content": []} if item["type"] == "message" else {**item, "arguments": ""}
        events.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        place = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            part = {"type": "output_text", "text": "", "annotations": []}
            events.append({"type": "response.content_part.added", **place, "content_index": 0, "part": part})
            delta = {"delta": text, "logprobs": []}
            events.append({"type": "response.output_text.delta", **place, "content_index": 0, **delta})
        else:
            events.append({"type": "response.function_call_arguments.delta", **place, "delta": item["arguments"]})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    told = [
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n".encode()
        for number, event in enumerate(events)
    ]
    return Answer(200, {"content-type": "text/event-stream"}, tuple(told))


# -- Anthropic's messages ----------------------------------------------------------------------------------------------


ANTHROPIC_USAGE = {"input_tokens": 176, "cache_read_input_tokens": 1024, "cache_creation_input_tokens": 0}


def _messages(text: str, calls: Calls) -> Answer:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": call_id, "name": name, "input": json.loads(given)} for call_id, name, given in calls
    ]
    told = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
    }
    return _as_json({**told, "usage": {**ANTHROPIC_USAGE, "output_tokens": 3}})


def _messages_stream(text: str, calls: Calls) -> Answer:
    said = anthropic_events
    events = [said.block(0, "text", text=""), said.text(text), said.end()] if text else []
    for index, (call_id, name, given) in enumerate(calls, 1 if text else 0):
        events += [said.call(index, call_id, name), said.arguments(index, given), said.end(index)]
    begin = said.start(**ANTHROPIC_USAGE, output_tokens=1)
    return said.streaming(begin, *events, said.stop("tool_use" if calls else "end_turn"))


CHAT = Wire("openai-chat", _chat, _chat_stream, recording_server.failing)
RESPONSES = Wire("openai-responses", _responses, _responses_stream, recording_server.failing)
MESSAGES = Wire("anthropic-messages", _messages, _messages_stream, anthropic_events.failing)
WIRES = (CHAT, RESPONSES, MESSAGES)

SOON = {"retry-after-ms": "1"}
"""Headers that have an SDK try again at once."""


def sent_by(server: RecordingServer) -> list[tuple[str, str, dict[str, str], bytes]]:
    """What a server got, without what differs between any two servers."""
    return [_sent(request) for request in server.requests]


def _sent(request: Request) -> tuple[str, str, dict[str, str], bytes]:
    headers = {name: value for name, value in request.headers.items() if name != "host"}
    return request.method, request.path, headers, request.body


# -- what the log holds ------------------------------------------------------------------------------------------------


async def rebuilt_in(log: Log) -> list[Rebuilt]:
    """Every attempt of every session, made again, in the order of the sessions."""
    found: list[Rebuilt] = []
    for session in await log.sessions():
        addresses = [str(subject.location) async for subject in await subjects(log, session.id)]
        found += [await rebuild_recorded(log, address) for address in addresses]
    return found


def foreword(*arguments: str, folder: Path) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "foreword", *arguments],
        capture_output=True,
        encoding="utf-8",
        cwd=folder,
        check=False,
        env={"PATH": "", "COLUMNS": "120"},
        timeout=120,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout + done.stderr


def stored_in(folder: Path) -> bytes:
    """All bytes of the files in a folder."""
    return b"".join(file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file())
