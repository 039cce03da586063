"""Masking: how a log reads to whoever is not to see what is sensitive in it.

What is sensitive was said when it was registered: a runtime context, a variable, a tool. The log keeps it like the rest
(unless `foreword.session.log.Content` says otherwise), marked, and what shows a log to others masks it. Where only the
masked text was kept, the spans of the trace are fitted to it here.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from foreword.prompt.sensitive import SENSITIVE
from foreword.prompt.spans import SEPARATOR
from foreword.session import events, records
from foreword.session.told import ToldSpan
from foreword.wire.messages import AssistantMessage, UserMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foreword.session.header import RequestHeader
    from foreword.session.records import MessageContent
    from foreword.session.told import ToldText

__all__ = [
    "MASKED_ARGUMENTS",
    "contexts_as_masked",
    "masked_content",
    "masked_event",
    "masked_header",
    "section_as_masked",
]

MASKED_ARGUMENTS: Final = '{"sensitive":true}'
"""The arguments of a tool call that are not to be shown; JSON, since a provider may get to see them."""

_MARK: Final = re.compile(r"\[sensitive(?:, [^\]]*)?\]")
"""What stands in the place of something sensitive; a reader may have noted in it which content that was."""


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


# -- who put what into a text that reads masked ------------------------------------------------------------------------


def section_as_masked(told: ToldText, text: str) -> ToldText | None:
    """The spans of a section as it reads masked: a mark stands for the value of a variable.

    Args:
        told: who put what into the section as it was.
        text: as it reads masked.

    Returns:
        The same with the sizes of that text; None if they do not fit it.
    """
    spans: list[ToldSpan] = []
    at = marks = 0
    for span in told.spans:
        mark = _MARK.match(text, at) if isinstance(span.what, str) else None
        size = len(text) - at if span.size is None else span.size
        if mark is not None:
            size, marks = mark.end() - at, marks + 1
        spans.append(ToldSpan(size, span.what))
        at += size
    is_told = bool(marks) and at == len(text) and all(span.size for span in spans)
    return msgspec.structs.replace(told, spans=tuple(spans)) if is_told else None


def contexts_as_masked(told: Sequence[ToldText], text: str) -> list[ToldText] | None:
    """The spans of runtime contexts as a snapshot tells them that reads masked: a mark stands for a whole context.

    Args:
        told: who put what into the contexts as they were.
        text: what the snapshot tells of them.

    Returns:
        The same with the sizes of that text; None if they do not fit it.
    """
    shown: list[ToldText] = []
    at = 0
    for context in told:
        if context is not told[0]:
            if not text.startswith(SEPARATOR, at):
                return None
            at += len(SEPARATOR)
        mark = _MARK.match(text, at)
        if mark is not None and (mark.end() == len(text) or text.startswith(SEPARATOR, mark.end())):
            context = msgspec.structs.replace(context, spans=(ToldSpan(mark.end() - at),))
        shown.append(context)
        at += sum(span.size or 0 for span in context.spans)
    return shown if at == len(text) else None
