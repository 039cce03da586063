"""``foreword diff``: what differs between two prompts, whose it is, and what it does to the provider's cache."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from foreword.cli.explain_log import log_option
from foreword.cli.options import json_option, traceback_option

if TYPE_CHECKING:
    from collections.abc import Generator

    from foreword.cli.explain_subject import Looked

__all__ = ["diff"]

_FINDINGS = 1


@click.command(short_help="Say what differs between two prompts, and whose it is.")
@click.argument("old")
@click.argument("new", required=False)
@click.option("--against", metavar="REV", help="Hold OLD as it is now against how it was at this revision of git.")
@click.option(
    "--agent", "agents", metavar="NAME", multiple=True, help="Of deployments this agent; twice: of OLD and of NEW."
)
@click.option("--scope", "scopes", metavar="NAME", multiple=True, help="The same for scopes.")
@click.option("--full", is_flag=True, help="Whole texts of what came and went, and all around what changed.")
@click.option("--check", is_flag=True, help="Exit with 1 if anything differs.")
@click.option("--github", is_flag=True, help="As Markdown, for the comment of a pull request.")
@log_option
@json_option
@traceback_option
def diff(
    *,
    old: str,
    new: str | None,
    against: str | None,
    agents: tuple[str, ...],
    scopes: tuple[str, ...],
    full: bool,
    check: bool,
    github: bool,
    log: str | None,
    as_json: bool,
) -> int:
    """Say what differs between two prompts: tools, sections, variables, contexts, model, history; each with its owner.

    OLD and NEW are addresses of logged steps, deployment files (.yaml, .yml, .toml), or module:name of SystemPrompts,
    in any combination. With one address alone its step is held against the one before. With one deployment and --agent
    twice, two of its agents are.

    With --against REV the deployment file (or path/file.py:name) is held against itself at that revision, which is
    checked out into a temporary folder and rendered in a fresh process. That runs the code of REV.

    A section that stands elsewhere is moved, not removed and added. At the end stands how much of the beginning a
    provider could reuse, and what broke the rest.
    """
    from foreword.cli.diff_list import diff_document, diff_rows
    from foreword.cli.diff_markdown import diff_markdown
    from foreword.cli.explain_subject import document
    from foreword.cli.terminal import Screen, write_json, write_rows, write_text
    from foreword.explain.cache import compare
    from foreword.explain.diff import diff_of
    from foreword.explain.tokens import tokens_of

    if github and as_json:
        raise click.UsageError("--github and --json are two forms of the same; drop one of the two")
    with _pair_of(old, new, against, agents, scopes, log) as (before, after):
        told = diff_of(before.subject, after.subject)
        effect = compare(before.subject, after.subject)
        if as_json:
            write_json(document(document(diff_document(told, effect), before.hide), after.hide))
        elif github:
            costs = tokens_of(before.subject), tokens_of(after.subject)
            write_text(diff_markdown(told, effect, costs))
        else:
            screen = Screen.of_stdout(lambda text: after.hide.name(before.hide.name(text)))
            write_rows(diff_rows(told, effect, screen, full=full), screen)
    return _FINDINGS if check and not told.is_empty else 0


@contextmanager
def _pair_of(
    old: str,
    new: str | None,
    against: str | None,
    agents: tuple[str, ...],
    scopes: tuple[str, ...],
    log: str | None,
) -> Generator[tuple[Looked, Looked]]:
    from foreword.cli.diff_against import at_revision
    from foreword.cli.explain_pair import two
    from foreword.cli.explain_subject import Wanted, is_address, looked_at

    if against is None:
        with two(old, new, agents, scopes, log) as pair:
            yield pair
        return
    if new is not None or is_address(old) or len(agents) > 1 or len(scopes) > 1:
        raise click.UsageError("with --against give one deployment file or path/file.py:name, and --agent once at most")
    wanted = Wanted(old, next(iter(agents), None), next(iter(scopes), None))
    with at_revision(against, wanted) as before, looked_at(wanted) as after:
        yield before, after
