"""Sessions in one file, without a server: a `Store` over SQLite.

Every call is one hop to a thread of ours and one transaction there.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from foreword.errors import (
    InactiveContextError,
    SessionBusyError,
    SessionFencedError,
    StoreError,
    UnknownSessionError,
)
from foreword.session.store import places, rows, rules
from foreword.session.store.claims import FileLock, holder_of, lock_file, lock_files, sweep
from foreword.session.store.connections import checkpoint, transaction
from foreword.session.store.contract import Erased
from foreword.session.store.export import export_file
from foreword.session.store.open_file import OpenFile
from foreword.session.store.schema import check_version
from foreword.session.store.wiping import wipe
from foreword.session.store.worker import Handed, Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from types import TracebackType
    from typing import Self

    from foreword.session.store.contract import Batch, BlobRow, Claim, EventRow, SessionRow, TakeOver

__all__ = ["SqliteClaim", "SqliteStore", "weakness"]

T = TypeVar("T")

_WAL_RESET_FIXED = (3, 51, 3)


class SqliteStore:
    """A `Store` in a file. Stores of the same file share what is open of it in a process.

    Args:
        path: the file; a missing one is made when the store is opened, readable for its owner only, and so is its
            folder, but not the one above.
        read_only: never make or change the file; sessions cannot be claimed.
        foreign: it comes from elsewhere: see that it is whole, and nothing but a store, before it is used.
        lock_timeout: seconds to wait where another process is writing; that of the first store of a file counts.
        file_system: tells the type of the file system that a path is on, so that network ones can be refused.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        read_only: bool = False,
        foreign: bool = False,
        lock_timeout: float = 10.0,
        file_system: Callable[[Path], str | None] = places.file_system_of,
    ) -> None:
        self.path = Path(os.path.realpath(path))
        self.read_only = read_only
        self._foreign = foreign
        self._lock_timeout = lock_timeout
        self._file_system = file_system
        self._file: OpenFile | None = None
        self._is_open = False
        self._closed = False
        self._claims: set[SqliteClaim] = set()
        self._claims_folder = places.claims_folder(self.path)

    async def open(self) -> None:
        """See `Store.open`."""
        file = self._used()
        await (file.reading if self.read_only else file.writing).submit(lambda _: None).result()
        self._is_open = True

    async def claim(
        self, session: str, *, new: SessionRow | None = None, take_over: TakeOver | None = None
    ) -> SqliteClaim:
        """See `Store.claim`."""
        rules.check_names(session, new)
        file = self._used()
        self._check_writable()
        if take_over is None:
            taking = file.writing.submit(lambda connection: self._take(file, connection, session, new))
        else:
            taking = file.writing.submit(lambda connection: self._take_over(file, connection, session, take_over))
        try:
            claim = await taking.result()
        except BaseException:
            file.writing.submit_plain(lambda: _let_go(taking))  # nobody is there any more to release it
            raise
        self._claims.add(claim)
        return claim

    async def session(self, id: str) -> SessionRow | None:
        """See `Store.session`."""
        return await self._read(lambda connection: rows.read_session(connection, id))

    async def sessions(self) -> list[SessionRow]:
        """See `Store.sessions`."""
        return await self._read(rows.read_sessions)

    async def events(self, id: str, first: int = 0, stop: int | None = None) -> list[EventRow]:
        """See `Store.events`."""
        return await self._read(lambda connection: rows.read_events(connection, id, first, stop))

    async def refs(self, id: str, first: int = 0, stop: int | None = None) -> list[tuple[bytes, int]]:
        """See `Store.refs`."""
        return await self._read(lambda connection: rows.read_refs(connection, id, first, stop))

    async def blobs(self, digests: Iterable[bytes]) -> dict[bytes, BlobRow]:
        """See `Store.blobs`."""
        wanted = tuple(digests)
        return await self._read(lambda connection: rows.read_blobs(connection, wanted))

    async def holders(self, digests: Iterable[bytes]) -> dict[bytes, frozenset[str]]:
        """See `Store.holders`."""
        wanted = tuple(digests)
        return await self._read(lambda connection: rows.read_holders(connection, wanted))

    async def search(self, texts: Iterable[bytes]) -> list[bytes]:
        """See `Store.search`."""
        wanted = tuple(texts)
        return await self._read(lambda connection: rows.find_blobs(connection, wanted))

    async def erase(
        self,
        blobs: Iterable[bytes],
        writes: Sequence[tuple[Claim, Batch]],
        *,
        looked_into: Collection[bytes] = (),
    ) -> Erased:
        """See `Store.erase`."""
        self._check_writable()
        file = self._used()
        told = [(self._own(claim, batch, file), batch) for claim, batch in writes]
        wanted, known = frozenset(blobs), frozenset(looked_into)
        return await file.writing.submit(lambda connection: _erase(file, connection, wanted, told, known)).result()

    async def export(self, path: str | Path) -> None:
        """See `Store.export`."""
        file = self._used()
        file.check_process()
        if not self._is_open:
            await self.open()
        copying = Handed(lambda: export_file(self.path, Path(path).absolute(), file.patience))
        Worker(f"foreword exports {self.path.name}").hand_over(copying)  # a thread of its own: it may take long
        await copying.result()

    async def checkpoint(self) -> bool:
        """See `Store.checkpoint`: bring the write-ahead log into the file, and empty it."""
        self._check_writable()
        file = self._used()
        return await file.writing.submit(lambda connection: checkpoint(connection, file.patience)).result()

    async def close(self) -> None:
        """See `Store.close`."""
        file, self._file, self._closed = self._file, None, True
        if file is None:
            return
        released = [claim.let_go() for claim in tuple(self._claims)]
        await file.leave()
        for each in released:
            await each.result()

    async def __aenter__(self) -> Self:
        try:
            await self.open()
        except BaseException:
            await self.close()  # nobody else will
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<SqliteStore {self.path}{', read only' if self.read_only else ''}>"

    def _used(self) -> OpenFile:
        if self._closed:
            raise InactiveContextError(f"the session store {self.path}", "open it again")
        if self._file is None:
            self._file = OpenFile.use(self.path, self._lock_timeout, self._file_system)
            if self._foreign:
                self._file.distrust()
        return self._file

    def _check_writable(self) -> None:
        if self.read_only:
            raise StoreError(str(self.path), "store_read_only", "was opened to read only; open it without read_only")

    async def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        file = self._used()
        if not self._is_open:
            await self.open()  # who may write makes the file, where it is not there yet

        def work(connection: sqlite3.Connection) -> T:
            with transaction(connection, "DEFERRED"):
                check_version(connection, self.path)
                return read(connection)

        return await file.reading.submit(work).result()

    def _take(
        self, file: OpenFile, connection: sqlite3.Connection, session: str, new: SessionRow | None
    ) -> SqliteClaim:
        """In the writing thread: lock a session in its epoch, and see that it is there, or is not."""
        while True:
            found = self._find(connection, session)
            row = found or new
            if row is None:
                self._check_unclaimed(session)
                raise UnknownSessionError(session, str(self.path))
            lock = self._lock(session, row.epoch)
            try:
                again = self._find(connection, session)
                if found is None:
                    self._check_unclaimed(session, but=row.epoch)
                if _epoch(again) == _epoch(found):
                    row = rules.claimed(session, again, new, str(self.path))
                    sweep(self._claims_folder, session, but=row.epoch)
                    return SqliteClaim(file, lock, row, new, self._claims.discard)
            except BaseException:
                lock.release()
                raise
            lock.release()  # it began, or was taken over, between the looks

    def _take_over(
        self, file: OpenFile, connection: sqlite3.Connection, session: str, opening: TakeOver
    ) -> SqliteClaim:
        """In the writing thread: put a session into its next epoch, which nobody has locked."""
        lock: FileLock | None = None
        try:
            with transaction(connection, "IMMEDIATE"):
                check_version(connection, self.path)
                found = rules.claimed(session, rows.read_session(connection, session), None, str(self.path))
                row = rules.in_next_epoch(found)
                lock = self._lock(session, row.epoch)
                last = rows.read_events(connection, session, row.count - 1, row.count)
                batch = opening(row, last[0] if last else None)
                rules.check_opening(row, batch)
                rows.move_to(connection, row)
                row = rows.add(connection, self.path, batch, None)
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        sweep(self._claims_folder, session, but=row.epoch)
        return SqliteClaim(file, lock, row, None, self._claims.discard)

    def _find(self, connection: sqlite3.Connection, session: str) -> SessionRow | None:
        with transaction(connection, "DEFERRED"):
            check_version(connection, self.path)
            return rows.read_session(connection, session)

    def _lock(self, session: str, epoch: int) -> FileLock:
        path = lock_file(self._claims_folder, session, epoch)
        lock = FileLock.take(path)
        if lock is None:
            raise SessionBusyError(session, holder_of(path))
        return lock

    def _check_unclaimed(self, session: str, *, but: int | None = None) -> None:
        """See that nobody is about to begin a session that is not there yet."""
        for path in lock_files(self._claims_folder, session, but=but):
            lock = FileLock.take(path)
            if lock is None:
                raise SessionBusyError(session, holder_of(path))
            lock.release()

    def _own(self, claim: Claim, batch: Batch, file: OpenFile) -> SqliteClaim:
        """A claim of this store's that may write a batch."""
        if not isinstance(claim, SqliteClaim):
            raise TypeError(f"{claim!r} is no claim on a session in a file")
        claim.check(batch)
        if claim.file is not file:
            raise ValueError(f"the claim on session {claim.session} is not one on {self.path}")
        return claim


class SqliteClaim:
    """A `Claim` on a session in a file. Made by `SqliteStore.claim`."""

    def __init__(
        self,
        file: OpenFile,
        lock: FileLock,
        row: SessionRow,
        new: SessionRow | None,
        leave: Callable[[SqliteClaim], None],
    ) -> None:
        self.file = file
        self._lock = lock
        self._row = row
        self._new = new  # until it is in the store
        self._leave = leave
        self._released = False

    @property
    def session(self) -> str:
        """See `Claim.session`."""
        return self._row.id

    @property
    def row(self) -> SessionRow:
        """See `Claim.row`."""
        return self._row

    async def write(self, batch: Batch) -> bytes:
        """See `Claim.write`."""
        self.check(batch)
        return await self.file.writing.submit(lambda connection: self._write(connection, batch)).result()

    async def settle(self) -> SessionRow:
        """See `Claim.settle`."""
        self._check_held()
        return await self.file.writing.submit(self._read).result()

    async def release(self) -> None:
        """See `Claim.release`."""
        if not self._released:
            await self.let_go().result()

    def let_go(self) -> Handed[None]:
        """Have it released, after all that was handed over is written."""
        released = self.file.writing.submit_plain(self._lock.release)
        self._released = True
        self._leave(self)
        return released

    def drop(self) -> None:
        """In the writing thread: release it at once."""
        self._released = True
        self._lock.release()

    def __repr__(self) -> str:
        return f"<SqliteClaim on {self.session} in {self.file.path}{', released' if self._released else ''}>"

    def check(self, batch: Batch) -> None:
        """See that a batch is this claim's to write, and that it may still."""
        self._check_held()
        if batch.session != self.session:
            raise ValueError(f"a batch of session {batch.session} is written with the claim on {self.session}")

    def moved(self, row: SessionRow) -> None:
        """In the writing thread: the session is so now."""
        self._row, self._new = row, None

    def _check_held(self) -> None:
        if self._released:
            raise InactiveContextError(f'the claim on session "{self.session}"', "claim it again")

    def _write(self, connection: sqlite3.Connection, batch: Batch) -> bytes:
        """In the writing thread."""
        with transaction(connection, "IMMEDIATE"):
            check_version(connection, self.file.path)
            row = rows.add(connection, self.file.path, batch, self._new)
        self.moved(row)
        return row.head

    def _read(self, connection: sqlite3.Connection) -> SessionRow:
        """In the writing thread, so after all that was handed over."""
        with transaction(connection, "DEFERRED"):
            check_version(connection, self.file.path)
            row = rows.read_session(connection, self.session)
        if row is not None:
            if row.epoch != self._row.epoch:
                raise SessionFencedError(self.session, self._row.epoch, row.epoch)
            self.moved(row)
        elif self._new is None:
            raise UnknownSessionError(self.session, str(self.file.path))
        return self._row


def _erase(
    file: OpenFile,
    connection: sqlite3.Connection,
    blobs: frozenset[bytes],
    writes: Sequence[tuple[SqliteClaim, Batch]],
    looked_into: frozenset[bytes],
) -> Erased:
    """In the writing thread."""
    with transaction(connection, "IMMEDIATE"):
        check_version(connection, file.path)
        rows.check_erasable(connection, blobs, {claim.session for claim, _ in writes}, looked_into)
        after = [(claim, rows.add(connection, file.path, batch, None)) for claim, batch in writes]
        emptied = rows.empty(connection, blobs)
    for claim, row in after:
        claim.moved(row)
    return Erased(emptied, wipe(connection, file.path, file.patience))


def _epoch(row: SessionRow | None) -> int | None:
    return None if row is None else row.epoch


def _let_go(taking: Handed[SqliteClaim]) -> None:
    """In the writing thread: release a claim that nobody waited for."""
    if taking.outcome is not None:
        taking.outcome.drop()


def weakness() -> str | None:
    """What is known to be wrong with the SQLite of this Python, for those who look after a store; None if nothing."""
    if sqlite3.sqlite_version_info >= _WAL_RESET_FIXED:
        return None
    return (
        f"SQLite {sqlite3.sqlite_version} has a fault, mended in 3.51.3, by which a store that several processes write "
        f"at once can be damaged while its write-ahead log is emptied"
    )
