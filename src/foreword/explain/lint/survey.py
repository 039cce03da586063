"""What rules look at: a prompt as each of its scopes sees it, and every text in it with its owner.

A `Survey` is made by `gathering` and read by rules, which change nothing and ask nobody. It has one `Branch` for the
global layer and for each scope that holds something; a branch has the plan of its scope and the assemblies made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from foreword.errors import RenderError
from foreword.explain.tokenizers import ESTIMATE, count
from foreword.prompt.assembly import AssembledContext, AssembledSection
from foreword.prompt.origin import ASSEMBLER, Origin
from foreword.prompt.sensitive import SENSITIVE, sensitive_names
from foreword.prompt.template import Template

if TYPE_CHECKING:
    from foreword.errors import AssemblyError
    from foreword.explain.lint.processes import Run
    from foreword.jsonvalue import JsonValue
    from foreword.kernel.scope import ScopeKey
    from foreword.prompt.assembly import AssembledText, PromptAssembly
    from foreword.prompt.config import SystemPromptConfig
    from foreword.prompt.contributions import OrderedText, Override, ToolSchema, Variable
    from foreword.prompt.plan import Plan
    from foreword.prompt.registry import PromptLayer

__all__ = ["Branch", "Clock", "Round", "Survey", "Text", "tools_of"]

Clock: TypeAlias = Literal["as it is", "moved"]


@dataclass(frozen=True, slots=True)
class Text:
    """A text in a prompt, as its owner gave it.

    Attributes:
        kind: "section", "context", "variable" (its value) or "tool" (a description in it).
        name: of the entry.
        text: the text; for sections and contexts a template, unless `verbatim`.
        origin: who contributed it.
        verbatim: it is no template.
        is_made: a provider or a listener makes it at each step.
        part: what of the entry it is, as in "its description"; empty for all of it.
    """

    kind: str
    name: str
    text: str
    origin: Origin
    verbatim: bool = False
    is_made: bool = False
    part: str = ""
    _parsed: Template | None = field(default=None, repr=False, compare=False)  # of the entry, which keeps it

    @classmethod
    def of(cls, entry: AssembledText, *, is_made: bool) -> Text:
        """The text of a section or context."""
        origin = entry.origin or ASSEMBLER
        return cls(entry.KIND, entry.name, entry.text, origin, entry.verbatim, is_made, _parsed=entry.template)

    @property
    def label(self) -> str:
        """What it is, in words: ``section "acme:rules"``."""
        part = f", {self.part}" if self.part else ""
        return f'{self.kind} "{self.name}"{part}'

    @property
    def template(self) -> Template:
        """The parsed text; of what is no section or context, one without references."""
        return Template.verbatim(self.text) if self._parsed is None else self._parsed

    def place(self, offset: int) -> str | None:
        """``file:line`` of a character; of a text that does not stand in a file of its own, the registering call."""
        source = self.origin.source
        return None if source is None else str(source.down(self.text.count("\n", 0, offset)))

    def position(self, offset: int) -> str:
        """Line and column of a character, in words."""
        line = self.text.count("\n", 0, offset) + 1
        return f"line {line}, column {offset - self.text.rfind(chr(10), 0, offset)}"


@dataclass(frozen=True, slots=True)
class Round:
    """One assembly of a branch, or why there is none."""

    clock: Clock
    assembly: PromptAssembly | None
    failure: AssemblyError | None


class Branch:
    """The prompt as one scope sees it."""

    def __init__(self, scope: ScopeKey, name: str, plan: Plan | None, rounds: Sequence[Round]) -> None:
        self.scope = scope
        self.name = name  # of the scope; "global" for the global layer
        self._plan = plan
        self.rounds = tuple(rounds)

    @property
    def plan(self) -> Plan:
        """The plan of the scope; only rules that read a prompt may ask for it."""
        assert self._plan is not None  # noqa: S101 - what was sent has none, and only rules for texts see it
        return self._plan

    @property
    def assembly(self) -> PromptAssembly | None:
        """The first assembly; None if it failed."""
        return self.rounds[0].assembly if self.rounds else None

    @property
    def failure(self) -> AssemblyError | None:
        """Why there is no first assembly."""
        return self.rounds[0].failure if self.rounds else None

    @cached_property
    def sections(self) -> tuple[Text, ...]:
        """The sections in force, in order; where the assembly failed, those whose text is there without it."""
        return tuple(self._in_force(AssembledSection.KIND))

    @cached_property
    def contexts(self) -> tuple[Text, ...]:
        """The runtime contexts, likewise."""
        return tuple(self._in_force(AssembledContext.KIND))

    @cached_property
    def dormant(self) -> tuple[Text, ...]:
        """Static texts that this assembly left out, for a condition or a tool; another may hold them."""
        if self.assembly is None or self.complete is not None:
            return ()
        held = {(text.kind, text.name) for text in (*self.sections, *self.contexts)}
        entries = [*self.plan.sections, *(() if self._are_contexts_suppressed else self.plan.contexts)]
        return tuple(
            _static(entry)
            for entry in entries
            if entry.provider.call is None and not entry.is_settled() and (entry.KIND, entry.name) not in held
        )

    @property
    def texts(self) -> Iterator[Text]:
        """Sections and contexts: those in force, then those that another assembly may hold."""
        yield from (*self.sections, *self.contexts, *self.dormant)

    @property
    def complete(self) -> OrderedText | None:
        """The complete section in force."""
        draft = None if self.assembly is None else self.assembly.draft
        return None if draft is None else draft.complete()

    @property
    def values(self) -> dict[str, str | None]:
        """The variables with their values, those that listeners set included; static ones where the assembly failed."""
        if self.assembly is not None:
            return self.assembly.variables
        asked: dict[str, str | None] = dict.fromkeys(self.plan.variables.names())
        return {**asked, **self.plan.variables.static_values()}

    def variable(self, name: str) -> Variable | None:
        """The registered variable of a name that is in force."""
        return self.plan.variables.entry(name)

    @cached_property
    def rendered(self) -> dict[str, str]:
        """The sections in force by name, interpolated, in order; those that cannot be rendered, and empty ones, not."""
        return {} if self.assembly is None else _rendered(self.assembly, self.assembly.variables)

    @cached_property
    def rendered_masked(self) -> dict[str, str]:
        """The same without the values of sensitive variables; a section that is empty but for them is there, too."""
        if self.assembly is None:
            return {}
        sensitive, _ = sensitive_names(self.plan)
        values = self.assembly.variables
        masked = {name: SENSITIVE for name in sensitive if values.get(name) is not None}
        return _rendered(self.assembly, {**values, **masked})

    @property
    def tools(self) -> list[tuple[ToolSchema, Origin]]:
        """The tools that the model gets, each with who brought it."""
        return [] if self.assembly is None else tools_of(self.assembly)

    @cached_property
    def known_tools(self) -> frozenset[str]:
        """The names of tools that there are in this scope, hidden ones included."""
        draft = None if self.assembly is None else self.assembly.draft
        if self.assembly is None or draft is None:
            return frozenset()
        told = {name for known in (draft.tools_known, draft.remembered) for names in known.values() for name in names}
        return frozenset({*told, *(tool.name for tool in self.assembly.tools)})

    @property
    def are_all_tools_known(self) -> bool:
        """Whether every provider of tools has said what it has."""
        return self.assembly is not None and all(source.memory.known is not None for source in self.plan.tools)

    # -- inside --------------------------------------------------------------------------------------------------------

    @property
    def _are_contexts_suppressed(self) -> bool:
        return self.assembly is not None and self.assembly.draft is not None and self.assembly.draft.suppressed

    def _in_force(self, kind: str) -> Iterator[Text]:
        is_section = kind == AssembledSection.KIND
        if self.assembly is None:
            lineup: Iterable[OrderedText] = self.plan.sections if is_section else self.plan.contexts
            yield from (_static(entry) for entry in lineup if entry.provider.call is None)
            return
        entries: Iterable[AssembledText] = self.assembly.sections if is_section else self.assembly.contexts
        made = _made(self._plan, kind)
        for entry in entries:
            is_listeners = entry.origin is not None and entry.origin.listener is not None
            yield Text.of(entry, is_made=is_listeners or entry.name in made)


@dataclass(frozen=True)
class Survey:
    """A prompt, or a rendering, as rules look at it.

    Attributes:
        branches: the global layer's, then one for each scope that holds something.
        config: the prompt's configuration; None for a rendering.
        layers: the layers behind the branches, the global one first.
        section_tokens: the budget of a section.
        has_moved_clock: whether some assembly was made under another clock.
        runs: what other processes made of it; empty unless somebody asked them.
        hide: takes out of a text what nobody is to see; to be used before a text is cut to be quoted.
    """

    branches: tuple[Branch, ...]
    config: SystemPromptConfig | None = None
    layers: tuple[PromptLayer, ...] = ()
    section_tokens: int = 0
    has_moved_clock: bool = False
    runs: tuple[Run, ...] = ()
    hide: Callable[[str], str] = str
    _tokens: dict[str, int] = field(default_factory=dict[str, int], init=False, repr=False, compare=False)

    @cached_property
    def texts(self) -> tuple[Text, ...]:
        """Every text of every branch, each once: sections, contexts, values of variables, what tools say."""
        found: dict[tuple[str, str, str, str, str | None], Text] = {}
        for branch in self.branches:
            for text in (*branch.texts, *_values(branch), *_told_by_tools(branch)):
                found.setdefault((text.kind, text.name, text.text, text.origin.owner, text.origin.scope), text)
        return tuple(found.values())

    @property
    def overrides(self) -> tuple[Override, ...]:
        """The deployment's last words."""
        return tuple(self.layers[0].overrides.values()) if self.layers else ()

    def tokens(self, text: str) -> int:
        """How many tokens a text has, about: budgets do not depend on a model, so no tokenizer of one is asked."""
        known = self._tokens.get(text)
        if known is None:
            known = self._tokens[text] = count(ESTIMATE, text)
        return known

    def in_branches(self, names: Iterable[str]) -> str:
        """Some of the branches, as the end of a sentence: nothing where it is all of them."""
        held = list(dict.fromkeys(names))
        if len(held) == len(self.branches):
            return ""
        told = ["the global layer" if name == "global" else f'scope "{name}"' for name in held[:3]]
        more = f" and {len(held) - 3} more" if len(held) > 3 else ""
        return f" in {', '.join(told)}{more}"


def tools_of(assembly: PromptAssembly) -> list[tuple[ToolSchema, Origin]]:
    """The tools of an assembly, each with who brought it."""
    draft = assembly.draft
    if draft is None:
        return [(tool, ASSEMBLER) for tool in assembly.tools]
    answers = draft.tool_answers.items()
    brought = {id(tool): draft.origin_of(source, tool.name) for source, tools in answers for tool in tools}
    put_in = None if draft.waterfall is None else draft.waterfall.bringer_of
    return [
        (tool, brought.get(id(tool)) or (None if put_in is None else put_in(tool)) or ASSEMBLER)
        for tool in assembly.tools
    ]


def _rendered(assembly: PromptAssembly, values: dict[str, str | None]) -> dict[str, str]:
    found: dict[str, str] = {}
    for section in assembly.sections:
        try:
            text = section.render(values)
        except RenderError:  # told by the rules about references
            continue
        if text:
            found[section.name] = text
    return found


def _static(entry: OrderedText) -> Text:
    return Text.of(entry.assembled_static(), is_made=False)


def _made(plan: Plan | None, kind: str) -> frozenset[str]:
    if plan is None:
        return frozenset()
    lineup: Any = plan.sections if kind == AssembledSection.KIND else plan.contexts
    return frozenset(seat.entry.name for seat in lineup.unsettled if seat.entry.provider.call is not None)


def _values(branch: Branch) -> Iterator[Text]:
    """The values of the branch's registered variables."""
    for name, value in branch.values.items() if branch.rounds else ():
        entry = branch.variable(name)
        if value and entry is not None:
            yield Text("variable", name, value, entry.origin, is_made=entry.provider.call is not None)


def _told_by_tools(branch: Branch) -> Iterator[Text]:
    for tool, origin in branch.tools:
        yield Text("tool", tool.name, tool.description, origin, part="its description")
        for path, text in _strings(dict(tool.parameters), "parameters"):
            yield Text("tool", tool.name, text, origin, part=path)


def _strings(value: JsonValue, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for at, item in enumerate(value):
            yield from _strings(item, f"{path}[{at}]")
