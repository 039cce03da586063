"""A rule: a code, how bad what it finds is, and the function that finds it. Each has a file in `rules`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from foreword.explain.lint.finding import Finding

if TYPE_CHECKING:
    from foreword.explain.lint.finding import Severity
    from foreword.explain.lint.survey import Survey
    from foreword.prompt.origin import Origin

__all__ = ["Find", "Reads", "Rule"]

Find: TypeAlias = "Callable[[Survey], Iterable[Finding]]"


class Reads(Enum):
    """What a rule has to look at."""

    TEXTS = "texts"
    """Texts alone: it also works on a rendering, and so on a log."""
    PROMPT = "prompt"
    """The registry, and one assembly of each scope."""
    ASSEMBLIES = "assemblies"
    """Several assemblies of each scope, one of them under another clock."""
    PROCESSES = "processes"
    """What other processes made of the same prompt."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        code: stable; its first digit tells the group.
        name: for people, and for the name of its page.
        severity: of all that it finds.
        reads: what it has to look at.
        summary: what it finds, in one line.
        find: looks at a survey and gives what it has found; pure.
    """

    code: str
    name: str
    severity: Severity
    reads: Reads
    summary: str
    find: Find

    def finding(self, origin: Origin, name: str, message: str, way_out: str, *, place: str | None = None) -> Finding:
        """A finding of this rule.

        Args:
            origin: whose contribution it is about.
            name: the entry's.
            message: what is wrong.
            way_out: what to do.
            place: where it stands; None for the origin's.
        """
        if place is None and origin.source is not None:
            place = str(origin.source)
        return Finding(self.code, self.severity, origin.owner, origin.scope, place, message, way_out, name)
