"""What the tests of stores share: batches that follow on a session, and the rule that makes their chain checkable."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import anyio

from foreword.session.store import Batch, BlobRow, Claim, EventRow, SessionRow, Store

GENESIS = hashlib.blake2b(b"genesis", digest_size=32).digest()


def digest_of(*parts: object) -> bytes:
    return hashlib.blake2b(repr(parts).encode(), digest_size=32).digest()


def new_row(id: str, genesis: bytes = GENESIS) -> SessionRow:
    """A session that is to begin."""
    return SessionRow(id, genesis, epoch=0, count=0, head=genesis, created=1_700_000_000_000)


def fork_row(id: str, parent: SessionRow, events: Sequence[EventRow]) -> SessionRow:
    """A fork that is to begin, with these events of its parent's."""
    head = events[-1].digest if events else parent.genesis
    return SessionRow(id, parent.genesis, 0, len(events), head, 1_700_000_000_001, parent.id, len(events))


def shared(text: str) -> BlobRow:
    return BlobRow(digest_of("shared", text), None, text.encode())


def private(text: str) -> BlobRow:
    salt = os.urandom(16)
    return BlobRow(digest_of("private", salt, text), salt, text.encode())


def batch_on(row: SessionRow, events: int = 1, blobs: Iterable[BlobRow] = (), said: str = "x") -> Batch:
    """A batch that follows on a session as it is; its first event refers to all of the blobs."""
    blobs = tuple(blobs)
    head, made = row.head, []
    for seq in range(row.count, row.count + events):
        envelope = json.dumps({"session": row.id, "seq": seq, "said": said}).encode()
        head = digest_of(head, envelope)
        made.append(EventRow(seq, envelope, head))
    refs = tuple((blob.digest, row.count) for blob in blobs)
    return Batch(row.id, row.epoch, row.count, row.head, tuple(made), blobs, refs if events else ())


def opening(row: SessionRow, last: EventRow | None) -> Batch:
    """What a take-over begins its epoch with; it is the row's business, and the last event's, that both are right."""
    assert (last.seq + 1, last.digest) == (row.count, row.head) if last else row.head == row.genesis
    return batch_on(row, 1, said=f"taken over in epoch {row.epoch}")


def erasing(row: SessionRow, *blobs: BlobRow) -> Batch:
    """A batch that says what is erased."""
    return batch_on(row, 1, said="erased " + " ".join(blob.digest.hex() for blob in blobs))


async def begun(store: Store, id: str, events: int = 1, blobs: Iterable[BlobRow] = ()) -> Claim:
    """A new session with some events, and the claim on it."""
    claim = await store.claim(id, new=new_row(id))
    await claim.write(batch_on(claim.row, events, blobs))
    return claim


def check_chain(row: SessionRow, events: Sequence[EventRow]) -> None:
    """Each event follows on the one before, and the head is that of the last."""
    head = row.genesis
    for seq, event in enumerate(events):
        assert event.seq == seq
        assert event.digest == digest_of(head, event.envelope)
        head = event.digest
    assert (row.count, row.head) == (len(events), head)


async def check_whole(store: Store, id: str) -> SessionRow:
    """The session is there, its chain is whole, and all that it refers to is there; gives its row."""
    row = await store.session(id)
    assert row is not None
    events = await store.events(id, 0, row.count)
    check_chain(row, events)
    refs = {digest for digest, _ in await store.refs(id)}
    assert (await store.blobs(refs)).keys() == refs
    return row


async def contents(store: Store) -> dict[str, object]:
    """All that can be read of a store."""
    rows = await store.sessions()
    found: dict[str, object] = {"sessions": rows}
    for row in rows:
        refs = await store.refs(row.id)
        found[row.id] = (await store.events(row.id), refs, await store.blobs({digest for digest, _ in refs}))
    return found


async def write_cancelled(claim: Claim, batch: Batch) -> None:
    """Write in a task that is cancelled already, so that it goes at its first await."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        await claim.write(batch)
    assert scope.cancelled_caught


def names_in(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def left_of(path: Path, *texts: bytes) -> set[bytes]:
    """Which of these texts stand in a file of a store."""
    data = b"\n\n".join(each.read_bytes() for each in sorted(path.parent.glob(f"{path.name}*")) if each.is_file())
    return {text for text in texts if text in data}


def spoil(path: Path, *pages: int) -> None:
    """Overwrite what pages of a database begin with; those with negative numbers are counted from the end."""
    with path.open("r+b") as file:
        for page in pages:
            file.seek(page * 4096, os.SEEK_SET if page >= 0 else os.SEEK_END)
            file.write(b"\x55" * 64)
