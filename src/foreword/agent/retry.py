"""The stock policy of retries: transient failures only, ever longer waits, spread at random, and not for ever."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from foreword.agent.events import Retry

if TYPE_CHECKING:
    from foreword.wire.chunks import ModelFailure

__all__ = ["Clock", "RetryPolicy"]


async def _sleep(seconds: float) -> None:
    import anyio

    await anyio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Clock:
    """The time that an agent goes by; a test gives another one.

    Attributes:
        now: seconds from some fixed moment on, never going back.
        sleep: waits for some seconds.
    """

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = _sleep


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a failed request is tried again: what `AGENT_REQUEST_ERROR` gives unless a listener decides.

    The first retry comes after about ``first`` seconds, and each further one after twice that time, ``longest`` at
    most. Each wait is cut at random by up to half, so that many agents that failed together do not return together.

    Attributes:
        retries: how often one step's request is tried again, at most; 0 for never.
        first: seconds before the first retry.
        longest: seconds before any retry, unless the provider asks for more.
        patience: seconds that the provider may ask to wait (``Retry-After``); if it asks for more, nobody waits.
        random: gives a number from 0 up to 1.

    Raises:
        ValueError: one of the numbers is negative or not finite.
    """

    retries: int = 3
    first: float = 1.0
    longest: float = 30.0
    patience: float = 60.0
    random: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        for name in ("retries", "first", "longest", "patience"):
            value: float = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise ValueError(f"{name} of a RetryPolicy must be a number from 0 up, not {value!r}")

    def decide(self, attempt: int, failure: ModelFailure) -> Retry | None:
        """Whether to try again after an attempt (from 1) that failed, and how long to wait before; None for no."""
        asked = failure.retry_after or 0.0
        if not failure.transient or attempt > self.retries or asked > self.patience:
            return None
        doublings = min(attempt - 1, 64)  # beyond, a float could not hold it
        wait = min(self.first * 2.0**doublings, self.longest)
        return Retry(max(wait * (1 - self.random() / 2), asked))
