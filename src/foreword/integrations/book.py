"""Whose session a request belongs to, and in which of its lanes it is written.

A session is one row of requests. Where an agent asks twice at once, the second request goes into a session of its own
beside the first: a *lane*, with the same labels and one that names the session that it stands beside.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from foreword.errors import InactiveContextError, SessionBusyError, SessionExistsError
from foreword.integrations.lane import Lane
from foreword.integrations.missed import Missed
from foreword.session.address import LAST
from foreword.session.log import Log, open_log
from foreword.session.store.contract import SESSION_ID

if TYPE_CHECKING:
    from foreword.integrations.caller import Caller
    from foreword.integrations.told import Sent
    from foreword.session.events import TurnEndReason
    from foreword.session.ledger import Content
    from foreword.session.session import Session

__all__ = ["Book", "Entry", "Place"]

_BESIDE: Final = "beside"
_CONVERSATION: Final = "conversation"
_NOT_IN_IDS: Final = re.compile(r"[^A-Za-z0-9]+")
_LONGEST_NAME: Final = 40  # of what is left of a conversation's id that no session can bear; its digest comes behind


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where requests belong: a conversation, or a block of code. Compares by identity."""

    conversation: str | None = None  # the framework's id of it
    labels: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(slots=True)
class Entry:
    """A request in the book, while it is under way."""

    lane: Lane
    attempt: int
    caller: Caller
    answered: bool = False  # whether an answer has begun


class Book:
    """The sessions of one recorder that are open. Used by the scribe's thread only."""

    def __init__(self, log: str | Log, content: Content | None, labels: Mapping[str, str]) -> None:
        self._log: Log | None = None
        self._closed = False
        self._given, self._labels = log, labels
        self._content: Content | None = content
        self._lanes: dict[Place, list[Lane]] = {}
        self._under_way: dict[Lane, Entry] = {}
        self.missed = Missed()

    async def begin(self, place: Place, sent: Sent, caller: Caller) -> Entry:
        """Write down a request; `flush` makes it durable.

        Raises:
            ForewordError: it cannot be written.
        """
        lane = await self._lane(place, sent, caller)
        entry = self._under_way[lane] = Entry(lane, lane.begin(sent, self.missed), caller)
        return entry

    def ended(self, entry: Entry) -> None:
        """A request is no longer under way."""
        if self._under_way.get(entry.lane) is entry:
            del self._under_way[entry.lane]

    async def leave(self, place: Place, reason: TurnEndReason | None = None) -> None:
        """Nothing more comes from there: end its turns, for a reason or as they ended, and let go of its sessions.

        Raises:
            ExceptionGroup: what went wrong with each of them.
        """
        faults: list[Exception] = []
        for lane in self._lanes.pop(place, ()):
            self._under_way.pop(lane, None)
            try:
                lane.finish(reason)
                await lane.session.close()
            except Exception as fault:  # of the store; the other lanes are to be closed as well
                faults.append(fault)
        if faults:
            raise ExceptionGroup("recorded sessions could not be closed", faults)

    async def close(self) -> None:
        """Let go of everything; a second time does nothing.

        Raises:
            ExceptionGroup: what could not be written.
        """
        if self._closed:
            return
        self._closed = True
        faults: list[Exception] = []
        for place in tuple(self._lanes):
            try:
                await self.leave(place)
            except ExceptionGroup as group:
                faults += group.exceptions
        if self._log is not None:
            await self._log.close()
        if faults:
            raise ExceptionGroup("recorded sessions could not be closed", faults)

    # -- lanes ---------------------------------------------------------------------------------------------------------

    async def _lane(self, place: Place, sent: Sent, caller: Caller) -> Lane:
        """The lane of a place that is free and knows most of a request's history; a new one if all are at work."""
        if self._closed:
            raise InactiveContextError("this recorder", "make a new one")
        lanes = self._lanes.setdefault(place, [])
        free = [lane for lane in lanes if self._is_free(lane, caller)]
        if free:
            return max(free, key=lambda lane: lane.common(sent.told))  # of equal ones the first
        lane = await self._open(place, lanes[0] if lanes else None)
        lanes.append(lane)
        return lane

    def _is_free(self, lane: Lane, caller: Caller) -> bool:
        """Whether a lane waits for a request: nothing is under way, or nobody is there any more to wait for it."""
        entry = self._under_way.get(lane)
        if entry is None:
            return True
        return not entry.answered and entry.caller.is_over(caller)

    async def _open(self, place: Place, beside: Lane | None) -> Lane:
        log = await self._opened()
        labels = {**self._labels, **place.labels}
        if beside is not None:
            return Lane(await log.create(labels={**labels, _BESIDE: beside.session.id}))
        conversation = place.conversation
        if conversation is None:
            return Lane(await log.create(labels=labels))
        session = await _of_conversation(log, conversation, labels)
        return Lane(session or await log.create(labels={**labels, _CONVERSATION: conversation}))

    async def _opened(self) -> Log:
        if self._log is None:
            given = self._given
            if isinstance(given, str):
                log = open_log(given, content=self._content or "full")
            else:  # its sessions are written in a thread of ours, so they are not its own
                content = self._content or given.content
                log = open_log(given.store, content=content, clock=given.clock, entropy=given.entropy)
            await log.__aenter__()
            self._log = log
        return self._log


async def _of_conversation(log: Log, conversation: str, labels: Mapping[str, str]) -> Session | None:
    """The session of a conversation, begun or resumed; None if somebody else is writing it."""
    own = _session_id(conversation)
    if own != conversation:
        labels = {**labels, _CONVERSATION: conversation}
    try:
        try:
            return await log.create(own, labels=labels)
        except SessionExistsError:
            return await log.resume(own)
    except SessionBusyError:  # two cannot write one session
        return None


def _session_id(conversation: str) -> str:
    """The id of a conversation's session: its own, else one that is made of it, the same in every run."""
    if SESSION_ID.fullmatch(conversation) is not None and conversation != LAST:
        return conversation
    name = _NOT_IN_IDS.sub("-", conversation)[:_LONGEST_NAME].strip("-")
    digest = blake2b(conversation.encode(errors="surrogatepass"), digest_size=8).hexdigest()
    return f"{name}-{digest}" if name else digest
