"""The vendor's SDK as `AnthropicAdapter` uses it: connections, headers, and what a failure says.

The SDK is imported here and in `anthropic_failures` only; without the extra ``anthropic`` this module cannot be
imported.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from foreword.agent.models.credentials import without_key
from foreword.agent.models.per_loop import PerLoop
from foreword.errors import MissingExtraError
from foreword.wire.answer import MalformedAnswerError

try:
    import anthropic
except ModuleNotFoundError as missing:
    if missing.name != "anthropic":
        raise
    raise MissingExtraError("the model adapter for messages", "anthropic", "anthropic") from missing

from foreword.agent.models.anthropic_failures import failure_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foreword.wire.chunks import ModelFailure

__all__ = ["Events", "MessagesClient"]

Events = anthropic.AsyncStream[object]
"""The events of one answer, each a JSON value."""

_PATH = "/v1/messages"
_CONNECTING = 10.0  # seconds that making a connection may take
_NO_STREAM = ("application/json", "text/html")


class MessagesClient:
    """Sends bodies to one server.

    Args:
        address: of the server, checked.
        key: what it is asked with, checked; None for none.
        timeout: seconds that may pass without a byte from the server.
        headers: further headers of each request.
        is_vendors: whether the server is the vendor's own, or stands before it.

    Raises:
        ValueError: the address has the path of the format, which is added to it.
    """

    def __init__(
        self, address: str, key: str | None, timeout: float, headers: Mapping[str, str], *, is_vendors: bool
    ) -> None:
        for end in (_PATH, _PATH.removesuffix("/messages")):
            if address.endswith(end):
                raise ValueError(f'the address "{address}" ends in {end}, which is added to it; leave that out')
        self.address = address
        self._key, self._timeout = key, timeout
        self._headers = _request_headers(key, headers, is_vendors=is_vendors)
        self._clients = PerLoop(address, self._client)

    def check_open(self) -> None:
        """See that something can be sent.

        Raises:
            InactiveContextError: it is closed.
        """
        self._clients.check_open()

    async def send(self, content: bytes) -> Events:
        """Send a body, and give the stream of events that the server answers with.

        Raises:
            Exception: whatever the SDK raises; `failure` tells what it stands for.
            MalformedAnswerError: the server answers well, but with no stream.
        """
        stream = await self._clients.get().post(
            _PATH,
            content=content,
            cast_to=object,
            stream=True,
            stream_cls=anthropic.AsyncStream[object],
            # The prompt is for this server, and one attempt is one request: redirections are not followed.
            options={"headers": self._headers, "follow_redirects": False},
        )
        kind = stream.response.headers.get("content-type", "")
        if kind.startswith(_NO_STREAM):
            await stream.close()
            raise MalformedAnswerError(f"the server answers with {kind} and not with a stream; is the address right?")
        return stream

    def failure(self, error: Exception, *, begun: bool) -> ModelFailure:
        """What an error of `send`, or of reading its events, stands for; never holds the key, and can be logged."""
        return without_key(failure_of(error, begun=begun), self._key)

    async def close(self) -> None:
        """Close the connections of this event loop; nothing can be sent any more."""
        await self._clients.close()

    def _client(self) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(
            # Without one it looks for keys in the environment; the headers see to it that this one is not sent.
            api_key=self._key or "none",
            base_url=self.address,
            timeout=anthropic.Timeout(self._timeout, connect=min(self._timeout, _CONNECTING)),
            max_retries=0,
        )


def _request_headers(key: str | None, further: Mapping[str, str], *, is_vendors: bool) -> dict[str, Any]:
    """What a request has beside the SDK's own headers; what the SDK adds that is not for this server is left out."""
    omitted = anthropic.Omit()
    headers: dict[str, Any] = {"content-type": "application/json", "accept": "text/event-stream"}
    if key is None:
        headers["Authorization"] = omitted
    if not is_vendors:  # the SDK takes these from the environment
        told = os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "")
        headers |= {line.partition(":")[0].strip(): omitted for line in told.split("\n") if ":" in line}
    return headers | dict(further)
