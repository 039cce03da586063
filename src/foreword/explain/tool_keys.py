"""What became of the further keys of a tool, such as ``strict``, that stand in a request behind its schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from foreword.wire.request import canonical_json, tool_to_json

if TYPE_CHECKING:
    from foreword.explain.subject import PartTool
    from foreword.jsonvalue import JsonValue

__all__ = ["KeyChange", "changed_keys", "first_changed_key"]


@dataclass(frozen=True, slots=True)
class KeyChange:
    """A key of a tool that came, went, or has another value."""

    name: str
    old: str  # its value as JSON; empty if it was not there
    new: str

    def to_json(self) -> dict[str, JsonValue]:
        """The change as JSON."""
        return {"key": self.name, "old": self.old or None, "new": self.new or None}


def changed_keys(old: PartTool, new: PartTool) -> tuple[KeyChange, ...]:
    """The further keys of a tool that changed, in the order of the new one, behind these the ones that went."""
    values = [
        (name, _value(old.extras, name), _value(new.extras, name)) for name in dict.fromkeys((*new.extras, *old.extras))
    ]
    return tuple(KeyChange(name, was, now) for name, was, now in values if was != now)


def first_changed_key(old: PartTool, new: PartTool) -> KeyChange | None:
    """The key that makes one tool differ from another; None if they differ before, in what a schema holds."""
    schemas = [canonical_json(tool_to_json(each.schema)) for each in (old, new)]
    changed = changed_keys(old, new)
    return changed[0] if changed and schemas[0] == schemas[1] else None


def _value(extras: Mapping[str, JsonValue], name: str) -> str:
    return canonical_json(extras[name]).decode() if name in extras else ""
