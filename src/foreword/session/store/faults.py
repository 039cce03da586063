"""What went wrong with a store's file, said so that somebody can do something about it.

Nothing is tried again here or above: waiting for locks is SQLite's, within its timeout, and all else needs a decision.
"""

from __future__ import annotations

import errno
import sqlite3
from typing import TYPE_CHECKING, Final

from foreword.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["doubtful", "from_os", "from_sqlite"]

_FULL: Final = "cannot be written: its disk, or your quota there, is full; make room, then go on"
_READ_ONLY: Final = (
    "cannot be written: the file, its folder or its file system is read-only for you; change that, or use another store"
)
_SQLITE: Final = {
    sqlite3.SQLITE_FULL: ("store_full", _FULL),
    sqlite3.SQLITE_READONLY: ("store_read_only", _READ_ONLY),
    sqlite3.SQLITE_PERM: ("store_read_only", _READ_ONLY),
    sqlite3.SQLITE_CANTOPEN: (
        "store_unreadable",
        "cannot be opened; see who may read and write it, its folder, and the files next to it that end in -wal, -shm; "
        "where you may not write, make a copy and read that",
    ),
    sqlite3.SQLITE_NOTADB: ("store_not_a_database", "is no SQLite database; give the path of another file"),
    sqlite3.SQLITE_CORRUPT: (
        "store_corrupt",
        "is damaged; copy it with the files beside it before anything else writes to it, and see what is whole with "
        "foreword log verify; where that cannot read it either, go back to a backup made with foreword log export",
    ),
}
_OS: Final = {
    errno.ENOSPC: ("store_full", _FULL),
    errno.EDQUOT: ("store_full", _FULL),
    errno.EROFS: ("store_read_only", _READ_ONLY),
    errno.EACCES: ("store_read_only", _READ_ONLY),
    errno.EPERM: ("store_read_only", _READ_ONLY),
}
_LOCKED: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_CERTAIN: Final = (
    *_LOCKED,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_FULL,
)  # what was begun is undone, and all is well


def from_sqlite(store: Path, error: sqlite3.Error, patience: float) -> StoreError:
    """The error to raise for one of SQLite's; ``patience`` is how many seconds it waited for locks."""
    code = _code(error)
    if code in _LOCKED:
        return StoreError(
            str(store),
            "store_locked",
            f"is locked: another process has not stopped writing for {patience:g} s; see what it does, then go on",
        )
    if code in _SQLITE:
        kind, why = _SQLITE[code]
        return StoreError(str(store), kind, f"{why} (SQLite: {error})")
    kind = "store_io" if code == sqlite3.SQLITE_IOERR else "store_failed"
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return StoreError(str(store), kind, f"failed: {error} ({name}); see whether its disk is well")


def from_os(store: Path, error: OSError) -> StoreError:
    """The error to raise for one of the operating system's."""
    kind, why = _OS.get(error.errno or 0, ("store_io", "cannot be used"))
    where = f" at {error.filename}" if error.filename else ""
    return StoreError(str(store), kind, f"{why} ({error.strerror or error}{where})")


def doubtful(error: sqlite3.Error) -> bool:
    """Whether the connection should be given up: after a failed write nobody knows what it holds to be true."""
    return _code(error) not in _CERTAIN


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the kind, the rest a detail
