"""A whole session on Anthropic's adapter: tools, runtime contexts, the cache's marks, and its requests made again."""

import json
from typing import Any

import pytest
from tests.support.anthropic_events import block, calling, end, failing, said, start, stop, streaming, text
from tests.support.kernel import kernel
from tests.support.recording_server import RecordingServer

from foreword import SystemPrompt, create_agent, open_log
from foreword.agent.models import ModelAdapters
from foreword.agent.models.anthropic import AnthropicAdapter
from foreword.agent.retry import RetryPolicy
from foreword.session import HeaderWritten, RequestEnded
from foreword.session.rebuild import rebuild
from foreword.session.verify import verify
from foreword.testing.memory_store import MemoryStore
from foreword.tools.registry import ToolRegistry
from foreword.wire.chunks import Usage

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
]


def lookup(order: int) -> str:
    """Look an order up."""
    return f"{order}: held at the border"


def unmarked(value: Any) -> Any:
    """The same without the cache's marks."""
    if isinstance(value, dict):
        return {key: unmarked(each) for key, each in value.items() if key != "cache_control"}
    return [unmarked(each) for each in value] if isinstance(value, list) else value


async def test_a_session() -> None:
    """What the server gets is what the log rebuilds, byte for byte; each request begins with the blocks of the last."""
    cost = {"input_tokens": 4, "output_tokens": 1, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 6}
    script = [
        calling(
            ("toolu_1", "lookup", '{"order": 4711}'), ("toolu_2", "lookup", '{"order": "x"}'), words="Let me look."
        ),
        failing(529, "overloaded_error"),
        said("It is held."),
        streaming(start(**cost), block(0, "thinking", thinking=""), end(), text("Since Monday.", 1), end(1), stop()),
    ]
    with RecordingServer(*script) as server:
        async with open_log(MemoryStore()) as log, AnthropicAdapter(base_url=server.root, api_key="sk-ant") as adapter:
            async with kernel() as ctx:
                await ctx.mount(
                    SystemPrompt, {"include_harness_identity": False, "persona": "You are a clerk."}
                ).ready()
                await ctx.mount(ToolRegistry).ready()
                await ctx.mount(ModelAdapters).ready()
                ctx.require(ModelAdapters).register(adapter)
                prompt = ctx.require(SystemPrompt)
                prompt.section("model", "You run on {{model}}.", order=5)
                clock = prompt.context("clock", "It is 10:00.", order=1)
                ctx.require(ToolRegistry).register(lookup)
                agent = await create_agent(
                    ctx, "clerk", model="anthropic:claude-sonnet-4-5", log=log, retry=RetryPolicy(first=0)
                )
                assert (await agent.run("Why is order 4711 late?")).text == "It is held."
                clock.replace("It is 11:00.")
                assert (await agent.run("Since when?")).text == "Since Monday."
                session = agent.session.id
                events = [each.event for each in agent.session.events]
            ended = [each for each in events if isinstance(each, RequestEnded)]
            assert ended[-1].usage == Usage(100, 3, 90, 6)
            [header] = [each.header for each in events if isinstance(each, HeaderWritten)]
            assert header.config.settings == {"max_tokens": 32_000}
            addresses = [f"{session}@1.1/1", f"{session}@1.2/1", f"{session}@1.2/2", f"{session}@2.1/1"]
            for address, request in zip(addresses, server.requests, strict=True):
                assert (await rebuild(log, address, adapter=adapter)).body == request.body
            assert (await verify(log)).intact

    bodies = [request.json for request in server.requests]
    assert server.requests[1].body == server.requests[2].body
    assert [each["text"] for each in bodies[0]["system"]] == ["You are a clerk.", "\n\nYou run on claude-sonnet-4-5."]
    assert [json.dumps(body).count("cache_control") for body in bodies] == [3, 4, 4, 4]
    said_before: list[Any] = []
    for body in map(unmarked, bodies):
        assert (body["system"], body["tools"]) == (unmarked(bodies[0]["system"]), unmarked(bodies[0]["tools"]))
        blocks = [(turn["role"], each) for turn in body["messages"] for each in turn["content"]]
        assert blocks[: len(said_before)] == said_before
        said_before = blocks
    answers = bodies[1]["messages"][2]["content"]
    assert [(each["type"], each["tool_use_id"], each.get("is_error", False)) for each in answers] == [
        ("tool_result", "toolu_1", False),
        ("tool_result", "toolu_2", True),
    ]
    assert [each["text"].splitlines()[-1] for each in bodies[3]["messages"][-1]["content"]] == [
        "Since when?",
        "It is 11:00.",
    ]
