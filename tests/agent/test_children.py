"""Child agents: beside their parent, not below it; told whose they are; gone with it."""

import json
from typing import Any

import pytest
from tests.agent.support import logged, stage
from tests.support.kernel import held

from foreword import ContextKey, SystemPrompt, ToolSchema
from foreword.agent.outfit import DELEGATION_CONTEXT
from foreword.errors import DuplicateEntryError, UnknownToolError
from foreword.session import SessionStart, UserSaid
from foreword.testing import Gate, Reply, call_tools
from foreword.tools.context import ToolContext
from foreword.tools.masks import ToolMask

pytestmark = pytest.mark.anyio

TENANT = ContextKey("tenant", str)
CASE = ContextKey("case", int)


def told(play: Any) -> list[dict[str, Any]]:
    return [json.loads(each) for each in play.model.requests]


def search(query: str) -> str:
    """Search."""
    return f"found {query}"


def delete(name: str) -> str:
    """Delete."""
    return f"deleted {name}"


async def test_parent_and_child_share_their_system_text() -> None:
    """With the same persona and tools it is the same, byte for byte; that it is a child stands in a message."""
    async with stage("One.", "Two.", persona="You are {{model}} in {{cwd}}.") as play:
        play.tools.register(search)
        parent = await play.agent(cwd="/src", persona="P {{model}} {{cwd}}")
        child = await parent.spawn("child", persona="P {{model}} {{cwd}}")
        await parent.run("Hi")
        await child.run("Hi")
        first, second = told(play)
        assert first["system"] == second["system"] == "P m1 /src"
        assert first["tools"] == second["tools"]
        assert [each["content"] for each in first["messages"]] == ["Hi"]
        (snapshot,) = [each for each in logged(child, UserSaid) if each.source is not None]
        assert [part.name for part in snapshot.source.parts] == [DELEGATION_CONTEXT]
        assert 'You work for another agent, "reviewer"' in snapshot.message.text


async def test_nothing_of_the_parent_leaks() -> None:
    """Neither its private sections and contexts nor its mask; the child's own mask and persona are its own."""
    async with stage("One.", "Two.") as play:
        play.tools.register(search)
        play.tools.register(delete)
        parent = await play.agent(persona="Parent.", tools=ToolMask(deny=["search"]))
        own = parent.ctx.require(SystemPrompt)
        own.section("secret", "The parent's secret.", order=1)
        own.context("secret", "The parent's context.", order=1)
        own.tools([ToolSchema("secret", "The parent's tool.", {})])
        child = await parent.spawn("child", persona="Child.", tools=ToolMask(allow=["search"]))
        await child.run("Hi")
        await parent.run("Hi")
        of_child, of_parent = told(play)
        assert of_child["system"] == "Child."
        assert [each["name"] for each in of_child["tools"]] == ["search"]
        assert "parent's" not in json.dumps(of_child)
        assert of_parent["system"] == "Parent.\n\nThe parent's secret."
        assert [each["name"] for each in of_parent["tools"]] == ["delete", "secret"]


async def test_a_child_stands_where_its_parent_does() -> None:
    """In the scope of a preset that the parent has joined; in a scope that the parent was moved to; or in none."""
    async with stage(lambda request: "Fine.") as play:
        preset, other = play.ctx.scope("preset"), play.ctx.scope("other")
        preset.require(SystemPrompt).section("preset", "Preset.", order=1)
        parent = await play.agent(ctx=preset)
        child = await parent.spawn("child")
        assert (parent.parent, child.parent) == (preset.key, preset.key)
        await child.run("Hi")
        assert told(play)[-1]["system"] == "You review.\n\nPreset."
        assert parent.ctx.binding is not None
        parent.ctx.binding.rebind(other.key)
        assert (await parent.spawn("child")).parent is other.key
        assert child.parent is preset.key
        assert (await (await play.agent()).spawn("child")).parent is None


async def test_what_a_child_inherits() -> None:
    """Model, values, labels, folder and log, changed where it is told otherwise."""
    async with stage(lambda request: "Fine.") as play:
        parent = await play.agent(values={TENANT: "acme", CASE: 1}, labels={"tenant": "acme"}, cwd="/src", max_steps=7)
        child = await parent.spawn("child", values={CASE: 2}, labels={"case": "2"})
        other = await child.spawn("grandchild", model="scripted:m2")
        assert child.values == {TENANT: "acme", CASE: 2}
        assert logged(child, SessionStart)[0].labels == {"tenant": "acme", "case": "2"}
        assert (child.session.cwd, child.model, child.terms.max_steps) == ("/src", parent.model, 7)
        assert (str(other.model), other.depth, other.delegator) == ("scripted:m2", 2, child)
        assert parent.children == [child]
        assert child.session.log is parent.session.log


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"tools": ToolMask(allow=["nosuch"])}, UnknownToolError),
        ({"setup": lambda agent: 1 / 0}, ZeroDivisionError),
        (
            {"setup": lambda agent: agent.ctx.require(SystemPrompt).context(DELEGATION_CONTEXT, "", order=1) and None},
            DuplicateEntryError,
        ),
    ],
    ids=["unknown tool", "set-up", "context"],
)
async def test_a_child_that_cannot_be_made(options: dict[str, Any], error: type[Exception]) -> None:
    """Nothing of it is left, nothing published, and the parent goes on."""
    async with stage("Fine.") as play:
        play.tools.register(search)
        parent = await play.agent()
        before = held(play.ctx)
        with pytest.raises(error):
            await parent.spawn("child", **options)
        assert held(play.ctx) == before
        assert parent.children == []
        assert len(await play.log.sessions()) == 0
        await parent.run("Hi")


async def test_children_go_with_their_parent() -> None:
    """Disposing a parent disposes its children first; disposing a child leaves the parent as it was."""
    async with stage() as play:
        parent = await play.agent()
        child = await parent.spawn("child")
        grandchild = await child.spawn("grandchild")
        other = await parent.spawn("other")
        await other.dispose()
        assert parent.children == [child]
        await parent.dispose()
        assert not any(each.active for each in (parent, child, grandchild))


async def test_a_tool_may_delegate() -> None:
    """A tool reaches its agent through its context, spawns a child, and gives what that says."""
    async with stage(call_tools(delegate={"task": "Look."}), "Looked.", "It is fine.") as play:

        @play.tools.register
        async def delegate(task: str, context: ToolContext) -> str:
            """Delegate."""
            parent: Any = context.agent
            child = await parent.spawn("researcher", tools=ToolMask(deny=["delegate"]))
            try:
                return str((await child.run(task)).text)
            finally:
                await child.dispose()

        agent = await play.agent()
        assert (await agent.run("Is it?")).text == "It is fine."
        of_child = told(play)[1]
        assert of_child["tools"] == []
        assert told(play)[2]["messages"][-1]["content"] == "Looked."
        assert len(await play.log.sessions()) == 2


async def test_cancelling_a_parent_cancels_its_children() -> None:
    """A child's turn ends as aborted by ``parent``, one that runs beside its parent as well as one it waits for."""
    gates = [Gate(), Gate()]
    async with stage(Reply((gates[0],)), Reply((gates[1],))) as play:
        parent = await play.agent()
        child = await parent.spawn("child")
        turns = [parent.run("Hi"), child.run("Hi")]
        for gate in gates:
            await gate.reached()
        parent.cancel()
        for turn in turns:
            await turn.over()
        assert [(turn.end.reason, turn.end.detail) for turn in turns if turn.end] == [
            ("aborted", "user"),
            ("aborted", "parent"),
        ]
