"""Tools under a kernel: as a service, bound to whoever asks, and what happens when a plugin goes while its tool runs."""

# Without `from __future__ import annotations`: what is annotated here is what the kernel reads.
import gc
import threading
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from tests.concurrency.support import FAR, cling, until
from tests.support.kernel import kernel, made
from tests.tools.support import OBJECT, Gate, names, stub

from foreword import (
    Context,
    Source,
    SystemPrompt,
    SystemPromptConfig,
    ToolDefinition,
    ToolRegistry,
    ToolResult,
    WrongThreadError,
    plugin,
)
from foreword.kernel.fiber import PluginFiber


@asynccontextmanager
async def house(**options: Any) -> AsyncGenerator[tuple[Context, ToolRegistry]]:
    """A kernel with a prompt and tools, of which nothing is left."""
    async with kernel(**options) as ctx:
        await ctx.mount(SystemPrompt, SystemPromptConfig(include_harness_identity=False)).ready()
        await ctx.mount(ToolRegistry).ready()
        yield ctx, ctx.require(ToolRegistry)


async def mounted(ctx: Context, name: str, body: Callable[..., object]) -> PluginFiber:
    """Mount a plugin that takes its context and the tools."""
    return await ctx.mount(made(name, body, needs=[ToolRegistry])).ready()


class Calls:
    """Calls that run beside the test."""

    def __init__(self, tools: ToolRegistry, group: anyio.abc.TaskGroup) -> None:
        self.tools, self.group = tools, group
        self.results: dict[str, ToolResult] = {}

    def start(self, name: str) -> None:
        async def call() -> None:
            self.results[name] = await self.tools.call(name, "")

        self.group.start_soon(call)


@pytest.mark.anyio
async def test_a_plugin_takes_the_tools_by_annotation() -> None:
    """What a plugin registers is its own, at the line where it did so, and goes with it."""

    @plugin(name="acme-billing")
    def billing(prompt: SystemPrompt, tools: ToolRegistry) -> None:
        @tools.register
        def refund(order: str, cents: int) -> str:
            """Refund an order."""
            return f"{order}: {cents}"

        prompt.section("tool:refund", "Refund at most once.", order=110, requires_tools=["refund"])

    async with house() as (ctx, tools):
        prompt = ctx.require(SystemPrompt)
        fiber = await ctx.mount(billing).ready()
        rendering = await prompt.render()
        (origin,) = rendering.tool_origins
        assert origin is not None
        assert (origin.owner, origin.scope) == ("acme-billing", None)
        assert origin.source is not None
        assert origin.source.file == Source(__file__, 0).file
        assert [ref.kind for ref in fiber.contributions] == ["tool", "section"]
        assert rendering.text == "Refund at most once."
        assert (await tools.call("refund", '{"order": "7", "cents": 5}')).text == "7: 5"
        await fiber.dispose()
        assert (await prompt.render()).tools == ()
        assert (await tools.call("refund", '{"order": "7", "cents": 5}')).code == "UNKNOWN_TOOL"
        assert tools.known_names() == frozenset()


@pytest.mark.anyio
async def test_the_scope_of_a_context() -> None:
    """Through a scope's context tools are registered and masked for that scope; leaving it undoes both."""
    async with house() as (ctx, tools):
        tools.register(stub("bash"))
        agent_ctx = ctx.scope("agent")
        agent = agent_ctx.require(ToolRegistry)
        agent.register(stub("report"))
        agent.restrict(deny=["bash"])
        assert (names(tools), names(agent), names(tools, agent_ctx)) == (["bash"], ["report"], ["report"])
        view = agent_ctx.require(SystemPrompt)
        assert [tool.name for tool in (await view.render()).tools] == ["report"]
        assert names(tools.at(view)) == ["report"]
        await agent_ctx.dispose()
        assert names(tools, agent_ctx.key) == ["bash"]
        assert tools.scopes == ()


@pytest.mark.anyio
async def test_plugins_wait_for_the_tools() -> None:
    """A plugin that needs tools is loaded when they come, unloaded before they go, and again when they return."""
    async with kernel() as ctx:
        await ctx.mount(SystemPrompt).ready()
        fiber = await mounted(ctx, "a", lambda ctx, tools: tools.register(stub("a")) and None)
        assert fiber.missing == ("ToolRegistry",)
        for _ in range(2):
            provider = await ctx.mount(ToolRegistry).ready()
            await fiber.ready()
            assert names(ctx.require(ToolRegistry)) == ["a"]
            await provider.dispose()
            assert fiber.missing == ("ToolRegistry",)


@pytest.mark.anyio
async def test_registering_belongs_to_the_kernels_thread() -> None:
    """Also a plain tool, which runs in a thread, is told so when it registers something."""
    async with house() as (_, tools):

        @tools.register
        def registers() -> None:
            tools.register(stub("late"))

        result = await tools.call("registers", "")
        assert isinstance(result.error, WrongThreadError)
        assert names(tools) == ["registers"]


@pytest.mark.anyio
async def test_a_plugin_that_goes_waits_for_its_running_tools() -> None:
    """New calls find no tool; the one that runs finishes, before what the plugin opened is closed."""
    log: list[str] = []
    started, go_on = anyio.Event(), anyio.Event()

    def body(ctx: Context, tools: ToolRegistry) -> Any:
        log.append("open")

        @tools.register
        async def query() -> str:
            started.set()
            await go_on.wait()
            log.append("query")
            return "answer"

        yield
        log.append("close")

    async with house() as (ctx, tools), anyio.create_task_group() as group:
        fiber = await mounted(ctx, "db", body)
        calls = Calls(tools, group)
        calls.start("query")
        await started.wait()
        group.start_soon(fiber.dispose)
        await until(lambda: not names(tools))
        assert (await tools.call("query", "")).code == "UNKNOWN_TOOL"
        assert log == ["open"]
        go_on.set()
        await fiber.dispose()
        await until(lambda: calls.results)
        assert calls.results["query"].text == "answer"
        assert log == ["open", "query", "close"]


@pytest.mark.anyio
async def test_what_was_opened_between_two_tools() -> None:
    """A plugin waits for a running tool before it closes what it had opened when it registered that."""
    log: list[str] = []
    started, go_on = anyio.Event(), anyio.Event()

    def body(ctx: Context, tools: ToolRegistry) -> None:
        tools.register(stub("first"))
        ctx.defer(lambda: log.append("close"))

        @tools.register
        async def query() -> str:
            started.set()
            await go_on.wait()
            log.append("query")
            return "answer"

    async with house() as (ctx, tools), anyio.create_task_group() as group:
        fiber = await mounted(ctx, "db", body)
        Calls(tools, group).start("query")
        await started.wait()
        group.start_soon(fiber.dispose)
        await until(lambda: not names(tools) or names(tools) == ["first"])
        go_on.set()
        await fiber.dispose()
    assert log == ["query", "close"]


@pytest.mark.anyio
async def test_a_tool_that_runs_too_long_for_its_plugin() -> None:
    """After half of the teardown's time a running call is cancelled; the caller is told why, and the plugin goes."""
    started = anyio.Event()

    def body(ctx: Context, tools: ToolRegistry) -> None:
        @tools.register
        async def forever() -> None:
            started.set()
            await anyio.sleep(FAR)

    async with house(teardown_timeout=0.2) as (ctx, tools), anyio.create_task_group() as group:
        fiber = await mounted(ctx, "slow", body)
        calls = Calls(tools, group)
        calls.start("forever")
        await started.wait()
        await fiber.dispose()
        await until(lambda: calls.results)
        assert calls.results["forever"].code == "ABORTED"
        assert "plugin slow is being unloaded" in calls.results["forever"].text


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_tool_that_does_not_let_go(kind: str) -> None:
    """A tool that cannot be cancelled is left behind; its plugin goes all the same."""
    released, started, gate = anyio.Event(), anyio.Event(), Gate()

    def body(ctx: Context, tools: ToolRegistry) -> None:
        @tools.register(name="async")
        async def clings() -> None:
            started.set()
            await cling(released)

        @tools.register(name="thread")
        def blocks() -> None:
            gate()

    async with house(teardown_timeout=1.0) as (ctx, tools):
        async with anyio.create_task_group() as group:
            fiber = await mounted(ctx, "slow", body)
            calls = Calls(tools, group)
            calls.start(kind)
            await until(lambda: started.is_set() or gate.reached.is_set())
            await fiber.dispose()
            await until(lambda: calls.results)
            assert calls.results[kind].code == "ABORTED"
            assert [ref.name for ref in tools.stuck] == [kind]
            released.set()
            gate.open.set()
        await until(lambda: not tools.stuck)


@pytest.mark.anyio
async def test_a_tool_that_unloads_its_own_plugin() -> None:
    """A tool may have its own plugin go, and wait for that: the plugin does not wait for this call."""
    async with house() as (ctx, tools):
        fibers: list[PluginFiber] = []

        def body(ctx: Context, tools: ToolRegistry) -> None:
            @tools.register
            async def unload_me() -> str:
                await fibers[0].dispose()
                return "gone"

        fibers.append(await mounted(ctx, "self", body))
        with anyio.fail_after(20):
            assert (await tools.call("unload_me", "")).text == "gone"
        assert names(tools) == []


@pytest.mark.anyio
async def test_closed_by_hand_while_it_runs() -> None:
    """A tool that its plugin takes away while it runs still has the plugin wait for it, and nothing is kept after."""
    log: list[str] = []
    started, go_on = anyio.Event(), anyio.Event()
    registrations: list[Any] = []

    async def query(arguments: Any) -> str:
        started.set()
        await go_on.wait()
        log.append("query")
        return "answer"

    def body(ctx: Context, tools: ToolRegistry) -> None:
        ctx.defer(lambda: log.append("close"))
        registrations.append(tools.register(ToolDefinition("query", "", OBJECT, query)))

    async with house() as (ctx, tools), anyio.create_task_group() as group:
        fiber = await mounted(ctx, "db", body)
        Calls(tools, group).start("query")
        await started.wait()
        registrations[0].close()
        registrations[0].close()
        assert names(tools) == []
        group.start_soon(fiber.dispose)
        await anyio.wait_all_tasks_blocked()
        assert log == []
        go_on.set()
        await fiber.dispose()
        assert log == ["query", "close"]


@pytest.mark.anyio
async def test_what_was_closed_by_hand_is_not_kept() -> None:
    """When the last call of a tool that its plugin took away has ended, nothing keeps the tool."""
    started, go_on = anyio.Event(), anyio.Event()
    functions: list[weakref.ref[Any]] = []

    def body(ctx: Context, tools: ToolRegistry) -> None:
        async def query(arguments: Any) -> None:
            registration.close()
            started.set()
            await go_on.wait()

        registration = tools.register(ToolDefinition("query", "", OBJECT, query))
        functions.append(weakref.ref(query))

    def kept() -> bool:
        gc.collect()
        return functions[0]() is not None

    async with house() as (ctx, tools), anyio.create_task_group() as group:
        await mounted(ctx, "db", body)
        Calls(tools, group).start("query")
        await started.wait()
        assert kept()
        go_on.set()
        await until(lambda: not kept())


@pytest.mark.anyio
async def test_the_kernel_leaves_while_a_tool_runs() -> None:
    """Leaving the kernel unloads its plugins, which wait for their tools as ever."""
    started = anyio.Event()
    results: list[ToolResult] = []

    async def slow(arguments: Any) -> str:
        started.set()
        await anyio.sleep(0.02)
        return "finished"

    async with anyio.create_task_group() as group:
        async with Context() as ctx:
            await ctx.mount(SystemPrompt).ready()
            await ctx.mount(ToolRegistry).ready()
            tools = ctx.require(ToolRegistry)
            tools.register(ToolDefinition("slow", "", OBJECT, slow))

            async def call() -> None:
                results.append(await tools.call("slow", ""))

            group.start_soon(call)
            await started.wait()
        assert not tools.active
    assert [result.text for result in results] == ["finished"]


@pytest.mark.anyio
async def test_the_guard_sees_what_tools_raise() -> None:
    """Neither the model nor the log gets an error of a tool before the kernel's guard has seen it."""
    seen: list[tuple[str, str, str]] = []

    def guard(name: str, phase: str, error: BaseException) -> BaseException:
        seen.append((name, phase, str(error)))
        return RuntimeError(str(error).replace("s3cret", "…"))

    def body(ctx: Context, tools: ToolRegistry) -> None:
        @tools.register
        def login() -> None:
            raise ConnectionError("no login with s3cret")

        @tools.register
        def shows() -> object:
            class Odd:
                def __repr__(self) -> str:
                    return "s3cret"

            return {1: Odd()}

    async with house(guard=guard) as (ctx, tools):
        await mounted(ctx, "acme", body)
        result = await tools.call("login", "")
        assert result.text == "Error: RuntimeError: no login with …"
        assert isinstance(result.error, RuntimeError)
        assert seen == [("acme", "tool login", "no login with s3cret")]
        assert "s3cret" not in (await tools.call("shows", "")).text


@pytest.mark.anyio
async def test_two_kernels_have_tools_of_their_own() -> None:
    """Registries share nothing."""
    async with house() as (_, one), house() as (_, two):
        one.register(stub("a"))
        assert (names(one), names(two)) == (["a"], [])


@pytest.mark.anyio
async def test_plugins_that_come_and_go_while_their_tools_are_called() -> None:
    """Whenever a plugin goes, each call either reaches its tool, and what the tool uses is open, or finds none."""
    results: list[ToolResult] = []

    def body(ctx: Context, tools: ToolRegistry) -> Any:
        is_open = threading.Event()
        is_open.set()

        @tools.register
        async def use() -> str:
            for _ in range(3):
                assert is_open.is_set()
                await anyio.lowlevel.checkpoint()
            return "used"

        @tools.register
        def use_in_thread() -> str:
            assert is_open.is_set()
            return "used"

        yield
        is_open.clear()

    async with house() as (ctx, tools), anyio.create_task_group() as group:
        done = anyio.Event()

        async def call(name: str) -> None:
            while not done.is_set():
                results.append(await tools.call(name, ""))
                await anyio.lowlevel.checkpoint()

        for name in ("use", "use_in_thread", "use"):
            group.start_soon(call, name)
        for _ in range(20):
            fiber = await mounted(ctx, "coming", body)
            before = len(results)
            await until(lambda before=before: len(results) > before + 5)  # type: ignore[misc]
            await fiber.dispose()
        done.set()
    assert {result.code for result in results} == {None, "UNKNOWN_TOOL"}
