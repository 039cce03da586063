"""``foreword log show``: what happened in a session, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from foreword.cli.logs import log_option
from foreword.cli.options import json_option, reveal_option, traceback_option

if TYPE_CHECKING:
    from foreword.cli.log_story import Wanted
    from foreword.session.log import Log

__all__ = ["show"]


@click.command(short_help="Tell what happened in a session.")
@click.argument("address", default="last", required=False)
@click.option("--full", is_flag=True, help="Every text to its end; of one step that is so anyway.")
@log_option
@json_option
@reveal_option
@traceback_option
def show(*, address: str, full: bool, store: str | None, as_json: bool, reveal: bool) -> None:
    """Tell what happened in the session of an ADDRESS, or in one step or attempt of it.

    Turns, steps and requests with the digest of their system text; what changed of the prompt, the tools and the model,
    and whose change it was; messages, tool calls and what they gave; how each request ended, and what it cost.
    """
    from foreword.cli.logs import asked
    from foreword.cli.terminal import Screen, write_json, write_rows

    if as_json:

        async def told(log: Log) -> dict[str, Any]:
            return await _document(log, await _wanted(log, address), reveal=reveal)

        write_json(asked(store, told))
        return
    screen = Screen.of_stdout()

    async def tell(log: Log) -> None:
        from foreword.cli.log_rows import Teller
        from foreword.cli.log_story import story

        wanted = await _wanted(log, address)
        teller = Teller(screen, is_full=full or wanted.number is not None)
        async for told in story(log, wanted, reveal=reveal):
            write_rows(teller.rows(told), screen)
        write_rows(teller.end(), screen)

    asked(store, tell)


async def _wanted(log: Log, address: str) -> Wanted:
    from foreword.cli.log_story import Wanted
    from foreword.session.address import parse_address

    told = parse_address(address)
    if str(told) == told.session:
        return Wanted((await log.reader(told.session, address)).id)
    location = await log.locate(address)
    return Wanted(location.session, location.number, told.attempt)


async def _document(log: Log, wanted: Wanted, *, reveal: bool) -> dict[str, Any]:
    from foreword.cli.log_events import event_document
    from foreword.cli.log_story import story

    info = next(each for each in await log.sessions() if each.id == wanted.session)
    events: list[dict[str, Any]] = []
    async for told in story(log, wanted, reveal=reveal):
        document = event_document(told.logged, reveal=reveal)
        if told.changes is not None:
            document["changes"] = [change.to_json() for change in told.changes.changes]
        events.append({**document, "step_of_session": told.number or None})
    return {"session": info.id, "head": info.head, "events": events}
