"""Assemblies that run at the same time, and the async providers of one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Collection
from contextvars import ContextVar
from random import Random
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.concurrency.support import FAR, PATIENCE, living_tasks

from foreword import (
    AssembleContext,
    ContextKey,
    PromptAssembly,
    SystemPrompt,
    ToolProviderResult,
    ToolSchema,
    render,
)

pytestmark = pytest.mark.anyio

REQUEST = ContextKey("request", str)
SCOPES, ASSEMBLIES = 20, 200
DOOMED = range(3, ASSEMBLIES, 9)

only_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])


async def test_async_providers_of_all_kinds_are_asked_together() -> None:
    """Variables, tools, sections and contexts, with and without a timeout, wait for each other and all answer."""
    prompt = SystemPrompt()
    asked: list[anyio.Event] = []

    def meeting(answer: Any) -> Callable[[], Awaitable[Any]]:
        here = anyio.Event()
        asked.append(here)

        async def meet() -> Any:
            here.set()
            for other in asked:
                await other.wait()
            return answer

        return meet

    for number, timeout in enumerate((None, FAR)):
        tools = ToolProviderResult([ToolSchema(f"tool{number}", "", {})])
        prompt.variable(f"v{number}", meeting(f"value{number}"), timeout=timeout)
        prompt.tools(meeting(tools), timeout=timeout)
        prompt.section(f"s{number}", meeting(f"section {{{{v{number}}}}}"), order=number, timeout=timeout)
        prompt.context(f"c{number}", meeting(f"context{number}"), order=number, timeout=timeout)
    with anyio.fail_after(PATIENCE):
        rendering = await prompt.render()
    assert rendering.text == "section value0\n\nsection value1"
    assert rendering.snapshot.endswith("\n\ncontext0\n\ncontext1")
    assert [tool.name for tool in rendering.tools] == ["tool0", "tool1"]


async def test_answers_take_their_places_by_order_not_by_arrival() -> None:
    """The provider of the first section answers last, and its text still comes first."""
    prompt = SystemPrompt()
    answered = [anyio.Event() for _ in range(4)]

    def after_its_successor(number: int) -> Callable[[], Awaitable[str]]:
        async def provider() -> str:
            if number + 1 < len(answered):
                await answered[number + 1].wait()
            answered[number].set()
            return f"text {number}"

        return provider

    for number in range(4):
        prompt.section(f"s{number}", after_its_successor(number), order=number)
    with anyio.fail_after(PATIENCE):
        assert (await prompt.render()).text == "text 0\n\ntext 1\n\ntext 2\n\ntext 3"


async def test_a_single_async_provider_without_timeout_runs_in_the_task_that_assembles() -> None:
    """One async provider without a timeout costs no task."""
    prompt = SystemPrompt()
    tasks: list[int] = []

    async def provider() -> str:
        tasks.append(anyio.get_current_task().id)
        return "text"

    prompt.section("s", provider, order=1)
    assert (await prompt.render()).text == "text"
    assert tasks == [anyio.get_current_task().id]


@only_asyncio
@pytest.mark.skipif(sys.version_info < (3, 12), reason="asyncio has eager tasks since Python 3.12")
async def test_eager_tasks() -> None:
    """With tasks that run at once when they are made, answers, failures and timeouts are what they are without."""
    prompt = SystemPrompt()

    async def at_once() -> str:
        return "at once"

    async def later() -> str:
        await anyio.sleep(0.001)
        return "later"

    async def never() -> str:
        await anyio.sleep(FAR)
        return "never"

    async def failing() -> str:
        raise LookupError("boom")

    for number, provider in enumerate((at_once, later, failing)):
        prompt.section(f"timed{number}", provider, order=number, timeout=FAR, on_error="skip")
        prompt.section(f"untimed{number}", provider, order=number, on_error="skip")
    prompt.section("late", never, order=9, timeout=0.02, on_error="skip")
    loop = asyncio.get_running_loop()
    factory = loop.get_task_factory()
    before = living_tasks()
    loop.set_task_factory(getattr(asyncio, "eager_task_factory"))  # noqa: B009 - not known to 3.11
    try:
        with anyio.fail_after(PATIENCE):
            rendering = await prompt.render()
    finally:
        loop.set_task_factory(factory)
    assert rendering.text == "at once\n\nat once\n\nlater\n\nlater"
    assert living_tasks() == before
    assert prompt.stuck == ()


# -- 200 at once ---------------------------------------------------------------------------------------------------------


def crowd(doomed: Collection[int] = ()) -> tuple[SystemPrompt, list[SystemPrompt]]:
    """A prompt with 20 scopes whose providers wait at random and say for whom they were asked; for some, for ever."""
    prompt = SystemPrompt()
    chance = Random(7)

    def saying(what: str) -> Callable[[AssembleContext], Awaitable[str]]:
        async def provider(context: AssembleContext) -> str:
            for _ in range(chance.randrange(3)):
                await anyio.sleep(chance.random() / 100)
            if int(context[REQUEST]) in doomed and chance.random() < 0.5:
                await anyio.sleep(FAR)
            return f"{what} for {context[REQUEST]}"

        return provider

    def having(what: str) -> Callable[[AssembleContext], Awaitable[ToolProviderResult]]:
        async def provider(context: AssembleContext) -> ToolProviderResult:
            await anyio.sleep(chance.random() / 100)
            return ToolProviderResult([ToolSchema(f"{what}-{context[REQUEST]}", what, {"type": "object"})])

        return provider

    prompt.variable("who", saying("everybody"))
    prompt.section("static", "Static {{who}}.", order=1)
    prompt.section("shared", saying("shared, {{who}},"), order=2, timeout=FAR)
    prompt.context("now", saying("now"), order=1)
    prompt.tools(having("shared"))

    async def listener(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        await anyio.sleep(FAR if int(context[REQUEST]) in doomed else chance.random() / 100)
        assembly.sections.swap("static", text=f"Static {{{{who}}}} ({context[REQUEST]}).")
        return await call_next()

    prompt.on_assemble(listener)
    scopes = [prompt.scope(f"scope{number}") for number in range(SCOPES)]
    for number, scope in enumerate(scopes):
        scope.variable("who", saying(f"member{number}"), timeout=FAR if number % 2 else None)
        scope.section("own", saying(f"own{number}, {{{{who}}}},"), order=3, timeout=None if number % 2 else FAR)
        scope.context("now", saying(f"now{number}"), order=1, timeout=FAR if number % 3 else None)
        scope.tools(having(f"tool{number}"), timeout=FAR if number % 5 else None)
    return prompt, scopes


def check_crowd(assemblies: dict[int, PromptAssembly]) -> None:
    """Each assembly has its own request's and scope's texts, values and tools, and shares nothing that can change."""
    for request, assembly in assemblies.items():
        number = request % SCOPES
        who = f"member{number} for {request}"
        assert assembly.variables == {"who": who}
        rendering = render(assembly)
        assert rendering.text.split("\n\n") == [
            f"Static {who} ({request}).",
            f"shared, {who}, for {request}",
            f"own{number}, {who}, for {request}",
        ]
        assert rendering.snapshot.endswith(f"\n\nnow{number} for {request}")
        assert [tool.name for tool in rendering.tools] == [f"shared-{request}", f"tool{number}-{request}"]
    mutable = [
        id(held)
        for each in assemblies.values()
        for held in (each, each.sections, each.contexts, each.tools, each.variables, each.extras)
    ]
    assert len(set(mutable)) == len(mutable)


async def test_200_assemblies_at_once_over_20_scopes_never_mix() -> None:
    """Texts, values, tools and listeners' edits stay with their assembly, and no task is left."""
    _, scopes = crowd()
    before = living_tasks()
    done: dict[int, PromptAssembly] = {}

    async def assemble(request: int) -> None:
        done[request] = await scopes[request % SCOPES].assemble(AssembleContext({REQUEST: str(request)}))

    with anyio.fail_after(FAR):
        async with anyio.create_task_group() as group:
            for request in range(ASSEMBLIES):
                group.start_soon(assemble, request)
    assert len(done) == ASSEMBLIES
    check_crowd(done)
    assert living_tasks() == before


async def test_200_assemblies_of_which_some_are_cancelled_by_scopes() -> None:
    """A cancelled assembly takes nobody with it, gives nothing, and leaves no task."""
    prompt, scopes = crowd(DOOMED)
    before = living_tasks()
    done: dict[int, PromptAssembly] = {}
    cancelling = {request: anyio.CancelScope() for request in range(ASSEMBLIES)}

    async def assemble(request: int) -> None:
        with cancelling[request]:
            done[request] = await scopes[request % SCOPES].assemble(AssembleContext({REQUEST: str(request)}))

    with anyio.fail_after(FAR):
        async with anyio.create_task_group() as group:
            for request in range(ASSEMBLIES):
                group.start_soon(assemble, request)
            for request in DOOMED:
                cancelling[request].cancel()
                await anyio.sleep(0.001)
    assert done.keys() == set(range(ASSEMBLIES)) - set(DOOMED)
    check_crowd(done)
    assert living_tasks() == before
    assert prompt.stuck == ()


@only_asyncio
async def test_200_assemblies_of_which_some_are_cancelled_natively() -> None:
    """The same with asyncio's own cancellation, at once and after a few turns of the loop."""
    prompt, scopes = crowd(DOOMED)
    before = living_tasks()
    tasks = [
        asyncio.create_task(scopes[request % SCOPES].assemble(AssembleContext({REQUEST: str(request)})))
        for request in range(ASSEMBLIES)
    ]
    for request in DOOMED:
        tasks[request].cancel()
        await asyncio.sleep(0.001)
    outcomes = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), FAR)
    done = {request: each for request, each in enumerate(outcomes) if isinstance(each, PromptAssembly)}
    assert done.keys() == set(range(ASSEMBLIES)) - set(DOOMED)
    assert all(type(outcomes[request]) is asyncio.CancelledError for request in DOOMED)
    check_crowd(done)
    assert living_tasks() == before
    assert prompt.stuck == ()


async def test_what_is_done_to_one_assembly_is_not_seen_by_another() -> None:
    """Emptying the lists, values and extras of an assembly leaves one made at the same time, and the next, as they are."""
    _, scopes = crowd()
    context = AssembleContext({REQUEST: "1"})
    made: list[PromptAssembly] = []

    async def assemble() -> None:
        made.append(await scopes[1].assemble(context))

    async with anyio.create_task_group() as group:
        group.start_soon(assemble)
        group.start_soon(assemble)
    first, second = made
    for held in (first.sections, first.contexts, first.tools, first.variables, first.extras):
        held.clear()
    check_crowd({1: second})
    check_crowd({1: await scopes[1].assemble(context)})


# -- context variables ---------------------------------------------------------------------------------------------------

CALLER: ContextVar[str] = ContextVar("caller", default="nobody")


async def reads_the_caller() -> str:
    await anyio.lowlevel.checkpoint()
    return CALLER.get()


@pytest.mark.parametrize("timeouts", [(None,), (FAR,), (None, None), (None, FAR)])
async def test_async_providers_see_the_context_variables_of_the_caller(timeouts: tuple[float | None, ...]) -> None:
    """Alone or together, with or without a timeout."""
    prompt = SystemPrompt()
    for number, timeout in enumerate(timeouts):
        prompt.section(f"s{number}", reads_the_caller, order=number, timeout=timeout)
    CALLER.set("me")
    assert (await prompt.render()).text.split("\n\n") == ["me"] * len(timeouts)
