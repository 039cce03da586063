"""What a careful engineer writes for one project: a dict of sections, one regular expression, one pass.

shared      the registry's own tools in order, not copied; the honest rival, though it does less than is asked
copied      the tools copied, so that nobody can change the registry's
"""

from __future__ import annotations

import copy
import platform
import re
from collections.abc import Callable
from typing import Any

from benchmarks.workload import PERSONA, Workload

VARIANTS = ("shared", "copied")

REFERENCE = re.compile(r"\{\{([a-z][a-z0-9_]*)\}\}")


def version() -> str:
    return f"Python {platform.python_version()}"


class Entrant:
    def __init__(self, workload: Workload, variant: str = VARIANTS[0]) -> None:
        self.workload, self.shared = workload, variant == "shared"
        self.sections: dict[str, tuple[int, str | Callable[[], str]]] = {}
        for section in range(workload.sections):
            text = workload.text(section)
            given = (lambda text=text: text) if workload.is_dynamic(section) else text
            self.sections[workload.name(section)] = workload.order(section), given
        self.variables = {name: (lambda value=value: value) for name, value in workload.values().items()}
        self.tools = workload.tool_list()
        self.scopes: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}

    def add_scope(self, scope: int) -> None:
        value = self.workload.scope_value(scope)
        self.scopes[scope] = {PERSONA: (0, self.workload.persona(scope))}, {"v0": lambda: value}

    def render(self, scope: int) -> str:
        own_sections, own_variables = self.scopes[scope]
        values = {name: get() for name, get in (self.variables | own_variables).items()}
        parts: list[str] = []
        for _, text in sorted((self.sections | own_sections).values(), key=lambda section: section[0]):
            template = text if isinstance(text, str) else text()
            rendered = REFERENCE.sub(lambda match: values[match[1]], template)
            if rendered:
                parts.append(rendered)
        return "\n\n".join(parts)

    def step(self, scope: int) -> tuple[str, list[dict[str, Any]]]:
        tools = sorted(self.tools, key=lambda tool: tool["name"])
        return self.render(scope), tools if self.shared else copy.deepcopy(tools)

    def register(self, texts: list[str]) -> list[Callable[[], object]]:
        return [self._register(f"extra{at}", text) for at, text in enumerate(texts)]

    def _register(self, name: str, text: str) -> Callable[[], object]:
        if name in self.sections:
            raise ValueError(f"there is a section {name}")
        self.sections[name] = 500, text
        return lambda: self.sections.pop(name)

    @staticmethod
    def view(tool: dict[str, Any]) -> tuple[str, str, Any]:
        return tool["name"], tool["description"], tool["parameters"]
