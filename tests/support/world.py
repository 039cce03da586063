"""A small world to play with: what can be registered, as plain values, and the answers that providers give.

Two registries that were given the same values hold the same things, down to the line that registered them; so one that
was played with can be compared with one made afresh.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from foreword import (
    AssembleContext,
    AssembledContext,
    AssembledSection,
    ContextKey,
    ForewordError,
    Placeholder,
    PromptAssembly,
    PromptTooLargeError,
    Registration,
    RenderError,
    Rendering,
    SystemPrompt,
    ToolProviderResult,
    ToolSchema,
    render,
    render_context_snapshot,
    render_prompt,
)

MOOD = ContextKey("mood", int)
FAILS = "fails!"  # an answer that the provider raises instead

PALETTE = (
    ToolSchema("t0", "first", {"type": "object"}),
    ToolSchema("t1", "second", {"b": 1, "a": 2}),
    ToolSchema("t1", "another of this name", {}),
    ToolSchema("T", "a capital", {}),
)

Action: TypeAlias = "tuple[Any, ...]"
"""What a listener does: a word, then what it needs; ``next`` calls on."""


@dataclass
class World:
    """What providers and conditions look at, and tests change."""

    folder: Path
    answers: list[str | None] = field(default_factory=lambda: ["zero", "one", ""])
    flags: list[bool] = field(default_factory=lambda: [True, False])
    tools: list[tuple[int, ...]] = field(default_factory=lambda: [(0,), (1, 2)])
    fresh_tools: bool = False  # tool providers make equal schemas anew, instead of giving the same ones


# -- values ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A provider of one of the world's answers."""

    slot: int
    how: str = "plain"  # or "context", "async"


@dataclass(frozen=True)
class InFile:
    """A text in a file of the world's folder."""

    name: str


Given: TypeAlias = "str | Asked | InFile | None"


def provider(world: World, asked: Asked) -> Callable[..., Any]:
    def answer() -> str | None:
        if world.answers[asked.slot] == FAILS:
            raise RuntimeError("no answer today")
        return world.answers[asked.slot]

    def answer_in_mood(context: AssembleContext) -> str | None:
        told = answer()
        return told if told is None else f"{told}{context.get(MOOD, 0)}"

    async def answer_later() -> str | None:
        return answer()

    return {"plain": answer, "context": answer_in_mood, "async": answer_later}[asked.how]


def made(world: World, given: Given) -> Any:
    if isinstance(given, Asked):
        return provider(world, given)
    return world.folder / given.name if isinstance(given, InFile) else given


@dataclass(frozen=True)
class When:
    """A condition: a flag of the world, or the mood of the context."""

    flag: int | None = None
    mood: int = 0
    raises: bool = False  # instead of being false

    def of(self, world: World) -> Callable[[AssembleContext], bool]:
        def condition(context: AssembleContext) -> bool:
            holds = context.get(MOOD, 0) == self.mood if self.flag is None else world.flags[self.flag]
            if self.raises and not holds:
                raise LookupError("cannot tell")
            return holds

        return condition


@dataclass(frozen=True)
class Options:
    """What all entries take."""

    when: When | None = None
    on_error: str | Placeholder = "fail"

    def of(self, world: World) -> dict[str, Any]:
        when = None if self.when is None else self.when.of(world)
        return {"when": when, "on_error": self.on_error}


PLAIN = Options()


def put(call: Callable[[Any], Any], given: Any) -> Any:
    """The one line from which values are registered and replaced, so that the source of both is the same."""
    return call(given)


# -- what can be registered --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Text:
    """A section or a context."""

    kind: str
    name: str
    order: float
    value: Given
    options: Options = PLAIN
    more: tuple[tuple[str, Any], ...] = ()  # complete, verbatim, requires_tools

    def register(self, view: SystemPrompt, world: World) -> Registration:
        call = view.section if self.kind == "section" else view.context
        given = {"order": self.order, **self.options.of(world), **dict(self.more)}
        return put(partial(call, self.name, **given), made(world, self.value))


@dataclass(frozen=True)
class Value:
    """A variable."""

    name: str
    value: Given
    options: Options = PLAIN

    def register(self, view: SystemPrompt, world: World) -> Registration:
        return put(partial(view.variable, self.name, **self.options.of(world)), made(world, self.value))


@dataclass(frozen=True)
class Tools:
    """A tool provider: some of the palette, or a slot of the world."""

    value: tuple[int, ...] | int
    known: tuple[str, ...] | None = None
    options: Options = PLAIN

    def register(self, view: SystemPrompt, world: World) -> Registration:
        return view.tools(self._provider(world), **self.options.of(world))

    def _provider(self, world: World) -> Any:
        held = self.value
        if isinstance(held, tuple):
            return ToolProviderResult([PALETTE[each] for each in held], self.known)

        def answer() -> ToolProviderResult:
            schemas = [PALETTE[each] for each in world.tools[held]]
            return ToolProviderResult([replace(each) for each in schemas] if world.fresh_tools else schemas, self.known)

        return answer


@dataclass(frozen=True)
class Protect:
    sections: tuple[str, ...]
    tools: tuple[str, ...]

    def register(self, view: SystemPrompt, world: World) -> Registration:
        return view.protect(sections=self.sections, tools=self.tools)


@dataclass(frozen=True)
class Suppress:
    def register(self, view: SystemPrompt, world: World) -> Registration:
        return view.suppress_runtime_context()


@dataclass(frozen=True)
class Listen:
    """A listener that does these things in turn, while its condition holds."""

    actions: tuple[Action, ...]
    when: When | None = None
    prepend: bool = False

    def register(self, view: SystemPrompt, world: World) -> Registration:
        holds = None if self.when is None else self.when.of(world)

        async def listener(
            assembly: PromptAssembly, context: AssembleContext, call_next: Callable[[], Awaitable[PromptAssembly]]
        ) -> PromptAssembly:
            if holds is not None and not holds(context):
                return await call_next()
            for action in self.actions:
                assembly = await call_next() if action == ("next",) else act(assembly, action)
            return assembly

        return view.on_assemble(listener, prepend=self.prepend)


Spec: TypeAlias = "Text | Value | Tools | Protect | Suppress | Listen"


# -- what listeners do -------------------------------------------------------------------------------------------------


def act(assembly: PromptAssembly, action: Action) -> PromptAssembly:
    """Do one thing to an assembly; positions count round, and on an empty list nothing happens."""
    word, *given = action
    if word == "raise":
        raise RuntimeError("a listener's own fault")
    if word == "new":
        return PromptAssembly(variables=dict(assembly.variables))
    if word == "set":
        assembly.variables[given[0]] = given[1]
    elif word == "delete":
        assembly.variables.pop(given[0], None)
    else:
        _act_on_list(getattr(assembly, given[0]), word, given[0], given[1:])
    return assembly


def _act_on_list(entries: Any, word: str, kind: str, given: list[Any]) -> None:
    if word == "look":
        return
    if word == "reverse":
        entries.reverse()
    elif word == "clear":
        entries.clear()
    elif word == "append":
        entries.append(new_entry(kind, *given))
    elif word == "front":
        entries.insert(0, new_entry(kind, *given))
    elif entries and word == "drop":
        entries.pop(given[0] % len(entries))
    elif entries and word == "edit":
        at = given[0] % len(entries)
        entries[at] = replace(entries[at], **{"description" if kind == "tools" else "text": given[1]})
    elif entries and word == "swap":  # two entries change places
        one, other = given[0] % len(entries), given[1] % len(entries)
        entries[one], entries[other] = entries[other], entries[one]


def new_entry(kind: str, name: str, text: str) -> Any:
    if kind == "tools":
        return ToolSchema(name, text, {})
    return AssembledSection(name, text) if kind == "sections" else AssembledContext(name, text)


# -- what can be observed ----------------------------------------------------------------------------------------------


def told_tools(tools: Any) -> list[tuple[str, str, str]]:
    return [(tool.name, tool.description, json.dumps(tool.parameters)) for tool in tools]


def told_assembly(assembly: PromptAssembly) -> dict[str, Any]:
    """All that an assembly tells; its entries hold their origins, and cannot be changed."""
    return {
        "sections": list(assembly.sections),
        "contexts": list(assembly.contexts),
        "tools": told_tools(assembly.tools),
        "variables": list(assembly.variables.items()),
    }


def told_error(error: ForewordError) -> tuple[str, str]:
    return error.kind, str(error)


@dataclass
class Outcome:
    """What came of assembling and rendering."""

    told: dict[str, Any]
    assembly: PromptAssembly | None = None
    rendering: Rendering | None = None

    def read(self) -> dict[str, Any]:
        """Everything that can be read of it, now; most of it is only worked out when it is read."""
        rendering = self.rendering
        if rendering is None:
            return self.told
        return {
            **self.told,
            "text": rendering.text,
            "snapshot": rendering.snapshot,
            "sent tools": told_tools(rendering.tools),
            "spans": list(rendering.spans),
            "snapshot spans": list(rendering.snapshot_spans),
            "digest": rendering.digest,
            "dropped": rendering.dropped,
            "trace": rendering.trace.to_json(),
        }

    def check_one_by_one(self) -> None:
        """Rendering the assembly entry by entry gives the same text, or the same fault."""
        if self.assembly is None:
            return
        try:
            told: Any = (render_prompt(self.assembly), render_context_snapshot(self.assembly))
        except RenderError as error:
            told = told_error(error)
        if self.rendering is not None:
            assert told == (self.rendering.text, self.rendering.snapshot)
        elif self.told["fault"][0] != PromptTooLargeError.kind:
            assert told == self.told["fault"]


def outcome(assembling: Callable[[], PromptAssembly], by_hand: tuple[Action, ...]) -> Outcome:
    """Assemble, do something to the assembly by hand, render."""
    try:
        assembly = assembling()
    except ForewordError as error:
        return Outcome({"no assembly": told_error(error)})
    for action in by_hand:
        act(assembly, action)
    try:
        rendering = render(assembly)
    except ForewordError as error:
        return Outcome({**told_assembly(assembly), "fault": told_error(error)}, assembly)
    return Outcome(told_assembly(assembly), assembly, rendering)
