"""Cancelling: by a token, anywhere, once; whatever follows is ``aborted``, the log is closed, the agent goes on."""

import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.agent.support import Stage, WatchedStore, kinds, logged, stage

from foreword import (
    AGENT_ERROR,
    AGENT_PRE_STEP,
    AGENT_REQUEST,
    AGENT_REQUEST_ERROR,
    AGENT_TURN_STOPPING,
    SYSTEM_PROMPT_ASSEMBLE,
    Agent,
)
from foreword.agent.models import ModelAdapters
from foreword.agent.retry import Clock
from foreword.session import AssistantSaid, ToolAnswered, ToolCalled, TurnEnd
from foreword.session.repair import repair
from foreword.testing import Gate, Reply, call_tools
from foreword.wire.chunks import Chunk, ModelFailure, TextChunk, ToolCallChunk
from foreword.wire.messages import AssistantMessage, UserMessage
from foreword.wire.request import ModelConfig, ModelRequest

pytestmark = pytest.mark.anyio

BUSY = ModelFailure("overloaded", "overloaded", transient=True)

Point = Callable[[], Awaitable[None]]
"""Called at one place of a turn; does something to it there."""


class Winding:
    """A turn that comes by every kind of place where code of others is awaited; at one of them something is done."""

    def __init__(self, at: str, do: Point) -> None:
        self.at, self.do = at, do
        self.writes = 0
        self.store = WatchedStore()
        self.store.before_write = self.write

    async def point(self, name: str) -> None:
        if name == self.at:
            await self.do()

    async def agent(self, play: Stage) -> Agent:
        play.tools.register(self.look)
        play.prompt.section("p", self.provider, order=1)
        return await play.agent(setup=self.setup, clock=Clock(sleep=self.sleep))

    async def setup(self, agent: Agent) -> None:
        for event in (SYSTEM_PROMPT_ASSEMBLE, AGENT_PRE_STEP, AGENT_REQUEST, AGENT_REQUEST_ERROR):
            agent.ctx.on(event, self.around(event.name))
        agent.ctx.on(AGENT_TURN_STOPPING, self.stopping)

    def around(self, name: str) -> Any:
        async def listener(*told: Any) -> Any:
            await self.point(f"before {name}")
            result = await told[-1]()
            await self.point(f"after {name}")
            return result

        return listener

    async def provider(self) -> str:
        await self.point("assembly")
        return ""

    async def write(self) -> None:
        self.writes += 1
        await self.point(f"flush {self.writes}")

    async def sleep(self, seconds: float) -> None:
        await self.point("wait")

    async def stopping(self, told: Any) -> None:
        await self.point("stopping")

    async def look(self) -> str:
        """Look."""
        await self.point("tool")
        return "seen"


EVENTS = ("system-prompt/assemble", "agent/pre-step", "agent/request", "agent/request-error")
POINTS = (
    "assembly",
    *(f"{when} {event}" for event in EVENTS for when in ("before", "after")),
    "model",
    "wait",
    "tool",
    "stopping",
)


@pytest.mark.parametrize(
    ("at", "then"),
    [(at, then) for at in POINTS for then in ("goes on", "hangs", "raises")]
    + [(f"flush {number}", "goes on") for number in range(1, 5)],
)
async def test_cancelled_anywhere(at: str, then: str) -> None:
    """Cancelled at any place, whatever the code there does next: ``aborted``, no agent/error, a closed log, a usable agent."""
    errors: list[Any] = []
    sent: list[int] = []

    async def do() -> None:
        if agent.session.turn > 1:
            return
        agent.cancel()
        sent.append(len(play.model.requests))
        await anyio.lowlevel.checkpoint() if then == "goes on" else None
        if then == "hangs":
            await anyio.sleep_forever()
        if then == "raises":
            raise LookupError

    async def answer(request: Any) -> Any:
        if agent.session.turn == 1 and len(play.model.requests) == 1:
            return BUSY
        if agent.session.turn == 1 and len(play.model.requests) == 2:
            if at == "model":
                await do()
            return call_tools(look={})
        return "Fine."

    winding = Winding(at, do)
    async with stage(answer, store=winding.store) as play:
        agent = await winding.agent(play)
        play.ctx.on(AGENT_ERROR, errors.append)
        turn = agent.run("Hi")
        with anyio.fail_after(20):
            await turn.over()
        assert turn.end is not None
        assert (turn.end.reason, turn.end.detail, turn.end.error) == ("aborted", "user", None)
        assert logged(agent)[-1] == TurnEnd(1, "aborted", "user")
        assert sent == [len(play.model.requests)]
        assert errors == []
        assert repair(agent.session.events) == ()
        assert (await agent.run("Hi again")).text == "Fine."


@pytest.mark.parametrize("who", ["agent", "caller"])
async def test_cancelled_at_any_moment(who: str) -> None:
    """The same after any number of moments of the event loop, by a cancel of the agent or of whoever awaits the turn."""
    for moments in range(10_000):
        winding = Winding("nowhere", anyio.lowlevel.checkpoint)

        async def answer(request: Any) -> Any:
            return [BUSY, call_tools(look={})][len(play.model.requests) - 1] if len(request.messages) < 2 else "Fine."

        async with stage(answer, store=winding.store) as play:
            agent = await winding.agent(play)
            turn = agent.run("Hi")
            async with anyio.create_task_group() as group:
                group.start_soon(turn.result)
                for _ in range(moments):
                    await anyio.lowlevel.checkpoint()
                agent.cancel() if who == "agent" else group.cancel_scope.cancel()
            assert turn.end is not None
            assert turn.end.reason in ("aborted", "completed")
            assert repair(agent.session.events) == ()
            assert logged(agent)[-1] == TurnEnd(1, turn.end.reason, turn.end.detail)
            assert (await agent.run("Hi again")).reason == "completed"
        if turn.end.reason == "completed":
            break
    assert moments > 10


async def test_the_first_cause_stands() -> None:
    """Whoever cancels first is in the log; later causes change nothing; an idle agent cannot be cancelled in advance."""
    gate = Gate()
    async with stage(Reply((gate,)), "Fine.") as play:
        agent = await play.agent()
        agent.cancel()
        turn = agent.run("Hi")
        await gate.reached()
        agent.cancel("hook: out of budget")
        turn.cancel()
        await turn.over()
        assert turn.end is not None
        assert turn.end.detail == "hook: out of budget"
        agent.cancel()
        assert (await agent.run("Hi again")).reason == "completed"


async def test_each_turn_has_a_signal_of_its_own() -> None:
    """One token serves all of a turn, and the next turn has another."""
    signals: list[Any] = []
    async with stage(call_tools(look={}), "One.", "Two.") as play:
        agent = await Winding("nowhere", anyio.lowlevel.checkpoint).agent(play)

        async def keep(proposed: Any, call_next: Any) -> Any:
            signals.append(proposed.signal)
            return await call_next()

        agent.ctx.on(AGENT_PRE_STEP, keep)
        agent.ctx.on(AGENT_REQUEST, keep)
        turn = agent.run("1")
        await turn
        await agent.run("2")
        assert len(signals) == 6
        assert set(signals[:4]) == {turn.signal}
        assert set(signals[4:]) != {turn.signal}


async def test_from_another_thread() -> None:
    """Any thread may cancel, also while the turn waits for nothing but the model."""
    gate = Gate()
    async with stage(Reply((gate,))) as play:
        agent = await play.agent()
        turn = agent.run("Hi")
        await gate.reached()
        thread = threading.Thread(target=agent.cancel)
        thread.start()
        await turn.over()
        thread.join()
        assert turn.end is not None
        assert turn.end.reason == "aborted"


async def test_what_had_arrived_stays() -> None:
    """The text of an answer that was cut joins the history as interrupted; blank text does not, and no tool call."""
    gates = [Gate(), Gate()]
    replies = [Reply((" \n", gates[0])), Reply(("Let me", gates[1]), calls=call_tools(look={}).calls), "Fine."]
    async with stage(*replies) as play:
        agent = await play.agent()
        for gate in gates:
            turn = agent.run("Hi")
            await gate.reached()
            turn.cancel()
            await turn.over()
        said = [(e.message.text, e.message.tool_calls, e.interrupted) for e in logged(agent, AssistantSaid)]
        assert said == [("Let me", (), True)]
        assert turn.end is not None
        assert turn.end.text == "Let me"
        await agent.run("Go on")
        assert (
            b'"Hi"},{"role":"user","content":"Hi"},{"role":"assistant","content":"Let me"}' in play.model.requests[-1]
        )


class Slow:
    """An adapter that never comes to the end of its answer."""

    name, version = "slow", "1"

    def __init__(self) -> None:
        self.said_all = anyio.Event()

    def resolve(self, config: ModelConfig) -> ModelConfig:
        return config

    def body(self, request: ModelRequest) -> bytes:
        return request.canonical()

    async def stream(self, request: ModelRequest, signal: Any = None) -> AsyncGenerator[Chunk]:
        yield TextChunk("Let me")
        yield ToolCallChunk(0, "1", "look", "{}")
        self.said_all.set()
        await anyio.sleep_forever()


async def test_no_call_of_a_cut_answer_stays() -> None:
    """A tool call that had arrived when the turn was cancelled is none: whether it was whole is not known."""
    async with stage() as play:
        slow = Slow()
        play.ctx.require(ModelAdapters).register(slow)
        agent = await play.agent(model="slow:m")
        turn = agent.run("Hi")
        await slow.said_all.wait()
        turn.cancel()
        await turn.over()
        assert agent.session.messages == (UserMessage("Hi"), AssistantMessage("Let me"))


async def test_calls_without_an_answer_get_one() -> None:
    """Cancelled in the second of three tools: its outcome is unknown, the third was not started; the history stays whole."""
    calls = [call_tools(look={}).calls[0]] * 3
    async with stage(call_tools(*calls), "Fine.") as play:
        ran: list[int] = []

        @play.tools.register
        async def look() -> str:
            """Look."""
            ran.append(1)
            if len(ran) == 2:
                agent.cancel()
                await anyio.sleep_forever()
            return "seen"

        agent = await play.agent()
        turn = agent.run("Look")
        await turn.over()
        assert [e.code for e in logged(agent, ToolAnswered)] == [None, "ABORTED", "TOOL_NOT_STARTED"]
        assert len(logged(agent, ToolCalled)) == 2
        await agent.run("Go on")


async def test_a_tool_that_comes_to_its_end() -> None:
    """One that heeds no cancellation and answers all the same has its answer recorded: then it is known what was done."""
    async with stage(call_tools(look={})) as play:

        @play.tools.register
        async def look() -> str:
            """Look."""
            agent.cancel()
            return "seen"

        agent = await play.agent()
        turn = agent.run("Look")
        await turn.over()
        assert [(e.message.text, e.code) for e in logged(agent, ToolAnswered)] == [("seen", None)]
        assert kinds(agent)[-1] == "TurnEnd"


@pytest.mark.parametrize("how", ["iterating", "awaiting"])
async def test_a_caller_that_is_cancelled(how: str) -> None:
    """Whoever is cancelled while waiting for a turn cancels it, and leaves when its log is closed."""
    gate = Gate()
    async with stage(Reply(("Well, ", gate))) as play:
        agent = await play.agent()
        turn = agent.run("Hi")

        async def hear() -> None:
            if how == "awaiting":
                await turn
            async for _ in turn:
                pass

        async with anyio.create_task_group() as group:
            group.start_soon(hear)
            await gate.reached()
            group.cancel_scope.cancel()
        assert turn.end is not None
        assert (turn.end.reason, turn.end.detail) == ("aborted", "user")
        assert (await play.log.view(agent.id)).repaired == ()


async def test_a_timeout_round_a_turn() -> None:
    """``fail_after`` round a turn cancels it in order, and raises TimeoutError."""
    async with stage(Reply(("Well, ", Gate())), "Fine.") as play:
        agent = await play.agent()

        async def hear() -> None:
            with anyio.fail_after(0.05):
                async with agent.run("Hi") as turn:
                    async for _ in turn:
                        pass

        with pytest.raises(TimeoutError):
            await hear()
        assert logged(agent)[-1] == TurnEnd(1, "aborted", "user")
        assert (await agent.run("Hi again")).text == "Fine."


async def test_waits_between_attempts_can_be_cancelled() -> None:
    """A long wait for the next attempt ends with the turn."""
    async with stage(lambda request: BUSY) as play:
        asleep = anyio.Event()

        async def sleep(seconds: float) -> None:
            asleep.set()
            await anyio.sleep_forever()

        agent = await play.agent(clock=Clock(sleep=sleep))
        turn = agent.run("Hi")
        await asleep.wait()
        turn.cancel()
        await turn.over()
        assert turn.end is not None
        assert turn.end.reason == "aborted"
