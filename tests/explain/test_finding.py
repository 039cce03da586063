"""Finding requests in a log, and where a text was first seen, in which version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.explain.support import Clock, Script, a_log

from foreword import Rendering, SystemPrompt
from foreword.errors import UnknownAddressError
from foreword.explain import find_steps, first_seen
from foreword.session import Log


def rendering(rules: str, **sections: str) -> Rendering:
    prompt = SystemPrompt(persona="You are a clerk.")
    prompt.owner("acme").section("rules", rules, order=1)
    for name, text in sections.items():
        prompt.owner("acme").section(name, text, order=2)
    return prompt.render_sync()


async def three_sessions(log: Log, clock: Clock) -> None:
    for name, label, steps in (
        ("one", "a", ["Be kind.", "Be kind.", "Be kind and quick."]),
        ("two", "b", ["Be quick."]),
        ("three", "a", ["Be kind.", "Be gone."]),
    ):
        script = Script(await log.create(name, labels={"tenant": label, "ticket": name}), clock)
        for at, text in enumerate(steps):
            script.step(rendering(text, late="Late.") if at == 1 else rendering(text), f"Question {at} of {name}.")
        await script.session.flush()
        clock.now += 3_600_000


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("asked", "addresses"),
    [
        ({}, ["one@1/1", "one@2/1", "one@3/1", "two@1/1", "three@1/1", "three@2/1"]),
        ({"labels": {"tenant": "a"}}, ["one@1/1", "one@2/1", "one@3/1", "three@1/1", "three@2/1"]),
        ({"labels": {"tenant": "a", "ticket": "three"}}, ["three@1/1", "three@2/1"]),
        ({"labels": {"nobody": "a"}}, []),
        ({"text": "quick"}, ["one@3/1", "two@1/1"]),
        ({"text": "Question 0 of two"}, ["two@1/1"]),
        ({"section": "late"}, ["one@2/1", "three@2/1"]),
        ({"text": "kind", "section": "late"}, ["one@2/1"]),
        ({"session": "three", "text": "kind"}, ["three@1/1"]),
        ({"since": 1_700_000_000_000 + 5_400_000}, ["three@1/1", "three@2/1"]),
    ],
)
async def test_requests_are_found(asked: dict[str, Any], addresses: list[str]) -> None:
    """By label, time, text, section and session; all that is asked must hold."""
    async with a_log(clock := Clock()) as log:
        await three_sessions(log, clock)
        assert [step.address for step in await find_steps(log, **asked)] == addresses


@pytest.mark.anyio
async def test_what_is_found_says_where() -> None:
    """The places of the text, the labels and the time come with each address."""
    async with a_log(clock := Clock()) as log:
        await three_sessions(log, clock)
        (step,) = await find_steps(log, text="quick", labels={"tenant": "b"})
    assert step.labels == {"tenant": "b", "ticket": "two"}
    assert [each.stretches[0].section for each in step.occurrences] == ["rules"]
    assert step.to_json()["address"] == "two@1/1"


@pytest.mark.anyio
async def test_an_unknown_session_is_an_error() -> None:
    """It is not the same as finding nothing."""
    async with a_log() as log:
        with pytest.raises(UnknownAddressError):
            await find_steps(log, session="nobody")
        assert await find_steps(log, text="x") == []


@pytest.mark.anyio
async def test_the_first_request_of_all_sessions_is_told() -> None:
    """By time, over all sessions; only that section's text if one is asked for."""
    async with a_log(clock := Clock()) as log:
        await three_sessions(log, clock)
        kind, quick, late = [await first_seen(log, text) for text in ("kind", "quick", "Late.")]
        assert kind is not None
        assert quick is not None
        assert late is not None
        assert [str(each.location) for each in (kind, quick, late)] == ["one@1/1", "one@3/1", "one@2/1"]
        in_rules = await first_seen(log, "quick", section="rules")
        assert in_rules is not None
        assert in_rules.occurrence.stretches[0].owner == "acme"
        assert await first_seen(log, "quick", section="late") is None
        assert await first_seen(log, "unheard of") is None


@pytest.mark.anyio
async def test_the_version_of_then_is_told() -> None:
    """What a package contributed bears the version that it had when it was logged."""
    import anyio

    prompt = SystemPrompt()
    exec(compile("prompt.section('a', 'From a package.', order=1)", anyio.__file__, "exec"), {"prompt": prompt})
    async with a_log(clock := Clock()) as log:
        script = Script(await log.create("s"), clock)
        script.step(prompt.render_sync(), "Hi.")
        await script.session.flush()
        found = await first_seen(log, "package")
    assert found is not None
    assert str(found.distribution).startswith("anyio ")
    assert str(found.occurrence.stretches[0].source).startswith(Path(anyio.__file__).parent.name)


@pytest.mark.anyio
async def test_the_first_is_the_earliest_whatever_session_was_used_last() -> None:
    """A session that goes on is listed last, and what it said first still counts."""
    async with a_log(clock := Clock()) as log:
        early, late = Script(await log.create("early"), clock), Script(await log.create("late"), clock)
        for script in (early, late, early):
            script.step(rendering("Be kind."), "Hi.")
            await script.session.flush()
        assert [each.id for each in await log.sessions()] == ["late", "early"]
        found = await first_seen(log, "kind")
    assert found is not None
    assert str(found.location) == "early@1/1"


@pytest.mark.anyio
async def test_a_request_that_forks_share_was_seen_where_it_was_made() -> None:
    """A fork holds the requests of its parent; the parent is told, whichever of the two was written last."""
    clock = Clock()
    async with a_log(clock) as log:
        parent = await log.create("parent")
        Script(parent, clock).step(SystemPrompt(persona="You are a clerk.").render_sync(), "Hi.")
        await parent.flush()
        fork = await parent.fork(id="fork")
        await fork.close()
        Script(parent, clock).step(SystemPrompt(persona="You are a clerk.").render_sync(), "Again.")
        await parent.close()
        assert [each.id for each in await log.sessions()] == ["fork", "parent"]
        seen = await first_seen(log, "clerk")
    assert seen is not None
    assert str(seen.location) == "parent@1/1"
