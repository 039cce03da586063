"""Stage 4, transform: the waterfall of listeners around an assembly.

Each listener gets the assembly, the context and ``call_next``, and gives an assembly back. The first registered is
outermost. What each one did is noted as checkpoints, references only; the trace works out the differences when it is
read, and enforcement those that concern protected entries.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from foreword.errors import ListenerError, with_article, words_of
from foreword.kernel.names import plain_name, spellable
from foreword.kernel.scope import GLOBAL
from foreword.prompt.assembly import AssembledContext, AssembledSection, AssembledText, PromptAssembly
from foreword.prompt.contributions import TOOL_ORDER_REST, ToolSchema
from foreword.prompt.difference import changed_stretch
from foreword.prompt.origin import Origin
from foreword.prompt.text import described

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foreword.kernel.events import Listener
    from foreword.prompt.context import AssembleContext
    from foreword.prompt.draft import Draft
    from foreword.prompt.entries import Entries

__all__ = ["AssembleListener", "CallNext", "Checkpoint", "Waterfall"]

CallNext: TypeAlias = Callable[[], Awaitable[PromptAssembly]]
AssembleListener: TypeAlias = "Callable[[PromptAssembly, AssembleContext, CallNext], Awaitable[PromptAssembly]]"


class Checkpoint(NamedTuple):
    """How an assembly looked when control passed from one listener to another. None: a list nobody had asked for."""

    listener: Listener | None  # who had it until now; None before the first
    sections: tuple[AssembledSection, ...] | None
    contexts: tuple[AssembledContext, ...] | None
    tools: tuple[ToolSchema, ...] | None
    variables: dict[str, str | None]


class Waterfall:
    """One run through the listeners."""

    __slots__ = ("_context", "_draft", "_fault", "_listeners", "checkpoints")

    def __init__(self, listeners: Sequence[Listener], context: AssembleContext, draft: Draft) -> None:
        self._listeners = listeners
        self._context = context
        self._draft = draft
        self._fault: ListenerError | None = None
        self.checkpoints: list[Checkpoint] = []

    async def run(self, assembly: PromptAssembly) -> PromptAssembly:
        """Take an assembly through all listeners.

        Raises:
            ListenerError: one raised, gave back no assembly, or called on twice or too late; also when an outer
                listener caught that.
        """
        self._note(None, assembly)
        result = await self._from(0, assembly)
        if self._fault is not None:
            raise self._fault
        return result

    async def _from(self, position: int, assembly: PromptAssembly) -> PromptAssembly:
        """The rest of the waterfall, from the listener at a position inwards."""
        if position == len(self._listeners):
            return assembly
        listener = self._listeners[position]
        step = _Step(self, position, assembly)
        failure: Exception | None = None
        result: object = None
        try:
            answer = listener.call(assembly, self._context, step.call_next)
            if not inspect.isawaitable(answer):
                raise self._failed(listener, f"is not async: it gave {described(answer)}; define it with `async def`")
            result = await answer
        except Exception as error:  # a listener is somebody else's code
            if error is self._fault:
                raise
            failure = self._draft.registry.guarded(listener.owner, f"listener {listener.name}", error)
        finally:
            step.over = True
        if failure is not None:  # raised here, where what the guard kept back is no context of it
            raise self._failed(listener, f"raised {words_of(failure)}; mend it or close it") from failure
        if step.running:
            raise self._failed(listener, "returned while its call_next() was still running; await it")
        if not isinstance(result, PromptAssembly):
            raise self._failed(listener, f"gave back {described(result)}; return the assembly")
        self._leave(listener, result)
        return result

    def _leave(self, listener: Listener, assembly: PromptAssembly) -> None:
        """A listener hands the assembly on: what it put there gets its origin, and the state is noted."""
        if assembly.draft is not None and assembly.draft is not self._draft:
            assembly.make_lists()  # of another run or another prompt: its lists are not those of this draft
        try:
            self._claim(listener, assembly)
        except TypeError as error:
            raise self._failed(listener, str(error)) from None
        self._note(listener, assembly)

    def _claim(self, listener: Listener, assembly: PromptAssembly) -> None:
        """Give what a listener put into the assembly its origin. What it has not touched is not looked at.

        Raises:
            TypeError: something in a list is no entry of its kind, or a variable's value is no string.
        """
        before, draft = self.checkpoints[-1], self._draft
        sections, contexts, tools = assembly.listed()
        if sections is not None:
            stood = draft.canonical_sections() if before.sections is None else before.sections
            self._claim_texts(AssembledSection, sections, stood, listener)
        if contexts is not None:
            told = draft.canonical_contexts() if before.contexts is None else before.contexts
            self._claim_texts(AssembledContext, contexts, told, listener)
        if tools is not None:
            offered = draft.tools() if before.tools is None else before.tools
            for tool in tools[slice(*_changed(tools, offered, ToolSchema, _check_tool))]:
                _check_tool(tool, ToolSchema)
        if assembly.variables != before.variables:
            _check_variables(assembly.variables)

    def _claim_texts(
        self, kind: type[AssembledText], entries: Entries[Any], known: Sequence[object], listener: Listener
    ) -> None:
        for at in range(*_changed(entries, known, kind, _check_text)):
            entry = _check_text(entries[at], kind)
            if not (entry.has_stood and self._stood(entry)):
                entries[at] = replace(entry, origin=origin_of(listener)).standing()

    def _note(self, listener: Listener | None, assembly: PromptAssembly) -> None:
        sections, contexts, tools = assembly.listed()
        variables = assembly.variables
        if self.checkpoints and self.checkpoints[-1].variables == variables:
            variables = self.checkpoints[-1].variables  # one copy for all who leave them as they are
        else:
            variables = dict(variables)
        self.checkpoints.append(
            Checkpoint(
                listener,
                None if sections is None else sections.state(),
                None if contexts is None else contexts.state(),
                None if tools is None else tools.state(),
                variables,
            )
        )

    def note_result(self, assembly: PromptAssembly) -> None:
        """Note what came out of the waterfall, before anything is enforced."""
        self._note(None, assembly)

    def setters(self) -> dict[str, Origin]:
        """The variables whose values are not those that went in, and the origin of the listener that set each last."""
        first, last = self.checkpoints[0].variables, self.checkpoints[-1].variables
        if first == last:
            return {}
        changed = {name for name, value in last.items() if name not in first or first[name] != value}
        found: dict[str, Origin] = {}
        for before, after in pairwise(self.checkpoints):
            if after.listener is None:
                continue
            for name in changed:
                if before.variables.get(name) != after.variables.get(name):
                    found[name] = origin_of(after.listener)
        return found

    def bringer_of(self, tool: ToolSchema) -> Origin | None:
        """The origin of a tool that a listener put in."""
        for checkpoint in self.checkpoints:
            if checkpoint.listener is not None and any(tool is each for each in checkpoint.tools or ()):
                return origin_of(checkpoint.listener)
        return None

    def filled_in(self, checkpoint: Checkpoint) -> Checkpoint:
        """A checkpoint with the lists that nobody had asked for, as the draft makes them."""
        if None not in (checkpoint.sections, checkpoint.contexts, checkpoint.tools):
            return checkpoint
        draft = self._draft
        return checkpoint._replace(
            sections=draft.canonical_sections() if checkpoint.sections is None else checkpoint.sections,
            contexts=draft.canonical_contexts() if checkpoint.contexts is None else checkpoint.contexts,
            tools=draft.tools() if checkpoint.tools is None else checkpoint.tools,
        )

    def _stood(self, entry: object) -> bool:
        """Whether a section or context stood in the assembly at some checkpoint."""
        filled = [self.filled_in(each) for each in self.checkpoints]
        lists = {id(each): each for found in filled for each in (found.sections, found.contexts)}
        is_entry = partial(is_, entry)
        return any(any(map(is_entry, each or ())) for each in lists.values())

    def _failed(self, listener: Listener, why: str) -> ListenerError:
        """The error of a listener; the first one fails the assembly even if an outer listener catches it."""
        error = ListenerError(listener.ref, why)
        if self._fault is None:
            self._fault = error
        return error


class _Step:
    """One listener's turn: what its ``call_next`` needs to know."""

    __slots__ = ("_assembly", "_called", "_position", "_waterfall", "over", "running")

    def __init__(self, waterfall: Waterfall, position: int, assembly: PromptAssembly) -> None:
        self._waterfall, self._position, self._assembly = waterfall, position, assembly
        self._called = False
        self.over = False  # the listener has returned
        self.running = False  # the inner listeners have not yet

    def call_next(self) -> Awaitable[PromptAssembly]:
        """An awaitable of what the inner listeners give back. Counts as a call when it is awaited."""
        return _Next(self)

    def go(self) -> Generator[Any, Any, PromptAssembly]:
        waterfall = self._waterfall
        listener = waterfall._listeners[self._position]  # pyright: ignore[reportPrivateUsage]
        if self._called or self.over:
            fault = "called call_next() a second time" if self._called else "called call_next() after it had returned"
            raise waterfall._failed(listener, f"{fault}; call it at most once, and await it")  # pyright: ignore[reportPrivateUsage]
        self._called = True
        waterfall._leave(listener, self._assembly)  # pyright: ignore[reportPrivateUsage]
        return self._inner().__await__()

    async def _inner(self) -> PromptAssembly:
        self.running = True
        try:
            return await self._waterfall._from(self._position + 1, self._assembly)  # pyright: ignore[reportPrivateUsage]
        finally:
            self.running = False


class _Next:
    """What ``call_next()`` gives: never awaited, it does nothing and warns of nothing."""

    __slots__ = ("_step",)

    def __init__(self, step: _Step) -> None:
        self._step = step

    def __await__(self) -> Generator[Any, Any, PromptAssembly]:
        return self._step.go()


def _changed(
    entries: Entries[Any], known: Sequence[object], kind: type, check: Callable[[object, type[Any]], object]
) -> tuple[int, int]:
    """Start and stop of what is not as it was. Strangers are checked first: asked if they are equal, they may lie."""
    head, tail = entries.untouched(known)
    touched = entries[head : len(entries) - tail]
    if {*map(type, touched)} - {kind}:
        for stranger in [entry for entry in touched if type(entry) is not kind]:
            check(stranger, kind)
    return changed_stretch(known, entries, (head, tail))


def _check_text(entry: object, kind: type[AssembledText]) -> AssembledText:
    if not isinstance(entry, kind):
        what = f"put {described(entry)} among the {kind.KIND}s"
        raise TypeError(f"{what}; make it an {kind.__name__}(name, text)")
    for part in ("name", "text"):
        if not isinstance(getattr(entry, part), str):
            what = f"put {with_article(kind.KIND)} whose {part} is {described(getattr(entry, part))}"
            raise TypeError(f"{what}; give a string")
    if plain_name(entry.name) is None:
        raise TypeError(f"put {with_article(kind.KIND)} whose name is {entry.name!r}; give a name that UTF-8 can spell")
    return entry


def _check_tool(tool: object, kind: type[ToolSchema]) -> None:
    if not isinstance(tool, kind):
        raise TypeError(f"put {described(tool)} among the tools; make it a ToolSchema(…)")
    name, description = cast("tuple[object, object]", (tool.name, tool.description))
    if plain_name(name) is None or name == TOOL_ORDER_REST:
        raise TypeError(f"put a tool among the tools whose name is {name!r}; give it a name of its own")
    if not isinstance(description, str) or not spellable(description):
        what = described(description) if not isinstance(description, str) else "text with half a surrogate pair"
        raise TypeError(f"put the tool {name} among the tools, whose description is {what}; give text")


def _check_variables(variables: object) -> None:
    if not isinstance(variables, dict):
        raise TypeError(f"put {described(variables)} in the place of the variables; give a dict")
    for name, value in cast("dict[object, object]", variables).items():
        if not isinstance(name, str):
            raise TypeError(f"set a variable whose name is {described(name)}; give a string")
        if not spellable(name):
            raise TypeError(f"set a variable whose name is {name!r}; give a name that UTF-8 can spell")
        if value is not None and not isinstance(value, str):
            raise TypeError(f"gave the variable {name} {described(value)}; give a string or None")


def origin_of(listener: Listener) -> Origin:
    """The origin of what a listener puts into an assembly."""
    scope = None if listener.scope is GLOBAL else listener.scope.name
    return Origin(listener.owner, scope, listener.source, listener.name)
