"""A session's cache: step by step, predicted and actual, and the owners ranked by what they lost."""

from __future__ import annotations

import pytest
from tests.explain.support import OPENAI, Clock, Script, a_log

from foreword import Rendering, SystemPrompt
from foreword.explain import Break, SessionCache, session_cache, tokenizer_named
from foreword.wire.chunks import Usage
from foreword.wire.messages import UserMessage
from foreword.wire.request import ModelConfig

LONG = "Many words follow one another here. " * 400


def rendering(today: str = "29", rules: str = LONG, now: str = "ten", head: str = "") -> Rendering:
    prompt = SystemPrompt(persona=f"You are a clerk. {head}")
    prompt.owner("clock").variable("today", today)
    prompt.owner("acme").section("acme:date", "It is the {{today}}th.", order=10)
    prompt.owner("legal").section("legal:rules", rules, order=20)
    prompt.owner("clock").context("now", f"It is {now}.", order=1)
    return prompt.render_sync()


async def told(*steps: Rendering, config: ModelConfig = OPENAI, usage: Usage | None = None) -> SessionCache:
    async with a_log(clock := Clock()) as log:
        script = Script(await log.create("s"), clock)
        for number, each in enumerate(steps):
            script.step(each, f"Question {number}.", config=config, usage=usage)
        await script.session.flush()
        return await session_cache(log, "s", tokenizer=tokenizer_named("o200k_base"))


@pytest.mark.anyio
async def test_a_session_that_only_grows_loses_nothing() -> None:
    """Also with contexts that change: they are appended, and no prefix breaks."""
    cache = await told(*(rendering(now=hour) for hour in ("ten", "eleven", "noon", "noon")))
    assert [step.verdict for step in cache.steps] == ["first", "kept", "kept", "kept"]
    assert (cache.lost, cache.cost, cache.owners) == (0, 0, ())
    assert cache.predicted_share > 0.7
    assert all(step.predicted_share > 0.9 for step in cache.steps[1:])


@pytest.mark.anyio
async def test_owners_are_ranked_by_what_they_lost() -> None:
    """Each break counts for its owner, with the money; who lost most comes first."""
    cache = await told(
        rendering(),
        rendering("30"),
        rendering("30", rules=f"{LONG}At last."),
        rendering("31", rules=f"{LONG}At last."),
    )
    assert [step.verdict for step in cache.steps] == ["first", "broken", "broken", "broken"]
    assert [(loss.owner, loss.steps, loss.cause) for loss in cache.owners] == [
        ("clock", 2, "variable {{today}}"),
        ("legal", 1, "section legal:rules"),
    ]
    assert cache.owners[0].tokens > 5_000
    assert cache.lost == sum(loss.tokens for loss in cache.owners) == sum(step.lost for step in cache.steps)
    assert cache.cost == pytest.approx(cache.lost * (1.75 - 0.175) / 1_000_000)
    assert cache.steps[1].broken_by is not None
    assert cache.steps[1].broken_by.at == len("It is the ")


@pytest.mark.anyio
async def test_what_the_provider_says_stands_beside_it() -> None:
    """Where usage was logged its share is told, and a miss that is not ours is marked."""
    cache = await told(rendering(), rendering(), usage=Usage(3_000, 10, 1_500))
    assert [step.actual_share for step in cache.steps] == [0.5, 0.5]
    assert cache.actual_share == 0.5
    missed = await told(rendering(), rendering(), usage=Usage(3_000, 10, 0))
    assert [step.is_unexplained for step in missed.steps] == [False, True]
    silent = await told(rendering(), rendering())
    assert (silent.actual_share, silent.steps[0].actual_share) == (None, None)


@pytest.mark.anyio
async def test_a_compaction_is_the_historys_and_nobodys() -> None:
    """Messages that were replaced break the prefix where they stood; what stands before survives."""
    async with a_log(clock := Clock()) as log:
        script = Script(await log.create("s"), clock)
        for number in range(3):
            script.step(rendering(), f"Question {number}. " + "Long. " * 200)
        script.session.replace_history(0, 1, UserMessage("In short."))
        script.step(rendering(), "Go on.")
        await script.session.flush()
        cache = await session_cache(log, "s", tokenizer=tokenizer_named("o200k_base"))
    last = cache.steps[-1]
    assert last.broken_by is not None
    assert (last.verdict, last.broken_by.cause, last.broken_by.name) == ("broken", "history", "0")
    assert last.broken_by.owner is None
    assert last.predicted > 2_000


@pytest.mark.anyio
async def test_pauses_are_told_as_such() -> None:
    """A request that came too late lost the cache to time, though something had changed as well."""
    async with a_log(clock := Clock()) as log:
        script = Script(await log.create("s"), clock)
        script.step(rendering(), "One.")
        clock.now += 10 * 60_000
        script.step(rendering("30"), "Two.")
        script.step(rendering("31"), "Three.")
        await script.session.flush()
        cache = await session_cache(log, "s")
        patient = await session_cache(log, "s", lifetime=3600)
    assert [step.verdict for step in cache.steps] == ["first", "expired", "broken"]
    assert [(loss.owner, loss.cause) for loss in cache.owners][:2] in (
        [(None, "time"), ("clock", "variable {{today}}")],
        [("clock", "variable {{today}}"), (None, "time")],
    )
    assert [step.verdict for step in patient.steps] == ["first", "broken", "broken"]


@pytest.mark.anyio
async def test_a_switched_model_is_a_break_of_its_own() -> None:
    """Each provider has its own cache and its own rules."""
    async with a_log(clock := Clock()) as log:
        script = Script(await log.create("s"), clock)
        script.step(rendering(), "One.")
        script.step(rendering(), "Two.", config=ModelConfig("deepseek", "deepseek-v4-pro"))
        await script.session.flush()
        cache = await session_cache(log, "s")
    broken_by = cache.steps[1].broken_by
    assert isinstance(broken_by, Break)
    assert (broken_by.cause, broken_by.old, broken_by.new) == ("model", str(OPENAI), "deepseek:deepseek-v4-pro")
    assert cache.profiles == ("openai", "deepseek")
    assert cache.steps[1].predicted == 0


@pytest.mark.anyio
@pytest.mark.slow
async def test_a_long_session_is_measured_in_one_walk() -> None:
    """A thousand steps: measuring a step costs what is new in it."""
    async with a_log(clock := Clock()) as log:
        script = Script(await log.create("s"), clock)
        steady = rendering()
        for number in range(1_000):
            script.step(steady, f"Question {number}.")
        await script.session.flush()

        class Counting:
            name, is_estimate, counted = "counting", False, 0

            def sizes(self, text: str) -> list[int]:
                Counting.counted += len(text)
                return [1] * len(text.encode())

        cache = await session_cache(log, "s", tokenizer=Counting())
    assert len(cache.steps) == 1_000
    assert cache.lost == 0
    assert Counting.counted < 200_000
