"""A log: the sessions of one store. Here they are begun, resumed, forked, looked at and found."""

from __future__ import annotations

import base64
import os
import time
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import PurePath
from typing import TYPE_CHECKING, get_args

from foreword.errors import (
    DamagedLogError,
    EventRefusedError,
    InactiveContextError,
    InvalidSessionIdError,
    UnknownAddressError,
)
from foreword.session import records
from foreword.session.address import LAST, Address, parse_address
from foreword.session.digests import DIGEST_SIZE
from foreword.session.drift import Drift, checked_drift
from foreword.session.events import ForkedFrom, SessionStart
from foreword.session.finding import Location, find, find_session, turn_of
from foreword.session.ledger import Clock, Content, Entropy, Ledger
from foreword.session.reading import Loaded, SessionReader
from foreword.session.repair import repair
from foreword.session.selection import Selection
from foreword.session.session import Session
from foreword.session.state import State
from foreword.session.store import open_store
from foreword.session.store.contract import SessionRow
from foreword.session.survey import Survey
from foreword.session.takeover import opening
from foreword.session.view import SessionView

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from types import TracebackType
    from typing import Self

    import anyio

    from foreword.session.erasure import ErasureReport
    from foreword.session.reading import Events, IfErased
    from foreword.session.store.contract import Claim, Store
    from foreword.session.trace import RecordedTrace

__all__ = ["Log", "SessionInfo", "open_log"]


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What a list of sessions tells of each."""

    id: str
    created: int  # milliseconds since 1970
    events: int
    head: str  # in hex
    parent: ForkedFrom | None = None


def open_log(
    store: str | Store,
    *,
    read_only: bool = False,
    content: Content = "full",
    clock: Clock | None = None,
    entropy: Entropy | None = None,
) -> Log:
    """The log in a store; an async context manager.

    Args:
        store: a URL as in ``"sqlite:foreword.db"``, or a store that is open already and stays its owner's to close.
        read_only: never make or change the file; sessions cannot be claimed.
        content: how much of what is said is stored. ``"full"``: all of it. ``"masked"``: what is sensitive is not
            (values of sensitive variables, sensitive contexts, arguments and results of sensitive tools); masked texts
            stand in its place. ``"digests"``: nothing of it; only who holds a content can prove that it was said. What
            is not stored cannot be rebuilt, and a resumed session goes on with placeholders.
        clock: gives the time in milliseconds since 1970; None for the system's.
        entropy: gives so many random bytes, for salts and ids; None for the system's. With a clock and an entropy of
            its own, a test writes the same bytes each time; a log that anybody reads needs the real one.

    Raises:
        StoreError: the URL is none of a store.
        ValueError: the content is none of these.
    """
    if content not in get_args(Content):
        raise ValueError(f"content is {content!r}; it is one of {', '.join(map(repr, get_args(Content)))}")
    owned = open_store(store, read_only=read_only) if isinstance(store, str) else None
    opened = owned if owned is not None else store
    assert not isinstance(opened, str)  # noqa: S101 - it was opened above
    return Log(opened, clock or _now, entropy or os.urandom, content, owned=owned is not None)


def _now() -> int:
    return time.time_ns() // 1_000_000


class Log:
    """The sessions of one store. `open_log` makes it.

    Attributes:
        store: where they are.
        clock: tells the time.
        entropy: makes salts and ids.
        content: how much of what is said is stored.
    """

    def __init__(self, store: Store, clock: Clock, entropy: Entropy, content: Content, *, owned: bool) -> None:
        self.store = store
        self.content: Content = content
        self.clock, self.entropy, self._owned = clock, entropy, owned
        self._erasing: anyio.Lock | None = None
        self._open: dict[str, Session] = {}
        self._replaced: list[Session] = []  # taken over from here, by resuming them
        self._closed = False

    # -- sessions that are written -------------------------------------------------------------------------------------

    async def create(
        self, id: str | None = None, *, labels: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> Session:
        """Begin a session. It is in the store from its first flush on.

        Args:
            id: ASCII letters, digits, hyphens and underscores; None for a random one.
            labels: to find it by, such as tenant, ticket or release. Their values are private to the session.
            cwd: the absolute path of the folder that it is about.

        Raises:
            InvalidSessionIdError: no session could bear that id.
            SessionExistsError: the store has one of that id.
            EventRefusedError: a label or the folder cannot be stored.
            NotJsonError: the same, of labels that are no JSON.
        """
        self._check_open()
        if cwd is not None and not PurePath(cwd).is_absolute():
            raise EventRefusedError(id or "(new)", "session/start", f'the folder "{cwd}" is no absolute path')
        own, genesis = self._id(id), self.entropy(DIGEST_SIZE)
        start = SessionStart(own, labels or {}, cwd)
        ledger = Ledger(own, 1, State(), genesis, [], None, self.clock, self.entropy, self.content)
        began = ledger.begin(start)
        row = SessionRow(own, genesis, ledger.epoch, 0, genesis, began.time)
        return self._opened(ledger, await self.store.claim(own, new=row), start.labels)

    async def resume(self, session: str, *, drift: Drift = "fresh", take_over: bool = False) -> Session:
        """Go on with a session. What a crash left open is closed first, and that is durable on return.

        Args:
            session: its id, the beginning of one, or ``last``.
            drift: which request header goes out if today's is not the recorded one: ``"fresh"`` today's,
                ``"recorded"`` the recorded one, ``"error"`` none.
            take_over: also if it is open for writing elsewhere, in a process that is stopped, hung or cut off. That one
                can write it no more: its next flush raises `SessionFencedError`, and from then on each append. A note
                in the log says so.

        Raises:
            ValueError: the drift is none of these.
            UnknownAddressError: there is no such session, or there are several.
            SessionBusyError: it is open for writing, here or in another process; not with ``take_over``.
            DamagedLogError: it is not what was logged.
            NewerLogError: a newer version wrote it.
        """
        self._check_open()
        policy = checked_drift(drift)
        row = await find_session(self.store, session)
        epoch = opening(self.clock, self.entropy, self.content) if take_over else None
        claim = await self.store.claim(row.id, take_over=epoch)
        before = self._open.get(row.id)
        if before is not None:
            before.fence(claim.row.epoch)
            self._replaced.append(before)
        try:
            reader = SessionReader(self.store, claim.row)
            loaded = await reader.load()
            ledger = await self._repaired(reader, loaded)
            trace = await reader.recorded_trace(loaded) if policy == "recorded" else None
            resumed = self._opened(ledger, claim, loaded.labels, policy, trace)
            await resumed.flush()
        except BaseException:
            await self._let_go(claim)
            raise
        return resumed

    async def fork(self, address: str, *, id: str | None = None, labels: Mapping[str, str] | None = None) -> Session:
        """Begin a session with the events of another one up to a closed turn; that one is only read.

        Args:
            address: of a session, for all that it holds; or of a step, for what it holds up to the end of its turn.
            id: of the new session; None for a random one.
            labels: of the new session; None for those of the other one.

        Raises:
            UnknownAddressError: there is no such session or step, or its turn is still open.
            SessionExistsError: the store has a session of that id.
        """
        self._check_open()
        told = parse_address(address)
        parent = await find_session(self.store, told.session, address)
        reader = SessionReader(self.store, parent)
        loaded = await self._at_closed_turn(reader, told)
        count, own = loaded.state.count, self._id(id)
        kept = loaded.labels if labels is None else labels
        start = SessionStart(own, kept, loaded.state.cwd, ForkedFrom(parent.id, count))
        ledger = self._ledger(own, loaded)
        began = ledger.begin(start, inherit=labels is None)
        row = SessionRow(own, parent.genesis, parent.epoch, count, loaded.head, began.time, parent.id, count)
        claim = await self.store.claim(own, new=row)
        forked = self._opened(ledger, claim, start.labels)
        try:
            for _ in range(2):  # an erasure knows of the fork from its first flush on, and may have come before it
                await self._forget_as_parent(ledger, reader, count)
                await forked.flush()
        except BaseException:
            await self._let_go(claim)
            raise
        return forked

    async def _forget_as_parent(self, ledger: Ledger, parent: SessionReader, count: int) -> None:
        """Have a fork tell what was erased of its parent's first events, since it left."""
        erased = (await parent.losses(anew=True)).erased - ledger.state.erased.keys()
        if not erased:
            return
        row = replace(parent.row, count=count)
        survey = await Survey.of(self.store, [row], {row.id: range(count)})
        shared = await survey.contents(row.id, survey.chosen)
        held = await self.store.blobs(erased & (survey.private | shared.keys()))
        empty = {row.digest for row in held.values() if row.body is None}
        if empty:
            ledger.forget(empty)

    async def _at_closed_turn(self, reader: SessionReader, address: Address) -> Loaded:
        """A session up to the end of the turn that an address means, or as far as it goes."""
        stop = reader.row.count
        if address.number is not None or address.turn is not None:
            stop = await self._end_of_turn(reader, await turn_of(reader, address), str(address))
        loaded = await reader.load(stop)
        if loaded.state.turn_open:
            why = f"turn {loaded.state.turn} is still open; end it first, or name a step of a turn before"
            raise UnknownAddressError(str(address), why)
        return loaded

    async def _end_of_turn(self, reader: SessionReader, turn: int, address: str) -> int:
        async for chunk in reader.records():
            for record in chunk:
                if isinstance(record.data, records.TurnEndData) and record.data.turn == turn:
                    return record.seq + 1
        raise UnknownAddressError(address, f"turn {turn} is still open; name a step of a turn before")

    async def _repaired(self, reader: SessionReader, loaded: Loaded) -> Ledger:
        """A ledger that goes on with a session, with nothing open."""
        ledger = self._ledger(reader.id, loaded)
        if loaded.state.turn_open:
            events = [event async for event in reader.events(loaded.state.turn_start, if_erased="mark")]
            for event in repair(events):
                ledger.append(event, time=loaded.state.time)
        return ledger

    def _ledger(self, id: str, loaded: Loaded) -> Ledger:
        messages, header = list(loaded.messages), loaded.header
        tools = self.clock, self.entropy, self.content
        return Ledger(id, loaded.epoch, loaded.state, loaded.head, messages, header, *tools)

    def _opened(
        self,
        ledger: Ledger,
        claim: Claim,
        labels: Mapping[str, str],
        drift: Drift = "fresh",
        trace: RecordedTrace | None = None,
    ) -> Session:
        session = self._open[ledger.id] = Session(self, ledger, claim, labels, drift, trace)
        return session

    async def _let_go(self, claim: Claim) -> None:
        import anyio

        self._open.pop(claim.session, None)
        with anyio.CancelScope(shield=True):
            await claim.release()

    def _id(self, id: str | None) -> str:
        if id == LAST:
            raise InvalidSessionIdError(id)
        return base64.b32encode(self.entropy(10)).decode().lower() if id is None else id

    # -- looking -------------------------------------------------------------------------------------------------------

    async def sessions(self) -> list[SessionInfo]:
        """All sessions; the one with the newest event comes last."""
        self._check_open()
        return [_info(row) for row in await self.store.sessions()]

    async def start_of(self, session: str) -> SessionStart:
        """How a session began: its labels, its folder, its parent. A label that was erased says so.

        Args:
            session: its id, the beginning of one, or ``last``.

        Raises:
            UnknownAddressError: there is no such session, or there are several.
            DamagedLogError: that event is not what was logged.
        """
        reader = await self.reader(session)
        at = reader.row.forked_at or 0
        async for logged in reader.events(at, at + 1, if_erased="mark"):
            if isinstance(logged.event, SessionStart):
                return logged.event
        raise DamagedLogError(reader.id, at, "it is no session/start")

    async def view(self, session: str) -> SessionView:
        """A session as it stands, to be read; it may be open for writing somewhere.

        As in a session that is resumed, placeholders stand for what was erased.

        Args:
            session: its id, the beginning of one, or ``last``.

        Raises:
            UnknownAddressError: there is no such session, or there are several.
            DamagedLogError: it is not what was logged.
            NewerLogError: a newer version wrote it.
        """
        reader = await self.reader(session)
        loaded = await reader.load()
        return SessionView(reader, loaded, await self._repaired(reader, loaded))

    async def locate(self, address: str) -> Location:
        """Where an address leads.

        Raises:
            InvalidAddressError: it is none.
            UnknownAddressError: it leads nowhere, or to several sessions.
        """
        told = parse_address(address)
        return (await find(await self.reader(told.session, address), told)).location

    async def events(
        self, session: str, first: int = 0, stop: int | None = None, *, if_erased: IfErased = "raise"
    ) -> Events:
        """The events of a session in the store, from number ``first`` up to, not with, ``stop``.

        Args:
            session: its id, the beginning of one, or ``last``.
            first: number of the first.
            stop: number of the first that is not wanted; None for all.
            if_erased: ``"raise"`` an error, or ``"mark"`` for placeholders in the place of what was erased.

        Returns:
            An async iterator, which holds few of them at a time.

        Raises:
            UnknownAddressError: there is no such session, or there are several.
        """
        return (await self.reader(session)).events(first, stop, if_erased=if_erased)

    async def reader(self, session: str, address: str = "") -> SessionReader:
        """What reads a session as it stands now; ``address`` is what errors show."""
        self._check_open()
        return SessionReader(self.store, await find_session(self.store, session, address))

    # -- forgetting ----------------------------------------------------------------------------------------------------

    async def erase(
        self,
        address: str | None = None,
        *,
        session: str | None = None,
        label: Mapping[str, str] | None = None,
        before: datetime | timedelta | None = None,
        match: str | None = None,
        within: str | None = None,
        wait: bool = False,
        dry_run: bool = False,
    ) -> ErasureReport:
        """Take content out of the log for good. Events stay, and the log verifies as before.

        By address, session, label or age go the private contents of the events that are meant (messages, arguments,
        answers, errors, labels), in whichever session they are held: a fork holds what its parent said before it. A
        text that sessions share (a section, a tool) goes only if nothing else needs it. By a text go all contents that
        hold it. With what was sent go the digests of bodies that it was sent in.

        Sessions that are open in this log forget it as well, and go on with placeholders. Those that others are writing
        block it: nothing is changed then.

        Args:
            address: of a step, for what was logged from it on up to the next one; or of an attempt.
            session: its id, the beginning of one, or ``last``: all that it holds.
            label: all that is held by the sessions that bear all of these.
            before: what was logged before that time, or longer ago than that.
            match: every content that holds this text.
            within: with ``before`` or ``match``, the id of the only session whose contents are meant.
            wait: wait until no other process writes a session that holds some of it.
            dry_run: change nothing; tell what would go.

        Returns:
            What was emptied, where, and what could not be reached.

        Raises:
            TypeError: none of address, session, label, before and match is given, or several.
            ValueError: label or match is empty.
            InvalidAddressError, UnknownAddressError: there is no such session or step.
            ErasureBlockedError: others are writing sessions that hold some of it; names them. Nothing was changed.
            DamagedLogError: a session is not what was logged, or what is to go is not: emptied, that could not be told
                any more. Nothing was changed.
            StoreError: the store cannot do it. Sessions that are open here may have forgotten it already; try again.
        """
        selection = Selection(address, session, label, before, match, within)
        return await self._erase(selection, wait=wait, dry_run=dry_run)

    async def keep(self, days: float) -> ErasureReport:
        """Take out of the log what was said longer ago than that: `erase` by age, again and again.

        What is held by sessions that others are writing stays until another time; `ErasureReport.busy` names them.

        Args:
            days: how long it is kept.

        Raises:
            ValueError: that is less than nothing.
            DamagedLogError: a session is not what was logged, or what is to go is not. Nothing was changed.
        """
        if not days >= 0:
            raise ValueError(f"nothing can be kept for {days} days")
        return await self._erase(Selection(before=timedelta(days=days)), pass_over=True)

    async def _erase(self, selection: Selection, **how: bool) -> ErasureReport:
        import anyio

        from foreword.session.erasure import Erasing

        self._check_open()
        self._erasing = self._erasing or anyio.Lock()
        async with self._erasing:
            return await Erasing(self, selection, **how).run()

    # -- as a whole ----------------------------------------------------------------------------------------------------

    async def export(self, path: str | PurePath) -> None:
        """Write a copy of the whole log to a new file: what is flushed, and what sessions that are open here hold.

        It is the way to move a log, or to take a backup of one that is being written; the store's own files must not be
        copied meanwhile. The copy is made at one moment, checked, and durable when this returns; ``sqlite:PATH`` opens
        it. An erasure does not reach it.

        Args:
            path: of a file that is not there yet.

        Raises:
            StoreError: something is there (``store_exists``), it cannot be written, or the copy is not whole.
            SessionError: a session that is open here cannot be flushed.
        """
        self._check_open()
        await self.flush()
        await self.store.export(str(path))

    async def flush(self) -> None:
        """Make all that was logged here durable, in every session that is open.

        Raises:
            SessionError: as `Session.flush`, of the first that cannot be.
        """
        for session in tuple(self._open.values()):
            if self._open.get(session.id) is session:
                await session.flush()

    def open_session(self, id: str) -> Session | None:
        """The session of an id, if it is open for writing in this log."""
        return self._open.get(id)

    # -- its end -------------------------------------------------------------------------------------------------------

    def forget(self, session: Session) -> None:
        """Called by a session that closes."""
        if self._open.get(session.id) is session:
            del self._open[session.id]

    async def close(self) -> None:
        """Close the sessions that are still open, all of them, then the store if it was opened here; twice is once.

        Raises:
            ExceptionGroup: what went wrong with each session that could not be flushed.
        """
        if self._closed:
            return
        faults: list[Exception] = []
        for session in (*self._replaced, *self._open.values()):
            try:
                await session.close()
            except Exception as fault:  # of the store; the other sessions are to be closed as well
                faults.append(fault)
            except BaseException:  # a cancellation: the store is closed all the same
                await self._close_store()
                raise
        await self._close_store()
        if faults:
            raise ExceptionGroup("sessions could not be closed", faults)

    async def _close_store(self) -> None:
        import anyio

        self._closed = True
        if self._owned:
            with anyio.CancelScope(shield=True):
                await self.store.close()

    async def __aenter__(self) -> Self:
        """Open the store, so that one that cannot be opened is told of here.

        Raises:
            StoreError: it cannot be.
        """
        self._check_open()
        if self._owned:
            try:
                await self.store.open()
            except BaseException:
                await self._close_store()
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import anyio

        with anyio.CancelScope(shield=True):
            await self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise InactiveContextError("this log", "open it anew with open_log")


def _info(row: SessionRow) -> SessionInfo:
    parent = None if row.parent is None or row.forked_at is None else ForkedFrom(row.parent, row.forked_at)
    return SessionInfo(row.id, row.created, row.count, row.head.hex(), parent)
