"""What can be mended by whoever typed the command: told in one paragraph, without a traceback."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import click

from foreword.cli.hiding import Hiding
from foreword.cli.terminal import OutputError
from foreword.errors import DeploymentError, ForewordError, ProviderFailedError, UntrustedFileError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

__all__ = ["Fault", "in_one_line", "others_code", "paragraph", "place_of"]

_OURS: Final = Path(__file__).resolve().parents[1]
_PYTHONS: Final = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})


class Fault(click.ClickException):
    """A usage, configuration or assembly error.

    Args:
        message: what is wrong and what to do, in one paragraph.
        hide: takes secrets out of the traceback of the cause.
    """

    exit_code = 2

    def __init__(self, message: str, hide: Hiding | None = None) -> None:
        super().__init__(message)
        self.hide = hide or Hiding()


@contextmanager
def others_code(doing: str, hide: Hiding | None = None) -> Generator[None]:
    """Around the user's own code: what it prints goes to stderr, and what it raises becomes a fault that says where.

    Args:
        doing: what it is run for, as in "calling build".
        hide: takes secrets out of what it raises; what it prints is its own affair.

    Raises:
        Fault: the code raised; with the cause.
        DeploymentError, UntrustedFileError: a deployment cannot be opened; they say where and why themselves.
        OSError: what we tell while the code runs cannot be written, of which the code knows nothing.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except (click.ClickException, DeploymentError, UntrustedFileError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # anything at all: the code is not ours
        if any(isinstance(each, KeyboardInterrupt) for each in _leaves(error)):
            raise KeyboardInterrupt from error
        for each in _leaves(error):
            if isinstance(each, OutputError):
                raise each.why from None
        hide = hide or Hiding()
        raise Fault(hide.name(_told(error, doing, hide)), hide) from error


def paragraph(error: ForewordError) -> str:
    """An error of ours in words; of a deployment, each fault in one line, behind its place."""
    if not isinstance(error, DeploymentError):
        return str(error)
    told = [in_one_line(str(fault)) for fault in error.faults]
    if len(told) == 1:
        return told[0]
    lines = "".join(f"\n  {each}" for each in told)
    return f"{error.faults[0].file} has {len(told)} faults:{lines}\nmend them all, then run the command again"


def place_of(error: BaseException) -> str | None:
    """File and line in the user's code where an error was raised, or from where it led to the line that raised it."""
    if isinstance(error, SyntaxError) and error.filename is not None and not _is_library(error.filename):
        return f"{_short(error.filename)}:{error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_library(frame.filename)]
    return f"{_short(frames[-1].filename)}:{frames[-1].lineno}" if frames else None


def _told(error: BaseException, doing: str, hide: Hiding) -> str:
    notes = "".join(f"\n{hide(str(note))}" for note in getattr(error, "__notes__", ()))
    if isinstance(error, ForewordError):
        return f"{_at(error)}{_ours(error, hide)}{notes}{_causes(error)}"
    for each in _leaves(error):
        if isinstance(each, SystemExit):
            return f"{_at(each)}the code left with {hide(f'sys.exit({each.code!r})')} while {doing}"
    what = "; ".join(f"{_at(each)}{hide(_words(each))}" for each in _leaves(error))
    return f"{what}{notes}, while {doing}; --traceback shows the way there"


def _ours(error: ForewordError, hide: Hiding) -> str:
    """What an error of ours says, without secrets in what it cites of the user's code."""
    if isinstance(error, ProviderFailedError):
        return str(ProviderFailedError([replace(each, message=hide(each.message)) for each in error.failures]))
    return hide(str(error))


def _words(error: BaseException) -> str:
    """What an error of the user's code says."""
    name = type(error).__name__
    try:
        message = error.msg if isinstance(error, SyntaxError) else str(error)
    except Exception:  # its own code, too
        message = "(it cannot say what)"
    return f"{name}: {message}" if message else name


def in_one_line(text: str) -> str:
    """The lines of a text behind one another."""
    *lines, last = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join([*(line if line[-1] in ".,:;" else f"{line};" for line in lines), last])


def _at(error: BaseException) -> str:
    place = place_of(error)
    return "" if place is None else f"{place}: "


def _causes(error: ForewordError) -> str:
    """Where in the user's code a failing provider or listener raised."""
    places = [place for cause in _leaves(error.__cause__) if (place := place_of(cause)) is not None]
    return f"\nraised at {', '.join(dict.fromkeys(places))}" if places else ""


def _leaves(error: BaseException | None) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        members = cast("tuple[BaseException, ...]", error.exceptions)  # pyright: ignore[reportUnknownMemberType]
        for each in members:
            yield from _leaves(each)
    elif error is not None:
        yield error


def _is_library(filename: str) -> bool:
    if filename.startswith("<"):
        return True
    path = Path(filename).resolve()
    if path.is_relative_to(_OURS) or not _INSTALLED.isdisjoint(path.parts):
        return True
    return any(path.is_relative_to(python) for python in _PYTHONS)


def _short(filename: str) -> str:
    path, here = Path(filename).absolute(), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
