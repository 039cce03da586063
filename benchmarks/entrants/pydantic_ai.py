"""Pydantic AI: literal instructions, and async functions for persona, dynamic sections and those that refer to ``v0``.

prepare     only what it does before the model is called: the instructions and the definitions of the tools
run         a whole run of an agent, whose model answers at once

Sections whose variable no scope overrides are filled in when the agent is made, which is the fastest way to write it.
It puts literal instructions before functions, so its text has another order.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable
from time import perf_counter
from typing import Any

os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")

from pydantic_ai import Agent, FunctionToolset, RunContext, Tool
from pydantic_ai import _agent_graph as graph
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from benchmarks.workload import Workload

VARIANTS = ("prepare", "run")


def version() -> str:
    return importlib.metadata.version("pydantic-ai-slim")


class Entrant:
    own_seconds: float | None = None  # what the last step took, where that is only a part of the run around it

    def __init__(self, workload: Workload, variant: str = VARIANTS[0]) -> None:
        self.workload, self.values = workload, workload.values()
        self.scopes: dict[int, tuple[list[str], dict[str, str]]] = {}
        self.seen: Any = None

        async def answer(messages: object, info: object) -> ModelResponse:
            self.seen = info
            return ModelResponse(parts=[TextPart("ok")])

        tools = [
            Tool.from_schema(nothing, tool["name"], tool["description"], tool["parameters"])
            for tool in workload.tool_list()
        ]
        instructions: list[Any] = [persona, *(self._instruction(at) for at in workload.ordered() if at)]
        self.agent: Any = Agent(
            FunctionModel(answer), deps_type=tuple, instructions=instructions, toolsets=[FunctionToolset(tools)]
        )
        if variant == "prepare":
            self._time_preparing()

    def _instruction(self, section: int) -> str | Callable[..., Any]:
        halves, variable = self.workload.halves(section), self.workload.variable(section)
        if variable == "v0" or self.workload.is_dynamic(section):
            return instruction(halves, variable)
        return self.values[variable].join(halves)

    def _time_preparing(self) -> None:
        """There is no public name for a step without its model, so the step is timed inside the run."""
        node: Any = graph.ModelRequestNode
        prepare = node._prepare_request

        async def timed(*args: Any, **options: Any) -> Any:
            start = perf_counter()
            try:
                return await prepare(*args, **options)
            finally:
                self.own_seconds = perf_counter() - start

        node._prepare_request = timed

    def add_scope(self, scope: int) -> None:
        values = {**self.values, "v0": self.workload.scope_value(scope)}
        self.scopes[scope] = self.workload.persona(scope).split("{{v1}}"), values

    async def step(self, scope: int) -> tuple[str, list[Any]]:
        await self.agent.run("x", deps=self.scopes[scope])
        return self.seen.instructions, self.seen.function_tools

    def register(self, texts: list[str]) -> None:
        """An instruction cannot be taken off an agent."""
        for text in texts:
            self.agent.instructions(instruction((text, ""), "v1"))

    @staticmethod
    def view(tool: Any) -> tuple[str, str, Any]:
        return tool.name, tool.description, tool.parameters_json_schema


async def persona(ctx: RunContext[Any]) -> str:
    halves, values = ctx.deps
    return values["v1"].join(halves)


def instruction(halves: tuple[str, str], variable: str) -> Callable[..., Any]:
    before, after = halves

    async def section(ctx: RunContext[Any]) -> str:
        return f"{before}{ctx.deps[1][variable]}{after}"

    return section


def nothing(**_: object) -> str:
    return "ok"
