"""The file of a store: how SQLite is set, when its log is emptied, tables and versions, and sharing within a process."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.session.store.support import batch_on, begun, check_whole, contents, names_in, private, shared

from foreword.errors import SessionBusyError, SessionFencedError, StoreError, StoreVersionError
from foreword.session.store.connections import SETTINGS, connect_to_read, connect_to_write
from foreword.session.store.schema import MIGRATIONS, VERSION
from foreword.session.store.sqlite import SqliteStore, weakness


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "foreword.db"


def sql(path: Path, statement: str, *values: object) -> list[Any]:
    """What another program would get or do with the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()


def content(path: Path) -> bytes:
    return path.read_bytes()


def size(path: Path, ending: str = "") -> int:
    return path.with_name(path.name + ending).stat().st_size


# -- settings


def test_settings_are_in_force(path: Path) -> None:
    """Whoever opens the file has the settings that the contract asks for, and reads cannot write."""
    path.touch()
    wanted = {**SETTINGS, "journal_mode": "wal", "busy_timeout": 2500}
    assert wanted.items() >= {
        ("synchronous", 2), ("wal_autocheckpoint", 0), ("mmap_size", 0), ("secure_delete", 1), ("foreign_keys", 1),
    }  # fmt: skip
    with closing(connect_to_write(path, 2.5, nullcontext)) as writer, closing(connect_to_read(path, 2.5)) as reader:
        for connection in (writer, reader):
            assert {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in wanted} == wanted
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.execute("DELETE FROM event")


@pytest.mark.anyio
async def test_checkpoints_are_made_when_asked_for(path: Path) -> None:
    """The write-ahead log grows beyond SQLite's own limit, and is emptied into the file by `checkpoint` alone."""
    async with SqliteStore(path) as store:
        claim = await begun(store, "s")
        assert await store.checkpoint()
        before = size(path)
        for _ in range(8):
            await claim.write(batch_on(claim.row, 1, [private("x" * 1_000_000)]))
        assert size(path) == before
        assert size(path, "-wal") > 8_000_000
        assert await store.checkpoint()
        assert size(path) > 8_000_000
        assert size(path, "-wal") == 0
        await check_whole(store, "s")


@pytest.mark.anyio
async def test_a_reader_in_the_way_of_a_checkpoint(path: Path) -> None:
    """While somebody reads an older state the log cannot be emptied, which is told; writing goes on, and later it can."""
    async with SqliteStore(path) as store:
        claim = await begun(store, "s")
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM event").fetchall()
            await claim.write(batch_on(claim.row))
            assert not await store.checkpoint()
            await claim.write(batch_on(claim.row))
        assert await store.checkpoint()
        assert size(path, "-wal") == 0
        await check_whole(store, "s")


@pytest.mark.anyio
async def test_own_readers_are_never_in_the_way(path: Path) -> None:
    """Read transactions are short: between two calls none is open."""
    async with SqliteStore(path) as store, SqliteStore(path, read_only=True) as reader:
        claim = await begun(store, "s")
        for _ in range(3):
            await contents(reader)
            await contents(store)
            await claim.write(batch_on(claim.row))
            assert await store.checkpoint()


@pytest.mark.anyio
async def test_what_is_said_of_this_sqlite() -> None:
    """An SQLite with the fault of the write-ahead log is told by version; a newer one is not."""
    told = weakness()
    if sqlite3.sqlite_version_info >= (3, 51, 3):
        assert told is None
    else:
        assert sqlite3.sqlite_version in (told or "")


# -- tables


@pytest.mark.anyio
async def test_tables_are_as_documented(path: Path) -> None:
    """Events, blobs, references and sessions are found by their documented names with any tool for SQLite."""
    async with SqliteStore(path) as store:
        claim = await begun(store, "s", 2, [private("a"), shared("b")])
        events = await store.events("s")
        blobs = await store.blobs(digest for digest, _ in await store.refs("s"))
    assert sql(path, "SELECT session, seq, envelope, digest FROM event") == [
        ("s", each.seq, each.envelope, each.digest) for each in events
    ]
    assert sorted(sql(path, "SELECT digest, salt, body FROM blob")) == sorted(
        (each.digest, each.salt, each.body) for each in blobs.values()
    )
    assert sorted(sql(path, "SELECT digest, session, seq FROM ref")) == sorted((each, "s", 0) for each in blobs)
    assert sql(path, "SELECT id, genesis, epoch, seq, head FROM session") == [
        ("s", claim.row.genesis, 0, 2, claim.row.head)
    ]
    assert sql(path, "PRAGMA integrity_check") == [("ok",)]
    assert sql(path, "PRAGMA foreign_key_check") == []


@pytest.mark.anyio
async def test_an_erased_blob_is_kept_empty(path: Path) -> None:
    """A blob whose body was emptied is told as such; a shared one that is said anew has its body again."""
    blob = shared("rules")
    async with SqliteStore(path) as store:
        claim = await begun(store, "s", 1, [blob])
        sql(path, "UPDATE blob SET body = NULL")
        (erased,) = (await store.blobs([blob.digest])).values()
        assert (erased.salt, erased.body) == (None, None)
        await claim.write(batch_on(claim.row, 1, [blob]))
        assert await store.blobs([blob.digest]) == {blob.digest: blob}


@pytest.mark.anyio
async def test_whatever_writes_past_the_claim_is_seen(path: Path) -> None:
    """A take-over from outside, which raises the epoch, fences off the claimant at its next batch."""
    async with SqliteStore(path) as store:
        claim = await begun(store, "s")
        sql(path, "UPDATE session SET epoch = epoch + 1")
        with pytest.raises(SessionFencedError, match="in epoch 1, and this writer claimed it in epoch 0"):
            await claim.write(batch_on(claim.row))


# -- migrations


RELEASED = "e135dab0abdc3000"
"""The digest of all statements so far. It changes when one is added at the end, and must never for another reason."""


@pytest.mark.anyio
async def test_migrations_are_recorded(path: Path) -> None:
    """The number and the text of each statement that made the tables stand in the store."""
    async with SqliteStore(path):
        pass
    assert sql(path, "SELECT number, statement FROM migration ORDER BY number") == list(enumerate(MIGRATIONS, 1))


def test_released_migrations_stay() -> None:
    """Nobody edits a statement that stores were made by."""
    assert hashlib.blake2b("\0".join(MIGRATIONS).encode(), digest_size=8).hexdigest() == RELEASED


def made_by(path: Path, number: int) -> None:
    """Make a store as a Foreword of an earlier format would have left it."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id = 0x46775264")
    for at, statement in enumerate(MIGRATIONS[:number], 1):
        connection.execute(statement)
        connection.execute("INSERT INTO migration VALUES(?, ?)", (at, statement))
    connection.commit()
    connection.close()


@pytest.mark.anyio
@pytest.mark.parametrize("number", range(1, VERSION))
async def test_an_older_store_is_brought_up_to_date(path: Path, number: int) -> None:
    """Whoever may write brings an older store up to date when opening it; whoever only reads is told that this is due."""
    made_by(path, number)
    async with SqliteStore(path, read_only=True) as reader:
        with pytest.raises(StoreVersionError, match="open it for writing once") as caught:
            await reader.sessions()
    assert (caught.value.found, caught.value.known) == (number, VERSION)
    async with SqliteStore(path) as store:
        await begun(store, "s")
    async with SqliteStore(path, read_only=True) as reader:
        await check_whole(reader, "s")
    assert sql(path, "SELECT number, statement FROM migration ORDER BY number") == list(enumerate(MIGRATIONS, 1))


@pytest.mark.anyio
async def test_a_migration_that_fails_leaves_nothing(path: Path) -> None:
    """The statements that a store lacks are one set: if one fails, the store is as it was."""
    made_by(path, 2)
    sql(path, "CREATE TABLE ref(squatter)")
    before = sql(path, "SELECT sql FROM sqlite_schema")
    for _ in range(2):
        with pytest.raises(StoreError, match="table ref already exists"):
            await SqliteStore(path).open()
    assert sql(path, "SELECT sql FROM sqlite_schema") == before
    sql(path, "DROP TABLE ref")
    async with SqliteStore(path) as store:
        await begun(store, "s")


@pytest.mark.anyio
async def test_a_newer_store_is_refused(path: Path) -> None:
    """A store with a format that this Foreword does not know is not opened, to read or to write, and not changed."""
    async with SqliteStore(path) as store:
        await begun(store, "s")
    sql(path, "INSERT INTO migration VALUES(?, 'CREATE TABLE future(x)')", VERSION + 1)
    before = content(path)
    for read_only in (False, True):
        store = SqliteStore(path, read_only=read_only)
        with pytest.raises(StoreVersionError, match="upgrade Foreword here") as caught:
            await store.sessions()
        assert (caught.value.found, caught.value.known, caught.value.kind) == (VERSION + 1, VERSION, "store_version")
        await store.close()
    assert content(path) == before


@pytest.mark.anyio
async def test_a_store_that_becomes_newer_while_it_is_open(path: Path) -> None:
    """Each transaction looks: once a newer Foreword has changed the format, nothing is written or read any more."""
    async with SqliteStore(path) as store:
        claim = await begun(store, "s")
        sql(path, "INSERT INTO migration VALUES(?, 'CREATE TABLE future(x)')", VERSION + 1)
        calls: list[Callable[[], Any]] = [
            lambda: claim.write(batch_on(claim.row)), claim.settle, store.sessions, lambda: store.claim("s2"),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(StoreVersionError):
                await call()
        assert sql(path, "SELECT count(*) FROM event") == [(1,)]


@pytest.mark.anyio
async def test_a_store_made_otherwise_is_refused(path: Path) -> None:
    """A store whose records tell of other statements is not touched."""
    made_by(path, 3)
    sql(path, "UPDATE migration SET statement = 'CREATE TABLE event(x)' WHERE number = 3")
    with pytest.raises(StoreError, match="statements that this Foreword does not know") as caught:
        await SqliteStore(path).open()
    assert caught.value.kind == "store_not_a_store"


# -- one file in one process


@pytest.mark.anyio
async def test_a_file_is_opened_once(path: Path) -> None:
    """Stores of one file share it, by whatever name it is called, and each closes for itself."""
    link = path.with_name("link.db")
    link.symlink_to(path)
    one, two = SqliteStore(path), SqliteStore(link)
    claim = await begun(one, "s")
    with pytest.raises(SessionBusyError):
        await two.claim("s")
    await check_whole(two, "s")
    await two.close()
    await claim.write(batch_on(claim.row))
    await one.close()
    assert size(path) > 0
    assert not path.with_name("foreword.db-wal").exists()


@pytest.mark.anyio
async def test_closed_and_opened_again_and_again(path: Path) -> None:
    """However often and in whatever order stores of a file are opened and closed, the file stays usable."""
    async with SqliteStore(path) as store:
        await begun(store, "s")
    stores = [SqliteStore(path, read_only=bool(at % 3)) for at in range(12)]
    for at, store in enumerate(stores):
        async with SqliteStore(path) as writer:
            claim = await writer.claim("s")
            await claim.write(batch_on(claim.row))
        assert (await check_whole(store, "s")).count == at + 2
        if at >= 3:
            await stores[at - 3].close()
    for store in stores:
        await store.close()
    assert names_in(path.parent) == {"foreword.db", "foreword.db-claims"}
