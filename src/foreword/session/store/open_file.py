"""A store's file as this process has it open: once, however many stores are made of it.

A `Side` is a connection and the thread that uses it. There are two: one writes, one reads, so that who reads need not
wait for a disk. Both open when first used, and again after a fault.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from foreword.errors import StoreError, StoreForkedError
from foreword.session.store import faults, places
from foreword.session.store.claims import FileLock
from foreword.session.store.connections import connect_to_read, connect_to_write
from foreword.session.store.worker import Handed, Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

__all__ = ["OpenFile", "Side"]

T = TypeVar("T")

_OPENING = ".opening"  # no session can be called so


class Side:
    """One connection to a file, and the thread that uses it."""

    def __init__(self, file: OpenFile, name: str, connect: Callable[[], sqlite3.Connection]) -> None:
        self._file = file
        self._connect = connect
        self._worker = Worker(f"foreword {name} {file.path.name}")
        self._connection: sqlite3.Connection | None = None

    def submit(self, work: Callable[[sqlite3.Connection], T]) -> Handed[T]:
        """Have something done with the connection; it is handed over at once.

        Raises:
            StoreForkedError: this process is a fork of the one that opened the file.
        """
        return self.submit_plain(lambda: work(self._ready()))

    def submit_plain(self, work: Callable[[], T]) -> Handed[T]:
        """Have something done without the connection, after all that was handed over before.

        Raises:
            StoreForkedError: this process is a fork of the one that opened the file.
        """
        self._file.check_process()
        handed = Handed(lambda: self._do(work))
        self._worker.hand_over(handed)
        return handed

    def hand_on(self, handed: Handed[T]) -> None:
        """From another side's thread: have something done here next."""
        self._worker.hand_over(handed)

    def drop(self) -> None:
        """In the side's thread: close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def forked(self) -> None:
        """In a forked child: see to it that the connection is never closed, for that would break the parent's locks."""
        if self._connection is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))  # so not even the interpreter's end frees it

    def _do(self, work: Callable[[], T]) -> T:
        path = self._file.path
        try:
            return work()
        except sqlite3.Error as error:
            if faults.doubtful(error):
                self.drop()
            raise faults.from_sqlite(path, error, self._file.patience) from error
        except OSError as error:
            raise faults.from_os(path, error) from error

    def _ready(self) -> sqlite3.Connection:
        self._file.check_in_place()
        if self._connection is None:
            self._connection = self._connect()
            self._file.found()
        return self._connection


class OpenFile:
    """A file that is open in this process, and how many stores use it."""

    def __init__(self, path: Path, patience: float, file_system: Callable[[Path], str | None]) -> None:
        self.path = path
        self.patience = patience  # seconds to wait for other processes' locks
        self.foreign = False  # whether it is looked at as a whole before it is used
        self.writing = Side(self, "writes", self._connect_to_write)
        self.reading = Side(self, "reads", self._connect_to_read)
        self._file_system = file_system
        self._pid = os.getpid()
        self._users = 0
        self._opened_as: os.stat_result | None = None

    @classmethod
    def use(cls, path: Path, patience: float, file_system: Callable[[Path], str | None]) -> OpenFile:
        """The file, shared with all who use it in this process; `leave` it when done.

        Raises:
            StoreForkedError: it was open in the process that this one is a fork of.
        """
        with _guard:
            file = _files.get(path)
            if file is None:
                file = _files[path] = cls(path, patience, file_system)
            file.check_process()
            file._users += 1
            return file

    def distrust(self) -> None:
        """From now on see it as one from elsewhere, also if it is in use already."""
        if not self.foreign:
            self.foreign = True
            for side in (self.reading, self.writing):
                side.submit_plain(side.drop)

    async def leave(self) -> None:
        """Stop using it, after all that was handed over is done; whoever leaves last closes it."""
        self.check_process()
        with _guard:
            self._users -= 1
        closed = Handed(self._close_if_unused)
        self.reading.submit_plain(lambda: self._stop_reading(closed))
        await closed.result()

    def check_process(self) -> None:
        """See that this process opened the file."""
        if self._pid != os.getpid():
            raise StoreForkedError(str(self.path), self._pid)

    def check_in_place(self) -> None:
        """See that the path leads to what was opened. What is written to a removed file is lost without a word."""
        if self._opened_as is None:
            return
        try:
            in_place = os.path.samestat(self.path.stat(), self._opened_as)
        except FileNotFoundError:
            in_place = False
        if not in_place:
            why = "was moved, removed or replaced while it was open; close it, and see that nobody else tidies up there"
            raise StoreError(str(self.path), "store_replaced", why)

    def found(self) -> None:
        """A side has opened it: whatever is opened later has to be the same."""
        if self._opened_as is None:
            self._opened_as = self.path.stat()

    def forked(self) -> None:
        """In a forked child: the file stays in the table, for SQLite's own knowledge of its locks is wrong here."""
        self.writing.forked()
        self.reading.forked()

    def _stop_reading(self, closed: Handed[None]) -> None:
        if not self._users:
            self.reading.drop()
        self.writing.hand_on(closed)  # last, since only who may write can tidy up the write-ahead log

    def _close_if_unused(self) -> None:
        if self._users:
            return
        try:
            self.writing.drop()
        finally:
            with _guard:
                if not self._users:
                    _files.pop(self.path, None)

    def _connect_to_write(self) -> sqlite3.Connection:
        self._check_place()
        places.make_folder(self.path)
        if not self.path.exists():
            places.make_claims_folder(self.path)
        places.make_file(self.path)
        places.check_writable(self.path)
        connection = connect_to_write(self.path, self.patience, self._opening, foreign=self.foreign)
        try:
            places.make_claims_folder(self.path)  # not before: what is no store gets no folder beside it
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _opening(self) -> Generator[None]:
        """Be the only process that makes the tables; two at once would disturb each other."""
        places.make_claims_folder(self.path)
        lock = FileLock.take(places.claims_folder(self.path) / _OPENING, self.patience)
        if lock is None:
            why = f"is being made by another process, which has not finished for {self.patience:g} s; see what it does"
            raise StoreError(str(self.path), "store_locked", why)
        try:
            yield
        finally:
            lock.release()

    def _connect_to_read(self) -> sqlite3.Connection:
        self._check_place()
        if not self.path.exists():
            why = "is not there; give the path of another file, or let an agent make it"
            raise StoreError(str(self.path), "store_missing", why)
        return connect_to_read(self.path, self.patience, foreign=self.foreign)

    def _check_place(self) -> None:
        places.check_file(self.path, self._file_system(self.path))


# By the path that is left when symbolic links are followed. No fork may happen while it is changed.
_files: dict[Path, OpenFile] = {}
_guard = Lock()


def _after_fork_in_child() -> None:
    for file in _files.values():
        file.forked()
    _guard.release()


os.register_at_fork(before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_after_fork_in_child)
