"""Stage 1, plan: everything about a scope's prompt that does not depend on the step.

Layers are merged, entries sorted, shadows resolved. The global layer has one plan; a scope's plan is what its chain
changes in that: which positions are hidden, what is put in. So a scope costs what it contributed, however much the
global layer holds, and the global layer's texts are rendered once for all scopes (see `render`).

A plan notes the numbers of the layers it was made from and holds while they are the same. Its parts:

* `Lineup`: sections or contexts in canonical order;
* `Variables`: which are known, which must be asked;
* tools, protections, suppressors: simply those of the chain, global first, nearest last.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from foreword.prompt.contributions import Entry, OrderedText, RuntimeContext, Section, ToolSource, Variable
from foreword.prompt.digest import Digests

if TYPE_CHECKING:
    from weakref import ref

    from foreword.prompt.config import SystemPromptConfig
    from foreword.prompt.contributions import Override, Suppressor, ToolSchema
    from foreword.prompt.registry import PromptLayer
    from foreword.prompt.render import Baseline, Body

__all__ = ["Lineup", "Memo", "Plan", "Variables", "compile_plan"]

O = TypeVar("O", bound=OrderedText)  # noqa: E741
T = TypeVar("T")

_NOBODY: Final = frozenset[str]()  # one for all plans: an empty set weighs as much as a full one

SortKey: TypeAlias = "tuple[float, tuple[int, int] | str]"
"""Order, then what decides between equals: depth of the layer and place in it, or the name."""


@dataclass(frozen=True, slots=True)
class Seat(Generic[O]):
    """An entry at its place."""

    key: SortKey
    entry: O
    position: int | None  # in the global lineup; None for an entry of a scope


@dataclass(frozen=True, slots=True)
class Splice(Generic[O]):
    """Where a chain departs from the global lineup: positions start to stop give way to these entries."""

    start: int
    stop: int
    entries: tuple[O, ...]


class Lineup(Generic[O]):
    """Sections or contexts in canonical order: the global ones, and the splices that a chain makes in them."""

    __slots__ = ("asked", "base", "index", "keys", "placed", "ready", "shadows", "splices", "unsettled")

    def __init__(
        self,
        base: tuple[O, ...],
        ready: Sequence[Any],
        keys: Sequence[SortKey],
        index: dict[str, int],
        splices: tuple[Splice[O], ...],
        unsettled: tuple[Seat[O], ...],
        shadows: tuple[tuple[O, O], ...],
    ) -> None:
        self.base = base  # the global entries, sorted
        self.ready = ready  # their assembled entries; None for one that depends on the step
        self.keys = keys  # their sort keys
        self.index = index  # their positions by name
        self.splices = splices
        self.unsettled = unsettled  # the entries in force that depend on the step, in canonical order
        self.placed = _placed(unsettled)  # those of the global layer, with their positions
        self.asked: tuple[O, ...] = tuple([seat.entry for seat in unsettled])
        self.shadows = shadows  # (hidden entry, the one that hides it)

    @property
    def hidden(self) -> frozenset[int]:
        """The global positions that the chain hides."""
        return frozenset([at for splice in self.splices for at in range(splice.start, splice.stop)])

    @classmethod
    def of_global(cls, entries: Iterable[O], *, by_name: bool) -> Lineup[O]:
        """The lineup of the global layer alone."""
        keyed = sorted(((_key(entry, (0, entry.seq), by_name), entry) for entry in entries), key=_first)
        unsettled = tuple(Seat(key, entry, at) for at, (key, entry) in enumerate(keyed) if not entry.is_settled())
        index = {entry.name: at for at, (_, entry) in enumerate(keyed)}
        ready = [entry.assembled_static() if entry.is_settled() else None for _, entry in keyed]
        return cls(tuple(entry for _, entry in keyed), ready, [key for key, _ in keyed], index, (), unsettled, ())

    def extended(self, layers: Iterable[Iterable[O]], *, by_name: bool) -> Lineup[O]:
        """This global lineup as a chain of layers (farthest first) sees it."""
        own, shadows = self._merge(layers)
        if not own:
            return self
        seats = [Seat(_key(entry, rank, by_name), entry, None) for rank, entry in own.values()]
        splices = tuple(_join(self._edits(seats)))
        lineup = Lineup(self.base, self.ready, self.keys, self.index, splices, (), tuple(shadows))
        unsettled = [seat for seat in seats if not seat.entry.is_settled()]
        hidden = lineup.hidden
        if not unsettled and hidden.isdisjoint([at for at, _ in self.placed]):
            lineup.unsettled, lineup.placed, lineup.asked = self.unsettled, self.placed, self.asked  # as most scopes do
            return lineup
        unsettled += [seat for seat in self.unsettled if seat.position not in hidden]
        lineup.unsettled = tuple(sorted(unsettled, key=lambda seat: seat.key))
        lineup.placed, lineup.asked = _placed(lineup.unsettled), tuple([seat.entry for seat in lineup.unsettled])
        return lineup

    def _merge(self, layers: Iterable[Iterable[O]]) -> tuple[dict[str, tuple[tuple[int, int], O]], list[tuple[O, O]]]:
        """The chain's own entries by name, the nearest of each, with the place among equals that each takes.

        A shadow keeps the place of what it shadows, as the seeds' merged map does.
        """
        own: dict[str, tuple[tuple[int, int], O]] = {}
        shadows: list[tuple[O, O]] = []
        for depth, layer in enumerate(layers, 1):
            for entry in layer:
                rank = (depth, entry.seq)
                if entry.name in own:
                    rank, farther = own[entry.name]
                    shadows.append((farther, entry))
                elif entry.name in self.index:
                    farther = self.base[self.index[entry.name]]
                    rank = (0, farther.seq)
                    shadows.append((farther, entry))
                own[entry.name] = (rank, entry)
        return own, shadows

    def _edits(self, seats: Iterable[Seat[O]]) -> list[tuple[int, int, SortKey, O | None]]:
        """Each own entry as a replacement of a global position, or as an insertion (and a removal where it moves)."""
        edits: list[tuple[int, int, SortKey, O | None]] = []
        for seat in seats:
            at = self.index.get(seat.entry.name)
            if at is not None and self.keys[at] == seat.key:
                edits.append((at, at + 1, seat.key, seat.entry))
                continue
            if at is not None:
                edits.append((at, at + 1, self.keys[at], None))
            to = bisect_left(self.keys, seat.key)
            edits.append((to, to, seat.key, seat.entry))
        edits.sort(key=lambda edit: edit[:3])
        return edits

    def weave(self, items: list[T], make: Callable[[O], T]) -> list[T]:
        """Turn a list that runs parallel to the global entries into one of all entries in force; in place."""
        for splice in reversed(self.splices):
            items[splice.start : splice.stop] = [make(entry) for entry in splice.entries]
        return items

    def own(self) -> Iterator[O]:
        """The chain's own entries, in canonical order."""
        return (entry for splice in self.splices for entry in splice.entries)

    def __iter__(self) -> Iterator[O]:
        return iter(self.weave(list(self.base), lambda entry: entry))


@dataclass(frozen=True, slots=True)
class Variables:
    """The variables in force: those with a static value, and those that must be asked."""

    base: dict[str, str | None]  # static values of the global layer; shared, never changed
    own: dict[str, str | None]  # static values of the chain; together with the asked ones they hide global ones
    asked: tuple[Variable, ...]  # in order of registration, a shadow in the place of what it shadows
    shadows: tuple[tuple[Variable, Variable], ...]
    entries: dict[str, Variable]  # the global ones (of the base plan), by name
    own_entries: dict[str, Variable]

    def static_values(self) -> dict[str, str | None]:
        """A new dict of every static value in force."""
        return {**self.base, **self.own} if self.own else self.base.copy()

    @property
    def own_names(self) -> KeysView[str]:
        """Every name that the chain contributes."""
        return self.own_entries.keys()

    def names(self) -> set[str]:
        """Every known name, with a value or without."""
        return {*self.entries, *self.own_entries}

    def entry(self, name: str) -> Variable | None:
        """The entry in force for a name."""
        return self.own_entries.get(name) or self.entries.get(name)


@dataclass(frozen=True, slots=True)
class Agenda:
    """Who is to be asked in a step, in the fixed order: variables, tools, sections, contexts."""

    variables: tuple[Variable, ...]
    tools: tuple[ToolSource, ...]
    texts: tuple[OrderedText, ...]
    conditional: tuple[Entry, ...]  # those that have a condition
    awaited: tuple[Entry, ...]  # those whose answers have to be waited for
    kept: tuple[Entry, ...]  # those whose good answers are kept
    demanding: tuple[OrderedText, ...]  # those that need a tool, also where they need not be asked

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All of them."""
        return (*self.variables, *self.tools, *self.texts)

    @classmethod
    def of(
        cls,
        variables: tuple[Variable, ...],
        tools: tuple[ToolSource, ...],
        texts: tuple[OrderedText, ...],
        demanding: Iterable[OrderedText],
    ) -> Agenda:
        """The agenda of what a plan asks."""
        entries = (*variables, *tools, *texts)
        return cls(
            variables,
            tools,
            texts,
            tuple(entry for entry in entries if entry.when is not None),
            tuple(entry for entry in entries if entry.is_awaited),
            tuple(entry for entry in entries if entry.last_good is not None),
            tuple(entry for entry in demanding if entry.requires_tools),
        )


@dataclass(slots=True)
class Memo:
    """What the plans of one registry share: rendered parts of the global layer, digests, the order of tools seen."""

    baseline: Baseline | None = None
    digests: Digests = field(default_factory=Digests)
    traced: deque[ref[Plan]] = field(default_factory=deque["ref[Plan]"])  # the plans that keep a trace, oldest first
    # by the ids of the providers' answers: the answers (kept, so that the ids stay theirs) and all tools in order
    tools: dict[tuple[int, ...], tuple[tuple[tuple[ToolSchema, ...], ...], tuple[ToolSchema, ...]]] = field(
        default_factory=dict[Any, Any]
    )


class Plan:
    """All of a scope's prompt that does not depend on the step. Never changed, its memos aside."""

    __slots__ = (
        "__weakref__",
        "agenda",
        "agenda_without_contexts",
        "complete",
        "contexts",
        "layers",
        "memo",
        "numbers",
        "overridden",
        "protected_sections",
        "protected_tools",
        "protections",
        "sections",
        "sensitive",
        "stable_head",
        "stale",
        "suppressors",
        "tools",
        "trace",
        "variables",
        "weak_body",
    )

    def __init__(self, layers: tuple[PromptLayer, ...], base: Plan | None, memo: Memo, *, by_name: bool) -> None:
        self.layers = layers
        self.numbers = tuple(layer.number for layer in layers)
        self.memo = memo
        scoped = layers[1:]
        self.overridden: list[tuple[OrderedText, Override]] = [] if base is None else base.overridden.copy()
        edited = partial(_overridden, overrides=layers[0].overrides, noted=self.overridden)
        if base is None:
            self.sections: Lineup[Section] = Lineup[Section].of_global(edited(layers[0].sections), by_name=by_name)
            self.contexts: Lineup[RuntimeContext] = Lineup[RuntimeContext].of_global(
                edited(layers[0].contexts), by_name=by_name
            )
            self.variables = _global_variables(layers[0].variables)
        else:
            self.sections = base.sections.extended([edited(layer.sections) for layer in scoped], by_name=by_name)
            self.contexts = base.contexts.extended([edited(layer.contexts) for layer in scoped], by_name=by_name)
            self.variables = _scoped_variables(base.variables, [layer.variables for layer in scoped])
        self.tools: tuple[ToolSource, ...] = tuple(source for layer in layers for source in layer.tools)
        self.protections = tuple(each for layer in layers for each in layer.protections)
        self.protected_sections = frozenset([name for each in self.protections for name in each.sections]) or _NOBODY
        self.protected_tools = frozenset([name for each in self.protections for name in each.tools]) or _NOBODY
        self.suppressors: tuple[Suppressor, ...] = tuple(each for layer in layers for each in layer.suppressors)
        candidates = self.sections.base if base is None else base.complete
        hidden, index = self.sections.hidden, self.sections.index
        complete = [each for each in candidates if each.complete and index[each.name] not in hidden]
        self.complete: tuple[Section, ...] = (*complete, *(each for each in self.sections.own() if each.complete))
        texts: tuple[OrderedText, ...] = self.sections.asked
        every = (*texts, *self.contexts.asked) if self.contexts.asked else texts
        asked = self.variables.asked
        self.agenda = Agenda.of(asked, self.tools, every, every)
        self.agenda_without_contexts = (
            self.agenda if len(every) == len(texts) else Agenda.of(asked, self.tools, texts, every)
        )
        self.stale: tuple[object, object, list[str], tuple[int, ...]] | None = None  # see `render._stale_positions`
        self.stable_head: int | None = None  # in characters; see `stable`
        self.sensitive: tuple[frozenset[str], frozenset[str]] | None = None  # names; see `sensitive`
        self.trace: tuple[object, object] | None = None  # the last one read, and what it was read from
        self.weak_body: Callable[[], Body | None] = _nothing  # the last rendering's body, while somebody keeps it

    def holds(self, layers: tuple[PromptLayer, ...]) -> bool:
        """Whether this plan still tells what these layers hold."""
        if len(layers) != len(self.layers):
            return False
        for layer, noted, number in zip(layers, self.layers, self.numbers, strict=True):
            if layer is not noted or layer.number != number:
                return False
        return True


def compile_plan(layers: tuple[PromptLayer, ...], base: Plan | None, memo: Memo, config: SystemPromptConfig) -> Plan:
    """The plan of a chain of layers, global first.

    Args:
        layers: the layers of the chain that have content.
        base: the plan of the global layer; None to make that one.
        memo: what all plans of a registry share.
        config: says what decides between equal orders.
    """
    return Plan(layers, base, memo, by_name=config.section_ties == "name")


def _overridden(
    entries: Iterable[Any], *, overrides: Mapping[str, Override], noted: list[tuple[OrderedText, Override]]
) -> Iterator[Any]:
    """The entries of a layer as the deployment wants them: some changed, some gone. What was done is noted."""
    for entry in entries:
        override = overrides.get(entry.name)
        if override is None:
            yield entry
            continue
        noted.append((entry, override))
        if override.enabled:
            yield override.applied(entry)


def _global_variables(entries: Iterable[Variable]) -> Variables:
    by_name = {entry.name: entry for entry in entries}
    asked = tuple(entry for entry in by_name.values() if not _is_static(entry))
    static: dict[str, str | None] = {
        entry.name: entry.provider.static for entry in by_name.values() if _is_static(entry)
    }
    return Variables(static, {}, asked, (), by_name, {})


def _scoped_variables(base: Variables, layers: Sequence[Iterable[Variable]]) -> Variables:
    own: dict[str, Variable] = {}
    shadows: list[tuple[Variable, Variable]] = []
    for entry in (entry for layer in layers for entry in layer):
        farther = own.get(entry.name) or base.entries.get(entry.name)
        if farther is not None:
            shadows.append((farther, entry))
        own[entry.name] = entry
    if not own:
        return base
    asked = [own.get(entry.name, entry) for entry in base.asked]
    asked += [entry for entry in own.values() if entry not in asked]
    return Variables(
        base.base,
        {entry.name: entry.provider.static for entry in own.values() if _is_static(entry)},
        tuple([entry for entry in asked if not _is_static(entry)]),
        tuple(shadows),
        base.entries,
        own,
    )


def _is_static(entry: Variable) -> bool:
    return entry.provider.call is None and entry.when is None


def _placed(unsettled: Iterable[Seat[O]]) -> tuple[tuple[int, O], ...]:
    return tuple((seat.position, seat.entry) for seat in unsettled if seat.position is not None)


def _join(edits: Iterable[tuple[int, int, Any, O | None]]) -> Iterator[Splice[O]]:
    """Sorted edits as splices, neighbouring ones in one."""
    start = stop = -1
    entries: list[O] = []
    for first, last, _, entry in edits:
        if first > stop or start < 0:
            if start >= 0:
                yield Splice(start, stop, tuple(entries))
            start, stop, entries = first, last, []
        stop = max(stop, last)
        if entry is not None:
            entries.append(entry)
    if start >= 0:
        yield Splice(start, stop, tuple(entries))


def _key(entry: OrderedText, rank: tuple[int, int], by_name: bool) -> SortKey:
    return (entry.order, entry.name if by_name else rank)


def _first(pair: tuple[SortKey, Any]) -> SortKey:
    return pair[0]


def _nothing() -> None:
    return None
