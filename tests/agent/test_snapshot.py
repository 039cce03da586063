"""The runtime-context snapshot: told when it differs from what the model still sees, never in the system text."""

import json
from typing import Any

import pytest
from tests.agent.support import Stage, logged, said, stage

from foreword import AGENT_PRE_STEP, Agent, Enter, PreStep, Reject, SystemPrompt
from foreword.agent.snapshot import CLEARED
from foreword.prompt.render import SNAPSHOT_OPENER
from foreword.session import RUNTIME_CONTEXT, ContextPart, UserSaid
from foreword.testing import call_tools
from foreword.wire.messages import UserMessage

pytestmark = pytest.mark.anyio


def snapshot(*texts: str) -> str:
    return "\n\n".join([SNAPSHOT_OPENER, *texts])


class Fact:
    """A runtime context whose text a test sets."""

    def __init__(self, play: Stage, name: str = "fact") -> None:
        self.text = ""
        self.registration = play.prompt.context(name, lambda: self.text, order=1)


def snapshots(agent: Agent) -> list[str]:
    """The snapshots that were logged, each without its opener."""
    events = [e for e in logged(agent, UserSaid) if e.source is not None and e.source.kind == RUNTIME_CONTEXT]
    return [e.message.text.removeprefix(f"{SNAPSHOT_OPENER}\n\n") for e in events]


async def told(play: Stage, agent: Agent, fact: Fact, *texts: str) -> list[str]:
    """The snapshots that are logged while the fact takes these texts, one turn each."""
    before = len(snapshots(agent))
    for text in texts:
        fact.text = text
        await agent.run("?")
    return snapshots(agent)[before:]


async def test_it_is_told_when_it_changes() -> None:
    """A, A, B, none, none: told at the first, the third and the fourth step only; the system text never changes."""
    async with stage(lambda request: "Yes.") as play:
        agent, fact = await play.agent(), Fact(play)
        assert await told(play, agent, fact, "A", "A", "B", "", "") == ["A", "B", CLEARED]
        assert len({json.loads(each)["system"] for each in play.model.requests}) == 1
        assert await told(play, agent, fact, "", "A") == ["A"]


async def test_nothing_is_told_where_there_never_was_one() -> None:
    """Without contexts there is no snapshot, and no word that there is none."""
    async with stage(lambda request: "Yes.") as play:
        agent, fact = await play.agent(), Fact(play)
        assert await told(play, agent, fact, "", "") == []


async def test_what_it_is_made_of() -> None:
    """It is one message of the user's role, behind the step's own; its source names it, and lists its parts."""
    async with stage("Yes.") as play:
        play.prompt.context("b", "It is noon.", order=2)
        play.prompt.context("a", "{{who}} is here.", order=1)
        play.prompt.context("empty", "", order=3)
        play.prompt.variable("who", "Nobody")
        agent = await play.agent()
        await agent.run("Hi")
        message = logged(agent, UserSaid)[-1]
        assert message.message.text == snapshot("Nobody is here.", "It is noon.")
        assert message.source.kind == RUNTIME_CONTEXT
        assert message.source.parts == (ContextPart("a", "Nobody is here."), ContextPart("b", "It is noon."))
        assert said(agent) == ["Hi", message.message.text]


async def test_a_change_by_a_tool_is_seen_in_the_next_step() -> None:
    """A continuation step tells it, too: behind the tools' results."""
    async with stage(call_tools(move={}), "There.") as play:
        agent, fact = await play.agent(), Fact(play)
        fact.text = "Here."

        @play.tools.register
        def move() -> str:
            """Move."""
            fact.text = "There."
            return "moved"

        await agent.run("Go")
        roles = [each["role"] for each in json.loads(play.model.requests[1])["messages"]]
        assert roles == ["user", "user", "assistant", "tool", "user"]
        assert snapshots(agent) == ["Here.", "There."]


async def test_compacted_away() -> None:
    """A compaction that took the held snapshot: it is told again, unchanged or not; cleared, if there is none now."""
    async with stage(lambda request: "Yes.") as play:
        agent, fact = await play.agent(), Fact(play)
        assert await told(play, agent, fact, "A") == ["A"]
        agent.session.replace_history(0, 2, UserMessage("In short: A."))
        assert await told(play, agent, fact, "A", "A") == ["A"]
        agent.session.replace_history(0, len(agent.session.messages) - 1, UserMessage("In short: A."))
        assert await told(play, agent, fact, "", "") == [CLEARED]


async def test_compaction_of_other_messages() -> None:
    """A compaction that leaves the snapshot where it is changes nothing; nor does one where there never was any."""
    async with stage(lambda request: "Yes.") as play:
        agent, fact = await play.agent(), Fact(play)
        await told(play, agent, fact, "", "")
        agent.session.replace_history(0, 1, UserMessage("In short."))
        assert await told(play, agent, fact, "", "A") == ["A"]
        last = len(agent.session.messages) - 1
        agent.session.replace_history(last, last, UserMessage("Yes."))
        assert await told(play, agent, fact, "A") == []


async def test_a_step_that_is_not_entered_tells_nothing() -> None:
    """A rejected step, and a listener that drops the snapshot, leave it to be proposed again."""
    async with stage(lambda request: "Yes.") as play:
        agent, fact = await play.agent(), Fact(play)
        how = ["reject"]

        async def guard(proposed: PreStep, call_next: Any) -> Any:
            if how[0] == "reject":
                return Reject()
            return Enter(proposed.messages) if how[0] == "drop" else await call_next()

        listening = agent.ctx.on(AGENT_PRE_STEP, guard)
        assert await told(play, agent, fact, "A") == []
        how[0] = "drop"
        assert await told(play, agent, fact, "A") == []
        listening.close()
        assert await told(play, agent, fact, "A", "A") == ["A"]


async def test_a_listener_may_reword_it() -> None:
    """What is logged is what the model sees, so the next step tells the true one again; the parts of a reworded go."""
    async with stage(lambda request: "Yes.") as play:
        agent, fact = await play.agent(), Fact(play)

        async def shout(proposed: PreStep, call_next: Any) -> Any:
            entered = await call_next()
            return Enter(tuple(UserSaid(UserMessage(e.message.text.upper()), e.source) for e in entered.messages))

        listening = agent.ctx.on(AGENT_PRE_STEP, shout)
        assert await told(play, agent, fact, "a") == [snapshot("a").upper()]
        assert logged(agent, UserSaid)[-1].source.parts == ()
        listening.close()
        assert await told(play, agent, fact, "a", "a") == ["a"]


async def test_a_restarted_agent_repeats_nothing() -> None:
    """The state is read from the log: an agent that goes on tells an unchanged snapshot no second time."""
    async with stage(lambda request: "Yes.") as play:
        agent, fact = await play.agent(), Fact(play)
        await told(play, agent, fact, "A")
        await agent.dispose()
        again = await play.agent(session=agent.id)
        assert await told(play, again, fact, "A", "B") == ["B"]


async def test_a_fork_inherits_it() -> None:
    """So does an agent on a fork of the session."""
    async with stage(lambda request: "Yes.") as play:
        agent, fact = await play.agent(), Fact(play)
        await told(play, agent, fact, "A")
        fork = await play.agent("fork", log=None, session=await agent.session.fork())
        assert await told(play, fork, fact, "A") == []


async def test_suppressed_contexts_are_cleared_once() -> None:
    """Suppressing the contexts of an agent takes its snapshot back, once; lifting that tells it again."""
    async with stage(lambda request: "Yes.") as play:
        agent, fact = await play.agent(), Fact(play)
        await told(play, agent, fact, "A")
        suppressor = agent.ctx.require(SystemPrompt).suppress_runtime_context()
        assert await told(play, agent, fact, "A", "A") == [CLEARED]
        suppressor.close()
        assert await told(play, agent, fact, "A") == ["A"]
