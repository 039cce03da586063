"""A history that a user of a vendor's SDK keeps: neutral messages among those of the SDK, which pass as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from foreword.errors import MisplacedInstructionsError
from foreword.wire.messages import AssistantMessage, Message, ToolMessage, UserMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["checked_history", "is_neutral"]


def is_neutral(message: object) -> TypeGuard[Message]:
    """Whether it is a message of ours."""
    return isinstance(message, UserMessage | AssistantMessage | ToolMessage)


def checked_history(messages: Iterable[Message | Mapping[str, Any] | Any]) -> Iterator[Any]:
    """The messages as they are, each looked at.

    Raises:
        MisplacedInstructionsError: one is a system or developer message.
    """
    for index, message in enumerate(messages):
        is_mapping = isinstance(message, Mapping)
        role = cast("Mapping[str, Any]", message).get("role") if is_mapping else getattr(message, "role", None)
        if role in ("system", "developer"):
            raise MisplacedInstructionsError(index, role)
        yield message
