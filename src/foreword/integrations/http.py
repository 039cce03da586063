"""Hooks on an HTTP client: what a vendor's SDK sends, and what it is answered, goes into the log on its way.

The client's own event hooks are used, of httpx2 and of httpx alike, sync and async. A request is looked at and sent on
as it is; of an answer, the pieces are copied as they are read.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from foreword.errors import NothingToRecordError
from foreword.integrations.caller import Caller
from foreword.integrations.exchange import Exchange, Where, exchange_format, sent_of

if TYPE_CHECKING:
    from types import ModuleType

    from foreword.integrations.formats import Format
    from foreword.integrations.recording import Recording
    from foreword.integrations.told import Sent

__all__ = ["Hooks", "http_client_of"]

_LIBRARIES = ("httpx2", "httpx")


def http_client_of(client: Any) -> Any:
    """The HTTP client of an SDK's client, or that client itself if it is one.

    Raises:
        NothingToRecordError: none is to be seen.
    """
    for candidate in (client, getattr(client, "_client", None)):
        if candidate is not None and _library_of(candidate) is not None and hasattr(candidate, "event_hooks"):
            return candidate
    raise NothingToRecordError(f"{type(client).__module__}.{type(client).__qualname__}")


def _library_of(client: Any) -> ModuleType | None:
    """The library that an HTTP client is of."""
    for base in type(client).__mro__:
        root = base.__module__.partition(".")[0]
        if root in _LIBRARIES and base.__name__ in ("Client", "AsyncClient"):
            return sys.modules[root]
    return None


class Hooks:
    """The hooks of a recorder on one HTTP client.

    Args:
        recording: takes what is seen.
        client: the HTTP client.
        where: tells where the request that is being sent belongs; None for one that is not to be recorded.
    """

    def __init__(self, recording: Recording, client: Any, where: Callable[[], Where | None]) -> None:
        self._recording, self._client, self._where = recording, client, where
        library = _library_of(client)
        assert library is not None  # noqa: S101 - `http_client_of` has looked
        self._library = library
        self._key = f"foreword.{id(self)}"
        is_async = isinstance(client, library.AsyncClient)
        self._request: Any = self._arequested if is_async else self._requested
        self._response: Any = self._aresponded if is_async else self._responded
        hooks = client.event_hooks
        # The last to see a request, since hooks may change it; the first to see an answer, since they may read it.
        client.event_hooks = {
            "request": [*hooks["request"], self._request],
            "response": [self._response, *hooks["response"]],
        }

    def remove(self) -> None:
        """Take the hooks away; a second time does nothing."""
        hooks = self._client.event_hooks
        self._client.event_hooks = {
            "request": [hook for hook in hooks["request"] if hook != self._request],
            "response": [hook for hook in hooks["response"] if hook != self._response],
        }

    # -- async clients -------------------------------------------------------------------------------------------------

    async def _arequested(self, request: Any) -> None:
        written = exchange_format(request.method, request.url.path)
        where = None if written is None else self._where()
        if where is None or written is None:
            return
        sent = self._sent(written, await request.aread(), request, where)
        if sent is not None:
            entry = await self._recording.begin(where.place, sent, Caller())
            if entry is not None:
                request.extensions[self._key] = Exchange(entry, written)

    async def _aresponded(self, response: Any) -> None:
        exchange = self._exchange(response)
        if exchange is None:
            return
        if response.is_closed:  # it is read already
            exchange.take(response.content)
            exchange.whole()
            await self._recording.end(exchange.entry, exchange.answered(response.content))
        else:
            response.stream = self._copying(response, exchange, sync=False)

    # -- sync clients --------------------------------------------------------------------------------------------------

    def _requested(self, request: Any) -> None:
        written = exchange_format(request.method, request.url.path)
        where = None if written is None else self._where()
        if where is None or written is None:
            return
        sent = self._sent(written, request.read(), request, where)
        if sent is not None:
            entry = self._recording.begin_now(where.place, sent, Caller())
            if entry is not None:
                request.extensions[self._key] = Exchange(entry, written)

    def _responded(self, response: Any) -> None:
        exchange = self._exchange(response)
        if exchange is None:
            return
        if response.is_closed:
            exchange.take(response.content)
            exchange.whole()
            self._recording.end_now(exchange.entry, exchange.answered(response.content))
        else:
            response.stream = self._copying(response, exchange, sync=True)

    # -- both ----------------------------------------------------------------------------------------------------------

    def _sent(self, format: Format, content: bytes, request: Any, where: Where) -> Sent | None:
        """What is being sent; None if it cannot be read, which is told."""
        retry = request.headers.get("x-stainless-retry-count", "0") != "0"
        try:
            return sent_of(format, content, request.url.host, where, retry=retry)
        except Exception as fault:  # the border: whatever is wrong with a body is no reason not to send it
            self._recording.miss(f"cannot read a request to {request.url.path}", fault)
            return None

    def _exchange(self, response: Any) -> Exchange | None:
        exchange = response.request.extensions.get(self._key)
        if isinstance(exchange, Exchange):
            exchange.begin(response.status_code, response.headers)
            return exchange
        return None

    def _copying(self, response: Any, exchange: Exchange, *, sync: bool) -> Any:
        encoding = response.headers.get("content-encoding")
        tell = _Teller(self._recording, exchange, self._library, encoding)
        make = _copying if sync else _async_copying
        made = make(self._library)(response.stream, exchange, tell)
        # Of an answer that nobody reads to its end nor closes, it is known when it is gone.
        weakref.finalize(made, tell.later).atexit = False
        return made


class _Teller:
    """Tells, once, what came of an exchange."""

    def __init__(self, recording: Recording, exchange: Exchange, library: ModuleType, encoding: str | None) -> None:
        self._recording, self._exchange = recording, exchange
        self._library, self._encoding = library, encoding

    async def atell(self) -> None:
        if self._exchange.over():
            await self._recording.end(self._exchange.entry, self._answered())

    def tell(self) -> None:
        if self._exchange.over():
            self._recording.end_now(self._exchange.entry, self._answered())

    def later(self) -> None:
        if self._exchange.over():
            self._recording.end_later(self._exchange.entry, self._answered())

    def _answered(self) -> Any:
        return self._exchange.answered(self._read(self._exchange.content))

    def _read(self, content: bytes) -> bytes:
        """The content without its encoding; as far as it goes, if it was cut off."""
        if not self._encoding or not content:
            return content
        try:
            made = self._library.Response(200, headers={"content-encoding": self._encoding}, content=content)
        except Exception:  # the border: what the SDK makes of it is not ours to judge
            return b""
        return bytes(made.content)


@lru_cache(maxsize=4)
def _copying(library: Any) -> type[Any]:
    """The stream of a library that copies what is read of an answer; of sync clients."""

    class Copying(library.SyncByteStream):  # type: ignore[misc] # pyright: ignore[reportUntypedBaseClass]
        def __init__(self, inner: Any, exchange: Exchange, tell: _Teller) -> None:
            self._inner, self._exchange, self._tell = inner, exchange, tell

        def __iter__(self) -> Iterator[bytes]:
            try:
                for piece in self._inner:
                    self._exchange.take(piece)
                    yield piece
            except Exception as error:
                self._exchange.cut(error)
                raise
            self._exchange.whole()

        def close(self) -> None:
            try:
                self._inner.close()
            finally:
                self._tell.tell()

    return Copying


@lru_cache(maxsize=4)
def _async_copying(library: Any) -> type[Any]:
    """The same for async clients."""

    class AsyncCopying(library.AsyncByteStream):  # type: ignore[misc] # pyright: ignore[reportUntypedBaseClass]
        def __init__(self, inner: Any, exchange: Exchange, tell: _Teller) -> None:
            self._inner, self._exchange, self._tell = inner, exchange, tell

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for piece in self._inner:
                    self._exchange.take(piece)
                    yield piece
            except Exception as error:
                self._exchange.cut(error)
                raise
            self._exchange.whole()

        async def aclose(self) -> None:
            try:
                await self._inner.aclose()
            finally:
                await self._tell.atell()

    return AsyncCopying
