"""Foreword itself: an agent with the facts as runtime contexts, and what its model was sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator

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
from foreword import Context, SystemPrompt, ToolDefinition, ToolRegistry, create_agent, open_log
from foreword.agent.models import ModelAdapters
from foreword.testing import MemoryStore, Reply, ScriptedModel, call_tools

__all__ = ["requests"]


def requests() -> list[Request]:
    model = ScriptedModel(script())
    asyncio.run(take_turn(model))
    return [read(body) for body in model.requests]


def script() -> Iterator[str | Reply]:
    for step in range(STEPS - 1):
        yield call_tools(text=said(step), tool_0001=dict(arguments(step)))
    yield "Done."


async def take_turn(model: ScriptedModel) -> None:
    async with open_log(MemoryStore()) as log, Context() as ctx:
        await ctx.mount(SystemPrompt, {"include_harness_identity": False}).ready()
        await ctx.mount(ToolRegistry).ready()
        await ctx.mount(ModelAdapters).ready()
        ctx.require(ModelAdapters).register(model)
        contribute(ctx, lambda: len(model.requests))
        agent = await create_agent(ctx, "bench", model="scripted:m1", log=log)
        await agent.run(TASK)


def contribute(ctx: Context, step: Callable[[], int]) -> None:
    """The workload's sections as the first scope sees them, the facts, and the tools."""
    prompt, tools = ctx.require(SystemPrompt), ctx.require(ToolRegistry)
    for at, text in enumerate(SECTIONS):
        prompt.section(f"s{at}", text, order=at + 1, verbatim=True)
    for at, name in enumerate(facts(0)):
        prompt.context(name, lambda name=name: facts(step())[name], order=at)
    for tool in LOAD.tool_list():
        answer = ToolDefinition(**tool, function=lambda given: result(step() - 1))
        tools.register(answer)


def read(body: bytes) -> Request:
    """What a model was sent, in the form of the other rows."""
    sent = json.loads(body)
    history: list[Message] = []
    for message in sent["messages"]:
        calls = message.get("tool_calls")
        if calls:
            history.append(assistant(message["content"], calls[0]["name"], json.loads(calls[0]["arguments"])))
        else:
            history.append({"role": message["role"], "content": message["content"]})
    return Request(sent["system"], history, json.dumps(sent["tools"]))
