"""How the system text of a scope is put together: runs of shared parts, and the scope's and the step's own between.

A *stretch* is where a scope departs from the baseline's parts: positions start to stop give way to so many parts of its
own. What lies between stretches is the same for all scopes that depart at the same places, so it is joined once and
kept with the baseline: a step joins a few long runs instead of a thousand parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from foreword.prompt.assembly import render_each
from foreword.prompt.spans import SEPARATOR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from foreword.prompt.assembly import AssembledSection
    from foreword.prompt.baseline import Baseline
    from foreword.prompt.contributions import OrderedText
    from foreword.prompt.draft import Draft
    from foreword.prompt.plan import Plan

__all__ = ["Departures", "Layouts", "Shape", "departures", "edited", "joined", "woven"]

Stretch: TypeAlias = "tuple[int, int, int]"
"""Start, stop, and how many parts take the place of those between."""

_MOST_KEPT: Final = 4 * 1024 * 1024  # code points of all runs that one baseline keeps
_MOST_SHAPES: Final = 1024  # shapes that one baseline keeps


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """At which places a scope departs from a baseline. Scopes that do so at the same places share one."""

    stretches: tuple[Stretch, ...]
    settled: tuple[int, ...]  # of all the parts that take a place there: those of settled texts
    unsettled: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Departures:
    """Where a plan departs from a baseline, and what renders the parts that it puts there."""

    token: object  # the baseline's
    shape: Shape
    settled: tuple[AssembledSection, ...]
    unsettled: tuple[OrderedText, ...]

    def rendered(self, draft: Draft, values: dict[str, str | None]) -> list[str]:
        """The parts, some of which may be empty.

        Raises:
            RenderError: one of them has a fault; not necessarily the first in the prompt.
        """
        if not self.unsettled:
            return render_each(self.settled, values)
        parts = [""] * (len(self.settled) + len(self.unsettled))
        for at, part in zip(self.shape.settled, render_each(self.settled, values), strict=True):
            parts[at] = part
        made, gone = draft.texts, draft.unsupported
        for at, entry in zip(self.shape.unsettled, self.unsettled, strict=True):
            text = made.get(entry)
            if text is not None and entry not in gone:
                parts[at] = text.render_again(values)
        return parts


class Layout:
    """The runs between stretches, with gaps for what is put there."""

    __slots__ = ("gaps", "pieces")

    def __init__(self, parts: list[str], stretches: Iterable[Stretch]) -> None:
        self.pieces: list[str] = []
        self.gaps: list[int] = []  # the pieces that are not runs
        at = 0
        for start, stop, count in (*stretches, (len(parts), len(parts), 0)):
            run = SEPARATOR.join(filter(None, parts[at:start]))
            self.pieces += [run] if run else []
            self.gaps += range(len(self.pieces), len(self.pieces) + count)
            self.pieces += [""] * count
            at = stop

    def text(self, own: Sequence[str]) -> str:
        """The text with these parts in the gaps."""
        pieces = self.pieces.copy()
        for gap, part in zip(self.gaps, own):  # noqa: B905 - of one length by construction, and a hot loop
            pieces[gap] = part
        return SEPARATOR.join(filter(None, pieces) if "" in own else pieces)


def departures(plan: Plan, baseline: Baseline, changed: Iterable[str] = ()) -> Departures:
    """Where a plan departs from a baseline. The plan keeps the last answer.

    Args:
        plan: of whatever scope.
        baseline: that holds for it.
        changed: variables that have another value than in the baseline, beside the plan's own.
    """
    kept = plan.departures
    if kept is not None and kept.token is baseline.token and not changed:
        return kept
    lineup = plan.sections
    _, without = baseline.rendered()
    stale = (without | baseline.users_of([*plan.variables.own_names, *changed])) - lineup.hidden
    edits: list[tuple[int, int, tuple[OrderedText, ...]]] = [
        *((splice.start, splice.stop, splice.entries) for splice in lineup.splices),
        *((at, at + 1, (lineup.base[at],)) for at in stale),
    ]
    edits.sort(key=lambda edit: edit[:2])  # an insertion comes before what stands at its position
    made = _departures(baseline, edits)
    if not changed:
        plan.departures = made
    return made


def _departures(baseline: Baseline, edits: Sequence[tuple[int, int, tuple[OrderedText, ...]]]) -> Departures:
    entries = [entry for _, _, placed in edits for entry in placed]
    settled = tuple([at for at, entry in enumerate(entries) if entry.is_settled()])
    unsettled = tuple([at for at, entry in enumerate(entries) if not entry.is_settled()])
    shape = baseline.layouts.shape(
        tuple([(start, stop, len(placed)) for start, stop, placed in edits]), settled, unsettled
    )
    return Departures(
        baseline.token,
        shape,
        tuple([entries[at].assembled_static() for at in settled]),
        tuple([entries[at] for at in unsettled]),
    )


def joined(baseline: Baseline, shape: Shape, own: Sequence[str]) -> str:
    """The text of the baseline's parts with these ones in the stretches; empty ones are dropped."""
    layout = baseline.layouts.of(shape, baseline)
    if layout is not None:
        return layout.text(own)
    return SEPARATOR.join(filter(None, woven(baseline, shape, own)))


def woven(baseline: Baseline, shape: Shape, own: Sequence[str]) -> list[str]:
    """The baseline's parts with these ones in the stretches, one for each section, empty ones too."""
    parts, _ = baseline.rendered()
    made: list[str] = []
    at = taken = 0
    for start, stop, count in shape.stretches:
        made += parts[at:start]
        made += own[taken : taken + count]
        at, taken = stop, taken + count
    return made + parts[at:]


def edited(
    baseline: Baseline, shape: Shape, own: Sequence[str], start: int, stop: int, parts: Sequence[str]
) -> tuple[Shape, list[str]]:
    """The shape and its parts when some of the woven parts have given way to others.

    Args:
        baseline: of the shape.
        shape: the shape before.
        own: its parts.
        start: the first of the woven parts that goes.
        stop: the first behind them.
        parts: what comes in their place.
    """
    head: list[Stretch] = []
    tail: list[Stretch] = []
    before, after = list[str](), list[str]()
    kept = 0  # parts of stretches that the edit reaches into, and leaves
    first: int | None = None  # where the edit begins and ends in the baseline's parts
    last: int | None = None
    shift = taken = 0  # how much further a part stands in the woven list than in the baseline's
    for begin, end, count in shape.stretches:
        at, mine = begin + shift, own[taken : taken + count]
        taken += count
        if at + count <= start:
            head.append((begin, end, count))
            before += mine
        elif at >= stop:
            if last is None:
                last = stop - shift
            tail.append((begin, end, count))
            after += mine
            continue
        else:  # the edit reaches into this stretch: they become one
            if first is None:
                first = min(begin, start - shift)
            before += mine[: max(0, start - at)]
            after += mine[max(0, stop - at) :]
            kept += max(0, start - at) + max(0, at + count - stop)
            if at + count >= stop:
                last = end
        shift += count - (end - begin)
    if first is None:
        first = start - sum(count - (end - begin) for begin, end, count in head)
    if last is None:
        last = stop - shift
    stretches = (*head, (first, last, kept + len(parts)), *tail)
    return baseline.layouts.shape(stretches, (), ()), [*before, *parts, *after]


class Layouts:
    """The shapes of one baseline and their layouts, within limits."""

    __slots__ = ("_kept", "_layouts", "_shapes")

    def __init__(self) -> None:
        self._shapes: dict[object, Shape] = {}
        self._layouts: dict[Shape, Layout | None] = {}  # None for a shape that was met once
        self._kept = 0  # code points

    def shape(self, stretches: tuple[Stretch, ...], settled: tuple[int, ...], unsettled: tuple[int, ...]) -> Shape:
        """The shape of these departures, one for all who have it."""
        key = stretches, unsettled
        found = self._shapes.get(key)
        if found is None:
            found = Shape(stretches, settled, unsettled)
            if len(self._shapes) < _MOST_SHAPES:
                self._shapes[key] = found
        return found

    def of(self, shape: Shape, baseline: Baseline) -> Layout | None:
        """The layout of a shape; only once it is met again, since making one is more work than using it once."""
        found = self._layouts.get(shape)
        if found is not None or self._kept > _MOST_KEPT:
            return found
        if shape not in self._layouts:
            if len(self._layouts) < _MOST_SHAPES:
                self._layouts[shape] = None
            return None
        made = self._layouts[shape] = Layout(baseline.rendered()[0], shape.stretches)
        self._kept += sum(map(len, made.pieces))
        return made
