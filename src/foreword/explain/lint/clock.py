"""Another clock: what depends on the time shows when the time is another one."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["CLOCK_PACKAGE", "can_move_clock", "moved_clock"]

CLOCK_PACKAGE: Final = "time-machine"

# Year, month, day of month, day of week, hour, minute and second all become others, whenever one starts.
_STEP: Final = timedelta(days=400, hours=7, minutes=13, seconds=17)


def can_move_clock() -> bool:
    """Whether the library that moves it is installed."""
    from importlib.util import find_spec

    return find_spec("time_machine") is not None


@contextmanager
def moved_clock(to: datetime | timedelta = _STEP) -> Generator[None]:
    """Let this process, all its threads included, see another time: by default a year, a month and some hours on.

    Only the time of day moves. What event loops measure timeouts with goes on as it was.

    Args:
        to: the time that it is to be, or how far from now.

    Raises:
        ImportError: the library that moves it is not installed; see `can_move_clock`.
    """
    import time_machine

    with time_machine.travel(datetime.now(UTC) + to if isinstance(to, timedelta) else to, tick=True):
        yield
