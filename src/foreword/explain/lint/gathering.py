"""From a prompt to a `Survey`: which assemblies are made, in what order, under which clock.

The order is said once, in a generator that asks for assemblies and is sent them; `gather` makes them without an event
loop, `agather` within one. Providers and listeners are asked as in any step.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

from foreword.errors import AssemblyCancelledError, AssemblyError, RunningLoopError
from foreword.explain.lint.clock import can_move_clock, moved_clock
from foreword.explain.lint.survey import Branch, Clock, Round, Survey, Text
from foreword.kernel.scope import GLOBAL
from foreword.kernel.source import caller, calling_line
from foreword.prompt.context import AssembleContext
from foreword.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from contextlib import AbstractContextManager

    from foreword.explain.subject import Part, Subject
    from foreword.kernel.scope import ScopeKey
    from foreword.prompt.assembly import PromptAssembly
    from foreword.prompt.contributions import ToolSchema
    from foreword.prompt.origin import Origin
    from foreword.prompt.registry import PromptLayer, Registry
    from foreword.prompt.rendering import Rendering
    from foreword.prompt.system_prompt import SystemPrompt

__all__ = ["Wanted", "agather", "gather", "survey_of"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be looked at.

    Attributes:
        prompt: a view; of a scope, only that scope and those below it are looked at.
        context: what assemblies are made for; its scope is set for each.
        agents: the scopes that are agents', whose assemblies are told so.
        again: make every assembly three times, the last time under another clock.
        section_tokens: the budget of a section.
    """

    prompt: SystemPrompt
    context: AssembleContext
    agents: Collection[ScopeKey]
    again: bool
    section_tokens: int


@dataclass(frozen=True, slots=True)
class _Ask:
    """An assembly that is wanted."""

    context: AssembleContext
    clock: Clock

    def under_its_clock(self) -> AbstractContextManager[None]:
        return moved_clock() if self.clock == "moved" else nullcontext()


_Asking: TypeAlias = "Generator[_Ask, PromptAssembly | AssemblyError | None, Survey]"


def gather(wanted: Wanted) -> Survey:
    """Look at a prompt from plain code.

    Raises:
        RunningLoopError: something in force is async, and a loop is running here.
        InactiveContextError: the view is closed.
    """
    asking = _asking(wanted)
    answer: PromptAssembly | AssemblyError | None = None
    while True:
        try:
            ask = asking.send(answer)
        except StopIteration as end:
            return cast("Survey", end.value)
        try:
            with ask.under_its_clock():
                answer = wanted.prompt.assemble_sync(ask.context)
        except AssemblyError as error:
            answer = _kept(error)


async def agather(wanted: Wanted) -> Survey:
    """Look at a prompt from a coroutine.

    Raises:
        InactiveContextError: the view is closed.
    """
    asking = _asking(wanted)
    answer: PromptAssembly | AssemblyError | None = None
    while True:
        try:
            ask = asking.send(answer)
        except StopIteration as end:
            return cast("Survey", end.value)
        try:
            with ask.under_its_clock():
                answer = await wanted.prompt.assemble(ask.context)
        except AssemblyError as error:
            answer = _kept(error)


def _kept(error: AssemblyError) -> AssemblyError:
    """An error that says something about the prompt: it becomes a finding."""
    if isinstance(error, (RunningLoopError, AssemblyCancelledError)):
        raise error
    return error


def _asking(wanted: Wanted) -> _Asking:
    registry = wanted.prompt.registrar(calling_line(caller(0))).registry
    clocks: list[Clock] = ["as it is"]
    if wanted.again:
        clocks.append("as it is")
        if can_move_clock():
            clocks.append("moved")
    branches: list[Branch] = []
    for scope in _scopes(wanted, registry):
        agent = scope if scope in wanted.agents else None
        context = _context_for(wanted.context, scope, agent)
        rounds: list[Round] = []
        for clock in clocks:
            answer = yield _Ask(context, clock)
            failure = answer if isinstance(answer, AssemblyError) else None
            rounds.append(Round(clock, None if isinstance(answer, AssemblyError) else answer, failure))
        branches.append(Branch(scope, scope.name, registry.plan(scope), rounds))
    return Survey(
        tuple(branches),
        registry.config,
        _layers(registry, [branch.scope for branch in branches]),
        wanted.section_tokens,
        "moved" in clocks,
    )


def _scopes(wanted: Wanted, registry: Registry) -> list[ScopeKey]:
    """The scopes to look at: that of the view, and those below it that hold something, if only a mask over tools."""
    prompt = wanted.prompt
    keys = [*prompt.scopes, *_scopes_of_tools(registry), *wanted.agents]
    held = dict.fromkeys(above for key in keys for above in (*key.chain(), key))
    below = [key for key in held if key is not GLOBAL and (prompt.key is GLOBAL or prompt.key in key.chain())]
    return list(dict.fromkeys([prompt.key, *below]))


def _scopes_of_tools(registry: Registry) -> Iterator[ScopeKey]:
    """The scopes that a `ToolRegistry` on the prompt knows: its provider is the method of its toolbox."""
    for source in registry.plan(GLOBAL).tools:
        toolbox = getattr(source.provider.call, "__self__", None)
        if isinstance(toolbox, Toolbox):
            yield from toolbox.scopes()


def _context_for(context: AssembleContext, scope: ScopeKey, agent: ScopeKey | None) -> AssembleContext:
    return AssembleContext(
        {key: context[key] for key in context.keys},
        scope=scope,
        agent=agent or context.agent,
        model=context.model,
        signal=context.signal,
    )


def _layers(registry: Registry, scopes: list[ScopeKey]) -> tuple[PromptLayer, ...]:
    chains = [registry.layers.chain(scope) for scope in scopes]
    return tuple(dict.fromkeys(layer for chain in chains for layer in chain))


# -- what was rendered or sent -----------------------------------------------------------------------------------------


def survey_of(target: Rendering | Subject, section_tokens: int) -> Survey:
    """What rules for texts see of a rendering, or of a request in a log: sections and contexts as sent, and tools."""
    from foreword.explain.subject import Subject, subject_of  # brings the session's records in: only when needed

    subject = target if isinstance(target, Subject) else subject_of(target)
    return Survey((SentBranch(subject),), section_tokens=section_tokens)


class SentBranch(Branch):
    """What was sent, as the only branch of a survey: its texts are no templates any more."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(GLOBAL, GLOBAL.name, None, ())
        self._tools = [(tool.schema, tool.origin) for tool in subject.tools]
        self.sections = tuple(_text(part) for part in subject.sections)
        self.contexts = tuple(_text(part) for part in subject.contexts)
        self.dormant = ()
        self.rendered = {text.name: text.text for text in self.sections}

    @property
    def tools(self) -> list[tuple[ToolSchema, Origin]]:
        """The tools that were sent."""
        return self._tools


def _text(part: Part) -> Text:
    return Text(part.kind, part.name, part.text, part.origin, verbatim=True)
