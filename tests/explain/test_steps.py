"""Steps of a log as subjects: they are the very requests that were sent, with who wrote what, all plugins gone."""

from __future__ import annotations

import pytest
from tests.agent.support import Sleeps
from tests.explain.support import Clock, Script, a_log, tool

from foreword import Agent, Context, SystemPrompt, ToolSchema, create_agent, open_log
from foreword.agent.models import ModelAdapters
from foreword.errors import UnknownAddressError
from foreword.explain import (
    Subject,
    find_text,
    session_cache,
    subject_at,
    subject_before,
    subject_of,
    subjects,
    why_missing,
)
from foreword.session import Log, rebuild
from foreword.testing import ScriptedModel, call_tools
from foreword.testing.memory_store import MemoryStore
from foreword.tools.registry import ToolRegistry
from foreword.wire.messages import UserMessage


async def all_of(log: Log, session: str) -> list[Subject]:
    return [subject async for subject in await subjects(log, session)]


@pytest.mark.anyio
async def test_a_subject_is_what_rebuild_gives() -> None:
    """For every request of a session with tools, contexts, a compaction, a retry and a switched model: the same system
    text, tools, messages and model; and its address leads back to it."""
    async with MemoryStore() as store:
        async with open_log(store) as log, Context() as ctx:
            await a_busy_session(ctx, log)
        async with open_log(store, read_only=True) as log:
            found = await all_of(log, "busy")
            assert len(found) >= 6
            for subject in found:
                assert subject.location is not None
                rebuilt = await rebuild(log, str(subject.location))
                request = rebuilt.request
                assert subject.text == request.system
                assert tuple(each.schema for each in subject.tools) == request.tools
                assert tuple(each.message for each in subject.messages) == request.messages
                assert subject.config == request.config
                assert rebuilt.outcome is not None
                assert subject.usage == rebuilt.outcome.usage
                again = await subject_at(log, str(subject.location))
                assert (again.text, again.snapshot, again.location) == (
                    subject.text,
                    subject.snapshot,
                    rebuilt.location,
                )
            earlier = [await subject_before(log, str(each.location)) for each in found]
            assert earlier[0] is None
            assert [str(each.location) for each in earlier[1:] if each] == [str(each.location) for each in found[:-1]]


async def a_busy_session(ctx: Context, log: Log) -> None:
    await ctx.mount(SystemPrompt).ready()
    await ctx.mount(ToolRegistry).ready()
    await ctx.mount(ModelAdapters).ready()
    prompt, tools = ctx.require(SystemPrompt), ctx.require(ToolRegistry)
    model = ScriptedModel(["Yes.", call_tools(look={"what": "x"}), "Found.", "No.", "Well.", "Done."])
    ctx.require(ModelAdapters).register(model)
    prompt.section("rules", "Be kind. You are {{model}}.", order=1)
    prompt.context("now", "It is ten.", order=1)

    @tools.register
    def look(what: str) -> str:
        """Look at something."""
        return f"{what} is there"

    agent: Agent = await create_agent(
        ctx, "clerk", model="scripted:m1", log=log, session=await log.create("busy"), clock=Sleeps().clock
    )
    await agent.run("Hi.").over()
    await agent.run("Look.").over()
    prompt.context("more", "And more.", order=2)
    agent.session.replace_history(0, 1, UserMessage("Summary."))
    await agent.run("Again.").over()
    prompt.section("late", "Late.", order=2)
    await agent.run("Once more.").over()
    await agent.run("And the end.").over()


@pytest.mark.anyio
async def test_what_was_erased_is_marked() -> None:
    """Steps of which something was erased are told with placeholders; all others as they were."""
    async with MemoryStore() as store:
        async with open_log(store) as log, Context() as ctx:
            await a_busy_session(ctx, log)
        async with open_log(store) as log:
            before = await all_of(log, "busy")
            text = before[0].messages[0].message.text
            await log.erase(match=text)
            after = await all_of(log, "busy")
            assert [str(each.location) for each in after] == [str(each.location) for each in before]
            for was, now in zip(before, after, strict=True):
                assert (was.text, was.spans, was.tools, was.trace) == (now.text, now.spans, now.tools, now.trace)
                held = [text in each.message.text for each in was.messages]
                assert [each.message.text == "[erased]" for each in now.messages] == held


@pytest.mark.anyio
async def test_contexts_are_those_that_the_model_sees() -> None:
    """A step that repeats no snapshot is told with the one that is still in its history, and who wrote it."""
    prompt = SystemPrompt(persona="P.")
    prompt.owner("clock").context("now", "It is ten.", order=1)
    rendering = prompt.render_sync()
    async with a_log(clock := Clock()) as log:
        script = Script(await log.create("s"), clock)
        script.step(rendering, "One.")
        script.step(rendering, "Two.")
        await script.session.flush()
        first, second = await all_of(log, "s")
    for subject in (first, second):
        assert [(part.name, part.text, part.origin.owner) for part in subject.contexts] == [
            ("now", "It is ten.", "clock")
        ]
        (occurrence,) = find_text(subject, "ten")
        assert (occurrence.place, occurrence.stretches[0].owner) == ("contexts", "clock")
    assert first.spans is second.spans
    assert first.messages == second.messages[: len(first.messages)]


@pytest.mark.anyio
async def test_a_step_without_a_trace_has_its_texts() -> None:
    """Logged without what explains it, a prompt still has its sections by place, owned by nobody known."""
    prompt = SystemPrompt(persona="P.")
    prompt.section("rules", "R.", order=1)
    prompt.tools([tool("find")])
    async with a_log(clock := Clock()) as log:
        script = Script(await log.create("s"), clock)
        script.step(prompt.render_sync(), "One.", traced=False)
        await script.session.flush()
        subject = await subject_at(log, "s")
    assert [(part.name, part.text, part.origin.owner) for part in subject.sections] == [
        ("#1", "P.", "unknown"),
        ("#2", "R.", "unknown"),
    ]
    assert [(each.name, each.origin.owner) for each in subject.tools] == [("find", "unknown")]
    missing = why_missing(subject, "rules")
    assert missing is not None
    assert missing.reason == "not_recorded"


@pytest.mark.anyio
async def test_addresses_that_lead_nowhere() -> None:
    """They are told as everywhere in sessions."""
    async with a_log(clock := Clock()) as log:
        script = Script(await log.create("s"), clock)
        script.step(SystemPrompt(persona="P.").render_sync(), "One.")
        await script.session.flush()
        for address in ("s@2", "s@1/2", "nobody"):
            with pytest.raises(UnknownAddressError):
                await subject_at(log, address)


@pytest.mark.anyio
async def test_all_attempts_of_a_step_are_requests() -> None:
    """Each attempt is told, with its number."""
    async with a_log(clock := Clock()) as log:
        script = Script(await log.create("s"), clock)
        script.step(SystemPrompt(persona="P.").render_sync(), "One.", attempts=3)
        await script.session.flush()
        assert [each.title for each in await all_of(log, "s")] == ["s@1/1", "s@1/2", "s@1/3"]
        assert (await subject_at(log, "s")).title == "s@1/3"


@pytest.mark.anyio
async def test_the_order_of_the_keys_of_a_schema_counts() -> None:
    """Two requests whose tools differ in nothing else differ in their bytes, so what broke the prefix is told."""
    async with a_log(clock := Clock()) as log:
        script = Script(await log.create("s"), clock)
        for keys in (("type", "title"), ("title", "type")):
            prompt = SystemPrompt(persona="P.")
            prompt.owner("shop").tools([ToolSchema("find", "Finds it.", dict.fromkeys(keys, "object"))])
            script.step(prompt.render_sync(), "Hi.")
        await script.session.flush()
        (_, step), (one, other) = (await session_cache(log, "s")).steps, await all_of(log, "s")
    assert one.tools[0].text != other.tools[0].text
    assert step.broken_by is not None
    assert (step.broken_by.name, step.broken_by.owner) == ("find", "shop")


def test_a_live_subject_stands_alone() -> None:
    """It holds places and versions as they were, so it needs neither the registry nor the folder any more."""
    prompt = SystemPrompt(persona="P.")
    subject = subject_of(prompt.render_sync(), "here")
    prompt.close()
    (section,) = subject.sections
    assert section.origin.source is not None
    assert not section.origin.source.path.startswith("/")
    assert (subject.title, subject.messages, subject.config, subject.location) == ("here", (), None, None)


@pytest.mark.anyio
async def test_the_newest_snapshot_counts() -> None:
    """Earlier snapshots stay in the history, where they are told as what was said; the contexts are those of the last."""
    async with a_log(clock := Clock()) as log:
        script = Script(await log.create("s"), clock)
        for hour in ("ten", "eleven"):
            prompt = SystemPrompt(persona="P.")
            prompt.owner("clock").context("now", f"It is {hour}.", order=1)
            script.step(prompt.render_sync(), "And?")
        await script.session.flush()
        subject = await subject_at(log, "s")
    assert [part.text for part in subject.contexts] == ["It is eleven."]
    assert [each.place for each in find_text(subject, "It is ten.")] == ["message"]
    assert [each.place for each in find_text(subject, "It is eleven.")] == ["contexts"]
