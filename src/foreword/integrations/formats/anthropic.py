"""Anthropic's messages: system blocks, tools, and turns whose content is blocks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from foreword.integrations.formats.items import History, Instructions, content_of, settings_of, told_of, tool_of
from foreword.integrations.shape import mark
from foreword.integrations.told import Told
from foreword.session.events import MessageSource
from foreword.wire.messages import ToolCall
from foreword.wire.request import canonical_json

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["read"]


def read(body: Mapping[str, Any]) -> Told:
    """What a body says.

    Raises:
        ValueError, KeyError, TypeError: it is not in this format.
    """
    instructions, history = Instructions(), History()
    settings, template = settings_of(body, ("system", "tools", "messages"))
    if "system" in body:
        template["system"] = instructions.content(body["system"])
    for message in body["messages"]:
        history.begin()
        history.end(_message(message, history))
    template["messages"] = mark("items")
    return told_of(body, settings, template, instructions, history, partial(tool_of, schema="input_schema"))


def _message(message: Mapping[str, Any], history: History) -> Any:
    content, role = message["content"], message["role"]
    if isinstance(content, str):
        text, template = content_of(content, history.next)
        if role == "assistant":
            history.assistant(text)
        else:
            history.user(text, _source(role))
        return {**message, "content": template}
    blocks: list[Mapping[str, Any]] = list(content)
    templates = _assistant(blocks, history) if role == "assistant" else _others(blocks, history, _source(role))
    return {**message, "content": templates}


def _source(role: str) -> MessageSource | None:
    return None if role == "user" else MessageSource(role, "application")


def _assistant(blocks: Sequence[Mapping[str, Any]], history: History) -> list[Any]:
    """What the model said, and the tools that it called; the thoughts between them are told with what it said."""
    at = history.next
    text, said = content_of([block for block in blocks if block["type"] != "tool_use"], at)
    calls: list[ToolCall] = []
    rest, templates = iter(said), list[Any]()
    for block in blocks:
        if block["type"] == "tool_use":
            place = at + 1 + 3 * len(calls)
            calls.append(ToolCall(block["id"], block["name"], canonical_json(block["input"]).decode()))
            cut = {"id": mark("text", place), "name": mark("text", place + 1), "input": mark("json", place + 2)}
            templates.append({**block, **cut})
        else:
            templates.append(next(rest))
    history.assistant(text, calls)
    return templates


def _others(blocks: Sequence[Mapping[str, Any]], history: History, source: MessageSource | None) -> list[Any]:
    """What tools answered, and what the user says: each stretch without an answer is a message."""
    templates: list[Any] = []
    stretch: list[Mapping[str, Any]] = []
    for block in (*blocks, None):
        if block is not None and block["type"] != "tool_result":
            stretch.append(block)
            continue
        if stretch:
            text, said = content_of(stretch, history.next)
            history.user(text, source)
            templates += said
            stretch = []
        if block is not None:
            templates.append(_result(block, history))
    return templates


def _result(block: Mapping[str, Any], history: History) -> Any:
    at = history.next
    text, content = content_of(block.get("content"), at + 1)
    history.tool(block["tool_use_id"], text, is_error=bool(block.get("is_error")))
    template = {**block, "tool_use_id": mark("text", at)}
    return {**template, "content": content} if "content" in block else template
