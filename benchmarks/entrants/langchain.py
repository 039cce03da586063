"""LangChain: one template of a system message, with places for the persona and the dynamic sections.

A step formats the message and converts every tool, as binding tools to a model does, and sorts them.
"""

from __future__ import annotations

import importlib.metadata
import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("LANGSMITH_TRACING", "false")

from langchain_core.prompts import ChatPromptTemplate, PromptTemplate, SystemMessagePromptTemplate
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from benchmarks.workload import Workload, filled

VARIANTS = ("default",)


def version() -> str:
    return f"core {importlib.metadata.version('langchain-core')}"


class Entrant:
    def __init__(self, workload: Workload, variant: str = VARIANTS[0]) -> None:
        self.workload, self.values = workload, workload.values()
        self.dynamic: dict[str, Callable[[dict[str, str]], str]] = {}
        template = "\n\n".join(self._place(at) for at in workload.ordered())
        self.prompt = ChatPromptTemplate.from_messages([SystemMessagePromptTemplate.from_template(template)])
        self.tools = [
            StructuredTool(
                name=tool["name"], description=tool["description"], args_schema=tool["parameters"], func=nothing
            )
            for tool in workload.tool_list()
        ]
        self.scopes: dict[int, tuple[PromptTemplate, dict[str, str]]] = {}

    def _place(self, section: int) -> str:
        """What stands for a section in the template."""
        if not section:
            return "{persona}"
        if not self.workload.is_dynamic(section):
            return single_braces(self.workload.text(section))
        self.dynamic[f"dynamic_{section}"] = filled(self.workload.halves(section), self.workload.variable(section))
        return f"{{dynamic_{section}}}"

    def add_scope(self, scope: int) -> None:
        persona = PromptTemplate.from_template(single_braces(self.workload.persona(scope)))
        self.scopes[scope] = persona, {**self.values, "v0": self.workload.scope_value(scope)}

    def step(self, scope: int) -> tuple[str, list[dict[str, Any]]]:
        persona, values = self.scopes[scope]
        dynamic = {name: function(values) for name, function in self.dynamic.items()}
        message = self.prompt.format_messages(persona=persona.format(**values), **values, **dynamic)[0]
        tools = [convert_to_openai_tool(tool) for tool in self.tools]
        return str(message.content), sorted(tools, key=lambda tool: tool["function"]["name"])

    def register(self, texts: list[str]) -> list[Callable[[], object]]:
        made = {at: SystemMessagePromptTemplate.from_template(single_braces(text)) for at, text in enumerate(texts)}
        return [lambda at=at: made.pop(at) for at in list(made)]

    @staticmethod
    def view(tool: dict[str, Any]) -> tuple[str, str, Any]:
        function = tool["function"]
        return function["name"], function["description"], function["parameters"]


def single_braces(text: str) -> str:
    return text.replace("{{", "{").replace("}}", "}")


def nothing(**_: object) -> str:
    return "ok"
