"""What stands in the place of content that is gone: marked, and such that a conversation goes on around it.

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

__all__ = ["ERASED", "NOT_STORED", "config_in_place", "item_in_place", "message_in_place", "tool_in_place"]

ERASED: Final = "[erased]"
"""The text that marks what was erased."""

NOT_STORED: Final = "[not stored]"
"""The text that marks what was never stored, since the log was not to hold it."""

_NAMELESS: Final = "gone"  # a tool whose name is gone as well; providers take it as a name
_NO_ARGUMENTS: Final = "{}"


def item_in_place(item: HistoryItem, mark: str) -> Message:
    """What stands for a message of the history."""
    if item.role == "user":
        return UserMessage(mark)
    names = item.names or (_NAMELESS,) * len(item.calls)
    if item.role == "assistant":
        return _answer(list(zip(item.calls, names, strict=True)), mark)
    return ToolMessage(item.calls[0], names[0], mark, item.failed)


def message_in_place(data: Data, mark: str, names: dict[str, str]) -> Message:
    """What stands for the message of an event.

    Args:
        data: of its envelope.
        mark: the text.
        names: of tools, by the ids of calls that were seen before.
    """
    match data:
        case records.AssistantMessageData():
            return AssistantMessage("") if data.empty else _answer(data.calls, mark)
        case records.ToolResultData():
            return ToolMessage(data.id, names.get(data.id, _NAMELESS), mark, data.code is not None)
        case records.HistoryReplacedData(role="assistant"):
            return _answer([(call, names.get(call, _NAMELESS)) for call in data.calls], mark)
        case records.HistoryReplacedData(role="tool"):
            return ToolMessage(data.calls[0], names.get(data.calls[0], _NAMELESS), mark)
        case _:
            return UserMessage(mark)


def _answer(calls: Sequence[tuple[str, str]], mark: str) -> AssistantMessage:
    return AssistantMessage(mark, tuple(ToolCall(call, name, _NO_ARGUMENTS) for call, name in calls))


def tool_in_place(position: int, mark: str) -> ToolSchema:
    """What stands for a tool of a header, at a position from 0; two of them have two names."""
    return ToolSchema(f"{_NAMELESS}_{position + 1}", mark, {"type": "object"})


def config_in_place() -> ModelConfig:
    """What stands for the configuration of a header."""
    return ModelConfig(_NAMELESS, _NAMELESS)
