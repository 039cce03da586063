"""What fails in the runner itself, told apart from what a scenario makes fail."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["Crashes"]


class Crashes:
    """Remembers what failed in the runner's own callbacks, where the library would report it as a caller's fault."""

    def __init__(self) -> None:
        self._first: Exception | None = None

    @contextmanager
    def noted(self) -> Generator[None]:
        """What fails in here is remembered, and goes on."""
        try:
            yield
        except Exception as error:
            self._first = self._first or error
            raise

    def surface(self, reported: Exception | None = None) -> None:
        """Raise the first crash, if there was one, in place of what the library made of it."""
        if self._first is not None:
            raise self._first from reported
