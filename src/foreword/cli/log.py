"""``foreword log``: the commands that look at a log of sessions, or change it."""

from __future__ import annotations

from typing import Final

import click

from foreword.cli.log_erase import erase
from foreword.cli.log_export import export
from foreword.cli.log_find import find
from foreword.cli.log_head import head
from foreword.cli.log_list import list_sessions
from foreword.cli.log_rebuild import rebuild
from foreword.cli.log_show import show
from foreword.cli.log_verify import verify

__all__ = ["log"]

_COMMANDS: Final[tuple[click.Command, ...]] = (list_sessions, find, show, rebuild, verify, head, erase, export)


class _InOrder(click.Group):
    """A group that lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=_InOrder, invoke_without_command=True, short_help="List, find, show and rebuild what was logged.")
@click.pass_context
def log(context: click.Context) -> None:
    """Look at a log: its sessions, requests that hold a text, what happened, what a model got, byte for byte.

    An ADDRESS names a session or a request in it: SESSION, SESSION@N for its step N, SESSION@TURN.STEP, and /ATTEMPT
    behind either. A session's id may be cut to what is unique; last is the session with the newest event.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _command in _COMMANDS:
    log.add_command(_command)
