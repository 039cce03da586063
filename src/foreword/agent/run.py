"""A turn as its loop sees it: what its steps share, and how code of others is awaited in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from foreword.agent.stream import TurnFinished
from foreword.prompt.cancelling import cancelled_by

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from foreword.agent.agent import Agent
    from foreword.agent.stream import TurnEvent
    from foreword.agent.turn import Feed, Turn
    from foreword.kernel.events import Event
    from foreword.prompt.context import CancelToken
    from foreword.session.events import TurnEndReason, UserSaid
    from foreword.session.session import Session

__all__ = ["Run", "TurnCancelled"]

T = TypeVar("T")


class TurnCancelled(Exception):  # noqa: N818 - a way out of the loop, which no caller ever sees
    """The turn was cancelled."""


class Run:
    """One turn under way.

    Attributes:
        step: the last step that was entered, 0 for none.
        text: what the model said last.
    """

    __slots__ = ("_feed", "_first", "agent", "session", "signal", "step", "text", "turn")

    def __init__(self, turn: Turn, feed: Feed, first: tuple[UserSaid, ...]) -> None:
        self.agent: Agent = turn.agent
        self.session: Session = turn.agent.session
        self.signal: CancelToken = turn.signal
        self.turn = turn.number
        self.step = 0
        self.text = ""
        self._feed = feed
        self._first: tuple[UserSaid, ...] | None = first

    def take(self) -> tuple[UserSaid, ...]:
        """The messages for the step that comes: at first those that the turn began with, then what has come since."""
        taken, self._first = self._first, None
        return self.agent.inbox.take() if taken is None else taken

    def tell(self, event: TurnEvent) -> None:
        """Tell the caller something."""
        self._feed.tell(event)

    def gone(self) -> None:
        """Its task has ended; if it was interrupted before it could say how, whoever waits is not to wait for that."""
        if self._feed.end is None:
            self.agent.turn = None
        self._feed.gone()

    def check(self) -> None:
        """Go on only while nobody has cancelled the turn."""
        if self.signal.cancelled:
            raise TurnCancelled

    async def foreign(self, work: Callable[[], Awaitable[T]]) -> T:
        """Await code of others. A cancellation of the turn ends the wait, and the turn."""
        self.check()
        with cancelled_by(self.signal):
            answer = await work()
            self.check()
            return answer
        raise TurnCancelled

    async def ask(self, event: Event[..., Any], told: object, default: object) -> object:
        """What the listeners of a waterfall make of what the loop would do."""

        async def innermost() -> object:
            return default

        return await self.foreign(lambda: self.agent.ctx.waterfall(event, told, default=innermost))

    def guarded(self, error: BaseException) -> BaseException:
        """An error of others' code as it may be kept and told: without what the kernel's guard takes out."""
        return self.agent.ctx.root.guard(self.agent.name, "turn", error)

    def finished(self, reason: TurnEndReason, detail: str = "", error: BaseException | None = None) -> TurnFinished:
        """How the turn ends."""
        return TurnFinished(self.turn, reason, self.text, detail, error)

    def finish(self, end: TurnFinished) -> None:
        """The turn is over: its agent is free, and its caller hears how it ended."""
        self.agent.turn = None
        self._feed.finish(end)
