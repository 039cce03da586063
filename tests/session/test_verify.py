"""Verifying: a log that is as it was logged is intact, and whatever differs in it by one byte is found and named."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.session.support import (
    Clock,
    Shelf,
    Stores,
    answer,
    attempt,
    clerk,
    counted_entropy,
    end,
    header_of,
    snapshot,
    take_tool_turn,
    take_turn,
)

from foreword.session import (
    ContentErased,
    LogFault,
    Note,
    RequestAttempted,
    Session,
    StepStart,
    TurnStart,
    Verification,
    open_log,
    step_trace,
    verify,
)
from foreword.session.store import BlobRow, EventRow, SessionRow
from foreword.testing.memory_store import MemoryStore

pytestmark = pytest.mark.anyio


def furnish(session: Session) -> None:
    """Three turns, with an explained step, tool calls, a snapshot and a compaction."""
    prompt, _ = clerk(("You are a clerk.", "Be brief."))
    rendering = prompt.render_sync()
    session.append(TurnStart(1))
    session.append(StepStart(1, 1, step_trace(rendering)))
    session.append(snapshot(rendering.snapshot))
    attempt(session, header_of(rendering))
    answer(session)
    end(session)
    take_tool_turn(session)
    session.replace_history(0, 1, session.messages[0])
    take_turn(session, "And now?")
    session.append(Note("done", [1]))


async def store_of_fifty() -> Shelf:
    """A session and its fork, fifty events in all."""
    store = MemoryStore()
    async with open_log(store, clock=Clock(), entropy=counted_entropy()) as log:
        session = await log.create("clerk", labels={"ticket": "4711"}, cwd="/orders")
        furnish(session)
        await session.flush()
        fork = await session.fork("@1", id="fork")
        while len(session.events) + len(await fork.read()) < 50:
            fork.append(Note("n", "x"))
        await fork.flush()
        return await Shelf.of(store)


async def test_an_intact_log(stores: Stores) -> None:
    """Sessions, forks and resumed ones are intact; a report counts events and blobs, each blob once."""
    async with stores.log() as log:
        session = await log.create("clerk", labels={"ticket": "4711"})
        furnish(session)
        await session.flush()
        fork = await session.fork("@2", id="fork")
        take_turn(fork)
        await fork.flush()
        shelf = await Shelf.of(log.store)
        verification = await verify(log)
        assert verification.intact
        told = {report.id: report for report in verification.sessions}
        assert told["clerk"].events == len(session.events)
        assert told["clerk"].head == session.head
        assert told["fork"].events == len(await fork.read())
        assert sum(report.blobs for report in verification.sessions) == len(shelf.kept_blobs)
        [only] = (await verify(log, "fork")).sessions
        assert (only.id, only.intact, only.erased) == ("fork", True, 0)


async def test_a_session_while_it_is_written(stores: Stores) -> None:
    """A session with an open turn, read while its writer lives, is intact as well."""
    async with stores.log() as log:
        session = await log.create("clerk")
        session.append(TurnStart(1))
        session.append(StepStart(1, 1))
        attempt(session)
        await session.flush()
        session.append(Note("not flushed"))
        assert (await verify(log)).intact


# -- one byte ----------------------------------------------------------------------------------------------------------

Change = tuple[str, Callable[[Shelf], None], Callable[[Verification], bool]]
"""What is changed, how, and whether it was found and named."""


def flipped(data: bytes) -> Iterator[bytes]:
    """The same bytes with one of them changed, for each of them."""
    for at in range(len(data)):
        yield data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def flipped_number(number: int) -> Iterator[int]:
    """A number with one byte of its eight changed."""
    return (int.from_bytes(each, "big", signed=True) for each in flipped(number.to_bytes(8, "big", signed=True)))


def flipped_text(text: str) -> Iterator[str]:
    return (each.decode() for each in flipped(text.encode()))


def faults(verification: Verification) -> list[LogFault]:
    return [report.fault for report in verification.sessions if report.fault is not None]


def names_event(seq: int) -> Callable[[Verification], bool]:
    return lambda verification: any(fault.seq == seq for fault in faults(verification))


def names_blob(digest: bytes) -> Callable[[Verification], bool]:
    return lambda verification: any(fault.blob == digest.hex() for fault in faults(verification))


def names_reference(ref: tuple[bytes, int]) -> Callable[[Verification], bool]:
    """One that belongs to another event now may be found there first."""
    digest, seq = ref
    return lambda verification: any(fault.seq == seq or fault.blob == digest.hex() for fault in faults(verification))


def names_session(id: str) -> Callable[[Verification], bool]:
    return lambda verification: any(report.id == id and not report.intact for report in verification.sessions)


def event_changes(shelf: Shelf) -> Iterator[Change]:
    for session, events in shelf.kept_events.items():
        for event in events:
            found = names_event(event.seq)
            changed = [replace(event, envelope=each) for each in flipped(event.envelope)]
            changed += [replace(event, digest=each) for each in flipped(event.digest)]
            changed += [replace(event, seq=each) for each in flipped_number(event.seq)]
            for row in changed:
                yield f"event {event.seq} of {session}", put_event(session, event, session, row), found
            for name in flipped_text(session):
                yield f"the session of event {event.seq}", put_event(session, event, name, event), found


def put_event(session: str, old: EventRow, into: str, new: EventRow) -> Callable[[Shelf], None]:
    def change(shelf: Shelf) -> None:
        shelf.kept_events[session].remove(old)
        shelf.kept_events.setdefault(into, []).append(new)
        shelf.kept_events[into].sort(key=lambda event: event.seq)

    return change


def ref_changes(shelf: Shelf) -> Iterator[Change]:
    for session, refs in shelf.kept_refs.items():
        for ref in refs:
            digest, seq = ref
            changed = [(session, (each, seq)) for each in flipped(digest)]
            changed += [(session, (digest, each)) for each in flipped_number(seq)]
            changed += [(each, ref) for each in flipped_text(session)]
            for into, new in changed:
                found = names_reference(ref)
                yield f"a reference of event {seq} of {session}", put_ref(session, ref, into, new), found


def put_ref(session: str, old: tuple[bytes, int], into: str, new: tuple[bytes, int]) -> Callable[[Shelf], None]:
    def change(shelf: Shelf) -> None:
        shelf.kept_refs[session].remove(old)
        shelf.kept_refs.setdefault(into, []).append(new)

    return change


def blob_changes(shelf: Shelf) -> Iterator[Change]:
    for digest, blob in shelf.kept_blobs.items():
        changed = [replace(blob, digest=each) for each in flipped(digest)]
        changed += [replace(blob, salt=each) for each in flipped(blob.salt or b"")]
        changed += [replace(blob, body=each) for each in flipped(blob.body or b"")]
        for row in changed:
            yield f"blob {digest.hex()}", put_blob(digest, row), names_blob(digest)


def put_blob(digest: bytes, new: BlobRow) -> Callable[[Shelf], None]:
    def change(shelf: Shelf) -> None:
        del shelf.kept_blobs[digest]
        shelf.kept_blobs[new.digest] = new

    return change


def session_changes(shelf: Shelf) -> Iterator[Change]:
    for at, row in enumerate(shelf.rows):
        changed = [replace(row, id=each) for each in flipped_text(row.id)]
        changed += [replace(row, genesis=each) for each in flipped(row.genesis)]
        changed += [replace(row, head=each) for each in flipped(row.head)]
        changed += [replace(row, epoch=each) for each in flipped_number(row.epoch)]
        changed += [replace(row, count=each) for each in flipped_number(row.count)]
        changed += [replace(row, created=each) for each in flipped_number(row.created)]
        changed += [replace(row, parent=each) for each in flipped_text(row.parent or "")]
        changed += [replace(row, forked_at=each) for each in flipped_number(row.forked_at or 0) if row.parent]
        for new in changed:
            yield f"the row of {row.id}", put_row(at, new), names_session(new.id)


def put_row(at: int, new: SessionRow) -> Callable[[Shelf], None]:
    def change(shelf: Shelf) -> None:
        shelf.rows[at] = new

    return change


def copy_of(shelf: Shelf) -> Shelf:
    return Shelf(
        list(shelf.rows),
        {session: list(events) for session, events in shelf.kept_events.items()},
        {session: list(refs) for session, refs in shelf.kept_refs.items()},
        dict(shelf.kept_blobs),
    )


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("changes", [event_changes, ref_changes, blob_changes, session_changes])
async def test_every_byte_of_every_row(changes: Callable[[Shelf], Iterator[Change]]) -> None:
    """In a store of fifty events each byte of each row, changed, is found, and its event or blob is named."""
    shelf = await store_of_fifty()
    assert sum(map(len, shelf.kept_events.values())) == 50
    assert (await verify(shelf.log())).intact
    tried = 0
    for what, change, is_named in changes(shelf):
        damaged = copy_of(shelf)
        change(damaged)
        verification = await verify(damaged.log())
        assert not verification.intact, what
        assert is_named(verification), (what, [str(fault) for fault in faults(verification)])
        tried += 1
    assert tried > 100


COLUMNS = [
    ("event", "envelope", "session = 'clerk' AND seq = 7", lambda fault: fault.seq == 7),
    ("event", "digest", "session = 'clerk' AND seq = 7", lambda fault: fault.seq == 7),
    ("event", "seq", "session = 'clerk' AND seq = 7", lambda fault: fault.seq == 7),
    ("event", "session", "session = 'clerk' AND seq = 7", lambda fault: fault.seq == 7),
    ("ref", "digest", "session = 'clerk' AND seq = 3", lambda fault: fault.seq == 3),
    ("ref", "seq", "session = 'clerk' AND seq = 3", lambda fault: fault.seq == 3),
    ("ref", "session", "session = 'clerk' AND seq = 3", lambda fault: fault.seq == 3),
    ("blob", "digest", "salt IS NOT NULL", lambda fault: fault.blob is not None),
    ("blob", "salt", "salt IS NOT NULL", lambda fault: fault.blob is not None),
    ("blob", "body", "salt IS NOT NULL", lambda fault: fault.blob is not None),
    ("blob", "body", "salt IS NULL", lambda fault: fault.blob is not None),
    ("session", "id", "id = 'clerk'", lambda fault: fault.seq == 0),
    ("session", "genesis", "id = 'clerk'", lambda fault: fault.seq == 0),
    ("session", "head", "id = 'clerk'", lambda fault: True),
    ("session", "epoch", "id = 'clerk'", lambda fault: True),
    ("session", "seq", "id = 'clerk'", lambda fault: True),
    ("session", "created", "id = 'clerk'", lambda fault: True),
]


@pytest.mark.parametrize(("table", "column", "where", "is_named"), COLUMNS)
async def test_each_column_in_a_file(
    tmp_path: Path, table: str, column: str, where: str, is_named: Callable[[LogFault], bool]
) -> None:
    """The same in a file of SQLite, where any program may have changed a column."""
    url, file = f"sqlite:{tmp_path / 'log.db'}", tmp_path / "log.db"
    async with open_log(url) as log:
        session = await log.create("clerk", labels={"ticket": "4711"})
        furnish(session)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA foreign_keys=OFF")
        row = connection.execute(f"SELECT rowid, {column} FROM {table} WHERE {where}").fetchone() if table != "ref" else (
            0, connection.execute(f"SELECT {column} FROM ref WHERE {where}").fetchone()[0]
        )  # fmt: skip
        value = row[1]
        new = {
            bytes: lambda: bytes([value[0] ^ 1]) + value[1:],
            str: lambda: chr(ord(value[0]) ^ 1) + value[1:],
            int: lambda: value ^ 256,
        }[type(value)]()
        at = where if table == "ref" else f"rowid = {row[0]}"
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {at}", (new,))
        connection.commit()
    async with open_log(url, read_only=True) as log:
        verification = await verify(log)
        [fault] = faults(verification)
        assert is_named(fault), str(fault)


# -- a digest kept elsewhere -------------------------------------------------------------------------------------------


async def test_a_head_kept_elsewhere(stores: Stores) -> None:
    """A head that flush gave is found in the log however it went on; a log that was written anew has it no more."""
    async with stores.log() as log:
        session = await log.create("clerk")
        heads = []
        for _ in range(3):
            take_turn(session)
            heads.append((await session.flush(), len(session.events) - 1))
        for head, seq in heads:
            verification = await verify(log, head=head)
            assert verification.intact
            assert verification.sessions[0].head_at == seq
        other = await log.create("other")
        take_turn(other)
        await other.flush()
        assert (await verify(log, head=heads[0][0])).intact
        assert not (await verify(log, "other", head=heads[0][0])).intact
        unknown = await verify(log, head="0" * 64)
        assert not unknown.intact
        assert not unknown.head_found
        assert all(report.intact for report in unknown.sessions)
        for no_digest in ("", "0" * 63, "g" * 64, heads[0][0].upper()):
            with pytest.raises(ValueError, match="no digest"):
                await verify(log, head=no_digest)


async def test_a_chain_written_anew(stores: Stores) -> None:
    """Whoever can write the file can write a chain that is intact; only the head kept elsewhere gives that away."""
    async with stores.log() as log:
        session = await log.create("clerk")
        take_turn(session, "Pay 100.")
        kept = await session.flush()
    forged = MemoryStore()
    async with open_log(forged) as log:
        session = await log.create("clerk")
        take_turn(session, "Pay 900.")
        await session.flush()
        assert (await verify(log)).intact
        assert not (await verify(log, head=kept)).intact


async def test_erased_is_not_damaged(stores: Stores) -> None:
    """Blobs that an event says were emptied are counted; the same without such an event is damage."""
    async with stores.log() as log:
        session = await log.create("clerk")
        take_turn(session)
        await session.flush()
        shelf = await Shelf.of(log.store)
        private = [digest for digest, blob in shelf.kept_blobs.items() if blob.salt is not None]
        session._ledger.append(ContentErased(tuple(private[:2])))  # what erasing will do
        await session.flush()
        shelf = await Shelf.of(log.store)
        for digest in private[:2]:
            shelf.kept_blobs[digest] = BlobRow(digest, None, None)
        verification = await verify(shelf.log())
        assert verification.intact
        assert verification.sessions[0].erased == 2
        shelf.kept_blobs[private[2]] = BlobRow(private[2], None, None)
        [fault] = faults(await verify(shelf.log()))
        assert fault.blob == private[2].hex()
        assert "no event says that it was erased" in str(fault)


async def test_a_fork_is_damaged_with_its_parent(stores: Stores) -> None:
    """A damaged blob that several sessions hold is told in each of them; the others are intact."""
    async with stores.log() as log:
        session = await log.create("clerk")
        take_turn(session)
        await session.fork(id="fork")
        other = await log.create("other")
        take_turn(other)
        await other.flush()
        shelf = await Shelf.of(log.store)
        digest, _ = shelf.kept_refs["clerk"][0]
        shelf.kept_blobs[digest] = replace(shelf.kept_blobs[digest], body=b"{}")
        told = {report.id: report.fault for report in (await verify(shelf.log())).sessions}
        assert told["other"] is None
        for name in ("clerk", "fork"):
            fault = told[name]
            assert fault is not None
            assert (fault.seq, fault.blob) == (3, digest.hex())


async def test_the_first_fault_is_told(stores: Stores) -> None:
    """Of several faults the one of the earliest event is told, though it is a blob's."""
    async with stores.log() as log:
        session = await log.create("clerk")
        take_turn(session)
        take_turn(session)
        await session.flush()
        shelf = await Shelf.of(log.store)
        events = shelf.kept_events["clerk"]
        events[12] = replace(events[12], envelope=events[12].envelope + b" ")
        digest = next(digest for digest, seq in shelf.kept_refs["clerk"] if seq == 3)
        shelf.kept_blobs[digest] = replace(shelf.kept_blobs[digest], body=b"{}")
        [fault] = faults(await verify(shelf.log()))
        assert (fault.seq, fault.blob) == (3, digest.hex())
        del shelf.kept_blobs[digest]
        shelf.kept_refs["clerk"] = [ref for ref in shelf.kept_refs["clerk"] if ref[0] != digest]
        [fault] = faults(await verify(shelf.log()))
        assert (fault.seq, "references" in fault.why) == (3, True)


async def test_a_session_of_no_events(stores: Stores) -> None:
    """A session that was begun and never written to is not there, and a log without sessions is intact."""
    async with stores.log() as log:
        await log.create("clerk")
        verification = await verify(log)
        assert verification.intact
        assert verification.sessions == ()


def test_attempts_name_their_request() -> None:
    """What a caller gives of an attempt's digests is part of its value."""
    assert RequestAttempted(1, 1, 1) != RequestAttempted(1, 1, 1, header=bytes(32))
