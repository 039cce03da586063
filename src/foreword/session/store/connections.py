"""Connections to a store's file: how SQLite is set, and its transactions."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from foreword.errors import StoreError
from foreword.session.store import schema
from foreword.session.store.foreign import examine

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager
    from pathlib import Path

__all__ = ["SETTINGS", "checkpoint", "connect_to_read", "connect_to_write", "transaction"]

SETTINGS: Final = {
    "synchronous": 2,  # FULL: a transaction is on the disk before it is acknowledged
    "wal_autocheckpoint": 0,  # checkpoints are made at the end of a turn, not within a step
    "mmap_size": 0,  # a failing disk shall give an error, not a signal
    "secure_delete": 1,  # what is erased is overwritten
    "foreign_keys": 1,
    "temp_store": 2,  # MEMORY: nothing of a session in a folder for temporary files
    "trusted_schema": 0,
    "cell_size_check": 1,
}
"""What holds for every connection to a store, whatever this SQLite was built to do by default."""

_OLDEST: Final = (3, 37, 0)  # STRICT tables
_PATIENCE_AT_CHECKPOINT: Final = 200  # milliseconds to wait for readers, which are short; writers wait meanwhile


def connect_to_write(
    store: Path, patience: float, alone: Callable[[], AbstractContextManager[None]], *, foreign: bool = False
) -> sqlite3.Connection:
    """Open a file that is there, and make it a store of today's format if it is an empty or an older one.

    Args:
        store: absolute path.
        patience: seconds to wait for other processes' locks.
        alone: keeps other processes from doing the same, while something is missing.
        foreign: look at the whole file first; see `examine`.

    Raises:
        StoreError: it is another program's, a newer Foreword wrote it, or this SQLite cannot do what a store needs.
        sqlite3.Error: whatever SQLite says of the file.
    """
    connection = _connect(store, "rw", patience)
    try:
        if foreign:
            examine(connection, store)
        with transaction(connection, "DEFERRED"):
            schema.check_ours(connection, store)
            current = schema.is_current(connection)
        if current:
            _use_wal(connection, store)
        else:
            with alone():
                _use_wal(connection, store)
                with transaction(connection, "IMMEDIATE"):
                    schema.migrate(connection, store)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_read(store: Path, patience: float, *, foreign: bool = False) -> sqlite3.Connection:
    """Open a file that is there, and never change it.

    Args:
        store: absolute path.
        patience: seconds to wait for other processes' locks.
        foreign: look at the whole file first; see `examine`.

    Raises:
        StoreError: it is another program's, or nobody has written to it yet.
        sqlite3.Error: whatever SQLite says of the file.
    """
    connection = _connect(store, "ro", patience)
    try:
        if foreign:
            examine(connection, store)
        with transaction(connection, "DEFERRED"):
            if schema.is_empty(connection):
                why = "is empty; it becomes a store when an agent first writes to it"
                raise StoreError(str(store), "store_missing", why)
            schema.check_ours(connection, store)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(store: Path, mode: str, patience: float) -> sqlite3.Connection:
    if sqlite3.sqlite_version_info < _OLDEST:
        why = f"needs SQLite 3.37 or newer, and this Python has {sqlite3.sqlite_version}"
        raise StoreError(str(store), "store_failed", why)
    connection = sqlite3.connect(
        f"{store.as_uri()}?mode={mode}",
        uri=True,
        timeout=patience,
        isolation_level=None,  # transactions are begun where it says so
        check_same_thread=False,  # used by one thread at a time, but not by one alone
    )
    try:
        for name, value in SETTINGS.items():
            connection.execute(f"PRAGMA {name}={value}")
            told = connection.execute(f"PRAGMA {name}").fetchone()
            if told not in (None, (value,)):  # None: it was built without
                why = f"cannot be used: this SQLite does not let {name} be {value}"
                raise StoreError(str(store), "store_failed", why)
    except BaseException:
        connection.close()
        raise
    return connection


def _use_wal(connection: sqlite3.Connection, store: Path) -> None:
    mode: str = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if mode != "wal":
        why = f"cannot have a write-ahead log where it is (SQLite keeps the mode {mode}); keep it on another disk"
        raise StoreError(str(store), "store_failed", why)


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str) -> Generator[None]:
    """All or nothing. Immediate ones may write and are alone; deferred ones see the store as it is at first."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite ends some by itself
            connection.execute("ROLLBACK")
        raise


def checkpoint(connection: sqlite3.Connection, patience: float) -> bool:
    """Bring what the write-ahead log holds into the file, and empty it. False if a reader was in the way."""
    connection.execute(f"PRAGMA busy_timeout={_PATIENCE_AT_CHECKPOINT}")
    try:
        busy: int = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        connection.execute(f"PRAGMA busy_timeout={round(patience * 1000)}")
    return not busy
