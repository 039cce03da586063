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
    from foreword.kernel.scope import ScopeKey
    from foreword.prompt.assembly import AssembledContext, AssembledSection
    from foreword.prompt.context import AssembleContext
    from foreword.prompt.contributions import Section, ToolSchema
    from foreword.prompt.plan import Lineup, Plan
    from foreword.prompt.registry import Registry
    from foreword.prompt.transform import Waterfall

__all__ = ["Draft"]

T = TypeVar("T", "AssembledSection", "AssembledContext")


class Draft:
    """What one step's conditions and providers said."""

    __slots__ = (
        "context",
        "known_tools",
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
        "tools_known",
        "unchecked_tools",
        "unsupported",
        "values",
        "waterfall",
    )

    def __init__(self, registry: Registry, scope: ScopeKey, plan: Plan, context: AssembleContext) -> None:
        self.registry, self.scope, self.plan, self.context = registry, scope, plan, context
        self.limits = registry.config.limits
        self.suppressed = bool(plan.suppressors) or not registry.config.include_runtime_context
        self.left_out: dict[Entry, str] = {}  # and why: "when" or "skipped: …"
        self.unsupported: dict[Entry, str] = {}  # and why: "requires_tools:NAME"; filled in by stage 5
        self.replaced: dict[Entry, str] = {}  # by a placeholder, and why
        self.reused: dict[Entry, str] = {}  # a last good answer, and why
        self.values: dict[str, str | None] = plan.variables.static_values()
        self.texts: dict[OrderedText, AssembledSection | AssembledContext] = {}  # of those that have a provider
        self.tool_answers: dict[ToolSource, tuple[ToolSchema, ...]] = {}
        self.tools_known: dict[ToolSource, frozenset[str]] = {}  # of those that answered, and of static ones
        self.remembered: dict[ToolSource, frozenset[str]] = {}  # of those left out: what they answered some time before
        self.known_tools: set[str] = set()
        self.unchecked_tools: tuple[str, ...] = ()  # names of tool_order that nobody could vouch for in this step
        self.ordered_tools: tuple[ToolSchema, ...] = ()  # filled in by stage 3
        self.waterfall: Waterfall | None = None  # stage 4, if there were listeners
        self.seconds: dict[str, float] = {}  # how long providers took: shown, never compared or logged

    # -- what an assembly's lists are made from ------------------------------------------------------------------------

    def sections(self) -> list[AssembledSection]:
        """The sections in force, in canonical order."""
        return self._supported(self.canonical_sections(), "section")

    def contexts(self) -> list[AssembledContext]:
        """The runtime contexts in force, in canonical order."""
        return self._supported(self.canonical_contexts(), "context")

    def canonical_sections(self) -> list[AssembledSection]:
        """The sections that go into the waterfall."""
        return self._list(self.plan.sections)

    def canonical_contexts(self) -> list[AssembledContext]:
        """The runtime contexts that go into the waterfall."""
        return [] if self.suppressed else self._list(self.plan.contexts)

    def tools(self) -> tuple[ToolSchema, ...]:
        """The tool schemas, in canonical order."""
        return self.ordered_tools

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

    def _supported(self, entries: list[T], kind: str) -> list[T]:
        gone = {entry.name for entry in self.unsupported if kind == entry.KIND}
        return [entry for entry in entries if entry.name not in gone] if gone else entries

    # -- answers -------------------------------------------------------------------------------------------------------

    def accept(self, entry: Entry, answer: object) -> None:
        """Hold an answer to what its kind must be, and keep it.

        Raises:
            ForewordError: it is no such thing, or too large; counts as a failure of the provider.
        """
        if isinstance(entry, OrderedText):
            what = f"the text of {entry.KIND} {entry.name}"
            text = plain_string(answer, what)
            within(self.limits.text, text, what)
            self.texts[entry] = entry.assembled(text)
        elif isinstance(entry, Variable):
            what = f"the value of variable {entry.name}"
            value = None if answer is None else plain_string(answer, what)
            within(self.limits.value, value or "", what)
            self.values[entry.name] = value
        elif isinstance(entry, ToolSource):
            self._accept_tools(entry, answer)

    def _accept_tools(self, source: ToolSource, answer: object) -> None:
        refuse_awaitable(answer, "the answer of a tool provider")
        if not isinstance(answer, (ToolProviderResult, list, tuple)):
            why = f"it gives {described(answer)}; return ToolProviderResult(schemas=[…])"
            raise InvalidToolSchemaError(None, why)
        result = answer if isinstance(answer, ToolProviderResult) else ToolProviderResult(answer)  # pyright: ignore[reportUnknownArgumentType]
        schemas, known = checked_schemas(result, source, answering=True)
        source.memory.schemas, source.memory.known = schemas, known
        self.tool_answers[source] = schemas
        self.tools_known[source] = known
        self.known_tools |= known

    def answer_of(self, entry: Entry) -> Any:
        """What an entry answered in this step, checked; `put_again` takes it back."""
        if isinstance(entry, ToolSource):
            return self.tool_answers[entry], entry.memory.known
        return self.texts[entry].text if isinstance(entry, OrderedText) else self.values[entry.name]

    def put_again(self, entry: Entry, answer: Any, why: str) -> None:
        """Put an earlier answer in the place of one that failed."""
        self.reused[entry] = why
        if isinstance(entry, ToolSource):
            self.tool_answers[entry], self.tools_known[entry] = answer
            self.known_tools |= self.tools_known[entry]
        elif isinstance(entry, OrderedText):
            self.texts[entry] = entry.assembled(answer)
        else:
            self.values[entry.name] = answer

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
