"""What stands in the place of content that was erased: marked, and such that a conversation goes on around it.

A message keeps its role and its tool calls their ids and names, which stand in envelopes; so a call and its answer stay
a pair, and a provider takes the history. A header keeps the number of its sections and tools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from foreword.prompt.contributions import ToolSchema
from foreword.session import records
from foreword.wire.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from foreword.wire.request import ModelConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foreword.session.records import Data
    from foreword.session.state import HistoryItem
    from foreword.wire.messages import Message

__all__ = ["ERASED", "erased_config", "erased_history_item", "erased_message", "erased_tool"]

ERASED: Final = "[erased]"
"""The text that marks what was erased."""

_NAMELESS: Final = "erased"  # a tool whose name was erased as well; providers take it as a name
_NO_ARGUMENTS: Final = "{}"


def erased_history_item(item: HistoryItem) -> Message:
    """What stands for a message of the history."""
    if item.role == "user":
        return UserMessage(ERASED)
    names = item.names or (_NAMELESS,) * len(item.calls)
    if item.role == "assistant":
        return _answer(list(zip(item.calls, names, strict=True)))
    return ToolMessage(item.calls[0], names[0], ERASED, item.failed)


def erased_message(data: Data, names: dict[str, str]) -> Message:
    """What stands for the message of an event.

    Args:
        data: of its envelope.
        names: of tools, by the ids of calls that were seen before.
    """
    match data:
        case records.AssistantMessageData():
            return AssistantMessage("") if data.empty else _answer(data.calls)
        case records.ToolResultData():
            return ToolMessage(data.id, names.get(data.id, _NAMELESS), ERASED, data.code is not None)
        case records.HistoryReplacedData(role="assistant"):
            return _answer([(call, names.get(call, _NAMELESS)) for call in data.calls])
        case records.HistoryReplacedData(role="tool"):
            return ToolMessage(data.calls[0], names.get(data.calls[0], _NAMELESS), ERASED)
        case _:
            return UserMessage(ERASED)


def _answer(calls: Sequence[tuple[str, str]]) -> AssistantMessage:
    return AssistantMessage(ERASED, tuple(ToolCall(call, name, _NO_ARGUMENTS) for call, name in calls))


def erased_tool(position: int) -> ToolSchema:
    """What stands for a tool of a header, at a position from 0; two of them have two names."""
    return ToolSchema(f"{_NAMELESS}_{position + 1}", ERASED, {"type": "object"})


def erased_config() -> ModelConfig:
    """What stands for the configuration of a header."""
    return ModelConfig(_NAMELESS, _NAMELESS)
