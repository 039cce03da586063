"""Foreword, by its public names."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from typing import Any

from benchmarks.workload import Workload
from foreword import PERSONA_ORDER, PERSONA_SECTION, SystemPrompt, ToolProviderResult, ToolSchema

VARIANTS = ("default",)


def version() -> str:
    return importlib.metadata.version("foreword")


class Entrant:
    keeps_visits = True  # what a first visit of a scope has worked out stays; what it costs is a measure of its own

    def __init__(self, workload: Workload, variant: str = VARIANTS[0]) -> None:
        self.workload = workload
        self.prompt = SystemPrompt(persona=workload.text(0))
        for section in range(1, workload.sections):
            text = workload.text(section)
            provider = constant(text) if workload.is_dynamic(section) else text
            self.prompt.section(workload.name(section), provider, order=workload.order(section))
        for name, value in workload.values().items():
            self.prompt.variable(name, constant(value))
        tools = ToolProviderResult(tuple(ToolSchema(**tool) for tool in workload.tool_list()))
        self.prompt.tools(lambda: tools)
        self.scopes: dict[int, SystemPrompt] = {}

    def add_scope(self, scope: int) -> None:
        view = self.scopes[scope] = self.prompt.scope(f"agent-{scope}")
        view.section(PERSONA_SECTION, self.workload.persona(scope), order=PERSONA_ORDER)
        view.variable("v0", constant(self.workload.scope_value(scope)))

    def step(self, scope: int) -> tuple[str, tuple[ToolSchema, ...]]:
        rendering = self.scopes[scope].render_sync()
        return rendering.text, rendering.tools

    def register(self, texts: list[str]) -> list[Callable[[], object]]:
        return [self.prompt.section(f"extra{at}", text, order=500).close for at, text in enumerate(texts)]

    @staticmethod
    def view(tool: ToolSchema) -> tuple[str, str, Any]:
        return tool.name, tool.description, tool.parameters


def constant(value: str) -> Callable[[], str]:
    """A provider that always gives the same: it has to be asked all the same."""
    return lambda: value
