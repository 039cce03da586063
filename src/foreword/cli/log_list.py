"""``foreword log list``: which sessions a log has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from foreword.cli.logs import log_option
from foreword.cli.options import json_option, traceback_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foreword.cli.table import Cell
    from foreword.cli.terminal import Screen
    from foreword.session.log import Log, SessionInfo

__all__ = ["list_sessions"]


@dataclass(frozen=True, slots=True)
class _Listed:
    """A session as it is listed."""

    info: SessionInfo
    newest: int | None  # when its last event was logged, in milliseconds since 1970
    labels: Mapping[str, str]
    fault: str | None = None  # why it cannot be read, if it cannot


@click.command("list", short_help="List the sessions, the newest last.")
@log_option
@json_option
@traceback_option
def list_sessions(*, store: str | None, as_json: bool) -> None:
    """List the sessions of a log; the one with the newest event, which last stands for, comes last."""
    from foreword.cli.logs import asked
    from foreword.cli.terminal import UNBOUNDED, Screen, write_json, write_rows

    sessions = asked(store, _sessions)
    if as_json:
        write_json({"sessions": [_document(each) for each in sessions]})
        return
    from foreword.cli.heading import count, heading
    from foreword.cli.table import Column, table

    screen = Screen.of_stdout(fallback=UNBOUNDED)
    events = sum(each.info.events for each in sessions)
    write_rows(heading("Sessions", f"{len(sessions):,}, with {count(events, 'event')}", screen), screen)
    names = ("session", "began", "newest event", "events", "labels", "forked from", "remark")
    columns = [Column(name, least=20 if name in ("labels", "remark") else 10) for name in names]
    if sessions:
        write_rows([(), *table(columns, [_record(each, screen) for each in sessions], screen)], screen)


async def _sessions(log: Log) -> list[_Listed]:
    return [await _looked_at(log, info) for info in await log.sessions()]


async def _looked_at(log: Log, info: SessionInfo) -> _Listed:
    """A session as it is listed; one that is damaged hides no other, and not itself."""
    from foreword.errors import DamagedLogError, NewerLogError

    try:
        return await _listed(log, info)
    except DamagedLogError as fault:
        return _Listed(info, None, {}, f"damaged at event {fault.seq}: {fault.why}")
    except NewerLogError as fault:
        return _Listed(info, None, {}, str(fault))


async def _listed(log: Log, info: SessionInfo) -> _Listed:
    newest = None
    async for logged in await log.events(info.id, info.events - 1, if_erased="mark"):
        newest = logged.time
    return _Listed(info, newest, (await log.start_of(info.id)).labels)


def _record(each: _Listed, screen: Screen) -> tuple[Cell, ...]:
    from foreword.cli.terminal import Piece
    from foreword.cli.times import moment

    info = each.info
    labels = tuple(Piece(screen.name(f"{name}={value}")) for name, value in each.labels.items())
    parent = "" if info.parent is None else f"{info.parent.session}, {info.parent.events:,} events"
    return (
        (Piece(info.id, "bold"),),
        (Piece(moment(info.created)),),
        () if each.newest is None else (Piece(moment(each.newest)),),
        (Piece(f"{info.events:,}"),),
        labels,
        (Piece(parent),) if parent else (),
        () if each.fault is None else (Piece(screen.told(each.fault), "red"),),
    )


def _document(each: _Listed) -> dict[str, Any]:
    from foreword.cli.times import iso

    info = each.info
    return {
        "session": info.id,
        "began": iso(info.created),
        "newest_event": None if each.newest is None else iso(each.newest),
        "events": info.events,
        "head": info.head,
        "labels": dict(each.labels),
        "fault": each.fault,
        "parent": None if info.parent is None else {"session": info.parent.session, "events": info.parent.events},
    }
