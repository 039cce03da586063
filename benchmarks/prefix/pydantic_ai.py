"""Pydantic AI itself: one run of 50 requests, with the facts as dynamic instructions, and what its model was sent."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any, Literal

os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")

from pydantic_ai import Agent, FunctionToolset, Tool
from pydantic_ai.messages import InstructionPart, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import UsageLimits

from benchmarks.prefix.session import (
    LOAD,
    SECTIONS,
    STEPS,
    TASK,
    Message,
    Request,
    arguments,
    assistant,
    facts,
    result,
    said,
)

__all__ = ["requests"]

ROLES = {"user-prompt": "user", "tool-return": "tool"}


def requests(on_change: Literal["rewrite", "append"]) -> list[Request]:
    """The requests of a run.

    Args:
        on_change: what becomes of an instruction that changed: it is rewritten in its place, or appended.
    """
    sent: list[Request] = []

    async def model(messages: list[Any], info: Any) -> ModelResponse:
        step = len(sent)
        sent.append(read(messages, info))
        if len(sent) == STEPS:
            return ModelResponse(parts=[TextPart("Done.")])
        call = ToolCallPart("tool_0001", arguments(step), f"call_{step}")
        return ModelResponse(parts=[TextPart(said(step)), call])

    def fact(name: str) -> Callable[[], Any]:
        async def instruction() -> InstructionPart:
            return InstructionPart(facts(len(sent))[name], name=name, on_change=on_change)

        return instruction

    def answer(**given: object) -> str:
        return result(len(sent) - 1)

    tools = [
        Tool.from_schema(answer, tool["name"], tool["description"], tool["parameters"]) for tool in LOAD.tool_list()
    ]
    instructions: list[Any] = [*SECTIONS, *map(fact, facts(0))]
    agent: Any = Agent(FunctionModel(model), instructions=instructions, toolsets=[FunctionToolset(tools)])
    asyncio.run(agent.run(TASK, usage_limits=UsageLimits(request_limit=None)))
    return sent


def read(messages: list[Any], info: Any) -> Request:
    """What a model was sent, in the form of the other rows."""
    history: list[Message] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            text, call = message.parts
            history.append(assistant(text.content, call.tool_name, call.args_as_dict()))
        else:
            history += (
                {"role": ROLES.get(part.part_kind, "system"), "content": str(part.content)} for part in message.parts
            )
    tools = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema}
        for tool in info.function_tools
    ]
    return Request(info.instructions or "", history, json.dumps(tools))
