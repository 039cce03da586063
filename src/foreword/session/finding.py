"""Finding what an address means: the session, and in one walk along it the step, the attempt and what the model saw."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from foreword.errors import UnknownAddressError, did_you_mean, shown
from foreword.session import records
from foreword.session.address import LAST, Address
from foreword.session.chain import CHUNK
from foreword.session.trace import StepTrace

if TYPE_CHECKING:
    from foreword.session.chain import Record
    from foreword.session.reading import SessionReader
    from foreword.session.state import Seen, State
    from foreword.session.store.contract import SessionRow, Store

__all__ = ["Found", "Location", "exact", "find", "find_session", "turn_of"]


@dataclass(frozen=True, slots=True)
class Location:
    """A request in the log."""

    session: str  # the whole id
    number: int  # of the step, over all turns
    turn: int
    step: int  # in the turn
    attempt: int
    attempts: int  # of the step, so far
    seq: int  # of the event that says that the attempt was made

    def __str__(self) -> str:
        """The address that leads here, whatever is logged later."""
        return f"{self.session}@{self.number}/{self.attempt}"


@dataclass(frozen=True, slots=True)
class Found:
    """A request in the log, and what it was made of."""

    location: Location
    seen: Seen  # by the model, in that attempt
    trace: StepTrace | None  # of its step


async def find_session(store: Store, text: str, address: str = "") -> SessionRow:
    """The session that an id, the beginning of one, or ``last`` stands for.

    Raises:
        UnknownAddressError: there is none, or there are several; tells which.
    """
    row = None if text == LAST else await store.session(text)
    if row is not None:
        return row
    rows = await store.sessions()
    found = rows[-1:] if text == LAST else [row for row in rows if row.id.startswith(text)]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(shown(row.id) for row in found[:5])
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        raise UnknownAddressError(
            address or text, f"{len(found)} sessions begin with it: {ids}{more}; write more of it"
        )
    why = f"no session's id begins so; {_known(text, rows)}" if rows else "there is no session yet"
    raise UnknownAddressError(address or text, why)


def _known(text: str, rows: list[SessionRow]) -> str:
    return did_you_mean(text, [row.id for row in rows[-1000:]], "sessions")


async def find(reader: SessionReader, address: Address) -> Found:
    """The request behind an address, its session being known.

    Raises:
        UnknownAddressError: there is none.
        DamagedLogError: the session is not what was logged, up to there.
        NewerLogError: only a newer version can read it.
    """
    step = await _walk(reader, await exact(reader, address))
    wanted = len(step.attempts) if address.attempt is None else address.attempt
    where = f"step {step.number} of session {shown(reader.id)}"
    if not step.attempts:
        in_turn = f"(turn {step.turn}, step {step.step})"
        raise UnknownAddressError(str(address), f"{where} {in_turn} made no request: it ended, or was cut off, before")
    if wanted > len(step.attempts):
        made = f"made {len(step.attempts)} attempt{'s' if len(step.attempts) > 1 else ''}"
        raise UnknownAddressError(str(address), f"{where} {made}")
    seq, seen = step.attempts[wanted - 1]
    location = Location(reader.id, step.number, step.turn, step.step, wanted, len(step.attempts), seq)
    return Found(location, seen, step.trace)


async def turn_of(reader: SessionReader, address: Address) -> int:
    """The turn of the step that an address means, whether it made a request or not.

    Raises:
        UnknownAddressError: there is no such step.
        DamagedLogError: the session is not what was logged, up to there.
        NewerLogError: only a newer version can read it.
    """
    return (await _walk(reader, await exact(reader, address))).turn


_LOOKED_AT: Final = frozenset((records.StepStartData, records.RequestAttemptData))


@dataclass(slots=True)
class _Step:
    """A step on the way, and its attempts: the numbers of their events, and what the model saw."""

    number: int
    turn: int
    step: int
    trace: StepTrace | None
    attempts: list[tuple[int, Seen]] = field(default_factory=list["tuple[int, Seen]"])


class _Search:
    """Looks for a step while a log is folded."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self.last: _Step | None = None  # that was passed or reached
        self.over = False  # the step was found, and another one began

    @property
    def found(self) -> bool:
        """Whether the last step is the one that is meant."""
        last, address = self.last, self._address
        if last is None:
            return False
        return last.number == address.number or (last.turn, last.step) == (address.turn, address.step)

    def __call__(self, state: State, record: Record) -> None:
        data = record.data
        if type(data) not in _LOOKED_AT:  # of most of a hundred thousand this is all
            return
        if isinstance(data, records.StepStartData):
            self.over = self.over or self.found
            if not self.over:
                trace = record.refs.get("trace")
                told = None if trace is None else StepTrace(trace, data.resized)
                self.last = _Step(state.steps, data.turn, data.step, told)
        elif isinstance(data, records.RequestAttemptData) and self.found and not self.over and self.last is not None:
            self.last.attempts.append((record.seq, state.seen()))


async def _walk(reader: SessionReader, address: Address) -> _Step:
    """The step of an address that names one."""
    search = _Search(address)
    async for _ in reader.fold(each=search):
        if search.over:
            break
    if search.last is None or not search.found:
        raise UnknownAddressError(str(address), _what_there_is(reader.id, search.last))
    return search.last


async def exact(reader: SessionReader, address: Address) -> Address:
    """The address with its step named: the newest, if it names none. That is looked for from the end of the log."""
    stop = reader.row.count
    while address.number is None and address.turn is None and stop > 0:
        first = max(0, stop - CHUNK)
        chunks = [chunk async for chunk in reader.records(first, stop)]
        starts = [each.data for chunk in chunks for each in chunk if isinstance(each.data, records.StepStartData)]
        if starts:
            return Address(address.session, None, starts[-1].turn, starts[-1].step, address.attempt)
        stop = first
    return address


def _what_there_is(session: str, last: _Step | None) -> str:
    if last is None:
        return f"session {shown(session)} has no step yet"
    steps = f"{last.number} step{'s' if last.number > 1 else ''}"
    return f"session {shown(session)} has {steps}, the last of them step {last.step} of turn {last.turn}"
