"""The log that is explained: the one of ``foreword log``, under the name ``log``, for commands that have a target."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from foreword.session.log import Log

__all__ = ["ask_log", "log_option"]

C = TypeVar("C", bound=Callable[..., Any])
T = TypeVar("T")


def log_option(command: C) -> C:
    """Give a command ``--log``, as the parameter ``log``."""
    return click.option("--log", metavar="STORE", help="Where the sessions are, as in sqlite:foreword.db.")(command)


def ask_log(given: str | None, ask: Callable[[Log], Coroutine[Any, Any, T]]) -> T:
    """Open a log to be read, ask it something, and close it again.

    Args:
        given: with ``--log``; None for what the environment or the deployment says, else the usual store.
        ask: the question.

    Raises:
        StoreError: there is no such store, or it cannot be read.
        ForewordError: what the question raises.
    """
    from foreword.cli.logs import asked

    return asked(given, ask)
