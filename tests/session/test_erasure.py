"""Erasure: what was said is gone from every file of the store, the log says so, verifies, and goes on."""

from __future__ import annotations

import json
import os
import pickle
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.session.support import (
    CONFIG,
    HEADER,
    Clock,
    JsonAdapter,
    Shelf,
    Stores,
    answer,
    ask,
    attempt,
    clerk,
    contents_of,
    end,
    snapshot,
    take_tool_turn,
    take_turn,
)

from foreword import SystemPrompt, ToolSchema
from foreword.session import (
    ERASED,
    AssistantSaid,
    Content,
    ContentErased,
    DamagedLogError,
    ErasedContentError,
    ErasureBlockedError,
    ErasureReport,
    Log,
    Note,
    RequestEnded,
    RequestHeader,
    Session,
    StepEnd,
    StepStart,
    StoreError,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnStart,
    UnknownAddressError,
    UserSaid,
    open_log,
    rebuild,
    step_trace,
    verify,
)
from foreword.session.store import BlobRow, Store
from foreword.wire.chunks import ModelFailure
from foreword.wire.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from foreword.wire.request import ModelConfig

pytestmark = pytest.mark.anyio

SECRET = 'Ä "quoted" hunter2/né\n'


def bytes_left(stores: Stores, secret: str) -> list[str]:
    """Which of the words of a secret stand in the files of a store."""
    kept = contents_of(stores.files())
    return [part for part in ("hunter2", secret) if part.encode() in kept]


def tell_all(session: Session, secret: str) -> None:
    """A turn with a secret in a message, a header, a snapshot, arguments, an answer, an error and a note."""
    prompt, _ = clerk(("You are a clerk.", f"The code is {secret}."))
    rendering = prompt.render_sync()
    tool = ToolSchema("unlock", f"Takes {secret}.", {"type": "object", "default": {"code": secret}})
    header = RequestHeader(
        ModelConfig("openai", "gpt-5", {"user": secret}), rendering.sections, (*rendering.tools, tool)
    )
    call = ToolCall("call-9", "unlock", json_of({"code": secret, "deep": json_of([secret])}))
    turn = session.turn + 1
    session.append(TurnStart(turn))
    session.append(StepStart(turn, 1, step_trace(rendering)))
    session.append(UserSaid(UserMessage(f"My code is {secret}, keep it")))
    session.append(snapshot(f"door: {secret}", "door"))
    attempt(session, header)
    failure = ModelFailure(f"bad input {secret}", "bad_request", 400)
    session.append(RequestEnded(turn, 1, 1, "error", failure=failure))
    attempt(session, header, 2)
    session.append(RequestEnded(turn, 1, 2, "tool-calls"))
    session.append(AssistantSaid(turn, 1, AssistantMessage(f"Trying {secret}", (call,))))
    session.append(ToolCalled(turn, 1, replace(call, arguments=json_of({"code": secret}))))
    session.append(ToolAnswered(turn, 1, ToolMessage("call-9", "unlock", f"{secret} is wrong", is_error=True), "WRONG"))
    session.append(StepEnd(turn, 1))
    session.append(Note("seen", {"secret": [secret], secret: 1}))
    session.append(TurnEnd(turn, "error", f"gave up on {secret}", "GaveUp"))


def json_of(value: object) -> str:
    return json.dumps(value)


async def canonicals(log: Log, session: str) -> dict[str, bytes | None]:
    """What each attempt of a session is rebuilt to; None for one of which something was erased."""
    told: dict[str, bytes | None] = {}
    for number in range(1, (await log.view(session)).steps + 1):
        for of_step in range(1, (await log.locate(f"{session}@{number}")).attempts + 1):
            address = f"{session}@{number}/{of_step}"
            try:
                told[address] = (await rebuild(log, address)).canonical
            except ErasedContentError:
                told[address] = None
    return told


async def intact(log: Log, erased: int | None = None) -> None:
    verification = await verify(log)
    assert [report.fault for report in verification.sessions if not report.intact] == []
    if erased is not None:
        assert verification.erased == erased


# -- everywhere --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("secret", ["hunter2", SECRET])
async def test_a_secret_is_gone_from_everywhere(stores: Stores, secret: str) -> None:
    """A secret in messages, tool calls and results, header, snapshot, errors, notes and a label of a session with two
    forks: no byte of it is left, each session verifies, requests that held it cannot be had, all others are whole."""
    async with stores.log() as log:
        session = await log.create("clerk", labels={"ticket": f"T {secret}", "tenant": "acme"})
        take_turn(session)
        tell_all(session, secret)
        await session.flush()
        early, late = await session.fork("@1", id="early"), await session.fork(id="late")
        other = await log.create("other")
        for each in (session, late):
            each.replace_history(0, len(each.messages) - 1, UserMessage("summary"))
        for each in (session, early, late, other):
            take_turn(each)
            await each.flush()
        before = {each: await canonicals(log, each) for each in ("clerk", "early", "late", "other")}
        for each in (session, early, late, other):
            await each.close()
        assert bytes_left(stores, secret) or stores.kind == "memory"

        report = await log.erase(match=secret)

        assert [each.session for each in report.sessions] == ["clerk", "early", "late"]
        assert {each.what for each in report.guessable} == {"section", "tool", "config"}
        assert report.complete
        assert report.remains == report.kept == report.busy == ()
        assert await log.store.search([b"hunter2"]) == []
        assert bytes_left(stores, secret) == []
        await intact(log, report.blobs)
        for name, told in before.items():
            for address, canonical in (await canonicals(log, name)).items():
                touched = name in ("clerk", "late") and "@2" in address
                assert canonical == (None if touched else told[address]), address
        assert dict((await log.start_of("late")).labels) == {"ticket": ERASED, "tenant": "acme"}
    async with stores.log() as log:
        for name in before:
            resumed = await log.resume(name)
            take_turn(resumed)
            await resumed.close()
        await intact(log)
        assert bytes_left(stores, secret) == []


async def test_how_json_spells_it_is_no_matter(stores: Stores) -> None:
    """A text is found in arguments within a message, escaped to ASCII in a tool's answer, and in JSON within that."""
    said = ['{"city": "Zürich/7"}', '{"city": "Z\\u00FCrich\\/7"}', json_of({"a": json_of({"city": "Zürich/7"})})]
    async with stores.log() as log:
        session = await log.create("clerk")
        for number, text in enumerate(said):
            take_turn(session, text)
            session.append(Note(f"n{number}", text))
        await session.erase(match="Zürich/7")
        texts = [message.text for message in session.messages]
        assert texts == [ERASED, "It waits for stock."] * 3
        notes = [each.event.data for each in session.events if isinstance(each.event, Note)]
        assert notes == [ERASED] * 3
        await intact(log)


async def test_names_of_our_own_fields_are_no_content(stores: Stores) -> None:
    """What stands in each message because of how it is kept is not what somebody said."""
    async with stores.log() as log:
        session = await log.create("clerk")
        take_tool_turn(session)
        take_turn(session, "How is my user?")
        report = await log.erase(match="user")
        assert [message.text for message in session.messages].count(ERASED) == 1
        assert report.blobs == 2  # the message, and the digest of the body that it was sent in
        for text in ("content", "tool_calls", "assistant", '{"k":["', "role"):
            assert (await log.erase(match=text)).blobs == 0


async def test_what_is_not_reached_is_told(stores: Stores) -> None:
    """A text in an envelope, where names stand, cannot be taken out: the report says where it is."""
    async with stores.log() as log:
        session = await log.create("clerk", cwd="/home/hunter2")
        ask(session)
        answer(session, "", ToolCall("c", "open_hunter2", "{}"))
        session.append(StepEnd(1, 1))
        session.append(TurnEnd(1, "completed", code="hunter2"))
        report = await session.erase(match="hunter2")
        assert [(each.session, each.seq) for each in report.remains] == [("clerk", 0), ("clerk", 7), ("clerk", 9)]
        assert report.blobs == 1  # the answer, which names the tool as well
        told = " / ".join(report.not_reached)
        assert "3 envelopes" in told
        assert "backups" in told
        assert "exports" in told


# -- by events ---------------------------------------------------------------------------------------------------------


async def test_a_step(stores: Stores) -> None:
    """By address goes what was logged from a step on up to the next: requests that were sent with it cannot be had, and
    a fork that holds the step loses it, too."""
    async with stores.log() as log:
        session = await log.create("clerk")
        for number in range(1, 5):
            take_turn(session, f"question {number}")
        await session.flush()
        fork = await session.fork("@3", id="fork")
        take_turn(fork, "question 4")
        await fork.flush()
        before = {**await canonicals(log, "clerk"), **await canonicals(log, "fork")}
        report = await log.erase("clerk@3")
        assert [each.session for each in report.sessions] == ["clerk", "fork"]
        assert [message.text for message in session.messages][4:6] == [ERASED, ERASED]
        assert [message.text for message in fork.messages][4:6] == [ERASED, ERASED]
        after = {**await canonicals(log, "clerk"), **await canonicals(log, "fork")}
        gone = {address for address, canonical in after.items() if canonical is None}
        assert gone == {f"{name}@{number}/1" for name in ("clerk", "fork") for number in (3, 4)}
        assert {address: after[address] for address in after.keys() - gone} == {
            address: before[address] for address in before.keys() - gone
        }
        assert report.guessable == report.kept == ()  # the header was written in the first step
        await intact(log, report.blobs)


async def test_a_text_that_only_one_step_was_sent_with(stores: Stores) -> None:
    """Of a step that had a section of its own, this section goes; those that other steps have stay."""
    own = replace(HEADER, sections=(*HEADER.sections, "A word for this step."))
    async with stores.log() as log:
        session = await log.create("clerk")
        take_turn(session)
        take_turn(session, header=own)
        take_turn(session)
        await session.flush()
        report = await log.erase("clerk@2")
        assert [(each.what, each.sessions) for each in report.guessable] == [("section", ("clerk",))]
        assert {each.what for each in report.kept} == {"section", "tool", "config"}
        assert [canonical is None for canonical in (await canonicals(log, "clerk")).values()] == [False, True, True]
        assert session.header == HEADER
        await intact(log, report.blobs)


async def test_an_attempt(stores: Stores) -> None:
    """By the address of an attempt goes what was logged of it, as the words of its failure; its step stays."""
    async with stores.log() as log:
        session = await log.create("clerk")
        ask(session)
        session.append(RequestEnded(1, 1, 1, "error", failure=ModelFailure("no such key: hunter2", "auth", 401)))
        attempt(session, number=2)
        session.append(RequestEnded(1, 1, 2, "stop"))
        end(session)
        report = await session.erase("@1.1/1")
        assert report.blobs == 2  # these words, and the digest of its body
        rebuilt = await rebuild(log, "clerk@1/1")
        assert rebuilt.outcome is not None
        assert rebuilt.outcome.failure is not None
        assert (rebuilt.outcome.failure.message, rebuilt.outcome.failure.code) == (ERASED, "auth")
        assert (await rebuild(log, "clerk@1/2", adapter=JsonAdapter())).request == rebuilt.request
        with pytest.raises(ErasedContentError, match="event 5"):
            await rebuild(log, "clerk@1/1", adapter=JsonAdapter())
        with pytest.raises(UnknownAddressError, match="made 2 attempts"):
            await session.erase("@1/3")
        await intact(log, 2)


async def test_a_session(stores: Stores) -> None:
    """By session goes all that it holds; a text that another session needs stays, and the report names both."""
    async with stores.log() as log:
        session, other = await log.create("clerk", labels={"ticket": "4711"}), await log.create("other")
        own = replace(HEADER, sections=("Only mine.", HEADER.sections[0]))
        take_turn(session, header=own)
        take_tool_turn(other)
        await log.flush()
        fork = await session.fork(id="fork")
        whole = await canonicals(log, "other")
        with pytest.raises(UnknownAddressError):
            await log.erase(session="nobody")
        report = await log.erase(session="clerk")
        assert [each.session for each in report.sessions] == ["clerk", "fork"]
        assert dict(session.labels) == dict(fork.labels) == {"ticket": ERASED}
        assert {(each.what, each.sessions) for each in report.kept} == {
            ("section", ("fork",)),
            ("section", ("fork", "other")),
            ("tool", ("fork", "other")),
            ("config", ("fork", "other")),
        }
        report = await log.erase(session="fork")
        assert {(each.what, each.sessions) for each in report.guessable} == {("section", ("clerk", "fork"))}
        assert {each.sessions for each in report.kept} == {("other",)}  # the first session has given them up
        assert await canonicals(log, "other") == whole
        assert set((await canonicals(log, "clerk")).values()) == {None}
        await intact(log)


async def test_by_label(stores: Stores) -> None:
    """By label goes what the sessions hold that bear it; a label that was erased finds nothing any more."""
    async with stores.log() as log:
        for number in ("4711", "4712"):
            session = await log.create(f"s{number}", labels={"ticket": number, "tenant": "acme"})
            take_turn(session)
        report = await log.erase(label={"ticket": "4711", "tenant": "acme"})
        assert [each.session for each in report.sessions] == ["s4711"]
        assert (await log.erase(label={"ticket": "4711"})).blobs == 0
        assert None not in (await canonicals(log, "s4712")).values()
        await intact(log, report.blobs)


async def test_by_age(stores: Stores) -> None:
    """By age goes what was logged before: by a time, or by how long ago."""
    clock = Clock()
    async with stores.log(clock) as log:
        session = await log.create("clerk", labels={"ticket": "4711"})
        take_turn(session, "old")
        clock.now += 10 * 86_400_000
        take_turn(session, "new")
        assert (await log.erase(before=timedelta(days=11))).blobs == 0
        report = await log.keep(9.5)
        assert report.guessable == ()  # the header of the old turn is still in force
        assert [message.text for message in session.messages] == [ERASED, ERASED, "new", "It waits for stock."]
        assert dict(session.labels) == {"ticket": ERASED}
        assert (await log.keep(9.5)).blobs == 0
        for days in (-1.0, float("nan")):
            with pytest.raises(ValueError, match="kept for"):
                await log.keep(days)
        clock.now += 86_400_000_000
        report = await log.keep(0)
        assert {each.what for each in report.guessable} == {"section", "tool", "config"}
        assert session.header is not None
        assert session.header.system == f"{ERASED}\n\n{ERASED}"
        await intact(log)


async def test_what_is_to_go_must_be_said(stores: Stores) -> None:
    """Nothing, two things at once, and what everything would fit, is refused."""
    async with stores.log() as log:
        await log.create("clerk")
        with pytest.raises(TypeError, match="nothing is given"):
            await log.erase()
        with pytest.raises(TypeError, match="session and match is given"):
            await log.erase(session="clerk", match="x")
        with pytest.raises(ValueError, match="match is empty"):
            await log.erase(match="")
        with pytest.raises(ValueError, match="label is empty"):
            await log.erase(label={})


async def test_a_dry_run(stores: Stores) -> None:
    """A dry run tells the same, and changes nothing."""
    async with stores.log() as log:
        session = await log.create("clerk")
        tell_all(session, "hunter2")
        await session.flush()
        head, messages = session.head, session.messages
        told = await log.erase(match="hunter2", dry_run=True)
        assert (session.head, session.messages) == (head, messages)
        report = await log.erase(match="hunter2")
        assert [each.seq for each in told.sessions] == [None]
        assert (told.blobs, told.guessable) == (report.blobs, report.guessable)


# -- who goes on -------------------------------------------------------------------------------------------------------


async def test_a_session_that_is_open_goes_on(stores: Stores) -> None:
    """A live session forgets what it holds in memory; the model sees placeholders from then on, and requests that are
    made with them are rebuilt like any other, while those from before cannot be had."""
    async with stores.log() as log:
        session = await log.create("clerk", labels={"who": "hunter2"})
        tell_all(session, "hunter2")
        ask(session, "still there?", HEADER)
        session.on_append(lambda _: session.events)  # somebody looks on
        report = await session.erase(match="hunter2")
        assert [each.seq for each in report.sessions] == [session.events[-1].seq]
        assert session.messages[0] == UserMessage(ERASED)
        calling, told = session.messages[2], session.messages[3]
        assert calling == AssistantMessage(ERASED, (ToolCall("call-9", "unlock", "{}"),))
        assert told == ToolMessage("call-9", "unlock", ERASED, is_error=True)
        assert "hunter2" not in repr((session.events, session.messages, session.labels, session.header))
        assert session.held_snapshot.text == ERASED
        assert "hunter2" not in repr(await session.read())
        session.append(RequestEnded(2, 1, 1, "stop"))
        request = attempt(session, number=2)
        answer_of_second(session)
        await session.flush()
        assert (await rebuild(log, "clerk@2/2")).canonical == request
        take_turn(session, "hunter2 said again")
        assert (await log.erase(match="hunter2")).blobs == 2  # the message, and a body
        assert (await rebuild(log, "clerk@2/2", adapter=JsonAdapter())).canonical == request
        with pytest.raises(ErasedContentError):
            await rebuild(log, "clerk@2/1")
        await intact(log)


def answer_of_second(session: Session) -> None:
    session.append(RequestEnded(session.turn, 1, 2, "stop"))
    session.append(AssistantSaid(session.turn, 1, AssistantMessage("yes")))
    end(session)


async def test_a_header_of_which_something_was_erased(stores: Stores) -> None:
    """A header goes on with placeholders; the same text, written again, is there again."""
    secret = replace(HEADER, sections=("The code is hunter2.", "Be brief."), stable_head=5)
    async with stores.log() as log:
        session = await log.create("clerk")
        take_turn(session, header=secret)
        await session.erase(match="hunter2")
        left = session.header
        assert left is not None
        assert (left.sections, left.stable_head) == ((ERASED, "Be brief."), 0)
        assert (left.tools, left.config) == (HEADER.tools, CONFIG)
        take_turn(session, header=left)
        await session.flush()
        unwritten = await rebuild(log, "clerk@2")
        assert unwritten.header == left
        await session.close()
    async with stores.log() as log:
        session = await log.resume("clerk")
        assert session.header == left
        take_turn(session, header=secret)
        await session.flush()
        assert (await rebuild(log, "clerk@3")).header == secret
        assert (await rebuild(log, "clerk@2")).canonical == unwritten.canonical
        assert (await log.erase(match="hunter2")).blobs == 2
        with pytest.raises(ErasedContentError):
            await rebuild(log, "clerk@3")
        assert (await rebuild(log, "clerk@2")).canonical == unwritten.canonical
        await intact(log)


async def test_the_places_are_marked_on_request(stores: Stores) -> None:
    """Instead of an error one may have the request with placeholders, and the places by name."""
    async with stores.log() as log:
        session = await log.create("clerk")
        tell_all(session, "hunter2")
        take_turn(session)
        await log.erase(match="hunter2")
        rebuilt = await rebuild(log, "clerk@1/2", if_erased="mark")
        assert rebuilt.erased == ("section 2", "tool 2", "config", "message 1", "message 2")
        assert rebuilt.request.system == f"You are a clerk.\n\n{ERASED}"
        assert [tool.name for tool in rebuilt.request.tools] == ["search", "gone_2"]
        assert rebuilt.explanation is not None
        assert rebuilt.explanation.spans.text == rebuilt.request.system
        assert (await rebuild(log, "clerk@2", if_erased="mark")).erased == (
            "message 1",
            "message 2",
            "message 3",
            "message 4",
        )
        events = [each.event async for each in await log.events("clerk", if_erased="mark")]
        assert "hunter2" not in repr(events)
        with pytest.raises(ErasedContentError):
            [each async for each in await log.events("clerk")]


async def test_a_session_whose_writer_died(stores: Stores) -> None:
    """What a crash left open is erased like the rest, and closed when the session is resumed."""
    async with stores.log() as log:
        session = await log.create("clerk")
        ask(session, "hunter2")
        answer(session, "hunter2", ToolCall("c", "search", '{"q": "hunter2"}'))
        await session.flush()
    async with stores.log() as log:
        await log.erase(match="hunter2")
        view = await log.view("clerk")
        resumed = await log.resume("clerk")
        assert resumed.messages == view.messages
        assert resumed.messages[1] == AssistantMessage(ERASED, (ToolCall("c", "search", "{}"),))
        assert resumed.messages[2].text.startswith("This tool call was not started")
        take_turn(resumed)
        await intact(log)


async def test_a_fork_from_before_an_erasure(stores: Stores) -> None:
    """A session that is forked at a place before its content was erased does not bring it back, and says so itself."""
    async with stores.log() as log:
        session = await log.create("clerk", labels={"who": "hunter2"})
        take_turn(session, "hunter2")
        take_turn(session, "other")
        await session.erase(match="hunter2")
        fork = await session.fork("@1", id="fork")
        assert [message.text for message in fork.messages] == [ERASED, "It waits for stock."]
        assert dict(fork.labels) == {"who": ERASED}
        [erased] = [each.event for each in fork.events if isinstance(each.event, ContentErased)]
        assert len(erased.blobs) == 3
        take_turn(fork)
        assert None not in list((await canonicals(log, "fork")).values())[1:]
        late = await session.fork(id="late")
        assert not any(isinstance(each.event, ContentErased) for each in late.events)
        await intact(log, 4)


DAMAGE = {
    "another text": (
        "UPDATE blob SET body = CAST(replace(body, 'hunter2', 'hunter3') AS BLOB) WHERE {it}",
        "does not match its digest",
    ),
    "another salt": ("UPDATE blob SET salt = zeroblob(16) WHERE {it}", "does not match its digest"),
    "no salt": ("UPDATE blob SET salt = NULL WHERE {it}", "does not match its digest"),
    "emptied by hand": ("UPDATE blob SET body = NULL WHERE {it}", "it is empty, and no event says"),
}


@pytest.mark.parametrize("what", DAMAGE)
@pytest.mark.parametrize("ask_for", [{"match": "hunter"}, {"session": "clerk"}, {"address": "clerk@1"}])
async def test_damage_is_not_erased(tmp_path: Path, what: str, ask_for: dict[str, Any]) -> None:
    """What is not as it was logged is refused and named, else an erasure would make a damaged log an intact one."""
    statement, why = DAMAGE[what]
    it = "salt IS NOT NULL AND instr(CAST(body AS TEXT), 'hunter2')"
    async with open_log(f"sqlite:{tmp_path / 'log.db'}") as log:
        take_turn(await log.create("clerk"), "hunter2")
        await log.create("other")
    with closing(sqlite3.connect(tmp_path / "log.db")) as connection, connection:
        assert connection.execute(statement.format(it=it)).rowcount == 1
    async with open_log(f"sqlite:{tmp_path / 'log.db'}") as log:
        [fault] = [report.fault for report in (await verify(log)).sessions if report.fault]
        if what == "emptied by hand" and "match" in ask_for:
            assert (await log.erase(**ask_for)).blobs == 0  # it is not found any more
        else:
            for dry_run in (True, False):
                with pytest.raises(DamagedLogError, match="log verify") as caught:
                    await log.erase(**ask_for, dry_run=dry_run)
                error = caught.value
                assert (error.session, error.seq, error.blob) == ("clerk", fault.seq, fault.blob)
                assert why in error.why
        assert fault in [report.fault for report in (await verify(log)).sessions]
        assert (await log.erase(session="other")).sessions == ()  # what is well can go


@pytest.mark.parametrize("kind", ["section", "trace"])
async def test_damage_in_a_tree_is_not_erased(tmp_path: Path, kind: str) -> None:
    """The same of texts that sessions share; the error names the event that wrote the header, or the step."""
    prompt, _ = clerk(("You are a clerk.", "The code is hunter2."))
    rendering = prompt.render_sync()
    url = f"sqlite:{tmp_path / 'log.db'}"
    async with open_log(url) as log:
        session = await log.create("clerk")
        session.append(TurnStart(1))
        session.append(StepStart(1, 1, step_trace(rendering)))
        attempt(session, RequestHeader.of(rendering, CONFIG))
    needle = {"section": "The code", "trace": "clerk:section-1"}[kind]
    with closing(sqlite3.connect(tmp_path / "log.db")) as connection, connection:
        found = "salt IS NULL AND instr(CAST(body AS TEXT), ?) AND NOT instr(CAST(body AS TEXT), 'stages')"
        changed = f"UPDATE blob SET body = CAST(body || ' ' AS BLOB) WHERE {found}"
        assert connection.execute(changed, (needle,)).rowcount >= 1
    async with open_log(url) as log:
        for ask_for in ({"match": needle}, {"session": "clerk"}):
            with pytest.raises(DamagedLogError, match="does not match its digest") as caught:
                await log.erase(**ask_for)
            assert caught.value.seq == {"section": 3, "trace": 2}[kind]
        assert not (await verify(log)).intact


@pytest.mark.parametrize("content", ["masked", "digests"])
async def test_what_was_never_stored_is_no_damage(stores: Stores, content: Content) -> None:
    """A log that does not hold all that was said can be erased like any other."""
    prompt = SystemPrompt()
    prompt.variable("code", "hunter2", sensitive=True)
    prompt.section("clerk:rules", "The code is {{code}}.", order=1)
    async with stores.log(content=content) as log:
        session = await log.create("clerk")
        take_turn(session, header=RequestHeader.of(prompt.render_sync(), CONFIG))
        await session.flush()
        assert (await log.erase(session="clerk")).blobs > 0
        await intact(log)


async def test_each_holder_has_to_tell(stores: Stores) -> None:
    """A content that is empty, and only another session tells of its erasure, is damage in this one."""
    async with stores.log() as log:
        session = await log.create("clerk")
        take_turn(session, "hunter2")
        fork = await session.fork(id="fork")
        await log.erase(match="hunter2")
        shelf = await Shelf.of(log.store)
        await fork.close()
    assert (await verify(shelf.log())).intact
    shelf.rows = [
        replace(row, count=11, head=shelf.kept_events["fork"][10].digest) if row.id == "fork" else row
        for row in shelf.rows
    ]
    del shelf.kept_events["fork"][11:]
    told = {report.id: report.fault for report in (await verify(shelf.log())).sessions}
    assert told["clerk"] is None
    assert told["fork"] is not None
    assert (told["fork"].seq, told["fork"].why) == (
        3,
        "it is empty, and no event says that it was erased, or never stored",
    )
    with pytest.raises(DamagedLogError, match="no event says"):
        await rebuild(shelf.log(), "fork@1")


async def test_each_holder_of_a_shared_text_has_to_tell(stores: Stores) -> None:
    """The same of a section: that another session tells of its erasure is no excuse."""
    own = replace(HEADER, sections=("The code is hunter2.",))
    async with stores.log() as log:
        for name in ("a", "b"):
            session = await log.create(name)
            take_turn(session, header=own)
            await session.close()
        await log.erase(match="hunter2")
        shelf = await Shelf.of(log.store)
    for row in shelf.rows:
        events = shelf.kept_events[row.id]
        kept = {**shelf.kept_events, row.id: events[:-1]}
        rows = [replace(each, count=10, head=events[9].digest) if each is row else each for each in shelf.rows]
        told = {
            report.id: report for report in (await verify(replace(shelf, rows=rows, kept_events=kept).log())).sessions
        }
        fault = told.pop(row.id).fault
        assert fault is not None
        assert fault.seq == 4  # its request/header
        assert all(report.intact for report in told.values())


async def test_reading_while_it_is_erased(stores: Stores) -> None:
    """Whoever reads along meets placeholders, or an error that says so, and never takes it for damage."""
    async with stores.log() as log:
        session = await log.create("clerk")
        for number in range(150):
            take_turn(session, f"question {number}")
        await session.flush()
        marking, strict = await log.events("clerk", if_erased="mark"), await log.events("clerk")
        read = [await anext(marking), await anext(strict)]
        await log.erase(match="question 149")
        read += [each async for each in marking]
        assert [each.event for each in read if isinstance(each.event, UserSaid)][-1] == UserSaid(UserMessage(ERASED))
        with pytest.raises(ErasedContentError):
            [each async for each in strict]


# -- others ------------------------------------------------------------------------------------------------------------


async def rows_of(log: Log) -> tuple[object, ...]:
    shelf = await Shelf.of(log.store)
    return shelf.rows, shelf.kept_events, shelf.kept_blobs


async def test_a_live_writer_elsewhere_is_named(stores: Stores) -> None:
    """A session that somebody else is writing holds some of it: nothing changes, and it is named with its process."""
    async with stores.log() as log, stores.log() as elsewhere:
        session = await log.create("clerk")
        take_turn(session, "hunter2")
        await session.fork(id="here")
        there = await session.fork(id="there")
        await there.close()
        await elsewhere.resume("there")
        before = await rows_of(log)
        with pytest.raises(ErasureBlockedError, match='"there" by process') as caught:
            await session.erase(match="hunter2")
        assert caught.value.holders == (("there", os.getpid()),)
        assert pickle.loads(pickle.dumps(caught.value)).holders == caught.value.holders
        assert await rows_of(log) == before
        assert session.messages[0].text == "hunter2"
        await elsewhere.close()
        assert len((await session.erase(match="hunter2")).sessions) == 3  # and what was claimed on the way is free


async def test_waiting_for_a_live_writer(stores: Stores) -> None:
    """With ``wait`` it is done as soon as the others have closed the sessions that hold it."""
    async with stores.log() as log, stores.log() as elsewhere:
        session = await log.create("clerk")
        take_turn(session, "hunter2")
        await session.close()
        there = await elsewhere.resume("clerk")
        reports: list[ErasureReport] = []

        async def erase() -> None:
            reports.append(await log.erase(match="hunter2", wait=True))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(erase)
            await anyio.wait_all_tasks_blocked()
            assert not reports
            take_turn(there, "hunter2 again")
            await there.close()
        assert [each.blobs for each in reports[0].sessions] == [4]  # two messages, two bodies
        await intact(log, 4)


async def test_keeping_passes_over_who_is_busy(stores: Stores) -> None:
    """By age goes what can; what a busy session holds stays, also in the sessions that it came from."""
    clock = Clock()
    async with stores.log(clock) as log, stores.log(clock) as elsewhere:
        session, other = await log.create("clerk"), await log.create("other")
        take_turn(session, "first")
        fork = await session.fork(id="fork")
        await fork.close()
        there = await elsewhere.resume("fork")
        take_turn(session, "second")
        take_turn(other, "third")
        clock.now += 1000
        report = await log.keep(0)
        assert report.busy == (("fork", os.getpid()),)
        assert [each.session for each in report.sessions] == ["clerk", "other"]
        assert [message.text for message in session.messages] == ["first", "It waits for stock.", ERASED, ERASED]
        assert {each.what for each in report.kept} == {"section", "tool", "config"}
        assert "fork" in " / ".join(report.not_reached)
        assert [message.text for message in there.messages] == ["first", "It waits for stock."]
        await intact(log)


class Meanwhile:
    """A store to which something happens just before the next erasure is handed over, or contents are read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.next: Callable[[], Awaitable[None]] | None = None
        self.next_read: Callable[[], Awaitable[None]] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def erase(self, *given: Any, **named: Any) -> Any:
        happens, self.next = self.next, None
        if happens is not None:
            await happens()
        return await self._store.erase(*given, **named)

    async def blobs(self, digests: Iterable[bytes]) -> dict[bytes, BlobRow]:
        happens, self.next_read = self.next_read, None
        if happens is not None:
            await happens()
        return await self._store.blobs(digests)


@asynccontextmanager
async def meanwhile(stores: Stores) -> AsyncIterator[tuple[Meanwhile, Log, Log]]:
    """A store in which something may happen, a log in it, and another one of the same sessions."""
    async with stores.open() as opened, stores.log() as other:
        store: Any = Meanwhile(opened)
        async with open_log(store, clock=Clock()) as log:
            yield store, log, other


async def test_verifying_while_it_is_erased(stores: Stores) -> None:
    """Contents that are emptied after the events were read, and before the contents are, are no damage."""
    async with meanwhile(stores) as (store, log, other):
        await take_and_close(log, "clerk", "hunter2")
        store.next_read = partial(erase_quietly, other)
        await intact(log, 2)
        assert store.next_read is None


async def erase_quietly(log: Log) -> None:
    await log.erase(match="hunter2")


async def test_another_session_comes_to_hold_it(stores: Stores) -> None:
    """While it is worked out what to erase, another session writes the same section, or forks: it is found again."""
    own = replace(HEADER, sections=("The code is hunter2.",))
    async with meanwhile(stores) as (store, log, other):
        session = await log.create("clerk")
        take_turn(session, header=own)
        await session.flush()

        async def written() -> None:
            newcomer = await other.create("newcomer")
            take_turn(newcomer, header=own)
            await newcomer.close()
            fork = await other.fork("clerk", id="fork")
            await fork.close()

        store.next = written
        report = await log.erase(match="hunter2")
        assert [each.session for each in report.sessions] == ["clerk", "fork", "newcomer"]
        assert await log.store.search([b"hunter2"]) == []
        assert sum(isinstance(each.event, ContentErased) for each in session.events) == 1
        await intact(log, report.blobs)


async def test_another_session_comes_to_need_it(stores: Stores) -> None:
    """A section that nobody else needed, and somebody needs just now, is kept."""
    own = replace(HEADER, sections=("Only mine.",))
    async with meanwhile(stores) as (store, log, other):
        session = await log.create("clerk")
        take_turn(session, header=own)
        await session.flush()

        async def written() -> None:
            newcomer = await other.create("newcomer")
            take_turn(newcomer, header=own)
            await newcomer.close()

        store.next = written
        report = await log.erase(session="clerk")
        assert "section" in {each.what for each in report.kept}
        assert report.guessable == ()
        assert None not in (await canonicals(log, "newcomer")).values()
        await intact(log, report.blobs)


async def test_an_agent_that_works_meanwhile(stores: Stores) -> None:
    """A session that is open here may log on while it is erased from; nothing of that is lost or out of order."""
    async with meanwhile(stores) as (store, log, _):
        session = await log.create("clerk")
        take_turn(session, "hunter2")
        await session.flush()

        async def works() -> None:
            take_turn(session, "while it was erased")
            session.append(Note("n"))

        store.next = works
        await log.erase(match="hunter2")
        assert [message.text for message in session.messages][::2] == [ERASED, "while it was erased"]
        assert isinstance(session.events[-1].event, Note)
        take_turn(session)
        await session.flush()
        assert [each.seq for each in await session.read()] == list(range(len(session.events)))
        assert (await rebuild(log, "clerk@2")).request.messages[0] == UserMessage(ERASED)
        await intact(log, 2)


async def test_a_store_that_cannot(stores: Stores) -> None:
    """A store that fails changes nothing on disk; the session goes on, and erasing again does it."""
    async with meanwhile(stores) as (store, log, _):
        session = await log.create("clerk")
        take_turn(session, "hunter2")
        await session.flush()
        before = await rows_of(log)

        async def fails() -> None:
            raise StoreError("a store", "store_full", "is full")

        store.next = fails
        with pytest.raises(StoreError, match="is full"):
            await log.erase(match="hunter2")
        assert await rows_of(log) == before
        take_turn(session)
        await session.flush()
        await intact(log, 0)
        assert (await log.erase(match="hunter2")).blobs == 2
        assert await log.store.search([b"hunter2"]) == []
        await intact(log, 2)


async def test_one_erasure_at_a_time(stores: Stores) -> None:
    """Erasures of one log that are asked for at once come one after the other."""
    async with stores.log() as log:
        for number in range(4):
            await take_and_close(log, f"s{number}", f"secret-{number}")
        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(partial(log.erase, match=f"secret-{number}"))
        await intact(log, 8)


async def take_and_close(log: Log, id: str, text: str) -> None:
    session = await log.create(id)
    take_turn(session, text)
    await session.close()


async def test_a_cancelled_erasure(stores: Stores) -> None:
    """One that is cancelled while it waits for a writer has done nothing, and holds no session."""
    async with stores.log() as log, stores.log() as elsewhere:
        await take_and_close(log, "a", "hunter2")
        await take_and_close(log, "b", "hunter2")
        await elsewhere.resume("b")
        with anyio.move_on_after(0.05) as scope:
            await log.erase(match="hunter2", wait=True)
        assert scope.cancelled_caught
        assert len(await log.store.search([b"hunter2"])) == 2
        await (await elsewhere.resume("a")).close()


# -- files and processes -----------------------------------------------------------------------------------------------

HOLDER = """\
import sys, anyio
from foreword.session import open_log
from tests.session.support import take_turn

async def main():
    async with open_log(f"sqlite:{sys.argv[1]}") as log:
        await log.resume("clerk")
        print("ready", flush=True)
        sys.stdin.readline()

anyio.run(main)
"""


def running(script: str, file: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, str(file)]
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root, text=True)


async def test_another_process_is_named(tmp_path: Path) -> None:
    """The process that writes a session blocks an erasure; when it has ended, the erasure is done."""
    stores = Stores("sqlite", tmp_path)
    async with stores.log() as log:
        await take_and_close(log, "clerk", "hunter2")
        with running(HOLDER, tmp_path / "log.db") as holder:
            assert holder.stdin is not None
            assert holder.stdout is not None
            assert holder.stdout.readline() == "ready\n"
            with pytest.raises(ErasureBlockedError) as caught:
                await log.erase(session="clerk")
            assert caught.value.holders == (("clerk", holder.pid),)
            assert bytes_left(stores, "hunter2")
            holder.stdin.close()
            report = await log.erase(session="clerk", wait=True)
        assert report.complete
        assert bytes_left(stores, "hunter2") == []


async def test_a_reader_of_an_older_state(tmp_path: Path) -> None:
    """While somebody reads an older state of the file, what was erased stands in the write-ahead log still: the report
    says so. When the reader has gone, the next checkpoint ends it."""
    stores = Stores("sqlite", tmp_path)
    async with stores.log() as log:
        await take_and_close(log, "clerk", "hunter2")
        with closing(sqlite3.connect(tmp_path / "log.db", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM blob").fetchone()
            report = await log.erase(match="hunter2")
            assert not report.complete
            assert "write-ahead log" in report.not_reached[0]
            assert await log.store.search([b"hunter2"]) == []
        await (await log.resume("clerk")).close()
        assert await log.store.checkpoint()
        assert bytes_left(stores, "hunter2") == []
        await intact(log, 2)


async def test_an_export_is_not_reached_and_whole(tmp_path: Path) -> None:
    """An export made before an erasure keeps what was erased; one made after has no byte of it, and verifies."""
    stores = Stores("sqlite", tmp_path)
    async with stores.log() as log:
        session = await log.create("clerk")
        take_turn(session, "hunter2")
        await log.export(tmp_path / "before.db")
        await session.erase(match="hunter2")
        await log.export(tmp_path / "after.db")
    assert b"hunter2" in (tmp_path / "before.db").read_bytes()
    assert b"hunter2" not in (tmp_path / "after.db").read_bytes()
    for name, erased in (("before", 0), ("after", 2)):
        async with open_log(f"sqlite:{tmp_path / name}.db", clock=Clock()) as log:
            await intact(log, erased)
            take_turn(await log.resume("clerk"))
