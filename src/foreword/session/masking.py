"""Masking: how a log reads to whoever is not to see what is sensitive in it.

What is sensitive was said when it was registered: a runtime context, a variable, a tool. The log keeps it like the rest
(unless `foreword.session.log.Content` says otherwise), marked, and what shows a log to others masks it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from foreword.prompt.sensitive import SENSITIVE
from foreword.session import events, records
from foreword.wire.messages import AssistantMessage, UserMessage

if TYPE_CHECKING:
    from foreword.session.header import RequestHeader
    from foreword.session.records import MessageContent

__all__ = ["MASKED_ARGUMENTS", "masked_content", "masked_event", "masked_header"]

MASKED_ARGUMENTS: Final = '{"sensitive":true}'
"""The arguments of a tool call that are not to be shown; JSON, since a provider may get to see them."""


def masked_header(header: RequestHeader) -> RequestHeader:
    """A header as it may be shown."""
    if not header.masks:
        return header
    sections = tuple(header.masks.get(at, text) for at, text in enumerate(header.sections))
    return replace(header, sections=sections, stable_head=0)


def masked_event(event: events.Event) -> events.Event:
    """An event as it may be shown."""
    match event:
        case events.UserSaid(source=source) if source is not None and any(part.sensitive for part in source.parts):
            parts = tuple(replace(part, text=SENSITIVE) if part.sensitive else part for part in source.parts)
            text = _without(event.message.text, [part.text for part in source.parts if part.sensitive])
            return replace(event, message=UserMessage(text), source=replace(source, parts=parts))
        case events.AssistantSaid(sensitive=positions) if positions:
            calls = [
                replace(call, arguments=MASKED_ARGUMENTS) if at in positions else call
                for at, call in enumerate(event.message.tool_calls)
            ]
            return replace(event, message=AssistantMessage(event.message.text, tuple(calls)))
        case events.ToolCalled(sensitive=True):
            return replace(event, call=replace(event.call, arguments=MASKED_ARGUMENTS))
        case events.ToolAnswered(sensitive=True):
            return replace(event, message=replace(event.message, text=SENSITIVE))
        case events.HeaderWritten():
            return replace(event, header=masked_header(event.header))
        case _:
            return event


def masked_content(content: MessageContent) -> MessageContent:
    """The content of a message without what is sensitive in it; the same object if nothing is."""
    match content:
        case records.UserContent() if any(part.sensitive for part in content.parts):
            return _masked_snapshot(content)
        case records.AssistantContent() if any(call.sensitive for call in content.tool_calls):
            masked = [
                msgspec.structs.replace(call, arguments=MASKED_ARGUMENTS) if call.sensitive else call
                for call in content.tool_calls
            ]
            return msgspec.structs.replace(content, tool_calls=tuple(masked))
        case records.ToolContent(sensitive=True):
            return msgspec.structs.replace(content, content=SENSITIVE)
        case _:
            return content


def _masked_snapshot(content: records.UserContent) -> records.UserContent:
    text = content.content
    hidden = [text[slice(*part.at)] if part.at else part.text or "" for part in content.parts if part.sensitive]
    parts = tuple(
        records.PartContent(part.name, text=SENSITIVE, sensitive=True)
        if part.sensitive
        else records.PartContent(part.name, text=text[slice(*part.at)] if part.at else part.text)
        for part in content.parts
    )
    return records.UserContent(_without(text, hidden), parts)


def _without(text: str, hidden: list[str]) -> str:
    """A text without some stretches; the longest first, since one may be in another."""
    for each in sorted(hidden, key=len, reverse=True):
        text = text.replace(each, SENSITIVE) if each else text
    return text
