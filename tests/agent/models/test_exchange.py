"""What all adapters of real models have in common: one request, read piece by piece, closed however it ends."""

import gc
from contextlib import aclosing
from threading import Event, Thread

import anyio
import anyio.to_thread
import pytest
from tests.agent.models.vendors import Adapter, Vendor
from tests.support.recording_server import Answer, RecordingServer

from foreword import CancelToken, InactiveContextError
from foreword.agent.models import Chunk, Finish, TextChunk
from foreword.wire.messages import UserMessage
from foreword.wire.request import ModelConfig, ModelRequest

pytestmark = [
    pytest.mark.anyio,
    # Under trio the SDKs leave their generators to the garbage collector, which trio remarks.
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
]

REQUEST = ModelRequest("Be brief.", (), (UserMessage("Why is it late?"),), ModelConfig("any", "m"))


async def answer_to(adapter: Adapter, signal: CancelToken | None = None) -> list[Chunk]:
    return [chunk async for chunk in adapter.stream(REQUEST, signal)]


async def finish_of(adapter: Adapter, signal: CancelToken | None = None) -> Finish:
    """The one finish, which is the last chunk."""
    *before, last = await answer_to(adapter, signal)
    assert isinstance(last, Finish)
    assert not any(isinstance(each, Finish) for each in before)
    return last


async def test_connections_are_used_again(vendor: Vendor, server: RecordingServer, adapter: Adapter) -> None:
    """Whole answers, one after the other, go over one connection."""
    server.answer(*map(vendor.said, ("One.", "Two.", "Three.")))
    for _ in range(3):
        assert (await finish_of(adapter)).kind == "stop"
    assert server.open_connections == 1


async def test_no_server(vendor: Vendor, server: RecordingServer) -> None:
    """Where nobody listens, that is a transient failure, which names the cause."""
    server.__exit__()
    async with vendor.make(server) as adapter:
        failure = (await finish_of(adapter)).failure
    assert failure is not None
    assert (failure.code, failure.transient, failure.status) == ("connection", True, None)
    assert "ConnectError" in failure.message


@pytest.mark.parametrize("begun", [False, True])
async def test_a_silent_server(vendor: Vendor, server: RecordingServer, begun: bool) -> None:
    """A server that goes silent for longer than the timeout is a transient failure, and the connection is closed."""
    server.answer(vendor.begins(*[vendor.text("a")] * begun))
    async with vendor.make(server, timeout=0.2) as adapter:
        failure = (await finish_of(adapter)).failure
        assert failure is not None
        assert (failure.code, failure.transient) == ("timeout", True)
        await anyio.to_thread.run_sync(server.wait_for_no_connection)


async def test_cancelling_closes_the_connection(vendor: Vendor, server: RecordingServer, adapter: Adapter) -> None:
    """A token that is cancelled, in another thread, while the server is silent ends the stream; the server sees it."""
    server.answer(vendor.begins(vendor.text("Be")))
    signal = CancelToken()
    got = []
    async for each in adapter.stream(REQUEST, signal):
        got.append(each)
        if len(got) == 1:
            Thread(target=signal.cancel, args=("enough",)).start()
    assert got == [TextChunk("Be"), Finish("aborted", raw_reason="enough")]
    await anyio.to_thread.run_sync(server.wait_for_hang_up)


async def test_the_connection_is_closed_before_the_finish(
    vendor: Vendor, server: RecordingServer, adapter: Adapter
) -> None:
    """Whoever has the finish need not go on: the connection is closed or given back by then."""
    server.answer(vendor.begins(vendor.text("Be")), vendor.begins(vendor.nonsense))
    signal = CancelToken()
    cancelled, broken = adapter.stream(REQUEST, signal), adapter.stream(REQUEST)
    assert await anext(cancelled) == TextChunk("Be")
    signal.cancel()
    assert isinstance(await anext(cancelled), Finish)
    await anyio.to_thread.run_sync(server.wait_for_hang_up, 1)
    assert isinstance(await anext(broken), Finish)
    await anyio.to_thread.run_sync(server.wait_for_hang_up, 2)
    await cancelled.aclose()
    await broken.aclose()


async def test_cancelling_before_an_answer(server: RecordingServer, adapter: Adapter) -> None:
    """A token that is cancelled while the server has not even answered closes the connection."""
    server.answer(Answer(200, pieces=(), end="silent"))
    signal = CancelToken()

    def cancel() -> None:
        server.wait_for_requests(1)
        signal.cancel()

    Thread(target=cancel).start()
    assert await answer_to(adapter, signal) == [Finish("aborted", raw_reason="user")]
    await anyio.to_thread.run_sync(server.wait_for_hang_up)


async def test_cancelled_from_the_start(server: RecordingServer, adapter: Adapter) -> None:
    """With a token that is cancelled already, nothing is sent."""
    signal = CancelToken()
    signal.cancel("never mind")
    assert await answer_to(adapter, signal) == [Finish("aborted", raw_reason="never mind")]
    assert not server.requests


async def test_cancelled_between_two_chunks(vendor: Vendor, server: RecordingServer, adapter: Adapter) -> None:
    """A token that is cancelled while the consumer is busy ends the stream at its next chunk, though more is there."""
    server.answer(vendor.whole(*[vendor.text("a")] * 10))
    signal = CancelToken()
    stream = adapter.stream(REQUEST, signal)
    assert await anext(stream) == TextChunk("a")
    signal.cancel()
    assert [each async for each in stream] == [Finish("aborted", raw_reason="user")]
    await anyio.to_thread.run_sync(server.wait_for_no_connection)


async def test_a_cancelled_task_is_no_answer(vendor: Vendor, server: RecordingServer, adapter: Adapter) -> None:
    """Cancelling the task from outside goes through the stream as a cancellation, and closes the connection."""
    server.answer(vendor.begins(vendor.text("Be")))
    got = []
    with anyio.CancelScope() as scope:
        async with aclosing(adapter.stream(REQUEST, CancelToken())) as stream:
            async for each in stream:
                got.append(each)
                scope.cancel()
    assert scope.cancelled_caught
    assert got == [TextChunk("Be")]
    await anyio.to_thread.run_sync(server.wait_for_hang_up)


async def test_a_task_that_is_cancelled_while_busy(vendor: Vendor, server: RecordingServer, adapter: Adapter) -> None:
    """A consumer that is cancelled between two chunks closes the connection on its way out."""
    server.answer(vendor.begins(vendor.text("Be")))
    with anyio.CancelScope() as scope:
        async with aclosing(adapter.stream(REQUEST)) as stream:
            assert await anext(stream) == TextChunk("Be")
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    await anyio.to_thread.run_sync(server.wait_for_hang_up)
    assert server.open_connections == 0


async def test_stopping_early_leaks_no_connection(vendor: Vendor, server: RecordingServer, adapter: Adapter) -> None:
    """A consumer that closes the stream before its end closes the connection."""
    server.answer(vendor.begins(vendor.text("Be"), vendor.text("cause.")))
    async with aclosing(adapter.stream(REQUEST)) as stream:
        assert await anext(stream) == TextChunk("Be")
    await anyio.to_thread.run_sync(server.wait_for_hang_up)
    assert server.open_connections == 0


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_dropping_a_stream_leaks_no_connection(vendor: Vendor, server: RecordingServer, adapter: Adapter) -> None:
    """On asyncio, a stream that is dropped without being closed is closed by the loop."""
    server.answer(vendor.begins(vendor.text("Be")))
    async for each in adapter.stream(REQUEST):
        assert each == TextChunk("Be")
        break
    gc.collect()
    await anyio.to_thread.run_sync(server.wait_for_hang_up)


async def test_a_closed_adapter(vendor: Vendor, server: RecordingServer, adapter: Adapter) -> None:
    """Closing an adapter ends what is under way in a failure; asking it again is an error. Closing twice is closing."""
    gate = Event()
    server.answer(vendor.whole(vendor.text("Be"), gate, vendor.text("cause.")))
    stream = adapter.stream(REQUEST)
    assert await anext(stream) == TextChunk("Be")
    await adapter.aclose()
    await adapter.aclose()
    *_, finish = [each async for each in stream]
    assert isinstance(finish, Finish)
    assert finish.kind == "error"
    with pytest.raises(InactiveContextError, match="make a new one"):
        await anext(adapter.stream(REQUEST))
    gate.set()


async def test_many_at_a_time(vendor: Vendor, server: RecordingServer, adapter: Adapter) -> None:
    """One adapter serves many requests at a time, each with its own answer."""
    gate = Event()
    server.answer(*[vendor.whole(vendor.text("a"), gate, vendor.text("b"))] * 8)
    finishes = []

    async def ask() -> None:
        finishes.append(await finish_of(adapter))

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(ask)
        await anyio.to_thread.run_sync(server.wait_for_requests, 8)
        gate.set()
    assert [finish.kind for finish in finishes] == ["stop"] * 8


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_two_loops_one_after_the_other(vendor: Vendor, server: RecordingServer) -> None:
    """An adapter that was used in one event loop can be used in the next."""
    server.answer(vendor.said("One."), vendor.said("Two."))
    adapter = vendor.make(server)

    def in_a_loop_of_its_own() -> str:
        return anyio.run(finish_of, adapter).kind

    assert await anyio.to_thread.run_sync(in_a_loop_of_its_own) == "stop"
    assert await anyio.to_thread.run_sync(in_a_loop_of_its_own) == "stop"
