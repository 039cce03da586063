"""What the vendors' SDKs have in common as an adapter uses them: one server, a client for each event loop, one request.

The SDKs are of one make, so a client of ours says only how its own is made and called, and what it calls a failure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from foreword.agent.models.credentials import Mask
from foreword.agent.models.exchange import Events
from foreword.agent.models.per_loop import Closable, PerLoop
from foreword.wire.answer import MalformedAnswerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foreword.wire.chunks import ModelFailure

__all__ = ["CONNECTING", "STREAMED", "HttpEvents", "SdkClient"]

CONNECTING: Final = 10.0
"""Seconds that making a connection may take."""

STREAMED: Final = {"content-type": "application/json", "accept": "text/event-stream"}
"""The headers of a request that is answered with a stream."""

_NO_STREAM = ("application/json", "text/html")


class Response(Protocol):
    """The beginning of an answer."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Its headers."""
        ...


class HttpEvents(Events, Protocol):
    """The events of an answer, as an SDK gives them."""

    @property
    def response(self) -> Response:
        """What it began with."""
        ...


C = TypeVar("C", bound=Closable)


class SdkClient(ABC, Generic[C]):
    """Sends bodies to one server.

    Args:
        address: of the server, checked.
        key: what it is asked with, checked; None for none.
        timeout: seconds that may pass without a byte from the server.
        headers: further headers of each request; what they hold is masked in failures, as the key is.
    """

    def __init__(self, address: str, key: str | None, timeout: float, headers: Mapping[str, str]) -> None:
        self.address = address
        self.key, self.timeout = key, timeout
        self._mask = Mask(key, headers)
        self._clients = PerLoop(address, self.make)

    @abstractmethod
    def make(self) -> C:
        """A client of the SDK."""

    @abstractmethod
    async def post(self, client: C, content: bytes) -> HttpEvents:
        """Send a body with a client of the SDK.

        Redirections must not be followed: the prompt is for this server, and one attempt is one request.
        """

    @abstractmethod
    def failure_of(self, error: Exception, *, begun: bool) -> ModelFailure:
        """What an error of the SDK stands for."""

    def check_open(self) -> None:
        """See that something can be sent.

        Raises:
            InactiveContextError: it is closed.
        """
        self._clients.check_open()

    async def send(self, content: bytes) -> HttpEvents:
        """Send a body, and give the stream of events that the server answers with.

        Raises:
            Exception: whatever the SDK raises; `failure` tells what it stands for.
            MalformedAnswerError: the server answers well, but with no stream.
        """
        stream = await self.post(self._clients.get(), content)
        kind = stream.response.headers.get("content-type", "")
        if kind.startswith(_NO_STREAM):
            await stream.close()
            raise MalformedAnswerError(f"the server answers with {kind} and not with a stream; is the address right?")
        return stream

    def failure(self, error: Exception, *, begun: bool) -> ModelFailure:
        """What an error of `send`, or of reading its events, stands for; holds no secret, and can be logged."""
        return self._mask.apply(self.failure_of(error, begun=begun))

    async def close(self) -> None:
        """Close the connections of this event loop; nothing can be sent any more."""
        await self._clients.close()
