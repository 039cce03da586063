"""``foreword config``: every value of a deployment that is in force, and where it came from. Runs none of its code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from foreword.cli.options import json_option, traceback_option

if TYPE_CHECKING:
    from pathlib import Path

    from foreword.cli.table import Cell
    from foreword.cli.terminal import Screen
    from foreword.compose.deployment import Setting
    from foreword.errors import Fault

__all__ = ["config"]

_FINDINGS = 1


@click.command(short_help="Print every value in force, and where it came from.")
@click.argument("file", required=False)
@json_option
@traceback_option
def config(*, file: str | None, as_json: bool) -> int:
    """Print every value of a deployment that is in force, and where it came from.

    FILE is a deployment file (.yaml, .yml, .toml); without one it is foreword.yaml, .yml or .toml of the current
    folder, which need not be trusted: the file is read and checked, nothing of it is imported or run, and of the files
    that it names no text is shown.

    Of an expression like ${env:NAME} the name is shown, and whether the variable is set, never its value. One that is
    not set and has no default is a finding: the exit code is 1 then.
    """
    from foreword.cli.deployments import EverythingSet, file_to_read
    from foreword.cli.faults import in_one_line
    from foreword.cli.terminal import UNBOUNDED, Screen, warn, write_json, write_rows
    from foreword.compose.reading import read_deployment

    path = file_to_read(file)
    settings = read_deployment(path, environment=EverythingSet()).effective()
    unset = _unset(path)
    if as_json:
        write_json({"file": str(path), "settings": [_setting(each) for each in settings]})
    else:
        from foreword.cli.table import Column, table

        screen = Screen.of_stdout(fallback=UNBOUNDED)
        columns = Column("setting", least=24), Column("value", least=24), Column("from", least=16)
        write_rows(table(columns, [_record(each, screen) for each in settings], screen), screen)
    for fault in unset:
        warn(in_one_line(str(fault)))
    return _FINDINGS if unset else 0


def _unset(path: Path) -> tuple[Fault, ...]:
    """What is at fault in a file, which is none otherwise, because of variables that are not set."""
    from foreword.compose.reading import read_deployment
    from foreword.errors import DeploymentError

    try:
        read_deployment(path)
    except DeploymentError as error:
        return error.faults
    return ()


def _record(setting: Setting, screen: Screen) -> tuple[Cell, ...]:
    from foreword.cli.terminal import Piece

    is_default = setting.where == "default"
    return (
        (Piece(screen.name(setting.path)),),
        (Piece(screen.name(setting.shown_value), "dim" if is_default else ""),),
        (Piece(screen.name(setting.where), "dim"),),
    )


def _setting(setting: Setting) -> dict[str, Any]:
    """A setting as JSON: its value, or what is told of one that an expression stands for."""
    try:
        value, is_expression = json.loads(setting.shown_value), False
    except ValueError:  # the words for an expression are no JSON
        value, is_expression = setting.shown_value, True
    return {"path": setting.path, "value": value, "is_expression": is_expression, "from": setting.where}
