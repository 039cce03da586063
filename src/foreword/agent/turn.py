"""A turn as its caller sees it: what happens, piece by piece, and how it ends.

    async with agent.run("Why is order 4711 late?") as turn:
        async for event in turn: ...
    end = await agent.run("And order 4712?")            # or only how it ends

The turn itself runs in the agent's own task, wherever its caller is; what it tells waits here.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from foreword.agent.stream import TurnEvent, TurnFinished
from foreword.prompt.context import CancelToken

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType
    from typing import Any, Self

    from foreword.agent.agent import Agent

__all__ = ["Feed", "Turn"]


class Feed:
    """What a turn has told and its caller has not heard yet. Nobody waits for the caller."""

    __slots__ = ("_moved", "_over", "end", "untold")

    def __init__(self) -> None:
        import anyio

        self.untold: deque[TurnEvent] = deque()
        self.end: TurnFinished | None = None
        self._moved, self._over = anyio.Event(), anyio.Event()

    def tell(self, event: TurnEvent) -> None:
        """Tell the caller something."""
        import anyio

        self.untold.append(event)
        moved, self._moved = self._moved, anyio.Event()
        moved.set()

    def finish(self, end: TurnFinished) -> None:
        """Tell how the turn has ended; nothing comes after this."""
        self.end = end
        self.tell(end)
        self._over.set()

    def gone(self) -> None:
        """Nobody is there any more who could tell something."""
        self._over.set()

    async def moved(self) -> None:
        """Wait for something new."""
        await self._moved.wait()

    async def over(self) -> None:
        """Wait for the end, or until nobody can tell of it any more."""
        await self._over.wait()


class Turn:
    """A turn that has begun; `Agent.run` makes it.

    Iterate over it for what happens, or await it for how it ends. Leaving ``async with`` before its end cancels it, and
    so does the cancellation of whoever waits for it; an iteration that is just given up lets it finish.

    Attributes:
        agent: whose turn it is.
        number: from 1, over the life of the session.
        signal: cancels it; the same token goes to everything that runs in it.
    """

    __slots__ = ("_feed", "agent", "number", "signal")

    def __init__(self, agent: Agent, number: int, feed: Feed) -> None:
        self.agent, self.number = agent, number
        self.signal = CancelToken()
        self._feed = feed

    @property
    def end(self) -> TurnFinished | None:
        """How it ended; None while it runs."""
        return self._feed.end

    def cancel(self, cause: str = "user") -> None:
        """Cancel it, and the turns of the agents that its agent has spawned. Any thread may; the first cause stands.

        Args:
            cause: ``"user"``, or in a word who else wants it.
        """
        self.signal.cancel(cause)

    async def result(self) -> TurnFinished:
        """Wait for its end. The same as awaiting the turn itself.

        Raises:
            Exception: what failed, if the turn ended with ``error``: a `ForewordError` where the fault is known, or
                what a listener or provider of somebody else's raised.
        """
        while self._feed.end is None:
            await self._wait()
        if self._feed.end.error is not None:
            raise self._feed.end.error
        return self._feed.end

    async def over(self) -> None:
        """Wait for its end, however it ends; whoever is cancelled meanwhile does not cancel it."""
        await self._feed.over()

    def __await__(self) -> Generator[Any, Any, TurnFinished]:
        return self.result().__await__()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> TurnEvent:
        while not self._feed.untold:
            if self._feed.end is not None:
                raise StopAsyncIteration
            await self._wait()
        return self._feed.untold.popleft()

    async def _wait(self) -> None:
        """Wait for something new. If the caller is cancelled meanwhile, or Ctrl-C arrives, so is the turn."""
        import anyio

        try:
            await self._feed.moved()
        except (anyio.get_cancelled_exc_class(), KeyboardInterrupt):
            await self._stop()
            raise

    async def _stop(self) -> None:
        """Cancel it if it runs, and wait until its log is closed."""
        import anyio

        if self._feed.end is None:
            self.cancel()
            with anyio.CancelScope(shield=True):
                await self._feed.over()

    def __repr__(self) -> str:
        state = "running" if self.end is None else self.end.reason
        return f"<Turn {self.number} of {self.agent.name}: {state}>"
