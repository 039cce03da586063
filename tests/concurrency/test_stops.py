"""Exits and cancellations that a provider raises: nobody's failure, they stop the siblings and stay what they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from tests.concurrency.support import FAR, PATIENCE, Clinging, Hanging, living_tasks, until

from foreword import AssembleContext, PromptAssembly, SystemPrompt

pytestmark = pytest.mark.anyio


class Stop(BaseException):
    """Somebody's own exit, like those of frameworks."""


STOPS = [KeyboardInterrupt, SystemExit, asyncio.CancelledError, Stop]
EXITS = [KeyboardInterrupt, SystemExit, Stop]
KINDS = ["variable", "tools", "section", "context"]


def register(prompt: SystemPrompt, kind: str, provider: Any, **options: Any) -> None:
    if kind == "variable":
        prompt.variable("v", provider, **options)
    elif kind == "tools":
        prompt.tools(provider, **options)
    elif kind == "section":
        prompt.section("s", provider, order=1, **options)
    else:
        prompt.context("c", provider, order=1, **options)


async def stop_of(prompt: SystemPrompt) -> BaseException:
    """What an assembly raises."""
    try:
        with anyio.fail_after(PATIENCE):
            await prompt.assemble()
    except BaseException as error:
        return error
    raise AssertionError("the assembly was made")


def raising(stop: BaseException, after: Callable[[], anyio.Event] | None = None) -> Any:
    async def provider() -> str:
        if after is not None:
            await after().wait()
        raise stop

    return provider


@pytest.mark.parametrize("on_error", ["fail", "skip"])
@pytest.mark.parametrize("timeout", [None, FAR])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stop", STOPS)
async def test_alone(stop: type[BaseException], kind: str, timeout: float | None, on_error: str) -> None:
    """The very exception comes out of the assembly, whatever `on_error` says, and no task is left."""
    prompt = SystemPrompt()
    raised = stop("now")
    register(prompt, kind, raising(raised), timeout=timeout, on_error=on_error)
    before = living_tasks()
    assert await stop_of(prompt) is raised
    assert living_tasks() == before
    assert prompt.stuck == ()


@pytest.mark.parametrize("timeout", [None, FAR])
@pytest.mark.parametrize("stop", STOPS)
async def test_among_siblings(stop: type[BaseException], timeout: float | None) -> None:
    """Siblings with and without a timeout are cancelled; the exception stays what it is, in no group."""
    prompt = SystemPrompt()
    raised = stop("now")
    hanging = [Hanging() for _ in range(4)]
    prompt.variable("v", hanging[0])
    prompt.tools(hanging[1], timeout=FAR)
    prompt.section("stops", raising(raised, lambda: hanging[3].asked), order=1, timeout=timeout)
    prompt.section("hangs", hanging[2], order=2, timeout=FAR)
    prompt.context("hangs", hanging[3], order=1)
    before = living_tasks()
    assert await stop_of(prompt) is raised
    assert [each.cancelled for each in hanging] == [True] * 4
    assert living_tasks() == before
    assert prompt.stuck == ()


@pytest.mark.parametrize("timeout", [None, FAR])
@pytest.mark.parametrize("stop", EXITS)
async def test_in_the_first_step(stop: type[BaseException], timeout: float | None) -> None:
    """Raised before the siblings have begun, it still stops them all."""
    prompt = SystemPrompt()
    raised = stop("now")
    prompt.variable("v", raising(raised), timeout=timeout)
    prompt.section("hangs", Hanging(), order=1, timeout=FAR)
    prompt.context("hangs", Hanging(), order=1)
    before = living_tasks()
    assert await stop_of(prompt) is raised
    await until(lambda: living_tasks() == before)
    assert prompt.stuck == ()


@pytest.mark.parametrize("stop", EXITS)
async def test_a_sibling_that_clings_is_left_and_listed(stop: type[BaseException]) -> None:
    """An exit does not wait for a provider that has a timeout and will not go."""
    prompt = SystemPrompt()
    raised = stop("now")
    clinging = Clinging()
    prompt.section("clings", clinging, order=1, timeout=FAR)
    prompt.section("stops", raising(raised, lambda: clinging.asked), order=2)
    assert await stop_of(prompt) is raised
    assert [ref.name for ref in prompt.stuck] == ["clings"]
    clinging.released.set()
    await until(lambda: not prompt.stuck)


async def test_a_failing_sibling_does_not_hide_an_exit() -> None:
    """Neither an error before it nor one raised on being cancelled; nor what a task group makes of the latter."""
    prompt = SystemPrompt()
    raised = KeyboardInterrupt("now")

    async def failing() -> str:
        raise LookupError("before")

    async def failing_when_cancelled() -> str:
        try:
            await anyio.sleep(FAR)
        finally:
            raise LookupError("in clean-up")

    async def failing_in_a_group() -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(failing_when_cancelled)
            group.start_soon(anyio.sleep, FAR)
        return "never"

    hanging = Hanging()
    for number, timeout in enumerate((None, FAR)):
        prompt.variable(f"failing{number}", failing, timeout=timeout)
        prompt.variable(f"cancelled{number}", failing_when_cancelled, timeout=timeout)
        prompt.variable(f"group{number}", failing_in_a_group, timeout=timeout)
    prompt.section("hangs", hanging, order=1)
    prompt.section("stops", raising(raised, lambda: hanging.asked), order=2)
    before = living_tasks()
    assert await stop_of(prompt) is raised
    assert living_tasks() == before


@pytest.mark.parametrize("outer", ["timeout", "assembly"])
@pytest.mark.parametrize("stop", EXITS)
async def test_an_exit_on_being_cancelled_is_not_lost(stop: type[BaseException], outer: str) -> None:
    """A provider that exits in its clean-up ends the assembly with that, whoever cancelled it."""
    prompt = SystemPrompt()
    raised = stop("in clean-up")

    async def exiting() -> str:
        try:
            await anyio.sleep(FAR)
        finally:
            raise raised
        return "never"

    prompt.section("exits", exiting, order=1, timeout=0.02 if outer == "timeout" else FAR)
    prompt.section("hangs", Hanging(), order=2)
    caught: BaseException | None = None
    with anyio.fail_after(PATIENCE), anyio.CancelScope() as scope:
        if outer == "assembly":
            scope.deadline = anyio.current_time() + 0.02
        try:
            await prompt.assemble()
        except BaseException as error:
            caught = error
    assert caught is raised


@pytest.mark.parametrize("stop", EXITS)
async def test_from_a_sync_provider(stop: type[BaseException]) -> None:
    """A sync provider's exit comes out as itself, of both doors, and no async provider is asked any more."""
    prompt = SystemPrompt()
    raised = stop("now")

    def stopping() -> str:
        raise raised

    prompt.section("stops", stopping, order=1, on_error="skip")
    with pytest.raises(stop) as caught:
        prompt.render_sync()
    assert caught.value is raised
    hanging = Hanging()
    prompt.section("hangs", hanging, order=0)
    assert await stop_of(prompt) is raised
    assert not hanging.asked.is_set()


@pytest.mark.parametrize("stop", EXITS)
async def test_from_a_condition_and_from_a_listener(stop: type[BaseException]) -> None:
    """Exits of `when` and of listeners are no failures either."""
    prompt = SystemPrompt()
    raised = stop("now")

    def condition(context: AssembleContext) -> bool:
        raise raised

    async def listener(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        raise raised

    with prompt.section("s", "text", order=1, when=condition, on_error="skip"):
        assert await stop_of(prompt) is raised
    prompt.on_assemble(listener)
    assert await stop_of(prompt) is raised
