"""A kernel that is unloading when asyncio's loop ends, as after a second Ctrl-C: it ends, whatever had begun.

Then asyncio cancels every task once, against which nothing is shielded, and waits for all of them.
"""

import asyncio
from collections.abc import AsyncGenerator
from threading import Thread

import pytest

from foreword.kernel.context import Context
from foreword.kernel.fiber import FiberState

PATIENCE = 20.0
"""Seconds after which a kernel counts as one that hangs."""


async def rests(ctx: Context) -> AsyncGenerator[None]:
    """A plugin whose set-up and teardown both take some turns of the loop, with a scope of its own."""
    ctx.scope("inner").defer(turns)
    await turns()
    yield
    await turns()


async def turns() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def in_scopes(ticks: int, ended: list[Context]) -> None:
    """A kernel with plugins and scopes in scopes, which begins to unload; its loop ends so many turns later."""
    ctx = Context()
    ended.append(ctx)
    async with ctx:
        for name in ("first", "second"):
            outer = ctx.scope(name)
            outer.defer(turns)
            await outer.mount(rests).ready()
            outer.scope("within").defer(turns)
        end_after(ticks)


def end_after(ticks: int) -> None:
    """Do what asyncio does when its loop ends, so many turns from now."""
    loop = asyncio.get_running_loop()
    if ticks:
        loop.call_soon(end_after, ticks - 1)
    else:
        for task in asyncio.all_tasks(loop):
            task.cancel()


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")  # of tasks that never began
@pytest.mark.parametrize("ticks", range(96))
def test_it_ends_whenever_asyncio_cancels_all_tasks(ticks: int) -> None:
    """A task that was cancelled before its first step, and one that could not be started any more, hold up nobody."""
    kernels: list[Context] = []

    def run() -> None:
        try:
            asyncio.run(in_scopes(ticks, kernels))
        except BaseException:  # what it raises then is the loop's affair
            return

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert kernels[0].fiber.state is FiberState.DISPOSED
