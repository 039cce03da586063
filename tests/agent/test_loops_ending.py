"""A turn whose task goes, as after a second Ctrl-C: nobody waits for ever for what it can no longer tell.

See also `tests/kernel/test_loops_ending.py`.
"""

import asyncio
from collections.abc import Callable, Coroutine
from threading import Thread
from typing import Any

import anyio
import pytest
from tests.agent.support import Sleeps, stage
from tests.kernel.test_loops_ending import PATIENCE, end_after

from foreword.agent.events import AGENT_TURN_STOPPING, TurnStopping
from foreword.testing import call_tools


def ending(main: Callable[[], Coroutine[Any, Any, None]]) -> BaseException | None:
    """What a program raises; it has to end."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            raised.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    return raised[0] if raised else None


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")  # of tasks that never began
@pytest.mark.parametrize("ticks", range(60))
def test_it_ends_whenever_asyncio_cancels_all_tasks(ticks: int) -> None:
    """A turn is being cancelled while its tool runs, and so many turns of the loop later all tasks are."""

    async def main() -> None:
        async with stage(call_tools(look={}), "Fine.") as play:
            started = anyio.Event()

            @play.tools.register
            async def look() -> str:
                """Look."""
                started.set()
                await anyio.sleep_forever()
                return ""

            agent = await play.agent(clock=Sleeps().clock)
            async with agent.run("Hi"):
                await started.wait()
                end_after(ticks)

    ending(main)


def test_it_ends_when_an_interrupt_falls_into_the_end_of_a_turn() -> None:
    """The turn cannot be closed any more; whoever waits for that goes on, and the interrupt comes out of the kernel."""

    class InterruptingError(Exception):
        def __str__(self) -> str:
            raise KeyboardInterrupt

    async def stopping(told: TurnStopping) -> None:
        raise InterruptingError

    async def main() -> None:
        async with stage("Fine.") as play:
            agent = await play.agent()
            agent.ctx.on(AGENT_TURN_STOPPING, stopping)
            async with agent.run("Hi") as turn:
                await turn

    assert isinstance(ending(main), KeyboardInterrupt)
