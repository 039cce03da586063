"""A session as it is told: its events in order, each with its step, and requests with what changed before them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from foreword.explain import diff_of, subjects
from foreword.session import events
from foreword.session.masking import masked_event
from foreword.session.placeholders import NOT_STORED, config_in_place

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from foreword.explain.diff import Diff
    from foreword.explain.steps import Request, Subjects
    from foreword.session.header import RequestHeader
    from foreword.session.log import Log

__all__ = ["Told", "Wanted", "story"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a log is to be told."""

    session: str  # the whole id
    number: int | None = None  # of one step, over all turns; None for all
    attempt: int | None = None  # one of that step; None for all


@dataclass(frozen=True, slots=True)
class Told:
    """One event, with what it takes to tell it."""

    logged: events.LoggedEvent
    number: int  # of the step that it stands in or behind, over all turns; 0 before the first
    header: RequestHeader | None  # in force
    reason: str | None = None  # of a request before which a header was written, why
    changes: Diff | None = None  # of such a request, since the last one; None for the first
    messages: int = 0  # in the history
    model: str | None = None  # of such a request; or what stands for it, if the log does not hold it


async def story(log: Log, wanted: Wanted, *, reveal: bool) -> AsyncGenerator[Told]:
    """Tell a session, or a step of it; the first event is told in any case. What was erased says so.

    Args:
        log: where it is.
        wanted: what of it.
        reveal: whether what is sensitive is told as well.

    Raises:
        SessionError: it cannot be read to its end.
    """
    state = _State(await subjects(log, wanted.session), reveal)
    async for logged in await log.events(wanted.session, if_erased="mark"):
        told = await state.told(logged)
        if wanted.number is not None and told.number > wanted.number:
            return
        if logged.seq == 0 or _is_wanted(told, state, wanted):
            yield told


def _is_wanted(told: Told, state: _State, wanted: Wanted) -> bool:
    if wanted.number is None:
        return True
    if not state.in_step or told.number != wanted.number:
        return False
    attempt = getattr(told.logged.event, "attempt", None)
    return wanted.attempt is None or attempt is None or attempt == wanted.attempt


@dataclass(slots=True)
class _State:
    """Where the walk along a session is."""

    subjects: Subjects
    reveal: bool
    number: int = 0
    in_step: bool = False
    messages: int = 0
    header: RequestHeader | None = None
    reason: str | None = None  # of a header that no request was made with yet
    last: Request | None = field(default=None)  # the request before

    async def told(self, logged: events.LoggedEvent) -> Told:
        """Take the next event in."""
        event = logged.event
        changes: Diff | None = None
        reason: str | None = None
        model: str | None = None
        match event:
            case events.TurnStart() | events.TurnEnd():
                self.in_step = False
            case events.StepStart():
                self.number, self.in_step = self.number + 1, True
            case events.HeaderWritten():
                self.header, self.reason = event.header, event.reason
            case events.RequestAttempted():
                reason, self.reason = self.reason, None
                changes = await self._changes(logged.seq, is_due=reason is not None)
                model = None if reason is None else await _model(self.header, self.last)
            case _:
                self._count(event)
        if not self.reveal:
            logged = replace(logged, event=masked_event(event))
        return Told(logged, self.number, self.header, reason, changes, self.messages, model)

    def _count(self, event: events.Event) -> None:
        if isinstance(event, (events.UserSaid, events.ToolAnswered)):
            self.messages += 1
        elif isinstance(event, events.AssistantSaid):
            self.messages += bool(event.message.text or event.message.tool_calls)
        elif isinstance(event, events.HistoryReplaced):
            self.messages -= event.last - event.first

    async def _changes(self, seq: int, *, is_due: bool) -> Diff | None:
        """What changed since the request before, if it was made with another header, and that can still be told."""
        before, self.last = self.last, await self._request(seq)
        if not is_due or before is None or self.last is None:
            return None
        return diff_of(await before.subject(), await self.last.subject(), masked=not self.reveal)

    async def _request(self, seq: int) -> Request | None:
        """The request that an event is about."""
        while (request := await self.subjects.request()) is not None:
            if request.seq == seq:
                return request
        return None


async def _model(header: RequestHeader | None, request: Request | None) -> str | None:
    """The model of a header; if the log does not hold it, whether that was erased or never stored."""
    if header is None:
        return None
    if header.config != config_in_place():
        return str(header.config)
    return NOT_STORED if request is None else (await request.config()).provider
