"""Each driver passes the suite, and they agree on whatever is done to them."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.session.store.suite import Driver, StoreSuite, test_a_batch_holds_together
from tests.session.store.support import (
    batch_on,
    check_whole,
    contents,
    digest_of,
    erasing,
    fork_row,
    new_row,
    opening,
    shared,
)

from foreword.errors import ForewordError
from foreword.session.store import BlobRow, Claim, Store
from foreword.session.store.sqlite import SqliteStore
from foreword.testing import MemoryStore

__all__ = ["test_a_batch_holds_together"]


class TestSqlite(StoreSuite):
    """Sessions in a file."""

    @pytest.fixture
    def driver(self, tmp_path: Path) -> Driver:
        return lambda: SqliteStore(tmp_path / "foreword.db")


class TestMemory(StoreSuite):
    """Sessions in memory."""

    @pytest.fixture
    def driver(self) -> Driver:
        return MemoryStore().reopened


# -- the same deeds

IDS = st.sampled_from(["a", "b", "c"])
ALL_BLOBS = [
    *(BlobRow(digest_of("private", text), b"salt" * 4, text.encode()) for text in "xyz"),
    *(shared(text) for text in "uvw"),
]
BLOBS = st.lists(st.sampled_from(ALL_BLOBS), max_size=3)


@dataclass(frozen=True)
class Begin:
    """Claim a session that is to be new."""

    id: str


@dataclass(frozen=True)
class Resume:
    """Claim a session that is to be there."""

    id: str


@dataclass(frozen=True)
class Fork:
    """Claim a session that is to be a fork of another one, in the middle."""

    id: str
    parent: str
    at: int


@dataclass(frozen=True)
class Write:
    """Write a batch, which may be wrong in some way."""

    id: str
    events: int
    blobs: list[BlobRow]
    wrong: str


@dataclass(frozen=True)
class TakeOver:
    """Take a session over; the claim before is kept, and may be used by the next deeds."""

    id: str


@dataclass(frozen=True)
class Erase:
    """Erase a blob, as if only these sessions held it."""

    ids: frozenset[str]
    blob: BlobRow
    looked: bool


@dataclass(frozen=True)
class Release:
    """Release a claim."""

    id: str


@dataclass(frozen=True)
class Reopen:
    """Close the store, and open it again."""


DEEDS = st.lists(
    st.one_of(
        st.builds(Begin, IDS),
        st.builds(Resume, IDS),
        st.builds(Fork, IDS, IDS, st.integers(0, 4)),
        *[st.builds(Write, IDS, st.integers(0, 3), BLOBS, st.sampled_from(["", "", "", "epoch", "head", "ref"]))] * 4,
        st.builds(TakeOver, IDS),
        *[st.builds(Erase, st.frozensets(IDS), st.sampled_from(ALL_BLOBS), st.booleans())] * 2,
        st.builds(Release, IDS),
        st.builds(Reopen),
    ),
    max_size=25,
)


class Doer:
    """Does deeds to a store, and keeps the claims."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.store: Store = driver()
        self.claims: dict[str, Claim] = {}
        self.old: list[Claim | None] = []  # kept from the garbage

    async def do(self, deed: object) -> object:
        """What comes of it: a value, or the kind of error."""
        try:
            return await self.tried(deed)
        except ForewordError as error:
            return error.kind
        except ValueError as error:
            return str(error)

    async def tried(self, deed: object) -> Any:
        match deed:
            case Begin(id):
                self.claims[id] = await self.store.claim(id, new=new_row(id))
            case Resume(id):
                self.claims[id] = await self.store.claim(id)
            case Fork(id, parent, at):
                row = await self.store.session(parent)
                if row is not None:
                    events = await self.store.events(parent, 0, at)
                    self.claims[id] = await self.store.claim(id, new=fork_row(id, row, events))
            case Write(id) if id in self.claims:
                return await self.claims[id].write(self.batch(deed))
            case TakeOver(id):
                self.old.append(self.claims.get(id))
                self.claims[id] = await self.store.claim(id, take_over=opening)
            case Erase(ids, blob, looked):
                claims = [self.claims[each] for each in sorted(ids & self.claims.keys())]
                known = [each.digest for each in ALL_BLOBS] if looked else []
                writes = [(claim, erasing(claim.row, blob)) for claim in claims]
                erased = await self.store.erase([blob.digest], writes, looked_into=known)
                return erased, [claim.row for claim in claims], await self.store.holders([blob.digest])
            case Release(id) if id in self.claims:
                await self.claims[id].release()
            case Reopen():
                await self.store.close()
                self.store = self.driver()
        return None

    def batch(self, deed: Write) -> Any:
        batch = batch_on(self.claims[deed.id].row, deed.events, deed.blobs if deed.events else ())
        match deed.wrong:
            case "epoch":
                return replace(batch, epoch=3)
            case "head":
                return replace(batch, head=digest_of("elsewhere"))
            case "ref" if deed.events:
                return replace(batch, refs=((digest_of("nowhere"), batch.first),))
        return batch


@settings(max_examples=60)
@given(DEEDS)
def test_drivers_agree(deeds: list[object]) -> None:
    """Whatever is done, both stores answer the same, refuse the same, and hold the same; and every chain is whole."""

    async def main(folder: str) -> None:
        doers = [Doer(lambda: SqliteStore(Path(folder) / "foreword.db")), Doer(MemoryStore().reopened)]
        for deed in deeds:
            in_file, in_memory = [await doer.do(deed) for doer in doers]
            assert in_file == in_memory
        in_file, in_memory = [await contents(doer.store) for doer in doers]
        assert in_file == in_memory
        for row in await doers[0].store.sessions():
            await check_whole(doers[0].store, row.id)
        for doer in doers:
            await doer.store.close()

    with tempfile.TemporaryDirectory() as folder:
        anyio.run(main, folder)
