"""Exports of a file: whole, consistent and private, while others write; nothing is left of one that fails."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from tests.session.store.support import (
    batch_on,
    begun,
    check_whole,
    contents,
    erasing,
    left_of,
    names_in,
    private,
    spoil,
)

from foreword.errors import StoreError
from foreword.session.store.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "foreword.db"


@pytest.mark.anyio
async def test_an_export_beside_a_writer(path: Path, tmp_path: Path) -> None:
    """Exports of a store that is being written are whole batches up to some moment, each later than the one before."""
    async with SqliteStore(path) as store, SqliteStore(path, read_only=True) as reader:
        claim = await begun(store, "s", 3)
        done = False

        async def write() -> None:
            while not done:
                await claim.write(batch_on(claim.row, 3, [private("x" * 5000)]))
                await store.checkpoint()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            counts = [3]
            for at in range(5):
                await reader.export(tmp_path / f"{at}.db")
                async with SqliteStore(tmp_path / f"{at}.db", read_only=True) as copy:
                    counts.append((await check_whole(copy, "s")).count)
            done = True
        assert sorted(counts) == counts
        assert all(count % 3 == 0 for count in counts)


@pytest.mark.anyio
async def test_an_export_is_private_and_alone(path: Path, tmp_path: Path) -> None:
    """It is one file for its owner only, which needs no others beside it to be read; the store stays as it was."""
    (tmp_path / "out").mkdir()
    async with SqliteStore(path) as store:
        await begun(store, "s", 2, [private("a")])
        before = await contents(store)
        await store.export(tmp_path / "out" / "copy.db")
        assert await contents(store) == before
    assert names_in(tmp_path / "out") == {"copy.db"}
    assert (tmp_path / "out" / "copy.db").stat().st_mode & 0o777 == 0o600
    async with SqliteStore(tmp_path / "out" / "copy.db", read_only=True) as copy:
        assert await contents(copy) == before
    assert names_in(tmp_path / "out") == {"copy.db"}


@pytest.mark.anyio
async def test_what_was_erased_is_not_exported(path: Path, tmp_path: Path) -> None:
    """Even where a reader keeps the store's own files from being tidied, a copy holds nothing of what was erased."""
    secret = private("hunter2")
    async with SqliteStore(path) as store:
        claim = await begun(store, "s", 1, [secret])
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM blob").fetchall()
            await store.erase([secret.digest], [(claim, erasing(claim.row, secret))])
            assert left_of(path, b"hunter2")
            await store.export(tmp_path / "copy.db")
    assert left_of(tmp_path / "copy.db", b"hunter2") == set()


@pytest.mark.anyio
async def test_a_damaged_store_is_not_exported(path: Path, tmp_path: Path) -> None:
    """What cannot be read is told, and there is no copy that would look like one."""
    async with SqliteStore(path) as store:
        await begun(store, "s", 2000)
    spoil(path, *range(7, 60))
    before = names_in(tmp_path)
    async with SqliteStore(path, read_only=True) as store:
        with pytest.raises(StoreError) as caught:
            await store.export(tmp_path / "copy.db")
        assert caught.value.kind == "store_corrupt"
        assert str(path) in str(caught.value)
    assert names_in(tmp_path) - {"foreword.db-wal", "foreword.db-shm"} == before


@pytest.mark.anyio
async def test_a_store_that_lacks_a_row_is_not_exported(path: Path, tmp_path: Path) -> None:
    """Where rows are missing it is the store that is named, with the way out, and not the copy."""
    async with SqliteStore(path) as store:
        await begun(store, "s", 4, [private("a")])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA foreign_keys=OFF")
        assert connection.execute("DELETE FROM event WHERE seq IN (SELECT seq FROM ref)").rowcount >= 1
    before = names_in(tmp_path)
    async with SqliteStore(path, read_only=True) as store:
        with pytest.raises(StoreError, match="foreword log verify") as caught:
            await store.export(tmp_path / "copy.db")
    assert (caught.value.store, caught.value.kind) == (str(path), "store_corrupt")
    assert "a row of ref refers to one of event that is not there" in caught.value.why
    assert "copy.db" not in str(caught.value)
    assert names_in(tmp_path) - {"foreword.db-wal", "foreword.db-shm"} == before


@pytest.mark.anyio
async def test_what_a_killed_export_left(path: Path, tmp_path: Path) -> None:
    """A half copy of an export that was killed is in nobody's way; the name that it had taken has to be freed."""
    (tmp_path / "copy.db.partial").write_text("half")
    (tmp_path / "copy.db.partial-journal").write_text("half, too")
    async with SqliteStore(path) as store:
        await begun(store, "s")
        await store.export(tmp_path / "copy.db")
    assert names_in(tmp_path) == {"foreword.db", "foreword.db-claims", "copy.db"}
    async with SqliteStore(tmp_path / "copy.db", read_only=True) as copy:
        await check_whole(copy, "s")
