"""How much of what is said is stored, and how what is sensitive is shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.session.support import (
    CONFIG,
    HEADER,
    JsonAdapter,
    Shelf,
    Stores,
    attempt,
    contents_of,
    end,
    snapshot,
    take_turn,
)

from foreword import SystemPrompt
from foreword.session import (
    ERASED,
    NOT_STORED,
    RUNTIME_CONTEXT,
    AssistantSaid,
    ContentNotStoredError,
    ContextPart,
    DamagedLogError,
    Log,
    MessageSource,
    RequestEnded,
    RequestHeader,
    Session,
    StepEnd,
    StepStart,
    ToolAnswered,
    ToolCalled,
    TurnStart,
    UserSaid,
    masked_event,
    open_log,
    rebuild,
    step_trace,
    verify,
)
from foreword.session.digests import private_digest
from foreword.wire.chunks import ModelFailure
from foreword.wire.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage

pytestmark = pytest.mark.anyio

SENSITIVE = "[sensitive]"


def sensitive_prompt() -> SystemPrompt:
    prompt = SystemPrompt()
    prompt.variable("code", "hunter2", sensitive=True)
    prompt.section("clerk", "You are a clerk.", order=1)
    prompt.section("door", "The code is {{code}}.", order=2)
    return prompt


def play(session: Session) -> list[bytes]:
    """Two steps with a sensitive section, context and tool; gives the requests."""
    rendering = sensitive_prompt().render_sync()
    header = RequestHeader.of(rendering, CONFIG)
    calls = ToolCall("a", "unlock", '{"code": "hunter2"}'), ToolCall("b", "search", '{"q": "doors"}')
    text = "Now.\n\ndoor: hunter2\n\ngit: main"
    source = MessageSource(
        RUNTIME_CONTEXT,
        "foreword",
        (ContextPart("door", "door: hunter2", sensitive=True), ContextPart("git", "git: main")),
    )
    session.append(TurnStart(session.turn + 1))
    session.append(StepStart(session.turn, 1, step_trace(rendering)))
    session.append(UserSaid(UserMessage("Open it.")))
    session.append(UserSaid(UserMessage(text), source))
    first = attempt(session, header)
    session.append(RequestEnded(session.turn, 1, 1, "tool-calls"))
    session.append(AssistantSaid(session.turn, 1, AssistantMessage("", calls), sensitive=(0,)))
    session.append(ToolCalled(session.turn, 1, calls[0], sensitive=True))
    session.append(ToolAnswered(session.turn, 1, ToolMessage("a", "unlock", "hunter2 it is"), sensitive=True))
    session.append(ToolCalled(session.turn, 1, ToolCall("b", "search", '{"q": "other"}')))
    session.append(ToolAnswered(session.turn, 1, ToolMessage("b", "search", "found")))
    session.append(StepEnd(session.turn, 1))
    session.append(StepStart(session.turn, 2, step_trace(rendering, session.trace)))
    second = attempt(session, header)
    session.append(RequestEnded(session.turn, 2, 1, "stop"))
    session.append(AssistantSaid(session.turn, 2, AssistantMessage("Done.")))
    end(session)
    return [first, second]


def shown_messages() -> list[dict[str, Any]]:
    calls = [
        {"id": "a", "name": "unlock", "arguments": '{"sensitive":true}'},
        {"id": "b", "name": "search", "arguments": '{"q": "doors"}'},
    ]
    return [
        {"role": "user", "content": "Open it."},
        {"role": "user", "content": f"Now.\n\n{SENSITIVE}\n\ngit: main"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "call_id": "a", "name": "unlock", "content": SENSITIVE},
        {"role": "tool", "call_id": "b", "name": "search", "content": "found"},
    ]


# -- full --------------------------------------------------------------------------------------------------------------


async def test_what_is_sensitive_is_kept_and_marked(stores: Stores) -> None:
    """By default all is stored: requests are rebuilt to the byte, and each can be shown without what is sensitive."""
    async with stores.log() as log:
        session = await log.create("clerk")
        sent = play(session)
        await session.flush()
        live = list(session.events)
        assert [event async for event in await log.events("clerk")] == live
        for number, canonical in enumerate(sent, 1):
            rebuilt = await rebuild(log, f"clerk@{number}", adapter=JsonAdapter())
            assert rebuilt.canonical == canonical
            shown = rebuilt.shown.to_json()
            assert shown["system"] == f"You are a clerk.\n\nThe code is {SENSITIVE}."
            assert shown["messages"] == shown_messages()[: len(shown["messages"])]
            assert rebuilt.header.masks == {1: f"The code is {SENSITIVE}."}
        assert "hunter2" in repr(live)
        assert "hunter2" not in repr([masked_event(each.event) for each in live])
        await verified(log)


async def test_nothing_is_masked_that_is_not_sensitive(stores: Stores) -> None:
    """Without anything sensitive the shown request is the request, and events are as they are."""
    async with stores.log() as log:
        session = await log.create("clerk")
        session.append(TurnStart(1))
        session.append(StepStart(1, 1))
        session.append(snapshot("git: main", "git"))
        attempt(session)
        session.append(RequestEnded(1, 1, 1, "stop"))
        session.append(AssistantSaid(1, 1, AssistantMessage("", (ToolCall("a", "search", '{"sensitive":true}'),))))
        session.append(ToolCalled(1, 1, ToolCall("a", "search", '{"sensitive":true}')))
        session.append(ToolAnswered(1, 1, ToolMessage("a", "search", '"sensitive":true')))
        session.append(StepEnd(1, 1))
        session.append(StepStart(1, 2))
        attempt(session)
        await session.flush()
        rebuilt = await rebuild(log, "clerk")
        assert rebuilt.shown == rebuilt.request
        assert [masked_event(each.event) for each in session.events] == [each.event for each in session.events]


async def test_a_sensitive_section_is_private(stores: Stores) -> None:
    """A sensitive section is salted: no two sessions have a blob of it in common, and a fork has its parent's. As long
    as it does not change it is stored once."""
    async with stores.log() as log:
        one, other = await log.create("one"), await log.create("other")
        for session in (one, other):
            play(session)
            play(session)
            await session.flush()
        fork = await one.fork(id="fork")
        play(fork)
        await fork.flush()
        found = await log.store.blobs(await log.store.search([b"The code is hunter2."]))
        assert [row.salt is not None for row in found.values()] == [True, True]
        report = await log.erase(session="one")
        assert {each.session for each in report.sessions} == {"one", "fork"}
        found = await log.store.blobs(await log.store.search([b"The code is hunter2."]))
        assert len(found) == 1
        await verified(log)


async def test_what_became_sensitive(stores: Stores) -> None:
    """A text that was shared, and is sensitive from now on, is private when its header is written next."""
    open_header = RequestHeader(CONFIG, ("The code is hunter2.",), ())
    async with stores.log() as log:
        session = await log.create("clerk")
        take_turn(session, header=open_header)
        closed = RequestHeader(CONFIG, ("The code is hunter2.",), (), 0, {0: SENSITIVE})
        assert closed == open_header
        session.append(TurnStart(2))
        session.append(StepStart(2, 1))
        attempt(session, closed, reason="change")
        await session.flush()
        found = await log.store.blobs(await log.store.search([b"hunter2"]))
        assert sorted(row.salt is not None for row in found.values()) == [False, True]
        assert (await rebuild(log, "clerk@2")).header.masks == {0: SENSITIVE}
        await verified(log)


async def verified(log: Log, withheld: int | None = 0) -> None:
    verification = await verify(log)
    assert [report.fault for report in verification.sessions if not report.intact] == []
    if withheld is not None:
        assert sum(report.withheld for report in verification.sessions) == withheld


# -- masked ------------------------------------------------------------------------------------------------------------


async def test_masked(stores: Stores) -> None:
    """What is sensitive is never stored; a session that is resumed goes on with masked texts; a request that held it is
    refused or marked, all else is whole."""
    async with stores.log(content="masked") as log:
        session = await log.create("clerk")
        take_turn(session, "before")
        sent = play(session)
        await session.flush()
        assert await log.store.search([b"hunter2"]) == []
        for number in (2, 3):
            with pytest.raises(ContentNotStoredError, match="never stored"):
                await rebuild(log, f"clerk@{number}")
        rebuilt = await rebuild(log, "clerk@3", if_erased="mark")
        assert rebuilt.erased == ("section 2", "message 4", "message 5", "message 6")
        assert rebuilt.request.system == f"You are a clerk.\n\nThe code is {SENSITIVE}."
        assert [message.to_json() for message in rebuilt.request.messages[2:]] == shown_messages()
        assert rebuilt.explanation is not None
        told = [(span.section, span.variable) for span in rebuilt.explanation.spans if span.section]
        assert told == [("clerk", None), ("door", None), ("door", "code"), ("door", None)]
        assert rebuilt.shown == rebuilt.request
        assert (await rebuild(log, "clerk@1")).request.messages == (UserMessage("before"),)
        with pytest.raises(ContentNotStoredError):
            [each async for each in await log.events("clerk")]
        marked = [each.event async for each in await log.events("clerk", if_erased="mark")]
        for one, other in zip(marked, [masked_event(each.event) for each in session.events], strict=True):
            assert one == other
        await session.close()
        await verified(log, 4)  # a section, a snapshot, an answer and a result
    assert b"hunter2" not in contents_of(stores.files())
    async with stores.log(content="masked") as log:
        resumed = await log.resume("clerk")
        assert [message.to_json() for message in resumed.messages[2:-1]] == shown_messages()
        play(resumed)
        await resumed.close()
        await verified(log, None)
    assert sent


# -- digests -----------------------------------------------------------------------------------------------------------


async def test_digests(stores: Stores) -> None:
    """No content is stored, and the chain verifies; who has a content from elsewhere can prove that it was said; who
    contributed what is told."""
    async with stores.log(content="digests") as log:
        session = await log.create("clerk", labels={"ticket": "hunter2"})
        play(session)
        session.append(TurnStart(2))
        session.append(StepStart(2, 1))
        session.append(UserSaid(UserMessage("hunter2")))
        attempt(session)
        session.append(RequestEnded(2, 1, 1, "error", failure=ModelFailure("no hunter2", "auth")))
        await session.close()
        for text in (b"hunter2", b"clerk.", b"search", b"gpt-5", b"Open it"):
            assert not [each for each in await log.store.search([text]) if each not in await traces(log)]
        rows = await log.store.blobs(digest for digest, _ in await log.store.refs("clerk"))
        assert any(private_digest(row.salt, b"hunter2") == row.digest for row in rows.values() if row.salt)
        with pytest.raises(ContentNotStoredError):
            await rebuild(log, "clerk@1")
        rebuilt = await rebuild(log, "clerk@1", if_erased="mark")
        assert rebuilt.request.system == f"{NOT_STORED}\n\n{SENSITIVE}"
        assert {message.text for message in rebuilt.request.messages} == {NOT_STORED}
        assert rebuilt.explanation is not None
        assert [span.section for span in rebuilt.explanation.spans if span.section] == ["clerk", "door"]
        assert (await log.start_of("clerk")).labels == {"ticket": NOT_STORED}
        resumed = await log.resume("clerk")
        assert {message.text for message in resumed.messages} == {NOT_STORED}
        assert resumed.messages[2] == AssistantMessage(
            NOT_STORED, (ToolCall("a", "unlock", "{}"), ToolCall("b", "search", "{}"))
        )
        play(resumed)
        await resumed.flush()
        await verified(log, None)
    assert b"hunter2" not in contents_of(stores.files())


async def traces(log: Log) -> set[bytes]:
    """The blobs of names and places that explain steps."""
    found = await log.store.blobs(await log.store.search([b'"origin"', b'"stages"', b'"name"']))
    return set(found)


async def test_erasing_what_was_never_stored(stores: Stores) -> None:
    """Of what is only proved the proof can be erased: the salt goes, and nobody can tell any more."""
    async with stores.log(content="digests") as log:
        session = await log.create("clerk")
        take_turn(session, "hunter2")
        await session.flush()
        report = await log.erase(session="clerk")
        assert report.blobs == 3  # two messages and the digest of a body; of the header there is nothing
        rows = await log.store.blobs(digest for digest, _ in await log.store.refs("clerk"))
        assert not any(row.salt for row in rows.values())
        assert session.messages[0] == UserMessage(ERASED)
        await verified(log, None)


async def test_one_store_with_all_of_them(stores: Stores) -> None:
    """Sessions of one store may be kept in different ways: what one does not store another one does, and each verifies."""
    async with stores.log(content="digests") as little:
        session = await little.create("little")
        take_turn(session)
        await session.close()
    async with stores.log() as all_of_it:
        session = await all_of_it.create("full")
        take_turn(session)
        await session.close()
        assert (await rebuild(all_of_it, "full@1")).header == HEADER
        resumed = await all_of_it.resume("little")
        take_turn(resumed)
        await resumed.close()
        assert (await rebuild(all_of_it, "little@2", if_erased="mark")).header == HEADER
        await verified(all_of_it, None)
    async with stores.log(content="masked") as masked:
        resumed = await masked.resume("full")
        play(resumed)
        await resumed.close()
        assert (await rebuild(masked, "full@1")).header == HEADER
        with pytest.raises(ContentNotStoredError):
            await rebuild(masked, "full@2")
        await verified(masked, None)


async def test_an_empty_blob_that_was_to_be_stored_is_damage(stores: Stores) -> None:
    """That a log may withhold some contents is no excuse for others."""
    async with stores.log(content="masked") as log:
        session = await log.create("clerk")
        take_turn(session, "plain")
        play(session)
        await session.close()
        shelf = await Shelf.of(log.store)
    assert (await verify(shelf.log())).intact
    [digest] = [digest for digest, row in shelf.kept_blobs.items() if b"plain" in (row.body or b"")]
    shelf.kept_blobs[digest] = replace(shelf.kept_blobs[digest], body=None)
    [report] = (await verify(shelf.log())).sessions
    assert report.fault is not None
    assert report.fault.blob == digest.hex()
    with pytest.raises(DamagedLogError):
        await rebuild(shelf.log(), "clerk@1", if_erased="mark")


def test_what_is_to_be_stored_must_be_known() -> None:
    """There are three ways."""
    with pytest.raises(ValueError, match="'full', 'masked', 'digests'"):
        open_log("sqlite:x.db", content="some")  # type: ignore[arg-type]
