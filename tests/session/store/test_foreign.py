"""A store from elsewhere: it is looked at before it is used, and what no store has is refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.session.store.support import begun, check_whole, contents, private, spoil

from foreword.errors import StoreError, StoreVersionError
from foreword.session.store import open_store
from foreword.session.store.schema import VERSION
from foreword.session.store.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "foreword.db"


async def made(path: Path) -> None:
    """A store with something in it, in one file."""
    async with SqliteStore(path) as store:
        await begun(store, "s", 50, [private("x" * 9000), private("y")])


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def content(path: Path) -> bytes:
    return path.read_bytes()


async def refused(path: Path, kind: str, words: str) -> None:
    for read_only in (True, False):
        store = open_store(f"sqlite:{path}", read_only=read_only, foreign=True)
        for call in (store.open, store.sessions):
            with pytest.raises(StoreError, match=words) as caught:
                await call()
            assert caught.value.kind == kind
            assert str(caught.value).isprintable()
        await store.close()


@pytest.mark.anyio
async def test_a_good_one_is_used(path: Path) -> None:
    """A store that is whole is read and written like any other; an empty file, or none, becomes one."""
    await made(path)
    async with open_store(f"sqlite:{path}", foreign=True) as store:
        await check_whole(store, "s")
        await begun(store, "s2")
    for name in ("empty.db", "new.db"):
        if name == "empty.db":
            path.with_name(name).touch()
        async with open_store(f"sqlite:{path.with_name(name)}", foreign=True) as store:
            await begun(store, "s")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("statement", "part"),
    [
        ("CREATE TRIGGER t AFTER INSERT ON event BEGIN DELETE FROM blob; END", "trigger 't'"),
        ("CREATE VIEW v AS SELECT * FROM blob", "view 'v'"),
        ("CREATE TABLE more(x)", "table 'more'"),
        ("CREATE INDEX i ON event(digest)", "index 'i'"),
        ("ALTER TABLE session ADD COLUMN more TEXT", "table 'session'"),
    ],
)
async def test_what_no_store_has(path: Path, statement: str, part: str) -> None:
    """Triggers, views, and tables that Foreword does not make are named, and nothing is done with the file."""
    await made(path)
    change(path, statement)
    before = content(path)
    await refused(path, "store_not_a_store", f"holds {part}, which no store has")
    assert content(path) == before


@pytest.mark.anyio
async def test_a_view_in_the_place_of_a_table(path: Path) -> None:
    """A table that was replaced by a view is not asked anything."""
    await made(path)
    change(path, "ALTER TABLE migration RENAME TO kept", "CREATE VIEW migration AS SELECT * FROM kept")
    await refused(path, "store_not_a_store", "which no store has")


@pytest.mark.anyio
async def test_a_newer_one_is_told_as_such(path: Path) -> None:
    """A store of a newer version has tables that we do not know; it is told that it is newer."""
    await made(path)
    change(path, "CREATE TABLE future(x)", f"INSERT INTO migration VALUES({VERSION + 1}, 'CREATE TABLE future(x)')")
    for read_only in (True, False):
        store = open_store(f"sqlite:{path}", read_only=read_only, foreign=True)
        with pytest.raises(StoreVersionError):
            await store.open()
        await store.close()


@pytest.mark.anyio
async def test_a_damaged_one(path: Path) -> None:
    """Damage anywhere in the file is found when it is opened, not when somebody comes upon it."""
    await made(path)
    spoil(path, -1)
    async with SqliteStore(path) as store:
        assert await store.sessions()  # who does not look sees nothing of it
    await refused(path, "store_corrupt", "is damaged")


@pytest.mark.anyio
async def test_one_that_is_open_already(path: Path) -> None:
    """A file that this process uses already is looked at as well, once somebody says that it comes from elsewhere."""
    async with SqliteStore(path) as trusting:
        await begun(trusting, "s")
        before = await contents(trusting)
        change(path, "CREATE VIEW v AS SELECT 1")
        assert await contents(trusting) == before
        await refused(path, "store_not_a_store", "holds view 'v'")
        with pytest.raises(StoreError, match="holds view 'v'"):
            await trusting.sessions()
