"""Resuming: a session goes on where it was, in the same state, whatever a crash left open."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.session.support import (
    HEADER,
    Clock,
    Shelf,
    Stores,
    answer,
    ask,
    attempt,
    snapshot,
    take_tool_turn,
    take_turn,
)

from foreword.errors import ForewordError
from foreword.session import (
    REQUEST_OUTCOME_UNKNOWN,
    TOOL_NOT_STARTED,
    TOOL_OUTCOME_UNKNOWN,
    DamagedLogError,
    Event,
    HeaderWritten,
    Log,
    NewerLogError,
    Note,
    RequestEnded,
    Session,
    SessionFencedError,
    StepEnd,
    StepStart,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnStart,
    UnknownAddressError,
    UnknownEvent,
    UserSaid,
    open_log,
    repair,
    verify,
)
from foreword.session.digests import event_digest
from foreword.session.store import EventRow
from foreword.wire.messages import ToolCall, ToolMessage, UserMessage
from foreword.wire.request import ModelConfig

pytestmark = pytest.mark.anyio


def facts(session: Session) -> tuple[object, ...]:
    """What a session is about to go on with."""
    return (
        session.id,
        session.head,
        session.cwd,
        session.labels,
        session.turn,
        session.step,
        session.turn_open,
        session.messages,
        session.header,
        session.held_snapshot,
    )


async def killed(stores: Stores, script: Callable[[Session], None]) -> Session:
    """A session that is flushed and then not heard of again, as when its process is killed."""
    async with stores.log() as log:
        session = await log.create("clerk", labels={"ticket": "4711"}, cwd="/orders")
        script(session)
        await session.flush()
        return session


def compacted_snapshots(session: Session) -> None:
    session.append(snapshot("branch: main"))
    take_turn(session)
    session.append(snapshot("branch: fix"))
    session.replace_history(3, 3, UserMessage("branch: main"))


def old_snapshot_compacted(session: Session) -> None:
    session.append(snapshot("branch: main"))
    session.append(snapshot("branch: fix"))
    session.replace_history(0, 0, UserMessage("earlier"))


SCRIPTS: list[Callable[[Session], None]] = [
    take_turn,
    take_tool_turn,
    lambda session: session.append(snapshot("branch: main", "main")) and None,
    compacted_snapshots,
    old_snapshot_compacted,
    lambda session: session.append(Note("n")) and None,
]


@pytest.mark.parametrize("script", SCRIPTS)
async def test_a_resumed_session_is_the_live_one(stores: Stores, script: Callable[[Session], None]) -> None:
    """History, header, held snapshot, labels, numbers and head are those of the session when it was closed."""
    live = await killed(stores, script)
    async with stores.log() as log:
        resumed = await log.resume("clerk")
        assert facts(resumed) == facts(live)
        assert resumed.events == ()
        assert await resumed.read() == list(live.events)
        view = await log.view("clerk")
        assert view.repaired == ()
        assert (view.messages, view.header, view.held_snapshot) == facts(live)[-3:]
        take_turn(resumed)
        assert resumed.turn == live.turn + 1
        await resumed.flush()
        assert (await verify(log)).intact


async def test_the_header_is_the_same_to_the_key(stores: Stores) -> None:
    """A header read back equals the one that was written in the order of its keys, so nothing looks changed."""
    await killed(stores, take_turn)
    async with stores.log() as log:
        resumed = await log.resume("clerk")
        assert resumed.header == HEADER
        assert resumed.header is not HEADER
        ask(resumed)
        assert not any(isinstance(each.event, HeaderWritten) for each in resumed.events)


async def test_what_drifted_is_logged(stores: Stores) -> None:
    """The header that a resumed session goes on with is today's; the log says in which parts it differs from before."""
    await killed(stores, take_turn)
    poet = replace(HEADER, sections=("You are a poet.",), tools=())
    async with stores.log() as log:
        resumed = await log.resume("clerk")
        resumed.append(TurnStart(2))
        resumed.append(StepStart(2, 1))
        attempt(resumed, HEADER, reason="resume")
        resumed.append(RequestEnded(2, 1, 1, "error"))
        attempt(resumed, poet, 2, reason="resume")
        resumed.append(RequestEnded(2, 1, 2, "error"))
        attempt(resumed, replace(poet, config=ModelConfig("p", "m")), 3)
        await resumed.flush()
        written = [each.event for each in await resumed.read() if isinstance(each.event, HeaderWritten)]
        assert [(each.reason, each.drift) for each in written] == [
            ("initial", ()),
            ("resume", ()),
            ("resume", ("sections", "tools")),
            ("change", ()),
        ]
        assert resumed.header == written[-1].header


# -- repair ------------------------------------------------------------------------------------------------------------

ONE, TWO = ToolCall("one", "search", "{}"), ToolCall("two", "search", "{}")


def in_turn(session: Session) -> None:
    session.append(TurnStart(1))


def in_step(session: Session) -> None:
    in_turn(session)
    session.append(StepStart(1, 1))
    session.append(snapshot("branch: main"))


def in_attempt(session: Session) -> None:
    in_step(session)
    attempt(session)


def in_second_attempt(session: Session) -> None:
    in_attempt(session)
    session.append(RequestEnded(1, 1, 1, "error"))
    attempt(session, number=2)


def before_calls(session: Session) -> None:
    in_attempt(session)
    answer(session, "", ONE, TWO)


def in_call(session: Session) -> None:
    before_calls(session)
    session.append(ToolCalled(1, 1, TWO))


def between_calls(session: Session) -> None:
    in_call(session)
    session.append(ToolAnswered(1, 1, ToolMessage("two", "search", "found")))


def after_step(session: Session) -> None:
    in_attempt(session)
    answer(session)
    session.append(StepEnd(1, 1))


def kinds(events: tuple[Event, ...] | list[Event]) -> list[str]:
    told = [getattr(each, "code", None) or getattr(getattr(each, "failure", None), "code", None) for each in events]
    return [code or type(each).__name__ for code, each in zip(told, events, strict=True)]


OPEN: list[tuple[Callable[[Session], None], list[str]]] = [
    (in_turn, ["TurnEnd"]),
    (in_step, ["StepEnd", "TurnEnd"]),
    (in_attempt, [REQUEST_OUTCOME_UNKNOWN, "StepEnd", "TurnEnd"]),
    (in_second_attempt, [REQUEST_OUTCOME_UNKNOWN, "StepEnd", "TurnEnd"]),
    (before_calls, [TOOL_NOT_STARTED, TOOL_NOT_STARTED, "StepEnd", "TurnEnd"]),
    (in_call, [TOOL_NOT_STARTED, TOOL_OUTCOME_UNKNOWN, "StepEnd", "TurnEnd"]),
    (between_calls, [TOOL_NOT_STARTED, "StepEnd", "TurnEnd"]),
    (after_step, ["TurnEnd"]),
]


@pytest.mark.parametrize(("script", "closers"), OPEN)
async def test_what_a_crash_left_open_is_closed(
    stores: Stores, script: Callable[[Session], None], closers: list[str]
) -> None:
    """Missing answers and outcomes are told as unknown, open steps and turns are ended, at the time of the last event;
    what really happened stays."""
    live = await killed(stores, script)
    async with stores.log(Clock(2_000_000_000_000)) as log:
        view = await log.view("clerk")
        assert [info.events for info in await log.sessions()] == [len(live.events)]  # a reader writes nothing
        resumed = await log.resume("clerk")
        assert kinds([each.event for each in resumed.events]) == closers
        assert {each.time for each in resumed.events} == {live.events[-1].time}
        assert resumed.events == view.repaired
        assert [each async for each in view.events()] == [*live.events, *view.repaired]
        assert view.messages == resumed.messages
        assert resumed.messages[: len(live.messages)] == live.messages
        assert resumed.held_snapshot == live.held_snapshot
        assert not resumed.turn_open
        last = resumed.events[-1].event
        assert last == TurnEnd(1, "interrupted")
        info = (await log.sessions())[-1]
        assert (info.head, info.events) == (resumed.head, len(live.events) + len(closers))  # it is durable
        await resumed.close()
        again = await log.resume("clerk")
        assert again.events == ()
        take_turn(again)
        await again.flush()
        assert (await verify(log)).intact


@pytest.mark.parametrize(("script", "closers"), OPEN)
async def test_repair_is_pure(stores: Stores, script: Callable[[Session], None], closers: list[str]) -> None:
    """The same events give the same repair, a repaired session needs none, and the whole log tells no more than its
    last turn."""
    live = await killed(stores, lambda session: (take_turn(session), None)[1])
    async with stores.log() as log:
        session = await log.create()
        script(session)
        made = repair(session.events)
        assert kinds(list(made)) == closers
        assert repair(session.events) == made
        for event in made:
            session.append(event)
        assert repair(session.events) == ()
    assert repair(live.events) == repair(()) == ()


async def test_the_model_is_told_what_is_unknown(stores: Stores) -> None:
    """The answers that repair makes are errors in the history, each in its call's name, and say what may be done."""
    await killed(stores, in_call)
    async with stores.log() as log:
        resumed = await log.resume("clerk")
        first, second = resumed.messages[-2:]
        assert isinstance(first, ToolMessage)
        assert isinstance(second, ToolMessage)
        assert (first.call_id, first.name, first.is_error) == ("one", "search", True)
        assert "not started" in first.text
        assert (second.call_id, second.is_error) == ("two", True)
        assert "Call the tool again only if" in second.text


# -- what cannot be resumed --------------------------------------------------------------------------------------------


async def tampered(stores: Stores, change: Callable[[dict[str, object]], None]) -> Log:
    """A log whose last event was written anew, chain and all, as by another version."""
    await killed(stores, take_turn)
    async with stores.log() as log:
        shelf = await Shelf.of(log.store)
    events = shelf.kept_events["clerk"]
    envelope = json.loads(events[-1].envelope)
    change(envelope)
    body = json.dumps(envelope, separators=(",", ":")).encode()
    events[-1] = EventRow(events[-1].seq, body, event_digest(events[-2].digest, body))
    shelf.rows = [replace(row, head=events[-1].digest) for row in shelf.rows]
    return shelf.log()


FOREIGN: list[tuple[dict[str, object], type[ForewordError], str]] = [
    ({"v": 2}, NewerLogError, "version 2"),
    ({"v": 2, "crc": 17}, NewerLogError, "version 2"),
    ({"type": "plugin/thing"}, NewerLogError, 'unknown type "plugin/thing"'),
    ({"type": "plugin/thing", "ignorable": False}, NewerLogError, "upgrade this one"),
    ({"crc": 17}, DamagedLogError, "crc"),
    ({"seq": 3}, DamagedLogError, "it says that it is event 3"),
    ({"time": 5}, DamagedLogError, "its time is before"),
    ({"epoch": 0}, DamagedLogError, "its epoch is before"),
    ({"data": {"turn": 1, "reason": "completed", "mood": "good"}}, DamagedLogError, "mood"),
    ({"data": {"turn": 7, "reason": "completed"}}, DamagedLogError, "turn 7 is not open"),
    ({"refs": {"message": "00" * 32}}, DamagedLogError, "it refers to"),
    ({"refs": {"detail": "00"}}, DamagedLogError, "regex"),
]


@pytest.mark.parametrize(("changes", "error", "why"), FOREIGN)
async def test_what_this_version_does_not_know(
    stores: Stores, changes: dict[str, object], error: type[ForewordError], why: str
) -> None:
    """A newer format or an unknown type is refused, with the event; so is what no version would have written."""
    log = await tampered(stores, lambda envelope: envelope.update(changes))
    with pytest.raises(error, match=why) as caught:
        await log.view("clerk")
    assert getattr(caught.value, "seq", None) == 9
    [report] = (await verify(log)).sessions
    assert report.fault is not None
    assert report.fault.seq == 9


async def test_what_may_be_ignored_is(stores: Stores) -> None:
    """An unknown event that is marked as ignorable is passed over, and can be seen."""

    def make_ignorable(envelope: dict[str, object]) -> None:
        envelope.update({"type": "plugin/thing", "data": {"any": [1]}, "ignorable": True})

    log = await tampered(stores, make_ignorable)
    view = await log.view("clerk")
    assert view.messages
    events = [each async for each in view.events()]
    assert events[9].event == UnknownEvent("plugin/thing")
    assert (await verify(log)).intact


async def test_which_session_is_meant(stores: Stores) -> None:
    """An id may be cut to what is unique, `last` is the session with the newest event; what is meant is told otherwise."""
    async with stores.log() as log:
        with pytest.raises(UnknownAddressError, match="there is no session yet"):
            await log.view("last")
        for name in ("abc", "abe", "ab"):
            session = await log.create(name)
            take_turn(session)
            await session.close()
        assert (await log.view("abe")).id == (await log.view("abe")).id == "abe"
        assert (await log.view("ab")).id == "ab"  # a whole id goes before a beginning
        assert (await log.view("last")).id == "ab"
        assert (await log.resume("abc")).append(Note("n")) == 10
        await log.close()
    async with stores.log() as log:
        assert (await log.view("last")).id == "abc"
        with pytest.raises(UnknownAddressError, match=r"3 sessions begin with it: .*write more of it"):
            await log.view("a")
        with pytest.raises(UnknownAddressError, match='did you mean "ab"'):
            await log.resume("abx")


async def test_last_is_no_id(stores: Stores) -> None:
    """No session can be called `last`, nor by what an address could not hold."""
    async with stores.log() as log:
        for name in ("last", "", "-a", "a b", "a@1", "a/1", "ä", "a" * 129):
            with pytest.raises(ForewordError, match="no id for a session"):
                await log.create(name)
        assert len({(await log.create()).id for _ in range(20)}) == 20


async def refused(session: Session) -> list[tuple[int, int]]:
    """The epochs that a flush and an append tell of that are refused, of the writer and of the session."""
    told: list[tuple[int, int]] = []
    try:
        await session.flush()
    except SessionFencedError as error:
        told.append((error.epoch, error.now))
    try:
        session.append(UserSaid(UserMessage("lost")))
    except SessionFencedError as error:
        told.append((error.epoch, error.now))
    return told


async def test_a_writer_that_was_fenced_off_takes_no_more(stores: Stores) -> None:
    """Once a flush has found that the session was taken over, nothing is accepted that could not be written; leaving the
    log tells what is lost."""
    async with stores.open() as store, open_log(store, clock=Clock()) as other:
        log = open_log(store, clock=Clock())
        session = await log.create("clerk")
        take_turn(session)
        await session.flush()
        taken = await other.resume("clerk", take_over=True)
        session.append(TurnStart(2))  # nobody has told it yet
        for _ in range(2):
            assert await refused(session) == [(1, 2)] * 2
        assert type(session.events[-1].event) is TurnStart
        with pytest.raises(ExceptionGroup) as caught:
            await log.close()
        assert [type(each) for each in caught.value.exceptions] == [SessionFencedError]
        take_turn(taken)
        await taken.flush()
        assert (await verify(other)).intact


async def test_taken_over_from_oneself(stores: Stores) -> None:
    """A session that its own log resumes anew takes no more at once; what it had not flushed is told when the log ends."""
    async with stores.open() as store:
        log = open_log(store, clock=Clock())
        old, idle = await log.create("clerk"), await log.create("idle")
        take_turn(old)
        await log.flush()
        old.append(TurnStart(2))
        for session in (old, idle):
            await log.resume(session.id, take_over=True)
            assert await refused(session) == [(1, 2)] * 2
        await idle.close()  # loses nothing
        with pytest.raises(ExceptionGroup) as caught:
            await log.close()
        assert [type(each) for each in caught.value.exceptions] == [SessionFencedError]
