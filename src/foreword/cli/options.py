"""Options that every command has."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from foreword.errors import shown

__all__ = ["TRACEBACK", "json_option", "reveal_option", "traceback_option", "whole"]

C = TypeVar("C", bound=Callable[..., Any])

TRACEBACK: Final = "foreword.traceback"
"""Where `click.Context.meta` keeps whether a traceback is wanted."""


def whole(unit: str, example: str) -> Callable[[str], int]:
    """The type of an option that takes a whole number from 0 on; where something else is typed its unit is told.

    Args:
        unit: what is counted, in the plural.
        example: the option with a number, as it is typed.
    """

    def number(typed: str) -> int:
        if re.fullmatch("[0-9]{1,15}", typed) is None:
            raise click.BadParameter(f'"{shown(typed)}" is no number of {unit}; give one from 0 on, as in {example}')
        return int(typed)

    return number


def json_option(command: C) -> C:
    """Give a command ``--json``, as the parameter ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="The same as one JSON document.")(command)


def reveal_option(command: C) -> C:
    """Give a command ``--reveal``, as the parameter ``reveal``."""
    told = "Also what was registered as sensitive; without it, [sensitive] stands in its place."
    return click.option("--reveal", is_flag=True, help=told)(command)


def traceback_option(command: C) -> C:
    """Give a command ``--traceback``; whatever the command is, errors are told with or without one in `main`."""

    def note(context: click.Context, _: click.Parameter, wanted: bool) -> None:
        context.meta[TRACEBACK] = wanted

    return click.option(
        "--traceback", is_flag=True, expose_value=False, callback=note, is_eager=True,
        help="With an error, the traceback that led to it.",
    )(command)  # fmt: skip
