"""Exports: a store as one new file, as it is at one moment. The only way to move a store while somebody writes it.

Copying the file by hand would part it from its write-ahead log, and what stood between the two would be lost.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from foreword.errors import StoreError
from foreword.session.store import faults, places
from foreword.session.store.connections import connect_to_read, transaction
from foreword.session.store.schema import check_version

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

__all__ = ["export_file", "new_copy"]

_OF_THE_STORE: Final = ("store_corrupt", "store_locked", "store_not_a_database", "store_unreadable")
"""Kinds of errors that are about what is read, not about what is written."""


def export_file(store: Path, target: Path, patience: float) -> None:
    """Copy a store's file. What is free in it, and what was erased, is not copied.

    Raises:
        StoreError: the store cannot be read or is damaged, or the copy cannot be written.
    """
    try:
        with (
            closing(connect_to_read(store, patience)) as connection,
            _blaming_the_right(store, connection),
            new_copy(target) as copy,
        ):
            with transaction(connection, "DEFERRED"):
                check_version(connection, store)
            connection.execute("VACUUM INTO ?", (str(copy),))
    except sqlite3.Error as error:
        fault = faults.from_sqlite(store, error, patience)
        raise (fault if fault.kind in _OF_THE_STORE else faults.from_sqlite(target, error, patience)) from error


@contextmanager
def _blaming_the_right(store: Path, connection: sqlite3.Connection) -> Generator[None]:
    """Where a copy is not whole because the store is not, say so; it was copied to the row."""
    try:
        yield
    except StoreError as error:
        damage = _damage(connection) if error.kind == "store_corrupt" else None
        if damage is None:
            raise
        why = f"is damaged ({damage}), so it has no whole copy; see what of it is whole with foreword log verify"
        raise StoreError(str(store), "store_corrupt", why) from None


@contextmanager
def new_copy(target: Path) -> Generator[Path]:
    """An empty file to be made a store within the block. At its end it is checked, made durable, and called ``target``.

    Raises:
        StoreError: there is something of that name, or no folder for it; or the copy is not whole.
    """
    _reserve(target)
    partial, journal = (target.with_name(f"{target.name}.partial{ending}") for ending in ("", "-journal"))
    try:
        for left in (partial, journal):  # by an export that was killed
            left.unlink(missing_ok=True)
        places.make_file(partial)
        yield partial
        _check_whole(partial, target)
        places.sync(partial)
        partial.replace(target)
        places.sync(target.parent)
    except BaseException as error:
        for left in (partial, journal, target):
            with suppress(OSError):  # on a disk that fails; what failed first is told
                left.unlink()
        if isinstance(error, OSError):
            raise faults.from_os(target, error) from error
        raise


def _reserve(target: Path) -> None:
    """Take the name, so that nothing is ever overwritten."""
    if not target.parent.is_dir():
        why = f"cannot be written: there is no folder {target.parent}; make it, or give another path"
        raise StoreError(str(target), "store_no_folder", why)
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        why = "is there already, and an export overwrites nothing; give another path"
        raise StoreError(str(target), "store_exists", why) from None
    except OSError as error:
        raise faults.from_os(target, error) from error


def _check_whole(copy: Path, target: Path) -> None:
    """See that all that was written can be read again."""
    with closing(sqlite3.connect(f"{copy.as_uri()}?mode=ro", uri=True)) as connection:
        damage = _damage(connection)
    if damage is not None:
        why = f"is not a whole copy ({damage}); see whether its disk is well"
        raise StoreError(str(target), "store_corrupt", why)


def _damage(connection: sqlite3.Connection) -> str | None:
    """What is wrong with a database, in words; None if nothing is."""
    found = [each for (each,) in connection.execute("PRAGMA integrity_check(1)")]
    lost = connection.execute("PRAGMA foreign_key_check").fetchone()
    if lost is not None:
        return f"a row of {lost[0]} refers to one of {lost[2]} that is not there"
    return None if found == ["ok"] else " ".join(found[0].split())
