"""Masks: which of the tools that a scope inherits it may have, by name and by pattern.

A pattern is a name with ``*``, ``?`` or ``[…]`` in it, as in ``mcp__orders__*``; case counts. What bears a listed name
to the letter is meant, too, whatever characters that has. Nothing here knows a registry: whoever masks tools uses this.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, cast

from foreword.errors import InvalidMaskError, NotAStringError
from foreword.prompt.text import described

if TYPE_CHECKING:
    from foreword.errors import EntryRef
    from foreword.prompt.origin import Origin

__all__ = ["Mask", "ToolMask", "is_pattern", "matches"]


def is_pattern(name: str) -> bool:
    """Whether a listed name may stand for several tools."""
    return any(mark in name for mark in "*?[")


def matches(tool: str, name: str) -> bool:
    """Whether a listed name or pattern means a tool."""
    return tool == name or (is_pattern(name) and fnmatchcase(tool, name))


@dataclass(frozen=True, slots=True)
class ToolMask:
    """Which tools are admitted: those that ``allow`` means, if it is given, without those that ``deny`` means.

    The lists are copied. ``allow=[]`` admits nothing.

    Raises:
        InvalidMaskError: it would mask nothing: neither list is given, or only an empty ``deny``.
        NotAStringError: a list is none, or holds what is no name.
    """

    allow: Sequence[str] | None = None
    deny: Sequence[str] | None = None

    def __post_init__(self) -> None:
        allow, deny = _names(self.allow, "allow"), _names(self.deny, "deny")
        object.__setattr__(self, "allow", allow)
        object.__setattr__(self, "deny", deny)
        if allow is None and not deny:
            given = "is given neither allow=… nor deny=…" if deny is None else "is given only deny=[]"
            why = f"{given}, so it masks nothing; name tools, or drop it. allow=[] hides all that is inherited"
            raise InvalidMaskError("empty_mask", None, why)

    @property
    def names(self) -> tuple[str, ...]:
        """All names and patterns in it, each once."""
        return tuple(dict.fromkeys((*(self.allow or ()), *(self.deny or ()))))

    def admits(self, tool: str) -> bool:
        """Whether a tool of that name passes."""
        allowed = self.allow is None or any(matches(tool, name) for name in self.allow)
        return allowed and not any(matches(tool, name) for name in self.deny or ())

    def unknown(self, known: Iterable[str]) -> tuple[str, ...]:
        """The names in it, patterns aside, that none of the known tools bears."""
        bearing = set(known)
        return tuple(name for name in self.names if not is_pattern(name) and name not in bearing)

    def unmatched(self, known: Iterable[str]) -> tuple[str, ...]:
        """The patterns in it that mean none of the known tools."""
        tools = list(known)
        return tuple(name for name in self.names if is_pattern(name) and not any(matches(tool, name) for tool in tools))


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """A mask in force: whose it is, and where."""

    mask: ToolMask
    origin: Origin

    @property
    def ref(self) -> EntryRef:
        """The reference that errors and traces carry."""
        return self.origin.ref("tool mask", ", ".join(self.mask.names) or "allow=[]")

    def __str__(self) -> str:
        return str(self.ref)


def _names(given: object, which: str) -> tuple[str, ...] | None:
    if given is None:
        return None
    what = f"{which}= of a tool mask"
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        way_out = f"give a list of names: {which}=[{given!r}]" if isinstance(given, str) else "give a list of names"
        raise NotAStringError(what, f"not a list but {described(given)}", way_out)
    names = tuple(cast("Iterable[object]", given))
    for name in names:
        if not isinstance(name, str) or not name:
            told = "not a name but an empty string" if name == "" else described(name)
            raise NotAStringError(f"a name in {what}", told, "give the name of a tool, or a pattern")
    return cast("tuple[str, ...]", names)
