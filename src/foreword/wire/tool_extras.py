"""What a tool carries in a request beside its name, description and parameters: ``strict``, examples, and the like.

A schema of ours knows no such keys, since providers differ in them; but who records others' requests sees them. They
stand in the log in a note before the request, and hold until the next such note.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, cast

if TYPE_CHECKING:
    from foreword.jsonvalue import JsonValue

__all__ = ["TOOL_EXTRAS", "ToolExtras", "extras_at", "noted_extras"]

ToolExtras: TypeAlias = "Mapping[str, JsonValue]"
"""The further keys of one tool, with their values, in the order in which they were sent."""

_NOTHING: Final[ToolExtras] = {}

TOOL_EXTRAS: Final = "recorder/tools"
"""The name of the note that holds the further keys of each tool of the requests that follow: a list of objects."""


def noted_extras(data: object) -> tuple[ToolExtras, ...] | None:
    """The further keys of each tool, in the order of the tools, as a note holds them; None if they are lost."""
    if not isinstance(data, Sequence) or isinstance(data, str):
        return None
    return tuple(cast("Sequence[ToolExtras]", data))


def extras_at(noted: Sequence[ToolExtras] | None, position: int) -> ToolExtras:
    """What the tool at a position, from 0, carries; nothing where nothing is known."""
    return noted[position] if noted is not None and position < len(noted) else _NOTHING
