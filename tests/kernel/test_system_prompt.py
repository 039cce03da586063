"""`SystemPrompt` as a service: the same class, its views bound to plugins and scopes that come and go."""

# Without `from __future__ import annotations`: the kernel reads the annotations of plugins made in functions.
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from tests.support.kernel import held, kernel, logged, made
from tests.support.short import facts, listener, names, tool

from foreword import (
    GLOBAL,
    AssembleContext,
    AssembledSection,
    DuplicateEntryError,
    InactiveContextError,
    InvalidConfigError,
    ListenerError,
    PromptAssembly,
    SystemPrompt,
    SystemPromptConfig,
)
from foreword.errors import EventModeError, KernelOwnsError, PluginFailedError, WrongThreadError
from foreword.kernel.context import Context
from foreword.kernel.fiber import FiberState, PluginFiber
from foreword.prompt.events import SYSTEM_PROMPT_ASSEMBLE, SYSTEM_PROMPT_CHANGE

pytestmark = pytest.mark.anyio

LONG = 20.0
BARE = {"include_harness_identity": False}
CallNext = Callable[[], Awaitable[PromptAssembly]]


async def served(ctx: Context, **config: Any) -> SystemPrompt:
    """Mount a prompt, and give the root's view of it."""
    await ctx.mount(SystemPrompt, {**BARE, **config}).ready()
    return ctx.require(SystemPrompt)


def contributing(name: str, body: Callable[[SystemPrompt], object]) -> Any:
    """A plugin that contributes something."""
    return made(name, lambda ctx, prompt: body(prompt) and None, needs=[SystemPrompt])


def section(name: str, order: float = 1) -> Any:
    return contributing(name, lambda prompt: prompt.section(f"{name}:section", name, order=order))


# -- mounting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (None, "You are an AI agent powered by DeepSeek Harness."),
        ({"persona": "P"}, "You are an AI agent powered by DeepSeek Harness.\n\nP"),
        (SystemPromptConfig(persona="P"), "You are an AI agent powered by DeepSeek Harness.\n\nP"),
        ({"include_harness_identity": False, "persona": "P"}, "P"),
        ({"include_harness_identity": True}, "You are an AI agent powered by DeepSeek Harness."),
        ({"identity": "I", "persona": "P"}, "I\n\nP"),
    ],
)
async def test_the_identity_is_on_as_a_service(config: object, text: str) -> None:
    """Served by a kernel, the prompt opens with the harness's identity unless it is told otherwise; alone it does not."""
    async with kernel() as ctx:
        await ctx.mount(SystemPrompt, config).ready()
        assert (await ctx.require(SystemPrompt).render()).text == text
    assert SystemPrompt(persona="P").render_sync().text == "P"


async def test_a_config_that_does_not_fit() -> None:
    """All faults come at once; nobody gets a prompt before it fits."""
    async with kernel() as ctx:
        user = ctx.mount(section("p"))
        fiber = ctx.mount(SystemPrompt, {"persona": 3, "tool_order": ["a", "a"]})
        with pytest.raises(InvalidConfigError) as caught:
            await fiber.ready()
        assert len(caught.value.faults) == 2
        assert (await user.ready()).missing == ("SystemPrompt",)
        await fiber.update(BARE)
        assert (await user.ready()).state is FiberState.ACTIVE


async def test_there_is_one_prompt() -> None:
    """A second one is refused, by the name of the first."""
    async with kernel() as ctx:
        await served(ctx)
        with pytest.raises(PluginFailedError, match="system-prompt cannot provide SystemPrompt: system-prompt does"):
            await ctx.mount(SystemPrompt).ready()


# -- owners and scopes -------------------------------------------------------------------------------------------------


async def test_a_view_belongs_to_its_plugin_and_scope() -> None:
    """What is registered names the plugin as owner, and stands in the scope that the plugin was mounted in."""
    async with kernel() as ctx:
        prompt = await served(ctx)
        agent = ctx.scope("agent")
        await agent.mount(section("acme")).ready()
        assembly = await prompt.assemble(AssembleContext(scope=agent.key))
        origin = assembly.sections[-1].origin
        assert origin is not None
        assert (origin.owner, origin.scope) == ("acme", "agent")
        assert facts(prompt)[0] == ""
        view = agent.require(SystemPrompt)
        assert (view.key, view.binding) == (agent.key, agent.binding)
        assert prompt.key is GLOBAL
        assert facts(view)[0] == "acme"
        assert repr(view) == "<SystemPrompt: owner agent, scope agent>"


async def test_contributions_go_with_their_plugin() -> None:
    """Sections, contexts, variables, tools, protections, suppressors and listeners, from every scope."""

    def everything(prompt: SystemPrompt) -> None:
        for view in (prompt, prompt.scope("inner")):
            view.section(f"s:{view.key.name}", "{{v}}", order=1)
            view.context("c", "context", order=1)
            view.variable("v", "value")
            view.tools([tool(f"t_{view.key.name}")])
            view.protect(tools=["t"])
            view.on_assemble(listener(lambda assembly: None))
            view.on_change(lambda: None)
        view.suppress_runtime_context()

    async with kernel() as ctx:
        prompt = await served(ctx, persona="P")
        before, text = held(ctx), facts(prompt)
        fiber = await ctx.mount(contributing("acme", everything)).ready()
        changed = await prompt.render()
        assert (changed.text, changed.snapshot != "", names(changed.tools)) == ("P\n\nvalue", True, ["t_global"])
        [inner] = prompt.scopes
        assert (await prompt.render(AssembleContext(scope=inner))).text == "P\n\nvalue\n\nvalue"
        await fiber.dispose()
        assert facts(prompt) == text
        assert (await prompt.render(AssembleContext(scope=inner))).text == "P"
        assert prompt.scopes == ()
        assert held(ctx) == before


async def test_unloading_a_scope_undoes_what_stands_in_it() -> None:
    """A scope's plugins and its own view's registrations go; those of others in the same layer stay."""
    async with kernel() as ctx:
        prompt = await served(ctx)
        agent = ctx.scope("agent")
        await agent.mount(section("a", order=1)).ready()
        agent.require(SystemPrompt).section("own", "own", order=2)
        other = ctx.scope(agent.key)
        other.require(SystemPrompt).section("other", "other", order=3)
        scoped = AssembleContext(scope=agent.key)
        assert (await prompt.render(scoped)).text == "a\n\nown\n\nother"
        await agent.dispose()
        assert (await prompt.render(scoped)).text == "other"
        await other.dispose()
        assert (await prompt.render(scoped)).text == ""


async def test_what_only_a_prompt_alone_does_is_refused() -> None:
    """`owner` and `close` name the call to use instead, and change nothing."""
    seen: list[SystemPrompt] = []
    async with kernel() as ctx:
        await served(ctx)
        await ctx.mount(contributing("acme", seen.append)).ready()
        for view in (*seen, ctx.require(SystemPrompt), ctx.scope("agent").require(SystemPrompt)):
            with pytest.raises(KernelOwnsError, match=r"owner\('x'\) .*use ctx\.mount\(plugin\)"):
                view.owner("x")
            with pytest.raises(KernelOwnsError, match=r"close\(\) .*use await fiber\.dispose\(\)"):
                view.close()
            with pytest.raises(KernelOwnsError), view:
                pass
            assert view.active
            view.section("s", "S", order=1).close()


async def test_a_view_of_a_scope_says_how_the_scope_goes() -> None:
    """It has no context to show, so `close`, and leaving its `with`, name the call that makes one."""
    async with kernel() as ctx:
        prompt = await served(ctx)
        with pytest.raises(KernelOwnsError, match=r'scope = ctx\.scope\("w"\), and await scope\.dispose\(\)$'):
            prompt.scope("w").close()
        with pytest.raises(KernelOwnsError, match=r'ctx\.scope\("w"\)'), prompt.scope("w"):
            pass
        with pytest.raises(KernelOwnsError, match=r"use await fiber\.dispose\(\)$"):
            prompt.close()
        scope = ctx.scope("w")
        view = scope.require(SystemPrompt)
        await scope.dispose()
        assert not view.active


async def test_a_scope_made_through_a_view() -> None:
    """It belongs to the plugin that made it, and goes with it."""
    views: list[SystemPrompt] = []

    def body(prompt: SystemPrompt) -> None:
        outer = prompt.scope("outer")
        inner = prompt.scope("inner", parent=outer)
        outer.section("o", "outer", order=1)
        inner.section("i", "inner", order=2)
        views.extend((outer, inner))

    async with kernel() as ctx:
        prompt = await served(ctx)
        before = held(ctx)
        fiber = await ctx.mount(contributing("acme", body)).ready()
        assert (await views[1].render()).text == "outer\n\ninner"
        await fiber.dispose()
        assert [view.active for view in views] == [False, False]
        assert (await prompt.render(AssembleContext(scope=views[1]))).text == ""
        assert held(ctx) == before


async def test_a_view_ends_with_its_plugin() -> None:
    """Afterwards it neither registers nor assembles."""
    seen: list[SystemPrompt] = []
    async with kernel() as ctx:
        await served(ctx)
        fiber = await ctx.mount(contributing("acme", seen.append)).ready()
        await fiber.dispose()
        [view] = seen
        assert not view.active
        for call in (lambda: view.section("s", "S", order=1), view.render_sync, lambda: view.on_change(print)):
            with pytest.raises(InactiveContextError):
                call()
        with pytest.raises(InactiveContextError):
            await view.render()


async def test_a_name_is_free_again_when_its_owner_has_gone() -> None:
    """A duplicate names both plugins; the one that failed comes when it is tried again."""
    async with kernel() as ctx:
        prompt = await served(ctx)
        body = lambda prompt: prompt.section("s", "S", order=1)  # noqa: E731
        first = await ctx.mount(contributing("first", body)).ready()
        second = ctx.mount(contributing("second", body))
        with pytest.raises(PluginFailedError) as caught:
            await second.ready()
        error = caught.value.__cause__
        assert isinstance(error, DuplicateEntryError)
        assert (error.entry.owner, error.holder.owner) == ("second", "first")
        await first.dispose()
        await second.update(None)
        assert facts(prompt)[0] == "S"


async def test_another_thread_may_not_register() -> None:
    """It is told how to get to the kernel's thread; assembling is not its affair either, and nothing has changed."""
    async with kernel() as ctx:
        prompt = await served(ctx)
        calls: list[Callable[[], object]] = [
            lambda: prompt.section("s", "S", order=1),
            lambda: prompt.context("c", "C", order=1),
            lambda: prompt.variable("v", "V"),
            lambda: prompt.tools([tool("t")]),
            lambda: prompt.protect(tools=["t"]),
            lambda: prompt.suppress_runtime_context(),
            lambda: prompt.on_assemble(listener(lambda assembly: None)),
            lambda: prompt.on_change(lambda: None),
            lambda: prompt.scope("agent"),
        ]
        before = held(ctx)[:3]
        for call in calls:
            with pytest.raises(WrongThreadError, match=r"anyio\.from_thread\.run_sync"):
                await anyio.to_thread.run_sync(call)
        assert held(ctx)[:3] == before
        assert facts(prompt) == ("", "", [])


async def test_another_thread_may_not_undo() -> None:
    """What was registered stays until the kernel's own thread closes it; closing twice is no fault anywhere."""
    async with kernel() as ctx:
        prompt = await served(ctx)
        registrations = {
            'section "s" of root': prompt.section("s", "S", order=1),
            'context "c" of root': prompt.context("c", "C", order=1),
            'variable "v" of root': prompt.variable("v", "V"),
            'tool provider "tools" of root': prompt.tools([tool("t")]),
            "protection": prompt.protect(tools=["t"]),
            "listener": prompt.on_change(lambda: None),
        }
        before = facts(prompt)
        for what, registration in registrations.items():
            with pytest.raises(WrongThreadError, match=rf"^closing {what}.*anyio\.from_thread\.run_sync"):
                await anyio.to_thread.run_sync(registration.close)
            assert not registration.closed
        assert facts(prompt) == before
        for registration in registrations.values():
            registration.close()
            await anyio.to_thread.run_sync(registration.close)
        assert facts(prompt) == ("", "", [])


async def test_another_thread_may_not_replace() -> None:
    """The text stays, and no listener of changes hears anything in a thread that is not its own."""
    async with kernel() as ctx:
        prompt = await served(ctx)
        section = prompt.section("s", "S", order=1)
        heard: list[str] = []
        prompt.on_change(lambda: heard.append("!"))
        with pytest.raises(WrongThreadError, match=r'^replacing section "s" of root'):
            await anyio.to_thread.run_sync(section.replace, "T")
        assert (facts(prompt)[0], heard) == ("S", [])
        section.replace("T")
        assert (facts(prompt)[0], heard) == ("T", ["!"])


# -- coming and going --------------------------------------------------------------------------------------------------


async def test_unloading_every_plugin_returns_the_assembly_to_what_it_was() -> None:
    """In whatever order they go; what is equal by order stands in the order of loading."""
    async with kernel() as ctx:
        prompt = await served(ctx, persona="P")
        fibers = [await ctx.mount(section(name)).ready() for name in "abc"]
        assert facts(prompt)[0] == "P\n\na\n\nb\n\nc"
        await fibers[1].dispose()
        assert facts(prompt)[0] == "P\n\na\n\nc"
        await fibers[0].update(None)
        assert facts(prompt)[0] == "P\n\nc\n\na", "a plugin loaded anew registers anew, behind the others"
        for at in (2, 0):
            await fibers[at].dispose()
        assert facts(prompt)[0] == "P"


async def test_a_prompt_that_is_loaded_anew() -> None:
    """Its users are unloaded first and come again, in the new prompt; listeners of the kernel stay."""
    log: list[str] = []
    async with kernel() as ctx:
        fiber = await ctx.mount(SystemPrompt, {**BARE, "persona": "old"}).ready()
        ctx.on(SYSTEM_PROMPT_ASSEMBLE, listener(lambda assembly: log.append("heard")))
        user = await ctx.mount(section("a")).ready()
        await fiber.update({**BARE, "persona": "new"})
        await user.ready()
        assert (await ctx.require(SystemPrompt).render()).text == "new\n\na"
        assert log == ["heard"]
        await fiber.dispose()
        assert (user.state, user.missing, ctx.get(SystemPrompt)) == (FiberState.PENDING, ("SystemPrompt",), None)
        await ctx.mount(SystemPrompt, {**BARE, "persona": "third"}).ready()
        await user.ready()
        assert (await ctx.require(SystemPrompt).render()).text == "third\n\na"


async def test_a_failing_plugin_leaves_nothing_in_the_prompt() -> None:
    """What it had registered is rolled back, whatever form it has."""

    async def body(ctx: Context, prompt: SystemPrompt) -> AsyncGenerator[None]:
        prompt.section("s", "S", order=1)
        prompt.scope("agent").section("t", "T", order=1)
        await anyio.lowlevel.checkpoint()
        raise ValueError
        yield

    async with kernel() as ctx:
        prompt = await served(ctx, persona="P")
        before = held(ctx)
        fiber = ctx.mount(made("p", body, needs=[SystemPrompt]))
        with pytest.raises(PluginFailedError):
            await fiber.ready()
        assert facts(prompt) == ("P", "", [])
        assert prompt.scopes == ()
        await fiber.dispose()
        assert held(ctx) == before


async def test_a_plugin_that_goes_waits_for_its_providers() -> None:
    """What it opened for them is closed only when a running assembly has got its answer, which it keeps."""
    log: list[str] = []
    asked, answer = anyio.Event(), anyio.Event()

    async def provider(context: AssembleContext) -> str:
        asked.set()
        await answer.wait()
        log.append("answered")
        return "late"

    async def body(ctx: Context, prompt: SystemPrompt) -> AsyncGenerator[None]:
        prompt.section("s", provider, order=1)
        yield
        log.append("closed")

    async with kernel() as ctx, anyio.create_task_group() as tasks:
        prompt = await served(ctx)
        fiber = await ctx.mount(made("p", body, needs=[SystemPrompt])).ready()

        async def assemble() -> None:
            log.append((await prompt.render()).text)

        tasks.start_soon(assemble)
        await asked.wait()
        tasks.start_soon(fiber.dispose)
        await anyio.wait_all_tasks_blocked()
        assert (log, fiber.state) == ([], FiberState.UNLOADING)
        answer.set()
        await fiber.dispose()
        await anyio.wait_all_tasks_blocked()
        assert sorted(log) == ["answered", "closed", "late"]
        assert log[0] == "answered"
        assert (await prompt.render()).text == ""


@pytest.mark.parametrize("way", ["dispose", "update", "dispose of the service", "dispose of the scope"])
async def test_a_provider_that_unloads_its_own_plugin(way: str) -> None:
    """The plugin does not wait for the provider that waits for it to go; what was in force stays in force."""
    fibers: dict[str, Any] = {}

    async def provider(context: AssembleContext) -> str:
        if way == "update":
            await fibers["dispose"].update(None)
        else:
            await fibers[way].dispose()
        return "last words"

    body = contributing("acme", lambda prompt: prompt.section("s", provider, order=1))
    async with kernel(teardown_timeout=LONG) as ctx:
        fibers["dispose of the service"] = await ctx.mount(SystemPrompt, BARE).ready()
        agent = fibers["dispose of the scope"] = ctx.scope("agent")
        fibers["dispose"] = await agent.mount(body).ready()
        with anyio.fail_after(LONG / 2):
            rendering = await ctx.require(SystemPrompt).render(AssembleContext(scope=agent.key))
        assert rendering.text == "last words"


# -- events ------------------------------------------------------------------------------------------------------------


async def test_one_waterfall_by_two_doors() -> None:
    """`ctx.on(SYSTEM_PROMPT_ASSEMBLE, …)` and `prompt.on_assemble` are one order, prepended ones first."""
    log: list[str] = []

    def hearing(name: str) -> Any:
        async def hear(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
            log.append(f"+{name}")
            result = await call_next()
            log.append(f"-{name}")
            return result

        return hear

    async with kernel() as ctx:
        prompt = await served(ctx)
        ctx.on(SYSTEM_PROMPT_ASSEMBLE, hearing("a"))
        prompt.on_assemble(hearing("b"))
        ctx.on(SYSTEM_PROMPT_ASSEMBLE, hearing("c"))
        prompt.on_assemble(hearing("p1"), prepend=True)
        ctx.on(SYSTEM_PROMPT_ASSEMBLE, hearing("p2"), prepend=True)
        await prompt.assemble()
    order = ["p2", "p1", "a", "b", "c"]
    assert log == [f"+{name}" for name in order] + [f"-{name}" for name in reversed(order)]


async def test_a_listener_may_come_before_the_prompt_does() -> None:
    """The event is the kernel's: who listens needs no prompt yet, and is named by its plugin when it fails."""

    async def bad(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        raise ValueError("bad")

    async with kernel() as ctx:
        fiber = await ctx.mount(made("acme", lambda ctx: ctx.on(SYSTEM_PROMPT_ASSEMBLE, bad) and None)).ready()
        prompt = await served(ctx)
        with pytest.raises(ListenerError, match="of acme"):
            await prompt.assemble()
        await fiber.dispose()
        await prompt.assemble()


async def test_who_hears_an_assembly() -> None:
    """Listeners of the assembled scope, of those around it and of none; of the global prompt only these last."""
    log: list[str] = []
    async with kernel() as ctx:
        prompt = await served(ctx)
        outer = ctx.scope("outer")
        inner = ctx.scope("inner", parent=outer)
        sibling = ctx.scope("sibling", parent=outer)
        for each in (ctx, outer, inner, sibling):
            name = each.key.name
            each.on(SYSTEM_PROMPT_ASSEMBLE, listener(lambda assembly, name=name: log.append(f"ctx {name}")))
            view = each.require(SystemPrompt)
            view.on_assemble(listener(lambda assembly, name=name: log.append(f"view {name}")))

        async def heard(view: SystemPrompt) -> list[str]:
            del log[:]
            await view.assemble()
            return [entry.partition(" ")[2] for entry in log if entry.startswith("ctx")] if twins() else []

        def twins() -> bool:
            return [each.replace("ctx", "view") for each in log[::2]] == log[1::2]

        assert await heard(prompt) == ["global"]
        assert await heard(outer.require(SystemPrompt)) == ["global", "outer"]
        assert await heard(inner.require(SystemPrompt)) == ["global", "outer", "inner"]
        assert await heard(sibling.require(SystemPrompt)) == ["global", "outer", "sibling"]


async def test_a_listener_of_the_kernel_changes_assemblies() -> None:
    """What it puts in is its plugin's, as the trace tells."""

    async def add(assembly: PromptAssembly, context: AssembleContext, call_next: CallNext) -> PromptAssembly:
        assembly.sections.append(AssembledSection("added", "A"))
        return await call_next()

    async with kernel() as ctx:
        prompt = await served(ctx)
        await ctx.mount(made("acme", lambda ctx: ctx.on(SYSTEM_PROMPT_ASSEMBLE, add) and None)).ready()
        rendering = await prompt.render()
        assert rendering.text == "A"
        origin = (await prompt.assemble()).sections[-1].origin
        assert origin is not None
        assert origin.owner == "acme"


async def test_one_bell_by_two_doors() -> None:
    """`ctx.on(SYSTEM_PROMPT_CHANGE, …)` and `prompt.on_change` ring alike, for every scope, when things come and go."""
    bells: dict[str, int] = {"ctx": 0, "view": 0, "scoped": 0}

    def ring(name: str) -> Callable[[], None]:
        def hear() -> None:
            bells[name] += 1

        return hear

    async with kernel() as ctx:
        prompt = await served(ctx)
        ctx.on(SYSTEM_PROMPT_CHANGE, ring("ctx"))
        prompt.on_change(ring("view"))
        ctx.scope("other").on(SYSTEM_PROMPT_CHANGE, ring("scoped"))
        fiber = await ctx.scope("agent").mount(section("a")).ready()
        assert bells == {"ctx": 1, "view": 1, "scoped": 1}
        await fiber.update(None)
        assert bells == {"ctx": 3, "view": 3, "scoped": 3}
        await fiber.dispose()
        assert bells == {"ctx": 4, "view": 4, "scoped": 4}


async def test_a_change_listener_that_raises_takes_the_registration_back() -> None:
    """Also one of the kernel's; the plugin that registered fails, and leaves nothing."""

    def refuse() -> None:
        raise ValueError("not now")

    async with kernel() as ctx:
        prompt = await served(ctx)
        refusing = ctx.on(SYSTEM_PROMPT_CHANGE, refuse)
        fiber = ctx.mount(section("a"))
        with pytest.raises(PluginFailedError, match="not now"):
            await fiber.ready()
        assert facts(prompt)[0] == ""
        refusing.close()
        await fiber.update(None)
        assert facts(prompt)[0] == "a"


async def test_a_change_listener_that_raises_on_the_way_out() -> None:
    """Everything is undone all the same, and the errors come with the disposal."""

    def refuse() -> None:
        raise ValueError("never")

    def two(prompt: SystemPrompt) -> None:
        prompt.section("a", "A", order=1)
        prompt.section("b", "B", order=1)

    async with kernel() as ctx:
        prompt = await served(ctx)
        fiber = await ctx.mount(contributing("acme", two)).ready()
        refusing = ctx.on(SYSTEM_PROMPT_CHANGE, refuse)
        with pytest.raises(BaseExceptionGroup) as caught:
            await fiber.dispose()
        assert [str(error) for error in caught.value.exceptions] == ["never", "never"]
        assert facts(prompt)[0] == ""
        refusing.close()


async def test_a_change_is_told_to_plain_functions_only() -> None:
    """An async listener would never be awaited."""

    async def later() -> None:
        return None

    async with kernel() as ctx:
        await served(ctx)
        with pytest.raises(EventModeError, match="system-prompt/change is emitted to plain functions"):
            ctx.on(SYSTEM_PROMPT_CHANGE, later)


async def test_two_kernels_have_two_prompts() -> None:
    """The events are declared once and share nothing."""
    log: list[str] = []
    async with kernel() as one:
        async with Context() as other:
            first, second = await served(one, persona="one"), await served(other, persona="other")
            one.on(SYSTEM_PROMPT_ASSEMBLE, listener(lambda assembly: log.append("one")))
            await other.mount(section("a")).ready()
            assert (await first.render()).text == "one"
            assert (await second.render()).text == "other\n\na"
        assert (await first.render()).text == "one"
    assert log == ["one", "one"]


async def test_a_plugin_s_undo_may_read_the_prompt() -> None:
    """During its own unloading a plugin still sees what has not been undone yet; its dependents see nothing."""
    log: list[tuple[str, bool]] = []
    fibers: list[PluginFiber] = []

    def body(ctx: Context, prompt: SystemPrompt) -> None:
        ctx.defer(lambda: log.append(("undo", ctx.get(SystemPrompt) is not None)))
        prompt.section("s", "S", order=1)

    async with kernel() as ctx:
        prompt = await ctx.mount(SystemPrompt, BARE).ready()
        fibers.append(await ctx.mount(made("p", body, needs=[SystemPrompt])).ready())
        await fibers[0].dispose()
        assert log == [("undo", True)]
        fibers.append(await ctx.mount(made("p", body, needs=[SystemPrompt])).ready())
        await prompt.dispose()
        assert log == [("undo", True), ("undo", False)]


async def test_a_plugin_beside_the_prompt_is_not_touched() -> None:
    """Who does not use the prompt does not reload with it."""
    log: list[str] = []
    async with kernel() as ctx:
        fiber = await ctx.mount(SystemPrompt, BARE).ready()
        await ctx.mount(logged("beside", log)).ready()
        await fiber.update({**BARE, "persona": "P"})
        assert log == ["+beside"]
