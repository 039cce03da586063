"""Wiping: what was erased leaves no trace in the files of a store.

SQLite overwrites what it deletes (``secure_delete``), with one exception: where a page runs over in the middle of a
table, it moves rows to the pages beside it, and what they leave behind is not overwritten. Contents are only ever put
at the end of their table, where nothing is moved, and are emptied in place; but a shared one that was erased and is
said again grows where it stands. A mark in the file's header tells so, and the next erasure writes the file anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from foreword.session.store import places
from foreword.session.store.connections import checkpoint

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

__all__ = ["note_moves", "wipe"]

_MOVED: Final = 1  # in user_version, which no reader of ours looks at for anything else


def note_moves(connection: sqlite3.Connection) -> None:
    """In a transaction that may move contents: leave the mark."""
    connection.execute(f"PRAGMA user_version={_MOVED}")


def wipe(connection: sqlite3.Connection, store: Path, patience: float) -> bool:
    """Leave nothing in the files of what has been emptied, and make that durable.

    Args:
        connection: that may write, outside a transaction.
        store: the file.
        patience: seconds that the connection waits for locks.

    Returns:
        False if a reader of an older state is in the way: what it may still read cannot be removed.
    """
    if connection.execute("PRAGMA user_version").fetchone()[0] == _MOVED:
        connection.execute("VACUUM")
        connection.execute("PRAGMA user_version=0")
    if not checkpoint(connection, patience):
        return False
    # That the write-ahead log is empty is nothing that SQLite makes durable: for its own needs it may come back. It has
    # no locks on that file, which opening and closing it here would drop.
    places.sync(store.with_name(f"{store.name}-wal"))
    return True
