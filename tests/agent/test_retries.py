"""Retries: further attempts of one step, whose prompt was assembled once; and the stock policy that asks for them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.support import Sleeps, events_of, kinds, logged, said, stage

from foreword import (
    AGENT_PRE_STEP,
    AGENT_REQUEST,
    AGENT_REQUEST_ERROR,
    SYSTEM_PROMPT_ASSEMBLE,
    AttemptFailed,
    Retry,
    RetryPolicy,
    RetryScheduled,
    TextDelta,
)
from foreword.errors import ModelFailedError
from foreword.session import RequestAttempted, RequestEnded
from foreword.testing import Reply
from foreword.wire.chunks import ModelFailure
from foreword.wire.messages import UserMessage
from foreword.wire.request import ModelConfig

BUSY = ModelFailure("overloaded", "overloaded", 529, transient=True)
GONE = ModelFailure("no such model", "not_found", 404)

seconds = st.floats(0, 1e6)
shares = st.floats(0, 1, exclude_max=True)


@pytest.mark.anyio
async def test_one_step_however_many_attempts() -> None:
    """Providers and listeners of the assembly are asked once a step, agent/request once an attempt; one snapshot, one answer."""
    asked: list[str] = []
    async with stage(BUSY, Reply("Half of it", failure=BUSY), "Fine.") as play:

        def provider(name: str) -> Any:
            return lambda: asked.append(name) or name

        play.prompt.section("s", provider("section"), order=1)
        play.prompt.context("c", provider("context"), order=1)
        play.prompt.variable("v", provider("variable"))
        play.prompt.tools(lambda: asked.append("tools") or [])
        sleeps = Sleeps()
        agent = await play.agent(retry=RetryPolicy(random=lambda: 0.0), clock=sleeps.clock)

        def listen(event: Any, name: str) -> None:
            async def heard(*told: Any) -> Any:
                asked.append(name)
                return await told[-1]()

            agent.ctx.on(event, heard)

        listen(SYSTEM_PROMPT_ASSEMBLE, "assemble")
        listen(AGENT_PRE_STEP, "pre-step")
        listen(AGENT_REQUEST, "request")
        listen(AGENT_REQUEST_ERROR, "error")
        events = await events_of(agent.run("Hi"))
        assert sorted(asked[:4]) == ["context", "section", "tools", "variable"]
        assert asked[4:] == ["assemble", "pre-step", "request", "error", "request", "error", "request"]
        assert sleeps == [1.0, 2.0]
        assert [e.after for e in events if isinstance(e, RetryScheduled)] == [1.0, 2.0]
        assert [(e.attempt, e.text) for e in events if isinstance(e, TextDelta)] == [
            (2, "Half"), (2, " of"), (2, " it"), (3, "Fine.")
        ]  # fmt: skip
        assert len(said(agent)) == 2
        assert kinds(agent).count("StepStart") == kinds(agent).count("AssistantSaid") == 1
        assert [(e.attempt, e.finish) for e in logged(agent, RequestEnded)] == [(1, "error"), (2, "error"), (3, "stop")]
        assert len(set(play.model.requests)) == 1
        assert len({e.request for e in logged(agent, RequestAttempted)}) == 1


@pytest.mark.anyio
async def test_it_gives_up() -> None:
    """After as many retries as the policy allows the turn fails with what the provider said last."""
    async with stage(lambda request: BUSY) as play:
        sleeps = Sleeps()
        agent = await play.agent(retry=RetryPolicy(retries=2), clock=sleeps.clock)
        with pytest.raises(ModelFailedError, match="may succeed later"):
            await agent.run("Hi")
        assert len(play.model.requests) == 3
        assert len(sleeps) == 2


@pytest.mark.anyio
async def test_what_would_fail_again_is_not_tried_again() -> None:
    """A failure that is not transient ends the turn at once."""
    async with stage(GONE) as play:
        agent = await play.agent()
        with pytest.raises(ModelFailedError):
            await agent.run("Hi")
        assert len(play.model.requests) == 1


@pytest.mark.anyio
async def test_a_listener_decides() -> None:
    """It may have tried again what the policy would not, shorten the history first, and route the attempt elsewhere."""
    async with stage("One.", ModelFailure("too long", "invalid_request"), "Two.") as play:
        agent = await play.agent()
        await agent.run("A very long story")
        elsewhere: list[ModelConfig] = []

        async def shorten(failed: AttemptFailed, call_next: Any) -> Retry:
            assert await call_next() is None
            assert (failed.attempt, failed.failure.code) == (1, "invalid_request")
            failed.agent.session.replace_history(0, 1, UserMessage("In short."))
            elsewhere.append(ModelConfig("scripted", "m2"))
            return Retry()

        async def route(proposed: Any, call_next: Any) -> ModelConfig:
            return elsewhere[0] if elsewhere else await call_next()

        agent.ctx.on(AGENT_REQUEST_ERROR, shorten)
        agent.ctx.on(AGENT_REQUEST, route)
        assert (await agent.run("And?")).text == "Two."
        last = json.loads(play.model.requests[-1])
        assert [each["content"] for each in last["messages"]] == ["In short.", "And?"]
        assert last["config"]["model"] == "m2"


@given(st.integers(0, 5), seconds, seconds, seconds, shares, st.integers(1, 10_000), st.none() | seconds, st.booleans())
def test_the_stock_policy(
    retries: int,
    first: float,
    longest: float,
    patience: float,
    share: float,
    attempt: int,
    asked: float | None,
    transient: bool,
) -> None:
    """It tries again what is transient, so often; it waits as long as it is asked to, else ever longer within its bounds."""
    policy = RetryPolicy(retries, first, longest, patience, lambda: share)
    retry = policy.decide(attempt, ModelFailure("", "overloaded", transient=transient, retry_after=asked))
    if not transient or attempt > retries or (asked or 0) > patience:
        assert retry is None
        return
    assert retry is not None
    backoff = min(first * 2 ** (attempt - 1), longest)
    assert max(backoff / 2, asked or 0) <= retry.after <= max(backoff, asked or 0)


@pytest.mark.parametrize("field", ["retries", "first", "longest", "patience"])
@pytest.mark.parametrize("value", [-1, float("inf"), float("nan")])
def test_a_policy_of_odd_numbers(field: str, value: float) -> None:
    """Negative and endless ones are refused, by name."""
    with pytest.raises(ValueError, match=f"{field} of a RetryPolicy"):
        RetryPolicy(**{field: value})
