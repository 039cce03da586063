"""The request header: written when it is new, when an agent object is new, and when it changed; never otherwise."""

import json
from itertools import pairwise
from typing import Any

import pytest
from tests.agent.support import logged, stage

from foreword import AGENT_REQUEST, ContextKey, ToolSchema
from foreword.session import HeaderWritten
from foreword.testing import call_tools
from foreword.wire.messages import UserMessage
from foreword.wire.request import ModelConfig

pytestmark = pytest.mark.anyio

TENANT = ContextKey("tenant", str)


def reasons(agent: Any) -> list[str]:
    return [event.reason for event in logged(agent, HeaderWritten)]


def told(request: bytes) -> dict[str, Any]:
    return json.loads(request)


async def test_two_turns_and_nothing_changed() -> None:
    """One header; the second request extends the first, byte for byte in system text, tools and config."""
    async with stage("One.", "Two.") as play:
        play.prompt.tools([ToolSchema("lookup", "Look up.", {"type": "object"})])
        agent = await play.agent()
        await agent.run("1")
        await agent.run("2")
        assert reasons(agent) == ["initial"]
        first, second = map(told, play.model.requests)
        assert {**first, "messages": None} == {**second, "messages": None}
        assert second["messages"][: len(first["messages"])] == first["messages"]
        assert [each["content"] for each in second["messages"]] == ["1", "One.", "2"]


async def test_a_section_that_comes_between_turns() -> None:
    """Its header is a change, the history stays; and when it goes, that is one more change."""
    async with stage("One.", "Two.", "Three.") as play:
        agent = await play.agent()
        await agent.run("1")
        section = play.prompt.section("rules", "Never promise a refund.", order=20)
        await agent.run("2")
        section.close()
        await agent.run("3")
        assert reasons(agent) == ["initial", "change", "change"]
        systems = [told(each)["system"] for each in play.model.requests]
        assert systems == ["You review.", "You review.\n\nNever promise a refund.", "You review."]
        assert len(told(play.model.requests[1])["messages"]) == 3


async def test_another_order_of_keys_is_a_change() -> None:
    """A tool whose schema has its keys in another order is another one to a provider's cache, so it is logged."""
    async with stage("One.", "Two.") as play:
        one = play.prompt.tools([ToolSchema("t", "T", {"type": "object", "properties": {}})])
        agent = await play.agent()
        await agent.run("1")
        one.close()
        play.prompt.tools([ToolSchema("t", "T", {"properties": {}, "type": "object"})])
        await agent.run("2")
        assert reasons(agent) == ["initial", "change"]


async def test_a_new_agent_on_an_old_log() -> None:
    """An agent that goes on with a session writes a header at its first request, even an identical one."""
    async with stage("One.", "Two.", "Three.") as play:
        agent = await play.agent()
        await agent.run("1")
        await agent.dispose()
        again = await play.agent(session=agent.id)
        assert again.id == agent.id
        await again.run("2")
        await again.run("3")
        assert reasons(again) == ["resume"]
        assert [each["content"] for each in told(play.model.requests[1])["messages"]] == ["1", "One.", "2"]
        assert again.session.turn == 3


async def test_a_fork_resumes_too() -> None:
    """An agent on a forked session has its parent's history, and resumes its header."""
    async with stage("One.", "Two.", "Other.") as play:
        agent = await play.agent()
        await agent.run("1")
        await agent.run("2")
        fork = await play.agent("other", log=None, session=await agent.session.fork("@1"))
        await fork.run("3")
        assert reasons(fork) == ["resume"]
        assert [each["content"] for each in told(play.model.requests[2])["messages"]] == ["1", "One.", "3"]


async def test_settings_are_part_of_it() -> None:
    """What a listener of agent/request gives is sent and logged, for that request; it is asked for each of them."""
    async with stage("One.", "Two.", "Three.") as play:
        agent = await play.agent(model=ModelConfig("scripted", "m1", {"temperature": 0.5}))
        asked: list[int] = []

        async def cooler(proposed: Any, call_next: Any) -> ModelConfig:
            asked.append(proposed.turn)
            config = await call_next()
            assert config.settings == {"temperature": 0.5}
            with pytest.raises(TypeError):
                config.settings["temperature"] = 1
            return config if proposed.turn != 2 else ModelConfig(config.provider, config.model, {"temperature": 0})

        agent.ctx.on(AGENT_REQUEST, cooler)
        for text in "123":
            await agent.run(text)
        assert asked == [1, 2, 3]
        assert [told(each)["config"]["settings"] for each in play.model.requests] == [
            {"temperature": 0.5},
            {"temperature": 0},
            {"temperature": 0.5},
        ]
        assert reasons(agent) == ["initial", "change", "change"]


async def test_a_compaction_on_the_way() -> None:
    """What a listener of agent/request does to the history counts for the request that is being made."""
    async with stage("One.", "Two.") as play:
        agent = await play.agent()
        await agent.run("1")

        async def shorten(proposed: Any, call_next: Any) -> ModelConfig:
            agent.session.replace_history(0, 1, UserMessage("In short."))
            return await call_next()

        agent.ctx.on(AGENT_REQUEST, shorten)
        await agent.run("2")
        assert [each["content"] for each in told(play.model.requests[1])["messages"]] == ["In short.", "2"]


async def test_variables_of_the_loop() -> None:
    """``provider``, ``model`` and ``cwd`` are the agent's; without an agent they have no value; they go with the last."""
    async with stage("One.", persona="{{provider}} {{model}} {{cwd}}") as play:
        assert "model" not in (await play.prompt.assemble()).variables
        agent = await play.agent(cwd="/src")
        other = await play.agent("other", model="scripted:m2")
        await agent.run("1")
        assert told(play.model.requests[0])["system"] == "scripted m1 /src"
        bare = await play.prompt.assemble()
        assert {name: bare.variables[name] for name in ("provider", "model", "cwd")} == {
            "provider": None,
            "model": None,
            "cwd": None,
        }
        await agent.dispose()
        assert "model" in (await play.prompt.assemble()).variables
        await other.dispose()
        assert "model" not in (await play.prompt.assemble()).variables


async def test_providers_get_the_agents_values() -> None:
    """The context of a step holds agent, scope, model, values and the turn's signal."""
    seen: list[Any] = []
    async with stage("One.") as play:

        def tenant(context: Any) -> str:
            seen.append(context)
            return context[TENANT]

        play.prompt.section("tenant", tenant, order=1)
        agent = await play.agent(values={TENANT: "acme"})
        turn = agent.run("1")
        await turn
        (context,) = seen
        assert (context.agent, context.scope, context.signal) == (agent, agent, turn.signal)
        assert (context.model.provider, context.model.name) == ("scripted", "m1")
        assert told(play.model.requests[0])["system"] == "You review.\n\nacme"


async def test_fifty_steps_with_one_changing_fact() -> None:
    """A fact that changes with every step changes neither system text nor tools, and each request extends the last."""
    steps = 50
    async with stage(lambda request: call_tools(tick={}) if len(request.messages) < 3 * steps - 2 else "Done.") as play:
        count = [0]

        @play.tools.register
        def tick() -> str:
            """Tick."""
            count[0] += 1
            return "tock"

        play.prompt.context("ticks", lambda: f"Ticks so far: {count[0]}", order=1)
        agent = await play.agent()
        await agent.run("Go")
        requests = [told(each) for each in play.model.requests]
        assert len(requests) == steps
        assert len({json.dumps([each["system"], each["tools"]]) for each in requests}) == 1
        assert all(
            later["messages"][: len(earlier["messages"])] == earlier["messages"]
            for earlier, later in pairwise(requests)
        )
        assert reasons(agent) == ["initial"]
