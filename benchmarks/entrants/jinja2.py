"""Jinja2: one environment, each section compiled beforehand, dynamic ones called; the sorted tools through JSON."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable
from typing import Any

import jinja2

from benchmarks.workload import Workload, filled

VARIANTS = ("default",)


def version() -> str:
    return importlib.metadata.version("jinja2")


class Entrant:
    def __init__(self, workload: Workload, variant: str = VARIANTS[0]) -> None:
        self.workload, self.values = workload, workload.values()
        self.environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
        self.sections = [self._section(at) for at in workload.ordered() if at]
        self.tools = workload.tool_list()
        self.scopes: dict[int, tuple[Callable[..., str], dict[str, str]]] = {}

    def _section(self, section: int) -> Callable[[dict[str, str]], str]:
        if self.workload.is_dynamic(section):
            return filled(self.workload.halves(section), self.workload.variable(section))
        return self.environment.from_string(self.workload.text(section)).render

    def add_scope(self, scope: int) -> None:
        persona = self.environment.from_string(self.workload.persona(scope)).render
        self.scopes[scope] = persona, {**self.values, "v0": self.workload.scope_value(scope)}

    def step(self, scope: int) -> tuple[str, Any]:
        persona, values = self.scopes[scope]
        parts = [persona(values), *(render(values) for render in self.sections)]
        tools = sorted(self.tools, key=lambda tool: tool["name"])
        return "\n\n".join(filter(None, parts)), json.loads(json.dumps(tools))

    def register(self, texts: list[str]) -> list[Callable[[], object]]:
        made = {at: self.environment.from_string(text) for at, text in enumerate(texts)}
        return [lambda at=at: made.pop(at) for at in list(made)]

    @staticmethod
    def view(tool: dict[str, Any]) -> tuple[str, str, Any]:
        return tool["name"], tool["description"], tool["parameters"]
