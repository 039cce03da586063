"""What can be mended by whoever typed the command: told in one paragraph, without a traceback."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import click

from foreword.errors import ForewordError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

__all__ = ["Fault", "others_code", "place_of"]

_OURS: Final = Path(__file__).resolve().parents[1]
_PYTHONS: Final = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})


class Fault(click.ClickException):
    """A usage, configuration or assembly error."""

    exit_code = 2


@contextmanager
def others_code(doing: str) -> Generator[None]:
    """Around the user's own code: what it prints goes to stderr, and what it raises becomes a fault that says where.

    Raises:
        Fault: the code raised; with the cause.
    """
    try:
        with redirect_stdout(sys.stderr):
            yield
    except click.ClickException:
        raise
    except SystemExit as error:
        raise Fault(f"{_at(error)}the code left with sys.exit({error.code!r}) while {doing}") from error
    except Exception as error:  # anything at all: the code is not ours
        raise Fault(_told(error, doing)) from error


def place_of(error: BaseException) -> str | None:
    """File and line in the user's code where an error was raised, or from where it led to the line that raised it."""
    if isinstance(error, SyntaxError) and error.filename is not None and not _is_library(error.filename):
        return f"{_short(error.filename)}:{error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_library(frame.filename)]
    return f"{_short(frames[-1].filename)}:{frames[-1].lineno}" if frames else None


def _told(error: Exception, doing: str) -> str:
    notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
    if isinstance(error, ForewordError):
        return f"{_at(error)}{error}{notes}{_causes(error)}"
    name = type(error).__name__
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    what = f"{name}: {message}" if message else name
    return f"{_at(error)}{what}{notes}, while {doing}; --traceback shows the way there"


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
