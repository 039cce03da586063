"""What waits to be told to the model: messages from outside that no step has taken yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foreword.session.events import UserSaid

__all__ = ["Inbox"]


class Inbox:
    """Messages in their order. A step takes all of them, or none."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[UserSaid] = []

    def put(self, said: UserSaid) -> None:
        """Add one behind the others."""
        self._waiting.append(said)

    def take(self) -> tuple[UserSaid, ...]:
        """Take all."""
        taken, self._waiting = tuple(self._waiting), []
        return taken

    def __len__(self) -> int:
        return len(self._waiting)
