"""Where a contribution comes from: its owner, its scope, and the place in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from foreword.errors import EntryRef, shown

if TYPE_CHECKING:
    from foreword.kernel.source import Source

__all__ = ["ASSEMBLER", "Origin"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Who put something into a prompt, and from where."""

    owner: str  # the plugin
    scope: str | None = None  # the name of the scope whose layer holds it; None for the global layer
    source: Source | None = None
    listener: str | None = None  # the listener that put it there, if it was not registered

    @property
    def layer(self) -> str:
        """The layer in words: ``global``, or ``scope NAME``."""
        return "global" if self.scope is None else f"scope {self.scope}"

    @property
    def distribution(self) -> str | None:
        """Name and version of the installed distribution that it comes from; None for your own project."""
        return None if self.source is None else self.source.distribution

    def __str__(self) -> str:
        scope = "" if self.scope is None else f" in scope {shown(self.scope)}"
        return f"{shown(self.owner)}{scope}{'' if self.source is None else f' ({self.source})'}"

    def ref(self, kind: str, name: str) -> EntryRef:
        """The reference that errors carry."""
        return EntryRef(kind, name, self.owner, self.scope, None if self.source is None else str(self.source))


ASSEMBLER = Origin("assembler")
"""The origin of what nobody contributed: the blank lines between sections, the opener of the snapshot."""
