"""``foreword log head``: the digest that proves later that a session was not rewritten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from foreword.cli.logs import log_option
from foreword.cli.options import json_option, traceback_option

if TYPE_CHECKING:
    from foreword.session.log import Log

__all__ = ["head"]


@dataclass(frozen=True, slots=True)
class _Head:
    """A session up to some event, and that event's digest."""

    session: str
    events: int
    digest: str  # in hex


@click.command(short_help="Print the digest of a session's last event.")
@click.argument("address", default="last", required=False)
@log_option
@json_option
@traceback_option
def head(*, address: str, store: str | None, as_json: bool) -> None:
    """Print the digest of a session's last event, or of the event by which the request of an ADDRESS was logged.

    It stands for everything up to there. Keep it where nobody can change it together with the log; foreword log verify
    --head DIGEST then tells whether the log still holds what it held.
    """
    from foreword.cli.logs import asked
    from foreword.cli.terminal import warn, write_json, write_text
    from foreword.session.store.sqlite import weakness

    async def ask(log: Log) -> _Head:
        return await _head(log, address)

    found = asked(store, ask)
    if as_json:
        write_json({"session": found.session, "events": found.events, "head": found.digest})
    else:
        write_text(found.digest)
    weak = weakness()
    if weak is not None:
        warn(weak)


async def _head(log: Log, address: str) -> _Head:
    from foreword.session.address import parse_address

    told = parse_address(address)
    reader = await log.reader(told.session, address)
    if str(told) == told.session:
        return _Head(reader.id, reader.row.count, reader.row.head.hex())
    location = await log.locate(address)
    (event,) = await log.store.events(location.session, location.seq, location.seq + 1)
    return _Head(location.session, event.seq + 1, event.digest.hex())
