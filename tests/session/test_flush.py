"""Flushing: what it returns from is durable; what fails is kept, and nothing is written twice."""

from __future__ import annotations

import pickle
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest
from tests.session.support import Clock, Stores, answer, ask, end, take_turn

from foreword.session import (
    FlushFailedError,
    Note,
    Session,
    SessionBusyError,
    SessionConflictError,
    SessionExistsError,
    StoreError,
    TurnStart,
    open_log,
    verify,
)
from foreword.session.store import Batch, Claim, SessionRow
from foreword.testing.memory_store import MemoryStore

pytestmark = pytest.mark.anyio


class Faulty(MemoryStore):
    """A store whose writes fail on request: before they reach the disk, or after, with nobody told."""

    def __init__(self) -> None:
        super().__init__()
        self.fail: list[str] = []  # what happens to the next writes
        self.written: list[int] = []  # the sizes of batches that were handed over
        self.checkpoints = 0

    async def claim(self, session: str, **how: Any) -> Any:
        return FaultyClaim(self, await super().claim(session, **how))

    async def checkpoint(self) -> bool:
        self.checkpoints += 1
        return await super().checkpoint()


class FaultyClaim:
    def __init__(self, store: Faulty, claim: Claim) -> None:
        self._store, self._claim = store, claim

    @property
    def session(self) -> str:
        return self._claim.session

    @property
    def row(self) -> SessionRow:
        return self._claim.row

    async def write(self, batch: Batch) -> bytes:
        self._store.written.append(len(batch.events))
        self._batch = batch
        fault = self._store.fail.pop(0) if self._store.fail else ""
        if fault == "before":
            raise StoreError("a faulty store", "store_full", "is full; make room")
        head = await self._claim.write(batch)
        if fault == "after":
            raise StoreError("a faulty store", "store_io", "could not be synced")
        if fault == "hangs":
            await anyio.sleep_forever()
        return head

    async def settle(self) -> SessionRow:
        if self._store.fail and self._store.fail[0] == "settle":
            self._store.fail.pop(0)
            raise StoreError("a faulty store", "store_io", "cannot be read")
        row = await self._claim.settle()
        if self._store.fail and self._store.fail[0] == "foreign":
            return replace(row, head=bytes(32))
        if self._store.fail and self._store.fail[0] == "half":
            first = self._batch.events[0]
            return replace(row, count=first.seq + 1, head=first.digest)
        return row

    async def release(self) -> None:
        await self._claim.release()


@asynccontextmanager
async def faulty() -> AsyncIterator[tuple[Faulty, Session]]:
    store = Faulty()
    async with open_log(store, clock=Clock()) as log:
        session = await log.create("clerk")
        take_turn(session)
        await session.flush()
        yield store, session


async def is_whole(store: Faulty, session: Session) -> bool:
    """Whether the store holds just what the session logged."""
    async with open_log(store) as log:
        stored = [event async for event in await log.events(session.id)]
        return (await verify(log)).intact and stored == list(session.events)


async def test_flush_makes_durable(stores: Stores) -> None:
    """What was flushed is there after a restart, what was not is not; the head is that of the last event."""
    async with stores.log() as log:
        session = await log.create("clerk")
        assert await log.sessions() == []
        take_turn(session)
        head = await session.flush()
        assert head == session.head == await session.flush()
        [info] = await log.sessions()
        assert (info.id, info.head, info.events) == ("clerk", head, len(session.events))
        session.append(Note("later"))
        assert session.head != head
        [info] = await log.sessions()
        assert info.head == head


@pytest.mark.parametrize("fault", ["before", "after"])
async def test_a_failed_flush_keeps_its_events(fault: str) -> None:
    """A flush that fails says which events are in doubt and what to do; the next one writes what the store lacks, once."""
    async with faulty() as (store, session):
        session.append(TurnStart(2))
        session.append(Note("a"))
        store.fail = [fault]
        with pytest.raises(
            FlushFailedError, match=r"events 10 to 11 .* in session \"clerk\".*flush it again"
        ) as caught:
            await session.flush()
        assert (caught.value.first, caught.value.count) == (10, 2)
        assert isinstance(caught.value.__cause__, StoreError)
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
        session.append(Note("b"))
        store.written.clear()
        assert await session.flush() == session.head
        assert store.written == ([3] if fault == "before" else [1])
        assert await is_whole(store, session)


async def test_all_of_it_had_landed() -> None:
    """If the batch in doubt turns out to be in the store, the next flush writes nothing."""
    async with faulty() as (store, session):
        session.append(Note("a"))
        store.fail = ["after"]
        with pytest.raises(FlushFailedError, match="event 10 is"):
            await session.flush()
        store.written.clear()
        assert await session.flush() == session.head
        assert store.written == []
        assert await is_whole(store, session)


async def test_a_store_that_cannot_be_asked() -> None:
    """While it cannot be found out what the store holds, flushing fails and keeps everything."""
    async with faulty() as (store, session):
        session.append(Note("a"))
        store.fail = ["after", "settle"]
        for _ in range(2):
            with pytest.raises(FlushFailedError, match="event 10 is"):
                await session.flush()
        await session.flush()
        assert await is_whole(store, session)


async def test_a_cancelled_flush_loses_nothing() -> None:
    """A flush that is cancelled while the store writes has written; the next one notices, and writes only what is new."""
    async with faulty() as (store, session):
        session.append(Note("a"))
        store.fail = ["hangs"]
        with anyio.move_on_after(0.05) as scope:
            await session.flush()
        assert scope.cancelled_caught
        session.append(Note("b"))
        store.written.clear()
        await session.flush()
        assert store.written == [1]
        assert await is_whole(store, session)


async def test_half_a_batch_is_a_conflict() -> None:
    """A batch is one transaction: a store that holds some of its events and lacks others is not written to again."""
    async with faulty() as (store, session):
        session.append(Note("a"))
        session.append(Note("b"))
        store.fail = ["before"]
        with pytest.raises(FlushFailedError):
            await session.flush()
        store.fail = ["half"]
        with pytest.raises(SessionConflictError):
            await session.flush()
        store.fail.clear()
        await session.flush()
        assert await is_whole(store, session)


async def test_somebody_else_wrote() -> None:
    """A store that holds other events than this session wrote is a conflict; nothing is written over them."""
    async with faulty() as (store, session):
        session.append(Note("a"))
        store.fail = ["before"]
        with pytest.raises(FlushFailedError):
            await session.flush()
        store.fail = ["foreign"]
        with pytest.raises(SessionConflictError, match="somebody else wrote it"):
            await session.flush()
        with pytest.raises(SessionConflictError):  # it is let go all the same
            await session.close()
        store.fail.clear()
        async with open_log(store) as log:
            assert len(await (await log.resume("clerk")).read()) == 10


async def test_many_flushes_at_once(stores: Stores) -> None:
    """Tasks that append and flush at the same time each find their events durable, and none is written twice."""
    async with stores.log() as log:
        session = await log.create()
        session.append(TurnStart(1))

        async def write(name: str) -> None:
            for number in range(5):
                seq = session.append(Note(name, number))
                await session.flush()
                stored = [event async for event in await log.events(session.id)]
                assert stored[seq].event == Note(name, number)

        async with anyio.create_task_group() as group:
            for name in "abc":
                group.start_soon(write, name)
        assert (await verify(log)).intact
        assert [event async for event in await log.events(session.id)] == list(session.events)


async def test_the_store_tidies_up_at_the_end_of_a_turn() -> None:
    """A checkpoint is made when the end of a turn was written, and only then."""
    async with faulty() as (store, session):
        assert store.checkpoints == 1
        ask(session)
        await session.flush()
        answer(session)
        await session.flush()
        assert store.checkpoints == 1
        end(session)
        await session.flush()
        assert store.checkpoints == 2


async def test_closing_flushes(stores: Stores) -> None:
    """Closing a session, or its log, writes what is left and lets the session go."""
    async with stores.log() as log:
        async with await log.create("a") as session:
            session.append(Note("n"))
        again = await log.resume("a")
        again.append(Note("m"))
    async with stores.log() as log:
        stored = [event async for event in await log.events("a")]
        assert [each.event for each in stored[1:]] == [Note("n"), Note("m")]
        await log.resume("a")


async def test_a_log_closes_all_of_its_sessions() -> None:
    """When sessions cannot be flushed at the end, the others are, all are let go, and what went wrong is raised."""
    store = Faulty()
    log = open_log(store)
    sessions = [await log.create(name) for name in "abc"]
    for session in sessions:
        session.append(Note("n"))
    store.fail = ["before", "", "before"]
    with pytest.raises(ExceptionGroup) as caught:
        await log.close()
    assert len(caught.value.exceptions) == 2
    assert all(isinstance(error, FlushFailedError) for error in caught.value.exceptions)
    async with open_log(store) as log:
        assert [info.id for info in await log.sessions()] == ["b"]
        await log.create("a")


async def test_one_writer(stores: Stores) -> None:
    """A session that is open for writing can be read but not opened again, nor its id taken."""
    async with stores.log() as log:
        session = await log.create("clerk")
        take_turn(session)
        await session.flush()
        with pytest.raises(SessionBusyError, match="process"):
            await log.resume("clerk")
        assert (await log.view("clerk")).messages == session.messages
        await session.close()
        with pytest.raises(SessionExistsError):
            await log.create("clerk")
        await (await log.resume("clerk")).close()
