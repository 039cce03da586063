"""Stage 6, render: pure; an assembly in, text and spans out. No clock, no I/O, no registry.

`render_prompt` and its kin render any assembly, entry by entry. `render` is what the pipeline uses: it does the same
work, and keeps what is shared. The global layer's settled sections are rendered once for all scopes (`Baseline`), so a
step renders only what depends on it; and when nothing differs from the last rendering of the plan, that one's `Body`
comes back. Whatever is kept is keyed by everything it depends on; a property test holds it to an uncached rendering.
"""

from __future__ import annotations

import weakref
from itertools import compress
from operator import is_not
from typing import TYPE_CHECKING, Any, cast

from foreword.errors import PromptTooLargeError, RenderError
from foreword.prompt.difference import changed_stretch
from foreword.prompt.spans import SEPARATOR, Spans, spans_of
from foreword.prompt.text import within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from foreword.prompt.assembly import AssembledContext, AssembledSection, AssembledText, PromptAssembly
    from foreword.prompt.digest import Digests
    from foreword.prompt.draft import Draft
    from foreword.prompt.origin import Origin
    from foreword.prompt.plan import Lineup, Plan

__all__ = [
    "SNAPSHOT_OPENER",
    "Baseline",
    "Body",
    "join_context_sections",
    "render_body",
    "render_context_sections",
    "render_context_snapshot",
    "render_prompt",
]

SNAPSHOT_OPENER = "Current runtime context. This snapshot supersedes earlier runtime-context snapshots."

_FEW = 32  # sections up to which rendering each is cheaper than looking up which are rendered already


# -- any assembly ------------------------------------------------------------------------------------------------------


def render_prompt(assembly: PromptAssembly) -> str:
    """The system prompt: every section interpolated, empty ones dropped, the rest joined by one blank line.

    Raises:
        RenderError: the first fault of the first faulty section, with its place.
    """
    return SEPARATOR.join(filter(None, [section.render(assembly.variables) for section in assembly.sections]))


def render_context_sections(assembly: PromptAssembly) -> list[tuple[str, str]]:
    """The runtime contexts, interpolated: (name, text) of those that are not empty.

    Raises:
        RenderError: the first fault of the first faulty context, with its place.
    """
    rendered = [(context.name, context.render(assembly.variables)) for context in assembly.contexts]
    return [(name, text) for name, text in rendered if text]


def join_context_sections(sections: Iterable[tuple[str, str]]) -> str:
    """The snapshot of rendered runtime contexts: an opener, then their texts; empty when there are none."""
    texts = [text for _, text in sections if text]
    return SEPARATOR.join([SNAPSHOT_OPENER, *texts]) if texts else ""


def render_context_snapshot(assembly: PromptAssembly) -> str:
    """The runtime-context snapshot of an assembly; empty when no context has anything to say.

    Raises:
        RenderError: the first fault of the first faulty context, with its place.
    """
    return join_context_sections(render_context_sections(assembly))


# -- what renderings share ---------------------------------------------------------------------------------------------


class Body:
    """What equal renderings share: text and snapshot, and their spans and digest once somebody asks.

    Immutable. A plan refers to its last one weakly: it lives as long as somebody keeps a rendering that has it.
    """

    __slots__ = (
        "__weakref__",
        "_contexts",
        "_digest",
        "_sections",
        "_spans",
        "_speaks",
        "made_from",
        "parts",
        "setters",
        "snapshot",
        "text",
    )

    def __init__(
        self,
        parts: Sequence[str],
        snapshot_parts: Sequence[str],
        made_from: tuple[object, ...],
        setters: dict[str, Origin],
        sections: Callable[[], Sequence[AssembledSection]],
        contexts: Callable[[], Sequence[AssembledContext]],
    ) -> None:
        self._speaks = all(parts) and all(snapshot_parts)  # whether every section and context has something to say
        self.parts = tuple(parts if self._speaks else [part for part in parts if part])  # the sections' texts
        self.text = SEPARATOR.join(self.parts)
        told = [part for part in snapshot_parts if part]
        self.snapshot = SEPARATOR.join([SNAPSHOT_OPENER, *told]) if told else ""
        self.made_from = made_from  # the values, and all else that the text depends on
        self.setters = setters  # whose values those are that listeners set
        self._sections, self._contexts = sections, contexts
        self._digest: str | None = None
        self._spans: Spans | None = None

    @property
    def is_as_drafted(self) -> bool:
        """Whether the lists are those of the draft: no listener, and nobody by hand, has asked for them."""
        return self.made_from[-2:] == (None, None)

    @property
    def values(self) -> dict[str, str | None]:
        """What was spliced in."""
        return cast("dict[str, str | None]", self.made_from[0])

    @property
    def has_own_sections(self) -> bool:
        """Whether the list of sections is not the draft's: a listener, or somebody by hand, has asked for it."""
        return self.made_from[-2] is not None

    def sections(self) -> Sequence[AssembledSection]:
        """The sections in order, empty ones too."""
        return self._sections()

    def digest(self, digests: Digests) -> str:
        """The digest of the system text, over those of its sections; equal texts of equal sections have equal ones."""
        if self._digest is None:
            self._digest = digests.of_list(self.parts)
        return self._digest

    def spans(self, variable_origin: Callable[[str], Origin]) -> Spans:
        """The spans of the system text."""
        if self._spans is None:
            self._spans = spans_of(self.text, self._sections(), self.values, variable_origin)
        return self._spans

    def snapshot_spans(self, variable_origin: Callable[[str], Origin]) -> Spans:
        """The spans of the snapshot."""
        if not self.snapshot:
            return Spans()
        opener = SNAPSHOT_OPENER + SEPARATOR
        return spans_of(self.snapshot, self._contexts(), self.values, variable_origin, opener=opener)

    def entries(self) -> list[AssembledText]:
        """The sections, then the contexts, empty ones too."""
        return [*self.sections(), *self._contexts()]

    def empty(self) -> list[AssembledText]:
        """The sections and contexts that rendered to nothing."""
        if self._speaks:
            return []
        return [each for each in self.entries() if not each.render(self.values)]


class Baseline:
    """The global layer's sections, rendered for one set of variable values. Immutable.

    ``parts`` runs parallel to the global lineup. ``loose`` are the settled positions that could not be rendered for
    these values (an unknown or valueless variable, a malformed text): each step must see for itself.
    """

    __slots__ = ("_by_entry", "base", "loose", "parts", "ready", "users", "values")

    def __init__(
        self,
        base: Sequence[object],
        ready: Sequence[AssembledSection | None],
        users: dict[str, list[int]],
        values: dict[str, str | None],
        parts: list[str],
        loose: frozenset[int],
    ) -> None:
        self.base, self.ready, self.users = base, ready, users
        self.values, self.parts, self.loose = values, parts, loose
        self._by_entry: dict[int, str] | None = None

    @classmethod
    def of(cls, lineup: Lineup[Any], last: Baseline | None) -> Baseline:
        """The baseline of a global lineup, for the values of the last one, whose parts it takes over."""
        users: dict[str, list[int]] = {}
        for at, section in enumerate(lineup.ready):
            for name in () if section is None else dict.fromkeys(section.template.names):
                users.setdefault(name, []).append(at)
        values: dict[str, str | None] = {}
        known: dict[int, str] = {}
        if last is not None:
            values = {name: value for name, value in last.values.items() if name in users}
            known = last.part_of()
        parts = [known.get(id(section)) for section in lineup.ready]  # the last one keeps its sections: ids are unique
        new = [at for at, part in enumerate(parts) if part is None]
        bare = cls(lineup.base, lineup.ready, users, values, [part or "" for part in parts], frozenset())
        return bare._rendered(new, values)

    def adopting(self, values: dict[str, str | None]) -> Baseline:
        """This baseline with these values taken in: what refers to them is rendered again."""
        at = sorted({position for name in values for position in self.users.get(name, ())})
        return self._rendered(at, {**self.values, **values})

    def _rendered(self, positions: Iterable[int], values: dict[str, str | None]) -> Baseline:
        parts, loose = self.parts.copy(), set(self.loose)
        for at in positions:
            section = self.ready[at]
            if section is None:
                continue
            if section.template.lacks(values):  # mostly so before any value is known: no reason to word an error
                loose.add(at)
                continue
            try:
                parts[at] = section.render(values)
                loose.discard(at)
            except RenderError:  # told by the step that renders it, if one does
                loose.add(at)
        return Baseline(self.base, self.ready, self.users, values, parts, frozenset(loose))

    def positions_to_render(self, differing: Iterable[str]) -> frozenset[int]:
        """The settled positions whose part does not count where these variables have another value."""
        return self.loose.union(*(self.users.get(name, ()) for name in differing))

    def part_of(self) -> dict[int, str]:
        """The parts by the identity of their assembled section, without the loose ones."""
        if self._by_entry is None:
            self._by_entry = {
                id(section): self.parts[at]
                for at, section in enumerate(self.ready)
                if section is not None and at not in self.loose
            }
        return self._by_entry


def render_body(draft: Draft, assembly: PromptAssembly) -> Body:
    """Render what the pipeline assembled; the last body of the plan again, if all it depends on is equal.

    Raises:
        RenderError: the first fault of the first faulty section, else context.
        PromptTooLargeError: the text or the snapshot is over its limit.
    """
    sections, contexts, _ = assembly.listed()
    values = assembly.variables
    own_sections = None if sections is None else tuple(sections)
    own_contexts = None if contexts is None else tuple(contexts)
    setters = {} if draft.waterfall is None else draft.waterfall.setters()
    depends_on = (setters, draft.texts, draft.left_out, draft.unsupported, own_sections, own_contexts)
    last = draft.plan.weak_body()
    if last is not None and last.made_from == (values, *depends_on):
        return last
    told = draft.contexts() if own_contexts is None else own_contexts
    body = Body(
        _section_parts(draft, values, own_sections),
        [each.render_again(values) for each in told],
        (dict(values), *depends_on),  # a copy: whoever has the assembly may still change it
        setters,
        draft.sections if own_sections is None else lambda: own_sections,
        draft.contexts if own_contexts is None else lambda: own_contexts,
    )
    _hold_to_limit(draft, body.text, "the rendered prompt", body)
    _hold_to_limit(draft, body.snapshot, "the rendered runtime-context snapshot", body)
    draft.plan.weak_body = weakref.ref(body)
    return body


def _hold_to_limit(draft: Draft, text: str, what: str, body: Body) -> None:
    if len(text) * 4 <= draft.limits.rendered:
        return
    try:
        within(draft.limits.rendered, text, what)
    except PromptTooLargeError as error:
        largest = max(body.entries(), key=lambda each: len(each.render(body.values)))
        size = len(largest.render(body.values).encode())
        raise PromptTooLargeError(what, error.size, error.limit, f"{largest.ref} with {size:,}") from None


def _section_parts(draft: Draft, values: dict[str, str | None], listed: Sequence[AssembledSection] | None) -> list[str]:
    """The rendered sections, in order; some may be empty."""
    try:
        if listed is None:
            return _canonical_parts(draft, values)
        return _parts(draft, values, listed)
    except RenderError:
        # the fault to tell is the first in the order of the prompt, which is not the order of the work above
        for section in draft.sections() if listed is None else listed:
            section.render(values)
        raise


def _canonical_parts(draft: Draft, values: dict[str, str | None]) -> list[str]:
    """The rendered sections of a draft whose list nobody touched: the baseline's, but for what the step changes."""
    plan = draft.plan
    lineup, texts, unsupported = plan.sections, draft.texts, draft.unsupported

    def rendered(entry: Any) -> str:
        made = texts.get(entry)
        if made is not None and entry not in unsupported:
            return made.render_again(values)
        section = None if entry in unsupported else draft.assembled(entry)
        return "" if section is None else section.render(values)

    baseline, differing = _baseline(draft, values)
    parts = baseline.parts.copy()
    for at in _stale_positions(plan, baseline, differing):
        parts[at] = lineup.ready[at].render(values)
    for at, entry in lineup.placed:
        parts[at] = rendered(entry)
    return lineup.weave(parts, rendered)


def _stale_positions(plan: Plan, baseline: Baseline, differing: list[str]) -> tuple[int, ...]:
    """The global positions that the plan shows, and whose parts in the baseline do not count for these variables."""
    noted = plan.stale
    if noted is not None and noted[0] is baseline.users and noted[1] is baseline.loose and noted[2] == differing:
        return noted[3]
    positions = tuple(baseline.positions_to_render(differing) - plan.sections.hidden)
    plan.stale = (baseline.users, baseline.loose, differing, positions)
    return positions


def _parts(draft: Draft, values: dict[str, str | None], sections: Sequence[AssembledSection]) -> list[str]:
    """The rendered sections of a list that listeners may have changed."""
    if len(sections) <= _FEW:
        return [section.render(values) for section in sections]
    if not (draft.left_out or draft.unsupported):  # the parts run parallel to the list that listeners were given
        start, stop = changed_stretch(draft.canonical_sections(), sections)
        try:
            parts = _canonical_parts(draft, values)
        except RenderError:  # maybe of a section that a listener took out
            return [section.render(values) for section in sections]
        after = len(parts) - (len(sections) - stop)
        parts[start:after] = [section.render(values) for section in sections[start:stop]]
        return parts
    baseline, differing = _baseline(draft, values)
    known = baseline.part_of()
    stale = baseline.positions_to_render(differing)
    if stale:
        known = known.copy()
        for at in stale:
            known.pop(id(baseline.ready[at]), None)
    held = [known.get(id(section)) for section in sections]
    return [section.render(values) if part is None else part for part, section in zip(held, sections, strict=True)]


def _differing(values: dict[str, str | None], noted: dict[str, str | None]) -> list[str]:
    """The names that have another value in one of the two than in the other."""
    if values.keys() == noted.keys():
        there = map(noted.get, values)
        suspects = compress(values, map(is_not, values.values(), there))  # at the speed of C: mostly the same objects
        return [name for name in suspects if values[name] != noted[name]]
    differing = [name for name, value in values.items() if name not in noted or noted[name] != value]
    return differing + list(noted.keys() - values.keys())


def _baseline(draft: Draft, values: dict[str, str | None]) -> tuple[Baseline, list[str]]:
    """The global layer's parts, and the variables that have another value here than there.

    What is new to the global layer, or changed there, is taken in; what the scope contributes is not.
    """
    plan = draft.plan
    baseline = plan.memo.baseline
    if baseline is None or baseline.base is not plan.sections.base:
        baseline = Baseline.of(plan.sections, baseline)
    noted = baseline.values
    if values == noted:
        plan.memo.baseline = baseline
        return baseline, []
    differing = _differing(values, noted)
    own = plan.variables.own_names
    if any(name not in own for name in differing):
        users = baseline.users  # names that no global text refers to are not worth keeping
        news = {name: values[name] for name in differing if name in users and name not in own and name in values}
        if news:
            baseline = baseline.adopting(news)
            differing = [name for name in differing if name not in news]
    plan.memo.baseline = baseline
    return baseline, differing
