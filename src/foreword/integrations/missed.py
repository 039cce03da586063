"""What was sent and is not in the log: counted, with its reasons, until the log can say so itself."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from foreword.jsonvalue import JsonValue

__all__ = ["MISSED", "Missed"]

MISSED: Final = "recorder/missed"
"""The name of the note which says that requests were sent that are not in the log, how many, and why."""

_MOST_REASONS: Final = 10  # that are told; a log that is down for a day has few, many times


class Missed:
    """Requests that are not in the log; any thread may add some."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._count = 0
        self._reasons: dict[str, None] = {}

    def add(self, why: str) -> None:
        """One more."""
        with self._lock:
            self._count += 1
            if len(self._reasons) < _MOST_REASONS:
                self._reasons[why] = None

    def told(self) -> dict[str, JsonValue] | None:
        """What is to be told of them; None if there are none."""
        with self._lock:
            return {"requests": self._count, "why": list(self._reasons)} if self._count else None

    def forget(self, told: dict[str, JsonValue]) -> None:
        """The log has it; what has come since is left."""
        count = told["requests"]
        with self._lock:
            self._count -= count if isinstance(count, int) else 0
            if not self._count:
                self._reasons.clear()
