"""The floor: what cannot be done without. Everything is rendered and in order when the clock starts.

dynamic     the functions are called and the strings joined; the tools are handed out as they are, shared by all steps
copied      and the tools are made anew, by the fastest way that Python has for plain data
"""

from __future__ import annotations

import marshal
import platform
from collections.abc import Callable
from typing import Any

from benchmarks.workload import Workload

VARIANTS = ("dynamic", "copied")


def version() -> str:
    return f"Python {platform.python_version()}"


class Entrant:
    def __init__(self, workload: Workload, variant: str = VARIANTS[0]) -> None:
        self.workload, self.order, values = workload, workload.ordered(), workload.values()
        self.shared = {at: values[workload.variable(at)].join(workload.halves(at)) for at in self.order}
        self.tools = tuple(sorted(workload.tool_list(), key=lambda tool: tool["name"]))
        self.packed = marshal.dumps(self.tools) if variant == "copied" else None
        self.parts: dict[int, list[str]] = {}
        self.functions: dict[int, list[tuple[int, Callable[[], str]]]] = {}

    def add_scope(self, scope: int) -> None:
        workload, values = self.workload, self.workload.values_of(scope)
        parts = [
            values["v0"].join(workload.halves(at)) if workload.variable(at) == "v0" else self.shared[at]
            for at in self.order
        ]
        parts[0] = workload.persona(scope).replace("{{v1}}", values["v1"])
        self.parts[scope] = parts
        self.functions[scope] = [
            (position, lambda text=parts[position]: text)
            for position, section in enumerate(self.order)
            if workload.is_dynamic(section)
        ]

    def step(self, scope: int) -> tuple[str, Any]:
        parts = self.parts[scope]
        for position, function in self.functions[scope]:
            parts[position] = function()
        return "\n\n".join(parts), self.tools if self.packed is None else marshal.loads(self.packed)

    @staticmethod
    def view(tool: dict[str, Any]) -> tuple[str, str, Any]:
        return tool["name"], tool["description"], tool["parameters"]
