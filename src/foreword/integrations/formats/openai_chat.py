"""OpenAI's chat completions, and what is compatible with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from foreword.integrations.formats.items import History, Instructions, content_of, settings_of, told_of, tool_of
from foreword.integrations.shape import mark
from foreword.integrations.told import Told
from foreword.session.events import MessageSource
from foreword.wire.messages import ToolCall

if TYPE_CHECKING:
    from foreword.prompt.contributions import ToolSchema

__all__ = ["read"]

_INSTRUCTING: Final = ("system", "developer")
_TOOLS: Final = ("tools", "functions")  # the second is the elder way


def read(body: Mapping[str, Any]) -> Told:
    """What a body says.

    Raises:
        ValueError, KeyError, TypeError: it is not in this format.
    """
    instructions, history = Instructions(), History()
    for message in body["messages"]:
        history.begin()
        if message["role"] in _INSTRUCTING and not history.heard:
            history.end({**message, "content": instructions.content(message["content"])})
        else:
            history.end(_message(message, history))
    settings, template = settings_of(body, ("messages", *_TOOLS))
    template["messages"] = mark("items")
    return told_of(body, settings, template, instructions, history, _tool, tools_in=_TOOLS)


def _message(message: Mapping[str, Any], history: History) -> Any:
    role, at = message["role"], history.next
    if role == "assistant":
        return _assistant(message, history)
    if role == "tool":
        text, content = content_of(message["content"], at + 1)
        history.tool(message["tool_call_id"], text)
        return {**message, "tool_call_id": mark("text", at), "content": content}
    text, content = content_of(message.get("content"), at)
    history.user(text, None if role == "user" else MessageSource(role, "application"))
    return {**message, "content": content}


def _assistant(message: Mapping[str, Any], history: History) -> Any:
    at = history.next
    text, content = content_of(message.get("content"), at)
    template = {**message, "content": content} if "content" in message else dict(message)
    calls: list[ToolCall] = []
    if message.get("tool_calls"):
        template["tool_calls"] = [
            _call(call, at + 1 + 3 * number, calls) for number, call in enumerate(message["tool_calls"])
        ]
    history.assistant(text, calls)
    return template


def _call(call: Mapping[str, Any], at: int, calls: list[ToolCall]) -> Any:
    function: Mapping[str, Any] = call["function"]
    calls.append(ToolCall(call["id"], function["name"], function["arguments"]))
    marked = {**function, "name": mark("text", at + 1), "arguments": mark("text", at + 2)}
    return {**call, "id": mark("text", at), "function": marked}


def _tool(tool: Mapping[str, Any], at: int) -> tuple[ToolSchema, Any]:
    function: Any = tool.get("function")
    if isinstance(function, dict) and "parameters" in function:
        schema, template = tool_of(cast("dict[str, Any]", function), at, "parameters")
        return schema, {**tool, "function": template}
    return tool_of(tool, at, "parameters")
