"""The trace: for each stage what came in, what left, and why. One truth, read by the log, the inspector and you.

It is always on and worked out when read: an assembly keeps references only. `Trace.to_json` is its deterministic part
(the same registrations give the same trace everywhere); how long providers took stands beside it in `timings`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from weakref import ref

if TYPE_CHECKING:
    from foreword.jsonvalue import JsonValue
    from foreword.prompt.contributions import Entry, ToolSchema, ToolSource
    from foreword.prompt.draft import Draft
    from foreword.prompt.origin import Origin
    from foreword.prompt.plan import Plan
    from foreword.prompt.render import Body
    from foreword.prompt.transform import Checkpoint, Waterfall

__all__ = ["Absence", "StageTrace", "Trace", "TraceEvent", "read_trace"]

Action: TypeAlias = Literal[
    "shadowed",
    "overridden",
    "left_out",
    "placeholder",
    "reused",
    "unchecked",
    "added",
    "removed",
    "changed",
    "moved",
    "restored",
    "empty",
]
_KINDS: Final = ("section", "context", "tool", "variable")
_MOST_NAMES_SHARED: Final = 64
_MOST_TRACES_KEPT: Final = 1024  # they share the names that they tell, so another one is small

Names: TypeAlias = "Mapping[str, tuple[str, ...]]"
"""Names by kind: sections, contexts, tools, variables."""


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One thing that happened to one entry."""

    stage: str
    action: Action
    kind: str  # "section", "context", "tool", "variable", "tool provider"
    name: str
    owner: str | None = None  # whose entry it is
    scope: str | None = None
    by: str | None = None  # who did it: a shadowing entry, a listener, a suppressor, a complete section
    reason: str | None = None  # "when", "suppressed", "complete", "requires_tools:NAME", "skipped: …"
    protected: bool = False  # an attempt on a protected entry; enforcement undid it

    def to_json(self) -> dict[str, JsonValue]:
        """The event as JSON, without what is empty."""
        fields: dict[str, JsonValue] = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in fields.items() if value not in (None, False)}

    def __str__(self) -> str:
        parts = [f'{self.stage}: {self.kind} "{self.name}"']
        parts += [] if self.owner is None else [f"of {self.owner}"]
        parts += [] if self.scope is None else [f"in scope {self.scope}"]
        parts.append(self.action.replace("_", " "))
        parts += [] if self.by is None else [f"by {self.by}"]
        parts += [] if self.reason is None else [f"({self.reason})"]
        parts += ["(protected)"] if self.protected else []
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class StageTrace:
    """One stage: the names that came in, the names that left, and what happened between."""

    stage: str
    entered: Names
    left: Names
    events: tuple[TraceEvent, ...]

    def to_json(self) -> dict[str, JsonValue]:
        """The stage as JSON."""
        return {
            "stage": self.stage,
            "entered": {kind: list(names) for kind, names in self.entered.items()},
            "left": {kind: list(names) for kind, names in self.left.items()},
            "events": [event.to_json() for event in self.events],
        }


@dataclass(frozen=True, slots=True)
class KeptTrace:
    """The trace that a plan keeps, and what it was read from: if that is equal, so is the trace."""

    at_a_glance: tuple[object, ...]  # what mostly stays from step to step: then nothing else need be looked at
    read_from: tuple[object, ...]
    trace: Trace


@dataclass(frozen=True, slots=True)
class Absence:
    """Why something is not in a prompt."""

    name: str
    reason: str  # "never registered", or the reason or action of the event that took it out
    event: TraceEvent | None = None

    def __str__(self) -> str:
        return f'"{self.name}" was never registered here' if self.event is None else str(self.event)


@dataclass(frozen=True, slots=True)
class Trace:
    """What each stage of one assembly did."""

    stages: tuple[StageTrace, ...]
    timings: Mapping[str, float] = field(default_factory=dict[str, float], compare=False)  # seconds, by provider
    # tools of providers that were left out, as they answered in earlier steps: told by `absence`, but no part of what
    # is logged or compared, since it depends on what went before
    remembered: tuple[TraceEvent, ...] = field(default=(), compare=False)

    @property
    def events(self) -> tuple[TraceEvent, ...]:
        """All events, stage by stage."""
        return tuple(event for stage in self.stages for event in stage.events)

    def about(self, name: str) -> tuple[TraceEvent, ...]:
        """The events of one name."""
        return tuple(event for event in self.events if event.name == name)

    def absence(self, name: str, kind: str | None = None) -> Absence | None:
        """Why a name is not in the prompt; None if it is. A kind looks only among entries of that kind."""
        kinds = ("section", "context", "tool", "variable") if kind is None else (kind,)
        if self.stages and any(name in self.stages[-1].left[f"{each}s"] for each in kinds):
            return None
        gone = [
            event
            for event in (*(each for each in self.remembered if each.name == name), *self.about(name))
            if event.kind in kinds and event.action in ("left_out", "removed", "empty", "shadowed")
        ]
        if not gone:
            return Absence(name, "never registered")
        return Absence(name, gone[-1].reason or gone[-1].action, gone[-1])

    def to_json(self) -> dict[str, JsonValue]:
        """The deterministic part, as JSON."""
        return {"stages": [stage.to_json() for stage in self.stages]}


def read_trace(draft: Draft | None, body: Body, tools: Sequence[ToolSchema]) -> Trace:
    """Work the trace out from what an assembly kept; empty for one that no registry made."""
    if draft is None:
        return Trace(())
    if draft.waterfall is not None or not body.is_as_drafted:
        return _read(draft, body, tools)
    noted = draft.plan.kept_trace
    at_a_glance = (body.made_from, draft.offered, tools, draft.unchecked_tools)
    if noted is not None and noted.at_a_glance == at_a_glance:
        return Trace(noted.trace.stages, draft.seconds, noted.trace.remembered)
    read_from = _read_from(draft, body, tools)
    is_as_before = noted is not None and noted.read_from == read_from
    trace = noted.trace if noted is not None and is_as_before else _read(draft, body, tools)
    _keep(draft.plan, KeptTrace(at_a_glance, read_from, trace))
    return Trace(trace.stages, draft.seconds, trace.remembered)


def _read_from(draft: Draft, body: Body, tools: Sequence[ToolSchema]) -> tuple[object, ...]:
    """All that the trace of an untouched draft depends on, beside its plan."""
    empty = [(each.KIND, each.name) for each in body.empty()]
    valueless = sorted([name for name, value in body.values.items() if value is None])
    outcome = (draft.left_out, draft.replaced, draft.reused, draft.unsupported, draft.remembered)
    return (*outcome, tools, draft.offered, draft.unchecked_tools, empty, valueless, sorted(body.values))


def _keep(plan: Plan, kept: KeptTrace) -> None:
    """Keep a plan's trace for its next step, which mostly goes the same way; of the plans that were read last."""
    traced = plan.memo.traced
    if plan.kept_trace is None:
        traced.append(ref(plan))
    plan.kept_trace = kept
    while len(traced) > _MOST_TRACES_KEPT:
        oldest = traced.popleft()()
        if oldest is not None:
            oldest.kept_trace = None


def _read(draft: Draft, body: Body, tools: Sequence[ToolSchema]) -> Trace:
    rendered = [*body.entries()]
    final = _names(
        draft,
        [each.name for each in rendered if each.KIND == "section"],
        [each.name for each in rendered if each.KIND == "context"],
        [tool.name for tool in tools],
        body.values,
    )
    collected = _collected(draft)
    transformed = collected if draft.waterfall is None else _checkpoint_names(draft, draft.waterfall, -1)
    valueless = [name for name, value in body.values.items() if value is None]
    empty = [TraceEvent("render", "empty", each.KIND, each.name, *_whose(each.origin)) for each in body.empty()]
    told_already = {entry.name for entry in draft.left_out if entry.KIND == "variable"}
    silent = sorted(set(valueless) - told_already)
    empty += [TraceEvent("render", "empty", "variable", name, reason="no value") for name in silent]
    gone = {(event.kind, event.name) for event in empty} | {("variable", name) for name in valueless}
    told = _shared(
        draft,
        {
            f"{kind}s": tuple([name for name in final[f"{kind}s"] if (kind, name) not in gone])
            if gone
            else final[f"{kind}s"]
            for kind in _KINDS
        },
    )
    stages = (
        _plan_stage(draft),
        StageTrace("collect", _planned(draft), collected, tuple(_collect_events(draft))),
        StageTrace("order", collected, collected, tuple(_order_events(draft))),
        StageTrace("transform", collected, transformed, tuple(_transform_events(draft))),
        StageTrace("enforce", transformed, final, tuple(_enforce_events(draft, transformed, final))),
        StageTrace("render", final, told, tuple(empty)),
    )
    return Trace(stages, draft.seconds, tuple(_tool_events(draft, draft.remembered)))


# -- what came in and what left ----------------------------------------------------------------------------------------


def _names(
    draft: Draft, sections: Iterable[str], contexts: Iterable[str], tools: Iterable[str], variables: Iterable[str]
) -> Names:
    names = {
        "sections": tuple(sections),
        "contexts": tuple(contexts),
        "tools": tuple(tools),
        "variables": tuple(sorted(variables)),
    }
    return _shared(draft, names)


def _shared(draft: Draft, names: Names) -> Names:
    """One object for all traces that tell these names: those of different scopes mostly do."""
    known = draft.plan.memo.names
    if len(known) >= _MOST_NAMES_SHARED:
        known.clear()
    return known.setdefault(tuple(names.values()), names)


def _planned(draft: Draft) -> Names:
    plan = draft.plan
    return _names(
        draft,
        [entry.name for entry in plan.sections],
        [entry.name for entry in plan.contexts],
        (),
        plan.variables.names(),
    )


def _collected(draft: Draft) -> Names:
    return _names(
        draft,
        [entry.name for entry in draft.canonical_sections()],
        [entry.name for entry in draft.canonical_contexts()],
        [tool.name for tool in draft.tools()],
        draft.plan.variables.names(),
    )


def _checkpoint_names(draft: Draft, waterfall: Waterfall, at: int) -> Names:
    checkpoint = waterfall.filled_in(waterfall.checkpoints[at])
    lists = [[entry.name for entry in entries or ()] for entries in _lists(checkpoint).values()]
    return _names(draft, lists[0], lists[1], lists[2], checkpoint.variables)


def _lists(checkpoint: Checkpoint) -> dict[str, tuple[Any, ...]]:
    return {
        "section": checkpoint.sections or (),
        "context": checkpoint.contexts or (),
        "tool": checkpoint.tools or (),
    }


# -- what happened -----------------------------------------------------------------------------------------------------


def _plan_stage(draft: Draft) -> StageTrace:
    plan = draft.plan
    shadows: list[tuple[Entry, Entry]] = [*plan.sections.shadows, *plan.contexts.shadows, *plan.variables.shadows]
    events = [
        TraceEvent("plan", "shadowed", hidden.KIND, hidden.name, *_whose(hidden.origin), by=str(by.ref))
        for hidden, by in shadows
    ]
    events += _override_events(draft)
    planned = _planned(draft)
    also = {f"{kind}s": [hidden.name for hidden, _ in shadows if kind == hidden.KIND] for kind in _KINDS}
    hidden_names = _shared(draft, {kind: (*names, *also[kind]) for kind, names in planned.items()})
    return StageTrace("plan", hidden_names, planned, tuple(events))


def _override_events(draft: Draft) -> Iterator[TraceEvent]:
    for entry, override in draft.plan.overridden:
        whose = _whose(entry.origin)
        if override.enabled:
            yield TraceEvent("plan", "overridden", entry.KIND, entry.name, *whose, by=str(override))
        else:
            yield TraceEvent("plan", "left_out", entry.KIND, entry.name, *whose, by=str(override), reason="disabled")


def _collect_events(draft: Draft) -> Iterator[TraceEvent]:
    for entry, why in draft.left_out.items():
        yield TraceEvent("collect", "left_out", entry.KIND, entry.name, *_whose(entry.origin), reason=why)
    for entry, why in draft.replaced.items():
        yield TraceEvent("collect", "placeholder", entry.KIND, entry.name, *_whose(entry.origin), reason=why)
    for entry, why in draft.reused.items():
        yield TraceEvent("collect", "reused", entry.KIND, entry.name, *_whose(entry.origin), reason=why)
    yield from _tool_events(draft, draft.tools_known)
    if draft.suppressed:
        suppressors = draft.plan.suppressors
        by = suppressors[-1].origin.owner if suppressors else "the configuration"
        for context in draft.plan.contexts:
            yield TraceEvent(
                "collect", "left_out", "context", context.name, *_whose(context.origin), by=by, reason="suppressed"
            )


def _tool_events(draft: Draft, known: Mapping[ToolSource, frozenset[str]]) -> Iterator[TraceEvent]:
    """The tools that providers are known to have and that are not among the tools."""
    for source in draft.plan.tools:  # in a fixed order, whoever was the first to answer
        names = known.get(source, frozenset())
        shown = {tool.name for tool in draft.tool_answers.get(source, ())}
        why = draft.left_out.get(source, "hidden")
        hiders = draft.offered.hiders.get(source, {})
        for name in sorted(names - shown):
            whose = _whose(draft.origin_of(source, name))
            yield TraceEvent("collect", "left_out", "tool", name, *whose, by=str(hiders.get(name, source)), reason=why)


def _order_events(draft: Draft) -> Iterator[TraceEvent]:
    for name in draft.unchecked_tools:
        reason = "nobody who answered knows this name in tool_order; it may be a tool of a provider that was left out"
        yield TraceEvent("order", "unchecked", "tool", name, reason=reason)


def _transform_events(draft: Draft) -> Iterator[TraceEvent]:
    if draft.waterfall is None:
        return
    protected = {"section": draft.plan.protected_sections, "tool": draft.plan.protected_tools}
    filled = [draft.waterfall.filled_in(checkpoint) for checkpoint in draft.waterfall.checkpoints]
    for before, after in pairwise(filled):
        if after.listener is None:
            continue
        by = str(after.listener.ref)
        for kind, entries in _lists(after).items():
            names = protected.get(kind, frozenset[str]())
            for action, entry in _differences(_lists(before)[kind], entries, names):
                whose = _whose(getattr(entry, "origin", None))
                yield TraceEvent("transform", action, kind, entry.name, *whose, by=by, protected=entry.name in names)
        for action, name in _variable_differences(before.variables, after.variables):
            yield TraceEvent("transform", action, "variable", name, by=by)


def _enforce_events(draft: Draft, transformed: Names, final: Names) -> Iterator[TraceEvent]:
    tried = [event for event in _transform_events(draft) if event.protected]
    for kind, name in dict.fromkeys((event.kind, event.name) for event in tried):
        by = "; ".join(f"{event.action} by {event.by}" for event in tried if (event.kind, event.name) == (kind, name))
        yield TraceEvent("enforce", "restored", kind, name, reason=by, protected=True)
    complete = draft.complete()
    if complete is not None:
        canonical = {entry.name: entry.origin for entry in draft.canonical_sections()}
        for name in dict.fromkeys((*canonical, *transformed["sections"])):
            if name != complete.name:
                whose = _whose(canonical.get(name))
                kept = name in draft.plan.protected_sections
                yield TraceEvent(
                    "enforce", "left_out", "section", name, *whose,
                    by=str(complete.ref), reason="complete", protected=kept,
                )  # fmt: skip
    if draft.suppressed:
        for name in transformed["contexts"]:
            yield TraceEvent("enforce", "left_out", "context", name, reason="suppressed")
    for entry, why in draft.unsupported.items():
        yield TraceEvent("enforce", "left_out", entry.KIND, entry.name, *_whose(entry.origin), reason=why)


def _differences(
    before: Sequence[Any], after: Sequence[Any], protected: frozenset[str]
) -> Iterator[tuple[Action, Any]]:
    """What turned one list of named entries into another. Namesakes are told apart by their count."""
    old, new = dict(_numbered(before)), dict(_numbered(after))
    for key, entry in old.items():
        if key not in new:
            yield "removed", entry
    for key, entry in new.items():
        if key not in old:
            yield "added", entry
        elif entry is not old[key] and entry != old[key]:
            yield "changed", old[key]
    common_before = [key for key in old if key in new]
    common_after = [key for key in new if key in old]
    if common_before == common_after:
        return
    stayed = _longest_common_order(common_before, common_after)
    for at, key in enumerate(common_after):
        # of a reversed list any entry may count as the one that stayed, but not a protected one
        is_guarded = key[0] in protected and set(common_after[:at]) != set(common_before[: common_before.index(key)])
        if key not in stayed or is_guarded:
            yield "moved", new[key]


def _numbered(entries: Iterable[Any]) -> Iterator[tuple[tuple[str, int], Any]]:
    seen: Counter[str] = Counter()
    for entry in entries:
        yield (entry.name, seen[entry.name]), entry
        seen[entry.name] += 1


def _longest_common_order(before: Sequence[tuple[str, int]], after: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
    """The largest set of keys that both lists hold in one order: a longest increasing subsequence, by patience."""
    place = {key: at for at, key in enumerate(before)}
    tops: list[int] = []  # of each pile, the index in `after` of its top card
    below: list[int | None] = []
    for at, key in enumerate(after):
        low, high = 0, len(tops)
        while low < high:
            middle = (low + high) // 2
            if place[after[tops[middle]]] < place[key]:
                low = middle + 1
            else:
                high = middle
        below.append(tops[low - 1] if low else None)
        tops[low : low + 1] = [at]
    kept: set[tuple[str, int]] = set()
    card = tops[-1] if tops else None
    while card is not None:
        kept.add(after[card])
        card = below[card]
    return kept


def _variable_differences(
    before: Mapping[str, str | None], after: Mapping[str, str | None]
) -> Iterator[tuple[Action, str]]:
    for name in sorted({*before, *after}):
        if name not in after:
            yield "removed", name
        elif name not in before:
            yield "added", name
        elif before[name] != after[name]:
            yield "changed", name


def _whose(origin: Origin | None) -> tuple[str | None, str | None]:
    return (None, None) if origin is None else (origin.owner, origin.scope)
