"""Providers with a ``timeout`` that hang, cling, shield, block the loop or come late: what becomes of the assembly."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.concurrency.support import FAR, PATIENCE, Clinging, Hanging, living_tasks, until

from foreword import (
    EntryRef,
    Placeholder,
    ProviderFailedError,
    ProviderFailure,
    ProviderTimeoutError,
    SystemPrompt,
    ToolProviderResult,
    ToolSchema,
)

pytestmark = pytest.mark.anyio

TIMEOUT = 0.05
BOUND = TIMEOUT + 0.1
SLACK = 2.0  # for a loaded machine; far from what anybody here hangs for

KINDS = ["variable", "tool provider", "section", "context"]
only_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])
only_trio = pytest.mark.parametrize("anyio_backend", ["trio"])


def register(prompt: SystemPrompt, kind: str, name: str, provider: Any, **options: Any) -> None:
    """Register a provider as one of the four kinds."""
    if kind == "variable":
        prompt.variable(name, provider, **options)
    elif kind == "tool provider":

        async def tools() -> Any:
            return await provider()

        tools.__qualname__ = name
        prompt.tools(tools, **options)
    elif kind == "section":
        prompt.section(name, provider, order=1, **options)
    else:
        prompt.context(name, provider, order=1, **options)


def answering(kind: str, text: str) -> Any:
    """What a provider of a kind answers."""
    return ToolProviderResult([ToolSchema(text, "", {})]) if kind == "tool provider" else text


async def failures_of(prompt: SystemPrompt) -> tuple[ProviderFailure, ...]:
    """The failures of an assembly that must fail, and within its time."""
    with anyio.fail_after(PATIENCE), pytest.raises(ProviderFailedError) as caught:
        await prompt.assemble()
    return caught.value.failures


def named(refs: tuple[EntryRef, ...]) -> list[tuple[str, str]]:
    return [(ref.kind, ref.name) for ref in refs]


# -- one that hangs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
async def test_a_hanging_provider_is_cancelled_and_named(kind: str) -> None:
    """The assembly fails at the timeout, says who, how long and what to do; the provider is gone, nothing is stuck."""
    prompt = SystemPrompt()
    hanging = Hanging()

    register(prompt.owner("acme"), kind, "slow", hanging, timeout=TIMEOUT)
    before = living_tasks()
    start = time.perf_counter()
    with pytest.raises(ProviderFailedError) as caught:
        await prompt.assemble()
    assert TIMEOUT <= time.perf_counter() - start < BOUND + SLACK
    (failure,) = caught.value.failures
    assert (failure.kind, failure.error, failure.entry.kind) == ("timeout", "ProviderTimeoutError", kind)
    assert failure.entry.owner == "acme"
    for told in ("slow", "acme", "0.05 s", "cancelled", 'on_error="skip"'):
        assert told in str(caught.value)
    cause = caught.value.__cause__
    assert isinstance(cause, ProviderTimeoutError)
    assert cause.timeout == TIMEOUT
    assert str(pickle.loads(pickle.dumps(cause))) == str(cause)
    assert hanging.cancelled
    assert prompt.stuck == ()
    assert living_tasks() == before


async def test_each_provider_has_its_own_time() -> None:
    """One with a long timeout, or none, is waited for though another has run out of its own."""
    prompt = SystemPrompt()
    hanging = Hanging()
    prompt.section("slow", hanging, order=1, timeout=TIMEOUT, on_error="skip")

    async def patient() -> str:
        await until(lambda: hanging.cancelled)
        return "here"

    prompt.section("patient", patient, order=2, timeout=FAR)
    prompt.section("without", patient, order=3)
    with anyio.fail_after(PATIENCE):
        assert (await prompt.render()).text == "here\n\nhere"


async def test_an_answer_in_time_counts() -> None:
    """A timeout that does not run out changes nothing, and costs no task in the end."""
    prompt = SystemPrompt()
    before = living_tasks()

    async def quick() -> str:
        await anyio.sleep(0.001)
        return "text"

    prompt.section("quick", quick, order=1, timeout=FAR)
    assert (await prompt.render()).text == "text"
    assert living_tasks() == before


async def test_a_failure_in_time_is_the_providers_own() -> None:
    """An exception before the timeout is told as itself, with its type, and is the cause."""
    prompt = SystemPrompt()
    error = LookupError("boom")

    async def failing() -> str:
        raise error

    prompt.section("failing", failing, order=1, timeout=FAR)
    with pytest.raises(ProviderFailedError) as caught:
        await prompt.assemble()
    (failure,) = caught.value.failures
    assert (failure.kind, failure.error, failure.message) == ("provider_failed", "LookupError", "boom")
    assert caught.value.__cause__ is error


# -- on_error ------------------------------------------------------------------------------------------------------------


async def test_skip_and_placeholder_keep_what_the_siblings_answered() -> None:
    """Every kind can be skipped, a placeholder stands in verbatim, and the trace says why."""
    prompt = SystemPrompt()
    prompt.variable("lost", Hanging(), timeout=TIMEOUT, on_error=Placeholder("{{?}}"))
    prompt.variable("none", Hanging(), timeout=TIMEOUT, on_error="skip")
    prompt.tools(Hanging(), timeout=TIMEOUT, on_error="skip")
    prompt.section("gone", Hanging(), order=1, timeout=TIMEOUT, on_error="skip")
    prompt.section("patched", Hanging(), order=2, timeout=TIMEOUT, on_error=Placeholder("no {{lost}}"))
    prompt.context("gone", Hanging(), order=1, timeout=TIMEOUT, on_error="skip")
    prompt.context("patched", Hanging(), order=2, timeout=TIMEOUT, on_error=Placeholder("no git"))

    async def here() -> str:
        return "here {{lost}}"

    async def tools() -> ToolProviderResult:
        return ToolProviderResult([ToolSchema("bash", "", {})])

    prompt.section("here", here, order=3)
    prompt.section("here too", here, order=4, timeout=FAR)
    prompt.tools(tools)
    start = time.perf_counter()
    rendering = await prompt.render()
    assert time.perf_counter() - start < BOUND + SLACK
    assert rendering.text == "no {{lost}}\n\nhere {{?}}\n\nhere {{?}}"
    assert rendering.snapshot.endswith("\n\nno git")
    assert [tool.name for tool in rendering.tools] == ["bash"]
    assert (await prompt.assemble()).variables == {"lost": "{{?}}", "none": None}
    for kind, name in (("section", "gone"), ("context", "gone"), ("variable", "none")):
        (event,) = [each for each in rendering.trace.about(name) if (each.stage, each.kind) == ("collect", kind)]
        assert event.action == "left_out"
        assert event.reason is not None
        assert event.reason.startswith("skipped: ProviderTimeoutError: no answer within its timeout of 0.05 s")


async def test_a_protected_and_a_complete_section_fail_even_if_told_to_skip() -> None:
    """What must be in the prompt is not left out for being slow."""
    for complete in (False, True):
        prompt = SystemPrompt()
        prompt.section("must", Hanging(), order=1, complete=complete, timeout=TIMEOUT, on_error="skip")
        if not complete:
            prompt.protect(sections=["must"])
        (failure,) = await failures_of(prompt)
        assert (failure.entry.name, failure.kind) == ("must", "timeout")


# -- one that does not go ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
async def test_a_clinging_provider_is_left_and_listed_until_it_ends(kind: str) -> None:
    """The assembly returns 100 ms past the timeout; `stuck` names exactly what was left, and nothing once it ended."""
    prompt = SystemPrompt()
    clinging, hanging = Clinging(), Hanging()
    register(prompt.scope("agent"), kind, "stays", clinging, timeout=TIMEOUT)  # not in the global layer
    register(prompt, kind, "clings", clinging, timeout=TIMEOUT)
    register(prompt, "section", "goes", hanging, timeout=TIMEOUT)
    before = living_tasks()
    start = time.perf_counter()
    with pytest.raises(ProviderFailedError) as caught:
        await prompt.assemble()
    assert TIMEOUT <= time.perf_counter() - start < BOUND + SLACK
    assert [failure.kind for failure in caught.value.failures] == ["timeout", "timeout"]
    assert "left running" in str(caught.value)
    (ref,) = prompt.stuck
    assert ref == next(each.entry for each in caught.value.failures if "left running" in each.message)
    assert (ref.kind, ref.scope) == (kind, None)
    assert living_tasks() == before + 1
    clinging.released.set()
    await until(lambda: not prompt.stuck)
    await until(lambda: living_tasks() == before)


async def test_several_left_running_are_all_listed_and_go_one_by_one() -> None:
    """`stuck` holds one entry for each provider left running, also when one provider is left twice."""
    prompt = SystemPrompt()
    clinging = [Clinging() for _ in range(3)]
    for number, each in enumerate(clinging):
        prompt.section(f"s{number}", each, order=number, timeout=TIMEOUT, on_error="skip")
    await prompt.assemble()
    await prompt.assemble()
    assert sorted(named(prompt.stuck)) == sorted([("section", f"s{number}") for number in range(3)] * 2)
    for number, each in enumerate(clinging):
        each.released.set()
        await until(lambda left=2 - number: len(prompt.stuck) == 2 * left)
    assert prompt.stuck == ()


async def test_one_that_is_left_running_holds_up_no_later_assembly() -> None:
    """With a provider stuck, others are assembled as ever, and it is asked anew."""
    prompt = SystemPrompt()
    clinging = Clinging()
    asked: list[int] = []

    async def first_stuck_then_fine() -> str:
        asked.append(1)
        return await clinging() if len(asked) == 1 else "fine"

    prompt.section("s", first_stuck_then_fine, order=1, timeout=TIMEOUT, on_error="skip")
    assert (await prompt.render()).text == ""
    assert (await prompt.render()).text == "fine"
    assert named(prompt.stuck) == [("section", "s")]
    clinging.released.set()
    await until(lambda: not prompt.stuck)


@pytest.mark.parametrize("ending", ["answer", "error"])
async def test_what_one_left_running_says_later_changes_nothing(ending: str) -> None:
    """An answer or an error after the timeout, while siblings still run, does not turn up in place of the timeout."""
    prompt = SystemPrompt()

    async def end() -> str:
        if ending == "error":
            raise LookupError("too late to be told")
        return "too late"

    clinging = Clinging(end)

    async def sees_it_end() -> str:
        await until(lambda: prompt.stuck)
        clinging.released.set()
        await until(lambda: not prompt.stuck)
        await anyio.sleep(0.01)
        return "saw it end"

    prompt.section("clings", clinging, order=1, timeout=TIMEOUT)
    prompt.section("witness", sees_it_end, order=2)
    (failure,) = await failures_of(prompt)
    assert (failure.entry.name, failure.kind) == ("clings", "timeout")


async def test_an_answer_given_on_being_cancelled_does_not_count() -> None:
    """A provider that catches its cancellation and answers is late all the same; nothing is stuck."""
    prompt = SystemPrompt()

    async def stubborn() -> str:
        try:
            await anyio.sleep(FAR)
        except anyio.get_cancelled_exc_class():
            return "a late answer"
        return "never"

    prompt.section("stubborn", stubborn, order=1, timeout=TIMEOUT)
    (failure,) = await failures_of(prompt)
    assert failure.kind == "timeout"
    assert prompt.stuck == ()


async def test_an_error_raised_on_being_cancelled_does_not_hide_the_timeout() -> None:
    """A provider whose clean-up fails is told as late."""
    prompt = SystemPrompt()

    async def failing() -> str:
        try:
            await anyio.sleep(FAR)
        finally:
            raise LookupError("in clean-up")

    prompt.section("failing", failing, order=1, timeout=TIMEOUT)
    (failure,) = await failures_of(prompt)
    assert failure.kind == "timeout"


async def test_a_failing_clean_up_in_the_providers_own_task_group_does_not_hide_the_timeout() -> None:
    """What a task group makes of a cancellation and an error together is no exit: the provider is late."""
    prompt = SystemPrompt()

    async def child() -> None:
        try:
            await anyio.sleep(FAR)
        finally:
            raise LookupError("in clean-up")

    async def failing() -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(child)
            group.start_soon(anyio.sleep, FAR)
        return "never"

    prompt.section("failing", failing, order=1, timeout=TIMEOUT)
    prompt.section("too", Hanging(), order=2, timeout=TIMEOUT)
    assert [failure.kind for failure in await failures_of(prompt)] == ["timeout", "timeout"]


async def test_a_short_clean_up_is_waited_for() -> None:
    """A provider that needs a moment to go is not stuck, and has gone when the assembly returns."""
    prompt = SystemPrompt()
    cleaned: list[bool] = []

    async def tidy() -> str:
        try:
            await anyio.sleep(FAR)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.005)
            cleaned.append(True)
        return "never"

    prompt.section("tidy", tidy, order=1, timeout=TIMEOUT, on_error="skip")
    await prompt.assemble()
    assert cleaned == [True]
    assert prompt.stuck == ()


@only_asyncio
async def test_a_provider_behind_asyncio_shield_goes_and_what_it_shields_stays() -> None:
    """Shielded work is the provider's own; the provider itself goes, so nothing is stuck."""
    prompt = SystemPrompt()
    finish = asyncio.Event()

    async def work() -> str:
        await finish.wait()
        return "done"

    inner = asyncio.ensure_future(work())

    async def shielding() -> str:
        return await asyncio.shield(inner)

    prompt.section("shielding", shielding, order=1, timeout=TIMEOUT)
    (failure,) = await failures_of(prompt)
    assert failure.kind == "timeout"
    assert prompt.stuck == ()
    assert not inner.done()
    finish.set()
    assert await inner == "done"


# -- one that blocks the event loop --------------------------------------------------------------------------------------


@pytest.mark.parametrize("then_awaits", [False, True])
async def test_a_provider_that_blocks_the_loop_is_named_when_it_returns(then_awaits: bool) -> None:
    """Nothing can interrupt it, so the assembly takes as long as it does; the error says that the loop was blocked."""
    prompt = SystemPrompt()

    async def blocking() -> str:
        time.sleep(0.3)  # noqa: ASYNC251 - that is the fault
        if then_awaits:
            await anyio.sleep(FAR)
        return "at last"

    prompt.section("blocking", blocking, order=1, timeout=TIMEOUT)
    start = time.perf_counter()
    (failure,) = await failures_of(prompt)
    assert time.perf_counter() - start < 0.3 + 0.1 + SLACK
    assert (failure.entry.name, failure.kind) == ("blocking", "timeout")
    assert "blocked the event loop" in failure.message
    assert prompt.stuck == ()


async def test_siblings_of_one_that_blocks_are_kept() -> None:
    """Those without a timeout, or with time left, answer as if nothing had been."""
    prompt = SystemPrompt()

    async def blocking() -> str:
        time.sleep(0.15)  # noqa: ASYNC251
        return "at last"

    async def calm() -> str:
        await anyio.sleep(0.001)
        return "calm"

    prompt.section("first", calm, order=0)
    prompt.section("blocking", blocking, order=1, timeout=TIMEOUT, on_error="skip")
    prompt.section("last", calm, order=2, timeout=FAR)
    assert (await prompt.render()).text == "calm\n\ncalm"


# -- the set and order of errors -----------------------------------------------------------------------------------------

SEVEN = [
    ("variable", "b"), ("variable", "a"), ("tool provider", "late"), ("tool provider", "tools"),
    ("section", "b"), ("section", "a"), ("context", "c"),
]  # fmt: skip


def seven(arrival: list[int], ending: Callable[[int], Any], timeout: float | None) -> SystemPrompt:
    """Seven providers, in fixed order, that end in another order: each waits for the one before it."""
    prompt = SystemPrompt()
    ended = {number: anyio.Event() for number in arrival}

    def provider(number: int) -> Any:
        at = arrival.index(number)

        async def wait_for_turn() -> Any:
            if at:
                await ended[arrival[at - 1]].wait()
            ended[number].set()
            return ending(number)

        return wait_for_turn

    for number in sorted(range(len(SEVEN)), key=lambda each: SEVEN[each][0] == "section"):  # not in fixed order
        kind, name = SEVEN[number]
        if kind == "section":
            prompt.section(name, provider(number), order=number, timeout=timeout)
        else:
            register(prompt, kind, name, provider(number), timeout=timeout)
    return prompt


@given(arrival=st.permutations(range(len(SEVEN))), failing=st.sets(st.sampled_from(range(len(SEVEN))), min_size=1))
@pytest.mark.parametrize("timeout", [None, FAR])
async def test_failures_stand_in_fixed_order_whoever_fails_first(
    arrival: list[int], failing: set[int], timeout: float | None
) -> None:
    """Variables, tools, sections, contexts, each in its own order, and all of them: a failure cancels no sibling."""

    def ending(number: int) -> Any:
        if number in failing:
            raise LookupError(f"failure {number}")
        return answering(SEVEN[number][0], "text")

    failures = await failures_of(seven(arrival, ending, timeout))
    assert [failure.message for failure in failures] == [f"failure {number}" for number in sorted(failing)]
    assert named(tuple(failure.entry for failure in failures)) == [SEVEN[number] for number in sorted(failing)]


@pytest.mark.slow
async def test_late_failing_and_blocking_providers_are_told_together_in_fixed_order() -> None:
    """Timeouts of all sorts and errors stand beside each other in one error, in the same order in every run."""
    told = set()
    for _ in range(5):
        prompt = SystemPrompt()
        clinging = Clinging()

        async def blocking() -> str:
            time.sleep(2 * TIMEOUT)  # noqa: ASYNC251
            return "at last"

        async def failing() -> str:
            raise LookupError("boom")

        prompt.context("hangs", Hanging(), order=1, timeout=TIMEOUT)
        prompt.section("fails", failing, order=4)
        prompt.section("clings", clinging, order=3, timeout=2 * TIMEOUT)
        prompt.section("hangs", Hanging(), order=2, timeout=TIMEOUT)
        prompt.section("fine", "fine", order=1)
        register(prompt, "tool provider", "clings", clinging, timeout=TIMEOUT)
        prompt.variable("blocks", blocking, timeout=TIMEOUT)
        failures = await failures_of(prompt)
        told.add(tuple((failure.entry.kind, failure.entry.name, failure.kind) for failure in failures))
        assert sorted(named(prompt.stuck)) == [("section", "clings"), ("tool provider", "clings")]
        clinging.released.set()
        await until(lambda: not prompt.stuck)  # noqa: B023
    (once,) = told
    assert [(kind, failed) for kind, _, failed in once] == [
        ("variable", "timeout"),
        ("tool provider", "timeout"),
        ("section", "timeout"),
        ("section", "timeout"),
        ("section", "provider_failed"),
        ("context", "timeout"),
    ]
    assert [name for kind, name, _ in once if kind == "section"] == ["hangs", "clings", "fails"]
