"""An assembly that is cancelled from outside: by a cancel scope, by asyncio itself, by the context's signal."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tests.concurrency.support import FAR, PATIENCE, Clinging, Hanging, living_tasks, until

from foreword import AssembleContext, AssemblyCancelledError, CancelToken, PromptAssembly, SystemPrompt

pytestmark = pytest.mark.anyio

only_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])
TIMEOUTS = [(None,), (FAR,), (None, None), (FAR, FAR), (None, FAR)]


def hanging_prompt(timeouts: tuple[float | None, ...]) -> tuple[SystemPrompt, list[Hanging]]:
    prompt = SystemPrompt()
    hanging = [Hanging() for _ in timeouts]
    for number, (provider, timeout) in enumerate(zip(hanging, timeouts, strict=True)):
        prompt.section(f"s{number}", provider, order=number, timeout=timeout, on_error="skip")
    return prompt, hanging


@pytest.mark.parametrize("timeouts", TIMEOUTS)
async def test_by_a_scope_while_providers_run(timeouts: tuple[float | None, ...]) -> None:
    """Every provider is cancelled before the scope is left, `skip` or not; no task is left, nothing is stuck."""
    prompt, hanging = hanging_prompt(timeouts)
    before = living_tasks()
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(prompt.assemble)
            for each in hanging:
                await each.asked.wait()
            group.cancel_scope.cancel()
    assert all(each.cancelled for each in hanging)
    assert living_tasks() == before
    assert prompt.stuck == ()


@pytest.mark.parametrize("timeouts", TIMEOUTS)
async def test_by_a_deadline(timeouts: tuple[float | None, ...]) -> None:
    """A caller's own deadline is told as the caller's, not as a provider's failure."""
    prompt, hanging = hanging_prompt(timeouts)
    with pytest.raises(TimeoutError) as caught, anyio.fail_after(0.02):
        await prompt.assemble()
    assert type(caught.value) is TimeoutError
    assert all(each.cancelled for each in hanging)


@pytest.mark.parametrize("turns", range(8))
async def test_by_a_scope_at_any_turn(turns: int) -> None:
    """Cancelled before, while and after its providers begin, an assembly leaves no task and nothing stuck."""
    prompt, _ = hanging_prompt((None, FAR, FAR))
    before = living_tasks()
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(prompt.assemble)
            for _ in range(turns):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    await until(lambda: living_tasks() == before)
    assert prompt.stuck == ()


@only_asyncio
@pytest.mark.parametrize("turns", range(8))
@pytest.mark.parametrize("timeouts", TIMEOUTS)
async def test_natively_at_any_turn(timeouts: tuple[float | None, ...], turns: int) -> None:
    """asyncio's own cancellation does the same; the task ends as cancelled."""
    prompt, _ = hanging_prompt(timeouts)
    before = living_tasks()
    task = asyncio.create_task(prompt.assemble())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, PATIENCE)
    assert task.cancelled()
    await until(lambda: living_tasks() == before)
    assert prompt.stuck == ()


@only_asyncio
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")  # by anyio, of a task without a first step
@pytest.mark.parametrize("turns", range(8))
async def test_all_tasks_at_any_turn(turns: int) -> None:
    """As when a loop is shut down: every task is cancelled at once, those of the providers too; nothing stays stuck."""
    prompt, _ = hanging_prompt((None, FAR, FAR))
    ours = asyncio.all_tasks()
    task = asyncio.create_task(prompt.assemble())
    for _ in range(turns):
        await asyncio.sleep(0)
    for each in asyncio.all_tasks() - ours:
        each.cancel()
    start = time.perf_counter()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, PATIENCE)
    assert time.perf_counter() - start < 2
    await until(lambda: asyncio.all_tasks() <= ours)
    assert prompt.stuck == ()
    gc.collect()  # what warns of itself when it is dropped shall do so here


@only_asyncio
async def test_one_providers_task_alone() -> None:
    """Somebody who cancels the task of a provider cancels the assembly, as if it ran there."""
    prompt, hanging = hanging_prompt((FAR, None))
    tasks: list[asyncio.Task[Any] | None] = []

    async def telling() -> str:
        tasks.append(asyncio.current_task())
        await asyncio.sleep(FAR)
        return "never"

    prompt.section("tells", telling, order=9, timeout=FAR)
    assembling = asyncio.create_task(prompt.assemble())
    await until(lambda: tasks)
    assert tasks[0] is not None
    tasks[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(assembling, PATIENCE)
    assert all(each.cancelled for each in hanging)


@only_asyncio
@pytest.mark.parametrize("timeouts", TIMEOUTS)
async def test_asyncios_own_timeout_and_task_group(timeouts: tuple[float | None, ...]) -> None:
    """`asyncio.timeout` gives a TimeoutError and a failing task group its error: no cancellation is swallowed or doubled."""
    prompt, hanging = hanging_prompt(timeouts)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await prompt.assemble()
    assert all(each.cancelled for each in hanging)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0

    prompt, hanging = hanging_prompt(timeouts)

    async def failing() -> None:
        for each in hanging:
            await each.asked.wait()
        raise LookupError("boom")

    async def together() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(prompt.assemble())
            group.create_task(failing())

    with pytest.raises(ExceptionGroup) as caught:
        await together()
    (error,) = caught.value.exceptions
    assert isinstance(error, LookupError)
    assert all(each.cancelled for each in hanging)


async def test_a_clinging_provider_delays_the_cancellation_by_its_grace_only() -> None:
    """A cancelled assembly leaves a provider that will not go, lists it, and ends."""
    prompt = SystemPrompt()
    clinging = Clinging()
    prompt.section("clings", clinging, order=1, timeout=FAR)
    start = time.perf_counter()
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(prompt.assemble)
            await clinging.asked.wait()
            group.cancel_scope.cancel()
    assert time.perf_counter() - start < 2
    assert [ref.name for ref in prompt.stuck] == ["clings"]
    clinging.released.set()
    await until(lambda: not prompt.stuck)


@only_asyncio
async def test_cancelled_again_while_it_waits_for_a_clinging_provider() -> None:
    """Impatience changes nothing: what is left running is listed all the same."""
    prompt = SystemPrompt()
    clinging = Clinging()
    prompt.section("clings", clinging, order=1, timeout=FAR)
    ours = asyncio.all_tasks()
    task = asyncio.create_task(prompt.assemble())
    await clinging.asked.wait()
    with anyio.fail_after(PATIENCE):
        while not task.done():
            for each in asyncio.all_tasks() - ours:
                each.cancel()
            await asyncio.sleep(0)
    assert task.cancelled()
    assert [ref.name for ref in prompt.stuck] == ["clings"]
    clinging.released.set()
    await until(lambda: not prompt.stuck)


@only_asyncio
async def test_an_assembly_that_is_never_begun_or_closed_half_way() -> None:
    """Closing the coroutine of an assembly before its first step, or dropping it, does no harm."""
    prompt, hanging = hanging_prompt((None, FAR))
    coroutine = prompt.assemble()
    coroutine.close()
    assert not hanging[0].asked.is_set()


# -- the signal ----------------------------------------------------------------------------------------------------------


async def heard(prompt: SystemPrompt, signal: CancelToken) -> tuple[AssemblyCancelledError, list[str]]:
    """The error of a cancelled assembly, and who was called."""
    called: list[str] = []

    async def listener(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        called.append("listener")
        return await call_next()

    def sync_provider() -> str:
        called.append("provider")
        return "text"

    prompt.on_assemble(listener)
    prompt.section("sync", sync_provider, order=50)
    with anyio.fail_after(PATIENCE), pytest.raises(AssemblyCancelledError) as caught:
        await prompt.assemble(AssembleContext(signal=signal))
    return caught.value, called


async def test_a_signal_cancelled_before_asks_nobody() -> None:
    """The signal is looked at before the providers; the error tells the first reason."""
    signal = CancelToken()
    signal.cancel("the user left")
    signal.cancel("later")
    error, called = await heard(SystemPrompt(), signal)
    assert (error.kind, error.reason) == ("cancelled", "the user left")
    assert "the user left" in str(error)
    assert called == []


@pytest.mark.parametrize("timeout", [None, FAR])
async def test_a_signal_cancelled_by_another_thread_during_the_providers(timeout: float | None) -> None:
    """The providers end, then the signal is looked at: no listener is called, and no sibling is cancelled."""
    prompt, signal = SystemPrompt(), CancelToken()
    answered: list[str] = []

    async def slow() -> str:
        canceller = threading.Thread(target=signal.cancel, args=("another thread",))
        canceller.start()
        await until(lambda: signal.cancelled)
        canceller.join()
        answered.append("slow")
        return "text"

    prompt.section("slow", slow, order=1, timeout=timeout)
    error, called = await heard(prompt, signal)
    assert error.reason == "another thread"
    assert answered == ["slow"]
    assert called == ["provider"]


async def test_a_signal_cancelled_in_the_waterfall_comes_too_late() -> None:
    """The signal is looked at before the providers and before the waterfall, and not again."""
    prompt, signal = SystemPrompt(), CancelToken()

    async def listener(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        signal.cancel()
        return await call_next()

    prompt.on_assemble(listener)
    prompt.section("s", "text", order=1)
    assert (await prompt.render(AssembleContext(signal=signal))).text == "text"
