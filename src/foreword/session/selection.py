"""What is to be erased, as whoever asks says it, and which events that means."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from foreword.errors import UnknownAddressError
from foreword.session import records
from foreword.session.address import parse_address
from foreword.session.finding import exact, find_session, turn_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from foreword.session.address import Address
    from foreword.session.chain import Record
    from foreword.session.log import Log
    from foreword.session.reading import SessionReader
    from foreword.session.store.contract import SessionRow

__all__ = ["Selection", "Spans", "spans_of"]

Spans = dict[str, range]
"""Events by session: the numbers of those that are meant. They are neighbours."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What is to be erased: one of the first five.

    Raises:
        TypeError: nothing says what is meant, or two things do.
        ValueError: everything would fit.
    """

    address: str | None = None  # a step, or an attempt
    session: str | None = None
    label: Mapping[str, str] | None = None  # sessions that bear all of these
    before: datetime | timedelta | None = None  # a time, or how long ago
    match: str | None = None  # a text
    within: str | None = None  # only what this session holds

    def __post_init__(self) -> None:
        given = [name for name in ("address", "session", "label", "before", "match") if getattr(self, name) is not None]
        if len(given) != 1:
            told = " and ".join(given) or "nothing"
            raise TypeError(f"{told} is given; say what to erase by one of address, session, label, before and match")
        if self.match == "" or (self.label is not None and not self.label):
            raise ValueError(f"{given[0]} is empty, and everything would fit it")

    def instant(self, now: int) -> int:
        """In milliseconds since 1970, what `before` means."""
        if isinstance(self.before, timedelta):
            return now - self.before // timedelta(milliseconds=1)
        assert self.before is not None  # noqa: S101 - asked only where it is given
        return int(self.before.timestamp() * 1000)


async def spans_of(log: Log, selection: Selection, rows: Sequence[SessionRow], now: int) -> Spans:
    """The events that a selection means; not for one by text.

    Args:
        log: where they are.
        selection: what is meant.
        rows: all sessions of the log.
        now: milliseconds since 1970.

    Raises:
        InvalidAddressError, UnknownAddressError: there is no such session or step.
        DamagedLogError: a session is not what was logged.
    """
    if selection.address is not None:
        reader = await log.reader(parse_address(selection.address).session, selection.address)
        return {reader.id: await _of_address(reader, parse_address(selection.address))}
    if selection.session is not None:
        row = await find_session(log.store, parse_address(selection.session).session, selection.session)
        return {row.id: range(row.count)}
    spans: Spans = {}
    for row in rows:
        if selection.within not in (None, row.id):
            continue
        if selection.label is not None:
            labels = (await log.start_of(row.id)).labels.items()
            span = range(row.count if selection.label.items() <= labels else 0)
        else:
            span = range(await _count_before(await log.reader(row.id), selection.instant(now)))
        if span:
            spans[row.id] = span
    return spans


async def _count_before(reader: SessionReader, instant: int) -> int:
    """How many events of a session are older; their times never go back."""
    low, high = 0, reader.row.count
    while low < high:
        middle = (low + high) // 2
        [[record]] = [chunk async for chunk in reader.records(middle, middle + 1)]
        low, high = (middle + 1, high) if record.time < instant else (low, middle)
    return low


async def _of_address(reader: SessionReader, address: Address) -> range:
    """What was logged from a step on up to the next one; or from an attempt on up to its outcome."""
    await turn_of(reader, address)  # tells what there is instead
    step = _StepSearch(await exact(reader, address))
    async for chunk in reader.records():
        for record in chunk:
            step.take(record)
    return step.found()


class _StepSearch:
    """Notes where a step begins and ends, and its attempts."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._number = 0
        self._last: Record | None = None
        self._events: list[Record] = []
        self._inside = False

    def take(self, record: Record) -> None:
        """Take in the next record."""
        data, address = record.data, self._address
        if isinstance(data, records.StepStartData):
            self._number += 1
            named = (data.turn, data.step) == (address.turn, address.step)
            self._inside = self._number == address.number or named
        elif isinstance(data, records.TurnStartData):
            self._inside = False
        if self._inside:
            self._events.append(record)

    def found(self) -> range:
        """The numbers of the events that are meant."""
        if self._address.attempt is None:
            return range(self._events[0].seq, self._events[-1].seq + 1)
        for at, record in enumerate(self._events):
            if isinstance(record.data, records.RequestAttemptData) and record.data.attempt == self._address.attempt:
                return range(self._start(at), self._end(at))
        made = sum(isinstance(record.data, records.RequestAttemptData) for record in self._events)
        raise UnknownAddressError(str(self._address), f"that step made {made} attempt{'' if made == 1 else 's'}")

    def _start(self, at: int) -> int:
        """The header that was written for an attempt goes with it."""
        before = self._events[at - 1]
        return before.seq if isinstance(before.data, records.RequestHeaderData) else self._events[at].seq

    def _end(self, at: int) -> int:
        ends = (records.RequestOutcomeData, records.StepEndData)
        return next(
            (each.seq + 1 for each in self._events[at:] if isinstance(each.data, ends)), self._events[-1].seq + 1
        )
