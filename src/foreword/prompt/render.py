"""Stage 6, render: pure; an assembly in, text and spans out. No clock, no I/O, no registry.

`render_prompt` and its kin render any assembly, entry by entry. `render_draft` and `render_body` are what the pipeline
uses: they do the same work, and keep what is shared. What the global layer says in every step is rendered once for all
scopes (`baseline`) and joined once for those of one shape (`layout`), so a step renders only what depends on it; and
when nothing differs from the last rendering of the plan, that one's `Body` comes back. Whatever is kept is keyed by
everything it depends on; a property test holds it to an uncached rendering.
"""

from __future__ import annotations

import weakref
from functools import partial
from itertools import compress
from operator import is_not
from typing import TYPE_CHECKING

from foreword.errors import PromptTooLargeError, RenderError
from foreword.prompt.assembly import render_each
from foreword.prompt.difference import changed_stretch
from foreword.prompt.digest import Digests
from foreword.prompt.layout import departures, edited, joined, woven
from foreword.prompt.spans import SEPARATOR, Spans, spans_of
from foreword.prompt.text import within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from foreword.prompt.assembly import AssembledContext, AssembledSection, AssembledText, PromptAssembly
    from foreword.prompt.draft import Draft
    from foreword.prompt.entries import Entries
    from foreword.prompt.origin import Origin
    from foreword.prompt.plan import Plan

__all__ = [
    "SNAPSHOT_OPENER",
    "Body",
    "join_context_sections",
    "render_body",
    "render_context_sections",
    "render_context_snapshot",
    "render_draft",
    "render_prompt",
]

SNAPSHOT_OPENER = "Current runtime context. This snapshot supersedes earlier runtime-context snapshots."

_NO_SETTERS: dict[str, Origin] = {}

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

    Immutable. A plan refers to its last one weakly: it lives as long as somebody keeps a rendering that has it. This is
    the body of lists; `DraftBody` is that of a draft whose lists nobody asked for.

    Attributes:
        text: the system text.
        snapshot: the runtime-context snapshot.
        values: what was spliced in.
        made_from: the values, and all else that the text depends on.
        setters: whose those values are that listeners set.
        is_as_drafted: nobody has asked for any list.
        has_own_sections: somebody has asked for the sections: a listener, or by hand.
    """

    __slots__ = (
        "__weakref__",
        "_contexts",
        "_digest",
        "_parts",
        "_said",
        "_sections",
        "_spans",
        "_told",
        "_weave",
        "has_own_sections",
        "is_as_drafted",
        "made_from",
        "setters",
        "snapshot",
        "text",
        "values",
    )

    def __init__(
        self,
        text: str,
        weave: Callable[[], Sequence[str]],
        told: Sequence[str],
        values: dict[str, str | None],
        made_from: tuple[object, ...],
        sections: Sequence[AssembledSection],
        contexts: Sequence[AssembledContext],
        setters: dict[str, Origin],
    ) -> None:
        self._take(text, weave, told, values, made_from)
        self._sections, self._contexts = sections, contexts
        self.has_own_sections, self.is_as_drafted = True, False
        self.setters = setters

    def _take(
        self,
        text: str,
        weave: Callable[[], Sequence[str]],
        told: Sequence[str],
        values: dict[str, str | None],
        made_from: tuple[object, ...],
    ) -> None:
        self.text = text
        self._weave = weave
        self._parts: Sequence[str] | None = None
        self._said: tuple[str, ...] | None = None
        self.snapshot = join_context_sections([("", part) for part in told]) if told else ""
        self.values = values
        self.made_from = made_from
        self._told = told  # the contexts' texts, in order, empty ones too
        self._digest: str | None = None
        self._spans: Spans | None = None

    def every_part(self) -> Sequence[str]:
        """The sections' texts in order, empty ones too."""
        if self._parts is None:
            self._parts = self._weave()
        return self._parts

    @property
    def parts(self) -> tuple[str, ...]:
        """The texts of the sections that have something to say."""
        if self._said is None:
            self._said = tuple([part for part in self.every_part() if part])
        return self._said

    def sections(self) -> Sequence[AssembledSection]:
        """The sections in order, empty ones too."""
        return self._sections

    def contexts(self) -> Sequence[AssembledContext]:
        """The contexts in order, empty ones too."""
        return self._contexts

    def digest(self, plan: Plan | None) -> str:
        """The digest of the system text, over those of its sections; equal texts of equal sections have equal ones.

        Args:
            plan: what it was made by, which keeps the last one.
        """
        if self._digest is None:
            self._digest = Digests().of_list(self.parts) if plan is None else plan.memo.digests.of_list(self.parts)
        return self._digest

    def spans(self, variable_origin: Callable[[str], Origin]) -> Spans:
        """The spans of the system text."""
        if self._spans is None:
            self._spans = spans_of(self.text, self.sections(), self.values, variable_origin)
        return self._spans

    def snapshot_spans(self, variable_origin: Callable[[str], Origin]) -> Spans:
        """The spans of the snapshot."""
        if not self.snapshot:
            return Spans()
        opener = SNAPSHOT_OPENER + SEPARATOR
        return spans_of(self.snapshot, self.contexts(), self.values, variable_origin, opener=opener)

    def entries(self) -> list[AssembledText]:
        """The sections, then the contexts, empty ones too."""
        return [*self.sections(), *self.contexts()]

    def empty(self) -> list[AssembledText]:
        """The sections and contexts that rendered to nothing."""
        if all(self.every_part()) and all(self._told):
            return []
        return [each for each in self.entries() if not each.render(self.values)]


class DraftBody(Body):
    """The body of a draft whose lists nobody asked for. Lists and parts are made when they are asked for."""

    __slots__ = ("_draft",)

    def __init__(
        self,
        text: str,
        weave: Callable[[], Sequence[str]],
        told: Sequence[str],
        made_from: tuple[object, ...],
        draft: Draft,
    ) -> None:
        self._take(text, weave, told, draft.values, made_from)
        self._draft = draft
        self.setters = _NO_SETTERS
        self.is_as_drafted, self.has_own_sections = True, False

    def sections(self) -> Sequence[AssembledSection]:
        return self._draft.sections()

    def contexts(self) -> Sequence[AssembledContext]:
        return self._draft.contexts()

    def digest(self, plan: Plan | None) -> str:
        if self._digest is None and plan is not None:
            kept = plan.kept_digest
            if kept is None or kept[0] != self.made_from:
                kept = plan.kept_digest = self.made_from, super().digest(plan)
            self._digest = kept[1]
        return super().digest(plan)


def render_draft(draft: Draft) -> Body:
    """Render a draft that nobody has touched, and of whose lists none was asked for: the way of most steps.

    Raises:
        RenderError: the first fault of the first faulty section, else context.
        PromptTooLargeError: the text or the snapshot is over its limit.
    """
    plan, baseline, values = draft.plan, draft.baseline, draft.values
    made_from = draft.identity()
    last = plan.weak_body()
    if last is not None and last.made_from == made_from:
        return last
    where = plan.departures
    if where is None or where.token is not baseline.token:
        where = departures(plan, baseline)
    try:
        own = where.rendered(draft, values)
    except RenderError as fault:
        raise _first_fault(draft.sections(), values, fault) from None
    told = [each.render_again(values) for each in draft.contexts()] if plan.has_contexts else ()
    text = joined(baseline, where.shape, own)
    body = DraftBody(text, partial(woven, baseline, where.shape, own), told, made_from, draft)
    if (len(text) + len(body.snapshot)) * 4 > draft.limits.rendered:
        _hold_to_limits(draft, body)
    plan.weak_body = weakref.ref(body)
    return body


def render_body(draft: Draft, assembly: PromptAssembly) -> Body:
    """Render what the pipeline assembled; the last body of the plan again, if all it depends on is equal.

    Raises:
        RenderError: the first fault of the first faulty section, else context.
        PromptTooLargeError: the text or the snapshot is over its limit.
    """
    sections, contexts, _ = assembly.listed()
    values = assembly.variables
    if sections is None and contexts is None and values == draft.values:
        return render_draft(draft)
    own_sections = None if sections is None else sections.state()
    own_contexts = None if contexts is None else contexts.state()
    setters = {} if draft.waterfall is None else draft.waterfall.setters()
    depends_on = (setters, draft.texts, draft.left_out, draft.unsupported, own_sections, own_contexts)
    last = draft.plan.weak_body()
    if last is not None and last.made_from == (values, *depends_on):
        return last
    held = dict(values)  # a copy: whoever has the assembly may still change it
    text, weave = _section_texts(draft, held, sections)
    all_contexts: Sequence[AssembledContext] = draft.contexts() if own_contexts is None else own_contexts
    all_sections: Sequence[AssembledSection] = draft.sections() if own_sections is None else own_sections
    told = [each.render_again(held) for each in all_contexts]
    body = Body(text, weave, told, held, (held, *depends_on), all_sections, all_contexts, setters)
    body.has_own_sections = own_sections is not None
    body.is_as_drafted = own_sections is None and own_contexts is None
    _hold_to_limits(draft, body)
    draft.plan.weak_body = weakref.ref(body)
    return body


def _hold_to_limits(draft: Draft, body: Body) -> None:
    _hold_to_limit(draft, body.text, "the rendered prompt", body)
    _hold_to_limit(draft, body.snapshot, "the rendered runtime-context snapshot", body)


def _hold_to_limit(draft: Draft, text: str, what: str, body: Body) -> None:
    try:
        within(draft.limits.rendered, text, what)
    except PromptTooLargeError as error:
        largest = max(body.entries(), key=lambda each: len(each.render(body.values)))
        size = len(largest.render(body.values).encode())
        raise PromptTooLargeError(what, error.size, error.limit, f"{largest.ref} with {size:,}") from None


def _section_texts(
    draft: Draft, values: dict[str, str | None], listed: Entries[AssembledSection] | None
) -> tuple[str, Callable[[], Sequence[str]]]:
    """The system text, and what gives the sections' texts in order, empty ones too."""
    try:
        if listed is not None and (len(listed) <= _FEW or draft.left_out or draft.unsupported):
            return _each(listed, values)
        return _shared_texts(draft, values, listed)
    except RenderError as fault:
        if listed is not None:  # maybe of a section that a listener took out
            return _each(listed, values)
        raise _first_fault(draft.sections(), values, fault) from None


def _each(sections: Sequence[AssembledSection], values: dict[str, str | None]) -> tuple[str, Callable[[], list[str]]]:
    parts = render_each(sections, values)
    return SEPARATOR.join(filter(None, parts)), lambda: parts


def _first_fault(
    sections: Iterable[AssembledSection], values: dict[str, str | None], found: RenderError
) -> RenderError:
    """The fault that is the first in the order of the prompt, which is not the order in which we work."""
    try:
        for section in sections:
            section.render(values)
    except RenderError as first:
        return first
    return found


def _shared_texts(
    draft: Draft, values: dict[str, str | None], listed: Entries[AssembledSection] | None
) -> tuple[str, Callable[[], list[str]]]:
    """The texts of the baseline's parts, but for what the step changes, and what was edited in the list of sections."""
    plan, baseline = draft.plan, draft.baseline
    own = plan.variables.own_names
    changed = [name for name in _differing(values, baseline.values) if name not in own and name in baseline.values]
    where = departures(plan, baseline, changed)
    shape, parts = where.shape, where.rendered(draft, values)
    if listed is not None:  # the parts run parallel to the list that listeners were given
        canonical = draft.canonical_sections()
        start, stop = changed_stretch(canonical, listed, listed.untouched(canonical))
        stop_before = len(canonical) - (len(listed) - stop)
        shape, parts = edited(baseline, shape, parts, start, stop_before, render_each(listed[start:stop], values))
    return joined(baseline, shape, parts), partial(woven, baseline, shape, parts)


def _differing(values: dict[str, str | None], noted: dict[str, str | None]) -> list[str]:
    """The names that have another value in one of the two than in the other."""
    if values.keys() == noted.keys():
        there = map(noted.get, values)
        suspects = compress(values, map(is_not, values.values(), there))  # at the speed of C: mostly the same objects
        return [name for name in suspects if values[name] != noted[name]]
    differing = [name for name, value in values.items() if name not in noted or noted[name] != value]
    return differing + list(noted.keys() - values.keys())
