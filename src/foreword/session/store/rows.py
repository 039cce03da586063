"""A store's rows in SQL: what is read, and how a batch is written. All of it within a transaction of the caller's."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any, Final

from foreword.errors import ErasureConflictError, UnknownSessionError
from foreword.session.store import rules, wiping
from foreword.session.store.contract import BlobRow, EventRow, SessionRow

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from foreword.session.store.contract import Batch

__all__ = [
    "add",
    "check_erasable",
    "empty",
    "find_blobs",
    "move_to",
    "put_blobs",
    "put_session",
    "put_whole",
    "read_blobs",
    "read_events",
    "read_holders",
    "read_refs",
    "read_session",
    "read_sessions",
]

_SESSION: Final = "SELECT id, genesis, epoch, seq, head, created, parent, forked_at FROM session"
_RANGE: Final = "session = ? AND seq >= ? AND seq < ?"
_NO_END: Final = 2**63 - 1


def read_session(connection: sqlite3.Connection, id: str) -> SessionRow | None:
    """One session."""
    found: Any = connection.execute(f"{_SESSION} WHERE id = ?", (id,)).fetchone()
    return None if found is None else SessionRow(*found)


def read_sessions(connection: sqlite3.Connection) -> list[SessionRow]:
    """All sessions, the one whose last event was written last coming last; first those without any."""
    newest = "(SELECT position FROM event WHERE event.session = session.id AND event.seq = session.seq - 1)"
    return [SessionRow(*row) for row in connection.execute(f"{_SESSION} ORDER BY {newest}, rowid")]


def read_events(connection: sqlite3.Connection, id: str, first: int, stop: int | None) -> list[EventRow]:
    """The events of a session from one number up to, not with, another."""
    query = f"SELECT seq, envelope, digest FROM event WHERE {_RANGE} ORDER BY seq"
    return [EventRow(*row) for row in connection.execute(query, (id, first, _NO_END if stop is None else stop))]


def read_refs(connection: sqlite3.Connection, id: str, first: int, stop: int | None) -> list[tuple[bytes, int]]:
    """What those events refer to."""
    query = f"SELECT digest, seq FROM ref WHERE {_RANGE} ORDER BY seq, digest"
    return list(connection.execute(query, (id, first, _NO_END if stop is None else stop)))


def read_blobs(connection: sqlite3.Connection, digests: Iterable[bytes]) -> dict[bytes, BlobRow]:
    """The blobs of these digests that are there."""
    found: dict[bytes, BlobRow] = {}
    for digest in digests:
        row: Any = connection.execute("SELECT digest, salt, body FROM blob WHERE digest = ?", (digest,)).fetchone()
        if row is not None:
            found[digest] = BlobRow(*row)
    return found


def read_holders(connection: sqlite3.Connection, digests: Iterable[bytes]) -> dict[bytes, frozenset[str]]:
    """Which sessions refer to each of these blobs."""
    wanted = frozenset(digests)
    found: dict[bytes, set[str]] = {}
    for session, digest in connection.execute("SELECT session, digest FROM ref"):
        if digest in wanted:
            found.setdefault(digest, set()).add(session)
    return {digest: frozenset(sessions) for digest, sessions in found.items()}


def find_blobs(connection: sqlite3.Connection, texts: Iterable[bytes]) -> list[bytes]:
    """The digests of the blobs that hold one of these texts."""
    wanted = rules.searched(texts)
    if not wanted:
        return []
    holds = " OR ".join(["instr(body, ?)"] * len(wanted))
    return [digest for (digest,) in connection.execute(f"SELECT digest FROM blob WHERE {holds}", wanted)]


def add(connection: sqlite3.Connection, store: Path, batch: Batch, new: SessionRow | None) -> SessionRow:
    """Write a batch if its session is as it says, and begin the session first if it is new.

    Raises:
        SessionError: the session is not as the batch says.
        ValueError: the batch does not hold together.
    """
    row = read_session(connection, batch.session)
    if new is not None:
        row = _begun(connection, store, rules.claimed(new.id, row, new, str(store)))
    if row is None:
        raise UnknownSessionError(batch.session, str(store))
    after = rules.followed_by(row, batch)
    _add_blobs(connection, batch)
    _put_events(connection, batch.session, batch.events)
    _add_refs(connection, batch)
    connection.execute("UPDATE session SET seq = ?, head = ? WHERE id = ?", (after.count, after.head, after.id))
    return after


def move_to(connection: sqlite3.Connection, row: SessionRow) -> None:
    """Put a session into another epoch."""
    connection.execute("UPDATE session SET epoch = ? WHERE id = ?", (row.epoch, row.id))


def check_erasable(
    connection: sqlite3.Connection, blobs: Collection[bytes], sessions: Collection[str], looked_into: Collection[bytes]
) -> None:
    """See that what other sessions refer to does not lead to any of these blobs.

    Args:
        connection: to the store.
        blobs: what is to be erased.
        sessions: which are told of it.
        looked_into: shared blobs that lead to none of them.

    Raises:
        ErasureConflictError: it does, or may.
    """
    inside = set(blobs)  # those that no event refers to are in the trees of some
    held: dict[bytes, set[str]] = {}
    for session, digest in connection.execute("SELECT session, digest FROM ref"):
        if digest in blobs:
            inside.discard(digest)
            if session not in sessions:
                held.setdefault(digest, set()).add(session)
    if not held and (inside or any(_is_shared(connection, digest) for digest in blobs)):
        held = _not_looked_into(connection, sessions, looked_into)
    if held:
        digest = min(held)
        raise ErasureConflictError(sorted(held[digest]), digest.hex())


def _not_looked_into(
    connection: sqlite3.Connection, sessions: Collection[str], looked_into: Collection[bytes]
) -> dict[bytes, set[str]]:
    """The shared blobs, and who refers to them, that may lead to anything."""
    query = "SELECT session, digest FROM ref JOIN blob USING(digest) WHERE blob.salt IS NULL AND blob.body IS NOT NULL"
    found: dict[bytes, set[str]] = {}
    for session, digest in connection.execute(query):
        if session not in sessions and digest not in looked_into:
            found.setdefault(digest, set()).add(session)
    return found


def _is_shared(connection: sqlite3.Connection, digest: bytes) -> bool:
    """Whether a blob is a shared one with content: it may lead to others, and others to it."""
    query = "SELECT 1 FROM blob WHERE digest = ? AND salt IS NULL AND body IS NOT NULL"
    return connection.execute(query, (digest,)).fetchone() is not None


def empty(connection: sqlite3.Connection, blobs: Iterable[bytes]) -> frozenset[bytes]:
    """Empty these blobs; gives those that were not empty yet."""
    query = "UPDATE blob SET salt = NULL, body = NULL WHERE digest = ? AND (body IS NOT NULL OR salt IS NOT NULL)"
    return frozenset(digest for digest in blobs if connection.execute(query, (digest,)).rowcount)


def put_session(connection: sqlite3.Connection, row: SessionRow) -> None:
    """Write a session's row."""
    connection.execute(
        "INSERT INTO session(id, genesis, epoch, seq, head, created, parent, forked_at) VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
        (row.id, row.genesis, row.epoch, row.count, row.head, row.created, row.parent, row.forked_at),
    )


def put_whole(
    connection: sqlite3.Connection, row: SessionRow, events: Iterable[EventRow], refs: Iterable[tuple[bytes, int]]
) -> None:
    """Write a session that is there elsewhere, with its events and what they refer to."""
    put_session(connection, row)
    _put_events(connection, row.id, events)
    _put_refs(connection, row.id, refs)


def put_blobs(connection: sqlite3.Connection, blobs: Iterable[BlobRow]) -> None:
    """Write blobs that are new."""
    values = ((blob.digest, blob.salt, blob.body) for blob in blobs)
    connection.executemany("INSERT INTO blob(digest, salt, body) VALUES(?, ?, ?)", values)


def _put_events(connection: sqlite3.Connection, session: str, events: Iterable[EventRow]) -> None:
    connection.executemany(
        "INSERT INTO event(session, seq, envelope, digest) VALUES(?, ?, ?, ?)",
        ((session, event.seq, event.envelope, event.digest) for event in events),
    )


def _put_refs(connection: sqlite3.Connection, session: str, refs: Iterable[tuple[bytes, int]]) -> None:
    connection.executemany(
        "INSERT INTO ref(session, seq, digest) VALUES(?, ?, ?) ON CONFLICT DO NOTHING",
        ((session, seq, digest) for digest, seq in refs),
    )


def _begun(connection: sqlite3.Connection, store: Path, new: SessionRow) -> SessionRow:
    """Make the row of a new session; a fork gets copies of the parent's events, which are its own from then on."""
    if new.parent is not None:
        parent = read_session(connection, new.parent)
        if parent is None:
            raise UnknownSessionError(new.parent, str(store))
        last = read_events(connection, parent.id, new.count - 1, new.count)
        rules.check_fork(new, parent, last[0].digest if last else None)
    put_session(connection, new)
    copied = (new.id, new.parent, new.forked_at)  # of no parent there are none
    connection.execute(
        "INSERT INTO event(session, seq, envelope, digest) "
        "SELECT ?, seq, envelope, digest FROM event WHERE session = ? AND seq < ? ORDER BY seq",
        copied,
    )
    connection.execute(
        "INSERT INTO ref(session, seq, digest) SELECT ?, seq, digest FROM ref WHERE session = ? AND seq < ?", copied
    )
    return new


def _add_blobs(connection: sqlite3.Connection, batch: Batch) -> None:
    shared = [(blob.digest, blob.body) for blob in batch.blobs if blob.salt is None]
    connection.executemany("INSERT INTO blob(digest, salt, body) VALUES(?, NULL, ?) ON CONFLICT DO NOTHING", shared)
    said_again = [(body, digest) for digest, body in shared if _is_erased(connection, digest)]
    if said_again:
        wiping.note_moves(connection)
        connection.executemany("UPDATE blob SET body = ? WHERE digest = ?", said_again)
    try:
        put_blobs(connection, (blob for blob in batch.blobs if blob.salt is not None))
    except sqlite3.IntegrityError as error:
        raise ValueError(f"a batch of session {batch.session} brings a private blob that is there already") from error


def _is_erased(connection: sqlite3.Connection, digest: bytes) -> bool:
    query = "SELECT 1 FROM blob WHERE digest = ? AND body IS NULL"
    return connection.execute(query, (digest,)).fetchone() is not None


def _add_refs(connection: sqlite3.Connection, batch: Batch) -> None:
    try:
        _put_refs(connection, batch.session, batch.refs)
    except sqlite3.IntegrityError as error:
        raise ValueError(f"a batch of session {batch.session} refers to a blob that is not there") from error
