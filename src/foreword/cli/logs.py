"""The log that a command is about: which store it is in, and what it answers once it is open."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from foreword.errors import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from foreword.session.log import Log

__all__ = [
    "asked",
    "changed",
    "check_session",
    "given_store",
    "leading_to",
    "log_option",
    "store_to_read",
    "warn_of_masks",
]

C = TypeVar("C", bound="Callable[..., Any]")
T = TypeVar("T")

_VARIABLE = "FOREWORD_LOG"


def log_option(command: C) -> C:
    """Give a command ``--log``, as the parameter ``store``."""
    return click.option(
        "--log", "store", metavar="STORE",
        help=f"The store, as in sqlite:foreword.db; without it ${_VARIABLE}, else the deployment's, else that one.",
    )(command)  # fmt: skip


def given_store(typed: str | None) -> str | None:
    """The store that was named, on the command line or by the environment; None if it was not."""
    return typed or os.environ.get(_VARIABLE) or None


def store_to_read(typed: str | None) -> str:
    """The URL of the store that a command is to read.

    A deployment of the current folder is asked for it, trusted or not: reading it runs nothing.

    Raises:
        DeploymentError: that file cannot be read, or what it says of its log is at fault.
        Fault: there is no current folder.
    """
    from foreword.cli.folders import here
    from foreword.cli.terminal import warn
    from foreword.compose.stores import USUAL_STORE
    from foreword.errors import DeploymentError

    here()
    given, file = given_store(typed), _file_here()
    if given is not None or file is None:
        return given or USUAL_STORE
    try:
        return _store_of(file)
    except DeploymentError:
        warn(f"{file} was asked where the log is; --log STORE reads one without it")
        raise


def leading_to(url: str) -> str:
    """What a command that is typed here needs behind it to read a store: nothing, if it finds that one by itself.

    Args:
        url: of the store.
    """
    from shlex import quote

    from foreword.compose.stores import USUAL_STORE
    from foreword.errors import DeploymentError, StoreError
    from foreword.session.store.places import path_of

    given, file = given_store(None), _file_here()
    try:
        usual = given or (USUAL_STORE if file is None else _store_of(file))
        is_found = os.path.realpath(path_of(usual)) == os.path.realpath(path_of(url))
    except (DeploymentError, StoreError):  # the command would end with it
        is_found = False
    return "" if is_found else f" --log {quote(url)}"


def _file_here() -> Path | None:
    """The deployment of the current folder, if there is one."""
    from foreword.compose.files import NAMES

    return next((Path(name) for name in NAMES if os.path.lexists(name)), None)


def _store_of(file: Path) -> str:
    """The store of a deployment."""
    from foreword.compose.files import read_file
    from foreword.compose.reading import Reading
    from foreword.compose.secrets import Secrets
    from foreword.compose.stores import store_of

    reading = Reading.of(file, read_file(file, str(file)), os.environ)
    if reading.deployment is None or reading.faults.touch(("log",)):
        reading.faults.check()
    assert reading.deployment is not None  # noqa: S101 - without faults there is one
    return store_of(reading.deployment, Secrets(os.environ), os.environ)


def check_session(typed: str, command: str) -> None:
    """See that what is to be a session is no address of a step in it.

    Args:
        typed: what was typed.
        command: what is to be typed instead, without the session.

    Raises:
        Fault: it is one.
    """
    from foreword.cli.faults import Fault

    session = re.split("[@/]", typed, maxsplit=1)[0]
    if session != typed:
        what = f'"{shown(typed)}" names a request, and this takes a whole session'
        raise Fault(f"{what}: {command} {shown(session) or 'SESSION'}")


def warn_of_masks() -> None:
    """Say on stderr that what is printed to the byte is not what the model got."""
    from foreword.cli.terminal import warn

    warn("what is sensitive in it is masked; --reveal prints it as the model gets it")


def asked(typed: str | None, ask: Callable[[Log], Coroutine[Any, Any, T]]) -> T:
    """Open a log, never to change it, and ask it something.

    Raises:
        StoreError: there is no such store, or it cannot be read.
        ForewordError: what the question raises.
    """
    from foreword.prompt.asking import run_loop
    from foreword.session.log import open_log

    url = store_to_read(typed)

    async def opened() -> T:
        async with open_log(url, read_only=True) as log:
            return await ask(log)

    return run_loop(opened, may_hang=True)  # in a thread of its own, so that Ctrl-C never waits for a disk


def changed(typed: str | None, act: Callable[[Log], Coroutine[Any, Any, T]]) -> T:
    """Open a log that is there, and change something in it.

    Raises:
        StoreError: there is no such store, or it cannot be read or written.
        ForewordError: what the change raises.
    """
    from foreword.prompt.asking import run_loop
    from foreword.session.log import open_log

    url = store_to_read(typed)

    async def opened() -> T:
        async with open_log(url, read_only=True):
            pass  # or a store that is not there would be made
        async with open_log(url) as log:
            return await act(log)

    return run_loop(opened, may_hang=False)
