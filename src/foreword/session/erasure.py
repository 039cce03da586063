"""Erasure: what was said is taken out of a log, and the log says so and still verifies.

    survey ─▶ what to empty ─▶ claims of all who hold it ─▶ one transaction ─▶ forgotten in memory ─▶ report

All sessions that hold a content get an event that tells of its erasure, so each of them alone can be verified. Nothing
is emptied unless all of them can be written. Should another session come to hold it meanwhile, the store refuses, and
it is worked out anew.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from foreword.errors import ErasureBlockedError, ErasureConflictError, SessionBusyError
from foreword.session.erasure_plan import plan_erasure
from foreword.session.events import ContentErased
from foreword.session.ledger import Ledger
from foreword.session.matching import Needle, Remains
from foreword.session.reading import SessionReader
from foreword.session.state import State
from foreword.session.store.contract import events_in_chunks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from foreword.session.erasure_plan import Plan
    from foreword.session.log import Log
    from foreword.session.selection import Selection
    from foreword.session.session import Session
    from foreword.session.store.contract import Batch, Claim

__all__ = ["ErasedIn", "Erasing", "ErasureReport", "SharedContent"]

_PATIENCE: Final = 0.1  # seconds between two looks whether a session is still being written


@dataclass(frozen=True, slots=True)
class ErasedIn:
    """A session that held something of what was erased."""

    session: str
    blobs: int  # of those that were emptied, how many it held; 0 for one that only gave up what others need
    seq: int | None  # the event that says so; None if it was only looked up what would be erased


@dataclass(frozen=True, slots=True)
class SharedContent:
    """A text that sessions share: one of a section, a tool, a configuration, or of what explains a step."""

    digest: str  # in hex
    what: str  # "section", "tool", "config" or "trace"
    sessions: tuple[str, ...]  # that hold it


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """What an erasure did, and what it did not reach."""

    blobs: int  # contents that were emptied
    sessions: tuple[ErasedIn, ...]
    guessable: tuple[SharedContent, ...]  # emptied; whoever guesses such a text can tell from its digest, which stays
    kept: tuple[SharedContent, ...]  # selected, and not emptied, because something else needs it
    busy: tuple[tuple[str, int | None], ...] = ()  # sessions, and who writes them, that were passed over
    remains: tuple[Remains, ...] = ()  # where a text that was looked for stands in an envelope, and stays
    complete: bool = True  # False: a reader of an older state was in the way, so the store's own files hold some of it
    # until `Store.checkpoint` is True

    @property
    def not_reached(self) -> tuple[str, ...]:
        """In words, what may still hold some of what was erased."""
        told: list[str] = []
        if not self.complete:
            told.append("the store's write-ahead log, since a reader of an older state is open")
        if self.busy:
            told.append(f"sessions that are being written: {', '.join(session for session, _ in self.busy)}")
        if self.remains:
            told.append(f"{len(self.remains)} envelopes, where it is a name; nothing can be taken out of them")
        if self.kept:
            told.append(f"{len(self.kept)} shared texts that others need; find them by a text to empty them everywhere")
        if self.guessable:
            told.append(f"the digests of {len(self.guessable)} shared texts, from which a short one can be guessed")
        told.append("exports and copies of the store")
        told.append("backups, and what file systems and disks keep of files that have changed")
        return tuple(told)


class Erasing:
    """One erasure.

    Args:
        log: from which.
        selection: what.
        wait: wait for sessions that others are writing.
        pass_over: leave alone what such sessions hold.
        dry_run: only find out what would be erased.
    """

    def __init__(
        self, log: Log, selection: Selection, *, wait: bool = False, pass_over: bool = False, dry_run: bool = False
    ) -> None:
        self._log, self._store, self._selection = log, log.store, selection
        self._wait, self._pass_over, self._dry_run = wait, pass_over, dry_run
        self._needle = None if selection.match is None else Needle(selection.match)
        self._claims: dict[str, Claim] = {}  # of sessions that are not open here
        self._busy: dict[str, int | None] = {}
        self._seqs: dict[str, int] = {}  # by session, the event that says so
        self._complete = True
        self._said: dict[str, set[bytes]] = {}  # what sessions that are open here have logged of it already

    async def run(self) -> ErasureReport:
        """Erase.

        Raises:
            ErasureBlockedError: others are writing sessions that hold some of it. Nothing was changed.
            SessionError: a session cannot be found, read or written. Nothing was changed.
            StoreError: the store cannot do it.
        """
        try:
            while True:
                await self._log.flush()
                plan = await plan_erasure(self._log, self._selection, self._needle, self._busy.keys())
                if self._dry_run or not plan.told:
                    return await self._report(plan)
                if not await self._all_claimed(plan):
                    continue
                try:
                    await self._empty(plan)
                except ErasureConflictError:
                    continue  # another session came to hold some of it; it is looked for again
                return await self._report(plan)
        finally:
            await self._let_go()

    # -- who may write -------------------------------------------------------------------------------------------------

    async def _all_claimed(self, plan: Plan) -> bool:
        """Claim the sessions that hold what is to go. False if it has to be looked for again.

        Raises:
            ErasureBlockedError: others are writing some of them.
        """
        import anyio

        busy: dict[str, int | None] = {}
        for session in sorted(plan.told.keys() - self._claims.keys()):
            if self._log.open_session(session) is not None:
                continue
            try:
                self._claims[session] = await self._store.claim(session)
            except SessionBusyError as fault:
                busy[session] = fault.pid
        if not busy:
            rows = [claim.row for claim in self._claims.values()]
            return all(row.count == plan.counts.get(row.id) for row in rows)
        if self._pass_over:
            self._busy |= busy
            return False
        if not self._wait:
            raise ErasureBlockedError(sorted(busy.items()))
        await self._let_go()  # or two that wait for each other would wait for good
        await anyio.sleep(_PATIENCE)
        return False

    async def _let_go(self) -> None:
        import anyio

        claims, self._claims = self._claims, {}
        with anyio.CancelScope(shield=True):
            for claim in claims.values():
                await claim.release()

    # -- doing it ------------------------------------------------------------------------------------------------------

    async def _empty(self, plan: Plan) -> None:
        import anyio

        async with AsyncExitStack() as stack:
            here: dict[str, Session] = {}
            for session in sorted(plan.told.keys() - self._claims.keys()):
                opened = self._log.open_session(session)
                if opened is None:
                    raise ErasureConflictError([session], "")  # it was closed here meanwhile
                here[session] = await stack.enter_async_context(opened.writing())
            with anyio.CancelScope(shield=True):  # what is handed over is done, and has to be known of here
                await self._write(plan, here)

    async def _write(self, plan: Plan, here: dict[str, Session]) -> None:
        claims = {session: claim for session, claim in self._claims.items() if session in plan.told}
        writes = [await self._logged(claim, plan.told[session]) for session, claim in claims.items()]
        # From here to the store nothing is awaited, so no other event comes between.
        batches = {session: opened.forgetting(self._unsaid(session, plan)) for session, opened in here.items()}
        erased = await self._store.erase(plan.blobs, [*writes, *batches.values()], looked_into=plan.elsewhere)
        for session, (_, batch) in batches.items():
            await here[session].forgot(batch)
        self._seqs = {batch.session: batch.events[-1].seq for _, batch in writes}
        self._seqs |= {session: opened.erased_at for session, opened in here.items()}
        self._complete = erased.complete

    async def _logged(self, claim: Claim, blobs: AbstractSet[bytes]) -> tuple[Claim, Batch]:
        """What a session that is not open here logs of it."""
        row, state = claim.row, State()
        [[last]] = [chunk async for chunk in SessionReader(self._store, row).records(row.count - 1)]
        state.count, state.time = row.count, last.time
        ledger = Ledger(row.id, row.epoch, state, row.head, [], None, self._log.clock, self._log.entropy)
        ledger.append(ContentErased(tuple(sorted(blobs))))
        return claim, ledger.batch(row.count, row.head)

    def _unsaid(self, session: str, plan: Plan) -> set[bytes]:
        """What a session that is open here has not logged yet; it has logged some if the store refused before."""
        said = self._said.setdefault(session, set())
        unsaid = plan.told[session] - said
        said |= unsaid
        return unsaid

    # -- what became of it ---------------------------------------------------------------------------------------------

    async def _report(self, plan: Plan) -> ErasureReport:
        holders: dict[bytes, list[str]] = {}
        for session, blobs in sorted(plan.told.items()):
            for digest in blobs & plan.shared.keys():  # what it holds of what was shared
                holders.setdefault(digest, []).append(session)
        return ErasureReport(
            len(plan.blobs),
            tuple(
                ErasedIn(session, len(told & plan.blobs), self._seqs.get(session))
                for session, told in sorted(plan.told.items())
            ),
            _shared(plan.shared, holders),
            _shared(plan.kept, plan.needed),
            tuple(sorted(self._busy.items())),
            tuple([remains async for remains in self._remains()]),
            self._complete,
        )

    async def _remains(self) -> AsyncIterator[Remains]:
        """The envelopes that hold the text that was looked for."""
        if self._needle is None:
            return
        for row in await self._store.sessions():
            if self._selection.within not in (None, row.id):
                continue
            async for chunk in events_in_chunks(self._store, row.id):
                for event in chunk:
                    if self._needle.is_in_envelope(event):
                        yield Remains(row.id, event.seq)


def _shared(contents: Mapping[bytes, str], sessions: Mapping[bytes, Iterable[str]]) -> tuple[SharedContent, ...]:
    told = sorted(contents.items())
    return tuple(SharedContent(digest.hex(), what, tuple(sorted(sessions[digest]))) for digest, what in told)
