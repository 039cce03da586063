"""What a store of sessions is: the rows that it keeps, and what every driver does with them.

A store keeps bytes; it knows nothing of what is in them. Who makes envelopes, digests and chains stands above it
(`foreword.session`). Every driver passes one suite, `tests/session/store/suite.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterable, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

__all__ = [
    "DIGEST_SIZE",
    "LONGEST_SESSION_ID",
    "SESSION_ID",
    "Batch",
    "BlobRow",
    "Claim",
    "Erased",
    "EventRow",
    "SessionRow",
    "Store",
    "TakeOver",
    "events_in_chunks",
]

DIGEST_SIZE: Final = 32
"""Bytes of every digest."""

LONGEST_SESSION_ID: Final = 128
"""Characters: an id is also the name of a file, and room for an ending must be left."""

SESSION_ID: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{LONGEST_SESSION_ID - 1}}}", re.ASCII)
"""What a session may be called (`fullmatch`): nothing that a file name, a shell or an address could misread."""


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event of a session, as it stands in the log for good."""

    seq: int  # from 0, without gaps
    envelope: bytes
    digest: bytes  # of the chain up to and with this event

    def __post_init__(self) -> None:
        if len(self.digest) != DIGEST_SIZE:
            raise _no_digest(self.digest, f"the digest of event {self.seq}")


@dataclass(frozen=True, slots=True)
class BlobRow:
    """A content that events refer to."""

    digest: bytes
    salt: bytes | None  # None: shared, so kept once in the whole store
    body: bytes | None  # None: erased, or never stored; of what was erased the salt is gone, too

    def __post_init__(self) -> None:
        if len(self.digest) != DIGEST_SIZE:
            raise _no_digest(self.digest, "the digest of a blob")


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session as far as a store knows it."""

    id: str
    genesis: bytes  # what its chain begins with; a fork has its parent's
    epoch: int  # of the claimant that may write; a take-over raises it
    count: int  # of its events, so the number of the next
    head: bytes  # the digest of the last event; the genesis where there is none
    created: int  # milliseconds since 1970
    parent: str | None = None  # which session it is a fork of
    forked_at: int | None = None  # how many of the parent's events it begins with

    def __post_init__(self) -> None:
        if len(self.genesis) != DIGEST_SIZE:
            raise _no_digest(self.genesis, f"the genesis of session {self.id}")
        if len(self.head) != DIGEST_SIZE:
            raise _no_digest(self.head, f"the head of session {self.id}")
        if (self.parent is None) != (self.forked_at is None):
            raise ValueError(f"session {self.id}: a fork has both parent and forked_at, any other session neither")


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction adds to one session: as a whole or not at all.

    It says what the session looked like when it was made. A store writes it only if the session still does.
    """

    session: str
    epoch: int
    first: int  # the number of its first event, which is the count before
    head: bytes  # before it
    events: tuple[EventRow, ...] = ()
    blobs: tuple[BlobRow, ...] = ()  # those that its events bring; a shared one may be in the store already
    refs: tuple[tuple[bytes, int], ...] = ()  # (digest of a blob, number of the event that refers to it)

    def __post_init__(self) -> None:
        if len(self.head) != DIGEST_SIZE:
            raise _no_digest(self.head, f"the head before a batch of session {self.session}")
        for expected, event in enumerate(self.events, self.first):
            if event.seq != expected:
                raise ValueError(f"a batch of session {self.session} has event {event.seq} in the place of {expected}")
        first, count_after = self.first, self.count_after
        for digest, seq in self.refs:
            if not first <= seq < count_after:
                raise ValueError(f"a batch of session {self.session} refers to {digest.hex()} from event {seq}")

    @property
    def count_after(self) -> int:
        """How many events the session has with it."""
        return self.first + len(self.events)

    @property
    def head_after(self) -> bytes:
        """The head of the session with it."""
        return self.events[-1].digest if self.events else self.head


@dataclass(frozen=True, slots=True)
class Erased:
    """What came of an erasure."""

    blobs: frozenset[bytes]  # that were emptied by it; the others were empty already, or are not there
    complete: bool  # False: a reader of an older state was in the way, and what was erased stands in a file beside
    # the store still, until a later `Store.checkpoint` is True


TakeOver: TypeAlias = Callable[[SessionRow, EventRow | None], Batch]
"""Makes the batch that a new epoch of a session begins with.

It is given the session's row, in the new epoch already, and its last event; None if it has none. It is called within
the store's transaction: it must not wait, nor use the store.
"""


class Claim(Protocol):
    """The right to write one session; one claimant at a time, in whatever process.

    It is let go by `release`, when its store is closed, and when its process ends, however it does. It is lost when
    somebody takes the session over.
    """

    @property
    def session(self) -> str:
        """The id of the session."""
        ...

    @property
    def row(self) -> SessionRow:
        """The session as of the last batch of this claim that was written, or as it was when claimed.

        It is up to date when `write` returns. After a `write` that was cancelled or failed, ask `settle`.
        """
        ...

    async def write(self, batch: Batch) -> bytes:
        """Write a batch and give the new head; it is durable when this returns.

        The batch is handed over before anything is awaited. From then on it is written, or fails, whatever becomes of
        the task that awaits it. Batches are written in the order in which they were handed over.

        The first batch of a claim with ``new`` brings the session into being: before it nobody else can see the
        session, and a batch without events will do. If the session is a fork, its parent's events and references are
        copied first, in the same transaction; ``first`` and ``head`` of that batch are those of the parent then.

        Raises:
            SessionFencedError: the batch is of another epoch than the session.
            SessionConflictError: the session has another number of events, or another head, than the batch says.
            SessionExistsError: the session was to be new, but is there.
            UnknownSessionError: the session, or the parent of a fork, is not there.
            ValueError: the batch is another session's, brings a private blob twice, refers to a blob that is not
                there, or does not fit the parent of the fork.
            StoreError: the store cannot take it. ``kind`` says why. The session is as it was, unless the disk failed
                while the batch was made durable; `settle` tells.
            InactiveContextError: the claim was released.
        """
        ...

    async def settle(self) -> SessionRow:
        """Wait until all that was handed over is written or has failed; then read what the store holds.

        Whoever had a `write` cancelled or failing learns here how much of it is in the store.

        Returns:
            `row`, read anew. For a new session that is not in the store yet, the row that it was claimed with.

        Raises:
            SessionFencedError: the session was taken over since; what it holds now is another writer's.
            StoreError: the store cannot be read.
            InactiveContextError: the claim was released.
        """
        ...

    async def release(self) -> None:
        """Let go of the session, after all that was handed over is written; a second time does nothing."""
        ...


class Store(Protocol):
    """Sessions, their events, and the blobs that they refer to. Any task, thread and event loop may use it.

    A store is opened when it is first used, or by `open`. Each method also raises `StoreError` when the store cannot be
    opened, read or written: ``kind`` says why; `StoreForkedError` in a process that was forked while the store was
    open; and `StoreVersionError` when it was written by a newer version of Foreword.
    """

    async def open(self) -> None:
        """Open the store now, to find out that it can be; a second time does nothing."""
        ...

    async def claim(self, session: str, *, new: SessionRow | None = None, take_over: TakeOver | None = None) -> Claim:
        """Get the right to write a session.

        Args:
            session: its id.
            new: the session as it shall begin, if it does not exist yet. ``count`` is 0 and ``head`` its genesis;
                those of a fork are ``forked_at`` and the digest of the parent's last event that it begins with.
            take_over: get it even if somebody else has it, who may be stopped, hung or cut off. In one transaction the
                epoch is raised by one and the batch written that this makes, so the session's row and its last event
                are never of different epochs. Whoever wrote before gets `SessionFencedError` from then on.

        Raises:
            SessionBusyError: somebody else has it; tells which process. Never with ``take_over``.
            ValueError: the batch of the take-over holds no event, or does not follow on the row that it was made for.
            UnknownSessionError: there is none of that id, and ``new`` is not given.
            SessionExistsError: there is one of that id, and ``new`` is given.
            InvalidSessionIdError: no session could bear the id.
        """
        ...

    async def session(self, id: str) -> SessionRow | None:
        """One session; None if there is none of that id."""
        ...

    async def sessions(self) -> list[SessionRow]:
        """All sessions; the one with the newest event comes last: what was written last, whatever clocks say."""
        ...

    async def events(self, id: str, first: int = 0, stop: int | None = None) -> list[EventRow]:
        """The events of a session in order, from number ``first`` up to, not with, ``stop``; without it to the last.

        A session that is not there has none. Events never change, so what is read in pieces fits together.
        """
        ...

    async def refs(self, id: str, first: int = 0, stop: int | None = None) -> list[tuple[bytes, int]]:
        """What the events of a session refer to: digest and number of the event, by number, then by digest."""
        ...

    async def blobs(self, digests: Iterable[bytes]) -> dict[bytes, BlobRow]:
        """The blobs of these digests, by digest; what is not there is left out."""
        ...

    async def holders(self, digests: Iterable[bytes]) -> dict[bytes, frozenset[str]]:
        """The sessions with an event that refers to each of these blobs; one that nobody refers to is left out."""
        ...

    async def search(self, texts: Iterable[bytes]) -> list[bytes]:
        """The digests of the blobs whose content holds one of these texts. Reads all contents, in flat memory."""
        ...

    async def erase(
        self,
        blobs: Iterable[bytes],
        writes: Sequence[tuple[Claim, Batch]],
        *,
        looked_into: Collection[bytes] = (),
    ) -> Erased:
        """Empty the contents and salts of blobs for good, and write a batch to each session that holds one of them.

        All of it is one transaction, handed over before anything is awaited. Then what the files held of the contents
        is overwritten, as far as no reader of an older state is in the way.

        Args:
            blobs: their digests.
            writes: claims of this store, each with the batch that says in its session what was erased. All sessions
                that hold one of the blobs must be there.
            looked_into: the shared blobs that other sessions refer to and that lead to none of ``blobs``. A store does
                not know what is in a blob, so the caller looks; should another session have come to refer to a shared
                blob that was not looked into, the erasure is refused.

        Raises:
            ErasureConflictError: a session that is not among ``writes`` refers to one of ``blobs``, or to a shared blob
                that was not looked into. Nothing was changed; look again.
            SessionFencedError, SessionConflictError, ValueError, InactiveContextError: as `Claim.write`.
        """
        ...

    async def export(self, path: str | Path) -> None:
        """Write a copy of the store, as it is at one moment, to a new file that ``sqlite:PATH`` opens.

        The copy is one file, for its owner only, checked and durable when this returns. Writers go on meanwhile.

        Raises:
            StoreError: something is there already (``store_exists``), the copy cannot be written, or is not whole.
        """
        ...

    async def checkpoint(self) -> bool:
        """Tidy up behind the writes so far; done at the end of a turn. False if a reader kept it from finishing."""
        ...

    async def close(self) -> None:
        """Release all claims made here, and close, after all that was handed over is written; twice is once."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


async def events_in_chunks(
    store: Store, id: str, first: int = 0, stop: int | None = None, *, size: int = 1000
) -> AsyncIterator[list[EventRow]]:
    """The events of a session, at most ``size`` at a time: a long session in flat memory."""
    while stop is None or first < stop:
        until = first + size if stop is None else min(first + size, stop)
        rows = await store.events(id, first, until)
        if rows:
            yield rows
        if len(rows) < until - first:
            return
        first = until


def _no_digest(found: bytes, what: str) -> ValueError:
    return ValueError(f"{what} has {len(found)} bytes; a digest has {DIGEST_SIZE}")
