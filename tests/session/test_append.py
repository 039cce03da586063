"""Appending: an event is accepted or refused as a whole, and what is accepted never changes."""

from __future__ import annotations

import dataclasses
import logging
import pickle
from typing import Any

import pytest
from tests.session.support import (
    CONFIG,
    HEADER,
    Clock,
    Stores,
    answer,
    ask,
    attempt,
    end,
    snapshot,
    take_tool_turn,
    take_turn,
)

from foreword import InactiveContextError, NotJsonError, ToolSchema
from foreword.session import (
    AssistantSaid,
    BodyDigest,
    ContentErased,
    Event,
    EventRefusedError,
    HeaderWritten,
    HistoryReplaced,
    LoggedEvent,
    Note,
    RequestAttempted,
    RequestEnded,
    RequestHeader,
    Session,
    SessionStart,
    StepEnd,
    StepStart,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnStart,
    UnknownEvent,
    UserSaid,
)
from foreword.wire.chunks import ModelFailure, Usage
from foreword.wire.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage

pytestmark = pytest.mark.anyio


def facts(session: Session) -> tuple[object, ...]:
    """All that an append can change."""
    return (
        session.head,
        session.turn,
        session.step,
        session.turn_open,
        session.attempt_open,
        session.messages,
        session.header,
        session.held_snapshot,
        session.events,
        session.trace,
    )


async def test_events_are_numbered_and_stamped(stores: Stores) -> None:
    """Numbers have no gaps; times are whole milliseconds of the log's clock and never go back, though the clock does."""
    clock = Clock(5_000)
    async with stores.log(clock) as log:
        session = await log.create()
        assert session.append(TurnStart(1)) == 1
        clock.now = 1_000
        assert session.append(Note("back")) == 2
        clock.now = 9_000
        session.append(Note("on"))
        assert [(each.seq, each.time) for each in session.events] == [(0, 5_001), (1, 5_002), (2, 5_002), (3, 9_001)]
        assert await session.read() == list(session.events)


async def test_a_clock_must_give_whole_milliseconds(stores: Stores) -> None:
    """A clock that gives seconds as a float is refused, rather than logged as something that cannot be read."""
    now: list[Any] = [1_000]
    async with stores.log(lambda: now[0]) as log:
        session = await log.create()
        now[0] = 1.5
        before = facts(session)
        with pytest.raises(EventRefusedError, match="whole milliseconds"):
            session.append(Note("x"))
        assert facts(session) == before


@pytest.mark.parametrize(
    "event",
    [TurnStart(1), UserSaid(UserMessage("x")), Note("n", {"a": [1]}), LoggedEvent(0, 0, TurnStart(1)), HEADER, CONFIG],
)
def test_values_cannot_be_changed(event: object) -> None:
    """Events and what is in them are frozen."""
    for field in dataclasses.fields(event):  # type: ignore[arg-type]
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(event, field.name, None)


def test_notes_and_labels_are_detached() -> None:
    """What an event holds of plain data shares nothing with what was handed over, and cannot be changed in place."""
    data: dict[str, Any] = {"a": [1]}
    note, start = Note("n", data), SessionStart("s", {"ticket": "1"})
    data["a"].append(2)
    assert note.data == {"a": [1]}
    with pytest.raises(TypeError):
        note.data["a"].append(3)  # type: ignore[index, call-overload, union-attr]
    with pytest.raises(TypeError):
        start.labels["ticket"] = "2"  # type: ignore[index]


async def test_the_events_are_a_snapshot(stores: Stores) -> None:
    """`events` and `messages` are tuples that do not grow."""
    async with stores.log() as log:
        session = await log.create()
        events, messages = session.events, session.messages
        session.append(UserSaid(UserMessage("hello")))
        assert (len(events), messages) == (1, ())
        assert (len(session.events), session.messages) == (2, (UserMessage("hello"),))


# -- what may follow what ----------------------------------------------------------------------------------------------

CALL = ToolCall("c", "search", "{}")


def nothing(session: Session) -> None:
    pass


def in_turn(session: Session) -> None:
    session.append(TurnStart(1))


def in_step(session: Session) -> None:
    in_turn(session)
    session.append(StepStart(1, 1))


def in_attempt(session: Session) -> None:
    in_step(session)
    attempt(session)


def with_call(session: Session) -> None:
    in_attempt(session)
    answer(session, "", CALL)


def with_running_call(session: Session) -> None:
    with_call(session)
    session.append(ToolCalled(1, 1, CALL))


def with_answer(session: Session) -> None:
    with_running_call(session)
    session.append(ToolAnswered(1, 1, ToolMessage("c", "search", "found")))


REFUSED: list[tuple[Any, Event, str]] = [
    (nothing, TurnStart(2), "the next turn is 1"),
    (nothing, TurnEnd(1, "completed"), "turn 1 is not open"),
    (nothing, StepStart(1, 1), "turn 1 is not open"),
    (nothing, HeaderWritten(HEADER, "initial"), "no step is open"),
    (nothing, AssistantSaid(1, 1, AssistantMessage("x")), "step 1 of turn 1 is not open"),
    (in_turn, TurnStart(2), "turn 1 is still open"),
    (in_turn, TurnEnd(2, "completed"), "turn 2 is not open"),
    (in_turn, StepStart(1, 2), "the next step of turn 1 is 1"),
    (in_turn, StepStart(2, 1), "turn 2 is not open"),
    (in_turn, StepEnd(1, 1), "step 1 of turn 1 is not open"),
    (in_step, StepStart(1, 2), "step 1 is still open"),
    (in_step, TurnEnd(1, "completed"), "step 1 is still open"),
    (in_step, StepEnd(1, 2), "step 2 of turn 1 is not open"),
    (in_step, RequestAttempted(1, 1, 1), "no header was written"),
    (in_step, RequestEnded(1, 1, 1, "stop"), "attempt 1 is not open"),
    (in_step, HeaderWritten(HEADER, "change"), '"initial"'),
    (in_attempt, HeaderWritten(HEADER, "initial"), '"initial"'),
    (in_attempt, StepEnd(1, 1), "attempt 1 has no outcome"),
    (in_attempt, RequestAttempted(1, 1, 2), "attempt 1 has no outcome"),
    (in_attempt, RequestEnded(1, 1, 2, "stop"), "attempt 2 is not open"),
    (with_call, RequestAttempted(1, 1, 3), "the next attempt of the step is 2"),
    (with_call, RequestAttempted(1, 1, 2, header=bytes(32)), "not the request that follows"),
    (with_call, RequestAttempted(1, 1, 2, history=bytes(32)), "not the request that follows"),
    (with_call, RequestAttempted(1, 1, 2, request=bytes(32)), "not the request that follows"),
    (with_call, RequestAttempted(1, 1, 2, header=b"short"), "not the request that follows"),
    (with_call, ToolCalled(1, 1, ToolCall("other", "search", "{}")), 'no call "other"'),
    (with_call, ToolAnswered(1, 1, ToolMessage("other", "search", "x")), 'no call "other"'),
    (with_call, ToolAnswered(1, 2, ToolMessage("c", "search", "x")), "step 2 of turn 1 is not open"),
    (with_running_call, ToolCalled(1, 1, CALL), 'no call "c"'),
    (with_answer, ToolAnswered(1, 1, ToolMessage("c", "search", "again")), 'no call "c"'),
    (with_call, HistoryReplaced(0, 0, UserMessage("sum")), 'part tool call "c"'),
    (with_answer, HistoryReplaced(0, 0, UserMessage("sum")), 'part tool call "c"'),
    (with_answer, HistoryReplaced(1, 1, UserMessage("sum")), 'part tool call "c"'),
    (with_answer, HistoryReplaced(0, 2, UserMessage("sum")), "2 messages"),
    (with_answer, HistoryReplaced(1, 0, UserMessage("sum")), "no stretch"),
    (nothing, HistoryReplaced(0, 0, UserMessage("sum")), "0 messages"),
    (nothing, SessionStart("x"), "writes these itself"),
    (nothing, ContentErased((bytes(32),)), "writes these itself"),
    (nothing, UnknownEvent("plugin/thing"), "writes these itself"),
]


@pytest.mark.parametrize(("before", "event", "why"), REFUSED)
async def test_what_does_not_fit_is_refused(stores: Stores, before: Any, event: Event, why: str) -> None:
    """An event that does not fit is refused with the session, the event and the reason, and leaves no trace."""
    async with stores.log() as log:
        session = await log.create("clerk")
        before(session)
        was = facts(session)
        with pytest.raises(EventRefusedError) as caught:
            session.append(event)
        assert 'session "clerk" refuses' in str(caught.value)
        assert why in str(caught.value)
        assert facts(session) == was
        copy = pickle.loads(pickle.dumps(caught.value))
        assert (str(copy), copy.session) == (str(caught.value), "clerk")


UNSTORABLE: list[tuple[Event, str]] = [
    (UserSaid(UserMessage("half \ud800")), "surrogate"),
    (UserSaid(UserMessage(5)), "str"),  # type: ignore[arg-type]
    (UserSaid(AssistantMessage("x")), "no UserMessage"),  # type: ignore[arg-type]
    (UserSaid(None), "no UserMessage"),  # type: ignore[arg-type]
    (AssistantSaid(1, 1, UserMessage("x")), "no AssistantMessage"),  # type: ignore[arg-type]
    (AssistantSaid(1, 1, AssistantMessage("x", (ToolCall("c", "t", {}),))), "str"),  # type: ignore[arg-type]
    (ToolAnswered(1, 1, AssistantMessage("x")), "no ToolMessage"),  # type: ignore[arg-type]
    (StepStart(1, 2, 5), "no StepTrace"),  # type: ignore[arg-type]
    (RequestAttempted(1, 1, 1, 5), "no BodyDigest"),  # type: ignore[arg-type]
    (RequestEnded(1, 1, 1, "stop", 5), "no Usage"),  # type: ignore[arg-type]
    (RequestEnded(1, 1, 1, "error", failure="down"), "no ModelFailure"),  # type: ignore[arg-type]
    (RequestEnded(1, 1, 1, "stop", timings=0.5), "no Timings"),  # type: ignore[arg-type]
    (HistoryReplaced(0, 0, "text"), "no message"),  # type: ignore[arg-type]
    (RequestEnded(1, 1, 1, "stop", Usage(-1, 0)), ">= 0"),
    (RequestEnded(1, 1, 1, "stop", Usage(2**53, 0)), "<="),
    (
        RequestEnded(1, 1, 1, "well"),
        'request/outcome: its finish is "well"; it is one of stop, tool-calls, max-tokens,',
    ),  # type: ignore[arg-type]
    (RequestEnded(1, 1, 1, "error", failure=ModelFailure("x", "y", retry_after=float("nan"))), "nan"),
    (RequestAttempted(1, 1, 1, BodyDigest("json", "1", b"short")), "5 bytes"),
    (RequestAttempted(1, 1, 1, BodyDigest(5, "1", bytes(32))), "str"),  # type: ignore[arg-type]
    (RequestAttempted(1, 1, True), "int"),
    (RequestAttempted(1, 1, 1, header="no bytes"), "hex"),  # type: ignore[arg-type]
    (TurnEnd(1, "error", 5), "no string"),  # type: ignore[arg-type]
    (
        TurnEnd(1, "bored"),
        'refuses turn/end: its reason is "bored"; it is one of completed, blocked, max-tokens, aborted,',
    ),  # type: ignore[arg-type]
    (TurnEnd("1", "completed"), "refuses turn/end: its turn is wrong: expected int, got str"),  # type: ignore[arg-type]
    (HeaderWritten(HEADER, "bored"), 'its reason is "bored"; it is one of initial, resume, change'),  # type: ignore[arg-type]
    (HeaderWritten(HEADER, "initial", ("mood",)), 'is "mood"; it is one of config, sections, tools'),  # type: ignore[arg-type]
    (StepStart(1, True), "int"),
    (StepStart(1, "1"), "int"),  # type: ignore[arg-type]
    (HeaderWritten("header", "initial"), "no RequestHeader"),  # type: ignore[arg-type]
    (HeaderWritten(RequestHeader(CONFIG, ("\udfff",), ()), "initial"), "surrogate"),
    (HeaderWritten(RequestHeader(CONFIG, (5,), ()), "initial"), "no string"),  # type: ignore[arg-type]
    (HeaderWritten(RequestHeader(CONFIG, (), ("tool",)), "initial"), "no ToolSchema"),  # type: ignore[arg-type]
    (HeaderWritten(RequestHeader(CONFIG, (), (ToolSchema("\ud800", "", {}),)), "initial"), "surrogate"),
    ("not an event", "cannot be appended"),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("event", "why"), UNSTORABLE)
async def test_what_cannot_be_read_again_is_refused(stores: Stores, event: Event, why: str) -> None:
    """An event that holds what could not be stored, or not be read again, is refused whole."""
    async with stores.log() as log:
        session = await log.create()
        in_step(session)
        was = facts(session)
        with pytest.raises(EventRefusedError, match=why):
            session.append(event)
        assert facts(session) == was


@pytest.mark.parametrize("value", [float("inf"), {1: 2}, 2**53, -0.0, (1,), {"a": {"b": object()}}])
def test_a_note_holds_json_only(value: Any) -> None:
    """Data that JSON cannot keep is refused where the note is made, naming the place in it."""
    with pytest.raises(NotJsonError):
        Note("n", value)


async def test_what_a_session_cannot_begin_with(stores: Stores) -> None:
    """Labels that are no strings, and a folder without an absolute path, are refused; nothing is begun."""
    async with stores.log() as log:
        for labels in ({"ticket": 4711}, {"ticket": None}, {"ticket": "\ud800"}):
            with pytest.raises((EventRefusedError, NotJsonError)):
                await log.create("clerk", labels=labels)  # type: ignore[arg-type]
        with pytest.raises(EventRefusedError, match='the folder "orders" is no absolute path'):
            await log.create("clerk", cwd="orders")
        assert (await log.create("clerk", labels={"ticket": "4711"}, cwd="/orders")).cwd == "/orders"


# -- observers ---------------------------------------------------------------------------------------------------------


async def test_observers_are_told_of_what_was_accepted(stores: Stores, caplog: pytest.LogCaptureFixture) -> None:
    """Observers hear each accepted event once, in order; one that fails is logged and disturbs neither log nor others."""
    heard: list[LoggedEvent] = []

    def fails(event: LoggedEvent) -> None:
        raise RuntimeError("no room")

    async with stores.log() as log:
        session = await log.create("clerk")
        session.on_append(fails)
        stop = session.on_append(heard.append)
        session.append(TurnStart(1))
        with pytest.raises(EventRefusedError):
            session.append(TurnStart(1))
        session.append(Note("n"))
        stop()
        stop()
        session.append(Note("unheard"))
        assert heard == list(session.events[1:3])
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 3
    assert "session clerk failed at event 1" in caplog.text


async def test_an_observer_may_not_append(stores: Stores) -> None:
    """An append from inside an observer is refused: the events behind it would be out of order for the others."""
    refused: list[str] = []

    async with stores.log() as log:
        session = await log.create()

        def echoes(event: LoggedEvent) -> None:
            try:
                session.append(Note("echo"))
            except EventRefusedError as error:
                refused.append(str(error))

        session.on_append(echoes)
        session.append(Note("n"))
        session.append(Note("m"))
        assert [each.event for each in session.events[1:]] == [Note("n"), Note("m")]
        assert len(refused) == 2
        assert "when it has returned" in refused[0]


# -- what follows from the events --------------------------------------------------------------------------------------


async def test_the_history_is_what_was_said(stores: Stores) -> None:
    """User, assistant and tool messages join the history in order; an empty answer does not."""
    async with stores.log() as log:
        session = await log.create()
        take_tool_turn(session)
        ask(session, "And?")
        answer(session, "")
        end(session)
        assert session.messages == (
            UserMessage("Where is it?"),
            AssistantMessage("", (ToolCall("call-1", "search", '{"id": "4711"}'),)),
            ToolMessage("call-1", "search", "In Hamburg."),
            AssistantMessage("In Hamburg."),
            UserMessage("And?"),
        )


async def test_compaction(stores: Stores) -> None:
    """A message takes the place of a stretch; one tool answer may be replaced by a shorter one to the same call."""
    async with stores.log() as log:
        session = await log.create()
        take_tool_turn(session)
        session.replace_history(2, 2, ToolMessage("call-1", "search", "(found)"))
        assert session.messages[2] == ToolMessage("call-1", "search", "(found)")
        session.replace_history(0, 2, UserMessage("It is in Hamburg."))
        assert session.messages == (UserMessage("It is in Hamburg."), AssistantMessage("In Hamburg."))


async def test_call_ids_may_come_again(stores: Stores) -> None:
    """A model that numbers its calls anew in each step, or gives two calls one id, is taken as it is."""
    async with stores.log() as log:
        session = await log.create()
        take_tool_turn(session)
        take_tool_turn(session, "And now?")
        session.replace_history(0, 3, UserMessage("sum"))
        turn, step = ask(session, "Twice?")
        twins = ToolCall("", "search", "1"), ToolCall("", "search", "2")
        answer(session, "", *twins)
        for twin in twins:
            session.append(ToolCalled(turn, step, twin))
        for text in ("first", "second"):
            session.append(ToolAnswered(turn, step, ToolMessage("", "search", text)))
        end(session)


async def test_which_snapshot_is_held(stores: Stores) -> None:
    """Never, held with its text, none once a compaction took it; the newest counts, other compactions change nothing."""
    async with stores.log() as log:
        session = await log.create()
        assert session.held_snapshot.state == "never"
        session.append(UserSaid(UserMessage("hello")))
        session.append(snapshot("branch: main"))
        session.append(UserSaid(UserMessage("what now?")))
        session.append(snapshot("branch: fix"))
        assert (session.held_snapshot.state, session.held_snapshot.text) == ("held", "branch: fix")
        session.replace_history(0, 1, UserMessage("summary"))
        assert session.held_snapshot.text == "branch: fix"
        session.replace_history(0, 2, UserMessage("branch: fix"))
        assert (session.held_snapshot.state, session.held_snapshot.text) == ("none", None)


async def test_a_closed_session_takes_nothing(stores: Stores) -> None:
    """Appending, flushing and observing raise once it is closed, and say what to do; what was logged can be read."""
    async with stores.log() as log:
        session = await log.create()
        take_turn(session)
        await session.close()
        await session.close()
        for call in (lambda: session.append(Note("n")), lambda: session.on_append(print)):
            with pytest.raises(InactiveContextError, match="resume it"):
                call()
        with pytest.raises(InactiveContextError, match="resume it"):
            await session.flush()
        assert await session.read() == list(session.events)
