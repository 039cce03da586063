"""How agents come and go: nobody sees half of one, and nothing of one stays behind."""

from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from tests.agent.support import MODEL, WatchedStore, logged, stage
from tests.support.kernel import held, made

from foreword import (
    PERSONA_SECTION,
    AgentBusyError,
    ContextKey,
    InactiveContextError,
    ProviderFailedError,
    SessionInUseError,
    SystemPrompt,
    assemble_context_for,
    create_agent,
)
from foreword.agent.live import LiveAgents
from foreword.errors import (
    DuplicateEntryError,
    EmptyNameError,
    InvalidModelError,
    MissingServiceError,
    PluginFailedError,
    PluginTimeoutError,
    SessionBusyError,
    UnknownAddressError,
    UnknownToolError,
    WrongThreadError,
)
from foreword.kernel.context import Context
from foreword.session import SessionStart, TurnEnd
from foreword.session.log import open_log
from foreword.testing import Gate, Reply, call_tools
from foreword.testing.memory_store import MemoryStore
from foreword.tools.masks import ToolMask
from foreword.tools.registry import ToolRegistry

pytestmark = pytest.mark.anyio


def live(ctx: Context) -> list[str]:
    agents = ctx.get(LiveAgents)
    return [] if agents is None else [agent.name for agent in agents.published.values()]


# -- coming ------------------------------------------------------------------------------------------------------------


async def test_set_up_comes_before_anybody_sees_the_agent() -> None:
    """``setup``, sync or async, registers through ``agent.ctx``; the agent has no session yet and is not listed."""
    async with stage(lambda request: "Fine.") as play:
        seen: list[Any] = []

        def setup(agent: Any) -> None:
            seen.append((live(play.ctx), repr(agent), agent.active))
            agent.ctx.require(SystemPrompt).section("own", "Own.", order=1)
            for early in (agent.run, agent.inject):
                with pytest.raises(InactiveContextError, match="being set up"):
                    early("Hi")
            with pytest.raises(InactiveContextError):
                agent.id  # noqa: B018

        async def setup_later(agent: Any) -> None:
            await anyio.lowlevel.checkpoint()
            setup(agent)

        for how in (setup, setup_later):
            agent = await play.agent(setup=how)
            assert seen.pop() == ([], "<Agent reviewer, being set up>", False)
            assert live(play.ctx) == ["reviewer"]
            await agent.run("Hi")
            assert b"You review.\\n\\nOwn." in play.model.requests[-1]
            await agent.dispose()


async def test_a_persona_of_its_own() -> None:
    """It takes the deployment's place in the agent's scope, and nowhere else; its origin is the line of the call."""
    async with stage("Fine.") as play:
        agent = await play.agent(persona="You are {{model}}.")
        rendering = await play.prompt.render(assemble_context_for(agent))
        assert rendering.text == "You are m1."
        (span, *_) = rendering.spans
        assert (span.owner, span.section, span.origin.scope) == ("reviewer", PERSONA_SECTION, "reviewer")
        assert span.source is not None
        assert span.source.file.endswith("tests/agent/support.py")
        assert (await play.prompt.render()).text == "You review."


class BrokenError(Exception):
    """What a set-up raises."""


async def broken_setup(agent: Any) -> None:
    agent.ctx.require(SystemPrompt).section("own", "Own.", order=1)
    raise BrokenError


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"setup": broken_setup}, BrokenError),
        ({"tools": ToolMask(allow=["nosuch"])}, UnknownToolError),
        ({"session": "nosuch"}, UnknownAddressError),
        ({"model": "m1"}, InvalidModelError),
        ({"model": 3}, TypeError),
        ({"values": {"tenant": "acme"}}, TypeError),
        ({"values": {ContextKey("tenant", str): 3}}, TypeError),
        ({"log": None}, TypeError),
        ({"session": "some", "labels": {"ticket": "4711"}}, TypeError),
        ({"labels": {"ticket": 4711}}, TypeError),
        ({"retry": 5}, TypeError),
        ({"clock": 5}, TypeError),
        ({"max_steps": True}, TypeError),
        ({"max_steps": 1.5}, TypeError),
        ({"max_steps": "3"}, TypeError),
        ({"max_steps": 0}, ValueError),
        ({"name": ""}, EmptyNameError),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else None,
)
async def test_what_fails_leaves_nothing(options: dict[str, Any], error: type[Exception]) -> None:
    """Nothing is registered, published, stored or claimed; the same call with the fault mended works."""
    async with stage("Fine.") as play:
        play.tools.register(search)
        before = held(play.ctx)
        options = dict(options)
        with pytest.raises(error):
            await play.agent(options.pop("name", "reviewer"), **options)
        assert held(play.ctx) == before
        assert live(play.ctx) == []
        assert await play.log.sessions() == []
        agent = await play.agent(tools=ToolMask(allow=["search"]))
        assert (await agent.run("Hi")).reason == "completed"


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"labels": {"tenant": "acme", "ticket": 4711}}, "the label 'ticket' is an int; give a string"),
        ({"retry": 5}, "retry is a RetryPolicy, not an int"),
        ({"clock": 5}, "clock is a Clock, not an int"),
        ({"max_steps": 1.5}, "max_steps is an int, or None for any number, not a float"),
    ],
    ids=["labels", "retry", "clock", "max_steps"],
)
async def test_what_is_refused_is_named(options: dict[str, Any], match: str) -> None:
    """The error says which option is wrong, when the agent is made and not in some turn."""
    async with stage() as play:
        with pytest.raises(TypeError, match=match):
            await play.agent(**options)


async def test_a_session_that_is_open() -> None:
    """A session has one writer: a second agent on it is refused, by name, and the first goes on."""
    async with stage("Fine.") as play:
        agent = await play.agent()
        with pytest.raises(SessionInUseError, match="is that of agent reviewer"):
            await play.agent("other", log=None, session=agent.session)
        assert agent.session.head
        await agent.run("Hi")
        with pytest.raises(SessionBusyError):
            await play.agent("other", session=agent.id)
        assert live(play.ctx) == ["reviewer"]


async def test_creation_that_is_cancelled() -> None:
    """A creation whose task is cancelled in set-up is undone, in whatever phase it is."""
    async with stage() as play:
        before = held(play.ctx)
        for checkpoints in range(12):

            async def make() -> None:
                async def setup(agent: Any) -> None:
                    agent.ctx.require(SystemPrompt).section("own", "Own.", order=1)
                    await anyio.lowlevel.checkpoint()

                agent = await play.agent(setup=setup)
                await agent.dispose()

            async with anyio.create_task_group() as group:
                group.start_soon(make)
                for _ in range(checkpoints):
                    await anyio.lowlevel.checkpoint()
                group.cancel_scope.cancel()
            assert held(play.ctx) == before


async def test_an_owner_that_goes_meanwhile() -> None:
    """The plugin that makes an agent goes while its session is claimed: no agent, and the session is free."""
    store = WatchedStore()
    async with stage(lambda request: "Fine.", store=store) as play:
        agent = await play.agent()
        await agent.run("Hi")
        await agent.dispose()
        before = held(play.ctx)
        owner = play.ctx.scope("owner")
        store.before_claim = owner.dispose
        with pytest.raises(InactiveContextError):
            await play.agent(ctx=owner, session=agent.id)
        store.before_claim = None
        assert held(play.ctx) == before
        again = await play.agent(session=agent.id)
        await again.run("Hi again")


async def test_what_it_needs() -> None:
    """Without a prompt, or with a mask and without tools, it names the service that is missing."""
    async with open_log(MemoryStore()) as log, Context() as ctx:
        with pytest.raises(MissingServiceError, match="requires the service SystemPrompt"):
            await create_agent(ctx, "a", model=MODEL, log=log)
        await ctx.mount(SystemPrompt).ready()
        with pytest.raises(MissingServiceError, match="requires the service ToolRegistry"):
            await create_agent(ctx, "a", model=MODEL, log=log, tools=ToolMask(allow=[]))
        agent = await create_agent(ctx, "a", model=MODEL, log=log)
        with pytest.raises(MissingServiceError, match="requires the service ModelAdapters"):
            await agent.run("Hi")


async def test_a_kernel_that_does_not_run() -> None:
    """It says so, and holds nothing."""
    async with open_log(MemoryStore()) as log:
        ctx = Context()
        with pytest.raises(InactiveContextError, match="the kernel"):
            await create_agent(ctx, "a", model=MODEL, log=log)
        assert len(ctx.root.fibers) == 1


async def test_a_variable_of_the_loop_that_is_taken() -> None:
    """Somebody has one of the loop's names globally: the agent cannot be made, and both are named."""
    async with stage() as play:
        taken = play.prompt.variable("model", "mine")
        with pytest.raises(PluginFailedError, match="agent-loop") as caught:
            await play.agent()
        assert isinstance(caught.value.__cause__, DuplicateEntryError)
        taken.close()
        await play.agent()


async def test_labels_and_folder() -> None:
    """They are in ``session/start`` of a new session, and a session that goes on has its own."""
    async with stage("Fine.") as play:
        agent = await play.agent(labels={"ticket": "4711"}, cwd="/src")
        assert logged(agent, SessionStart) == [SessionStart(agent.id, {"ticket": "4711"}, "/src")]
        await agent.run("Hi")
        await agent.dispose()
        again = await play.agent(session=agent.id)
        assert (again.session.labels, again.session.cwd) == ({"ticket": "4711"}, "/src")


# -- going -------------------------------------------------------------------------------------------------------------


async def test_a_disposed_agent() -> None:
    """What was registered through it is gone, registering raises, it runs no more, and its session is free again."""
    async with stage("Fine.") as play:
        before = held(play.ctx)
        agent = await play.agent()
        agent.ctx.require(SystemPrompt).section("own", "Own.", order=1)
        await agent.run("Hi")
        await agent.dispose()
        await agent.dispose()
        assert held(play.ctx) == before
        assert live(play.ctx) == []
        assert (await play.prompt.render(assemble_context_for(agent))).text == "You review."
        with pytest.raises(InactiveContextError):
            agent.ctx.require(SystemPrompt).section("own", "Own.", order=1)
        for call in (agent.run, agent.inject):
            with pytest.raises(InactiveContextError, match="agent reviewer"):
                call("Hi")
        with pytest.raises(InactiveContextError):
            await agent.spawn("child")
        agent.cancel()
        assert repr(agent) == f"<Agent reviewer, session {agent.id}: disposed>"
        assert (await play.log.resume(agent.id)).turn == 1


async def test_disposal_ends_the_turn_first() -> None:
    """The turn that runs is aborted as ``disposed``, its end is logged and durable; then its scope goes."""
    gate = Gate()
    async with stage(Reply(("Well, ", gate))) as play:
        agent = await play.agent()
        order: list[str] = []
        agent.session.on_append(lambda each: order.append(f"{type(each.event).__name__}, {agent.active}"))
        agent.ctx.defer(lambda: order.append("scope undone"))
        turn = agent.run("Hi")
        await gate.reached()
        await agent.dispose()
        assert turn.end is not None
        assert (turn.end.reason, turn.end.detail) == ("aborted", "disposed")
        assert order[-2:] == ["TurnEnd, False", "scope undone"]  # by then nothing can begin any more
        view = await play.log.view(agent.id)
        assert [each.event async for each in view.events()][-1] == TurnEnd(1, "aborted", "disposed")


@pytest.mark.parametrize("how", ["plugin", "kernel"])
async def test_whoever_goes_takes_its_agents_along(how: str) -> None:
    """An agent goes with the plugin that made it, and with the kernel; its turn is closed while all it needs is there."""
    gate = Gate()
    async with stage(Reply(("Well, ", gate)), persona="{{model}}") as play:
        agents: list[Any] = []

        async def body(ctx: Context) -> None:
            agents.append(await play.agent(ctx=ctx))

        fiber = await play.ctx.mount(made("app", body)).ready()
        (agent,) = agents
        turn = agent.run("Hi")
        await gate.reached()
        if how == "plugin":
            await fiber.dispose()
            assert turn.end.reason == "aborted"
    assert (turn.end.reason, turn.end.detail) == ("aborted", "disposed")
    assert not agent.active


async def test_a_turn_that_disposes_its_agent() -> None:
    """A tool may dispose of the agent that calls it: the turn is aborted, and nobody waits for the other for ever."""
    async with stage(call_tools(leave={})) as play:
        agent = await play.agent()

        @play.tools.register
        async def leave() -> str:
            """Leave."""
            await agent.dispose()
            return "gone"

        turn = agent.run("Bye")
        await turn.over()
        assert turn.end is not None
        assert (turn.end.reason, turn.end.detail) == ("aborted", "disposed")
        await agent.dispose()
        assert not agent.active


async def test_a_turn_that_heeds_no_cancellation() -> None:
    """Disposal waits for it as long as the kernel's teardown may take; when it ends at last, it disturbs nobody."""
    async with stage("Fine.", options={"teardown_timeout": 0.05}) as play:
        waiting, going_on = anyio.Event(), anyio.Event()

        async def stubborn() -> str:
            waiting.set()
            with anyio.CancelScope(shield=True):
                await going_on.wait()
            return ""

        bad = play.prompt.section("stubborn", stubborn, order=1)
        agent = await play.agent()
        turn = agent.run("Hi")
        await waiting.wait()
        with pytest.raises(BaseExceptionGroup) as caught:
            await agent.dispose()
        assert caught.group_contains(PluginTimeoutError)
        assert turn.end is None
        going_on.set()
        await turn.over()
        assert turn.end is not None
        assert turn.end.reason == "aborted"
        bad.close()
        again = await play.agent(session=agent.id)
        assert logged(again)[-1] == TurnEnd(1, "interrupted")
        await again.run("Hi")


async def test_a_prompt_that_is_reloaded() -> None:
    """Persona, mask and variables of an agent come back with the prompt; no step is taken without them."""

    async def acme(ctx: Context, tools: ToolRegistry) -> None:
        for _ in range(20):  # it comes later than the agent's own
            await anyio.lowlevel.checkpoint()
        tools.register(search)

    async with stage(lambda request: "Fine.") as play:
        fiber = await play.ctx.mount(made("acme", acme, needs=[ToolRegistry])).ready()
        agent = await play.agent(persona="{{model}}", tools=ToolMask(deny=["search"]))
        await agent.run("1")
        (prompt,) = [each for each in play.ctx.root.fibers if each.name == "system-prompt"]
        await prompt.update({"include_harness_identity": True})  # type: ignore[attr-defined]
        await agent.run("2")
        await fiber.ready()
        assert play.tools.known_names() == {"search"}
        await agent.run("3")
        first, second, third = play.model.requests
        assert b'"system":"m1","tools":[]' in first
        assert b'Harness.\\n\\nm1","tools":[]' in second
        assert b'Harness.\\n\\nm1","tools":[]' in third


async def test_the_kernel_goes_before_its_agents_do() -> None:
    """Leaving the kernel stops all agents first: no turn goes on while what it needs is taken away piece by piece."""
    gate = Gate()
    async with stage(Reply((gate,), calls=call_tools(look={}).calls), "Fine.", persona="{{model}}") as play:
        turns: list[Any] = []

        def late(ctx: Context) -> None:
            async def go_on() -> None:  # after the loop's variables have gone, before the agent goes
                gate.open()
                await turns[0].over()

            ctx.defer(go_on)

        async def app(ctx: Context) -> None:
            play.ctx.mount(made("late", late))
            agent = await play.agent(ctx=ctx)
            turns.append(agent.run("Hi"))

        await play.ctx.mount(made("app", app)).ready()
        await gate.reached()
    assert (turns[0].end.reason, turns[0].end.detail) == ("aborted", "disposed")


async def test_agents_that_come_while_others_go() -> None:
    """An agent can be made at whatever moment the last one goes; the variables are there for it."""
    for moments in range(40):
        async with stage("Fine.", persona="{{model}}") as play:
            agent = await play.agent()
            async with anyio.create_task_group() as group:
                group.start_soon(agent.dispose)
                for _ in range(moments):
                    await anyio.lowlevel.checkpoint()
                await (await play.agent("next")).run("Hi")


async def test_the_kernels_thread() -> None:
    """Running and making agents belongs to the kernel's thread; elsewhere it says how to get there."""
    async with stage() as play:
        agent = await play.agent()
        with pytest.raises(WrongThreadError, match="running a turn"):
            await anyio.to_thread.run_sync(agent.run, "Hi")
        assert agent.turn is None


async def test_a_failing_provider_leaves_the_agent_usable() -> None:
    """See also `test_failures`: an agent outlives its turns."""
    async with stage("Fine.") as play:
        agent = await play.agent()

        def broken() -> str:
            raise LookupError

        bad = agent.ctx.require(SystemPrompt).section("bad", broken, order=1)
        with pytest.raises(ProviderFailedError):
            await agent.run("Hi")
        bad.close()
        turn = agent.run("Hi")
        with pytest.raises(AgentBusyError):
            agent.run("Hi")
        await turn


def search(query: str) -> str:
    """Search."""
    return query
