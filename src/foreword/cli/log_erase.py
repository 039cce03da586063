"""``foreword log erase``: take content out of a log for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from foreword.cli.logs import log_option
from foreword.cli.options import json_option, traceback_option

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from foreword.cli.table import Cell
    from foreword.cli.terminal import Row, Screen
    from foreword.session.erasure import ErasureReport, SharedContent
    from foreword.session.log import Log

__all__ = ["erase"]


@click.command(short_help="Take content out of the log for good.")
@click.argument("address", required=False)
@click.option("--session", metavar="SESSION", help="All that a session holds.")
@click.option("--label", "labels", metavar="NAME=VALUE", multiple=True, help="All that sessions hold that bear it.")
@click.option("--before", metavar="AGE|DATE", help="What is older, as in 30d (m, h, d, w) or 2026-11-30.")
@click.option("--match", metavar="TEXT", help="Every content that holds this text.")
@click.option("--wait", is_flag=True, help="Wait for sessions that others are writing.")
@click.option("--dry-run", is_flag=True, help="Change nothing; tell what would go.")
@log_option
@json_option
@traceback_option
def erase(
    *,
    address: str | None,
    session: str | None,
    labels: tuple[str, ...],
    before: str | None,
    match: str | None,
    wait: bool,
    dry_run: bool,
    store: str | None,
    as_json: bool,
) -> None:
    """Take content out of the log: of an ADDRESS (a step, or an attempt), or as the options say; one of them.

    Messages, arguments, answers, errors and labels go, wherever a fork holds them too; a text that sessions share goes
    only if nothing else needs it. With --match goes whatever holds the text. Events stay, each session that lost
    something says so, and the log verifies. It cannot be undone, and does not reach backups, exports and copies.
    """
    from foreword.cli.criteria import age_or_date, label
    from foreword.cli.logs import changed
    from foreword.cli.terminal import Screen, write_json, write_rows

    chosen = [each for each in (address, session, labels or None, before, match) if each is not None]
    if len(chosen) != 1 or "" in chosen:
        raise click.UsageError("say what to erase: an ADDRESS, --session, --label, --before or --match, one of them")
    when = None if before is None else age_or_date(before, "--before")
    borne = dict(map(label, labels)) or None

    async def act(log: Log) -> ErasureReport:
        return await log.erase(
            address, session=session, label=borne, before=when, match=match, wait=wait, dry_run=dry_run
        )

    report = changed(store, act)
    if as_json:
        write_json(_document(report, dry_run=dry_run))
    else:
        screen = Screen.of_stdout()
        write_rows(_rows(report, screen, dry_run=dry_run), screen)


# -- for reading -------------------------------------------------------------------------------------------------------


def _rows(report: ErasureReport, screen: Screen, *, dry_run: bool) -> Iterator[Row]:
    from foreword.cli.heading import count, heading
    from foreword.cli.table import Column, table
    from foreword.cli.terminal import Piece
    from foreword.cli.wrapping import wrapped

    title = "Would be erased" if dry_run else "Erased"
    facts = f"{count(report.blobs, 'content')} of {count(len(report.sessions), 'session')}"
    yield from heading(title, facts, screen)
    if report.sessions:
        columns = (Column("session"), Column("contents", least=8), Column("told by event", least=6))
        records: list[tuple[Cell, ...]] = [
            (
                (Piece(screen.name(each.session), "bold"),),
                (Piece(f"{each.blobs:,}"),),
                () if each.seq is None else (Piece(f"{each.seq:,}"),),
            )
            for each in report.sessions
        ]
        yield ()
        yield from table(columns, records, screen)
    yield from _shared("Guessable", "their digests stay: a short text can be guessed", report.guessable, screen)
    yield from _shared("Kept", "something else needs them", report.kept, screen)
    yield ()
    yield from heading("Not reached", "look after these yourself", screen)
    for told in report.not_reached:
        for at, row in enumerate(wrapped(screen.name(told), max(screen.width - 4, 8))):
            yield (Piece(f"    {row}" if at else f"  {row}"),)


def _shared(title: str, facts: str, contents: Sequence[SharedContent], screen: Screen) -> Iterator[Row]:
    from foreword.cli.heading import heading
    from foreword.cli.table import Column, table
    from foreword.cli.terminal import Piece

    if not contents:
        return
    columns = (Column("what", least=8), Column("digest", least=64), Column("of"))
    records: list[tuple[Cell, ...]] = [
        (
            (Piece(each.what),),
            (Piece(each.digest, "dim"),),
            (Piece(screen.name(", ".join(each.sessions))),),
        )
        for each in contents
    ]
    yield ()
    yield from heading(title, f"{len(contents):,} shared texts; {facts}", screen)
    yield from table(columns, records, screen)


def _document(report: ErasureReport, *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "erased": report.blobs,
        "complete": report.complete,
        "sessions": [{"session": each.session, "erased": each.blobs, "event": each.seq} for each in report.sessions],
        "guessable": [_content(each) for each in report.guessable],
        "kept": [_content(each) for each in report.kept],
        "remains": [{"session": each.session, "event": each.seq} for each in report.remains],
        "not_reached": list(report.not_reached),
    }


def _content(content: SharedContent) -> dict[str, Any]:
    return {"digest": content.digest, "what": content.what, "sessions": list(content.sessions)}
