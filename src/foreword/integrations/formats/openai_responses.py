"""OpenAI's responses: instructions, and a list of items that are messages, calls, answers and more."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from foreword.integrations.formats.items import History, Instructions, content_of, settings_of, told_of, tool_of
from foreword.integrations.shape import mark
from foreword.integrations.told import Told
from foreword.session.events import MessageSource
from foreword.wire.messages import ToolCall
from foreword.wire.request import canonical_json

if TYPE_CHECKING:
    pass

__all__ = ["read"]

_INSTRUCTING: Final = ("system", "developer")
_KEPT_BY_THE_SERVER: Final = ("previous_response_id", "conversation")


def read(body: Mapping[str, Any]) -> Told:
    """What a body says.

    Raises:
        ValueError, KeyError, TypeError: it is not in this format.
    """
    instructions, history = Instructions(), History()
    settings, template = settings_of(body, ("instructions", "input", "tools"))
    if "instructions" in body:
        told = body["instructions"]
        template["instructions"] = instructions.add(told) if isinstance(told, str) else told
    if "input" in body:
        template["input"] = _input(body["input"], instructions, history)
    continues = any(body.get(name) is not None for name in _KEPT_BY_THE_SERVER)
    return told_of(
        body, settings, template, instructions, history, partial(tool_of, schema="parameters"), continues=continues
    )


def _input(told: Any, instructions: Instructions, history: History) -> Any:
    if isinstance(told, str):
        history.user(told)
        return mark("text", 0)
    for item in told:
        history.begin()
        if item.get("role") in _INSTRUCTING and not history.heard:
            history.end({**item, "content": instructions.content(item["content"])})
        else:
            history.end(_item(item, history))
    return mark("items")


def _item(item: Mapping[str, Any], history: History) -> Any:
    at = history.next
    match item.get("type", "message"):
        case "message":
            return _message(item, history)
        case "function_call":
            at = history.call(ToolCall(item["call_id"], item["name"], item["arguments"]))
            cut = {"call_id": mark("text", at), "name": mark("text", at + 1), "arguments": mark("text", at + 2)}
            return {**item, **cut}
        case "function_call_output":
            text, output = content_of(item["output"], at + 1)
            history.tool(item["call_id"], text)
            return {**item, "call_id": mark("text", at), "output": output}
        case kind:  # the model's reasoning, a tool of the provider's, late tools: told whole, as what they are
            history.user(canonical_json(item).decode(), MessageSource(str(kind), "openai-responses"))
            return mark("json", at)


def _message(item: Mapping[str, Any], history: History) -> Any:
    text, content = content_of(item["content"], history.next)
    role = item["role"]
    if role == "assistant":
        history.assistant(text)
    else:
        history.user(text, None if role == "user" else MessageSource(role, "application"))
    return {**item, "content": content}
