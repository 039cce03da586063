"""Folders that commands stand in: the current one, and the one that places in files are told relative to."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from foreword.cli.faults import Fault
from foreword.kernel import source

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["here", "sources_from"]


def here() -> Path:
    """The current folder.

    Raises:
        Fault: somebody removed it.
    """
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise Fault("the current folder is gone; change to one that exists") from error


@contextmanager
def sources_from(folder: Path) -> Generator[None]:
    """Tell places in files relative to a folder, wherever the command was typed.

    Sources are told relative to the import root that they stand under, so for that time the folder is one: the last, so
    that nothing is imported from it that is found elsewhere. The current folder, which may stand below it, is none.
    """
    before = sys.path.copy()
    current = here()
    roots = [entry for entry in before if Path(entry or ".").absolute() != current]
    sys.path[:] = [*roots, *dict.fromkeys((str(folder.absolute()), str(folder.resolve())))]
    source._relative.cache_clear()  # pyright: ignore[reportPrivateUsage] - it remembers other roots
    try:
        yield
    finally:
        sys.path[:] = before
        source._relative.cache_clear()  # pyright: ignore[reportPrivateUsage]
