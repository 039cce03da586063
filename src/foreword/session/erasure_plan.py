"""What an erasure is to empty, and which sessions are to say so: worked out from a survey, and nothing is changed.

Whatever is to be emptied is held against its digest first. Once it is empty, and an event says that this was on
purpose, nobody could see any more that it was not what had been logged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from foreword.errors import DamagedLogError
from foreword.session.blobs import blob_fault
from foreword.session.reading import SessionReader
from foreword.session.selection import spans_of
from foreword.session.survey import Survey, bodies_over

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from foreword.session.blobs import BlobFault
    from foreword.session.log import Log
    from foreword.session.matching import Needle
    from foreword.session.selection import Selection
    from foreword.session.store.contract import BlobRow, Store

__all__ = ["Plan", "plan_erasure"]

_AT_ONCE: Final = 200  # blobs that are looked at together


@dataclass(slots=True)
class Plan:
    """What is to be emptied, and whose it is."""

    counts: dict[str, int]  # of each session, its events
    blobs: set[bytes] = field(default_factory=set[bytes])  # to be emptied
    told: dict[str, set[bytes]] = field(default_factory=dict[str, set[bytes]])  # what each session is to log of it
    shared: dict[bytes, str] = field(default_factory=dict[bytes, str])  # what is shared of it, and what that is
    kept: dict[bytes, str] = field(default_factory=dict[bytes, str])  # selected and needed elsewhere
    needed: dict[bytes, set[str]] = field(default_factory=dict[bytes, set[str]])  # by which sessions
    elsewhere: frozenset[bytes] = frozenset()  # trees of the other sessions; nothing of it is in them


async def plan_erasure(log: Log, selection: Selection, needle: Needle | None, busy: Collection[str]) -> Plan:
    """Work out an erasure.

    Args:
        log: from which.
        selection: what is meant.
        needle: the text, if it is by text.
        busy: sessions that are to be left alone, with all that they hold.

    Raises:
        DamagedLogError: something that is to be emptied is not what was logged.
        SessionError: a session cannot be found or read.
    """
    rows = await log.store.sessions()
    spans = {} if needle is not None else await spans_of(log, selection, rows, log.clock())
    for session in busy:
        spans.pop(session, None)
    survey = await Survey.of(log.store, rows, spans)
    planning = _Planning(log.store, survey, Plan({row.id: row.count for row in rows}), busy, selection.within)
    await (planning.choose() if needle is None else planning.match(needle))
    plan = planning.plan
    plan.elsewhere = frozenset(root for row in rows if row.id not in plan.told for root in survey.trees[row.id])
    return plan


@dataclass(slots=True)
class _Planning:
    """A plan on its way."""

    store: Store
    survey: Survey
    plan: Plan
    busy: Collection[str]
    within: str | None  # the only session whose contents are meant

    async def choose(self) -> None:
        """By events: their private contents, and of shared ones those that nothing else needs."""
        candidates: dict[bytes, str] = {}
        for session, trees in self.survey.trees.items():
            candidates |= await self.survey.contents(session, trees & self.survey.chosen)
        full = await self._full(candidates)
        salted = await self._full(candidates, only_private=True)
        shared = {digest: what for digest, what in candidates.items() if digest in full - salted}
        self.plan.needed = await self.survey.needed(shared.keys())
        self.plan.kept = {digest: what for digest, what in shared.items() if digest in self.plan.needed}
        self.plan.shared = {digest: what for digest, what in shared.items() if digest not in self.plan.needed}
        await self._hold(await self._full(self.survey.private) | salted | self.plan.shared.keys())
        await self._give_up()

    async def _give_up(self) -> None:
        """Have sessions log what they do not need any more and others do: who needs it last can have it emptied."""
        for session in self.survey.spans:
            held = await self.survey.contents(session, self.survey.trees[session] & self.survey.chosen)
            kept = {digest for digest in held.keys() & self.plan.kept.keys() if session not in self.plan.needed[digest]}
            if kept - self.survey.given_up.get(session, {}).keys():
                self.plan.told.setdefault(session, set()).update(kept)

    async def match(self, needle: Needle) -> None:
        """By text: every content that holds it."""
        kinds = await self.survey.kinds()
        found: set[bytes] = set()
        for digests in _some(await self.store.search(needle.candidates)):
            for digest, row in (await self.store.blobs(digests)).items():
                if row.body is not None and needle.is_in(row.body, kinds.get(digest)):
                    found.add(digest)
                    if row.salt is None and blob_fault(row, digest) is None:
                        self.plan.shared[digest] = kinds.get(digest, "tree")
        if self.within is not None:
            found &= (await self.survey.held(found)).get(self.within, set())
        found -= {
            digest for digest, what in self.plan.shared.items() if what == "tree"
        }  # digests in hex are no content
        await self._hold(found)

    async def _hold(self, blobs: set[bytes]) -> None:
        """Note who holds what is to go, and that the digests of bodies go with it that it could be guessed from."""
        held = await self.survey.held(blobs)
        whole = {row.id for row in self.survey.rows if self.survey.spans.get(row.id) == range(row.count)}
        bodies: set[bytes] = set()
        for row in self.survey.rows:
            if row.id in held and row.id not in whole:
                trees = {
                    root: blobs & (await self.survey.contents(row.id, (root,))).keys()
                    for root in self.survey.trees[row.id]
                }
                headers = {root: held for root, held in trees.items() if held}
                bodies |= await bodies_over(SessionReader(self.store, row), blobs, headers)
        self.plan.told = await self.survey.held(blobs | await self._full(bodies))
        lost = {digest for session in self.busy for digest in self.plan.told.pop(session, ())}
        self.plan.told = {session: each - lost for session, each in self.plan.told.items() if each - lost}
        self.plan.blobs = {digest for each in self.plan.told.values() for digest in each}
        self.plan.shared = {digest: what for digest, what in self.plan.shared.items() if digest in self.plan.blobs}
        await self._check()

    async def _check(self) -> None:
        """See that what is to be emptied is what was logged.

        Raises:
            DamagedLogError: some of it is not.
        """
        unstored = await self.survey.unstored()
        for some in _some(sorted(self.plan.blobs)):
            rows = await self.store.blobs(some)
            for digest in some:
                fault = _fault(digest, rows.get(digest), unstored)
                if fault is not None:
                    raise await self._damaged(digest, fault.why)

    async def _damaged(self, digest: bytes, why: str) -> DamagedLogError:
        session = min(session for session, blobs in self.plan.told.items() if digest in blobs)
        seq = await self.survey.first_use(session, digest)
        return DamagedLogError(
            session, seq, f"{why}, which an erasure would hide; see foreword log verify", digest.hex()
        )

    async def _full(self, digests: Iterable[bytes], *, only_private: bool = False) -> set[bytes]:
        """Of some blobs, those that hold something: a content, or a salt by which one could be told."""
        full: set[bytes] = set()
        for some in _some(digests):
            rows = await self.store.blobs(some)
            full |= {
                row.digest
                for row in rows.values()
                if row.salt is not None or (row.body is not None and not only_private)
            }
        return full


def _fault(digest: bytes, row: BlobRow | None, unstored: Collection[bytes]) -> BlobFault | None:
    """What is wrong with a blob that is to be emptied; none if it was not to be stored, or was emptied meanwhile."""
    if row is not None and row.body is None and (row.salt is None or digest in unstored):
        return None
    return blob_fault(row, digest)


def _some(digests: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Few of them at a time: contents may be large."""
    left = list(digests)
    return (left[at : at + _AT_ONCE] for at in range(0, len(left), _AT_ONCE))
