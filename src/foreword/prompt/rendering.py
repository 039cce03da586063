"""What an assembly renders to: text, snapshot, tools; and, when asked, where every character comes from.

Text and snapshot are there at once, since rendering is strict. Spans, digest and trace are worked out when read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.errors import EntryRef, TextNotFoundError
from foreword.prompt.origin import ASSEMBLER, Origin
from foreword.prompt.render import Body, render_body
from foreword.prompt.sensitive import masked_parts, masked_spans, sensitive_names
from foreword.prompt.spans import SEPARATOR
from foreword.prompt.stable import stable_head
from foreword.prompt.trace import Absence, Trace, read_trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foreword.prompt.assembly import PromptAssembly
    from foreword.prompt.contributions import ToolSchema
    from foreword.prompt.draft import Draft
    from foreword.prompt.spans import Span, Spans

__all__ = ["Rendering", "render"]


def render(assembly: PromptAssembly) -> Rendering:
    """Render an assembly, whole.

    Args:
        assembly: of a `SystemPrompt`, or made by hand (then the trace is empty).

    Returns:
        The rendering; it does not change when the assembly does.

    Raises:
        RenderError: the first fault of the first faulty section, else context.
        PromptTooLargeError: the text or the snapshot is over its limit.
    """
    draft = assembly.draft
    if draft is not None:
        return Rendering(render_body(draft, assembly), _tools(assembly), draft)
    sections, contexts = tuple(assembly.sections), tuple(assembly.contexts)
    values = assembly.variables
    parts = [section.render(values) for section in sections]
    text = SEPARATOR.join(filter(None, parts))
    body = Body(
        text, lambda: parts, [told.render(values) for told in contexts], dict(values), (), sections, contexts, {}
    )
    return Rendering(body, _tools(assembly), None)


class Rendering:
    """What the model is told: the system text, the runtime-context snapshot, the tools. Immutable."""

    __slots__ = ("_body", "_draft", "_trace", "tools")

    def __init__(self, body: Body, tools: tuple[ToolSchema, ...], draft: Draft | None) -> None:
        self._body, self._draft = body, draft
        self._trace: Trace | None = None
        self.tools = tools

    @property
    def text(self) -> str:
        """The system text; empty if no section has anything to say."""
        return self._body.text

    @property
    def sections(self) -> tuple[str, ...]:
        """The texts of the sections that have something to say; a blank line between them makes `text`."""
        return self._body.parts

    @property
    def stable_head(self) -> int:
        """How many characters of `text`, from its start, are the same in every step, for all who share its sections.

        It ends with the last section before the first one that has a provider, a condition or a variable that is no
        plain value, or that a listener has changed. 0 for an assembly that was made by hand.
        """
        draft = self._draft
        return 0 if draft is None else stable_head(draft, self._body)

    @property
    def snapshot(self) -> str:
        """The runtime-context snapshot; empty if no context has anything to say. Never part of the system text."""
        return self._body.snapshot

    @property
    def digest(self) -> str:
        """BLAKE2b-256 over the digests of the system text's sections, in hex."""
        return self._body.digest(None if self._draft is None else self._draft.plan)

    @property
    def spans(self) -> Spans:
        """Who put which stretch of the system text there; they cover it without gap or overlap."""
        return self._body.spans(self._variable_origin)

    @property
    def snapshot_spans(self) -> Spans:
        """The same for the snapshot."""
        return self._body.snapshot_spans(self._variable_origin)

    @property
    def masks(self) -> Mapping[int, str]:
        """How the sections read that hold the value of a sensitive variable, to whoever is not to see it.

        By their positions in `sections`; there is no entry for a section that everybody may see.
        """
        variables, _ = self.sensitive
        return masked_parts(self.spans, self.masked_spans) if variables else {}

    @property
    def snapshot_masks(self) -> Mapping[int, str]:
        """The same for the runtime contexts that the snapshot tells: those that are sensitive, or hold such a value."""
        return masked_parts(self.snapshot_spans, self.masked_snapshot_spans) if any(self.sensitive) else {}

    @property
    def masked_spans(self) -> Spans:
        """As `spans`, of the system text with the values of sensitive variables masked."""
        variables, _ = self.sensitive
        return masked_spans(self.spans, variables) if variables else self.spans

    @property
    def masked_snapshot_spans(self) -> Spans:
        """As `snapshot_spans`, of the snapshot with sensitive contexts and values masked."""
        variables, contexts = self.sensitive
        return masked_spans(self.snapshot_spans, variables, contexts) if variables or contexts else self.snapshot_spans

    @property
    def sensitive(self) -> tuple[frozenset[str], frozenset[str]]:
        """The names of the variables and of the runtime contexts in force that are sensitive."""
        return (frozenset(), frozenset()) if self._draft is None else sensitive_names(self._draft.plan)

    @property
    def trace(self) -> Trace:
        """What each stage did, and why."""
        if self._trace is None:
            self._trace = read_trace(self._draft, self._body, self.tools)
        return self._trace

    @property
    def dropped(self) -> tuple[EntryRef, ...]:
        """The sections and contexts that rendered to nothing."""
        return tuple(entry.ref for entry in self._body.empty())

    @property
    def tool_origins(self) -> tuple[Origin | None, ...]:
        """Who brought each of the `tools`, in their order; None where nobody can say."""
        draft = self._draft
        if draft is None:
            return (None,) * len(self.tools)
        answers = draft.tool_answers.items()
        brought = {id(tool): draft.origin_of(source, tool.name) for source, tools in answers for tool in tools}
        waterfall = draft.waterfall
        return tuple(
            brought.get(id(tool)) or (None if waterfall is None else waterfall.bringer_of(tool)) for tool in self.tools
        )

    def owner_of(self, text: str) -> tuple[Span, ...]:
        """The spans behind the first place where a stretch of text stands in the system text, cut to that stretch.

        Raises:
            TextNotFoundError: the system text does not hold it.
        """
        start = self.text.find(text)
        if start < 0 or not text:
            raise TextNotFoundError(text, "the system text", "it is matched to the letter")
        return self.spans.between(start, start + len(text))

    def missing(self, name: str, kind: str | None = None) -> Absence | None:
        """Why a section, context, tool or variable of that name is not there (a variable: has no value); None if it is.

        Args:
            name: which.
            kind: ``"section"``, ``"context"``, ``"tool"`` or ``"variable"``, where one name stands for several.
        """
        return self.trace.absence(name, kind)

    def explains_as(self, other: Rendering) -> bool:
        """Whether texts, spans, origins and trace are those of another rendering, told without working them out.

        False may also mean that it cannot be told so cheaply.
        """
        mine, others = self._draft, other._draft
        return (
            self._body is other._body
            and self.tools == other.tools
            and mine is not None
            and others is not None
            and mine.explains_as(others)
        )

    def _variable_origin(self, name: str) -> Origin:
        draft = self._draft
        if draft is None:
            return ASSEMBLER
        entry = draft.plan.variables.entry(name)
        return self._body.setters.get(name) or (ASSEMBLER if entry is None else entry.origin)

    def __repr__(self) -> str:
        return (
            f"<Rendering: {len(self.text):,} characters, {len(self.snapshot):,} of snapshot, {len(self.tools)} tools>"
        )


def _tools(assembly: PromptAssembly) -> tuple[ToolSchema, ...]:
    listed = assembly.listed()[2]
    if listed is None and assembly.draft is not None:
        return assembly.draft.tools()
    return tuple(assembly.tools)
