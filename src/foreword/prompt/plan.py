"""Stage 1, plan: everything about a scope's prompt that does not depend on the step.

Layers are merged, entries sorted, shadows resolved. The global layer has one plan; a scope's plan is what its chain
changes in that: which positions are hidden, what is put in. So a scope costs what it contributed, however much the
global layer holds, and the global layer's texts are rendered once for all scopes (see `render`).

A plan notes the numbers of the layers it was made from and holds while they are the same. Its parts:

* `Lineup`: sections or contexts in canonical order;
* `Variables`: which are known, which must be asked;
* `Agenda`: whom a step asks (see `agenda`);
* tools, protections, suppressors: simply those of the chain, global first, nearest last.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from foreword.prompt.agenda import Agenda
from foreword.prompt.contributions import Entry, OrderedText, RuntimeContext, Section, ToolSource, Variable
from foreword.prompt.digest import Digests

if TYPE_CHECKING:
    from weakref import ref

    from foreword.prompt.baseline import Baseline
    from foreword.prompt.config import SystemPromptConfig
    from foreword.prompt.contributions import Override, Suppressor, ToolSchema
    from foreword.prompt.layout import Departures
    from foreword.prompt.registry import PromptLayer
    from foreword.prompt.render import Body
    from foreword.prompt.trace import KeptTrace, Names

__all__ = ["Lineup", "Memo", "Plan", "Variables", "compile_plan", "is_static"]

O = TypeVar("O", bound=OrderedText)  # noqa: E741
T = TypeVar("T")

_NO_NAMES: Final = frozenset[str]()  # one for all plans: an empty set weighs as much as a full one

_NO_VALUES: Final[dict[str, str | None]] = {}

_number = attrgetter("number")

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

    __slots__ = ("base", "index", "keys", "ready", "shadows", "splices", "unsettled")

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
        self.shadows = shadows  # (hidden entry, the one that hides it)

    @property
    def hidden(self) -> frozenset[int]:
        """The global positions that the chain hides."""
        return frozenset([at for splice in self.splices for at in range(splice.start, splice.stop)])

    @classmethod
    def of_global(cls, entries: Iterable[O], *, by_name: bool) -> Lineup[O]:
        """The lineup of the global layer alone."""
        found = list(entries)
        keyed: list[SortKey] = [(entry.order, entry.name if by_name else (0, entry.seq)) for entry in found]
        places = sorted(range(len(found)), key=keyed.__getitem__)
        base, keys = [found[at] for at in places], [keyed[at] for at in places]
        ready = [entry.assembled_static() if entry.is_settled() else None for entry in base]
        unsettled = [Seat(keys[at], base[at], at) for at, made in enumerate(ready) if made is None]
        index = {entry.name: at for at, entry in enumerate(base)}
        return cls(tuple(base), ready, keys, index, (), tuple(unsettled), ())

    def extended(self, layers: Iterable[Iterable[O]], *, by_name: bool) -> Lineup[O]:
        """This global lineup as a chain of layers (farthest first) sees it."""
        own, shadows = self._merge(layers)
        if not own:
            return self
        seats = [Seat(_key(entry, rank, by_name), entry, None) for rank, entry in own.values()]
        splices = tuple(_join(self._edits(seats)))
        lineup = Lineup(self.base, self.ready, self.keys, self.index, splices, self.unsettled, tuple(shadows))
        unsettled = [seat for seat in seats if not seat.entry.is_settled()]
        hidden = lineup.hidden
        if unsettled or any(self.ready[at] is None for at in hidden):  # mostly not: then the global ones are shared
            unsettled += [seat for seat in self.unsettled if seat.position not in hidden]
            lineup.unsettled = tuple(sorted(unsettled, key=lambda seat: seat.key))
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

    def replaced(self) -> list[O]:
        """The global entries that the chain hides."""
        return [self.base[at] for splice in self.splices for at in range(splice.start, splice.stop)]

    def __iter__(self) -> Iterator[O]:
        return iter(self.weave(list(self.base), lambda entry: entry))


@dataclass(frozen=True, slots=True)
class Variables:
    """The variables in force: those with a static value, and those that must be asked."""

    base: dict[str, str | None]  # static values of the global layer; shared, never changed
    own: dict[str, str | None]  # static values of the chain; together with the asked ones they hide global ones
    base_asked: tuple[Variable, ...]  # the global ones that must be asked
    shadows: tuple[tuple[Variable, Variable], ...]
    entries: dict[str, Variable]  # the global ones (of the base plan), by name
    own_entries: tuple[Variable, ...]  # few, so that no dict of them is kept for each scope

    @property
    def asked(self) -> list[Variable]:
        """Those that must be asked: in order of registration, a shadow in the place of what it shadows."""
        own = {entry.name: entry for entry in self.own_entries}
        found = [own.get(entry.name, entry) for entry in self.base_asked]
        found += [entry for entry in own.values() if entry not in found]
        return [entry for entry in found if not is_static(entry)]

    def static_values(self) -> dict[str, str | None]:
        """A new dict of every static value in force."""
        return {**self.base, **self.own} if self.own else self.base.copy()

    @property
    def own_names(self) -> list[str]:
        """Every name that the chain contributes."""
        return [entry.name for entry in self.own_entries]

    def names(self) -> Mapping[str, Variable]:
        """Every known name, with a value or without; the global ones first, each layer's as registered."""
        return (
            {**self.entries, **{entry.name: entry for entry in self.own_entries}} if self.own_entries else self.entries
        )

    def entry(self, name: str) -> Variable | None:
        """The entry in force for a name."""
        own = next((entry for entry in self.own_entries if entry.name == name), None)
        return self.entries.get(name) if own is None else own


@dataclass(slots=True)
class Memo:
    """What the plans of one registry share: answers and parts of the global layer, digests, the order of tools seen."""

    baseline: Baseline | None = None
    digests: Digests = field(default_factory=Digests)
    names: dict[object, Names] = field(default_factory=dict[Any, Any])  # told by traces; see `trace`
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
        "base",
        "complete",
        "contexts",
        "demanding",
        "departures",
        "has_contexts",
        "kept_digest",
        "kept_trace",
        "layers",
        "memo",
        "overridden",
        "protected_sections",
        "protected_tools",
        "protections",
        "sections",
        "sensitive",
        "stable_head",
        "stamp",
        "suppressed",
        "suppressors",
        "tools",
        "variables",
        "weak_body",
    )

    def __init__(
        self, layers: tuple[PromptLayer, ...], base: Plan | None, memo: Memo, config: SystemPromptConfig
    ) -> None:
        self.layers = layers
        # numbers of layers only grow, so their sum is the same only while each of them is
        self.stamp = sum(map(_number, layers))
        self.memo = memo
        self.base = self if base is None else base  # the global layer's plan, on which this one stands
        if base is None:
            self._take_global(layers[0], by_name=config.section_ties == "name")
        else:
            self._take_scoped(base, layers[0].overrides, layers[1:], by_name=config.section_ties == "name")
        self._take_rules(layers)
        self.suppressed = bool(self.suppressors) or not config.include_runtime_context
        self.agenda = Agenda.of_global(self.asked_in_order()) if base is None else self._agenda_on(base)
        # settled texts aside, these are the ones that may need a tool, also where they need not be asked
        unsettled: list[Seat[Any]] = [*self.sections.unsettled, *self.contexts.unsettled]
        self.demanding: tuple[OrderedText, ...] = tuple([s.entry for s in unsettled if s.entry.requires_tools])
        self.has_contexts = not self.suppressed and bool(self.contexts.base or self.contexts.splices)
        self.departures: Departures | None = None  # from the last baseline; see `layout`
        self.stable_head: int | None = None  # in characters; see `stable`
        self.sensitive: tuple[frozenset[str], frozenset[str]] | None = None  # names; see `sensitive`
        self.kept_digest: tuple[object, str] | None = None  # the last one taken, and of what
        self.kept_trace: KeptTrace | None = None  # the last one read, and what it was read from; see `trace`
        self.weak_body: Callable[[], Body | None] = _nothing  # the last rendering's body, while somebody keeps it

    def _take_global(self, layer: PromptLayer, *, by_name: bool) -> None:
        self.overridden: list[tuple[OrderedText, Override]] = []
        edited = partial(_overridden, overrides=layer.overrides, noted=self.overridden)
        self.sections: Lineup[Section] = Lineup[Section].of_global(edited(layer.sections), by_name=by_name)
        self.contexts: Lineup[RuntimeContext] = Lineup[RuntimeContext].of_global(
            edited(layer.contexts), by_name=by_name
        )
        self.variables = _global_variables(layer.variables)
        self.complete: tuple[Section, ...] = tuple([each for each in self.sections.base if each.complete])

    def _take_scoped(
        self, base: Plan, overrides: Mapping[str, Override], scoped: tuple[PromptLayer, ...], *, by_name: bool
    ) -> None:
        self.overridden = base.overridden if not overrides else base.overridden.copy()
        edited = partial(_overridden, overrides=overrides, noted=self.overridden)
        self.sections = base.sections.extended([edited(layer.sections) for layer in scoped], by_name=by_name)
        self.contexts = base.contexts.extended([edited(layer.contexts) for layer in scoped], by_name=by_name)
        self.variables = _scoped_variables(base.variables, [layer.variables for layer in scoped])
        replaced = self.sections.replaced() if base.complete else ()
        complete = [each for each in base.complete if each not in replaced]
        self.complete = (*complete, *[each for each in self.sections.own() if each.complete])

    def _take_rules(self, layers: tuple[PromptLayer, ...]) -> None:
        """What simply adds up along the chain. Tuples made of lists: those have no room to spare."""
        self.tools: tuple[ToolSource, ...] = tuple([source for layer in layers for source in layer.tools])
        self.protections = tuple([each for layer in layers for each in layer.protections])
        self.protected_sections = frozenset([name for each in self.protections for name in each.sections]) or _NO_NAMES
        self.protected_tools = frozenset([name for each in self.protections for name in each.tools]) or _NO_NAMES
        self.suppressors: tuple[Suppressor, ...] = tuple([each for layer in layers for each in layer.suppressors])

    def _agenda_on(self, base: Plan) -> Agenda:
        variables, sections, contexts = self.variables, self.sections, self.contexts
        known = base.variables.entries
        hidden: list[Entry] = [known[name] for name in variables.own_names if name in known]
        hidden += sections.replaced()
        hidden += [seat.entry for seat in base.contexts.unsettled] if self.suppressed else contexts.replaced()
        own: list[Entry] = [entry for entry in variables.own_entries if not is_static(entry)]
        own += self.tools[len(base.tools) :]
        own += [entry for entry in sections.own() if not entry.is_settled()]
        own += [] if self.suppressed else [entry for entry in contexts.own() if not entry.is_settled()]
        return base.agenda.extended(hidden, own, self.asked_in_order)

    def asked_in_order(self) -> list[Entry]:
        """Whom a step asks, in the fixed order: variables, tools, sections, contexts."""
        texts: list[Seat[Any]] = [*self.sections.unsettled, *(() if self.suppressed else self.contexts.unsettled)]
        return [*self.variables.asked, *self.tools, *[seat.entry for seat in texts]]

    def holds(self, layers: tuple[PromptLayer, ...]) -> bool:
        """Whether this plan still tells what these layers hold."""
        return layers == self.layers and sum(map(_number, layers)) == self.stamp


def compile_plan(layers: tuple[PromptLayer, ...], base: Plan | None, memo: Memo, config: SystemPromptConfig) -> Plan:
    """The plan of a chain of layers, global first.

    Args:
        layers: the layers of the chain that have content.
        base: the plan of the global layer; None to make that one.
        memo: what all plans of a registry share.
        config: says what decides between equal orders.
    """
    return Plan(layers, base, memo, config)


def _overridden(
    entries: Iterable[Any], *, overrides: Mapping[str, Override], noted: list[tuple[OrderedText, Override]]
) -> Iterator[Any]:
    """The entries of a layer as the deployment wants them: some changed, some gone. What was done is noted."""
    if not overrides:
        yield from entries
        return
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
    asked = tuple([entry for entry in by_name.values() if not is_static(entry)])
    static: dict[str, str | None] = {
        entry.name: entry.provider.static for entry in by_name.values() if is_static(entry)
    }
    return Variables(static, _NO_VALUES, asked, (), by_name, ())


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
    return Variables(
        base.base,
        {entry.name: entry.provider.static for entry in own.values() if is_static(entry)} or _NO_VALUES,
        base.base_asked,
        tuple(shadows),
        base.entries,
        tuple(own.values()),
    )


def is_static(entry: Variable) -> bool:
    """Whether it need not be asked."""
    return entry.provider.call is None and entry.when is None


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


def _nothing() -> None:
    return None
