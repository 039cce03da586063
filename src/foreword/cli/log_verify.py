"""``foreword log verify``: hold a log against its chains."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from foreword.cli.logs import log_option
from foreword.cli.options import json_option, traceback_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.cli.table import Cell
    from foreword.cli.terminal import Row, Screen
    from foreword.session.log import Log
    from foreword.session.verify import SessionReport, Verification

__all__ = ["verify"]

_FINDINGS: Final = 1
_LONG: Final = 20_000  # events; verifying more takes a while


@click.command(short_help="See whether the log is what was logged.")
@click.argument("session", required=False)
@click.option("--head", metavar="DIGEST", help="A digest that foreword log head gave once: some event must have it.")
@log_option
@json_option
@traceback_option
def verify(*, session: str | None, head: str | None, store: str | None, as_json: bool) -> int:
    """Hold a log against its chains, or one SESSION of it: every event, every text, every reference.

    The first event or blob that is not what was logged is named, and the exit code is 1. Whoever can write the file can
    write a new chain as well; against that helps a digest that was kept elsewhere (--head).
    """
    from foreword.cli.logs import asked, check_session
    from foreword.cli.terminal import UNBOUNDED, Screen, warn, write_json, write_rows
    from foreword.session.store.sqlite import weakness

    if session is not None:
        check_session(session, "foreword log verify")
    if head is not None:
        _check_digest(head)

    async def ask(log: Log) -> Verification:
        return await _verified(log, session, head)

    found = asked(store, ask)
    if as_json:
        write_json(_document(found))
    else:
        screen = Screen.of_stdout(fallback=UNBOUNDED)
        write_rows(_rows(found, screen), screen)
    weak = weakness()
    if weak is not None:
        warn(weak)
    return 0 if found.intact else _FINDINGS


def _check_digest(typed: str) -> None:
    from foreword.cli.faults import Fault
    from foreword.errors import shown

    if re.fullmatch("[0-9a-f]{64}", typed) is None:
        way_out = "give the 64 hexadecimal digits that foreword log head gave"
        raise Fault(f'--head "{shown(typed)}" is no digest; {way_out}')


async def _verified(log: Log, session: str | None, head: str | None) -> Verification:
    from foreword.session.verify import verify

    if sys.stderr.isatty():
        events = sum(info.events for info in await log.sessions())
        if events > _LONG:
            sys.stderr.write(f"verifying {events:,} events …\n")
    return await verify(log, session, head=head)


def _rows(found: Verification, screen: Screen) -> Iterator[Row]:
    from foreword.cli.heading import count, heading
    from foreword.cli.table import Column, table
    from foreword.cli.terminal import Piece

    reports = found.sessions
    damaged = sum(1 for report in reports if not report.intact)
    gone = f", {found.erased:,} erased" if found.erased else ""
    state = f"{count(damaged, 'session')} damaged" if damaged else f"intact{gone}"
    events, blobs = sum(report.events for report in reports), sum(report.blobs for report in reports)
    facts = f"{count(len(reports), 'session')}, {count(events, 'event')}, {count(blobs, 'blob')}"
    yield from heading(f"Log {state}", facts, screen)
    if found.head is not None and not found.head_found:
        yield (Piece("no event has the digest of --head: ", "red"), Piece("the log was rewritten, or is another one"))
    columns = (
        Column("session"), Column("state", least=8), Column("events", least=6), Column("blobs", least=6),
        Column("head", least=64), Column("remark", least=24),
    )  # fmt: skip
    if reports:
        yield ()
        yield from table(columns, [_record(report, screen) for report in reports], screen)


def _record(report: SessionReport, screen: Screen) -> tuple[Cell, ...]:
    from foreword.cli.terminal import Piece

    remarks: list[Piece] = []
    if report.fault is not None:
        remarks.append(Piece(screen.name(str(report.fault)), "red"))
    if report.erased:
        remarks.append(Piece(f"{report.erased:,} erased on purpose"))
    if report.withheld:
        remarks.append(Piece(f"{report.withheld:,} never stored"))
    if report.head_at is not None:
        remarks.append(Piece(f"event {report.head_at} has the digest of --head"))
    return (
        (Piece(screen.name(report.id), "bold"),),
        (Piece("intact", "green") if report.intact else Piece("damaged", "red"),),
        (Piece(f"{report.events:,}"),),
        (Piece(f"{report.blobs:,}"),),
        (Piece(report.head, "dim"),) if report.intact else (),
        tuple(remarks),
    )


def _document(found: Verification) -> dict[str, Any]:
    return {
        "intact": found.intact,
        "erased": found.erased,
        "head": found.head,
        "head_found": None if found.head is None else found.head_found,
        "sessions": [
            {
                "session": report.id,
                "intact": report.intact,
                "events": report.events,
                "blobs": report.blobs,
                "erased": report.erased,
                "withheld": report.withheld,
                "head": report.head,
                "head_at": report.head_at,
                "fault": None
                if report.fault is None
                else {"event": report.fault.seq, "blob": report.fault.blob, "why": report.fault.why},
            }
            for report in found.sessions
        ],
    }
