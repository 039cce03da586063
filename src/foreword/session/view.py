"""A session as a reader sees it: nothing is written, and what a crash left open is shown as repair would close it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.session.reading import Events

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foreword.session.events import HeldSnapshot, LoggedEvent
    from foreword.session.header import RequestHeader
    from foreword.session.ledger import Ledger
    from foreword.session.reading import Loaded, SessionReader
    from foreword.wire.messages import Message

__all__ = ["SessionView"]


class SessionView:
    """A session as it stood when `Log.view` was called.

    Attributes:
        id: its id.
        head: the digest of its last event in the store, in hex.
        labels: what it was labelled with.
        cwd: the folder that it is about, if it was given.
        turn: the number of its last turn; 0 if it has none.
        steps: how many steps it has in all turns.
        messages: its history.
        header: the request header in force.
        held_snapshot: which snapshot of the runtime contexts the model would still see.
        repaired: the events that are not in the store, and close what a crash left open. If the session is being
            written now, they stand for what is still to come.
    """

    def __init__(self, reader: SessionReader, loaded: Loaded, ledger: Ledger) -> None:
        self._reader = reader
        self.id = reader.id
        self.head = loaded.head.hex()
        self.labels: Mapping[str, str] = loaded.labels
        self.cwd = ledger.state.cwd
        self.turn = ledger.state.turn
        self.steps = ledger.state.steps
        self.messages: tuple[Message, ...] = tuple(ledger.messages)
        self.header: RequestHeader | None = None if ledger.header is None else ledger.header.header
        self.held_snapshot: HeldSnapshot = ledger.held_snapshot()
        self.repaired: tuple[LoggedEvent, ...] = tuple(ledger.logged)

    def events(self, first: int = 0) -> Events:
        """All events from number ``first`` on, those of the repair last: an async iterator that holds few at a time."""
        more = [each for each in self.repaired if each.seq >= first]
        return Events(self._reader, self._reader.records(first), "mark", more)

    def __repr__(self) -> str:
        return f"<SessionView {self.id}: turn {self.turn}, {self.steps} steps>"
