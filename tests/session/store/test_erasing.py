"""Erasing in a file: not a byte of what was erased is left, whatever was done before; and what is in the way is told."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.session.store.support import batch_on, begun, check_whole, erasing, left_of, new_row, private, shared

from foreword.errors import StoreError
from foreword.session.store import BlobRow
from foreword.session.store.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "foreword.db"


@pytest.mark.anyio
@pytest.mark.parametrize("size", [1, 100, 3000, 4000, 9000, 100_000])
@pytest.mark.parametrize("tidied", [False, True], ids=["in the log", "in the file"])
async def test_nothing_is_left(path: Path, size: int, tidied: bool) -> None:
    """A secret of any length, in the write-ahead log or in the file already, is in no file of the store any more."""
    secrets = [private("hunter2" * size), shared("swordfish" * size)]
    async with SqliteStore(path) as store:
        claim = await begun(store, "s", 2, [private("a"), *secrets, private("b" * 5000)])
        if tidied:
            await store.checkpoint()
        assert left_of(path, b"hunter2", b"swordfish") == {b"hunter2", b"swordfish"}
        erased = await store.erase([each.digest for each in secrets], [(claim, erasing(claim.row, *secrets))])
        assert erased.complete
        assert left_of(path, b"hunter2", b"swordfish", secrets[0].salt or b"") == set()
        await check_whole(store, "s")
    assert left_of(path, b"hunter2", b"swordfish") == set()


@pytest.mark.anyio
@pytest.mark.parametrize(("texts", "text", "secrets", "secret"), [(17, 60, 51, 20), (20, 150, 24, 60), (5, 150, 58, 5)])
async def test_nothing_is_left_of_what_was_moved(path: Path, texts: int, text: int, secrets: int, secret: int) -> None:
    """Shared texts that are said again after they were erased move what stands beside them; of that, too, nothing is
    left. In these cases something is, if the file is not written anew."""
    rules = [shared(f"rule{at:02}" * text) for at in range(texts)]
    told = [private(f"SECRET{at:03}" * secret) for at in range(secrets)]
    async with SqliteStore(path) as store:
        claim = await begun(store, "s", 1)
        for at, rule in enumerate(rules):
            await claim.write(batch_on(claim.row, 1, [rule]))
            await store.erase([rule.digest], [(claim, erasing(claim.row, rule))])
            await claim.write(batch_on(claim.row, 1, told[at::texts]))
        await claim.write(batch_on(claim.row, 1, rules))
        erased = await store.erase([each.digest for each in told], [(claim, erasing(claim.row, *told))])
        assert erased.complete
        assert left_of(path, *((each.body or b"")[:9] for each in told)) == set()
        assert await store.blobs(rule.digest for rule in rules) == {rule.digest: rule for rule in rules}
        await check_whole(store, "s")


def marked(number: int, size: int, *, is_shared: bool) -> BlobRow:
    text = f"SECRET{number:04}" + "y" * size
    return shared(text) if is_shared else private(text)


DEEDS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.lists(st.tuples(st.sampled_from([0, 300, 1500, 9000]), st.booleans()), max_size=5)),
        st.tuples(st.just("erase"), st.lists(st.integers(0, 99), max_size=6)),
        st.tuples(st.just("again"), st.lists(st.integers(0, 99), max_size=4)),
        st.tuples(st.just("tidy"), st.just([])),
    ),
    max_size=30,
)  # fmt: skip


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(DEEDS)
def test_nothing_is_ever_left(tmp_path_factory: pytest.TempPathFactory, deeds: list[tuple[str, list[object]]]) -> None:
    """Whatever was written, erased, said again and moved into the file before: after an erasure no file of the store
    holds anything of what is erased now, and all else is there."""
    import anyio

    anyio.run(do, tmp_path_factory.mktemp("store") / "foreword.db", deeds)


async def do(path: Path, deeds: list[tuple[str, list[object]]]) -> None:
    blobs: list[BlobRow] = []
    gone: set[bytes] = set()
    async with SqliteStore(path) as store:
        claim = await store.claim("s", new=new_row("s"))
        await claim.write(batch_on(claim.row))
        for deed, values in deeds:
            chosen = {
                blobs[at % len(blobs)].digest: blobs[at % len(blobs)] for at in values if blobs and type(at) is int
            }
            match deed:
                case "write":
                    new = [
                        marked(len(blobs) + at, size, is_shared=is_shared)
                        for at, (size, is_shared) in enumerate(values)
                    ]  # type: ignore[misc]
                    blobs += new
                    await claim.write(batch_on(claim.row, 1, new))
                case "again":
                    again = [blob for digest, blob in chosen.items() if digest in gone and blob.salt is None]
                    gone -= {blob.digest for blob in again}
                    await claim.write(batch_on(claim.row, 1, again))
                case "erase":
                    erased = await store.erase(chosen, [(claim, erasing(claim.row, *chosen.values()))])
                    assert erased.complete
                    assert erased.blobs == chosen.keys() - gone
                    gone |= chosen.keys()
                    assert left_of(path, *((blob.body or b"")[:10] for blob in blobs if blob.digest in gone)) == set()
                case _:
                    await store.checkpoint()
        found = await store.blobs(blob.digest for blob in blobs)
        for blob in blobs:
            assert found[blob.digest] == (BlobRow(blob.digest, None, None) if blob.digest in gone else blob)


@pytest.mark.anyio
async def test_a_reader_in_the_way(path: Path) -> None:
    """While another process still reads an older state, it is told that something is left; later it goes."""
    secret = private("hunter2")
    async with SqliteStore(path) as store:
        claim = await begun(store, "s", 1, [secret])
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT * FROM blob").fetchall()
            erased = await store.erase([secret.digest], [(claim, erasing(claim.row, secret))])
            assert erased.blobs == {secret.digest}
            assert not erased.complete
            assert left_of(path, b"hunter2")
            assert not await store.checkpoint()
            assert not (await store.erase([], [])).complete
        assert (await store.erase([], [])).complete
        assert left_of(path, b"hunter2") == set()


@pytest.mark.anyio
async def test_a_writer_in_the_way(path: Path) -> None:
    """While another program keeps the store locked nothing is erased, which is told; later it is."""
    secret = private("hunter2")
    async with SqliteStore(path, lock_timeout=0.05) as store:
        claim = await begun(store, "s", 1, [secret])
        with closing(sqlite3.connect(path, isolation_level=None)) as locker:
            locker.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError) as caught:
                await store.erase([secret.digest], [(claim, erasing(claim.row, secret))])
            assert caught.value.kind == "store_locked"
        assert (await claim.settle()).count == 1
        assert await store.blobs([secret.digest]) == {secret.digest: secret}
        await store.erase([secret.digest], [(claim, erasing(claim.row, secret))])
        assert left_of(path, b"hunter2") == set()


@pytest.mark.anyio
async def test_claims_of_this_store(path: Path, tmp_path: Path) -> None:
    """A claim on another store, and a store that is read only, can erase nothing."""
    secret = private("hunter2")
    async with SqliteStore(path) as store, SqliteStore(tmp_path / "other.db") as other:
        claim, elsewhere = await begun(store, "s", 1, [secret]), await begun(other, "s", 1)
        with pytest.raises(ValueError, match="the claim on session s is not one on"):
            await store.erase([secret.digest], [(elsewhere, erasing(elsewhere.row, secret))])
        async with SqliteStore(path, read_only=True) as reader:
            with pytest.raises(StoreError, match="opened to read only"):
                await reader.erase([secret.digest], [(claim, erasing(claim.row, secret))])
        assert await store.blobs([secret.digest]) == {secret.digest: secret}
