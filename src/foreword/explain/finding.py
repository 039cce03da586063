"""Finding requests in a log: by label, time, text or section. Gives addresses, which every other question takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from foreword.errors import DamagedLogError, NewerLogError, TextNotFoundError
from foreword.explain.masking import Masker
from foreword.explain.provenance import find_text, texts_of, texts_of_tool
from foreword.explain.steps import subjects
from foreword.explain.unstored import is_lossy
from foreword.wire.tool_extras import extras_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foreword.explain.provenance import Occurrence
    from foreword.explain.steps import Request
    from foreword.explain.subject import RequestMessage, Subject
    from foreword.jsonvalue import JsonValue
    from foreword.session import Location, Log, SessionInfo

__all__ = ["FirstSeen", "FoundStep", "find_steps", "first_seen"]


@dataclass(frozen=True, slots=True)
class FoundStep:
    """A request that was looked for."""

    location: Location
    time: int  # milliseconds since 1970
    labels: Mapping[str, str]
    occurrences: tuple[Occurrence, ...] = ()  # where the text stands that was asked for

    @property
    def address(self) -> str:
        """Its address."""
        return str(self.location)

    def to_json(self) -> dict[str, JsonValue]:
        """The request as JSON."""
        return {
            "address": self.address,
            "time": self.time,
            "labels": dict(self.labels),
            "occurrences": [each.to_json() for each in self.occurrences],
        }


@dataclass(frozen=True, slots=True)
class FirstSeen:
    """The first request in a log in which a text stands."""

    location: Location
    time: int  # milliseconds since 1970
    occurrence: Occurrence  # where it stands there; with the version that its owner was of then
    unread: tuple[str, ...] = ()  # the sessions that could not be looked through, since they are damaged

    @property
    def distribution(self) -> str | None:
        """Name and version of the package that put it there then; None for a project's own."""
        return self.occurrence.stretches[0].origin.distribution

    def to_json(self) -> dict[str, JsonValue]:
        """The finding as JSON."""
        return {
            "address": str(self.location),
            "time": self.time,
            "distribution": self.distribution,
            "occurrence": self.occurrence.to_json(),
            "unread": list(self.unread),
        }


async def find_steps(
    log: Log,
    *,
    labels: Mapping[str, str] | None = None,
    since: int | None = None,
    text: str | None = None,
    section: str | None = None,
    session: str | None = None,
    masked: bool = False,
) -> list[FoundStep]:
    """The requests for which all that is asked holds, session by session, the one with the newest event last.

    Args:
        log: where to look.
        labels: that the session bears, all of them.
        since: the time from which on, in milliseconds since 1970.
        text: that stands somewhere in the request: tools, system text, contexts or history.
        section: the name of a section or context that says something in it.
        session: look in this one only: its id, the beginning of one, or ``last``.
        masked: look only through what may be shown, and tell only that.

    Raises:
        UnknownAddressError: there is no such session.
        SessionError: a session cannot be read.
    """
    hits: list[FoundStep] = []
    for info in await log.sessions() if session is None else [await _info(log, session)]:
        name, borne = info.id, (await log.start_of(info.id)).labels
        if any(borne.get(label) != value for label, value in (labels or {}).items()):
            continue
        if since is not None and await _newest(log, info) < since:
            continue
        search = _Search(text, section, masked=masked)
        walk = await subjects(log, name)
        while (request := await walk.request()) is not None:
            if (since is not None and request.time < since) or not search.may_hold(request):
                continue
            found = await search.find_in(request)
            if found is not None:
                hits.append(FoundStep(request.location, request.time, borne, found))
    return hits


async def _info(log: Log, session: str) -> SessionInfo:
    name = (await log.reader(session)).id
    return next(each for each in await log.sessions() if each.id == name)


async def _newest(log: Log, info: SessionInfo) -> int:
    """When the last event of a session was logged."""
    events = [logged async for logged in await log.events(info.id, info.events - 1, if_erased="mark")]
    return events[-1].time if events else info.created


async def first_seen(log: Log, text: str, *, section: str | None = None, masked: bool = False) -> FirstSeen | None:
    """The request in a log in which a text stood first.

    Args:
        log: where to look; all of its sessions are.
        text: what to look for, to the letter.
        section: look only in what this section or context says.
        masked: look only through what may be shown, and tell only that.

    Returns:
        None if no request has it. Of a request that forks share, the session that made it is told. Sessions that
        cannot be read are passed over and named.
    """
    first: FirstSeen | None = None
    unread: list[str] = []
    for each in sorted(await log.sessions(), key=lambda info: (info.created, info.parent is not None)):
        try:
            seen = await _first_in(log, each.id, _Search(text, section, masked=masked), first)
        except (DamagedLogError, NewerLogError):
            unread.append(each.id)
        else:
            first = seen or first
    return None if first is None else replace(first, unread=tuple(unread))


async def _first_in(log: Log, session: str, search: _Search, known: FirstSeen | None) -> FirstSeen | None:
    """The first request of a session in which a text stands; None if there is none before the one that is known."""
    walk = await subjects(log, session)
    while (request := await walk.request()) is not None:
        if known is not None and request.time >= known.time:
            break  # what follows in this session is later still
        occurrence = search.first(await request.subject()) if search.may_hold(request) else None
        if occurrence is not None:
            return FirstSeen(request.location, request.time, occurrence)
    return None


class _Search:
    """Looks for a text in the requests of one session, each of which holds most of the one before.

    What was looked through already is not looked through again, so that a session costs what is new in each request.
    """

    def __init__(self, text: str | None, section: str | None, *, masked: bool) -> None:
        self._text, self._section = text, section
        self._masker = Masker() if masked else None
        self._head: tuple[object, object, bool] = (None, None, False)  # header, keys of its tools; whether it is there
        self._names: tuple[object, bool] = (None, False)  # what names depend on, and whether the section is one
        self._messages: tuple[RequestMessage, ...] = ()  # of the request before
        self._in_messages: list[bool] = [False]  # whether one of the first so many holds it

    async def find_in(self, request: Request) -> tuple[Occurrence, ...] | None:
        """The same as `find`, of a request that was not read yet; where names alone decide, few have to be."""
        if self._text is not None or request.trace is None:
            return self.find(await request.subject())
        if self._section is None:
            return ()
        asked = (request.trace.digest, request.header, request.held_parts)
        if self._names[0] != asked:
            self._names = asked, self.find(await request.subject()) is not None
        return () if self._names[1] else None

    def may_hold(self, request: Request) -> bool:
        """Whether a request is worth a closer look: whether it holds the text at all, whoever may see it."""
        text = self._text
        if text is None or (self._masker is not None and _is_sensitive(request)):
            return True
        if request.header is not self._head[0] or request.tool_extras is not self._head[1]:
            self._head = request.header, request.tool_extras, _is_in_header(request, text)
        kept = _same_beginning(self._messages, request.messages)
        self._messages = request.messages
        del self._in_messages[kept + 1 :]
        for message in request.messages[kept:]:
            self._in_messages.append(self._in_messages[-1] or any(text in part for part in texts_of(message)))
        return self._head[2] or self._in_messages[-1]

    def find(self, subject: Subject) -> tuple[Occurrence, ...] | None:
        """Where the text stands in a request that fits; None if it does not fit."""
        section = self._section
        if self._masker is not None:
            subject = self._masker(subject)
        if section is not None and all(part.name != section for part in (*subject.sections, *subject.contexts)):
            return None
        try:
            return () if self._text is None else find_text(subject, self._text)
        except TextNotFoundError:
            return None

    def first(self, subject: Subject) -> Occurrence | None:
        """The first place of the text, in the section that was asked for."""
        found, section = self.find(subject) or (), self._section
        return next((each for each in found if section is None or each.stretches[0].section == section), None)


def _is_in_header(request: Request, text: str) -> bool:
    header = request.header
    if header is None:
        return False
    if is_lossy(header):  # its placeholders are marked only when they are looked at
        return True
    pairs = [(tool, extras_at(request.tool_extras, at)) for at, tool in enumerate(header.tools)]
    return text in header.system or any(text in part for pair in pairs for part in texts_of_tool(*pair))


def _is_sensitive(request: Request) -> bool:
    return bool(request.header is not None and request.header.masks) or any(
        message.shown is not None for message in request.messages
    )


def _same_beginning(one: Sequence[RequestMessage], other: Sequence[RequestMessage]) -> int:
    """With how many messages two histories begin in common, if one is the beginning of the other; else 0."""
    size = min(len(one), len(other))
    return size if one[:size] == other[:size] else 0
