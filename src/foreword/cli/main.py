"""The command ``foreword``: its commands, and the border at which every error becomes one paragraph and an exit code.

Exit codes: 0 good, 1 findings (of commands that look for any), 2 usage, configuration or assembly errors, 130 Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import traceback
from io import TextIOWrapper
from typing import Any, Final

import click

from foreword.cli.options import TRACEBACK
from foreword.cli.show import show
from foreword.cli.terminal import complain, escaped

__all__ = ["main"]

_ERROR: Final = 2
_INTERRUPTED: Final = 130  # what shells say of a process that Ctrl-C ended


class Commands(click.Group):
    """A group of commands whose errors are told in our way."""

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
            return _fail(ctx, fault.__cause__ or fault, fault.format_message())
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


main.add_command(show)


def _fail(context: click.Context, fault: BaseException, message: str) -> int:
    if context.meta.get(TRACEBACK):
        sys.stderr.write(escaped("".join(traceback.format_exception(fault))))
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
