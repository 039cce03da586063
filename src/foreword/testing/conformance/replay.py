"""The replay: one run of a scenario, from its configuration to the answer of its last step."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from foreword import (
    AssembleContext,
    ForewordError,
    JsonValue,
    PromptAssembly,
    SystemPrompt,
    SystemPromptConfig,
    ToolSchema,
    render_context_snapshot,
    render_prompt,
)
from foreword.testing.conformance.crashes import Crashes
from foreword.testing.conformance.drivers import Standalone
from foreword.testing.conformance.registering import REGISTERS, WHO, Registration
from foreword.testing.conformance.scenario import Answer, Fields, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from foreword.testing.conformance.drivers import Driver, Place
    from foreword.testing.conformance.scenario import Scenario

__all__ = ["Door", "run"]

Door: TypeAlias = Literal["sync", "async"]

_T = TypeVar("_T")


def run(
    scenario: Scenario, *, door: Door = "sync", driver: Driver | None = None, backend: str = "asyncio"
) -> list[Answer]:
    """Run a scenario and give its answers, one a step, or a single one when its configuration does not load.

    Every `ForewordError` is an answer, ``{"error": kind}``. Any other exception surfaces as itself, with a note of the
    step.

    Args:
        scenario: what to run; its recorded answers do not matter.
        door: how assemblies are asked for: ``assemble_sync`` without a loop around it, or ``assemble`` in a loop that
            anyio starts.
        driver: makes the root, its plugins and scopes, `Standalone` when absent; in the sync door it must never wait.
        backend: the event loop of the async door, as anyio names it.

    Raises:
        ScenarioError: a step cannot be understood.
    """
    replay = _Replay(scenario, door, Standalone() if driver is None else driver)
    if door == "sync":
        return _without_loop(replay.answers())
    import anyio  # here only: the sync door is for places where nothing async is loaded

    return anyio.run(replay.answers, backend=backend)


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
        self._crashes = Crashes()

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
        step = Fields(values, f"{self._scenario.source or self._scenario.id}, step {at}")
        try:
            return await self._checked(step)
        except ScenarioError:
            raise
        except Exception as error:
            error.add_note(f"in {step.where} of scenario {self._scenario}")
            raise

    async def _checked(self, step: Fields) -> Answer:
        try:
            answer = await self._taken(step)
        except ForewordError as error:
            self._crashes.surface(error)
            return _error(error)
        self._crashes.surface()
        return answer

    async def _taken(self, step: Fields) -> Answer:
        kind = step.text("op")
        if kind in REGISTERS:
            self._register(REGISTERS[kind], step)
            return None
        if kind in _STEPS:
            return await _STEPS[kind](self, step)
        raise step.fault("op", "a known kind of step")

    def _register(self, call: Callable[[SystemPrompt, Fields, Crashes], Registration], step: Fields) -> None:
        registration = call(self._place(step, "in", "root").prompt, step, self._crashes)

        async def undo() -> None:
            registration.close()

        name = step.text_or_none("as")
        if name is not None:
            self._undo[name] = undo

    def _place(self, step: Fields, name: str, default: str) -> Place:
        wanted = step.text_or_none(name) or default
        if wanted not in self._places:
            raise step.fault(name, "a place made by an earlier step")
        return self._places[wanted]

    def _keep(self, name: str, place: Place) -> None:
        self._places[name] = place
        self._undo[name] = place.close

    async def plugin(self, step: Fields) -> None:
        name = step.text("as")
        self._keep(name, await self._place(step, "in", "root").plugin(name))

    async def scope(self, step: Fields) -> None:
        name = step.text("as")
        above = None if step.text_or_none("parent") is None else self._place(step, "parent", "root").prompt
        self._keep(name, await self._places["root"].scope(name, above))

    async def dispose(self, step: Fields) -> None:
        undo = self._undo.get(step.text("what"))
        if undo is not None:
            await undo()

    async def changes(self, step: Fields) -> Answer:
        return self._changes

    async def assemble(self, step: Fields) -> Answer:
        scope, who = step.text_or_none("scope"), step.text_or_none("who")
        context = AssembleContext(
            {} if who is None else {WHO: who},
            scope=None if scope is None else self._place(step, "scope", "root").prompt,
        )
        prompt = self._places["root"].prompt
        return _described(prompt.assemble_sync(context) if self._door == "sync" else await prompt.assemble(context))


_STEPS: dict[str, Callable[[_Replay, Fields], Awaitable[Answer]]] = {
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


def _config(fields: Mapping[str, JsonValue]) -> SystemPromptConfig:
    """Make the configuration; scenarios that say nothing of the identity were recorded with it."""
    told = {"includeHarnessIdentity", "include_harness_identity"} & fields.keys()
    values: dict[str, Any] = {**fields} if told else {**fields, "include_harness_identity": True}
    return SystemPromptConfig(**values)
