"""Taking a session over: the event that a new epoch begins with, so that the log itself tells when and by whom."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import msgspec

from foreword.errors import DamagedLogError
from foreword.session.events import Note
from foreword.session.ledger import Ledger
from foreword.session.records import Envelope
from foreword.session.state import State

if TYPE_CHECKING:
    from foreword.session.ledger import Clock, Content, Entropy
    from foreword.session.store.contract import Batch, EventRow, SessionRow, TakeOver

__all__ = ["TAKEN_OVER", "opening"]

TAKEN_OVER: Final = "session/taken-over"
"""What the note is called; its data names the epoch that begins, and the process that is the writer from here on."""

_envelope: msgspec.json.Decoder[Envelope] = msgspec.json.Decoder(Envelope)


def opening(clock: Clock, entropy: Entropy, content: Content) -> TakeOver:
    """What makes the first batch of an epoch.

    Args:
        clock: tells the time.
        entropy: makes a salt.
        content: how much of what is said is stored.
    """

    def open_epoch(row: SessionRow, last: EventRow | None) -> Batch:
        state = State()
        state.count, state.time = row.count, 0 if last is None else _time_of(row.id, last)
        ledger = Ledger(row.id, row.epoch, state, row.head, [], None, clock, entropy, content)
        ledger.append(Note(TAKEN_OVER, {"epoch": row.epoch, "pid": os.getpid()}))
        return ledger.batch(row.count, row.head)

    return open_epoch


def _time_of(session: str, row: EventRow) -> int:
    try:
        return _envelope.decode(row.envelope).time
    except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise DamagedLogError(session, row.seq, f"its envelope cannot be read: {fault}") from None
