"""The tables of a store, and how older ones become today's. All of it within a transaction of the caller's.

Migrations are numbered single statements. Those that a store lacks are one set: one transaction, with a record of each.
What was released is never edited, since stores hold its text: a change is a new statement at the end.
"""

from __future__ import annotations

import sqlite3
from textwrap import dedent
from typing import TYPE_CHECKING, Final

from foreword.errors import StoreError, StoreVersionError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "MIGRATIONS",
    "VERSION",
    "check_not_newer",
    "check_ours",
    "check_version",
    "is_current",
    "is_empty",
    "migrate",
    "strange_part",
]

_APPLICATION_ID: Final = 0x46775264  # "FwRd" in the header of the file tells a store from other databases

_STATEMENTS: Final = (
    """
    CREATE TABLE migration(
        number INTEGER PRIMARY KEY,
        statement TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE session(
        id TEXT NOT NULL PRIMARY KEY,
        genesis BLOB NOT NULL,
        epoch INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        head BLOB NOT NULL,
        created INTEGER NOT NULL,
        parent TEXT REFERENCES session(id),
        forked_at INTEGER
    ) STRICT
    """,
    # The position is the order in which events were written, over all sessions. Nothing else depends on it.
    """
    CREATE TABLE event(
        position INTEGER PRIMARY KEY,
        session TEXT NOT NULL REFERENCES session(id),
        seq INTEGER NOT NULL,
        envelope BLOB NOT NULL,
        digest BLOB NOT NULL,
        UNIQUE(session, seq)
    ) STRICT
    """,
    """
    CREATE TABLE blob(
        digest BLOB NOT NULL PRIMARY KEY,
        salt BLOB,
        body BLOB
    ) STRICT
    """,
    """
    CREATE TABLE ref(
        session TEXT NOT NULL,
        seq INTEGER NOT NULL,
        digest BLOB NOT NULL REFERENCES blob(digest),
        PRIMARY KEY(session, seq, digest),
        FOREIGN KEY(session, seq) REFERENCES event(session, seq)
    ) STRICT, WITHOUT ROWID
    """,
)

MIGRATIONS: Final = tuple(dedent(statement).strip() for statement in _STATEMENTS)
"""The statements that make a store, in their order; the first has the number 1."""

VERSION: Final = len(MIGRATIONS)
"""The number of the last migration: the format that this code reads and writes."""


def is_empty(connection: sqlite3.Connection) -> bool:
    """Whether nobody has put anything into the database yet."""
    return _first(connection, "PRAGMA application_id") == 0 and not _first(
        connection, "SELECT count(*) FROM sqlite_schema"
    )


def check_ours(connection: sqlite3.Connection, store: Path) -> None:
    """See that a database is a store, or an empty one that may become one.

    Raises:
        StoreError: it is somebody else's.
    """
    if _first(connection, "PRAGMA application_id") != _APPLICATION_ID and not is_empty(connection):
        why = "is a database of another program; give the path of another file"
        raise StoreError(str(store), "store_not_a_store", why)


def check_version(connection: sqlite3.Connection, store: Path) -> None:
    """See that the store has just the format that this code knows.

    Raises:
        StoreVersionError: it has another; since it was opened, a newer Foreword may have brought it up to date.
    """
    found = _version(connection)
    if found != VERSION:
        raise StoreVersionError(str(store), found, VERSION)


def check_not_newer(connection: sqlite3.Connection, store: Path) -> None:
    """See that this code may bring the store up to date, if it must.

    Raises:
        StoreVersionError: a newer version wrote it.
    """
    if _first(connection, "SELECT count(*) FROM sqlite_schema WHERE sql = ?", MIGRATIONS[0]):
        found = _version(connection)
        if found > VERSION:
            raise StoreVersionError(str(store), found, VERSION)


def strange_part(connection: sqlite3.Connection) -> str | None:
    """The kind and the name of something in the database that our statements do not make; None if there is nothing."""
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall():
        made_by_sqlite = kind == "index" and sql is None
        if not made_by_sqlite and sql not in MIGRATIONS:
            return f"{kind} {name!r}"
    return None


def is_current(connection: sqlite3.Connection) -> bool:
    """Whether a database that is ours has all that this code knows, and no more."""
    return not is_empty(connection) and _version(connection) == VERSION


def migrate(connection: sqlite3.Connection, store: Path) -> None:
    """Make the tables that a store lacks.

    Raises:
        StoreVersionError: a newer version wrote it.
        StoreError: its records tell of other statements than ours.
    """
    if is_empty(connection):
        connection.execute(f"PRAGMA application_id={_APPLICATION_ID}")
        done: list[str] = []
    else:
        done = [text for (text,) in connection.execute("SELECT statement FROM migration ORDER BY number")]
    if len(done) > VERSION:
        raise StoreVersionError(str(store), len(done), VERSION)
    if done != list(MIGRATIONS[: len(done)]):
        why = "was made by statements that this Foreword does not know; use the version that made it"
        raise StoreError(str(store), "store_not_a_store", why)
    for number, statement in enumerate(MIGRATIONS[len(done) :], len(done) + 1):
        connection.execute(statement)
        connection.execute("INSERT INTO migration(number, statement) VALUES(?, ?)", (number, statement))


def _version(connection: sqlite3.Connection) -> int:
    return _first(connection, "SELECT max(number) FROM migration") or 0


def _first(connection: sqlite3.Connection, query: str, *values: str) -> int | None:
    value: int | None = connection.execute(query, values).fetchone()[0]
    return value
