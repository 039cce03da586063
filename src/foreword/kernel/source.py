"""Places in files: where something was written or registered.

Places are kept as the interpreter gives them and made relative when read: to the import root they stand under, else
to the current folder. So a log names the same place on every machine.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

__all__ = ["Source", "caller", "calling_line"]

caller = sys._getframe  # pyright: ignore[reportPrivateUsage] - many times faster than inspect.stack
"""``caller(1)`` is the frame of whoever called the function that asks."""


@dataclass(frozen=True, slots=True)
class Source:
    """A line of a file."""

    path: str  # as the interpreter or the caller named it
    line: int  # from 1
    is_text: bool = False  # the file is the text itself, so lines count on inside it

    @property
    def file(self) -> str:
        """The file, relative to the import root or folder it stands in, with forward slashes."""
        return _relative(self.path)

    @property
    def distribution(self) -> str | None:
        """Name and version of the installed distribution that the file belongs to; None for your own project."""
        return _distribution(self.file.partition("/")[0].removesuffix(".py"))

    def down(self, lines: int) -> Source:
        """The place that many lines further down, where lines count on; else this one."""
        return replace(self, line=self.line + lines) if self.is_text and lines else self

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def calling_line(frame: FrameType) -> Source:
    """The line that a frame is at."""
    return Source(frame.f_code.co_filename, frame.f_lineno)


@lru_cache(maxsize=4096)
def _relative(path: str) -> str:
    pure = PurePath(path)
    if not pure.is_absolute():
        return pure.as_posix()
    roots = [Path(entry or ".").absolute() for entry in sys.path]
    inside = [root for root in roots if pure.is_relative_to(root) and root.parent != root]
    nearest = max(inside, key=lambda root: len(root.parts), default=None)
    folder = Path.cwd()
    if nearest is None and pure.is_relative_to(folder):
        nearest = folder
    return pure.as_posix() if nearest is None else pure.relative_to(nearest).as_posix()


@lru_cache(maxsize=1024)
def _distribution(top: str) -> str | None:
    """Of a package or module that stands directly under an import root."""
    from importlib.metadata import PackageNotFoundError, version

    for name in _packages().get(top, ()):
        try:
            return f"{name} {version(name)}"
        except PackageNotFoundError:  # a broken installation: say nothing rather than guess
            continue
    return None


@lru_cache(maxsize=1)
def _packages() -> Mapping[str, list[str]]:
    """The distributions by top-level package; a fifth of a second, so once, and only when asked."""
    from importlib.metadata import packages_distributions

    return packages_distributions()
