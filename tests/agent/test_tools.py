"""Tools in a step: what is offered is what can be called, and every call gets an answer."""

import json
from typing import Any

import pytest
from tests.agent.support import MODEL, CheckedModel, kinds, logged, said, stage
from tests.support.kernel import kernel

from foreword import SYSTEM_PROMPT_ASSEMBLE, Context, ContextKey, SystemPrompt, create_agent, open_log
from foreword.agent.models import ModelAdapters
from foreword.errors import EventRefusedError
from foreword.session import AssistantSaid, ToolAnswered, ToolCalled, TurnEnd
from foreword.testing import call_tools
from foreword.testing.memory_store import MemoryStore
from foreword.tools.context import ToolContext
from foreword.tools.masks import ToolMask
from foreword.tools.registry import ToolRegistry
from foreword.tools.result import ToolResult
from foreword.wire.messages import ToolCall, ToolMessage

pytestmark = pytest.mark.anyio

TENANT = ContextKey("tenant", str)


def delete(name: str) -> str:
    """Delete."""
    raise AssertionError("it must not run")


def answers(agent: Any) -> list[tuple[str, bool, str | None]]:
    return [(e.message.text, e.message.is_error, e.code) for e in logged(agent, ToolAnswered)]


@pytest.mark.parametrize("how", ["mask", "listener", "never there"])
async def test_what_is_not_offered_cannot_be_called(how: str) -> None:
    """A tool that a mask or a listener hides is like one that does not exist: the model neither sees nor can call it."""
    async with stage(call_tools(delete={"name": "all"}), "Oh.") as play:
        if how != "never there":
            play.tools.register(delete)
        agent = await play.agent(tools=ToolMask(deny=["delete"]) if how == "mask" else None)

        async def hide(assembly: Any, context: Any, call_next: Any) -> Any:
            result = await call_next()
            result.tools = [tool for tool in result.tools if tool.name != "delete"]
            return result

        if how == "listener":
            agent.ctx.on(SYSTEM_PROMPT_ASSEMBLE, hide)
        await agent.run("Delete it")
        assert json.loads(play.model.requests[0])["tools"] == []
        assert answers(agent) == [('Error: there is no tool "delete"; there are no known tools', True, "UNKNOWN_TOOL")]


async def test_a_mask_that_comes_before_the_call_counts() -> None:
    """What is callable is today's set: a tool that was offered, and is hidden by the time of the call, does not run."""
    async with stage(call_tools(delete={"name": "all"}), "Oh.") as play:
        play.tools.register(delete)
        agent = await play.agent()

        def hide(each: Any) -> None:
            if isinstance(each.event, AssistantSaid) and each.event.message.tool_calls:
                agent.ctx.require(ToolRegistry).restrict(deny=["delete"])

        agent.session.on_append(hide)
        await agent.run("Delete it")
        assert answers(agent)[0][2] == "UNKNOWN_TOOL"


async def test_what_a_tool_knows_of_its_call() -> None:
    """Agent, scope, values, model, signal and the call's id are those of the step."""
    seen: list[ToolContext] = []
    async with stage(call_tools(look={}), "Fine.") as play:

        @play.tools.register
        async def look(context: ToolContext) -> str:
            """Look."""
            seen.append(context)
            return "seen"

        agent = await play.agent(values={TENANT: "acme"})
        await agent.run("Look")
        (context,) = seen
        assert (context.agent, context.scope, context[TENANT]) == (agent, agent, "acme")
        assert (context.model.name, context.tool, context.call_id) == ("m1", "look", "call_1")  # type: ignore[union-attr]


async def test_tools_of_the_agent_alone() -> None:
    """A tool that is registered through ``agent.ctx`` is this agent's; another one knows nothing of it."""
    async with stage(call_tools(own={}), "Fine.", call_tools(own={}), "Oh.") as play:
        agent, other = await play.agent(), await play.agent("other")

        @agent.ctx.require(ToolRegistry).register
        def own() -> str:
            """Own."""
            return "mine"

        await agent.run("Go")
        await other.run("Go")
        assert answers(agent) == [("mine", False, None)]
        assert answers(other)[0][2] == "UNKNOWN_TOOL"


async def test_several_calls() -> None:
    """They run one after the other, in the model's order; a failure of one is told and stops no other."""
    order: list[str] = []
    calls = [
        ToolCall("1", "note", '{"text": "a"}'),
        ToolCall("2", "note", '{"text": "bad"}'),
        ToolCall("3", "note", '{"txt": "c"}'),
        ToolCall("3", "note", '{"text": "d"}'),
        ToolCall("4", "note", "no json"),
    ]
    async with stage(call_tools(*calls), "Fine.") as play:

        @play.tools.register
        def note(text: str) -> str:
            """Note."""
            order.append(text)
            if text == "bad":
                raise ValueError("no")
            return text

        agent = await play.agent()
        await agent.run("Note")
        assert order == ["a", "bad", "d"]
        assert [(code, is_error) for _, is_error, code in answers(agent)] == [
            (None, False), ("TOOL_FAILED", True), ("INVALID_ARGS", True), (None, False), ("INVALID_ARGS", True)
        ]  # fmt: skip
        assert [type(event) for event in logged(agent, ToolCalled, ToolAnswered)] == [ToolCalled, ToolAnswered] * 5
        assert [e.call.arguments for e in logged(agent, ToolCalled)][-1] == "no json"


@pytest.mark.parametrize("stop", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("where", ["tool", "provider"])
async def test_an_exit_in_a_turn(where: str, stop: type[BaseException]) -> None:
    """An exit or interrupt in others' code ends the program in order: calls answered, the turn closed, the kernel left."""
    agents: list[Any] = []

    async def leave() -> str:
        """Leave."""
        raise stop(3)

    async def program() -> None:
        async with stage(call_tools(leave={})) as play:
            if where == "tool":
                play.tools.register(leave)
            else:
                play.prompt.section("leave", leave, order=1)
            agents.append(await play.agent())
            await agents[0].run("Go")

    with pytest.raises(stop, match="3"):
        await program()
    (agent,) = agents
    assert logged(agent)[-1] == TurnEnd(1, "aborted", "user")
    if where == "tool":
        assert kinds(agent)[-3:] == ["ToolAnswered", "StepEnd", "TurnEnd"]
        assert answers(agent)[0][2] == "TOOL_OUTCOME_UNKNOWN"


async def test_without_a_registry() -> None:
    """An agent needs no tools; a call of one is answered as unknown."""
    model = CheckedModel([call_tools(look={}), "Fine."])
    async with open_log(MemoryStore()) as log, kernel() as ctx:
        model.ctx = ctx
        await ctx.mount(SystemPrompt).ready()
        await ctx.mount(ModelAdapters).ready()
        ctx.require(ModelAdapters).register(model)
        agent = await create_agent(ctx, "bare", model=MODEL, log=log)
        assert (await agent.run("Look")).text == "Fine."
        assert answers(agent)[0][2] == "UNKNOWN_TOOL"


async def test_history_with_tools_is_what_the_model_gets() -> None:
    """Calls, answers and messages stand in the order in which they happened."""
    async with stage(call_tools(look={}, text="Let me look."), "Fine.") as play:

        @play.tools.register
        def look() -> dict[str, int]:
            """Look."""
            return {"seen": 1}

        agent = await play.agent()
        await agent.run("Go")
        assert agent.session.messages[2] == ToolMessage("call_1", "look", '{"seen":1}')
        assert [each["role"] for each in json.loads(play.model.requests[1])["messages"]] == [
            "user",
            "assistant",
            "tool",
        ]
        assert said(agent) == ["Go"]


class CarelessTools(ToolRegistry):
    """Gives results that no log can hold."""

    __slots__ = ()

    def bind(self, ctx: Context) -> ToolRegistry:
        return self

    async def call(self, *told: Any, **more: Any) -> ToolResult:
        return ToolResult("\ud800")


async def test_a_result_that_no_log_can_hold() -> None:
    """It fails the turn, and each call has its answer: that of the tool is not known, the others were not started."""
    model = CheckedModel([call_tools(ToolCall("1", "look", "{}"), ToolCall("2", "look", "{}")), "Fine."])
    async with open_log(MemoryStore()) as log, kernel() as ctx:
        model.ctx = ctx
        await ctx.mount(SystemPrompt).ready()
        await ctx.mount(ModelAdapters).ready()
        tools = CarelessTools(ctx.require(SystemPrompt))
        ctx.provide(tools, key=ToolRegistry)
        ctx.require(ModelAdapters).register(model)
        tools.register(look)
        agent = await create_agent(ctx, "careless", model=MODEL, log=log)
        with pytest.raises(EventRefusedError, match="refuses tool/result"):
            await agent.run("Look")
        assert [code for *_, code in answers(agent)] == ["TOOL_OUTCOME_UNKNOWN", "TOOL_NOT_STARTED"]
        await agent.run("And now?")
        roles = [each["role"] for each in json.loads(model.requests[1])["messages"]]
        assert roles == ["user", "assistant", "tool", "tool", "user"]


def look() -> str:
    """Look."""
    return "seen"
