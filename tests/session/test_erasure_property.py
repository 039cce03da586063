"""Laws of erasure, on random sessions with forks, compactions, restarts and other sessions that share their texts."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.session.support import HEADER, Clock, Stores, answer, attempt, end, take_tool_turn

from foreword.session import (
    ERASED,
    ErasedContentError,
    Log,
    Note,
    RequestHeader,
    Session,
    StepStart,
    TurnStart,
    UnknownAddressError,
    UserSaid,
    rebuild,
    verify,
)
from foreword.wire.messages import UserMessage

WORDS = ("alpha", "beta", 'gam"ma', "dél\\ta")
SECTIONS = ("You are a clerk.", *(f"Mind {word}." for word in WORDS))

words = st.sampled_from(WORDS)
picks = st.integers(0, 30)
headers = st.lists(st.sampled_from(SECTIONS), min_size=1, max_size=3, unique=True)

turns = st.tuples(st.just("turn"), picks, words, headers)
DEEDS = st.one_of(
    turns,
    turns,
    st.tuples(st.just("tools"), picks, words),
    st.tuples(st.just("note"), picks, words),
    st.tuples(st.just("compact"), picks, words),
    st.tuples(st.just("fork"), picks, picks),
    st.tuples(st.just("create"), words),
    st.tuples(st.just("close")),
    st.tuples(st.just("erase_text"), words),
    st.tuples(st.just("erase_step"), picks, picks),
    st.tuples(st.just("erase_session"), picks),
    st.tuples(st.just("erase_label"), words),
    st.tuples(st.just("erase_old"), picks),
)


@dataclass
class World:
    """Sessions, what happens to them, and what was sent."""

    stores: Stores
    clock: Clock = field(default_factory=Clock)
    names: list[str] = field(default_factory=list)
    live: dict[str, Session] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)
    sent: dict[str, bytes] = field(default_factory=dict)  # canonical bytes by address
    said: set[str] = field(default_factory=set)  # words that the store may hold

    async def do(self, log: Log, deed: tuple[Any, ...]) -> None:
        """One thing happens."""
        self.clock.now += 1000
        name, *given = deed
        await getattr(self, name)(log, *given)

    async def create(self, log: Log, word: str) -> None:
        session = await log.create(f"s{len(self.names)}", labels={"word": word})
        self._came(session, 0)
        self.said.add(word)

    async def turn(self, log: Log, pick: int, word: str, sections: list[str]) -> None:
        self.ask(await self._session(log, pick), f"about {word}", replace(HEADER, sections=tuple(sections)))
        self.said |= {word, *(each for each in WORDS if f"Mind {each}." in sections)}

    async def tools(self, log: Log, pick: int, word: str) -> None:
        session = await self._session(log, pick)
        take_tool_turn(session, word)
        self.steps[session.id] += 2
        self.said.add(word)

    async def note(self, log: Log, pick: int, word: str) -> None:
        (await self._session(log, pick)).append(Note("n", {"word": word}))
        self.said.add(word)

    async def compact(self, log: Log, pick: int, word: str) -> None:
        session = await self._session(log, pick)
        if session.messages:
            session.replace_history(0, len(session.messages) - 1, UserMessage(f"summary: {word}"))
            self.said.add(word)

    async def fork(self, log: Log, pick: int, step: int) -> None:
        session = await self._session(log, pick)
        at = step % (self.steps[session.id] + 1)
        forked = await session.fork(f"@{at}" if at else None, id=f"s{len(self.names)}")
        self._came(forked, (await log.view(forked.id)).steps)

    async def close(self, log: Log) -> None:
        for session in self.live.values():
            await session.close()
        self.live.clear()

    async def erase_text(self, log: Log, word: str) -> None:
        report = await log.erase(match=word)
        assert await log.store.search([word.encode(), spelled(word)]) == []
        assert report.complete
        assert report.kept == report.remains == report.busy == ()
        self.said.discard(word)
        for address, canonical in self.sent.items():
            if f"about {word}".encode() in canonical.replace(spelled(word), word.encode()):
                with pytest.raises(ErasedContentError):
                    await rebuild(log, address)

    async def erase_step(self, log: Log, pick: int, step: int) -> None:
        session = await self._session(log, pick)
        with suppress(UnknownAddressError):  # it has none
            await session.erase(f"@{1 + step % max(self.steps[session.id], 1)}")

    async def erase_session(self, log: Log, pick: int) -> None:
        await log.erase(session=self.names[pick % len(self.names)])

    async def erase_label(self, log: Log, word: str) -> None:
        await log.erase(label={"word": word})

    async def erase_old(self, log: Log, ago: int) -> None:
        await log.erase(before=timedelta(seconds=ago))

    def ask(self, session: Session, text: str, header: RequestHeader = HEADER) -> None:
        session.append(TurnStart(session.turn + 1))
        session.append(StepStart(session.turn, 1))
        session.append(UserSaid(UserMessage(text)))
        self.steps[session.id] += 1
        self.sent[f"{session.id}@{self.steps[session.id]}"] = attempt(session, header)
        answer(session, f"well, {text}")
        end(session)

    async def _session(self, log: Log, pick: int) -> Session:
        """One of the sessions, open."""
        name = self.names[pick % len(self.names)]
        if name not in self.live:
            self.live[name] = await log.resume(name)
        return self.live[name]

    def _came(self, session: Session, steps: int) -> None:
        self.names.append(session.id)
        self.live[session.id], self.steps[session.id] = session, steps


def spelled(word: str) -> bytes:
    """A word as it stands in JSON."""
    return json.dumps(word, ensure_ascii=False)[1:-1].encode()


async def check(world: World, log: Log) -> None:
    """Each log verifies; each request is had as it was sent, or it is told that something of it was erased; what
    memory holds of a live session is what a reader of the store sees."""
    await log.flush()
    assert [report for report in (await verify(log)).sessions if not report.intact] == []
    for address, canonical in world.sent.items():
        try:
            rebuilt = await rebuild(log, address)
        except ErasedContentError:
            assert (await rebuild(log, address, if_erased="mark")).erased
        else:
            assert rebuilt.canonical == canonical
            assert not rebuilt.erased
    for name, session in world.live.items():
        view = await log.view(name)
        assert (view.messages, view.header) == (session.messages, session.header)
        assert (view.labels, view.held_snapshot) == (session.labels, session.held_snapshot)
        first = session.events[0].seq if session.events else None
        stored = [event async for event in await log.events(name, if_erased="mark") if event.seq >= (first or 0)]
        for one, other in zip(session.events, stored, strict=first is not None):
            assert one == other or ERASED in repr(one)  # a shared text that was said again is in the store again


async def live(world: World, deeds: list[tuple[Any, ...]]) -> None:
    async with world.stores.log(world.clock) as log:
        await world.create(log, "alpha")
        for deed in deeds:
            await world.do(log, deed)
        await check(world, log)
    world.live.clear()
    async with world.stores.log(world.clock) as log:
        for name in world.names:
            world.live[name] = await log.resume(name)
        for session in world.live.values():
            world.ask(session, "go on")
        await check(world, log)


@given(st.lists(DEEDS, max_size=25))
def test_whatever_is_erased_in_memory(deeds: list[tuple[Any, ...]]) -> None:
    """See `check`."""
    anyio.run(live, World(Stores("memory", Path())), deeds)


@pytest.mark.slow
@given(st.lists(DEEDS, max_size=20))
@settings(max_examples=40)
def test_whatever_is_erased_in_a_file(deeds: list[tuple[Any, ...]]) -> None:
    """See `check`; and of a word that was erased and not said again no byte is left in the files."""
    with TemporaryDirectory() as folder:
        stores = Stores("sqlite", Path(folder))
        world = World(stores)
        anyio.run(live, world, deeds)
        kept = b"".join(file.read_bytes() for file in stores.files())
        for word in {*WORDS} - world.said:
            assert word.encode() not in kept
            assert spelled(word) not in kept
