"""What the steps of one registry share: what the global layer answered last, and what its sections render to.

Most of what is asked answers as it did in the step before, so a step looks only at the rest. A question that has once
changed its answer is *volatile*: it is no longer noted, and what depends on it belongs to each step. Whatever is noted
here counts for every scope: it was answered by an entry of the global layer, and held to all that an answer must be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from foreword.errors import RenderError
from foreword.prompt.contributions import OrderedText, Section, ToolSource, Variable
from foreword.prompt.layout import Layouts
from foreword.prompt.tool_answers import ToolAnswers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from foreword.prompt.assembly import AssembledContext, AssembledSection
    from foreword.prompt.contributions import Entry
    from foreword.prompt.draft import Draft
    from foreword.prompt.plan import Plan

__all__ = ["UNSEEN", "VOLATILE", "Baseline", "baseline_of"]

UNSEEN: Final = object()
"""Noted for a question that nobody has answered yet."""

VOLATILE: Final = object()
"""Noted for a question whose answer has changed before."""


class Baseline:
    """Answers and parts of the global layer. Immutable, its lazy parts and its layouts aside.

    Attributes:
        answers: by their places in the agenda's row; `UNSEEN` or `VOLATILE` where nothing is noted.
        values: the global layer's static values, and the noted ones.
        texts: the assembled entries of the noted texts.
        offered: what the noted tool providers answered.
        layouts: see `layout`.
        token: another object for each baseline; it may be kept without keeping a baseline alive.
    """

    __slots__ = (
        "_known",
        "_rendered",
        "_source",
        "_text_users",
        "_users",
        "answers",
        "layouts",
        "offered",
        "plan",
        "texts",
        "token",
        "values",
    )

    def __init__(
        self,
        plan: Plan,
        answers: list[object],
        values: dict[str, str | None],
        texts: dict[OrderedText, AssembledSection | AssembledContext],
        offered: ToolAnswers,
        users: Mapping[str, list[int]],
    ) -> None:
        self.plan = plan  # of the global layer
        self.answers, self.values, self.texts, self.offered = answers, values, texts, offered
        self.token = object()
        self.layouts = Layouts()
        self._users = users  # of settled texts: by the names that they refer to, their positions
        self._text_users = _users((at, texts.get(plan.sections.base[at])) for at in self._positions(texts))
        # parts to start from, positions without one, and positions to look at; then what came of it
        self._source: tuple[list[str], frozenset[int], set[int]] = ([], frozenset(), set())
        self._rendered: tuple[list[str], frozenset[int]] | None = None
        self._known: dict[int, str] | None = None

    @classmethod
    def of(cls, plan: Plan, last: Baseline | None) -> Baseline:
        """The baseline of another global plan, which takes over what still counts of the last one."""
        entries, ready = plan.agenda.entries, plan.sections.ready
        answers: list[object] = [UNSEEN] * len(entries)
        values, texts, offered = plan.variables.base.copy(), dict[OrderedText, Any](), ToolAnswers()
        known: dict[int, str] = {}
        if last is not None:
            was = last.plan.agenda.places
            for at, entry in enumerate(entries):
                if entry in was:
                    answers[at] = last.answers[was[entry]]
                    if isinstance(entry, Variable) and entry.name in last.values:
                        values[entry.name] = last.values[entry.name]
                    elif isinstance(entry, OrderedText) and entry in last.texts:
                        texts[entry] = last.texts[entry]
                    elif isinstance(entry, ToolSource):
                        offered.take_from(last.offered, entry)
            known = last.part_of()
        users = _users(enumerate(ready)) if last is None or last.plan.sections.ready is not ready else last._users
        made = cls(plan, answers, values, texts, offered, users)
        parts = [known.get(id(section)) for section in map(made._section, range(len(ready)))]
        stale = {at for at, part in enumerate(parts) if part is None}
        if last is not None:
            names = {*values, *last.values}
            stale |= made.users_of(
                [name for name in names if values.get(name, UNSEEN) != last.values.get(name, UNSEEN)]
            )
        made._source = [part or "" for part in parts], frozenset(), stale
        return made

    def learning(self, draft: Draft, news: dict[int, object], volatile: Iterable[int]) -> Baseline:
        """This baseline with what a step has found out.

        Args:
            draft: the step's, which holds the answers as accepted.
            news: answers to note, by their places.
            volatile: places of questions that have answered otherwise than noted.
        """
        entries = self.plan.agenda.entries
        answers, values, texts, offered = self.answers.copy(), self.values.copy(), self.texts.copy(), self.offered
        names: set[str] = set()
        changed: set[OrderedText] = set()
        for at in (*news, *volatile):
            entry, is_new = entries[at], at in news
            answers[at] = news[at] if is_new else VOLATILE
            if isinstance(entry, Variable):
                names.add(entry.name)
                if is_new:
                    values[entry.name] = draft.values[entry.name]
                else:
                    values.pop(entry.name, None)
            elif isinstance(entry, ToolSource):
                offered = offered.noting(entry, draft.offered if is_new else None)
            elif isinstance(entry, OrderedText):
                changed.add(entry)
                if is_new:
                    texts[entry] = draft.texts[entry]
                else:
                    texts.pop(entry, None)
        made = Baseline(self.plan, answers, values, texts, offered, self._users)
        affected = made.users_of(names).union(self._positions(changed))
        parts, without, stale = self._source if self._rendered is None else (*self._rendered, set[int]())
        made._source = parts, without, stale | affected
        return made

    def noted(self, entries: Iterable[Entry]) -> list[int]:
        """The places of those of these entries whose answers are noted."""
        places = self.plan.agenda.places
        return [places[entry] for entry in entries if entry in self.texts]

    # -- parts ---------------------------------------------------------------------------------------------------------

    def rendered(self) -> tuple[list[str], frozenset[int]]:
        """The rendered sections, parallel to the global lineup; and the positions at which there is none that counts.

        Those are of texts that are not noted, or that cannot be rendered with these values: an unknown or valueless
        variable, a malformed text. Each step must see for itself.
        """
        if self._rendered is None:
            parts, without, stale = self._source
            parts, open_positions = parts.copy(), set(without)
            for at in stale:
                part = self._part(at)
                parts[at] = part or ""
                if part is None:
                    open_positions.add(at)
                else:
                    open_positions.discard(at)
            self._rendered = parts, frozenset(open_positions)
        return self._rendered

    def _part(self, at: int) -> str | None:
        section = self._section(at)
        if section is None or section.template.lacks(self.values):
            return None
        try:
            return section.render(self.values)
        except RenderError:  # told by the step that renders it, if one does
            return None

    def _section(self, at: int) -> AssembledSection | None:
        lineup = self.plan.sections
        made: AssembledSection | None = lineup.ready[at]
        return made or cast("AssembledSection | None", self.texts.get(lineup.base[at]))

    def part_of(self) -> dict[int, str]:
        """The parts by the identity of their assembled sections."""
        if self._rendered is None:
            return {}
        if self._known is None:
            parts, without = self._rendered
            self._known = {id(self._section(at)): part for at, part in enumerate(parts) if at not in without}
        return self._known

    def users_of(self, names: Iterable[str]) -> set[int]:
        """The positions of the sections that refer to some variables, as far as their texts are noted."""
        found: set[int] = set()
        for name in names:
            found.update(self._users.get(name, ()), self._text_users.get(name, ()))
        return found

    def _positions(self, texts: Iterable[OrderedText]) -> list[int]:
        index = self.plan.sections.index
        return [index[entry.name] for entry in texts if isinstance(entry, Section)]


def baseline_of(plan: Plan) -> Baseline:
    """The baseline that holds for the plan of some scope."""
    last = plan.memo.baseline
    if last is None or last.plan is not plan.base:
        last = plan.memo.baseline = Baseline.of(plan.base, last)
    return last


def _users(sections: Iterable[tuple[int, Any]]) -> dict[str, list[int]]:
    users: dict[str, list[int]] = {}
    for at, section in sections:
        names = () if section is None else section.template.names
        for name in names if len(names) < 2 else dict.fromkeys(names):
            users.setdefault(name, []).append(at)
    return users
