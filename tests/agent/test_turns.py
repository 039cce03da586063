"""Turns: what they tell, how they end, and who may begin one when."""

from typing import Any

import anyio
import pytest
from tests.agent.support import events_of, kinds, logged, said, stage

from foreword import (
    AGENT_PRE_STEP,
    AGENT_TURN_STOPPING,
    AgentBusyError,
    Enter,
    ForgedSnapshotError,
    NotJsonError,
    PreStep,
    Reject,
    StepFinished,
    StepLimitError,
    StepStarted,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnFinished,
    TurnStopping,
    WrongAnswerError,
)
from foreword.session import RUNTIME_CONTEXT, AssistantSaid, MessageSource, TurnEnd, UserSaid
from foreword.testing import Gate, Reply, call_tools
from foreword.wire.messages import UserMessage

pytestmark = pytest.mark.anyio


async def test_a_turn_tells_what_happens() -> None:
    """Steps, pieces of text, tool calls and the end arrive in order; the log has the same turn, in one piece."""
    async with stage(call_tools(lookup={"order": 4711}, text="Let me see."), "It is late.") as play:

        @play.tools.register
        def lookup(order: int) -> str:
            """Look an order up."""
            return f"{order} is late"

        agent = await play.agent()
        async with agent.run("Why?") as turn:
            events = await events_of(turn)
        told = [type(event) for event in events if not isinstance(event, TextDelta)]
        assert told == [
            StepStarted,
            ToolCallStarted,
            ToolCallFinished,
            StepFinished,
            StepStarted,
            StepFinished,
            TurnFinished,
        ]
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Let me see.It is late."
        assert events[-1] == TurnFinished(1, "completed", "It is late.") == turn.end
        assert kinds(agent) == [
            "SessionStart", "TurnStart",
            "StepStart", "UserSaid", "HeaderWritten", "RequestAttempted", "RequestEnded", "AssistantSaid",
            "ToolCalled", "ToolAnswered", "StepEnd",
            "StepStart", "RequestAttempted", "RequestEnded", "AssistantSaid", "StepEnd",
            "TurnEnd",
        ]  # fmt: skip


async def test_a_turn_begins_at_once() -> None:
    """`run` is a plain call: when it returns, ``turn/start`` is logged and the input taken; nothing of it has run yet."""
    async with stage("Hello.") as play:
        agent = await play.agent()
        turn = agent.run("Hi")
        assert kinds(agent)[-1] == "TurnStart"
        assert (agent.turn, turn.number, len(agent.inbox)) == (turn, 1, 0)
        assert (await turn).text == "Hello."
        assert agent.turn is None


async def test_one_turn_at_a_time() -> None:
    """A second turn is refused while one runs, with the ways out; afterwards it is welcome."""
    async with stage("One.", "Two.") as play:
        agent = await play.agent()
        turn = agent.run("1")
        with pytest.raises(AgentBusyError, match=r"reviewer is in turn 1; .*agent\.inject"):
            agent.run("2")
        await turn
        assert (await agent.run("2")).turn == 2


async def test_a_turn_that_nobody_hears_ends_by_itself() -> None:
    """Giving up an iteration outside ``async with`` lets the turn finish."""
    gate = Gate()
    async with stage(Reply(("Well, ", gate, "that is that."))) as play:
        agent = await play.agent()
        turn = agent.run("Hi")
        async for event in turn:
            if isinstance(event, TextDelta):
                break
        gate.open()
        await turn.over()
        assert turn.end == TurnFinished(1, "completed", "Well, that is that.")


async def test_leaving_early_cancels() -> None:
    """Leaving ``async with`` before the end cancels the turn, and waits until its log is closed and durable."""
    gate = Gate()
    async with stage(Reply(("Well, ", gate, "that is that.")), "Again.") as play:
        agent = await play.agent()
        async with agent.run("Hi") as turn:
            async for event in turn:
                if isinstance(event, TextDelta):
                    break
        assert turn.end == TurnFinished(1, "aborted", "Well, ", "user")
        assert logged(agent)[-1] == TurnEnd(1, "aborted", "user")
        assert [(e.message.text, e.interrupted) for e in logged(agent, AssistantSaid)] == [("Well, ", True)]
        assert (await agent.run("Go on")).text == "Again."


async def test_awaiting_raises_what_failed() -> None:
    """Whoever awaits a turn that fails gets the error itself; whoever iterates gets it in the last event."""
    async with stage() as play:
        agent = await play.agent(model=None)
        with pytest.raises(Exception, match="agent reviewer has no model to ask"):
            await agent.run("Hi")
        end = (await events_of(agent.run("Hi")))[-1]
        assert (end.reason, type(end.error).__name__) == ("error", "NoModelError")
        assert logged(agent)[-1].code == "no_model"


async def test_a_rejected_turn_is_blocked() -> None:
    """A first step that a listener rejects ends the turn as ``blocked``: no step, no message, no request."""
    async with stage("Fine.") as play:
        agent = await play.agent()

        async def guard(proposed: PreStep, call_next: Any) -> Any:
            return Reject("not on Sundays") if proposed.turn == 1 else await call_next()

        play.ctx.on(AGENT_PRE_STEP, guard)
        end = await agent.run("Hi")
        assert (end.reason, end.detail) == ("blocked", "not on Sundays")
        assert kinds(agent) == ["SessionStart", "TurnStart", "TurnEnd"]
        assert not play.model.requests
        assert (await agent.run("Hi again")).reason == "completed"
        assert said(agent) == ["Hi again"]


async def test_a_later_step_can_be_rejected() -> None:
    """A rejected later step keeps the steps so far, and ends the turn."""
    async with stage(call_tools(clock={})) as play:
        play.tools.register(clock)
        agent = await play.agent()

        async def guard(proposed: PreStep, call_next: Any) -> Any:
            return Reject() if proposed.step == 2 else await call_next()

        agent.ctx.on(AGENT_PRE_STEP, guard)
        assert (await agent.run("Hi")).reason == "blocked"
        assert kinds(agent)[-3:] == ["ToolAnswered", "StepEnd", "TurnEnd"]


async def test_messages_can_be_rewritten() -> None:
    """What listeners make of the messages is what is logged and sent; they get them frozen."""
    async with stage("Fine.") as play:
        agent = await play.agent()

        async def polite(proposed: PreStep, call_next: Any) -> Enter:
            messages = (await call_next()).messages
            assert messages == proposed.messages
            assert isinstance(messages, tuple)
            source = MessageSource("plugin", "polite")
            return Enter((UserSaid(UserMessage("Please:"), source), *messages))

        agent.ctx.on(AGENT_PRE_STEP, polite)
        await agent.run("Hi")
        assert said(agent) == ["Please:", "Hi"]


async def test_rewritten_to_nothing() -> None:
    """A turn whose messages are rewritten to nothing ends without a step; a step that is owed goes on without any."""
    async with stage(call_tools(clock={}), "Noon.") as play:
        play.tools.register(clock)
        agent = await play.agent()

        async def nothing(proposed: PreStep, call_next: Any) -> Enter:
            return Enter(()) if proposed.turn == 1 or proposed.step == 2 else await call_next()

        agent.ctx.on(AGENT_PRE_STEP, nothing)
        assert (await agent.run("Hi")) == TurnFinished(1, "completed")
        assert not play.model.requests
        assert (await agent.run("Hi")).text == "Noon."


async def test_injected_messages_join_the_next_step() -> None:
    """What is injected while idle comes before the next turn's text; in a turn it joins the next step, or makes one."""
    async with stage("One.", "Two.", "Three.", "Four.", "Five.") as play:
        agent = await play.agent()
        agent.inject("By the way")
        assert len(agent.inbox) == 1
        turn = agent.run("Hi")
        agent.inject("And another thing")
        await turn
        assert said(agent) == ["By the way", "Hi", "And another thing"]
        assert len(play.model.requests) == 2

        asked: list[int] = []

        async def more(stopping: TurnStopping) -> None:
            asked.append(agent.session.step)
            if agent.session.step == 2:
                agent.inject("Anything else?")

        agent.ctx.on(AGENT_TURN_STOPPING, more)
        turn = agent.run("Bye")
        agent.inject("Wait")
        assert (await turn).text == "Five."
        assert asked == [2, 3]  # while somebody has more to say anyway, nobody is asked


@pytest.mark.parametrize(
    "reply",
    [Reply("Well,", finish="max-tokens"), Reply("Well,", calls=call_tools(clock={}).calls, finish="max-tokens")],
)
async def test_a_cut_answer_ends_the_turn(reply: Reply) -> None:
    """An answer that was cut at its limit ends the turn; tool calls in it are no calls, and none runs."""
    async with stage(reply, "Again.") as play:
        play.tools.register(clock)
        agent = await play.agent()
        assert (await agent.run("Hi")) == TurnFinished(1, "max-tokens", "Well,")
        assert "ToolCalled" not in kinds(agent)
        assert (await agent.run("Go on")).text == "Again."


async def test_a_cut_answer_is_remembered() -> None:
    """A turn that goes on after a cut answer, because somebody had more to say, still ends as cut."""
    async with stage(Reply("Well,", finish="max-tokens"), "All said.") as play:
        agent = await play.agent()
        turn = agent.run("Hi")
        agent.inject("And?")
        assert (await turn) == TurnFinished(1, "max-tokens", "All said.")


async def test_going_round_in_circles_ends() -> None:
    """A turn with more steps than its agent may take fails, and says how to allow more."""
    async with stage(lambda request: call_tools(clock={})) as play:
        play.tools.register(clock)
        agent = await play.agent(max_steps=3)
        with pytest.raises(StepLimitError, match=r"has taken 3 steps .* max_steps"):
            await agent.run("Hi")
        assert len(play.model.requests) == 3
        assert logged(agent)[-1].reason == "error"
        with pytest.raises(ValueError, match="at least one step"):
            await play.agent(max_steps=0)


@pytest.mark.parametrize("answer", [None, "Enter", Enter])
async def test_a_wrong_answer_is_told(answer: object) -> None:
    """A listener that answers with something else fails the turn, and the error says what it must give."""
    async with stage() as play:
        agent = await play.agent()

        async def wrong(proposed: PreStep, call_next: Any) -> Any:
            return answer

        agent.ctx.on(AGENT_PRE_STEP, wrong)
        with pytest.raises(WrongAnswerError, match=r"agent/pre-step gave .*; it must give Enter or Reject"):
            await agent.run("Hi")


async def test_only_the_loop_writes_snapshots() -> None:
    """A message that claims to be a snapshot is refused, wherever it comes from."""
    source = MessageSource(RUNTIME_CONTEXT, "impostor")
    async with stage() as play:
        agent = await play.agent()
        for tell in (agent.run, agent.inject):
            with pytest.raises(ValueError, match="written by the loop"):
                tell("It is noon.", source=source)

        async def forge(proposed: PreStep, call_next: Any) -> Enter:
            return Enter((*proposed.messages, UserSaid(UserMessage("It is noon."), source)))

        agent.ctx.on(AGENT_PRE_STEP, forge)
        with pytest.raises(ForgedSnapshotError, match="It is noon"):
            await agent.run("Hi")


async def test_a_text_that_no_log_could_hold() -> None:
    """Half of a surrogate pair is refused at the call, before anything is logged."""
    async with stage("Fine.") as play:
        agent = await play.agent()
        with pytest.raises(NotJsonError):
            agent.run("\ud800")
        with pytest.raises(TypeError, match="begins with a text"):
            agent.run(3)  # type: ignore[arg-type]
        assert agent.turn is None
        assert (await agent.run("Hi")).turn == 1


async def test_several_agents_run_together() -> None:
    """Agents of one kernel run at the same time, each on its own session."""
    gates = [Gate(), Gate()]
    async with stage(Reply((gates[0], "One.")), Reply((gates[1], "Two."))) as play:
        one, two = await play.agent("one"), await play.agent("two")
        first = one.run("Hi")
        await gates[0].reached()
        second = two.run("Hi")
        await gates[1].reached()
        gates[1].open()
        assert (await second).text == "Two."
        gates[0].open()
        assert (await first).text == "One."


async def test_a_turn_can_be_heard_from_anywhere() -> None:
    """A turn runs in the agent's task, so it may be begun in one task and awaited in several others."""
    async with stage("Hello.") as play:
        agent = await play.agent()
        turn = agent.run("Hi")
        ends = []

        async def hear() -> None:
            ends.append(await turn)

        async with anyio.create_task_group() as group:
            group.start_soon(hear)
            group.start_soon(hear)
        assert [end.text for end in ends] == ["Hello.", "Hello."]


def clock() -> str:
    """Tell the time."""
    return "noon"
