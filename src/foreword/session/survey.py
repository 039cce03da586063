"""A survey of a log before something is erased: which blobs a selection means, and which sessions hold them.

A store knows only what events refer to themselves. What stands in a tree (a header's sections, say) is known to those
who can read trees; so each session's trees are looked into here, each tree once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from foreword.errors import DamagedLogError
from foreword.session import records
from foreword.session.blobs import BlobFault, Blobs
from foreword.session.header import header_digests
from foreword.session.reading import SessionReader
from foreword.session.records import TREES
from foreword.session.trace import trace_digests
from foreword.session.tree import read_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from foreword.session.chain import Record
    from foreword.session.selection import Spans
    from foreword.session.state import State
    from foreword.session.store.contract import SessionRow, Store

__all__ = ["Survey", "bodies_over"]


@dataclass(slots=True)
class Survey:
    """What is in a log, as far as an erasure has to know it.

    Attributes:
        rows: its sessions.
        spans: the events that are selected; none of them for a selection by text.
        trees: of each session, the roots of trees that its events refer to.
        private: what the selected events refer to themselves.
        chosen: the roots that selected events refer to.
        others: the roots that other events refer to or were sent with: the sessions, and the last such event in each.
        given_up: of each session, what it said was erased, and the last event that says so.
        withheld: what was not to be stored, and the roots of trees of which that is so of something.
    """

    store: Store
    rows: Sequence[SessionRow]
    spans: Spans
    trees: dict[str, set[bytes]] = field(default_factory=dict[str, set[bytes]])
    private: set[bytes] = field(default_factory=set[bytes])
    chosen: set[bytes] = field(default_factory=set[bytes])
    others: dict[bytes, dict[str, int]] = field(default_factory=dict[bytes, dict[str, int]])
    given_up: dict[str, dict[bytes, int]] = field(default_factory=dict[str, dict[bytes, int]])
    withheld: set[bytes] = field(default_factory=set[bytes])
    _roles: dict[bytes, str] = field(default_factory=dict[bytes, str])  # of roots
    _contents: dict[bytes, dict[bytes, str]] = field(default_factory=dict[bytes, dict[bytes, str]])

    @classmethod
    async def of(cls, store: Store, rows: Sequence[SessionRow], spans: Spans) -> Survey:
        """Look through a log.

        Raises:
            DamagedLogError: a session is not what was logged.
            NewerLogError: a newer version wrote it.
        """
        survey = cls(store, rows, spans)
        for row in rows:
            await survey._look(row)
        return survey

    async def _look(self, row: SessionRow) -> None:
        span, trees = self.spans.get(row.id, range(0)), self.trees.setdefault(row.id, set())
        async for chunk in SessionReader(self.store, row).records():
            for record in chunk:
                roots = {digest: role for role, digest in record.refs.items() if role in TREES}
                self._roles |= roots
                trees.update(roots)
                if record.seq in span:
                    self.chosen.update(roots)
                    self.private.update(digest for digest in record.refs.values() if digest not in roots)
                elif span or roots:
                    self._leave(row.id, record, roots)
                self.withheld.update(record.refs[role] for role in record.withheld)
                if isinstance(record.data, records.ContentErasedData):
                    told = dict.fromkeys(map(bytes.fromhex, record.data.blobs), record.seq)
                    self.given_up.setdefault(row.id, {}).update(told)

    def _leave(self, session: str, record: Record, roots: Iterable[bytes]) -> None:
        """Note what an event needs that is not selected: also the header that its request was sent with."""
        sent = [bytes.fromhex(record.data.header)] if isinstance(record.data, records.RequestAttemptData) else []
        for root in (*roots, *sent):
            self.others.setdefault(root, {})[session] = record.seq

    async def needed(self, digests: AbstractSet[bytes]) -> dict[bytes, set[str]]:
        """Which of these other events need, and in which sessions.

        Where a session said that one was erased, and has not written it since, it does not need it: the others did.
        """
        needed: dict[bytes, set[str]] = {}
        for root, sessions in self.others.items():
            for digest in (await self.contents(min(sessions), (root,))).keys() & digests:
                for session, seq in sessions.items():
                    if self.given_up.get(session, {}).get(digest, -1) < seq:
                        needed.setdefault(digest, set()).add(session)
        return needed

    # -- trees ---------------------------------------------------------------------------------------------------------

    async def contents(self, session: str, roots: Iterable[bytes]) -> dict[bytes, str]:
        """What stands in some trees, and what each of it is.

        Args:
            session: for errors.
            roots: of the trees, which sessions refer to.

        Raises:
            DamagedLogError: a tree cannot be read.
        """
        found: dict[bytes, str] = {}
        for root in roots:
            if root not in self._contents:
                self._contents[root] = await self._read(session, root)
            found |= self._contents[root]
        return found

    async def _read(self, session: str, root: bytes) -> dict[bytes, str]:
        try:
            lists, singles = await read_root(Blobs(self.store), root)
        except BlobFault as fault:
            raise DamagedLogError(session, None, fault.why, fault.digest.hex()) from None
        return header_digests(lists, singles) if self._roles[root] == "header" else trace_digests(lists, singles)

    async def held(self, blobs: AbstractSet[bytes]) -> dict[str, set[bytes]]:
        """Which of these blobs each session holds, itself or in a tree; sessions that hold none are left out."""
        held: dict[str, set[bytes]] = {}
        for digest, sessions in (await self.store.holders(blobs)).items():
            for session in sessions:
                held.setdefault(session, set()).add(digest)
        for session, trees in self.trees.items():
            inside = blobs & (await self.contents(session, trees)).keys()
            if inside:
                held.setdefault(session, set()).update(inside)
        return held

    async def unstored(self) -> set[bytes]:
        """What may be empty without having been erased, as it was not to be stored."""
        found = set(self.withheld)
        for session, trees in self.trees.items():
            found.update(await self.contents(session, trees & self.withheld))
        return found

    async def first_use(self, session: str, digest: bytes) -> int | None:
        """The first event of a session that a blob stands behind, itself or in a tree; None if there is none."""
        row = next(row for row in self.rows if row.id == session)
        async for chunk in SessionReader(self.store, row).records():
            for record in chunk:
                roots = [root for role, root in record.refs.items() if role in TREES]
                if digest in record.refs.values() or digest in await self.contents(session, roots):
                    return record.seq
        return None

    async def kinds(self) -> dict[bytes, str]:
        """What stands in the trees of all sessions, and what each of it is."""
        found: dict[bytes, str] = {}
        for session, trees in self.trees.items():
            found |= await self.contents(session, trees)
        return found


# -- bodies ------------------------------------------------------------------------------------------------------------


async def bodies_over(
    reader: SessionReader, blobs: AbstractSet[bytes], headers: Mapping[bytes, AbstractSet[bytes]]
) -> set[bytes]:
    """The digests of bodies that were sent with some content in them: the rest of a body known, it could be guessed.

    Args:
        reader: of a session.
        blobs: the content.
        headers: which of it stands in headers, by their roots.
    """
    watch = _Watch(blobs, headers)
    await reader.fold(each=watch).to_its_end()
    return watch.bodies


class _Watch:
    """Follows whether the model sees some content, while a log is folded. Of what was erased it sees placeholders."""

    def __init__(self, blobs: AbstractSet[bytes], headers: Mapping[bytes, AbstractSet[bytes]]) -> None:
        self._blobs, self._headers = blobs, headers
        self._said = False  # whether the history holds some of it
        self.bodies: set[bytes] = set()

    def __call__(self, state: State, record: Record) -> None:
        if isinstance(record.data, (records.HistoryReplacedData, records.ContentErasedData)):
            left = self._blobs - state.erased.keys()
            self._said = any(item.digest in left for item in state.history)
        elif record.refs.get("message") in self._blobs:
            self._said = True
        elif isinstance(record.data, records.RequestAttemptData) and (self._said or self._in_header(state)):
            self.bodies.update(record.refs.values())

    def _in_header(self, state: State) -> bool:
        held = self._headers.get(state.header or b"", ())
        return any(state.erased.get(digest, -1) < state.header_seq for digest in held)
