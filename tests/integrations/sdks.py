"""The vendors' SDKs as their users call them: each of the three formats, sync and async, whole and streaming."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import anthropic
import openai
from tests.integrations.support import CHAT, MESSAGES, RESPONSES, Wire
from tests.support.recording_server import RecordingServer

RULES = "You are the clerk of a bookshop. " + "Be brief. " * 600
CLOCK = "It is 10:{}."
PARAMETERS = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
CALL = ("c1", "find", '{"title":"Emma"}')
ASKED, ANSWERED, SAID = "Where is Emma?", "Emma is on shelf 4", "I look."


@dataclass(frozen=True)
class Sdk:
    """One way to ask: a format, by a sync or an async client."""

    wire: Wire
    is_async: bool

    def __str__(self) -> str:
        return f"{self.wire.name}-{'async' if self.is_async else 'sync'}"

    def client(self, server: RecordingServer, **options: Any) -> Any:
        if self.wire is MESSAGES:
            kind = anthropic.AsyncAnthropic if self.is_async else anthropic.Anthropic
            return kind(base_url=server.root, api_key="k", **options)
        make = openai.AsyncOpenAI if self.is_async else openai.OpenAI
        return make(base_url=server.url, api_key="k", **options)

    async def ask(
        self,
        client: Any,
        minute: int,
        *,
        after_call: bool,
        stream: bool,
        parameters: Any = PARAMETERS,
        **others: Any,
    ) -> None:
        """Ask once: at first, or with what a tool has answered; and read the answer to its end.

        Args:
            client: see `client`.
            minute: of the clock that the instructions tell.
            after_call: whether a tool has answered.
            stream: whether the answer is to be a stream.
            parameters: those of the tool.
            others: what else the SDK is given.
        """
        method, arguments = _METHODS[self.wire.name](client, minute, after_call, parameters)
        arguments |= others
        if stream:
            arguments["stream"] = True
        answer = method(**arguments)
        if self.is_async:
            answer = await answer
        if stream and self.is_async:
            async for _ in answer:
                pass
        elif stream:
            for _ in answer:
                pass

    async def close(self, client: Any) -> None:
        if self.is_async:
            await client.close()
        else:
            client.close()


def _chat(client: Any, minute: int, after_call: bool, parameters: Any) -> tuple[Any, dict[str, Any]]:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": RULES},
        {"role": "developer", "content": CLOCK.format(minute)},
        {"role": "user", "content": ASKED},
    ]
    if after_call:
        call_id, name, given = CALL
        call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": given}}
        messages.append({"role": "assistant", "content": SAID, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call_id, "content": ANSWERED})
    tool = {"type": "function", "function": {"name": "find", "description": "Find a book.", "parameters": parameters}}
    return client.chat.completions.create, {"model": "gpt-5.2", "messages": messages, "tools": [tool]}


def _responses(client: Any, minute: int, after_call: bool, parameters: Any) -> tuple[Any, dict[str, Any]]:
    items: list[dict[str, Any]] = [
        {"role": "developer", "content": CLOCK.format(minute)},
        {"role": "user", "content": [{"type": "input_text", "text": ASKED}]},
    ]
    if after_call:
        call_id, name, given = CALL
        items.append({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"})
        items.append({"role": "assistant", "content": SAID})
        items.append({"type": "function_call", "call_id": call_id, "name": name, "arguments": given})
        items.append({"type": "function_call_output", "call_id": call_id, "output": ANSWERED})
    tool = {"type": "function", "name": "find", "description": "Find a book.", "parameters": parameters}
    arguments = {"model": "gpt-5.2", "instructions": RULES, "input": items, "tools": [tool], "store": False}
    return client.responses.create, arguments


def _messages(client: Any, minute: int, after_call: bool, parameters: Any) -> tuple[Any, dict[str, Any]]:
    mark = {"cache_control": {"type": "ephemeral"}}
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": ASKED}]}]
    if after_call:
        call_id, name, _ = CALL
        thought = {"type": "thinking", "thinking": "On which shelf?", "signature": "s"}
        use = {"type": "tool_use", "id": call_id, "name": name, "input": {"title": "Emma"}}
        messages.append({"role": "assistant", "content": [thought, {"type": "text", "text": SAID}, use]})
        result = {"type": "tool_result", "tool_use_id": call_id, "content": ANSWERED, **mark}
        messages.append({"role": "user", "content": [result]})
    else:
        messages[0]["content"][0] |= mark
    return client.messages.create, {
        "model": "claude-opus-4-8",
        "max_tokens": 1000,
        "system": [{"type": "text", "text": RULES}, {"type": "text", "text": CLOCK.format(minute)}],
        "messages": messages,
        "tools": [{"name": "find", "description": "Find a book.", "input_schema": parameters}],
    }


_METHODS = {CHAT.name: _chat, RESPONSES.name: _responses, MESSAGES.name: _messages}
SDKS = [Sdk(wire, is_async) for wire in (CHAT, RESPONSES, MESSAGES) for is_async in (False, True)]
