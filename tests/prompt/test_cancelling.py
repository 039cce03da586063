"""Cancelling by a token, from any thread."""

import gc
import weakref
from threading import Barrier, Thread

import anyio
import anyio.lowlevel
import pytest

from foreword import CancelToken
from foreword.prompt.cancelling import cancelled_by


def test_calls_on_cancel() -> None:
    """A function is called once when the token is cancelled, at once if it was already, and not after its undo."""
    called: list[str] = []
    token = CancelToken()
    token.on_cancel(lambda: called.append("a"))
    undo = token.on_cancel(lambda: called.append("b"))
    undo()
    undo()
    assert called == []
    token.cancel("why")
    token.cancel("again")
    assert (called, token.reason) == (["a"], "why")
    token.on_cancel(lambda: called.append("c"))()
    assert called == ["a", "c"]


def test_each_is_called_once_by_many_threads() -> None:
    """However many threads cancel and register at a time, each function is called exactly once."""
    token, called = CancelToken(), list[int]()
    together = Barrier(8)

    def work(number: int) -> None:
        together.wait()
        for at in range(200):
            token.on_cancel(lambda key=number * 1000 + at: called.append(key))
            if at == 100:
                token.cancel()

    threads = [Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(called) == sorted(number * 1000 + at for number in range(8) for at in range(200))


@pytest.mark.anyio
async def test_what_is_awaited_ends() -> None:
    """What is awaited under a token ends when another thread cancels it, and the scope tells."""
    token = CancelToken()
    with cancelled_by(token) as scope:
        Thread(target=token.cancel).start()
        await anyio.sleep_forever()
    assert scope.cancelled_caught


@pytest.mark.anyio
async def test_cancelled_in_the_same_thread() -> None:
    """It does not matter who cancels: here, the code inside itself."""
    token = CancelToken()
    with cancelled_by(token) as scope:
        token.cancel()
        await anyio.sleep_forever()
    assert scope.cancelled_caught


@pytest.mark.anyio
async def test_cancelled_already() -> None:
    """Under a token that is cancelled already, the first thing that is awaited ends."""
    token = CancelToken()
    token.cancel()
    with cancelled_by(token) as scope:
        await anyio.lowlevel.checkpoint_if_cancelled()
        pytest.fail("it went on")
    assert scope.cancelled_caught


@pytest.mark.anyio
@pytest.mark.parametrize("token", [None, CancelToken()])
async def test_not_cancelled(token: CancelToken | None) -> None:
    """Without a token, or with one that nobody cancels, nothing is cut short."""
    with cancelled_by(token) as scope:
        await anyio.lowlevel.checkpoint()
    assert not scope.cancelled_caught


@pytest.mark.anyio
async def test_cancelled_afterwards() -> None:
    """A token that is cancelled after the block was left touches nothing: it has forgotten the block."""
    token = CancelToken()
    with cancelled_by(token) as scope:
        left = weakref.ref(scope)
    del scope
    gc.collect()
    assert left() is None
    token.cancel()
    await anyio.wait_all_tasks_blocked()


@pytest.mark.anyio
async def test_a_cancellation_from_outside_passes() -> None:
    """Cancelling the task from outside is not taken for the token's cancellation."""
    with anyio.CancelScope() as outer:
        with cancelled_by(CancelToken()):
            outer.cancel()
            await anyio.sleep_forever()
        pytest.fail("the cancellation was swallowed")  # pragma: no cover
    assert outer.cancelled_caught


def test_cancelled_when_the_loop_has_ended(anyio_backend: str) -> None:
    """Cancelling a token that is still held in a loop that has ended is no error."""
    token = CancelToken()

    async def leave_it_open() -> None:
        cancelled_by(token).__enter__().cancel()

    anyio.run(leave_it_open, backend=anyio_backend)
    token.cancel()
