"""Finding requests in a log: by label, time, text or section. Gives addresses, which every other question takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from foreword.errors import TextNotFoundError
from foreword.explain.provenance import find_text, texts_of
from foreword.explain.steps import subjects

if TYPE_CHECKING:
    from foreword.explain.provenance import Occurrence
    from foreword.explain.subject import Subject
    from foreword.jsonvalue import JsonValue
    from foreword.session import Location, Log

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
        }


async def find_steps(
    log: Log,
    *,
    labels: Mapping[str, str] | None = None,
    since: int | None = None,
    text: str | None = None,
    section: str | None = None,
    session: str | None = None,
) -> list[FoundStep]:
    """The requests for which all that is asked holds, session by session, the one with the newest event last.

    Args:
        log: where to look.
        labels: that the session bears, all of them.
        since: the time from which on, in milliseconds since 1970.
        text: that stands somewhere in the request: tools, system text, contexts or history.
        section: the name of a section or context that says something in it.
        session: look in this one only: its id, the beginning of one, or ``last``.

    Raises:
        UnknownAddressError: there is no such session.
        SessionError: a session cannot be read.
    """
    names = [each.id for each in await log.sessions()] if session is None else [(await log.reader(session)).id]
    hits: list[FoundStep] = []
    for name in names:
        borne: Mapping[str, str] = (await log.view(name)).labels if labels else {}
        if any(borne.get(label) != value for label, value in (labels or {}).items()):
            continue
        search = _Search(text, section)
        async for subject in await subjects(log, name):
            if since is not None and (subject.time or 0) < since:
                continue
            found = search.find(subject)
            if found is not None and subject.location is not None:
                hits.append(FoundStep(subject.location, subject.time or 0, borne, found))
    return hits


async def first_seen(log: Log, text: str, *, section: str | None = None) -> FirstSeen | None:
    """The request in a log in which a text stood first.

    Args:
        log: where to look; all of its sessions are.
        text: what to look for, to the letter.
        section: look only in what this section or context says.

    Returns:
        None if no request has it.

    Raises:
        SessionError: a session cannot be read.
    """
    first: FirstSeen | None = None
    for each in await log.sessions():
        search = _Search(text, section)
        async for subject in await subjects(log, each.id):
            if first is not None and (subject.time or 0) >= first.time:
                break  # what follows in this session is later still
            occurrence = search.first(subject)
            if occurrence is not None and subject.location is not None:
                first = FirstSeen(subject.location, subject.time or 0, occurrence)
                break
    return first


class _Search:
    """Looks for a text in the requests of one session, each of which holds most of the one before.

    What was looked through already is not looked through again, so that a session costs what is new in each request.
    """

    def __init__(self, text: str | None, section: str | None) -> None:
        self._text, self._section = text, section
        self._last: Subject | None = None
        self._in_head = False
        self._in_messages: list[bool] = [False]  # whether one of the first so many holds it

    def find(self, subject: Subject) -> tuple[Occurrence, ...] | None:
        """Where the text stands in a request that fits; None if it does not fit."""
        section = self._section
        if section is not None and all(part.name != section for part in (*subject.sections, *subject.contexts)):
            return None
        if self._text is None:
            return ()
        return find_text(subject, self._text) if self._holds(subject, self._text) else None

    def first(self, subject: Subject) -> Occurrence | None:
        """The first place of the text, in the section that was asked for."""
        found, section = self.find(subject) or (), self._section
        return next((each for each in found if section is None or each.stretches[0].section == section), None)

    def _holds(self, subject: Subject, text: str) -> bool:
        last, self._last = self._last, subject
        if last is None or not _has_head_of(last, subject):
            self._in_head = _is_in(replace(subject, messages=()), text)
        kept = 0 if last is None else _same_beginning(last, subject)
        del self._in_messages[kept + 1 :]
        for message in subject.messages[kept:]:
            self._in_messages.append(self._in_messages[-1] or any(text in part for part in texts_of(message)))
        return self._in_head or self._in_messages[-1]


def _has_head_of(one: Subject, other: Subject) -> bool:
    """Whether all but the messages is the same."""
    return (one.spans, one.snapshot_spans, one.tools) == (other.spans, other.snapshot_spans, other.tools)


def _same_beginning(one: Subject, other: Subject) -> int:
    """With how many messages two histories begin in common, if one is the beginning of the other; else 0."""
    size = min(len(one.messages), len(other.messages))
    return size if one.messages[:size] == other.messages[:size] else 0


def _is_in(subject: Subject, text: str) -> bool:
    try:
        return bool(find_text(subject, text))
    except TextNotFoundError:
        return False
