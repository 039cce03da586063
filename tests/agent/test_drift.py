"""Drift on resume: an agent goes on with a session, and what is assembled today is not what was recorded."""

import json
from typing import Any

import pytest
from tests.agent.support import logged, stage

from foreword import AGENT_ERROR, Context, SystemPrompt, ToolDefinition, TurnFailed
from foreword.agent.attempt import HELD_BACK
from foreword.errors import HeaderDriftError
from foreword.explain import diff_of, find_text, subject_at, why_missing
from foreword.session import HeaderWritten, Note, RequestAttempted, StepStart, ToolAnswered, rebuild
from foreword.testing import call_tools
from foreword.wire.request import ModelConfig

pytestmark = pytest.mark.anyio


def systems(play: Any) -> list[str]:
    return [json.loads(each)["system"] for each in play.model.requests]


async def test_fresh_goes_on_with_todays() -> None:
    """By default today's goes out, and the log says in which parts it differs."""
    async with stage("One.", "Two.") as play:
        agent = await play.agent()
        await agent.run("1")
        await agent.dispose()
        play.prompt.section("rules", "Be brief.", order=20)
        again = await play.agent(session=agent.id)
        await again.run("2")
        assert systems(play) == ["You review.", "You review.\n\nBe brief."]
        assert [event.drift for event in logged(again, HeaderWritten)] == [("sections",)]


async def test_recorded_goes_on_with_what_was_recorded() -> None:
    """The recorded header goes out as long as the agent lives, whatever is assembled; the log says what was held back,
    and explains these steps as the one that recorded it. Tools are today's."""
    async with stage("One.", call_tools(lookup={}), "Two.", "Three.", "Four.") as play:

        @play.tools.register
        def lookup() -> str:
            """Looks up."""
            return "found"

        agent = await play.agent(model=ModelConfig("scripted", "m1", {"temperature": 0.5}))
        await agent.run("1")
        await agent.dispose()
        play.prompt.section("rules", "Be brief.", order=20)
        again = await play.agent(session=agent.id, drift="recorded", model="scripted:m2")
        await again.run("2")
        await again.run("3")
        assert systems(play) == ["You review."] * 4
        assert {json.loads(each)["config"]["model"] for each in play.model.requests} == {"m1"}
        assert [(event.reason, event.drift) for event in logged(again, HeaderWritten)] == [("resume", ())]
        assert [event.data for event in logged(again, Note)] == [["config", "sections"]]
        assert [event.name for event in logged(again, Note)] == [HELD_BACK]
        was, *others = [(await rebuild(play.log, f"{agent.id}@{step}")).explanation for step in (1, 2, 3, 4)]
        assert was is not None
        assert others == [was] * 3
        assert [answered.message.text for answered in logged(again, ToolAnswered)] == ["found"]
        await again.dispose()
        last = await play.agent(session=agent.id)
        await last.run("4")
        assert systems(play)[-1] == "You review.\n\nBe brief."


def _shop(ctx: Context) -> None:
    prompt = ctx.require(SystemPrompt)
    prompt.variable("code", "4711")
    prompt.section("rules", "The code is {{code}}.", order=20)
    prompt.context("stock", "3 books", order=1)


async def test_recorded_is_explained_by_what_recorded_it() -> None:
    """Sections, variables and tools of a header that goes out again have the owners of then, and nothing changed; the
    runtime contexts are no part of it, and have those of today."""
    async with stage("One.", "Two.", "Three.", "Four.") as play:
        shop = play.ctx.mount(_shop)
        await shop.ready()
        agent = await play.agent()
        await agent.run("1")
        await agent.dispose()
        await shop.dispose()
        fact = ["2 chairs"]
        play.prompt.context("chairs", lambda: fact[0], order=2)
        again = await play.agent(session=agent.id, drift="recorded")
        for text in ("2", "3", "4"):
            await again.run(text)
            fact[0] += "!"
        assert len({event.trace.digest for event in logged(again, StepStart)}) == 1
        first, *held = [await subject_at(play.log, f"{agent.id}@{step}") for step in (1, 2, 3, 4)]
        for subject in held:
            assert (subject.sections, subject.tools) == (first.sections, first.tools)
            assert not diff_of(first, subject).sections
            [found] = find_text(subject, "4711")
            assert [(each.owner, each.section, each.variable) for each in found.stretches] == [
                ("_shop", "rules", "code")
            ]
            assert [(part.name, part.origin.owner) for part in subject.contexts] == [("chairs", "root")]
            assert why_missing(subject, "rules") is None
            assert why_missing(subject, "chairs") is None
            gone = why_missing(subject, "stock")
            assert gone is not None
            assert gone.reason == "never_registered"


async def test_recorded_and_its_explanation_erased() -> None:
    """Where the log does not hold any more what explains a recorded header, nothing else is said in its place."""
    async with stage("One.", "Two.", "Three.", "Four.") as play:
        agent = await play.agent()
        await agent.run("1")
        await agent.dispose()
        play.prompt.section("rules", "Be brief.", order=20)
        again = await play.agent(session=agent.id, drift="recorded")
        await again.run("2")
        await play.log.erase(match="deployment:persona")  # the name of its section
        await again.run("3")
        assert systems(play) == ["You review."] * 3
        assert logged(again, StepStart)[-1].trace is None
        await again.dispose()
        last = await play.agent(session=agent.id, drift="recorded")
        await last.run("4")
        assert logged(last, StepStart)[-1].trace is None


async def test_recorded_and_erased_meanwhile() -> None:
    """What is erased from a recorded header while it is held ready does not go out again, nor into the log."""
    async with stage("One.", "Two.") as play:
        agent = await play.agent()
        await agent.run("1")
        await agent.dispose()
        play.prompt.section("rules", "Be brief.", order=20)
        again = await play.agent(session=agent.id, drift="recorded")
        await again.run("2")
        await play.log.erase(match="You review.")
        with pytest.raises(HeaderDriftError, match="section 1 of the recorded one is gone"):
            await again.run("3")
        assert (await play.log.erase(match="You review.")).blobs == 0
        play.model.sent.clear()  # what it got cannot be rebuilt any more


async def test_recorded_and_nothing_drifted() -> None:
    """Where nothing differs nothing is held back, and steps are explained."""
    async with stage("One.", "Two.") as play:
        agent = await play.agent()
        await agent.run("1")
        await agent.dispose()
        again = await play.agent(session=agent.id, drift="recorded")
        await again.run("2")
        assert logged(again, Note) == []
        assert logged(again, StepStart)[0].trace is not None


async def test_error_sends_nothing() -> None:
    """The turn ends with an error that says what differs, without a step; when it is as it was again, the next works."""
    faults: list[TurnFailed] = []
    async with stage("One.", "Two.", "Three.") as play:
        agent = await play.agent()
        await agent.run("1")
        await agent.dispose()
        rules = play.prompt.section("rules", "Be brief.", order=20)
        again = await play.agent(session=agent.id, drift="error")
        play.ctx.on(AGENT_ERROR, faults.append)
        with pytest.raises(HeaderDriftError, match="recorded: 1 sections, today: 2") as caught:
            await again.run("2")
        assert [fault.error for fault in faults] == [caught.value]
        assert caught.value.parts == ("sections",)
        assert logged(again, StepStart) == []
        rules.close()
        assert (await again.run("3")).reason == "completed"
        play.prompt.section("rules", "Be very brief.", order=20)
        assert (await again.run("4")).reason == "completed"  # a change, like any other from here on


async def test_error_of_the_configuration_alone() -> None:
    """A configuration is known when its request is made: the step ends without one."""
    async with stage("One.") as play:
        agent = await play.agent()
        await agent.run("1")
        await agent.dispose()
        again = await play.agent(session=agent.id, drift="error", model="scripted:m2")
        with pytest.raises(HeaderDriftError, match=r"the configuration \(scripted:m1, now scripted:m2\)"):
            await again.run("2")
        assert logged(again, RequestAttempted) == []


async def test_it_is_about_a_session_that_goes_on() -> None:
    """A new session has no drift, and an open one was resumed by somebody who said."""
    async with stage("One.") as play:
        with pytest.raises(TypeError, match="drift"):
            await play.agent(drift="error")
        session = await play.log.create()
        with pytest.raises(TypeError, match="drift"):
            await play.agent(session=session, drift="error")
        await session.close()
        with pytest.raises(ValueError, match="one of 'fresh', 'recorded', 'error'"):
            await play.agent(session=session.id, drift="new")


async def test_recorded_offers_and_calls_the_same_tools() -> None:
    """A tool runs if the request that was sent had it, and it is there today: neither a new one nor one that has gone."""
    ran: list[str] = []

    def old() -> str:
        """Old."""
        return str(ran.append("old"))

    def new() -> str:
        """New."""
        return str(ran.append("new"))

    async with stage("One.", call_tools(new={}, old={}), "Two.") as play:
        registered = play.tools.register(ToolDefinition.of(old))
        agent = await play.agent()
        await agent.run("1")
        await agent.dispose()
        registered.close()
        play.tools.register(new)
        again = await play.agent(session=agent.id, drift="recorded")
        await again.run("2")
        assert [tool["name"] for tool in json.loads(play.model.requests[1])["tools"]] == ["old"]
        assert [answered.code for answered in logged(again, ToolAnswered)] == ["UNKNOWN_TOOL"] * 2
        assert ran == []
