"""Listeners of assemblies that run at the same time, that wait, that are cancelled, and whose tasks outlive them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import anyio
import pytest
from tests.concurrency.support import FAR, PATIENCE, living_tasks, until

from foreword import AssembleContext, AssembledSection, ContextKey, ListenerError, PromptAssembly, SystemPrompt

pytestmark = pytest.mark.anyio

REQUEST = ContextKey("request", str)


async def test_concurrent_assemblies_each_get_their_own_assembly() -> None:
    """Twenty assemblies that are all in the same listener at once edit twenty assemblies."""
    prompt = SystemPrompt()
    prompt.section("s", "for {{who}}", order=1)
    prompt.variable("who", lambda context: context[REQUEST])
    inside: dict[str, PromptAssembly] = {}
    all_inside = anyio.Event()

    async def listener(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        inside[context[REQUEST]] = assembly
        if len(inside) == 20:
            all_inside.set()
        await all_inside.wait()
        assembly.sections.append(AssembledSection("added", f"added for {context[REQUEST]}"))
        assembly.variables["who"] = f"{assembly.variables['who']}!"
        return await call_next()

    prompt.on_assemble(listener)
    texts: dict[str, str] = {}

    async def render(request: str) -> None:
        texts[request] = (await prompt.render(AssembleContext({REQUEST: request}))).text

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(render, str(number))
    assert texts == {str(number): f"for {number}!\n\nadded for {number}" for number in range(20)}
    assert len({id(assembly) for assembly in inside.values()}) == 20
    assert len({id(assembly.sections) for assembly in inside.values()}) == 20


async def test_a_listener_may_wait_before_and_after_it_calls_on() -> None:
    """The waterfall takes its time, from the outermost listener in and out again."""
    prompt = SystemPrompt()
    prompt.section("s", "text", order=1)
    told: list[str] = []

    def waiting(name: str) -> Any:
        async def listener(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
            await anyio.sleep(0.001)
            told.append(f"{name} in")
            result: PromptAssembly = await call_next()
            await anyio.sleep(0.001)
            told.append(f"{name} out")
            return result

        return listener

    prompt.on_assemble(waiting("a"))
    prompt.on_assemble(waiting("b"))
    assert (await prompt.render()).text == "text"
    assert told == ["a in", "b in", "b out", "a out"]


async def test_a_listener_may_wait_for_another_assembly_of_the_same_prompt() -> None:
    """An assembly within an assembly is another one: neither sees the other's edits."""
    prompt = SystemPrompt()
    prompt.section("s", "text", order=1)
    inner: list[str] = []

    async def listener(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        if context.get(REQUEST) != "inner":
            assembly.sections.swap("s", text="edited")
            inner.append((await prompt.render(AssembleContext({REQUEST: "inner"}))).text)
        return await call_next()

    prompt.on_assemble(listener)
    assert (await prompt.render()).text == "edited"
    assert inner == ["text"]


async def test_cancelled_inside_a_listener() -> None:
    """The cancellation goes through all listeners and out: it is no `listener_error`, and no task is left."""
    prompt = SystemPrompt()
    prompt.section("s", "text", order=1)
    inside = anyio.Event()
    cleaned: list[str] = []

    def waiting(name: str, *, innermost: bool) -> Any:
        async def listener(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
            try:
                if innermost:
                    inside.set()
                    await anyio.sleep(FAR)
                result: PromptAssembly = await call_next()
                return result
            finally:
                cleaned.append(name)

        return listener

    prompt.on_assemble(waiting("outer", innermost=False))
    prompt.on_assemble(waiting("inner", innermost=True))
    before = living_tasks()
    outcome: list[str] = []

    async def assemble() -> None:
        try:
            await prompt.assemble()
        except anyio.get_cancelled_exc_class():
            outcome.append("cancelled")
            raise

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(assemble)
            await inside.wait()
            group.cancel_scope.cancel()
    assert outcome == ["cancelled"]
    assert cleaned == ["inner", "outer"]
    assert living_tasks() == before


async def test_a_listener_that_gives_the_inner_ones_a_deadline() -> None:
    """A listener may cancel those behind it and go on with the assembly as it stands."""
    prompt = SystemPrompt()
    prompt.section("s", "text", order=1)

    async def impatient(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        with anyio.move_on_after(0.02):
            result: PromptAssembly = await call_next()
            return result
        assembly.sections.swap("s", text="without the slow one")
        return assembly

    async def slow(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        await anyio.sleep(FAR)
        return assembly

    prompt.on_assemble(impatient)
    prompt.on_assemble(slow)
    with anyio.fail_after(PATIENCE):
        assert (await prompt.render()).text == "without the slow one"


async def test_calling_on_from_a_task_that_outlives_the_listener_fails_the_assembly() -> None:
    """A call that comes when its listener has returned, while the assembly still runs, is a `listener_error` that names it."""
    prompt = SystemPrompt()
    prompt.section("s", "text", order=1)
    inner_calls: list[int] = []
    errors: list[Exception] = []

    async with anyio.create_task_group() as group:
        returned = anyio.Event()

        async def late(call_next: Any) -> None:
            await returned.wait()
            try:
                await call_next()
            except Exception as error:
                errors.append(error)

        async def outer(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
            result: PromptAssembly = await call_next()
            returned.set()
            await until(lambda: errors)
            return result

        async def leaving(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
            group.start_soon(late, call_next)
            return assembly

        async def inner(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
            inner_calls.append(1)
            return await call_next()

        for listener in (outer, leaving, inner):
            prompt.on_assemble(listener)
        with anyio.fail_after(PATIENCE), pytest.raises(ListenerError) as caught:
            await prompt.assemble()
    assert caught.value.kind == "listener_error"
    assert "leaving" in caught.value.listener.name
    assert caught.value in errors
    assert inner_calls == []


async def test_calling_on_when_the_assembly_is_over_fails_the_caller() -> None:
    """The finished assembly stays what it was; whoever calls on afterwards gets the `listener_error`."""
    prompt = SystemPrompt()
    prompt.section("s", "text", order=1)
    kept: list[Any] = []
    inner_calls: list[int] = []

    async def keeping(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        kept.append(call_next)
        return assembly

    async def inner(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        inner_calls.append(1)
        assembly.sections.clear()
        return await call_next()

    prompt.on_assemble(keeping)
    prompt.on_assemble(inner)
    assembly = await prompt.assemble()
    with pytest.raises(ListenerError) as caught:
        await kept[0]()
    assert "keeping" in caught.value.listener.name
    assert [section.name for section in assembly.sections][-1] == "s"
    assert inner_calls == []


async def test_returning_while_the_call_on_still_runs_in_another_task_fails_the_assembly() -> None:
    """A listener that does not wait for the call that it made would leave those behind it at work on a finished assembly."""
    prompt = SystemPrompt()
    prompt.section("s", "text", order=1)
    inside, go_on = anyio.Event(), anyio.Event()
    errors: list[Exception] = []

    async with anyio.create_task_group() as group:

        async def call_on(call_next: Any) -> None:
            with suppress(ListenerError):
                await call_next()

        async def leaving(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
            group.start_soon(call_on, call_next)
            await inside.wait()
            return assembly

        async def inner(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
            inside.set()
            await go_on.wait()
            assembly.sections.clear()
            return await call_next()

        prompt.on_assemble(leaving)
        prompt.on_assemble(inner)
        with anyio.move_on_after(PATIENCE):
            try:
                await prompt.assemble()
            except ListenerError as error:
                errors.append(error)
        go_on.set()
    (error,) = errors
    assert isinstance(error, ListenerError)
    assert "leaving" in error.listener.name


async def test_calling_on_in_a_task_and_waiting_for_it_is_fine() -> None:
    """A listener may call on from a task of its own as long as it waits for the answer."""
    prompt = SystemPrompt()
    prompt.section("s", "text", order=1)

    async def grouping(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        results: list[PromptAssembly] = []

        async def call_on() -> None:
            results.append(await call_next())

        async with anyio.create_task_group() as group:
            group.start_soon(call_on)
        return results[0]

    prompt.on_assemble(grouping)
    assert (await prompt.render()).text == "text"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_calling_on_twice_at_once_is_a_second_call() -> None:
    """Two calls that run together are one too many, whichever comes first."""
    prompt = SystemPrompt()
    prompt.section("s", "text", order=1)

    async def doubling(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        async def call_on() -> PromptAssembly:
            return await call_next()

        first, _ = await asyncio.gather(call_on(), call_on())
        return first

    async def slow(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        await anyio.sleep(0.001)
        return await call_next()

    prompt.on_assemble(doubling)
    prompt.on_assemble(slow)
    with pytest.raises(ListenerError) as caught:
        await prompt.assemble()
    assert "second time" in str(caught.value)
