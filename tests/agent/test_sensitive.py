"""What was registered as sensitive is marked in an agent's log, whatever way it comes there."""

import json

import pytest
from tests.agent.support import logged, stage

from foreword import AGENT_PRE_STEP, Enter, ToolDefinition
from foreword.explain import compare, find_text, subject_at
from foreword.session import AssistantSaid, Note, ToolAnswered, ToolCalled, UserSaid, masked_event, open_log, rebuild
from foreword.testing import call_tools
from foreword.testing.memory_store import MemoryStore
from foreword.wire.messages import UserMessage

pytestmark = pytest.mark.anyio


async def test_everything_that_is_sensitive() -> None:
    """A variable, a context and a tool: what is shown of the log holds none of it, and the rest."""
    async with stage(call_tools(unlock={"code": "hunter2"}, look={"at": "door"}), "Done.", "Again.") as play:

        @play.tools.register(sensitive=True)
        def unlock(code: str) -> str:
            """Unlock."""
            return f"{code} fits"

        @play.tools.register
        def look(at: str) -> str:
            """Look."""
            return f"a {at}"

        play.prompt.variable("code", "hunter2", sensitive=True)
        play.prompt.section("door", "It is {{code}}.", order=20)
        play.prompt.context("key", "the key is hunter2", order=1, sensitive=True)
        play.prompt.context("git", "on main", order=2)
        agent = await play.agent()
        await agent.run("Open it")
        assert [said.sensitive for said in logged(agent, AssistantSaid)] == [(0,), ()]
        assert [call.sensitive for call in logged(agent, ToolCalled)] == [True, False]
        assert [answer.sensitive for answer in logged(agent, ToolAnswered)] == [True, False]
        shown = repr([masked_event(event) for event in logged(agent)])
        assert "hunter2" not in shown
        for text in ("Open it", "on main", "a door", "It is [sensitive]."):
            assert text in shown
        rebuilt = await rebuild(play.log, f"{agent.id}@2")
        assert b"hunter2" not in rebuilt.shown.canonical()
        assert b"hunter2" in rebuilt.canonical


async def test_a_snapshot_that_a_listener_reworded() -> None:
    """Of a reworded snapshot nobody knows where the sensitive part is, so the whole is."""
    async with stage("Done.") as play:
        play.prompt.context("key", "the key is hunter2", order=1, sensitive=True)

        async def reworded(step, go_on):  # type: ignore[no-untyped-def]
            entered = await go_on()
            [said, snapshot] = entered.messages
            return Enter((said, UserSaid(UserMessage("They say: hunter2"), snapshot.source)))

        play.ctx.on(AGENT_PRE_STEP, reworded)
        agent = await play.agent()
        await agent.run("Hi")
        shown = repr([masked_event(event) for event in logged(agent)])
        assert "hunter2" not in shown


async def test_an_agent_whose_log_is_masked() -> None:
    """What is sensitive reaches the model and never the store; an agent that goes on sees masks."""
    store = MemoryStore()
    async with (
        stage(call_tools(unlock={"code": "hunter2"}), "Done.", "Fine.") as play,
        open_log(store, content="masked") as log,
    ):

        @play.tools.register(sensitive=True)
        def unlock(code: str) -> str:
            """Unlock."""
            return f"{code} fits"

        agent = await play.agent(log=log)
        await agent.run("Open it")
        assert "hunter2" in json.loads(play.model.requests[1])["messages"][2]["content"]
        assert await store.search([b"hunter2"]) == []
        await agent.dispose()
        again = await play.agent(log=log, session=agent.id)
        await again.run("And now?")
        told = json.loads(play.model.requests[2])["messages"]
        assert [each["content"] for each in told] == ["Open it", "", "[sensitive]", "Done.", "And now?"]
        assert told[1]["tool_calls"][0]["arguments"] == '{"sensitive":true}'
        assert logged(again, Note) == []
        play.model.sent.clear()  # they are in another log


@pytest.mark.parametrize("hidden", ["context", "variable"])
async def test_what_a_masked_log_keeps_has_its_owner(hidden: str) -> None:
    """One sensitive context takes nothing from the others: each has its owner, and a section its variable."""
    async with stage("Done.", "Fine.") as play, open_log(MemoryStore(), content="masked") as log:
        code = ["hunter2"]
        play.prompt.variable("code", lambda: code[0], sensitive=True)
        play.prompt.section("door", "It opens with {{code}}.", order=10)
        play.prompt.context("plain", "3 books", order=1)
        if hidden == "context":
            play.prompt.context("secret", "hunter2", order=2, sensitive=True)
        else:
            play.prompt.context("secret", "It is {{code}}.", order=2)
        agent = await play.agent(log=log)
        await agent.run("Hi")
        code[0] = "hunter3"
        await agent.run("Hi again")
        old, new = [await subject_at(log, f"{agent.id}@{step}") for step in (1, 2)]
        [found] = find_text(old, "3 books")
        assert [(each.owner, each.section) for each in found.stretches] == [("root", "plain")]
        assert [(part.name, part.origin.owner) for part in old.contexts] == [("plain", "root"), ("secret", "root")]
        assert [each.name for each in old.variables] == ["code"]
        broken_by = compare(old, new).broken_by
        assert broken_by is not None
        assert (broken_by.cause, broken_by.name) == ("variable", "code")
        play.model.sent.clear()  # they are in another log


async def test_a_sensitive_tool_that_goes_while_the_model_answers() -> None:
    """What the model was offered as sensitive stays so, call and answer, though nobody has the tool any more."""
    async with stage(lambda request: leaving() if len(request.messages) == 1 else "Done.") as play:
        unlock = ToolDefinition("unlock", "", {"type": "object"}, lambda arguments: "open", sensitive=True)
        registered = play.tools.register(unlock)

        def leaving() -> object:
            registered.close()
            return call_tools(unlock={"code": "hunter2"})

        agent = await play.agent()
        await agent.run("Open it")
        assert [answer.code for answer in logged(agent, ToolAnswered)] == ["UNKNOWN_TOOL"]
        assert logged(agent, AssistantSaid)[0].sensitive == (0,)
        assert [event.sensitive for event in logged(agent, ToolCalled, ToolAnswered)] == [True, True]
        assert "hunter2" not in repr([masked_event(event) for event in logged(agent)])
