"""Forking: another session with the same beginning, down to the digests."""

from __future__ import annotations

import pytest
from tests.session.support import HEADER, Shelf, Stores, answer, ask, end, snapshot, take_tool_turn, take_turn

from foreword.session import (
    ForkedFrom,
    HeaderWritten,
    InvalidAddressError,
    Note,
    SessionBusyError,
    SessionExistsError,
    SessionStart,
    StepEnd,
    StepStart,
    TurnEnd,
    TurnStart,
    UnknownAddressError,
    rebuild,
    verify,
)

pytestmark = pytest.mark.anyio


async def test_a_fork_shares_its_beginning(stores: Stores) -> None:
    """A fork has the parent's events with their digests, then its own start; from there each goes its way."""
    async with stores.log() as log:
        parent = await log.create("parent", cwd="/orders", labels={"ticket": "4711"})
        take_turn(parent)
        parent.append(snapshot("branch: main"))
        take_tool_turn(parent)
        fork = await parent.fork(id="fork")
        shared = len(parent.events)
        assert fork.messages == parent.messages
        assert (fork.header, fork.turn, fork.held_snapshot, fork.cwd, fork.labels) == (
            parent.header,
            parent.turn,
            parent.held_snapshot,
            "/orders",
            {"ticket": "4711"},
        )
        start = SessionStart("fork", {"ticket": "4711"}, "/orders", ForkedFrom("parent", shared))
        assert [each.event for each in fork.events] == [start]
        assert (await fork.read())[:-1] == list(parent.events)
        shelf = await Shelf.of(log.store)
        assert shelf.kept_events["fork"][:-1] == shelf.kept_events["parent"]
        take_turn(fork, "And in Rome?")
        take_turn(parent, "And in Bonn?")
        await fork.flush()
        await parent.flush()
        assert fork.messages != parent.messages
        assert (await verify(log)).intact
        infos = {info.id: info.parent for info in await log.sessions()}
        assert infos == {"parent": None, "fork": ForkedFrom("parent", shared)}


async def test_private_blobs_are_referred_to(stores: Stores) -> None:
    """A fork refers to its parent's private blobs, labels included, instead of storing them anew."""
    async with stores.log() as log:
        parent = await log.create("parent", labels={"ticket": "4711"})
        take_turn(parent)
        await parent.flush()
        before = (await Shelf.of(log.store)).kept_blobs
        await parent.fork(id="fork")
        shelf = await Shelf.of(log.store)
        assert shelf.kept_blobs == before
        assert {digest for digest, _ in shelf.kept_refs["fork"]} == {digest for digest, _ in shelf.kept_refs["parent"]}
        other = await parent.fork(id="other", labels={"tenant": "acme"})
        assert other.labels == {"tenant": "acme"}
        assert (await log.view("other")).labels == {"tenant": "acme"}
        starts = [await log.start_of(name) for name in ("parent", "fork", "other")]
        shared = len(parent.events)
        assert starts == [
            SessionStart("parent", {"ticket": "4711"}),
            SessionStart("fork", {"ticket": "4711"}, None, ForkedFrom("parent", shared)),
            SessionStart("other", {"tenant": "acme"}, None, ForkedFrom("parent", shared)),
        ]
        assert (await log.view("fork")).labels == {"ticket": "4711"}


async def test_a_fork_at_a_step(stores: Stores) -> None:
    """The address of a step means the end of its turn; what came between that and the next turn is left behind."""
    async with stores.log() as log:
        parent = await log.create("parent")
        take_turn(parent, "one")
        parent.append(Note("between"))
        take_tool_turn(parent)
        take_turn(parent, "three")
        for address, turns in (("@1", 1), ("@1.1", 1), ("@2", 2), ("@3", 2), ("@2.2", 2), ("@4", 3), (None, 3)):
            fork = await parent.fork(address)
            assert fork.turn == turns
            assert Note("between") not in [each.event for each in await fork.read()] or turns > 1
            assert not fork.turn_open
            take_turn(fork)
            assert fork.turn == turns + 1
            await fork.close()
        assert (await verify(log)).intact


async def test_a_fork_at_a_step_without_a_request(stores: Stores) -> None:
    """A step that failed before it asked the model is a place to fork at as any other."""
    async with stores.log() as log:
        parent = await log.create("parent")
        take_turn(parent)
        parent.append(TurnStart(2))
        parent.append(StepStart(2, 1))
        parent.append(StepEnd(2, 1))
        parent.append(TurnEnd(2, "error"))
        take_turn(parent)
        assert [(await parent.fork(address)).turn for address in ("@1", "@2", "@3")] == [1, 2, 3]


async def test_a_fork_of_a_fork(stores: Stores) -> None:
    """Forks can be forked, before and behind where they left their parent, and are rebuilt alike."""
    async with stores.log() as log:
        parent = await log.create("parent")
        take_turn(parent, "one")
        take_turn(parent, "two")
        fork = await parent.fork("@1", id="fork")
        take_turn(fork, "three")
        early, late = await fork.fork("@1", id="early"), await fork.fork(id="late")
        assert early.messages == parent.messages[:2]
        assert late.messages == fork.messages
        take_turn(late, "four")
        await late.flush()
        first = [(await rebuild(log, f"{name}@1")).canonical for name in ("parent", "fork", "early", "late")]
        assert len(set(first)) == 1
        assert (await rebuild(log, "late@3")).request.messages == late.messages[:-1]
        assert (await verify(log)).intact


async def test_a_fork_goes_on_with_the_header(stores: Stores) -> None:
    """The parent's header is in force in the fork; a new agent writes it again as a resume, however equal."""
    async with stores.log() as log:
        parent = await log.create("parent")
        take_turn(parent)
        fork = await parent.fork(id="fork")
        assert fork.header == HEADER
        ask(fork)
        assert not any(isinstance(each.event, HeaderWritten) for each in fork.events)
        answer(fork)
        end(fork)
        await fork.close()
        await parent.close()
        again = await log.resume("fork")
        assert again.header == HEADER


@pytest.mark.parametrize(
    ("address", "error", "why"),
    [
        (None, UnknownAddressError, "turn 2 is still open"),
        ("@2", UnknownAddressError, "turn 2 is still open"),
        ("@9", UnknownAddressError, "has 2 steps"),
        ("@", InvalidAddressError, "no number of a step"),
        ("other@1", InvalidAddressError, "begins with @"),
    ],
)
async def test_where_no_fork_can_be(stores: Stores, address: str | None, error: type[Exception], why: str) -> None:
    """A fork begins at a closed turn; nothing else is made one, and the log stays as it is."""
    async with stores.log() as log:
        parent = await log.create("parent")
        take_turn(parent)
        ask(parent)
        with pytest.raises(error, match=why):
            await parent.fork(address)
        await parent.flush()
        assert [info.id for info in await log.sessions()] == ["parent"]
        fork = await parent.fork("@1")
        assert fork.turn == 1


async def test_the_ids_of_forks(stores: Stores) -> None:
    """A taken id is refused; the parent need not be open to be forked, and stays with who has it."""
    async with stores.log() as log:
        parent = await log.create("parent")
        take_turn(parent)
        await parent.flush()
        await log.create("open")
        for taken, error in (("parent", SessionBusyError), ("open", SessionBusyError)):
            with pytest.raises(error):
                await parent.fork(id=taken)
        await parent.close()
        with pytest.raises(SessionExistsError):
            await log.fork("parent", id="parent")
        fork = await log.fork("par@1", id="fork")
        assert fork.turn == 1
        assert (await log.resume("parent")).turn == 1
