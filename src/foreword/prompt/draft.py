"""One step on top of a plan: who was left out, what the providers said.

Stages 2 and 3 fill a `Draft` in; an assembly's lists are made from it when somebody first asks for them. Most steps
never do: rendering reads the draft as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from foreword.errors import InvalidToolSchemaError
from foreword.prompt.checks import checked_schemas
from foreword.prompt.contributions import Entry, OrderedText, ToolProviderResult, ToolSource, Variable
from foreword.prompt.text import described, plain_string, refuse_awaitable, within

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from foreword.errors import EntryRef
    from foreword.kernel.scope import ScopeKey
    from foreword.prompt.assembly import AssembledContext, AssembledSection
    from foreword.prompt.context import AssembleContext
    from foreword.prompt.contributions import Section, ToolSchema
    from foreword.prompt.origin import Origin
    from foreword.prompt.plan import Lineup, Plan
    from foreword.prompt.registry import Registry
    from foreword.prompt.transform import Waterfall

__all__ = ["Draft"]

T = TypeVar("T", "AssembledSection", "AssembledContext")


class Draft:
    """What one step's conditions and providers said."""

    __slots__ = (
        "_canonical_sections",
        "_surely_within",
        "context",
        "left_out",
        "limits",
        "ordered_tools",
        "plan",
        "registry",
        "remembered",
        "replaced",
        "reused",
        "scope",
        "seconds",
        "suppressed",
        "texts",
        "tool_answers",
        "tool_hiders",
        "tool_origins",
        "tools_known",
        "unchecked_tools",
        "unsupported",
        "values",
        "waterfall",
    )

    def __init__(self, registry: Registry, scope: ScopeKey, plan: Plan, context: AssembleContext) -> None:
        self.registry, self.scope, self.plan, self.context = registry, scope, plan, context
        self.limits = limits = registry.config.limits
        self._surely_within = min(limits.text, limits.value) // 4  # in code points, which have at most 4 bytes
        self.suppressed = bool(plan.suppressors) or not registry.config.include_runtime_context
        self.left_out: dict[Entry, str] = {}  # and why: "when" or "skipped: …"
        self.unsupported: dict[Entry, str] = {}  # and why: "requires_tools:NAME"; filled in by stage 5
        self.replaced: dict[Entry, str] = {}  # by a placeholder, and why
        self.reused: dict[Entry, str] = {}  # a last good answer, and why
        self.values: dict[str, str | None] = plan.variables.static_values()
        self.texts: dict[OrderedText, AssembledSection | AssembledContext] = {}  # of those that have a provider
        self.tool_answers: dict[ToolSource, tuple[ToolSchema, ...]] = {}
        self.tool_origins: dict[ToolSource, Mapping[str, Origin]] = {}  # of tools that are not the provider's own
        self.tool_hiders: dict[ToolSource, Mapping[str, EntryRef]] = {}
        self.tools_known: dict[ToolSource, frozenset[str]] = {}  # of those that answered, and of static ones
        self.remembered: dict[ToolSource, frozenset[str]] = {}  # of those left out: what they answered some time before
        self.unchecked_tools: tuple[str, ...] = ()  # names of tool_order that nobody vouched for in this step
        self.ordered_tools: tuple[ToolSchema, ...] = ()  # filled in by stage 3
        self._canonical_sections: tuple[AssembledSection, ...] | None = None
        self.waterfall: Waterfall | None = None  # stage 4, if there were listeners
        self.seconds: dict[str, float] = {}  # how long providers took: shown, never compared or logged

    # -- what an assembly's lists are made from ------------------------------------------------------------------------

    def sections(self) -> Sequence[AssembledSection]:
        """The sections in force, in canonical order."""
        return self._supported(self.canonical_sections(), "section")

    def contexts(self) -> Sequence[AssembledContext]:
        """The runtime contexts in force, in canonical order."""
        return self._supported(self.canonical_contexts(), "context")

    def canonical_sections(self) -> tuple[AssembledSection, ...]:
        """The sections that go into the waterfall; only when every answer is in, since they are kept."""
        if self._canonical_sections is None:
            self._canonical_sections = tuple(self._list(self.plan.sections))
        return self._canonical_sections

    def canonical_contexts(self) -> Sequence[AssembledContext]:
        """The runtime contexts that go into the waterfall."""
        contexts = self.plan.contexts
        return [] if self.suppressed or not (contexts.base or contexts.splices) else self._list(contexts)

    def tools(self) -> tuple[ToolSchema, ...]:
        """The tool schemas, in canonical order."""
        return self.ordered_tools

    def known_tools(self) -> set[str]:
        """The names that are known in this step, whatever went before: of those that answered, and of static ones."""
        return {name for names in self.tools_known.values() for name in names}

    def complete(self) -> Section | None:
        """The complete section in force, if there is one."""
        return next((section for section in self.plan.complete if section not in self.left_out), None)

    def assembled(self, entry: OrderedText) -> Any:
        """The assembled entry of a section or context; None if it is left out."""
        if entry in self.left_out:
            return None
        made = self.texts.get(entry)
        return made if made is not None else entry.assembled_static()

    def _list(self, lineup: Lineup[Any]) -> list[Any]:
        made = list(lineup.ready)
        for seat in lineup.unsettled:
            if seat.position is not None:
                made[seat.position] = self.assembled(seat.entry)
        lineup.weave(made, self.assembled)
        return [entry for entry in made if entry is not None] if self.left_out else made

    def _supported(self, entries: Sequence[T], kind: str) -> Sequence[T]:
        gone = {entry.name for entry in self.unsupported if kind == entry.KIND}
        return [entry for entry in entries if entry.name not in gone] if gone else entries

    def explains_as(self, other: Draft) -> bool:
        """Whether a trace of this draft and its body would tell what one of the other draft with that body does."""
        waterfalls = (self.waterfall, other.waterfall)
        changes = [None if waterfall is None else waterfall.checkpoints for waterfall in waterfalls]
        return (
            self.plan is other.plan
            and self.replaced == other.replaced
            and self.reused == other.reused
            and self.tool_answers == other.tool_answers
            and self.tool_origins == other.tool_origins
            and self.tool_hiders == other.tool_hiders
            and self.tools_known == other.tools_known
            and self.unchecked_tools == other.unchecked_tools
            and changes[0] == changes[1]
        )

    # -- answers -------------------------------------------------------------------------------------------------------

    def accept(self, entry: Entry, answer: object) -> None:
        """Hold an answer to what its kind must be, and keep it.

        Raises:
            ForewordError: it is no such thing, or too large; counts as a failure of the provider.
        """
        if isinstance(entry, OrderedText):
            self.accept_text(entry, answer)
        elif isinstance(entry, Variable):
            self.accept_value(entry, answer)
        elif isinstance(entry, ToolSource):
            self.accept_tools(entry, answer)

    def accept_text(self, entry: OrderedText, answer: object) -> None:
        """`accept` for a section or context."""
        if type(answer) is not str or len(answer) > self._surely_within:
            answer = self._checked(answer, self.limits.text, f"the text of {entry.KIND} {entry.name}")
        self.texts[entry] = entry.assembled(answer)

    def accept_value(self, entry: Variable, answer: object) -> None:
        """`accept` for a variable."""
        if answer is not None and (type(answer) is not str or len(answer) > self._surely_within):
            answer = self._checked(answer, self.limits.value, f"the value of variable {entry.name}")
        self.values[entry.name] = answer

    @staticmethod
    def _checked(answer: object, limit: int, what: str) -> str:
        text = plain_string(answer, what)
        within(limit, text, what)
        return text

    def accept_tools(self, source: ToolSource, answer: object) -> None:
        """`accept` for a tool provider."""
        memory = source.memory
        frozen = memory.frozen
        if frozen is not None and answer is frozen[0]:
            result, self.tool_answers[source], self.tools_known[source] = frozen
            if type(result) is ToolProviderResult:
                self.tool_origins[source], self.tool_hiders[source] = result.origins, result.hidden_by
            return
        given, is_frozen = answer, _cannot_change(answer)
        refuse_awaitable(answer, "the answer of a tool provider")
        if not isinstance(answer, (ToolProviderResult, list, tuple)):
            why = f"it gives {described(answer)}; return ToolProviderResult(schemas=[…])"
            raise InvalidToolSchemaError(None, why)
        result = answer if isinstance(answer, ToolProviderResult) else ToolProviderResult(answer)  # pyright: ignore[reportUnknownArgumentType]
        schemas, known = checked_schemas(result, source, answering=True)
        memory.frozen = (given, schemas, known) if is_frozen else None
        memory.schemas, memory.known = schemas, known
        self.tool_answers[source], self.tools_known[source] = schemas, known
        self.tool_origins[source], self.tool_hiders[source] = result.origins, result.hidden_by

    def answer_of(self, entry: Entry) -> Any:
        """What an entry answered in this step, checked; `put_again` takes it back."""
        if isinstance(entry, ToolSource):
            told = self.tool_origins.get(entry, {}), self.tool_hiders.get(entry, {})
            return self.tool_answers[entry], self.tools_known[entry], *told
        return self.texts[entry].text if isinstance(entry, OrderedText) else self.values[entry.name]

    def put_again(self, entry: Entry, answer: Any, why: str) -> None:
        """Put an earlier answer in the place of one that failed."""
        self.reused[entry] = why
        if isinstance(entry, ToolSource):
            self.tool_answers[entry], self.tools_known[entry], origins, hiders = answer
            self.tool_origins[entry], self.tool_hiders[entry] = origins, hiders
        elif isinstance(entry, OrderedText):
            self.texts[entry] = entry.assembled(answer)
        else:
            self.values[entry.name] = answer

    def origin_of(self, source: ToolSource, tool: str) -> Origin:
        """Who brought a tool of a provider: the provider's own origin, unless it tells of another."""
        return self.tool_origins.get(source, {}).get(tool, source.origin)

    def leave_out(self, entry: Entry, why: str) -> None:
        """Note that an entry takes no part in this step."""
        self.left_out[entry] = why
        if isinstance(entry, Variable):
            self.values[entry.name] = None
        elif isinstance(entry, ToolSource) and entry.memory.known is not None:
            kept = self.tools_known if entry.provider.call is None else self.remembered
            kept[entry] = entry.memory.known

    def put_placeholder(self, entry: Entry, text: str, why: str) -> None:
        """Put a placeholder's text, verbatim, in the place of an answer that failed."""
        self.replaced[entry] = why
        if isinstance(entry, OrderedText):
            self.texts[entry] = entry.assembled(text, verbatim=True)
        else:
            self.values[entry.name] = text


def _cannot_change(answer: object) -> bool:
    """Whether a tool provider's answer, given again, must be what it was: nobody can put other schemas into it."""
    if type(answer) is ToolProviderResult:
        return type(answer.schemas) is tuple and type(answer.known_names) in (frozenset, tuple, type(None))
    return type(answer) is tuple
