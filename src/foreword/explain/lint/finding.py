"""What a rule says: one fault, whose it is, where it stands, and the way out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foreword.jsonvalue import JsonValue

__all__ = ["Finding", "Severity"]


class Severity(Enum):
    """How bad it is; the worst first."""

    ERROR = "error"
    """It fails, leaks or costs at every step."""
    WARNING = "warning"
    """It works, and not as its author means it."""
    NOTE = "note"
    """It may be meant."""

    @property
    def rank(self) -> int:
        """Its place among the severities, from 0 for the worst."""
        return list(Severity).index(self)

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a rule has found.

    Attributes:
        code: of the rule, as in ``FW104``.
        severity: that of the rule.
        owner: the plugin whose contribution it is.
        scope: the name of the scope whose layer holds it; None for the global one.
        place: ``file:line`` of the text or of the registering call; None if nobody knows.
        message: what is wrong; names the entry.
        way_out: what to do about it.
        name: of the entry; ``CODE:NAME`` ignores the rule for it alone.
    """

    code: str
    severity: Severity
    owner: str
    scope: str | None
    place: str | None
    message: str
    way_out: str
    name: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        """The finding as JSON; every key is always there."""
        return {
            "code": self.code,
            "severity": self.severity.value,
            "owner": self.owner,
            "scope": self.scope,
            "place": self.place,
            "name": self.name,
            "message": self.message,
            "way_out": self.way_out,
        }

    def __str__(self) -> str:
        place = "" if self.place is None else f"{self.place}: "
        return f"{place}{self.code} {self.severity}: {self.message}; {self.way_out}"
