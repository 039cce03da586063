"""Messages in neutral form: what a model is told and says, before any provider's spelling.

They are frozen, and their JSON is what the session log keeps and a rebuilt request shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foreword.jsonvalue import JsonValue

__all__ = ["AssistantMessage", "Message", "ToolCall", "ToolMessage", "UserMessage", "message_from_json"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that a model wants called."""

    id: str
    name: str
    arguments: str  # JSON, as the model wrote it: it may be no JSON at all

    def to_json(self) -> dict[str, JsonValue]:
        """The neutral JSON."""
        return {"id": self.id, "name": self.name, "arguments": self.arguments}


@dataclass(frozen=True, slots=True)
class UserMessage:
    """What a person, a program or the runtime context says."""

    text: str

    def to_json(self) -> dict[str, JsonValue]:
        """The neutral JSON."""
        return {"role": "user", "content": self.text}


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """What a model said, and the tools that it wants called."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """The neutral JSON; ``tool_calls`` only if there are some."""
        told: dict[str, JsonValue] = {"role": "assistant", "content": self.text}
        if self.tool_calls:
            told["tool_calls"] = [call.to_json() for call in self.tool_calls]
        return told


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """What a tool answered."""

    call_id: str
    name: str
    text: str
    is_error: bool = False

    def to_json(self) -> dict[str, JsonValue]:
        """The neutral JSON; ``is_error`` only if it is one."""
        told: dict[str, JsonValue] = {
            "role": "tool",
            "call_id": self.call_id,
            "name": self.name,
            "content": self.text,
        }
        if self.is_error:
            told["is_error"] = True
        return told


Message: TypeAlias = UserMessage | AssistantMessage | ToolMessage


def message_from_json(told: Mapping[str, Any]) -> Message:
    """A message from its neutral JSON; the inverse of ``to_json``.

    Raises:
        ValueError: it has no role that is known.
        KeyError: something of it is missing.
    """
    match told["role"]:
        case "user":
            return UserMessage(told["content"])
        case "assistant":
            calls = tuple(ToolCall(each["id"], each["name"], each["arguments"]) for each in told.get("tool_calls", ()))
            return AssistantMessage(told["content"], calls)
        case "tool":
            return ToolMessage(told["call_id"], told["name"], told["content"], told.get("is_error", False))
        case role:
            raise ValueError(f'a message has the role "{role}"; roles are user, assistant and tool')
