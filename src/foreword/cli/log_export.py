"""``foreword log export``: a copy of a log, which may be in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from foreword.cli.logs import log_option
from foreword.cli.options import json_option, traceback_option

if TYPE_CHECKING:
    from foreword.session.log import Log

__all__ = ["export"]


@click.command(short_help="Copy the log to a new file.")
@click.argument("path")
@log_option
@json_option
@traceback_option
def export(*, path: str, store: str | None, as_json: bool) -> None:
    """Copy the log to a new file at PATH, as it is at one moment; whoever writes it goes on meanwhile.

    It is the way to move a log and to back it up: a file that is in use must not be copied. The copy is checked, and
    is opened with --log sqlite:PATH. What is erased later is still in it.
    """
    from foreword.cli.heading import count
    from foreword.cli.logs import asked
    from foreword.cli.terminal import write_json, write_text

    async def act(log: Log) -> tuple[int, int]:
        await log.export(path)
        infos = await log.sessions()
        return len(infos), sum(info.events for info in infos)

    sessions, events = asked(store, act)
    if as_json:
        write_json({"path": path, "sessions": sessions, "events": events})
    else:
        write_text(f"{count(sessions, 'session')} with {count(events, 'event')} copied to {path}")
