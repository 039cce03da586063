"""One request and its answer, whatever the SDK: sent once, read piece by piece, closed however it ends.

What goes wrong out there becomes a `Finish`; a token that is cancelled closes the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from foreword.prompt.cancelling import cancelled_by
from foreword.wire.chunks import Chunk, Finish

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from foreword.prompt.context import CancelToken
    from foreword.wire.chunks import ModelFailure, Usage

__all__ = ["Client", "Events", "Reader", "exchanged"]

_CLOSING = 5.0  # seconds that closing a connection may take


class Events(Protocol):
    """The events of an answer, each a JSON value."""

    async def __anext__(self) -> object: ...
    async def close(self) -> None:
        """Give the connection back, or cut it if there is more to come."""
        ...


class Client(Protocol):
    """What sends bodies to a server."""

    def check_open(self) -> None:
        """See that something can be sent; raises `InactiveContextError`."""
        ...

    async def send(self, content: bytes) -> Events:
        """Send a body, and give what the server answers; raises whatever the SDK does."""
        ...

    def failure(self, error: Exception, *, begun: bool) -> ModelFailure:
        """What an error of `send`, or of reading its events, stands for."""
        ...


class Reader(Protocol):
    """What turns events into chunks."""

    @property
    def usage(self) -> Usage | None:
        """What the answer cost, as far as the provider has said so."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the provider has said how the answer ended; what may still come can be done without."""
        ...

    def read(self, event: object) -> list[Chunk]:
        """The chunks that an event brings."""
        ...

    def finish(self) -> Finish:
        """How the answer ended, once the stream is over."""
        ...


async def exchanged(
    client: Client, make_body: Callable[[], bytes], reader: Reader, signal: CancelToken | None
) -> AsyncGenerator[Chunk]:
    """Send a request once, and give the answer piece by piece; see `ModelAdapter.stream`.

    Args:
        client: what sends it.
        make_body: makes the body; called when the first piece is asked for.
        reader: of this answer.
        signal: cancels it.

    Raises:
        InactiveContextError: the client is closed.
        ModelError: as ``make_body``; nothing was sent then.
    """
    client.check_open()
    exchange = _Exchange(client, make_body(), reader, signal)
    try:
        finished = False
        while not finished:
            for chunk in await exchange.read():
                finished = isinstance(chunk, Finish)
                yield chunk
    finally:
        await exchange.close()


class _Exchange:
    """One request and its answer."""

    def __init__(self, client: Client, content: bytes, reader: Reader, signal: CancelToken | None) -> None:
        self._client, self._content, self._reader, self._signal = client, content, reader, signal
        self._events: Events | None = None

    async def read(self) -> list[Chunk]:
        """The next chunks. If the last of them is the finish, the connection is closed already."""
        chunks: list[Chunk] = []
        reason = self._cancelled()
        if reason is None:
            with cancelled_by(self._signal) as scope:
                chunks = await self._next()
            reason = self._cancelled() if scope.cancelled_caught else None
        if reason is not None:
            chunks = [Finish("aborted", self._reader.usage, raw_reason=reason)]
        if chunks and isinstance(chunks[-1], Finish):
            await self.close()
        return chunks

    async def close(self) -> None:
        """Give the connection back, or cut it if there is more to come; also while this task is being cancelled."""
        import anyio

        events, self._events = self._events, None
        if events is not None:
            with anyio.move_on_after(_CLOSING, shield=True):
                await events.close()

    async def _next(self) -> list[Chunk]:
        try:
            if self._events is None:
                self._events = await self._client.send(self._content)
            return self._reader.read(await self._events.__anext__())
        except StopAsyncIteration:
            return [self._reader.finish()]
        except Exception as error:  # the border to the SDK: whatever it stumbles over out there is a failure
            if self._reader.is_complete:  # only the usage is missing
                return [self._reader.finish()]
            failure = self._client.failure(error, begun=self._events is not None)
            return [Finish("error", self._reader.usage, failure)]

    def _cancelled(self) -> str | None:
        return None if self._signal is None else self._signal.reason
