"""Logged events as JSON documents: the type that stands in the log, and what it says, by name."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from foreword.cli.times import iso
from foreword.explain.unstored import lost_tools
from foreword.jsonvalue import thaw
from foreword.prompt.digest import Digests
from foreword.session import events
from foreword.session.encoding import EVENT_TYPES
from foreword.session.masking import masked_event
from foreword.session.placeholders import config_in_place
from foreword.wire.messages import AssistantMessage, ToolMessage, UserMessage

if TYPE_CHECKING:
    from foreword.session.header import RequestHeader

__all__ = ["event_document", "outcome_document", "system_digest"]


def system_digest(header: RequestHeader) -> str:
    """The digest of a header's system text, in hex: that of the `Rendering` it was made from."""
    return Digests().of_list(header.sections)


def event_document(logged: events.LoggedEvent, *, reveal: bool) -> dict[str, Any]:
    """An event as JSON, without the trace of a step, which foreword explain tells.

    Args:
        logged: the event.
        reveal: whether what is sensitive is told as well.
    """
    event = logged.event if reveal else masked_event(logged.event)
    named = event.type if isinstance(event, events.UnknownEvent) else EVENT_TYPES[type(event)]
    return {"seq": logged.seq, "time": iso(logged.time), "type": named, **_told(event)}


def outcome_document(ended: events.RequestEnded) -> dict[str, Any]:
    """How an attempt ended."""
    return {name: _plain(getattr(ended, name)) for name in ("finish", "usage", "failure", "timings")}


def _told(event: events.Event) -> dict[str, Any]:
    match event:
        case events.StepStart():
            return {"turn": event.turn, "step": event.step}
        case events.HeaderWritten():
            return {"reason": event.reason, "drift": list(event.drift), **_header(event.header)}
        case events.UnknownEvent():
            return {}
        case _:
            return {field.name: _plain(getattr(event, field.name)) for field in fields(event)}


def _header(header: RequestHeader) -> dict[str, Any]:
    """A header as JSON, with null for what the log does not hold."""
    lost = lost_tools(header)
    return {
        "config": None if header.config == config_in_place() else header.config.to_json(),
        "system_digest": None if header.in_place else system_digest(header),
        "sections": len(header.sections),
        "tools": [None if at in lost else tool.name for at, tool in enumerate(header.tools)],
    }


def _plain(value: Any) -> Any:
    """A field of an event as JSON."""
    if isinstance(value, (UserMessage, AssistantMessage, ToolMessage)):
        return value.to_json()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        return [_plain(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    if hasattr(value, "__dataclass_fields__"):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return thaw(value)
