"""OpenAI Agents SDK: its instructions are an async function, whose body is the hand-written renderer.

A step is what its runner does before each call of a model: get the system prompt, then all tools.
"""

from __future__ import annotations

import importlib.metadata
import os
from typing import Any

os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")

from agents import Agent, FunctionTool, RunContextWrapper

from benchmarks.entrants import handwritten
from benchmarks.workload import Workload

VARIANTS = ("default",)


def version() -> str:
    return importlib.metadata.version("openai-agents")


class Entrant:
    def __init__(self, workload: Workload, variant: str = VARIANTS[0]) -> None:
        self.body, self.contexts = handwritten.Entrant(workload), {}

        async def instructions(context: RunContextWrapper[int], agent: Agent[int]) -> str:
            return self.body.render(context.context)

        tools: list[Any] = [
            FunctionTool(tool["name"], tool["description"], tool["parameters"], nothing, strict_json_schema=False)
            for tool in workload.tool_list()
        ]
        self.agent = Agent(name="bench", instructions=instructions, tools=tools)

    def add_scope(self, scope: int) -> None:
        self.body.add_scope(scope)
        self.contexts[scope] = RunContextWrapper(scope)

    async def step(self, scope: int) -> tuple[str | None, list[Any]]:
        context = self.contexts[scope]
        return await self.agent.get_system_prompt(context), await self.agent.get_all_tools(context)

    @staticmethod
    def view(tool: Any) -> tuple[str, str, Any]:
        return tool.name, tool.description, tool.params_json_schema


async def nothing(context: object, arguments: str) -> str:
    return "ok"
