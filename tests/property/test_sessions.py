"""Whatever is logged comes back: any valid course of events, through flushes, crashes, resumes and forks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.session.support import CONFIG, HEADER, SEARCH, Clock, attempt, snapshot

from foreword import ToolSchema
from foreword.jsonvalue import MAX_INTEGER
from foreword.session import (
    AssistantSaid,
    EventRefusedError,
    Log,
    LoggedEvent,
    Note,
    RequestEnded,
    RequestHeader,
    Session,
    StepEnd,
    StepStart,
    Timings,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnStart,
    UserSaid,
    open_log,
    rebuild,
    repair,
    verify,
)
from foreword.testing.memory_store import MemoryStore
from foreword.wire.chunks import ModelFailure, Usage
from foreword.wire.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from foreword.wire.request import ModelConfig

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.integers(-MAX_INTEGER, MAX_INTEGER) | st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda number: str(number) != "-0.0"
)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=3)
configs = st.just(CONFIG) | st.builds(ModelConfig, st.just("p"), st.just("m"), objects)
tools = st.just(SEARCH) | st.builds(ToolSchema, texts, texts, objects)
headers = st.just(HEADER) | st.builds(
    RequestHeader, configs, st.lists(texts, max_size=12).map(tuple), st.lists(tools, max_size=3).map(tuple)
)
usages = st.none() | st.builds(Usage, st.integers(0, MAX_INTEGER), st.integers(0, 9), st.none() | st.integers(0, 9))
failures = st.builds(
    ModelFailure, texts, texts, st.none() | st.integers(0, 999), st.booleans(), st.none() | st.floats(0, 1e9)
)
calls = st.lists(st.builds(ToolCall, st.sampled_from("abc"), texts, texts), max_size=3).map(tuple)


@dataclass
class Course:
    """One session on its course, and what was sent and logged in it."""

    draw: Any
    store: MemoryStore = field(default_factory=MemoryStore)
    clock: Clock = field(default_factory=Clock)
    sent: list[tuple[int, bytes]] = field(default_factory=list)  # number of the attempt's event, canonical bytes
    logged: list[LoggedEvent] = field(default_factory=list)  # before the session was opened last
    asked: list[ToolCall] = field(default_factory=list)  # without an answer
    running: list[ToolCall] = field(default_factory=list)

    async def run(self) -> None:
        self.log = open_log(self.store, clock=self.clock)
        self.session = await self.log.create(labels=self.draw(st.dictionaries(texts, texts, max_size=2)))
        for _ in range(self.draw(st.integers(1, 80))):
            self.clock.now += self.draw(st.integers(-5, 5))
            step = self.draw(st.sampled_from(self.possible()))
            await step()
        await self.check()
        await self.log.close()

    # -- what may come next --------------------------------------------------------------------------------------------

    def possible(self) -> list[Any]:
        """What may come next; what carries the course on is listed as often as all else together."""
        session = self.session
        always = [self.say, self.say_snapshot, self.note, self.compact, self.flush, self.crash, self.resume]
        if not session.turn_open:
            on = [self.start_turn]
            always.append(self.fork)
        elif not session.step_open:
            on = [self.start_step, self.start_step, self.end_turn]
        elif session.attempt_open:
            on = [self.end_attempt]
        elif self.asked:
            on = [self.call, self.tell, self.end_step]
        else:
            on = [self.attempt, self.answer, self.end_step]
        return always + on * (2 * len(always) // len(on))

    async def start_turn(self) -> None:
        self.session.append(TurnStart(self.session.turn + 1))

    async def end_turn(self) -> None:
        reason = self.draw(st.sampled_from(["completed", "blocked", "max-tokens", "aborted", "error"]))
        self.session.append(TurnEnd(self.session.turn, reason, self.draw(texts), self.draw(st.none() | texts)))

    async def start_step(self) -> None:
        self.attempts = 0
        self.session.append(StepStart(self.session.turn, self.session.step + 1))

    async def end_step(self) -> None:
        self.session.append(StepEnd(self.session.turn, self.session.step))
        self.asked, self.running = [], []

    async def say(self) -> None:
        self.session.append(UserSaid(UserMessage(self.draw(texts))))

    async def say_snapshot(self) -> None:
        parts = self.draw(st.lists(texts, max_size=3))
        self.session.append(snapshot("\n\n".join(["Now:", *parts]), *parts))

    async def note(self) -> None:
        self.session.append(Note("n", self.draw(values)))

    async def attempt(self) -> None:
        header = self.draw(headers if self.session.header is None else headers | st.just(self.session.header))
        self.attempts += 1
        canonical = attempt(self.session, header, self.attempts)
        self.sent.append((self.session.events[-1].seq, canonical))

    async def end_attempt(self) -> None:
        ended = RequestEnded(self.session.turn, self.session.step, self.attempts, "stop", self.draw(usages))
        if self.draw(st.booleans()):
            ended = replace(ended, finish="error", failure=self.draw(failures), timings=Timings(5))
        self.session.append(ended)

    async def answer(self) -> None:
        message = AssistantMessage(self.draw(texts), self.draw(calls))
        interrupted = self.draw(st.booleans())
        self.session.append(AssistantSaid(self.session.turn, self.session.step, message, interrupted))
        self.asked, self.running = list(message.tool_calls), []

    async def call(self) -> None:
        waiting = [call for call in self.asked if call not in self.running]
        if waiting:
            call = self.draw(st.sampled_from(waiting))
            given = self.draw(st.just(call.arguments) | texts)
            self.session.append(ToolCalled(self.session.turn, self.session.step, replace(call, arguments=given)))
            self.running.append(call)

    async def tell(self) -> None:
        answered = self.draw(st.sampled_from([call.id for call in self.asked]))
        answer = ToolMessage(answered, self.draw(texts), self.draw(texts), self.draw(st.booleans()))
        self.session.append(ToolAnswered(self.session.turn, self.session.step, answer, self.draw(st.none() | texts)))
        same = [call for call in self.asked if call.id == answered]
        gone = next((call for call in same if call in self.running), same[0])
        self.asked.remove(gone)
        if gone in self.running:
            self.running.remove(gone)

    async def compact(self) -> None:
        first, last = self.draw(st.integers(0, 5)), self.draw(st.integers(0, 5))
        before = (self.session.head, self.session.messages)
        try:
            self.session.replace_history(first, last, UserMessage(self.draw(texts)))
        except EventRefusedError:
            assert (self.session.head, self.session.messages) == before

    # -- and around it -------------------------------------------------------------------------------------------------

    async def flush(self) -> None:
        assert await self.session.flush() == self.session.head

    async def crash(self) -> None:
        """The process dies: what was not flushed is lost, what was open is repaired."""
        kept = [event async for event in await self.log.events(self.session.id)] if await self.stored() else None
        if kept is None:
            return
        await self.store.close()
        self.sent = [each for each in self.sent if each[0] < len(kept)]
        self.logged = kept
        await self.reopen(list(repair(kept)))

    async def stored(self) -> bool:
        return any(info.id == self.session.id for info in await self.log.sessions())

    async def resume(self) -> None:
        await self.session.close()
        kept = [*self.logged, *self.session.events]
        await self.store.close()
        self.logged = kept
        await self.reopen(list(repair(kept)))

    async def reopen(self, closers: list[Any]) -> None:
        self.store = self.store.reopened()
        self.log = open_log(self.store, clock=self.clock)
        self.session = await self.log.resume(self.session.id)
        assert [each.event for each in self.session.events] == closers
        self.asked, self.running = [], []

    async def fork(self) -> None:
        parent = self.session
        before = await parent.read()
        self.session = await parent.fork()
        await parent.close()
        self.logged = before

    async def check(self) -> None:
        """The log holds what was logged, leads to the same state, and gives each request again."""
        session = self.session
        await session.flush()
        assert await session.read() == [*self.logged, *session.events]
        view = await self.log.view(session.id)
        if not session.turn_open:
            assert view.repaired == ()
            assert view.messages == session.messages
        assert (view.header, view.labels, view.turn) == (session.header, session.labels, session.turn)
        assert view.held_snapshot == session.held_snapshot
        assert (await verify(self.log, session.id, head=session.head)).intact
        for seq, canonical in self.sent:
            where = await self.where(self.log, session, seq)
            assert (await rebuild(self.log, where)).canonical == canonical

    @staticmethod
    async def where(log: Log, session: Session, seq: int) -> str:
        events = await session.read(seq, seq + 1)
        event: Any = events[0].event
        return f"{session.id}@{event.turn}.{event.step}/{event.attempt}"


@given(st.data())
@settings(max_examples=150)
def test_whatever_is_logged_comes_back(data: st.DataObject) -> None:
    """Random courses of turns, steps, retries, tool calls, compactions, crashes, resumes and forks: events read back are
    equal, the state is that of the live session, every attempt is rebuilt byte for byte, the log verifies."""
    anyio.run(Course(data.draw).run)
