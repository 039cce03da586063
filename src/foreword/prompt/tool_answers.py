"""What the tool providers answered in a step. Steps with the same answers share one, with the order of its tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foreword.errors import EntryRef
    from foreword.prompt.contributions import ToolProviderResult, ToolSchema, ToolSource
    from foreword.prompt.origin import Origin

__all__ = ["ToolAnswers"]


class ToolAnswers:
    """Answers by the source that gave them. Never changed once it is shared: `copy` it first.

    Attributes:
        schemas: the tools that each shows.
        known: the names that each is known to have: of those that answered, and of static ones.
        origins: who brought tools that are not the provider's own.
        hiders: what hides known names.
        ordered: all tools in canonical order, once the order stage has worked it out.
        names: the names of all tools, once somebody has asked.
        unchecked: names of ``tool_order`` that nobody vouched for; found out with the order.
    """

    __slots__ = ("hiders", "known", "names", "ordered", "origins", "schemas", "unchecked")

    def __init__(self) -> None:
        self.schemas: dict[ToolSource, tuple[ToolSchema, ...]] = {}
        self.known: dict[ToolSource, frozenset[str]] = {}
        self.origins: dict[ToolSource, Mapping[str, Origin]] = {}
        self.hiders: dict[ToolSource, Mapping[str, EntryRef]] = {}
        self.ordered: tuple[ToolSchema, ...] | None = None
        self.names: frozenset[str] | None = None
        self.unchecked: tuple[str, ...] = ()

    def copy(self) -> ToolAnswers:
        """Another one with the same answers, in no order yet."""
        made = ToolAnswers()
        made.schemas, made.known = self.schemas.copy(), self.known.copy()
        made.origins, made.hiders = self.origins.copy(), self.hiders.copy()
        return made

    def take(
        self,
        source: ToolSource,
        schemas: tuple[ToolSchema, ...],
        known: frozenset[str],
        result: ToolProviderResult | None,
    ) -> None:
        """Take a source's answer in.

        Args:
            source: whose.
            schemas: its tools, checked.
            known: the names that it is known to have.
            result: tells origins and hiders.
        """
        self.schemas[source], self.known[source] = schemas, known
        if result is not None:
            self.origins[source], self.hiders[source] = result.origins, result.hidden_by

    def take_from(self, other: ToolAnswers, source: ToolSource) -> None:
        """Take a source's answer over from another step, if it has one."""
        for mine, theirs in zip(self.tables(), other.tables(), strict=True):
            if source in theirs:
                mine[source] = theirs[source]

    def noting(self, source: ToolSource, other: ToolAnswers | None) -> ToolAnswers:
        """Another one with a source's answer as in some step, or, with None, without it."""
        made = self.copy()
        if other is not None:
            made.take_from(other, source)
            return made
        for table in made.tables():
            table.pop(source, None)
        return made

    def __eq__(self, other: object) -> bool:
        """Whether all answers are equal."""
        return isinstance(other, ToolAnswers) and self.tables() == other.tables()

    __hash__ = None  # type: ignore[assignment]

    def tables(self) -> tuple[dict[ToolSource, Any], ...]:
        """All that is kept by source."""
        return self.schemas, self.known, self.origins, self.hiders
