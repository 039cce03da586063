"""One step on top of a plan: who was left out, what the providers said.

Stages 2 and 3 fill a `Draft` in; an assembly's lists are made from it when somebody first asks for them. Most steps
never do: rendering reads the draft as it is.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from foreword.errors import InvalidToolSchemaError
from foreword.prompt.baseline import baseline_of
from foreword.prompt.checks import checked_schemas
from foreword.prompt.contributions import Entry, OrderedText, ToolProviderResult, ToolSource, Variable
from foreword.prompt.text import described, plain_string, refuse_awaitable, within
from foreword.prompt.tool_answers import ToolAnswers

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

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

_NOTHING: Final = cast("dict[Any, Any]", MappingProxyType[Any, Any]({}))
"""Nothing out of the ordinary happened, as in most steps. Nobody can write into it by mistake."""


class Draft:
    """What one step's conditions and providers said: the baseline's answers, and what is otherwise in this step.

    Attributes:
        baseline: the answers that this step shares with others.
        values: every variable in force; None for one that has no value.
        texts: the assembled entries of the texts that are asked.
        offered: the answers of the tool providers.
        told: the answers that the baseline does not have, as accepted, by their places.
    """

    __slots__ = (
        "_canonical_contexts",
        "_canonical_sections",
        "_owns_offered",
        "baseline",
        "context",
        "left_out",
        "limits",
        "offered",
        "ordered_tools",
        "plan",
        "registry",
        "remembered",
        "replaced",
        "reused",
        "scope",
        "seconds",
        "texts",
        "told",
        "unchecked_tools",
        "unsupported",
        "values",
        "waterfall",
    )

    def __init__(self, registry: Registry, scope: ScopeKey, plan: Plan, context: AssembleContext) -> None:
        self.registry, self.scope, self.plan, self.context = registry, scope, plan, context
        self.limits = registry.config.limits
        self.baseline = baseline = baseline_of(plan)
        self.values: dict[str, str | None] = baseline.values | plan.variables.own
        self.texts: dict[OrderedText, AssembledSection | AssembledContext] = baseline.texts.copy()
        self.offered, self._owns_offered = baseline.offered, False
        self.told: list[object] = []
        self.left_out: dict[Entry, str] = _NOTHING  # and why: "when" or "skipped: …"
        self.unsupported: dict[Entry, str] = _NOTHING  # and why: "requires_tools:NAME"; filled in by stage 5
        self.replaced: dict[Entry, str] = _NOTHING  # by a placeholder, and why
        self.reused: dict[Entry, str] = _NOTHING  # a last good answer, and why
        self.remembered: dict[ToolSource, frozenset[str]] = _NOTHING  # of those left out: what they answered before
        self.unchecked_tools: tuple[str, ...] = ()  # names of tool_order that nobody vouched for in this step
        self.ordered_tools: tuple[ToolSchema, ...] = ()  # filled in by stage 3
        self._canonical_sections: tuple[AssembledSection, ...] | None = None
        self._canonical_contexts: tuple[AssembledContext, ...] | None = None
        self.waterfall: Waterfall | None = None  # stage 4, if there were listeners
        self.seconds: dict[str, float] = {}  # how long providers took: shown, never compared or logged

    @property
    def suppressed(self) -> bool:
        """Whether there are no runtime contexts."""
        return self.plan.suppressed

    @property
    def tool_answers(self) -> Mapping[ToolSource, tuple[ToolSchema, ...]]:
        """The tools that each provider shows."""
        return self.offered.schemas

    @property
    def tools_known(self) -> Mapping[ToolSource, frozenset[str]]:
        """The names that each provider is known to have: of those that answered, and of static ones."""
        return self.offered.known

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

    def canonical_contexts(self) -> tuple[AssembledContext, ...]:
        """The runtime contexts that go into the waterfall; as before."""
        if self._canonical_contexts is None:
            self._canonical_contexts = tuple(self._list(self.plan.contexts)) if self.plan.has_contexts else ()
        return self._canonical_contexts

    def tools(self) -> tuple[ToolSchema, ...]:
        """The tool schemas, in canonical order."""
        return self.ordered_tools

    def variables(self) -> dict[str, str | None]:
        """The values for an assembly, in the order of registration, whatever order they were found in."""
        values = self.values
        return {name: values[name] for name in self.plan.variables.names()}

    def tool_names(self) -> frozenset[str]:
        """The names of the tools, in whatever order; only once they are in order."""
        names = self.offered.names
        if names is None:
            names = self.offered.names = frozenset([tool.name for tool in self.ordered_tools])
        return names

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
            and self.offered == other.offered
            and self.unchecked_tools == other.unchecked_tools
            and changes[0] == changes[1]
        )

    # -- answers -------------------------------------------------------------------------------------------------------

    def accept(self, entry: Entry, answer: object) -> object:
        """Hold an answer to what its kind must be, and keep it.

        Returns:
            What it came to, as far as texts depend on it.

        Raises:
            ForewordError: it is no such thing, or too large; counts as a failure of the provider.
        """
        if isinstance(entry, Variable):
            limit = self.limits.value
            if answer is not None and (type(answer) is not str or len(answer) * 4 > limit):
                answer = self._checked(answer, limit, f"the value of variable {entry.name}")
            self.values[entry.name] = answer
            return answer
        if isinstance(entry, OrderedText):
            limit = self.limits.text
            if type(answer) is not str or len(answer) * 4 > limit:  # a code point has at most 4 bytes
                answer = self._checked(answer, limit, f"the text of {entry.KIND} {entry.name}")
            made = self.texts[entry] = entry.assembled(answer)
            return made
        if isinstance(entry, ToolSource):
            self._accept_tools(entry, answer)
        return None

    @staticmethod
    def _checked(answer: object, limit: int, what: str) -> str:
        text = plain_string(answer, what)
        within(limit, text, what)
        return text

    def _accept_tools(self, source: ToolSource, answer: object) -> None:
        frozen = source.memory.frozen.get(id(answer))
        if frozen is not None:  # it is kept there, so the id is still its own
            _, result, schemas, known = frozen
            source.memory.schemas, source.memory.known = schemas, known
        else:
            result, schemas, known = self._checked_tools(source, answer)
        self._own_offered().take(source, schemas, known, result)

    @staticmethod
    def _checked_tools(
        source: ToolSource, answer: object
    ) -> tuple[ToolProviderResult, tuple[ToolSchema, ...], frozenset[str]]:
        refuse_awaitable(answer, "the answer of a tool provider")
        if not isinstance(answer, (ToolProviderResult, list, tuple)):
            why = f"it gives {described(answer)}; return ToolProviderResult(schemas=[…])"
            raise InvalidToolSchemaError(None, why)
        given = cast("ToolProviderResult | Sequence[ToolSchema]", answer)  # what the sequence holds is checked next
        result = given if isinstance(given, ToolProviderResult) else ToolProviderResult(given)
        schemas, known = checked_schemas(result, source, answering=True)
        memory = source.memory
        memory.schemas, memory.known = schemas, known
        if _cannot_change(given):
            memory.keep(given, result, schemas, known)
        return result, schemas, known

    def _own_offered(self) -> ToolAnswers:
        """The answers of tool providers, to be changed."""
        if not self._owns_offered:
            self.offered, self._owns_offered = self.offered.copy(), True
        return self.offered

    def answer_of(self, entry: Entry) -> Any:
        """What an entry answered in this step, checked; `put_again` takes it back."""
        if isinstance(entry, ToolSource):
            return ToolAnswers().noting(entry, self.offered)
        return self.texts[entry].text if isinstance(entry, OrderedText) else self.values[entry.name]

    def put_again(self, entry: Entry, answer: Any, why: str) -> None:
        """Put an earlier answer in the place of one that failed."""
        self.reused = {**self.reused, entry: why}
        if isinstance(entry, ToolSource):
            self._own_offered().take_from(answer, entry)
        elif isinstance(entry, OrderedText):
            self.texts[entry] = entry.assembled(answer)
        else:
            self.values[entry.name] = answer

    def identity(self) -> tuple[object, ...]:
        """All that the texts of an untouched draft depend on, beside its plan: equal ones render alike."""
        told = (self.baseline.token, self.told, self.left_out, self.unsupported)
        return (*told, self.texts, self.values) if self.replaced or self.reused else told

    def origin_of(self, source: ToolSource, tool: str) -> Origin:
        """Who brought a tool of a provider: the provider's own origin, unless it tells of another."""
        return self.offered.origins.get(source, {}).get(tool, source.origin)

    def leave_out(self, entry: Entry, why: str) -> None:
        """Note that an entry takes no part in this step."""
        if self.left_out is _NOTHING:
            self.left_out = {}
        self.left_out[entry] = why
        if isinstance(entry, Variable):
            self.values[entry.name] = None
        elif isinstance(entry, OrderedText):
            self.texts.pop(entry, None)
        elif isinstance(entry, ToolSource):
            offered = self._own_offered()
            for table in offered.tables():
                table.pop(entry, None)
            if entry.memory.known is not None and entry.provider.call is None:
                offered.known[entry] = entry.memory.known
            elif entry.memory.known is not None:
                self.remembered = {**self.remembered, entry: entry.memory.known}

    def note_unsupported(self, tools: Collection[str]) -> None:
        """Note the texts that require a tool which is not among those of these names."""
        found: dict[Entry, str] = {}
        for entry in self.plan.demanding:
            missing = next((name for name in entry.requires_tools if name not in tools), None)
            if missing is not None:
                found[entry] = f"requires_tools:{missing}"
        if not found:
            return
        self.unsupported = found
        noted = self.baseline.noted(found)
        if noted:  # what is left out in some steps is not for all to share
            self.baseline = self.plan.memo.baseline = self.baseline.learning(self, {}, noted)

    def put_placeholder(self, entry: Entry, text: str, why: str) -> None:
        """Put a placeholder's text, verbatim, in the place of an answer that failed."""
        self.replaced = {**self.replaced, entry: why}
        if isinstance(entry, OrderedText):
            self.texts[entry] = entry.assembled(text, verbatim=True)
        else:
            self.values[entry.name] = text


def _cannot_change(answer: object) -> bool:
    """Whether a tool provider's answer, given again, must be what it was: nobody can put other schemas into it."""
    if type(answer) is ToolProviderResult:
        return type(answer.schemas) is tuple and type(answer.known_names) in (frozenset, tuple, type(None))
    return type(answer) is tuple
