"""Ctrl-C in two stages: the first asks what runs to end well, the second leaves at once."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import FrameType

__all__ = ["Interrupts"]


class Interrupts:
    """What Ctrl-C does. Until `first` is set it interrupts at once, as it usually does.

    Attributes:
        first: what the first one calls, in the main thread and between any two lines of it.
        came: whether it was called.
    """

    __slots__ = ("came", "first")

    def __init__(self) -> None:
        self.first: Callable[[], object] | None = None
        self.came = False

    @contextmanager
    def heard(self) -> Generator[None]:
        """Hear Ctrl-C here. Outside the main thread, or where it is ignored, everything stays as it is."""
        before = signal.getsignal(signal.SIGINT)
        if current_thread() is not main_thread() or before is not signal.default_int_handler:
            yield
            return
        signal.signal(signal.SIGINT, self._come)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _come(self, _number: int, _frame: FrameType | None) -> None:
        if self.first is None or self.came:
            raise KeyboardInterrupt
        self.came = True
        self.first()
