"""``foreword explain``: who wrote a text or a line of a prompt, or why something is not in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from foreword.cli.logs import log_option
from foreword.cli.options import json_option, reveal_option, traceback_option

if TYPE_CHECKING:
    from foreword.cli.explain_subject import Looked, Wanted

__all__ = ["explain"]


@click.command(short_help="Say who wrote a text or a line of a prompt, or why something is missing.")
@click.argument("target")
@click.argument("text", required=False)
@click.option("--line", type=int, metavar="N", help="Who wrote line N of the system text; the first is 1.")
@click.option("--contexts", is_flag=True, help="With --line: of the runtime-context snapshot.")
@click.option("--missing", metavar="NAME", help="Why no section, context, tool or variable of that name is there.")
@click.option(
    "--kind", type=click.Choice(["section", "context", "tool", "variable"]), help="With --missing: only of this kind."
)
@click.option("--agent", metavar="NAME", help="The prompt of this agent of the deployment.")
@click.option("--scope", metavar="NAME", help="The prompt of this scope; 'global' is that of no scope.")
@log_option
@json_option
@reveal_option
@traceback_option
def explain(
    *,
    target: str,
    text: str | None,
    line: int | None,
    contexts: bool,
    missing: str | None,
    kind: str | None,
    agent: str | None,
    scope: str | None,
    store: str | None,
    as_json: bool,
    reveal: bool,
) -> int:
    """Say who put TEXT into the prompt of TARGET: plugin, version, section, variable, file and line, scope, listener.

    TEXT is looked for to the letter in tools, system text, runtime contexts and history; each place is told. --line
    asks about a line instead, --missing why a name is not there.

    TARGET is the address of a logged step (SESSION, SESSION@STEP, SESSION@TURN.STEP, each with /ATTEMPT; last is the
    newest session), a deployment file (.yaml, .yml, .toml), or module:name or path/file.py:name of a SystemPrompt.

    Sessions are in the store of --log, else FOREWORD_LOG, else that of the deployment here, else sqlite:foreword.db.
    Of a logged text it is also told when it was first seen in that store, and in which version.
    """
    from foreword.cli.explain_subject import Wanted, looked_at

    asked = [each for each in (text, line, missing) if each is not None]
    if len(asked) != 1:
        raise click.UsageError("say what to explain: a TEXT, or --line N, or --missing NAME; one of the three")
    if missing == "":
        raise click.UsageError("--missing is empty; say which name to look for")
    if kind is not None and missing is None:
        raise click.UsageError("--kind goes with --missing")
    if contexts and line is None:
        raise click.UsageError("--contexts goes with --line")
    wanted = Wanted(target, agent, scope, store, reveal)
    with looked_at(wanted) as looked:
        if missing is not None:
            _tell_missing(looked, missing, kind, as_json=as_json)
        else:
            _tell_origin(looked, wanted, text, line, contexts=contexts, as_json=as_json)
    return 0


def _tell_origin(
    looked: Looked, wanted: Wanted, text: str | None, line: int | None, *, contexts: bool, as_json: bool
) -> None:
    from foreword.cli.explain_list import origin_document, origin_rows
    from foreword.cli.explain_subject import document
    from foreword.cli.logs import asked
    from foreword.cli.terminal import Screen, write_json, write_rows
    from foreword.cli.typed import is_address
    from foreword.explain.finding import first_seen
    from foreword.explain.provenance import explain_line, find_text

    subject = looked.shown
    if text is not None:
        found = find_text(subject, text)
    else:
        found = (explain_line(subject, line or 0, "contexts" if contexts else "system"),)
    told = found[0].text
    first = None
    if is_address(wanted.typed) and told.strip():
        first = asked(wanted.log, lambda log: first_seen(log, told, masked=not wanted.reveal))
    if as_json:
        write_json(document(origin_document(subject, found, first), looked.hide))
    else:
        screen = Screen.of_stdout(looked.hide.name)
        write_rows(origin_rows(subject, found, first, screen), screen)


def _tell_missing(looked: Looked, name: str, kind: str | None, *, as_json: bool) -> None:
    from typing import Any, cast

    from foreword.cli.explain_list import missing_document, missing_rows, there_rows
    from foreword.cli.explain_subject import document
    from foreword.cli.terminal import Screen, write_json, write_rows
    from foreword.explain.absence import why_missing

    missing = why_missing(looked.shown, name, cast("Any", kind))
    if as_json:
        write_json(document(missing_document(looked.shown, name, missing), looked.hide))
        return
    screen = Screen.of_stdout(looked.hide.name)
    rows = there_rows(looked.shown, name, screen) if missing is None else missing_rows(looked, missing, screen)
    write_rows(rows, screen)
