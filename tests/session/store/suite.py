"""What every store does. A driver passes by a subclass with a fixture `driver`; see `test_suite.py`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import anyio
import pytest
from tests.concurrency.support import in_threads
from tests.session.store.support import (
    GENESIS,
    batch_on,
    begun,
    check_chain,
    check_whole,
    contents,
    digest_of,
    erasing,
    fork_row,
    names_in,
    new_row,
    opening,
    private,
    shared,
    write_cancelled,
)

from foreword.errors import (
    ErasureConflictError,
    InactiveContextError,
    InvalidSessionIdError,
    SessionBusyError,
    SessionConflictError,
    SessionExistsError,
    SessionFencedError,
    StoreError,
    UnknownSessionError,
)
from foreword.session.store import (
    Batch,
    BlobRow,
    Erased,
    EventRow,
    SessionRow,
    Store,
    TakeOver,
    events_in_chunks,
    open_store,
)


class Driver(Protocol):
    """Makes stores."""

    def __call__(self) -> Store:
        """A store that is not open yet; each one made has the same contents."""
        ...


class StoreSuite:
    """The rules of `foreword.session.store.contract`."""

    # -- writing and reading

    @pytest.mark.anyio
    async def test_what_is_written_is_read(self, driver: Driver) -> None:
        """Events, blobs and references come back byte for byte, from this store and from one that is opened later."""
        odd = b"\x00\xff\r\n\xc3\xa9"
        blobs = [private("a"), shared("b"), replace(private("c"), body=odd), replace(private("d"), body=b"")]
        async with driver() as store:
            claim = await store.claim("s", new=new_row("s"))
            batch = batch_on(claim.row, 3, blobs)
            batch = replace(batch, events=tuple(replace(each, envelope=each.envelope + odd) for each in batch.events))
            assert await claim.write(batch) == batch.head_after
        async with driver() as store:
            assert await store.events("s") == list(batch.events)
            assert await store.blobs(blob.digest for blob in blobs) == {blob.digest: blob for blob in blobs}
            assert await store.refs("s") == sorted(batch.refs)
            assert await store.session("s") == replace(new_row("s"), count=3, head=batch.head_after)

    @pytest.mark.anyio
    async def test_nothing_is_there_at_first(self, driver: Driver) -> None:
        """A new store has no sessions, and asking for what is not there gives nothing."""
        async with driver() as store:
            assert await store.sessions() == []
            assert await store.session("s") is None
            assert await store.events("s") == []
            assert await store.refs("s") == []
            assert await store.blobs([digest_of("nothing")]) == {}

    @pytest.mark.anyio
    async def test_a_store_opens_when_it_is_used(self, driver: Driver) -> None:
        """Opening is not needed, may be done twice, and so may closing."""
        store = driver()
        assert await store.sessions() == []
        await store.open()
        await store.open()
        await store.close()
        await store.close()

    @pytest.mark.anyio
    async def test_a_session_begins_with_its_first_batch(self, driver: Driver) -> None:
        """A session that is claimed as new is not there before its first batch, which may be without events."""
        async with driver() as store:
            claim = await store.claim("s", new=new_row("s"))
            assert claim.row == new_row("s")
            assert await store.session("s") is None
            assert await store.sessions() == []
            assert await claim.write(batch_on(claim.row, 0)) == GENESIS
            assert await store.session("s") == new_row("s")
            await claim.write(batch_on(claim.row, 2))
            await check_whole(store, "s")

    @pytest.mark.anyio
    async def test_batches_follow_on_each_other(self, driver: Driver) -> None:
        """Each batch moves number and head; the claim's row tells them, and so does the store's."""
        async with driver() as store:
            claim = await store.claim("s", new=new_row("s"))
            for events in (1, 5, 0, 2, 1):
                before = claim.row
                head = await claim.write(batch_on(before, events))
                assert claim.row == replace(before, count=before.count + events, head=head)
                assert await store.session("s") == claim.row
            assert (await check_whole(store, "s")).count == 9

    @pytest.mark.anyio
    async def test_a_big_batch(self, driver: Driver) -> None:
        """Thousands of events with their blobs are one batch like any other."""
        async with driver() as store:
            claim = await store.claim("s", new=new_row("s"))
            blobs = [private(f"{at}") for at in range(3000)]
            batch = replace(
                batch_on(claim.row, 3000),
                blobs=tuple(blobs),
                refs=tuple((each.digest, at) for at, each in enumerate(blobs)),
            )
            await claim.write(batch)
            assert (await check_whole(store, "s")).count == 3000
            assert len(await store.blobs(each.digest for each in blobs)) == 3000

    @pytest.mark.anyio
    async def test_events_are_read_in_part(self, driver: Driver) -> None:
        """A range is like one of Python's: with the first, without the stop, and never an error."""
        async with driver() as store:
            await begun(store, "s", 10, [shared("a")])
            whole = await store.events("s")
            for first, stop in ((0, None), (3, 7), (9, None), (10, None), (0, 0), (7, 3), (5, 99)):
                assert await store.events("s", first, stop) == whole[first:stop]
            assert len(await store.refs("s", 0, 1)) == 1
            assert await store.refs("s", 1) == []

    @pytest.mark.anyio
    @pytest.mark.parametrize("size", [1, 3, 5, 10, 11])
    async def test_events_are_read_in_chunks(self, driver: Driver, size: int) -> None:
        """Chunks hold each event once and in order, and none is empty or larger than asked for."""
        async with driver() as store:
            await begun(store, "s", 10)
            whole = await store.events("s")
            for first, stop in ((0, None), (2, 9), (0, 10), (4, 4), (0, 99)):
                chunks = [chunk async for chunk in events_in_chunks(store, "s", first, stop, size=size)]
                assert [event for chunk in chunks for event in chunk] == whole[first:stop]
                assert all(0 < len(chunk) <= size for chunk in chunks)
            assert [chunk async for chunk in events_in_chunks(store, "nobody")] == []

    # -- blobs and references

    @pytest.mark.anyio
    async def test_a_shared_blob_is_kept_once(self, driver: Driver) -> None:
        """A shared blob may be brought again, in the same batch or by another session; it is the same one."""
        async with driver() as store:
            await begun(store, "one", 1, [shared("rules"), shared("rules")])
            await begun(store, "two", 1, [shared("rules")])
            assert await store.refs("one") == await store.refs("two") == [(shared("rules").digest, 0)]
            assert await store.blobs([shared("rules").digest]) == {shared("rules").digest: shared("rules")}

    @pytest.mark.anyio
    async def test_a_later_event_refers_to_an_earlier_blob(self, driver: Driver) -> None:
        """A batch may refer to a blob that is in the store; references come by event, then by digest."""
        blobs = [private("a"), private("b"), private("c")]
        async with driver() as store:
            claim = await begun(store, "s", 1, blobs)
            refs = tuple((blob.digest, seq) for blob in reversed(blobs) for seq in (2, 1))
            await claim.write(replace(batch_on(claim.row, 2), refs=refs + refs))
            digests = sorted(blob.digest for blob in blobs)
            assert await store.refs("s") == [(digest, seq) for seq in range(3) for digest in digests]

    @pytest.mark.anyio
    async def test_a_private_blob_is_brought_once(self, driver: Driver) -> None:
        """A private blob that is there already is a mistake, and the whole batch is refused."""
        blob = private("a")
        async with driver() as store:
            claim = await begun(store, "s", 1, [blob])
            before = await contents(store)
            with pytest.raises(ValueError, match="session s brings a private blob that is there already"):
                await claim.write(batch_on(claim.row, 1, [shared("new"), blob]))
            assert await contents(store) == before
            assert await store.blobs([shared("new").digest]) == {}

    @pytest.mark.anyio
    async def test_a_reference_leads_somewhere(self, driver: Driver) -> None:
        """A batch that refers to a blob that is not there is refused as a whole; a new session does not begin by it."""
        async with driver() as store:
            claim = await store.claim("s", new=new_row("s"))
            batch = replace(batch_on(claim.row, 1, [shared("a")]), refs=((digest_of("nowhere"), 0),))
            with pytest.raises(ValueError, match="session s refers to a blob that is not there"):
                await claim.write(batch)
            assert await store.session("s") is None
            assert await store.blobs([shared("a").digest]) == {}
            await claim.write(batch_on(claim.row, 1, [shared("a")]))
            await check_whole(store, "s")

    # -- compare and swap

    @pytest.mark.anyio
    @pytest.mark.parametrize("epoch", [1, -1])
    async def test_another_epoch_is_fenced_off(self, driver: Driver, epoch: int) -> None:
        """A batch of another epoch is refused, and leaves nothing behind."""
        async with driver() as store:
            claim = await begun(store, "s", 2)
            before = await contents(store)
            with pytest.raises(SessionFencedError) as caught:
                await claim.write(replace(batch_on(claim.row, 1, [shared("a")]), epoch=epoch))
            assert (caught.value.session, caught.value.epoch, caught.value.now) == ("s", epoch, 0)
            assert await contents(store) == before
            assert await store.blobs([shared("a").digest]) == {}

    @pytest.mark.anyio
    async def test_another_head_is_a_conflict(self, driver: Driver) -> None:
        """A batch made for another head or number is refused, so one that is written twice is, too."""
        async with driver() as store:
            claim = await begun(store, "s", 2)
            written = batch_on(claim.row, 1)
            await claim.write(written)
            before = await contents(store)
            elsewhere = replace(claim.row, head=digest_of("elsewhere"))
            ahead, behind = replace(claim.row, count=4), replace(claim.row, count=2)
            for batch in (written, *(batch_on(row, 1, [shared("a")]) for row in (elsewhere, ahead, behind))):
                with pytest.raises(SessionConflictError) as caught:
                    await claim.write(batch)
                assert (caught.value.expected, caught.value.found) == (batch.first, 3)
                assert caught.value.found_head == claim.row.head.hex()
            assert await contents(store) == before
            await claim.write(batch_on(claim.row, 1))

    @pytest.mark.anyio
    async def test_a_claim_writes_its_own_session(self, driver: Driver) -> None:
        """A batch of another session is refused."""
        async with driver() as store:
            claim = await begun(store, "one")
            other = await begun(store, "two")
            with pytest.raises(ValueError, match="session two is written with the claim on one"):
                await claim.write(batch_on(other.row))

    # -- claims

    @pytest.mark.anyio
    async def test_one_claimant_at_a_time(self, driver: Driver) -> None:
        """A session that is claimed, also one that is not there yet, is busy, and it is told by which process."""
        async with driver() as store, driver() as another:
            fresh = await store.claim("new", new=new_row("new"))
            claim = await begun(store, "s")
            for claiming in (store, another):
                for busy, row in (("s", None), ("s", new_row("s")), ("new", new_row("new"))):
                    with pytest.raises(SessionBusyError) as caught:
                        await claiming.claim(busy, new=row)
                    assert (caught.value.session, caught.value.pid) == (busy, os.getpid())
            await fresh.release()
            await claim.release()
            assert (await another.claim("s")).row == claim.row
            with pytest.raises(UnknownSessionError):
                await another.claim("new")
            await another.claim("new", new=new_row("new"))

    @pytest.mark.anyio
    async def test_readers_need_no_claim(self, driver: Driver) -> None:
        """What was written is seen by another store at once, whoever holds the claim."""
        async with driver() as store, driver() as another:
            claim = await begun(store, "s")
            for _ in range(3):
                await claim.write(batch_on(claim.row, 2))
                assert await check_whole(another, "s") == claim.row

    @pytest.mark.anyio
    async def test_there_or_not_there(self, driver: Driver) -> None:
        """A new session must not be there, any other must; whoever was refused holds no claim."""
        async with driver() as store:
            with pytest.raises(UnknownSessionError) as unknown:
                await store.claim("s")
            assert unknown.value.session == "s"
            await (await begun(store, "s")).release()
            with pytest.raises(SessionExistsError) as exists:
                await store.claim("s", new=new_row("s"))
            assert exists.value.session == "s"
            claim = await store.claim("s")
            await claim.write(batch_on(claim.row))

    @pytest.mark.anyio
    @pytest.mark.parametrize(
        "id", ["", "-a", "_a", ".a", "..", "a/b", "a b", "a.b", "é", "a\n", "a\0", "a:b", "a@1", "x" * 129]
    )
    async def test_bad_ids(self, driver: Driver, id: str) -> None:
        """What could be misread in a path, an address or a shell is no id, nor is what is too long."""
        async with driver() as store:
            with pytest.raises(InvalidSessionIdError) as caught:
                await store.claim(id, new=new_row(id))
            assert caught.value.given == id
            with pytest.raises(InvalidSessionIdError):
                await store.claim(id)
            assert await store.session(id) is None

    @pytest.mark.anyio
    @pytest.mark.parametrize("id", ["a", "0", "A-_9", "x" * 128, "last", "con"])
    async def test_good_ids(self, driver: Driver, id: str) -> None:
        """Letters, digits, hyphens and underscores make an id."""
        async with driver() as store:
            await begun(store, id)
            await check_whole(store, id)

    @pytest.mark.anyio
    async def test_a_claim_begins_what_it_says(self, driver: Driver) -> None:
        """The new row is that of the session claimed."""
        async with driver() as store:
            with pytest.raises(ValueError, match="session one is claimed to begin two"):
                await store.claim("one", new=new_row("two"))
            await store.claim("one", new=new_row("one"))

    @pytest.mark.anyio
    async def test_a_released_claim_writes_no_more(self, driver: Driver) -> None:
        """Released by itself or with its store, a claim refuses; a second release does nothing, even if others hold it."""
        async with driver() as store:
            claim = await begun(store, "s")
            await claim.release()
            again = await store.claim("s")
            await claim.release()
            with pytest.raises(InactiveContextError, match='claim on session "s"'):
                await claim.write(batch_on(claim.row))
            with pytest.raises(InactiveContextError):
                await claim.settle()
            with pytest.raises(SessionBusyError):
                await store.claim("s")
            await again.write(batch_on(again.row))
        with pytest.raises(InactiveContextError):
            await again.write(batch_on(again.row))

    @pytest.mark.anyio
    async def test_closing_releases_its_own_claims(self, driver: Driver) -> None:
        """Closing one store leaves alone what another one of the same contents holds."""
        async with driver() as store:
            claim = await begun(store, "mine")
            another = driver()
            await begun(another, "theirs")
            await another.close()
            await store.claim("theirs")
            with pytest.raises(SessionBusyError):
                await store.claim("mine")
            await claim.write(batch_on(claim.row))

    @pytest.mark.anyio
    async def test_a_closed_store_is_of_no_use(self, driver: Driver) -> None:
        """Every call on a closed store is refused with what to do."""
        store = driver()
        await store.close()
        calls: list[Callable[[], object]] = [
            store.open, store.sessions, store.checkpoint,
            lambda: store.session("s"), lambda: store.events("s"), lambda: store.refs("s"), lambda: store.blobs([]),
            lambda: store.claim("s"), lambda: store.claim("s", new=new_row("s")),
            lambda: store.claim("s", take_over=opening), lambda: store.holders([]), lambda: store.search([b"a"]),
            lambda: store.erase([], []), lambda: store.export("copy.db"),
        ]  # fmt: skip
        for call in calls:
            with pytest.raises(InactiveContextError, match=r"open it again|reopen it"):
                await call()  # type: ignore[misc]

    # -- forks

    @pytest.mark.anyio
    @pytest.mark.parametrize("at", [0, 1, 4, 6])
    async def test_a_fork_begins_as_its_parent_does(self, driver: Driver, at: int) -> None:
        """A fork has the parent's events up to where it was forked, the same bytes and digests, and the same blobs."""
        async with driver() as store:
            parent = await begun(store, "parent", 4, [private("a"), shared("b")])
            await parent.write(batch_on(parent.row, 2, [private("c")]))
            events = await store.events("parent")
            row = fork_row("fork", parent.row, events[:at])
            fork = await store.claim("fork", new=row)
            assert await store.session("fork") is None
            await fork.write(batch_on(fork.row, 1, [private("d")], said="fork"))
            await parent.write(batch_on(parent.row, 1, said="parent"))
            assert await check_whole(store, "fork") == fork.row
            assert (await store.events("fork"))[:at] == events[:at]
            assert [ref for ref in await store.refs("fork") if ref[1] < at] == await store.refs("parent", 0, at)
            assert (fork.row.parent, fork.row.forked_at) == ("parent", at)
            assert (await check_whole(store, "parent")).count == 7

    @pytest.mark.anyio
    async def test_forks_of_forks(self, driver: Driver) -> None:
        """A fork is a session like any other, and can be forked; a first batch without events will do."""
        async with driver() as store:
            claim = await begun(store, "s0", 2, [private("a")])
            for at in range(1, 4):
                row = fork_row(f"s{at}", claim.row, await store.events(claim.session))
                claim = await store.claim(row.id, new=row)
                await claim.write(batch_on(row, 0))
                assert await check_whole(store, row.id) == row
                await claim.write(batch_on(claim.row, 1))
            assert [row.id for row in await store.sessions()] == ["s0", "s1", "s2", "s3"]

    @pytest.mark.anyio
    async def test_a_fork_that_does_not_fit(self, driver: Driver) -> None:
        """A fork of nobody, of another chain, or of events that are not there, does not begin."""
        async with driver() as store:
            parent = await begun(store, "parent", 3)
            good = fork_row("fork", parent.row, await store.events("parent", 0, 2))
            other = digest_of("other")
            bad = [
                replace(good, genesis=other),
                replace(good, head=other),
                replace(good, forked_at=1),
                replace(good, count=1),
                replace(good, count=4, forked_at=4),
                replace(good, count=0, forked_at=0, head=other),
            ]
            for row in bad:
                claim = await store.claim("fork", new=row)
                with pytest.raises(ValueError, match="session fork does not begin as its parent parent"):
                    await claim.write(batch_on(row, 1))
                await claim.release()
            claim = await store.claim("fork", new=replace(good, parent="nobody"))
            with pytest.raises(UnknownSessionError) as caught:
                await claim.write(batch_on(claim.row))
            assert caught.value.session == "nobody"
            assert await store.session("fork") is None

    # -- taking over

    @pytest.mark.anyio
    async def test_a_take_over_fences_off_the_writer(self, driver: Driver) -> None:
        """Whoever takes a session over goes on in the next epoch; who had it can neither write nor settle any more."""
        async with driver() as store, driver() as another:
            old = await begun(store, "s", 3)
            before = old.row
            new = await another.claim("s", take_over=opening)
            assert new.row == replace(before, epoch=1, count=4, head=new.row.head) == await store.session("s")
            for call in (lambda: old.write(batch_on(before, 1, [shared("a")])), old.settle):
                with pytest.raises(SessionFencedError) as caught:
                    await call()
                assert (caught.value.epoch, caught.value.now) == (0, 1)
            assert await store.blobs([shared("a").digest]) == {}
            await new.write(batch_on(new.row, 2))
            assert (await check_whole(store, "s")).count == 6

    @pytest.mark.anyio
    async def test_taken_over_and_over(self, driver: Driver) -> None:
        """A session may be taken over from whoever took it over; each epoch fences off all before it."""
        async with driver() as store:
            claims = [await begun(store, "s")]
            for epoch in (1, 2, 3):
                claims.append(await store.claim("s", take_over=opening))
                assert claims[-1].row.epoch == epoch
                for fenced in claims[:-1]:
                    with pytest.raises(SessionFencedError):
                        await fenced.write(batch_on(fenced.row))
                await claims[-1].write(batch_on(claims[-1].row))
            assert (await check_whole(store, "s")).count == 7

    @pytest.mark.anyio
    async def test_a_take_over_is_a_claim(self, driver: Driver) -> None:
        """A session that was taken over is busy, whatever becomes of the claim before; released, it is free."""
        async with driver() as store, driver() as another:
            old = await begun(store, "s")
            new = await another.claim("s", take_over=opening)
            await old.release()
            with pytest.raises(SessionBusyError) as caught:
                await store.claim("s")
            assert caught.value.pid == os.getpid()
            await new.release()
            assert (await store.claim("s")).row == new.row

    @pytest.mark.anyio
    async def test_the_fenced_are_in_nobodys_way(self, driver: Driver) -> None:
        """Once its new writer is through, a session can be claimed, though the old one has not let go."""
        async with driver() as store, driver() as another:
            old = await begun(store, "s")
            await (await another.claim("s", take_over=opening)).release()
            again = await another.claim("s")
            await again.write(batch_on(again.row))
            with pytest.raises(SessionFencedError):
                await old.write(batch_on(old.row))
            await old.release()
            with pytest.raises(SessionBusyError):
                await store.claim("s")

    @pytest.mark.anyio
    async def test_a_free_session_is_taken_over_as_well(self, driver: Driver) -> None:
        """A take-over asks nobody: it may be of a session that nobody has, also of one without events."""
        async with driver() as store:
            claim = await store.claim("s", new=new_row("s"))
            await claim.write(batch_on(claim.row, 0))
            await claim.release()
            for epoch in (1, 2):
                claim = await store.claim("s", take_over=opening)
                assert (claim.row.epoch, claim.row.count) == (epoch, epoch)
                await claim.release()
            await check_whole(store, "s")

    @pytest.mark.anyio
    async def test_a_take_over_that_fails_changes_nothing(self, driver: Driver) -> None:
        """If the batch that opens the epoch does not fit, or cannot be made, the writer stays the writer."""

        def fail(row: SessionRow, last: EventRow | None) -> Batch:
            raise KeyError(row.id)

        async with driver() as store:
            with pytest.raises(UnknownSessionError):
                await store.claim("s", take_over=opening)
            claim = await begun(store, "s")
            await begun(store, "other")
            bad: list[tuple[type[Exception], TakeOver]] = [
                (KeyError, fail),
                (ValueError, lambda row, last: batch_on(row, 0)),
                (ValueError, lambda row, last: batch_on(replace(row, id="other"))),
                (SessionFencedError, lambda row, last: batch_on(replace(row, epoch=0))),
                (SessionConflictError, lambda row, last: batch_on(replace(row, count=7))),
                (ValueError, lambda row, last: replace(batch_on(row), refs=((digest_of("nowhere"), row.count),))),
            ]
            for error, take_over in bad:
                with pytest.raises(error):
                    await store.claim("s", take_over=take_over)
                assert await claim.settle() == claim.row
                with pytest.raises(SessionBusyError):
                    await store.claim("s")
            await claim.write(batch_on(claim.row))
            assert (await check_whole(store, "s")).epoch == 0

    # -- erasing

    @pytest.mark.anyio
    async def test_erased_for_good(self, driver: Driver) -> None:
        """Contents and salts are gone, in all sessions at once, each of which says so; all else stays as it was."""
        secret, text, kept = private("hunter2"), shared("hunter2, too"), private("rules")
        async with driver() as store, driver() as another:
            one = await begun(store, "one", 2, [secret, text, kept])
            two = await begun(store, "two", 1, [text])
            writes = [(claim, erasing(claim.row, secret, text)) for claim in (one, two)]
            assert await store.search([b"hunter2"]) in ([secret.digest, text.digest], [text.digest, secret.digest])
            erased = await store.erase([secret.digest, text.digest], writes)
            assert erased == Erased(frozenset({secret.digest, text.digest}), complete=True)
            assert await another.blobs([secret.digest, text.digest, kept.digest]) == {
                secret.digest: BlobRow(secret.digest, None, None),
                text.digest: BlobRow(text.digest, None, None),
                kept.digest: kept,
            }
            assert await store.search([b"hunter2"]) == []
            for claim, batch in writes:
                assert await check_whole(another, claim.session) == claim.row == await claim.settle()
                assert (await store.events(claim.session))[-1] == batch.events[0]
                await claim.write(batch_on(claim.row))

    @pytest.mark.anyio
    async def test_erasing_what_is_empty_or_not_there(self, driver: Driver) -> None:
        """What is empty already, or nowhere, is not counted; nothing at all may be erased, and then all is tidied."""
        blob = private("a")
        async with driver() as store:
            claim = await begun(store, "s", 1, [blob])
            for emptied in ({blob.digest}, set()):
                erased = await store.erase([blob.digest, digest_of("nowhere")], [(claim, erasing(claim.row, blob))])
                assert erased.blobs == emptied
            assert await store.erase([], []) == Erased(frozenset(), complete=True)
            assert (await check_whole(store, "s")).count == 3

    @pytest.mark.anyio
    async def test_a_holder_that_is_not_told(self, driver: Driver) -> None:
        """Nothing is erased while a session that refers to it is left out: its log would look damaged."""
        blob, text = private("a"), shared("b")
        async with driver() as store:
            one = await begun(store, "one", 1, [blob, text])
            fork = await store.claim("fork", new=fork_row("fork", one.row, await store.events("one")))
            await fork.write(batch_on(fork.row))
            assert await store.holders([blob.digest, text.digest, digest_of("nowhere")]) == {
                blob.digest: frozenset({"one", "fork"}), text.digest: frozenset({"one", "fork"}),
            }  # fmt: skip
            before = await contents(store)
            for each in (blob, text):
                with pytest.raises(ErasureConflictError) as caught:
                    await store.erase([each.digest], [(one, erasing(one.row, each))], looked_into=[text.digest])
                assert (caught.value.sessions, caught.value.blob) == (("fork",), each.digest.hex())
            assert await contents(store) == before
            await store.erase([blob.digest], [(each, erasing(each.row, blob)) for each in (one, fork)])

    @pytest.mark.anyio
    async def test_what_was_not_looked_into(self, driver: Driver) -> None:
        """A shared blob may lead to others: to shared ones, and to those that no event refers to. While another session
        refers to one that nobody looked into, these cannot be erased; a private one that events refer to can."""
        blob, text, inside, root = private("a"), shared("b"), private("c"), shared("root of b and c")
        async with driver() as store:
            one = await begun(store, "one", 1, [blob, text])
            await one.write(replace(batch_on(one.row, 1, [inside]), refs=()))
            await begun(store, "two", 1, [root, private("d")])
            await store.erase([blob.digest], [(one, erasing(one.row, blob))])
            for each in (text, inside):
                with pytest.raises(ErasureConflictError) as caught:
                    await store.erase([each.digest], [(one, erasing(one.row, each))])
                assert (caught.value.sessions, caught.value.blob) == (("two",), root.digest.hex())
                assert await store.blobs([each.digest]) == {each.digest: each}
                await store.erase([each.digest], [(one, erasing(one.row, each))], looked_into=[root.digest])
                assert (await store.blobs([each.digest]))[each.digest].body is None

    @pytest.mark.anyio
    async def test_an_erasure_is_all_or_nothing(self, driver: Driver) -> None:
        """If one of its batches cannot be written, none is, and nothing is emptied."""
        blob = private("a")
        async with driver() as store, driver() as another:
            one, two = await begun(store, "one", 1, [blob]), await begun(store, "two", 1)
            stranger = await begun(another, "three")
            released = await begun(store, "four")
            await released.release()
            good = one, erasing(one.row, blob)
            before = await contents(store)
            for error, bad in (
                (SessionConflictError, (two, erasing(replace(two.row, count=5), blob))),
                (SessionFencedError, (two, erasing(replace(two.row, epoch=5), blob))),
                (ValueError, (two, erasing(stranger.row, blob))),
                (ValueError, (two, replace(erasing(two.row, blob), refs=((digest_of("nowhere"), 1),)))),
                (InactiveContextError, (released, erasing(released.row, blob))),
            ):
                with pytest.raises(error):
                    await store.erase([blob.digest], [good, bad])
                assert await contents(store) == before
            await store.erase([blob.digest], [good, (two, erasing(two.row, blob))])
            assert {(await check_whole(store, each)).count for each in ("one", "two")} == {2}

    @pytest.mark.anyio
    async def test_said_again_after_it_was_erased(self, driver: Driver) -> None:
        """A shared text that was erased is there again when a session says it anew."""
        text = shared("rules")
        async with driver() as store:
            claim = await begun(store, "s", 1, [text])
            for _ in range(3):
                await store.erase([text.digest], [(claim, erasing(claim.row, text))])
                await claim.write(batch_on(claim.row, 1, [text]))
                assert await store.blobs([text.digest]) == {text.digest: text}

    @pytest.mark.anyio
    async def test_a_cancelled_erasure_is_done(self, driver: Driver) -> None:
        """A task that is cancelled while it erases goes at once; what it handed over is done."""
        blob = private("a")
        async with driver() as store:
            claim = await begun(store, "s", 1, [blob])
            with anyio.CancelScope() as scope:
                scope.cancel()
                await store.erase([blob.digest], [(claim, erasing(claim.row, blob))])
            assert scope.cancelled_caught
            assert (await claim.settle()).count == 2
            assert (await store.blobs([blob.digest]))[blob.digest].body is None

    @pytest.mark.anyio
    async def test_searching(self, driver: Driver) -> None:
        """Contents are found byte for byte, by any of several texts; the empty text, which all hold, is a mistake."""
        blobs = [private("to be"), shared("or not to be"), replace(private("x"), body=b"\x00\xffto\x00"), private("")]
        async with driver() as store:
            await begun(store, "s", 1, blobs)
            for texts, found in (
                ([b"to be"], {0, 1}), ([b"not"], {1}), ([b"\x00"], {2}), ([b"\xff", b"or"], {1, 2}), ([b"To"], set()),
                ([], set()), ([b"%"], set()),
            ):  # fmt: skip
                assert sorted(await store.search(texts)) == sorted(blobs[at].digest for at in found)
            with pytest.raises(ValueError, match="empty text"):
                await store.search([b"to", b""])

    # -- exporting

    @pytest.mark.anyio
    async def test_an_export_holds_all(self, driver: Driver, tmp_path: Path) -> None:
        """What is exported is a store of the same sessions, events, blobs and order, and can be written itself."""
        async with driver() as store:
            parent = await begun(store, "parent", 3, [private("a"), shared("b"), private("c")])
            fork = await store.claim("fork", new=fork_row("fork", parent.row, await store.events("parent")))
            await fork.write(batch_on(fork.row, 2, [shared("b")], said="fork"))
            await parent.write(batch_on(parent.row, 1))
            await store.erase([shared("b").digest], [(each, erasing(each.row, shared("b"))) for each in (fork, parent)])
            await store.export(tmp_path / "copy.db")
            before = await contents(store)
            await parent.write(batch_on(parent.row))
        async with open_store(f"sqlite:{tmp_path / 'copy.db'}", foreign=True) as copy:
            assert await contents(copy) == before
            claim = await copy.claim("fork")
            await claim.write(batch_on(claim.row))

    @pytest.mark.anyio
    async def test_an_export_overwrites_nothing(self, driver: Driver, tmp_path: Path) -> None:
        """An export goes to a path where nothing is, in a folder that is there; else nothing is touched or left."""
        (tmp_path / "there.db").write_text("mine")
        (tmp_path / "folder").mkdir()
        async with driver() as store:
            await begun(store, "s")
            before = names_in(tmp_path)
            for name, kind in (("there.db", "exists"), ("folder", "exists"), ("no/copy.db", "no_folder")):
                with pytest.raises(StoreError) as caught:
                    await store.export(tmp_path / name)
                assert caught.value.kind == f"store_{kind}"
                assert str(tmp_path / name) in str(caught.value)
            assert names_in(tmp_path) == before
            assert (tmp_path / "there.db").read_text() == "mine"

    # -- order

    @pytest.mark.anyio
    async def test_the_newest_comes_last(self, driver: Driver) -> None:
        """Sessions come in the order of their last events, whatever their clocks and ids; first those without any."""
        async with driver() as store:
            claims = {each: await begun(store, each) for each in ("b", "a", "c")}
            empty = await store.claim("empty", new=new_row("empty"))
            await empty.write(batch_on(empty.row, 0))
            assert [row.id for row in await store.sessions()] == ["empty", "b", "a", "c"]
            await claims["b"].write(batch_on(claims["b"].row, 2))
            await claims["a"].write(batch_on(claims["a"].row, 0))  # no event, so nothing new
            assert [row.id for row in await store.sessions()] == ["empty", "a", "c", "b"]
            await empty.write(batch_on(empty.row, 1))
            assert [row.id for row in await store.sessions()] == ["a", "c", "b", "empty"]

    # -- tasks, threads, cancellation

    @pytest.mark.anyio
    async def test_reading_while_writing(self, driver: Driver) -> None:
        """Readers see whole batches only, each session as it was at some moment, while writers go on."""
        async with driver() as store:
            claims = [await begun(store, f"s{at}", 3) for at in range(3)]
            writing = len(claims)

            async def write(claim: object) -> None:
                nonlocal writing
                for _ in range(15):
                    await claim.write(batch_on(claim.row, 3, [private("a")]))  # type: ignore[attr-defined]
                writing -= 1

            async def read() -> None:
                while writing:
                    for row in await store.sessions():
                        check_chain(row, await store.events(row.id, 0, row.count))
                        assert row.count % 3 == 0

            async with anyio.create_task_group() as tasks:
                for claim in claims:
                    tasks.start_soon(write, claim)
                for _ in range(4):
                    tasks.start_soon(read)
            assert {(await check_whole(store, claim.session)).count for claim in claims} == {48}

    @pytest.mark.anyio
    async def test_a_cancelled_write_is_written(self, driver: Driver) -> None:
        """A task that is cancelled while it writes goes at once; what it handed over is written, in that order."""
        async with driver() as store:
            claim = await store.claim("s", new=new_row("s"))
            row = claim.row
            for _ in range(20):
                batch = batch_on(row, 10, [private("a")])
                row = replace(row, count=batch.count_after, head=batch.head_after)
                await write_cancelled(claim, batch)
            assert await claim.settle() == row == claim.row
            assert await check_whole(store, "s") == row

    @pytest.mark.anyio
    async def test_closing_waits_for_what_was_handed_over(self, driver: Driver) -> None:
        """A store that is closed behind a cancelled write has written it, even if closing is cancelled itself."""
        store = driver()
        claim = await begun(store, "s", 1)
        await write_cancelled(claim, batch_on(claim.row, 500))
        await store.close()
        store = driver()
        claim = await store.claim("s")
        await write_cancelled(claim, batch_on(claim.row, 500))
        with anyio.CancelScope() as scope:
            scope.cancel()
            await store.close()
        async with driver() as store:
            claim = await store.claim("s")  # waits behind what was handed over
            assert (await check_whole(store, "s")).count == 1001

    @pytest.mark.anyio
    async def test_settling(self, driver: Driver) -> None:
        """Settling tells what is in the store: of a new session nothing yet, after a refused batch what was before."""
        async with driver() as store:
            claim = await store.claim("s", new=new_row("s"))
            assert await claim.settle() == new_row("s")
            await write_cancelled(claim, batch_on(claim.row, 1))
            row = await claim.settle()
            assert row.count == 1
            await write_cancelled(claim, replace(batch_on(row), epoch=7))
            assert await claim.settle() == row
            await claim.write(batch_on(row))

    @pytest.mark.anyio
    async def test_a_cancelled_claim_is_released(self, driver: Driver) -> None:
        """Whoever is cancelled while it claims holds nothing afterwards."""
        async with driver() as store:
            await (await begun(store, "s")).release()
            for _ in range(10):
                with anyio.CancelScope() as scope:
                    scope.cancel()
                    claim = await store.claim("s")
                    await claim.release()
            assert (await store.claim("s")).row.count == 1

    def test_threads_with_loops_of_their_own(self, driver: Driver) -> None:
        """One store serves the event loops of several threads, of whatever library, at once."""
        store = driver()
        done = threading.Barrier(4)

        async def work(id: str) -> None:
            claim = await begun(store, id)
            for _ in range(10):
                await claim.write(batch_on(claim.row, 2))
            done.wait(30)
            for row in await store.sessions():
                await check_whole(store, row.id)

        in_threads(*(
            lambda at=at: anyio.run(work, f"s{at}", backend=("asyncio", "trio")[at % 2])  # type: ignore[misc]
            for at in range(4)
        ))  # fmt: skip

        async def end() -> None:
            assert {row.count for row in await store.sessions()} == {21}
            await store.close()

        anyio.run(end)


def test_a_batch_holds_together() -> None:
    """A batch with gaps, with references from elsewhere, or with digests that are none, cannot be made."""
    row = new_row("s")
    good = batch_on(row, 3, [shared("a")])
    with pytest.raises(ValueError, match="has event 2 in the place of 1"):
        replace(good, events=(good.events[0], good.events[2]))
    with pytest.raises(ValueError, match="has event 0 in the place of 1"):
        replace(good, first=1)
    for seq in (-1, 3):
        with pytest.raises(ValueError, match=f"from event {seq}"):
            replace(good, refs=((digest_of("a"), seq),))
    for make in (
        lambda: replace(good, head=b"short"),
        lambda: replace(good.events[0], digest=b"short"),
        lambda: replace(shared("a"), digest=b""),
        lambda: replace(row, genesis=b"short"),
        lambda: replace(row, head=b"short"),
    ):
        with pytest.raises(ValueError, match="a digest has 32"):
            make()
    with pytest.raises(ValueError, match="both parent and forked_at"):
        replace(row, parent="p")
    assert Batch("s", 0, 0, GENESIS).head_after == GENESIS
