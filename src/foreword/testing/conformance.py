"""Replay recorded prompt-assembly scenarios against the public API, and tell where the answers differ.

    python -m foreword.testing.conformance [--door sync|async] FILE...

A file holds one JSON object a line: a scenario with an ``id``, perhaps ``about`` and ``config``, its ``steps``, and
``expect``, one recorded answer per step. A step's kind is in ``op``; ``in`` names the place it happens in (a scope, a
plugin, or the root when absent), ``as`` what later steps call that which it made. An answer is null, a number, an
assembly, or ``{"error": kind}``; a configuration that does not load has the one answer ``{"mount": {"error": kind}}``.

The command prints each mismatch and a last line ``N passed, M failed``. It exits with 0 when there are no mismatches,
1 when there are some, and 2, with one sentence on standard error, when a file cannot be read as scenarios.

Reads top down: scenarios and their fields, drivers, what a step registers, what a listener does, the replay itself,
the comparison, the command. A second kernel joins by a `Driver` of its own; nothing else here makes a prompt.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from foreword import (
    AssembleContext,
    AssembledContext,
    AssembledSection,
    ContextKey,
    ForewordError,
    JsonValue,
    PromptAssembly,
    SystemPrompt,
    SystemPromptConfig,
    ToolProviderResult,
    ToolSchema,
    render_context_snapshot,
    render_prompt,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence

__all__ = [
    "WHO",
    "Answer",
    "Door",
    "Driver",
    "Mismatch",
    "Place",
    "Scenario",
    "ScenarioError",
    "Standalone",
    "load",
    "main",
    "mismatches",
    "run",
]

Answer: TypeAlias = JsonValue
Door: TypeAlias = Literal["sync", "async"]

WHO = ContextKey("who", str)
"""The value of the assembly context that a step's ``who`` sets and the provider ``who`` reads."""

_T = TypeVar("_T")


# Scenarios and their fields ------------------------------------------------------------------------------------------


class ScenarioError(ValueError):
    """What was given is no scenario; the message is one sentence that says where and why.

    No `ForewordError`, because those are answers.
    """


@dataclass(frozen=True, slots=True)
class Scenario:
    """A configuration, the steps taken under it, and the answers recorded for them."""

    id: str
    steps: tuple[dict[str, JsonValue], ...]
    config: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    expect: tuple[Answer, ...] | None = None  # None: nothing recorded yet
    about: str = ""
    source: str = ""  # the file and line it was read from

    def __str__(self) -> str:
        about = f" ({self.about})" if self.about else ""
        return f"{self.id}{about}"


class _Fields:
    """The fields of one JSON object, each read as the type it must have."""

    def __init__(self, values: JsonValue, where: str) -> None:
        if not isinstance(values, dict):
            raise ScenarioError(f"{where}: expected a JSON object, found {_short(values)}.")
        self.values = values
        self.where = where

    def fault(self, name: str, wanted: str) -> ScenarioError:
        found = _short(self.values[name]) if name in self.values else "nothing"
        return ScenarioError(f'{self.where}: "{name}" must be {wanted}, found {found}.')

    def text(self, name: str) -> str:
        value = self.values.get(name)
        if not isinstance(value, str):
            raise self.fault(name, "a string")
        return value

    def text_or_none(self, name: str) -> str | None:
        return None if self.values.get(name) is None else self.text(name)

    def flag(self, name: str) -> bool:
        value = self.values.get(name, False)
        if not isinstance(value, bool):
            raise self.fault(name, "true or false")
        return value

    def items(self, name: str) -> list[JsonValue]:
        value = self.values.get(name)
        if not isinstance(value, list):
            raise self.fault(name, "a list")
        return value

    def items_or_none(self, name: str) -> list[JsonValue] | None:
        return None if self.values.get(name) is None else self.items(name)

    def objects(self, name: str) -> list[_Fields]:
        return [_Fields(item, f"{self.where}, {name} {at}") for at, item in enumerate(self.items(name), 1)]

    def names(self, name: str) -> list[str] | None:
        found = self.items_or_none(name)
        if found is None:
            return None
        names = [item for item in found if isinstance(item, str)]
        if len(names) != len(found):
            raise self.fault(name, "a list of strings")
        return names

    def mapping(self, name: str) -> dict[str, JsonValue]:
        value = self.values.get(name, {})
        if not isinstance(value, dict):
            raise self.fault(name, "a JSON object")
        return value

    def order(self) -> float:
        value = self.values.get("order")
        if value in ("NaN", "Infinity", "-Infinity"):
            return float(value)
        if not isinstance(value, int | float):
            raise self.fault("order", 'a number, or one of "NaN", "Infinity" and "-Infinity"')
        return value


def _short(value: JsonValue, limit: int = 60) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[:limit]}…"


def load(path: str | Path) -> list[Scenario]:
    """Read the scenarios of a file, one a line; blank lines are passed over.

    Raises:
        ScenarioError: the file cannot be read, holds no scenario, or a line is none.
    """
    lines = _read(path).split("\n")  # not splitlines(): JSON strings may hold other line separators
    scenarios = [_scenario(line, f"{path}, line {at}") for at, line in enumerate(lines, 1) if line.strip()]
    if not scenarios:
        raise ScenarioError(f"{path}: holds no scenario.")
    return scenarios


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: is not UTF-8 text ({error.reason} at byte {error.start}).") from error
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read ({error.strerror or error}).") from error


def _scenario(line: str, where: str) -> Scenario:
    fields = _Fields(_parsed(line, where), where)
    expect = fields.items_or_none("expect")
    scenario = Scenario(
        id=fields.text("id"),
        steps=tuple(step.values for step in fields.objects("steps")),
        config=fields.mapping("config"),
        expect=None if expect is None else tuple(expect),
        about=fields.text_or_none("about") or "",
        source=where,
    )
    return _checked(scenario)


def _parsed(line: str, where: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{where}: is not JSON ({error}).") from error
    return value


def _checked(scenario: Scenario) -> Scenario:
    expect, steps = scenario.expect, scenario.steps
    if expect is not None and len(expect) != len(steps) and _mount(expect) is None:
        raise ScenarioError(f"{scenario.source}: {scenario.id} has {len(steps)} steps and {len(expect)} answers.")
    return scenario


# Drivers: how a root, a plugin and a scope come and go ---------------------------------------------------------------


class Place(Protocol):
    """Where a step happens: the root, a plugin or a scope, each with its own view of the prompt."""

    @property
    def prompt(self) -> SystemPrompt:
        """The view through which this place registers and assembles."""
        ...

    async def plugin(self, name: str) -> Place:
        """Mount a plugin here; it goes when this place does."""
        ...

    async def scope(self, name: str, parent: SystemPrompt | None) -> Place:
        """Make a scope below that of ``parent``, or directly under the global one."""
        ...

    async def close(self) -> None:
        """Undo what was registered through this place; a second time does nothing."""
        ...


class Driver(Protocol):
    """Makes the root that a scenario runs in; another kernel under test brings its own."""

    async def root(self, config: SystemPromptConfig) -> Place:
        """Build a prompt of this configuration, in a place of its own."""
        ...


@dataclass(frozen=True, slots=True)
class _View:
    """A place that is nothing but a view of a `SystemPrompt` standing alone."""

    prompt: SystemPrompt

    async def plugin(self, name: str) -> Place:
        return _View(self.prompt.owner(name))

    async def scope(self, name: str, parent: SystemPrompt | None) -> Place:
        return _View(self.prompt.scope(name, parent=parent))

    async def close(self) -> None:
        self.prompt.close()


class Standalone:
    """The driver of a `SystemPrompt` built directly, without a kernel; its plugins are owners. It never waits."""

    async def root(self, config: SystemPromptConfig) -> Place:
        """Build a prompt of this configuration; the place is its own view."""
        return _View(SystemPrompt(config))


def _config(fields: Mapping[str, JsonValue]) -> SystemPromptConfig:
    """Make the configuration; scenarios that say nothing of the identity were recorded with it."""
    told = {"includeHarnessIdentity", "include_harness_identity"} & fields.keys()
    values: dict[str, Any] = {**fields} if told else {**fields, "include_harness_identity": True}
    return SystemPromptConfig(**values)


# What a step registers -----------------------------------------------------------------------------------------------


class _Registration(Protocol):
    def close(self) -> object: ...


class _Crashes:
    """Remembers what failed in the runner's own callbacks, where the library would report it as a caller's fault."""

    def __init__(self) -> None:
        self._first: Exception | None = None

    @contextmanager
    def noted(self) -> Generator[None]:
        try:
            yield
        except Exception as error:
            self._first = self._first or error
            raise

    def surface(self, reported: Exception | None = None) -> None:
        """Raise the first crash, if there was one, in place of what the library made of it."""
        if self._first is not None:
            raise self._first from reported


_Provider: TypeAlias = "Callable[..., Any]"  # asked with the context or without, and null may be what it answers


def _text(fields: _Fields, name: str, crashes: _Crashes) -> str | _Provider:
    """Read a text or value: a string, null (a provider without an answer), or a provider of the runner's."""
    value = fields.values.get(name)
    if value is None:
        return lambda: None
    return value if isinstance(value, str) else _provider(_Fields(value, f"{fields.where}, {name}"), crashes)


def _provider(fields: _Fields, crashes: _Crashes) -> _Provider:
    kind, prefix = fields.text("provider"), fields.text_or_none("prefix") or ""
    if kind == "count":
        calls = count(1)
        return lambda: f"{prefix}{next(calls)}"
    if kind == "who":
        return _who(prefix, crashes)
    raise fields.fault("provider", '"count" or "who"')


def _who(prefix: str, crashes: _Crashes) -> Callable[[AssembleContext], str]:
    def who(context: AssembleContext) -> str:
        with crashes.noted():
            return f"{prefix}{context.get(WHO, 'nobody')}"

    return who


def _section(prompt: SystemPrompt, step: _Fields, crashes: _Crashes) -> _Registration:
    text = _text(step, "text", crashes)
    return prompt.section(step.text("name"), text, order=step.order(), complete=step.flag("complete"))


def _context(prompt: SystemPrompt, step: _Fields, crashes: _Crashes) -> _Registration:
    return prompt.context(step.text("name"), _text(step, "text", crashes), order=step.order())


def _variable(prompt: SystemPrompt, step: _Fields, crashes: _Crashes) -> _Registration:
    value = None if step.values.get("value") is None else _text(step, "value", crashes)
    return prompt.variable(step.text("name"), value)


def _tools(prompt: SystemPrompt, step: _Fields, crashes: _Crashes) -> _Registration:
    """Register a provider, never a static list: its schemas are judged at the assembly."""
    known = step.names("known_names")
    read = [
        (tool.text("name"), tool.text("description"), tool.mapping("parameters")) for tool in step.objects("schemas")
    ]

    def provider() -> ToolProviderResult:
        return ToolProviderResult(schemas=[ToolSchema(*tool) for tool in read], known_names=known)

    return prompt.tools(provider)


def _protect(prompt: SystemPrompt, step: _Fields, crashes: _Crashes) -> _Registration:
    return prompt.protect(sections=step.names("sections") or [], tools=step.names("tools") or [])


def _suppress(prompt: SystemPrompt, step: _Fields, crashes: _Crashes) -> _Registration:
    return prompt.suppress_runtime_context()


def _listen(prompt: SystemPrompt, step: _Fields, crashes: _Crashes) -> _Registration:
    acts = [_act(action, crashes) for action in step.objects("actions")]

    async def listener(assembly: PromptAssembly, context: AssembleContext, call_next: _CallNext) -> PromptAssembly:
        for act in acts:
            assembly = await act(assembly, call_next)
        return assembly

    return prompt.on_assemble(listener, prepend=step.flag("prepend"))


_REGISTERS: dict[str, Callable[[SystemPrompt, _Fields, _Crashes], _Registration]] = {
    "section": _section,
    "context": _context,
    "variable": _variable,
    "tools": _tools,
    "protect": _protect,
    "suppress_context": _suppress,
    "listener": _listen,
}


# What a listener does ------------------------------------------------------------------------------------------------


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_N = TypeVar("_N", bound=_Named)
_CallNext: TypeAlias = "Callable[[], Awaitable[PromptAssembly]]"
_Act: TypeAlias = "Callable[[PromptAssembly, _CallNext], Awaitable[PromptAssembly]]"
_Edit: TypeAlias = "Callable[[PromptAssembly], None]"


async def _next(assembly: PromptAssembly, call_next: _CallNext) -> PromptAssembly:
    return await call_next()


async def _throw(assembly: PromptAssembly, call_next: _CallNext) -> PromptAssembly:
    raise RuntimeError("the scenario's listener raises")


async def _replace_all(assembly: PromptAssembly, call_next: _CallNext) -> PromptAssembly:
    return PromptAssembly(sections=[], contexts=[], tools=[], variables={})


_ACTS: dict[str, _Act] = {"next": _next, "throw": _throw, "replace_all": _replace_all}


def _act(action: _Fields, crashes: _Crashes) -> _Act:
    """Read an action whole before anything is registered: a listener's fault would pass for a recorded error."""
    kind = action.text("do")
    if kind in _ACTS:
        return _ACTS[kind]
    if kind not in _EDITS:
        raise action.fault("do", "a known action")
    edit = _EDITS[kind](action)

    async def act(assembly: PromptAssembly, call_next: _CallNext) -> PromptAssembly:
        with crashes.noted():
            edit(assembly)
        return assembly

    return act


def _change(entries: list[_N], name: str, changed: Callable[[_N], _N]) -> None:
    """Put a changed entry in the place of the first of that name, if there is one."""
    at = next((at for at, entry in enumerate(entries) if entry.name == name), None)
    if at is not None:
        entries[at] = changed(entries[at])


def _remove(entries: list[_N], name: str) -> None:
    entries[:] = [entry for entry in entries if entry.name != name]


def _add_section(action: _Fields, *, first: bool) -> _Edit:
    name, text = action.text("name"), action.text("text")

    def edit(assembly: PromptAssembly) -> None:
        assembly.sections.insert(0 if first else len(assembly.sections), AssembledSection(name, text))

    return edit


def _edit_section(action: _Fields) -> _Edit:
    name, text = action.text("name"), action.text("text")
    return lambda assembly: _change(assembly.sections, name, lambda section: replace(section, text=text))


def _replace_section(action: _Fields) -> _Edit:
    name, text = action.text("name"), action.text("text")
    return lambda assembly: _change(assembly.sections, name, lambda section: AssembledSection(name, text))


def _remove_section(action: _Fields) -> _Edit:
    name = action.text("name")
    return lambda assembly: _remove(assembly.sections, name)


def _reverse_sections(action: _Fields) -> _Edit:
    return lambda assembly: assembly.sections.reverse()


def _append_context(action: _Fields) -> _Edit:
    name, text = action.text("name"), action.text("text")
    return lambda assembly: assembly.contexts.append(AssembledContext(name, text))


def _remove_context(action: _Fields) -> _Edit:
    name = action.text("name")
    return lambda assembly: _remove(assembly.contexts, name)


def _append_tool(action: _Fields) -> _Edit:
    name, description = action.text("name"), action.text_or_none("description")
    told = name if description is None else description
    return lambda assembly: assembly.tools.append(ToolSchema(name, told, {}))


def _edit_tool(action: _Fields) -> _Edit:
    name, description = action.text("name"), action.text("description")

    def changed(tool: ToolSchema) -> ToolSchema:
        return replace(tool, description=description, parameters={**tool.parameters, "leak": True})

    return lambda assembly: _change(assembly.tools, name, changed)


def _remove_tool(action: _Fields) -> _Edit:
    name = action.text("name")
    return lambda assembly: _remove(assembly.tools, name)


def _reverse_tools(action: _Fields) -> _Edit:
    return lambda assembly: assembly.tools.reverse()


def _set_variable(action: _Fields) -> _Edit:
    name, value = action.text("name"), action.text_or_none("value")

    def edit(assembly: PromptAssembly) -> None:
        assembly.variables[name] = value

    return edit


def _delete_variable(action: _Fields) -> _Edit:
    name = action.text("name")

    def edit(assembly: PromptAssembly) -> None:
        assembly.variables.pop(name, None)

    return edit


_EDITS: dict[str, Callable[[_Fields], _Edit]] = {
    "append_section": partial(_add_section, first=False),
    "prepend_section": partial(_add_section, first=True),
    "edit_section": _edit_section,
    "replace_section": _replace_section,
    "remove_section": _remove_section,
    "reverse_sections": _reverse_sections,
    "append_context": _append_context,
    "remove_context": _remove_context,
    "append_tool": _append_tool,
    "edit_tool": _edit_tool,
    "remove_tool": _remove_tool,
    "reverse_tools": _reverse_tools,
    "set_variable": _set_variable,
    "delete_variable": _delete_variable,
}


# The replay ----------------------------------------------------------------------------------------------------------


def run(scenario: Scenario, *, door: Door = "sync", driver: Driver | None = None) -> list[Answer]:
    """Run a scenario and give its answers, one a step, or a single one when its configuration does not load.

    Every `ForewordError` is an answer, ``{"error": kind}``. Any other exception surfaces as itself, with a note of the
    step.

    Args:
        scenario: what to run; its recorded answers do not matter.
        door: how assemblies are asked for: ``assemble_sync`` without a loop around it, or ``assemble`` in a loop that
            anyio starts.
        driver: makes the root, its plugins and scopes, `Standalone` when absent; in the sync door it must never wait.

    Raises:
        ScenarioError: a step cannot be understood.
    """
    replay = _Replay(scenario, door, Standalone() if driver is None else driver)
    if door == "sync":
        return _without_loop(replay.answers())
    import anyio  # here only: the sync door is for places where nothing async is loaded

    return anyio.run(replay.answers)


def _without_loop(work: Coroutine[object, object, _T]) -> _T:
    """Run a coroutine that never waits."""
    try:
        work.send(None)
    except StopIteration as done:
        result: _T = done.value
        return result
    work.close()
    raise RuntimeError("the driver waited in the sync door; run this scenario with door='async'")


class _Replay:
    """One run of a scenario: its places and what was kept under a name, from the first step to the last."""

    def __init__(self, scenario: Scenario, door: Door, driver: Driver) -> None:
        self._scenario = scenario
        self._door = door
        self._driver = driver
        self._places: dict[str, Place] = {}
        self._undo: dict[str, Callable[[], Awaitable[None]]] = {}
        self._changes = 0
        self._crashes = _Crashes()

    async def answers(self) -> list[Answer]:
        try:
            root = await self._driver.root(_config(self._scenario.config))
        except ForewordError as error:
            return [{"mount": _error(error)}]
        self._places["root"] = root
        root.prompt.on_change(self._changed)
        try:
            return [await self._answer(at, step) for at, step in enumerate(self._scenario.steps, 1)]
        finally:
            await root.close()

    def _changed(self) -> None:
        self._changes += 1

    async def _answer(self, at: int, values: dict[str, JsonValue]) -> Answer:
        step = _Fields(values, f"{self._scenario.source or self._scenario.id}, step {at}")
        try:
            return await self._checked(step)
        except ScenarioError:
            raise
        except Exception as error:
            error.add_note(f"in {step.where} of scenario {self._scenario}")
            raise

    async def _checked(self, step: _Fields) -> Answer:
        try:
            answer = await self._taken(step)
        except ForewordError as error:
            self._crashes.surface(error)
            return _error(error)
        self._crashes.surface()
        return answer

    async def _taken(self, step: _Fields) -> Answer:
        kind = step.text("op")
        if kind in _REGISTERS:
            self._register(_REGISTERS[kind], step)
            return None
        if kind in _STEPS:
            return await _STEPS[kind](self, step)
        raise step.fault("op", "a known kind of step")

    def _register(self, call: Callable[[SystemPrompt, _Fields, _Crashes], _Registration], step: _Fields) -> None:
        registration = call(self._place(step, "in", "root").prompt, step, self._crashes)

        async def undo() -> None:
            registration.close()

        name = step.text_or_none("as")
        if name is not None:
            self._undo[name] = undo

    def _place(self, step: _Fields, name: str, default: str) -> Place:
        wanted = step.text_or_none(name) or default
        if wanted not in self._places:
            raise step.fault(name, "a place made by an earlier step")
        return self._places[wanted]

    def _keep(self, name: str, place: Place) -> None:
        self._places[name] = place
        self._undo[name] = place.close

    async def plugin(self, step: _Fields) -> None:
        name = step.text("as")
        self._keep(name, await self._place(step, "in", "root").plugin(name))

    async def scope(self, step: _Fields) -> None:
        name = step.text("as")
        above = None if step.text_or_none("parent") is None else self._place(step, "parent", "root").prompt
        self._keep(name, await self._places["root"].scope(name, above))

    async def dispose(self, step: _Fields) -> None:
        undo = self._undo.get(step.text("what"))
        if undo is not None:
            await undo()

    async def changes(self, step: _Fields) -> Answer:
        return self._changes

    async def assemble(self, step: _Fields) -> Answer:
        scope, who = step.text_or_none("scope"), step.text_or_none("who")
        context = AssembleContext(
            {} if who is None else {WHO: who},
            scope=None if scope is None else self._place(step, "scope", "root").prompt,
        )
        prompt = self._places["root"].prompt
        return _described(prompt.assemble_sync(context) if self._door == "sync" else await prompt.assemble(context))


_STEPS: dict[str, Callable[[_Replay, _Fields], Awaitable[Answer]]] = {
    "plugin": _Replay.plugin,
    "scope": _Replay.scope,
    "dispose": _Replay.dispose,
    "changes": _Replay.changes,
    "assemble": _Replay.assemble,
}


def _error(error: ForewordError) -> Answer:
    return {"error": error.kind}


def _described(assembly: PromptAssembly) -> Answer:
    """Write an assembly down: its entries before interpolation, and what they render to."""
    return {
        "sections": [[section.name, section.text] for section in assembly.sections],
        "contexts": [[context.name, context.text] for context in assembly.contexts],
        "tools": [_described_tool(tool) for tool in assembly.tools],
        "variables": {name: assembly.variables[name] for name in sorted(assembly.variables)},
        "prompt": _rendered(render_prompt, assembly),
        "snapshot": _rendered(render_context_snapshot, assembly),
    }


def _described_tool(tool: ToolSchema) -> Answer:
    parameters: JsonValue = json.loads(json.dumps(tool.parameters))
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def _rendered(render: Callable[[PromptAssembly], str], assembly: PromptAssembly) -> Answer:
    try:
        return render(assembly)
    except ForewordError as error:
        return _error(error)


# The comparison ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One answer that is not the recorded one."""

    scenario: Scenario
    step: int  # counted from 1; 0 is the configuration
    expected: Answer
    actual: Answer

    def __str__(self) -> str:
        kind = "configuration" if self.step == 0 else f"step {self.step}: {self.scenario.steps[self.step - 1]['op']}"
        return "\n".join([f"{self.scenario}, {kind}", *_differences(self.expected, self.actual)])


def mismatches(scenario: Scenario, *, door: Door = "sync", driver: Driver | None = None) -> list[Mismatch]:
    """Run a scenario (see `run`) and give every answer that differs from the recorded one.

    Errors compare by kind alone, objects whatever the order of their keys. A recorded snapshot of null says that the
    recorded system knew none: it is not compared. Where only one side's configuration loads, that is the one mismatch.
    """
    expect = _recorded(scenario)
    answers = run(scenario, door=door, driver=driver)
    if len(answers) != len(expect) or _mount(answers) != _mount(expect):
        return [Mismatch(scenario, 0, {"mount": _mount(expect)}, {"mount": _mount(answers)})]
    pairs = enumerate(zip(expect, answers, strict=True), 1)
    return [Mismatch(scenario, at, wanted, came) for at, (wanted, came) in pairs if _differ(wanted, came)]


def _recorded(scenario: Scenario) -> Sequence[Answer]:
    if scenario.expect is None:
        raise ScenarioError(f"{scenario.source or scenario.id}: {scenario.id} has no recorded answers.")
    return _checked(scenario).expect or ()


def _mount(answers: Sequence[Answer]) -> Answer:
    """Give what kept a configuration from loading, or None when it loaded."""
    first = answers[0] if len(answers) == 1 else None
    return _essence(first["mount"]) if isinstance(first, dict) and "mount" in first else None


def _differ(expected: Answer, actual: Answer) -> bool:
    if isinstance(expected, dict) and isinstance(actual, dict) and expected.get("snapshot", "") is None:
        actual = {**actual, "snapshot": None}
    return _canonical(expected) != _canonical(actual)


def _canonical(answer: Answer) -> str:
    """Write an answer so that equal answers are equal texts; unlike Python, JSON tells true from 1."""
    return json.dumps(_essence(answer), sort_keys=True)


def _essence(answer: Answer) -> Answer:
    """Reduce an error, also one of an assembly's renderings, to its kind."""
    if not isinstance(answer, dict):
        return answer
    if "error" in answer:
        return {"error": answer["error"]}
    return {**answer, **{key: _essence(answer[key]) for key in ("mount", "prompt", "snapshot") if key in answer}}


def _differences(expected: Answer, actual: Answer) -> list[str]:
    """Tell two answers apart in indented lines; of two assemblies only the parts that differ."""
    if not (isinstance(expected, dict) and isinstance(actual, dict) and expected.keys() == actual.keys()):
        return _pair(expected, actual, "  ")
    lines: list[str] = []
    for key in expected:
        if _differ({key: expected[key]}, {key: actual[key]}):
            lines += [f"  {key}", *_pair(expected[key], actual[key], "    ")]
    return lines


def _pair(expected: Answer, actual: Answer, indent: str) -> list[str]:
    told = [(name, json.dumps(value, ensure_ascii=False)) for name, value in (("expected", expected), ("came", actual))]
    return [f"{indent}{name + ':':<10}{text}" for name, text in told]


# The command ---------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay the files named on the command line, print what differs, and give the exit code."""
    options = _arguments(arguments)
    try:
        passed, failed = _replayed([(path, load(path)) for path in options.files], options.door)
    except ScenarioError as error:
        print(_printable(str(error), sys.stderr.encoding), file=sys.stderr)
        return 2
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


class _Options(argparse.Namespace):
    files: list[str]
    door: Door


def _arguments(arguments: Sequence[str] | None) -> _Options:
    parser = argparse.ArgumentParser(
        prog="python -m foreword.testing.conformance",
        description="Replay recorded prompt-assembly scenarios and print where the answers differ.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file of scenarios, one JSON object a line")
    parser.add_argument("--door", choices=("sync", "async"), default="sync", help="how assemblies are asked for")
    return parser.parse_args(arguments, namespace=_Options())


def _replayed(files: Sequence[tuple[str, Sequence[Scenario]]], door: Door) -> tuple[int, int]:
    """Replay all scenarios, print their mismatches, and count those that passed and those that failed."""
    passed = failed = 0
    for path, scenarios in files:
        for scenario in scenarios:
            found = mismatches(scenario, door=door)
            passed, failed = (passed, failed + 1) if found else (passed + 1, failed)
            for mismatch in found:
                print(_printable(f"{path}: {mismatch}", sys.stdout.encoding))
    return passed, failed


def _printable(text: str, encoding: str | None) -> str:
    """Escape what the terminal cannot show, lone surrogates among it."""
    return text.encode(encoding or "utf-8", "backslashreplace").decode(encoding or "utf-8")


if __name__ == "__main__":
    sys.exit(main())
