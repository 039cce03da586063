"""``foreword log find``: which requests bear a label, are not long ago, or hold a text or a section."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from foreword.cli.logs import log_option
from foreword.cli.options import json_option, reveal_option, traceback_option

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    from foreword.cli.table import Cell
    from foreword.cli.terminal import Row, Screen
    from foreword.errors import ForewordError
    from foreword.explain.finding import FoundStep
    from foreword.explain.provenance import Occurrence
    from foreword.session import Log

__all__ = ["find"]

_NOTHING = 1
_UNREAD = 2


@click.command("find", short_help="List the addresses of requests, by label, time, text or section.")
@click.option("--label", "labels", metavar="NAME=VALUE", multiple=True, help="Of sessions that bear it; repeatable.")
@click.option("--since", metavar="AGE|DATE", help="Not longer ago, as in 2h (m, h, d, w), or since 2026-11-30.")
@click.option("--text", metavar="TEXT", help="With this text, to the letter, in tools, prompt, contexts or history.")
@click.option("--section", metavar="NAME", help="In which this section or runtime context says something.")
@click.option("--session", metavar="SESSION", help="Of this session alone.")
@log_option
@json_option
@reveal_option
@traceback_option
def find(
    *,
    labels: tuple[str, ...],
    since: str | None,
    text: str | None,
    section: str | None,
    session: str | None,
    store: str | None,
    as_json: bool,
    reveal: bool,
) -> int:
    """List the addresses of logged requests for which all that is asked holds, session by session, the newest last.

    Every other command takes such an address: foreword explain, diff, log show, log rebuild. Without options every
    request is listed. The exit code is 0 if there is one, 1 if there is none, as grep's is; 2 if a session could not be
    read, which is told, and all others are looked through.

    What is sensitive is not looked through, unless --reveal is given.
    """
    from foreword.cli.criteria import age_or_date, label
    from foreword.cli.logs import asked, check_session
    from foreword.cli.terminal import UNBOUNDED, Screen, warn, write_json, write_rows
    from foreword.explain.finding import find_steps

    for option, value in (("--text", text), ("--section", section)):
        if value == "":
            raise click.UsageError(f"{option} is empty; say what to look for")
    if session is not None:
        check_session(session, "--session")
    borne = dict(map(label, labels))
    moment = None if since is None else _milliseconds(age_or_date(since, "--since"))

    async def look_in(log: Log, name: str) -> list[FoundStep]:
        return await find_steps(
            log, labels=borne, since=moment, text=text, section=section, session=name, masked=not reveal
        )

    if session is None:
        found, unread = asked(store, lambda log: _look_through(log, look_in))
    else:
        found, unread = asked(store, lambda log: look_in(log, session)), []
    if as_json:
        write_json({"found": [_document(each) for each in found], "unread": [str(each) for each in unread]})
    else:
        screen = Screen.of_stdout(fallback=UNBOUNDED)
        write_rows(_rows(found, screen, has_text=text is not None, reveal=reveal), screen)
        for fault in unread:
            warn(f"not looked through: {fault}")
    if borne:
        _tell_unstored(asked(store, lambda log: _without_labels(log, borne, session)))
    return _UNREAD if unread else 0 if found else _NOTHING


async def _look_through(
    log: Log, look_in: Callable[[Log, str], Awaitable[list[FoundStep]]]
) -> tuple[list[FoundStep], list[ForewordError]]:
    """What is found in all sessions, and the faults of those that cannot be read."""
    from foreword.errors import DamagedLogError, NewerLogError

    found: list[FoundStep] = []
    unread: list[ForewordError] = []
    for info in await log.sessions():
        try:
            found += await look_in(log, info.id)
        except (DamagedLogError, NewerLogError) as fault:
            unread.append(fault)
    return found, unread


async def _without_labels(log: Log, borne: Mapping[str, str], session: str | None) -> int:
    """Of how many sessions nobody can tell whether they bear the labels: they do by name, and a value is not stored."""
    from foreword.errors import DamagedLogError, NewerLogError
    from foreword.session.placeholders import ERASED, NOT_STORED

    unknown = 0
    for name in [info.id for info in await log.sessions()] if session is None else [session]:
        try:
            held = (await log.start_of(name)).labels
        except (DamagedLogError, NewerLogError):  # which is told already
            continue
        lost = {each for each in borne if held.get(each) in (ERASED, NOT_STORED)}
        unknown += bool(lost) and all(each in lost or held.get(each) == value for each, value in borne.items())
    return unknown


def _tell_unstored(sessions: int) -> None:
    from foreword.cli.heading import count
    from foreword.cli.terminal import warn

    if sessions:
        warn(f"{count(sessions, 'session')} may fit as well: the values of their labels are not stored, or were erased")


def _milliseconds(told: datetime | timedelta) -> int:
    """The moment that is meant, in milliseconds since 1970."""
    from datetime import UTC, datetime, timedelta

    moment = datetime.now(UTC) - told if isinstance(told, timedelta) else told
    return int(moment.timestamp() * 1000)


def _document(step: FoundStep) -> dict[str, Any]:
    from foreword.cli.times import iso

    return {**step.to_json(), "time": iso(step.time)}


# -- for reading -------------------------------------------------------------------------------------------------------


def _rows(found: Sequence[FoundStep], screen: Screen, *, has_text: bool, reveal: bool) -> Iterator[Row]:
    from foreword.cli.heading import count, heading
    from foreword.cli.table import Column, table

    if not found:
        why = "no request fits"
        if has_text:
            why += "; a text is matched to the letter, in what the log holds"
        if has_text and not reveal:
            why += "; what is sensitive was not looked through; --reveal looks there too"
        yield from heading("Nothing found", why, screen)
        return
    sessions = len({each.location.session for each in found})
    yield from heading("Found", f"{count(len(found), 'request')} of {count(sessions, 'session')}", screen)
    yield ()
    columns = (Column("address"), Column("sent", least=20), Column("labels"), Column("stands in", least=16))
    yield from table(columns, [_record(each, screen) for each in found], screen)


def _record(step: FoundStep, screen: Screen) -> tuple[Cell, ...]:
    from foreword.cli.terminal import Piece
    from foreword.cli.times import moment

    labels = tuple(Piece(screen.name(f"{name}={value}")) for name, value in step.labels.items())
    places = dict.fromkeys(map(_place, step.occurrences))
    return (
        (Piece(step.address, "bold"),),
        (Piece(moment(step.time)),),
        labels,
        tuple(Piece(screen.name(place)) for place in places),
    )


def _place(occurrence: Occurrence) -> str:
    """Where a text stands: whose section, tool or message it is."""
    from foreword.explain.provenance import EARLIER_CONTEXTS

    if occurrence.place == "tool":
        return f"tool {occurrence.name}"
    if occurrence.place == "message":
        number = (occurrence.message or 0) + 1
        if occurrence.name == EARLIER_CONTEXTS:
            return f"{EARLIER_CONTEXTS}, in message {number}"
        return f"message {number}, by {occurrence.name}"
    stretch = next((each for each in occurrence.stretches if each.section is not None), occurrence.stretches[0])
    kind = "section" if occurrence.place == "system" else "context"
    return f"{kind} {stretch.section}" if stretch.section is not None else "a frame of the assembler"
