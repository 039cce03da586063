"""A store in memory: the rules of the real ones, without a disk. Whoever keeps the object keeps the sessions."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from foreword.errors import (
    ErasureConflictError,
    InactiveContextError,
    SessionBusyError,
    SessionExistsError,
    SessionFencedError,
    UnknownSessionError,
)
from foreword.session.store import rules
from foreword.session.store.contract import BlobRow, Erased, EventRow, SessionRow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from types import TracebackType
    from typing import Self

    from foreword.session.store.contract import Batch, Claim, TakeOver

__all__ = ["MemoryClaim", "MemoryStore"]

_NAME = "a store in memory"
_BY_NUMBER = itemgetter(1, 0)  # of the event, then by digest


@dataclass(frozen=True, slots=True)
class _Kept:
    """A session in memory. A batch makes a new one."""

    row: SessionRow
    events: tuple[EventRow, ...] = ()
    refs: tuple[tuple[bytes, int], ...] = ()  # as they came


class _Memory:
    """What is kept, and who may write it. One lock: whoever changes something does it alone."""

    def __init__(self) -> None:
        self.sessions: dict[str, _Kept] = {}  # the one whose event was written last comes last
        self.blobs: dict[bytes, BlobRow] = {}
        self.claims: dict[str, MemoryClaim] = {}
        self.lock = Lock()

    def add(self, batch: Batch, new: SessionRow | None) -> SessionRow:
        """Write a batch, and begin its session first if it is new."""
        with self.lock:
            return self._add(self._begun(new) if new is not None else self._there(batch.session), batch)

    def take_over(self, session: str, opening: TakeOver) -> SessionRow:
        """Put a session into its next epoch."""
        with self.lock:
            kept = self._there(session)
            row = rules.in_next_epoch(kept.row)
            batch = opening(row, kept.events[-1] if kept.events else None)
            rules.check_opening(row, batch)
            return self._add(replace(kept, row=row), batch)

    def erase(
        self, blobs: frozenset[bytes], batches: Sequence[Batch], looked_into: frozenset[bytes]
    ) -> tuple[frozenset[bytes], list[SessionRow]]:
        """Empty blobs, and write the batches that say so; gives what was emptied, and the sessions."""
        with self.lock:
            self._check_erasable(blobs, {batch.session for batch in batches}, looked_into)
            before = dict(self.sessions), dict(self.blobs)
            try:
                rows = [self._add(self._there(batch.session), batch) for batch in batches]
            except BaseException:
                self.sessions, self.blobs = before
                raise
            nothing = {digest: BlobRow(digest, None, None) for digest in blobs & self.blobs.keys()}
            emptied = frozenset(digest for digest, row in nothing.items() if self.blobs[digest] != row)
            self.blobs.update((digest, BlobRow(digest, None, None)) for digest in emptied)
            return emptied, rows

    def _there(self, session: str) -> _Kept:
        kept = self.sessions.get(session)
        if kept is None:
            raise UnknownSessionError(session, _NAME)
        return kept

    def _add(self, kept: _Kept, batch: Batch) -> SessionRow:
        row = rules.followed_by(kept.row, batch)
        self.blobs.update(self._brought(batch))
        if batch.events:
            self.sessions.pop(batch.session, None)
        self.sessions[batch.session] = _Kept(row, kept.events + batch.events, kept.refs + batch.refs)
        return row

    def _check_erasable(self, blobs: frozenset[bytes], sessions: set[str], looked_into: frozenset[bytes]) -> None:
        inside = set(blobs)  # those that no event refers to are in the trees of some
        others: dict[bytes, set[str]] = {}
        for kept in self.sessions.values():
            refs = {digest for digest, _ in kept.refs}
            inside -= refs
            if kept.row.id not in sessions:
                for digest in refs:
                    others.setdefault(digest, set()).add(kept.row.id)
        held = {digest: holders for digest, holders in others.items() if digest in blobs}
        if not held and (inside or any(map(self._is_shared, blobs))):
            held = {each: others[each] for each in others.keys() - looked_into if self._is_shared(each)}
        if held:
            digest = min(held)
            raise ErasureConflictError(sorted(held[digest]), digest.hex())

    def _is_shared(self, digest: bytes) -> bool:
        blob = self.blobs.get(digest)
        return blob is not None and blob.salt is None and blob.body is not None

    def _begun(self, new: SessionRow) -> _Kept:
        if new.id in self.sessions:
            raise SessionExistsError(new.id, _NAME)
        if new.parent is None:
            return _Kept(new)
        parent = self._there(new.parent)
        events = parent.events[: new.count]
        rules.check_fork(new, parent.row, events[-1].digest if 0 < len(events) == new.count else None)
        return _Kept(new, events, tuple(ref for ref in parent.refs if ref[1] < new.count))

    def _brought(self, batch: Batch) -> dict[bytes, BlobRow]:
        """The blobs that a batch brings, once it is seen that all it refers to is there."""
        brought: dict[bytes, BlobRow] = {}
        for blob in batch.blobs:
            there = brought.get(blob.digest) or self.blobs.get(blob.digest)
            if there is not None and blob.salt is not None:
                raise ValueError(f"a batch of session {batch.session} brings a private blob that is there already")
            if there is None or there.body is None:
                brought[blob.digest] = blob
        for digest, _ in batch.refs:
            if digest not in brought and digest not in self.blobs:
                raise ValueError(f"a batch of session {batch.session} refers to a blob that is not there")
        return brought


class MemoryStore:
    """A `Store` that keeps sessions as long as it is kept itself, for tests. Any thread and event loop may use it.

    What its events and blobs are can be looked at as in any store. Closed, it can be opened again with `reopened`.
    """

    def __init__(self) -> None:
        self.memory = _Memory()
        self._closed = False

    def reopened(self) -> MemoryStore:
        """Another store of the same sessions, as if the file of this one were opened once more."""
        store = MemoryStore()
        store.memory = self.memory
        return store

    async def open(self) -> None:
        """See `Store.open`."""
        await self._opened()

    async def claim(
        self, session: str, *, new: SessionRow | None = None, take_over: TakeOver | None = None
    ) -> MemoryClaim:
        """See `Store.claim`."""
        memory = await self._opened()
        rules.check_names(session, new)
        if take_over is not None:
            row = memory.take_over(session, take_over)
            claim = memory.claims[session] = MemoryClaim(self, memory, row, None)
            return claim
        with memory.lock:
            if session in memory.claims:
                raise SessionBusyError(session, os.getpid())
            kept = memory.sessions.get(session)
            row = rules.claimed(session, None if kept is None else kept.row, new, _NAME)
            claim = memory.claims[session] = MemoryClaim(self, memory, row, new)
        return claim

    async def session(self, id: str) -> SessionRow | None:
        """See `Store.session`."""
        kept = (await self._opened()).sessions.get(id)
        return None if kept is None else kept.row

    async def sessions(self) -> list[SessionRow]:
        """See `Store.sessions`."""
        memory = await self._opened()
        with memory.lock:
            kept = sorted(memory.sessions.values(), key=lambda each: bool(each.events))  # those without events first
        return [each.row for each in kept]

    async def events(self, id: str, first: int = 0, stop: int | None = None) -> list[EventRow]:
        """See `Store.events`."""
        kept = (await self._opened()).sessions.get(id)
        return [] if kept is None else list(kept.events[first:stop])

    async def refs(self, id: str, first: int = 0, stop: int | None = None) -> list[tuple[bytes, int]]:
        """See `Store.refs`."""
        kept = (await self._opened()).sessions.get(id)
        if kept is None:
            return []
        found = {ref for ref in kept.refs if first <= ref[1] and (stop is None or ref[1] < stop)}
        return sorted(found, key=_BY_NUMBER)

    async def blobs(self, digests: Iterable[bytes]) -> dict[bytes, BlobRow]:
        """See `Store.blobs`."""
        found = (await self._opened()).blobs
        return {digest: found[digest] for digest in digests if digest in found}

    async def holders(self, digests: Iterable[bytes]) -> dict[bytes, frozenset[str]]:
        """See `Store.holders`."""
        kept = (await self._opened()).sessions.values()
        referred = {each.row.id: {digest for digest, _ in each.refs} for each in kept}
        found = {digest: frozenset(each for each, refs in referred.items() if digest in refs) for digest in digests}
        return {digest: sessions for digest, sessions in found.items() if sessions}

    async def search(self, texts: Iterable[bytes]) -> list[bytes]:
        """See `Store.search`."""
        wanted = rules.searched(texts)
        found = (await self._opened()).blobs
        return [each.digest for each in found.values() if any(text in (each.body or b"") for text in wanted)]

    async def erase(
        self,
        blobs: Iterable[bytes],
        writes: Sequence[tuple[Claim, Batch]],
        *,
        looked_into: Collection[bytes] = (),
    ) -> Erased:
        """See `Store.erase`. It yields to the event loop once, when it is done."""
        from anyio.lowlevel import checkpoint

        if self._closed:
            raise InactiveContextError("this store in memory", "reopen it")
        told = [(self._own(claim, batch), batch) for claim, batch in writes]
        try:
            batches = [batch for _, batch in told]
            emptied, rows = self.memory.erase(frozenset(blobs), batches, frozenset(looked_into))
            for (claim, _), row in zip(told, rows, strict=True):
                claim.moved(row)
        finally:
            await checkpoint()
        return Erased(emptied, complete=True)

    async def export(self, path: str | Path) -> None:
        """See `Store.export`."""
        memory = await self._opened()
        with memory.lock:
            _export(memory, path)

    async def checkpoint(self) -> bool:
        """See `Store.checkpoint`; there is nothing to do."""
        await self._opened()
        return True

    async def close(self) -> None:
        """See `Store.close`."""
        self._closed = True
        for claim in tuple(self.memory.claims.values()):
            if claim.store is self:
                claim.let_go()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _own(self, claim: Claim, batch: Batch) -> MemoryClaim:
        if not isinstance(claim, MemoryClaim):
            raise TypeError(f"{claim!r} is no claim on a session in memory")
        claim.check(batch)
        if claim.store.memory is not self.memory:
            raise ValueError(f"the claim on session {claim.session} is one on another store in memory")
        return claim

    async def _opened(self) -> _Memory:
        """What is kept; on the way the event loop may turn to others, as it may while a file is read."""
        from anyio.lowlevel import checkpoint

        await checkpoint()
        if self._closed:
            raise InactiveContextError("this store in memory", "reopen it")
        return self.memory


class MemoryClaim:
    """A `Claim` on a session in memory. Made by `MemoryStore.claim`."""

    def __init__(self, store: MemoryStore, memory: _Memory, row: SessionRow, new: SessionRow | None) -> None:
        from anyio.lowlevel import checkpoint

        self.store = store
        self._pause = checkpoint  # looked up once: an import, even a second one, takes as long as a small batch
        self._memory = memory
        self._row = row
        self._new = new  # until it is in the store
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
        """See `Claim.write`. It yields to the event loop once, so a task may be cancelled here as with any store."""
        self.check(batch)
        try:
            self.moved(self._memory.add(batch, self._new))
        finally:
            await self._pause()
        return batch.head_after

    def check(self, batch: Batch) -> None:
        """See that a batch is this claim's to write, and that it may still."""
        self._check_held()
        if batch.session != self.session:
            raise ValueError(f"a batch of session {batch.session} is written with the claim on {self.session}")

    def moved(self, row: SessionRow) -> None:
        """The session is so now."""
        self._row, self._new = row, None

    async def settle(self) -> SessionRow:
        """See `Claim.settle`."""
        self._check_held()
        kept = self._memory.sessions.get(self.session)
        if kept is not None and kept.row.epoch != self._row.epoch:
            raise SessionFencedError(self.session, self._row.epoch, kept.row.epoch)
        return self._row

    async def release(self) -> None:
        """See `Claim.release`."""
        self.let_go()

    def let_go(self) -> None:
        """Release it at once."""
        self._released = True
        with self._memory.lock:
            if self._memory.claims.get(self.session) is self:
                del self._memory.claims[self.session]

    def _check_held(self) -> None:
        if self._released:
            raise InactiveContextError(f'the claim on session "{self.session}"', "claim it again")


def _export(memory: _Memory, path: str | Path) -> None:
    """Put all that is kept into a new file, as a store of SQLite's."""
    import sqlite3
    from contextlib import closing

    from foreword.session.store import rows, schema
    from foreword.session.store.connections import transaction
    from foreword.session.store.export import new_copy

    with (
        new_copy(Path(path).absolute()) as copy,
        closing(sqlite3.connect(copy, isolation_level=None)) as connection,
        transaction(connection, "IMMEDIATE"),
    ):
        schema.migrate(connection, copy)
        rows.put_blobs(connection, memory.blobs.values())
        for kept in sorted(memory.sessions.values(), key=lambda each: bool(each.events)):
            rows.put_whole(connection, kept.row, kept.events, kept.refs)
