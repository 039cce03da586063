"""From a token to the event loop: whatever is being awaited ends when a `CancelToken` is cancelled, in any thread.

    with cancelled_by(signal) as scope:
        answer = await ask()
    if scope.cancelled_caught:
        ...                             # the signal came first; signal.reason tells why

For the loop, tools and model adapters. It works on asyncio and on trio; a cancellation from outside passes through.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from foreword.prompt.asking import running_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    import anyio

    from foreword.prompt.context import CancelToken

__all__ = ["cancelled_by"]


@contextmanager
def cancelled_by(signal: CancelToken | None) -> Generator[anyio.CancelScope]:
    """While this is entered, cancelling the signal cancels what is awaited inside; that leaves it without an error.

    Args:
        signal: None for no signal; then nothing is cancelled. If it is cancelled already, the first await inside ends.

    Yields:
        The cancel scope: ``scope.cancelled_caught`` tells afterwards whether something was cut short.
    """
    import anyio

    with anyio.CancelScope() as scope:
        if signal is None:
            yield scope
            return
        if signal.cancelled:
            scope.cancel()
        undo = signal.on_cancel(_from_any_thread(scope.cancel))
        try:
            yield scope
        finally:
            undo()


def _from_any_thread(call: Callable[[], object]) -> Callable[[], None]:
    """A function that has another one called in the loop that is running here; any thread and signal handler may."""
    if running_loop() == "trio":
        import trio

        token = trio.lowlevel.current_trio_token()

        def wake_trio() -> None:
            with suppress(trio.RunFinishedError):  # the loop has ended, and with it whatever there was to cancel
                token.run_sync_soon(call)

        return wake_trio
    import asyncio

    loop = asyncio.get_running_loop()

    def wake_asyncio() -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(call)

    return wake_asyncio
