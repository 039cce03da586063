"""The command ``foreword``: its commands, and the border at which every error becomes one paragraph and an exit code.

Exit codes: 0 good, 1 findings (of commands that look for any), 2 usage, configuration or assembly errors, 130 Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import traceback
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, Final

import click

from foreword.cli.cache import cache
from foreword.cli.catalog import catalog
from foreword.cli.config import config
from foreword.cli.demo import demo
from foreword.cli.diff import diff
from foreword.cli.explain import explain
from foreword.cli.faults import Fault, paragraph
from foreword.cli.init import init
from foreword.cli.lint import lint
from foreword.cli.log import log
from foreword.cli.options import TRACEBACK
from foreword.cli.plugins import plugins
from foreword.cli.run import run
from foreword.cli.schema import schema
from foreword.cli.show import show
from foreword.cli.terminal import complain, say
from foreword.cli.tokens import tokens
from foreword.cli.trust import trust
from foreword.errors import ForewordError

if TYPE_CHECKING:
    from foreword.cli.hiding import Hiding

__all__ = ["main"]

_ERROR: Final = 2
_INTERRUPTED: Final = 130  # what shells say of a process that Ctrl-C ended


class Commands(click.Group):
    """A group of commands whose errors are told in our way, and whose help lists them by what they are for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which they are listed."""
        return [command.name or "" for commands in _COMMANDS.values() for command in commands]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under what they are for."""
        width = max(map(len, self.list_commands(ctx)))
        for purpose, commands in _COMMANDS.items():
            with formatter.section(purpose):
                formatter.write_dl(
                    [((command.name or "").ljust(width), command.get_short_help_str(100)) for command in commands]
                )

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run a command line and leave with its exit code, as click's own does."""
        if getattr(sys, "stdout", None) is None:  # as shells start a command whose stdout they close: foreword … >&-
            complain("there is nowhere to write to: stdout is closed")
            sys.exit(_ERROR)
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # a name that the encoding lacks must not end a command
        options["standalone_mode"] = False
        try:
            code = super().main(*arguments, **options)
        except click.ClickException as fault:
            complain(_usage(fault))
            code = fault.exit_code
        except click.Abort:
            code = _INTERRUPTED
        sys.exit(code or 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for, and see that what it wrote arrives."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
        except (click.UsageError, click.Abort, click.exceptions.Exit):
            raise  # click's own affairs
        except click.ClickException as fault:
            hide = fault.hide if isinstance(fault, Fault) else None
            return _fail(ctx, fault.__cause__ or fault, fault.format_message(), hide)
        except ForewordError as error:
            return _fail(ctx, error, paragraph(error))
        except BrokenPipeError:  # whoever reads us has seen enough
            _forget_stdout()
            return 0
        except OSError as error:
            _forget_stdout()
            return _fail(ctx, error, f"the output cannot be written: {error.strerror or error}")
        except Exception as error:
            way_out = "this is a fault of foreword: please report it, with what --traceback shows"
            return _fail(ctx, error, f"{type(error).__name__}: {error}; {way_out}")
        return code


def _tell_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version  # slow: only when asked

        try:
            click.echo(f"foreword {version('foreword')}")
        except PackageNotFoundError:
            click.echo("foreword, not installed")
        context.exit()


@click.group(cls=Commands, invoke_without_command=True)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_tell_version, help="Tell the version."
)
@click.pass_context
def main(context: click.Context) -> None:
    """Assemble system prompts, and tell who put what there."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


_COMMANDS: Final[dict[str, list[click.Command]]] = {
    "Look at a prompt": [show, explain, diff, tokens, cache, lint],
    "Run an agent": [run, log, demo],
    "Look at a deployment": [config, plugins],
    "Set up a deployment": [init, trust, schema],
    "Write plugins": [catalog],
}
"""All commands, by what they are for, in the order of the help."""

for _commands in _COMMANDS.values():
    for _command in _commands:
        main.add_command(_command)


def _fail(context: click.Context, fault: BaseException, message: str, hide: Hiding | None = None) -> int:
    if context.meta.get(TRACEBACK):
        told = "".join(traceback.format_exception(fault))
        say(told if hide is None else hide(told))
    complain(message)
    return _ERROR


def _usage(fault: click.ClickException) -> str:
    message = fault.format_message()
    where = fault.ctx.command_path if isinstance(fault, click.UsageError) and fault.ctx is not None else "foreword"
    return f"{message[:1].lower()}{message[1:].rstrip('.')}; see {where} --help"


def _forget_stdout() -> None:
    """Send what is still buffered nowhere, so that the interpreter does not stumble over it when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
