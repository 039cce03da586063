"""The vendor's SDK as `AnthropicAdapter` uses it: connections, headers, and what a failure says.

The SDK is imported here and in `anthropic_failures` only; without the extra ``anthropic`` this module cannot be
imported.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from foreword.agent.models.sdk_client import CONNECTING, STREAMED, HttpEvents, SdkClient
from foreword.errors import MissingExtraError

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

__all__ = ["MessagesClient"]

_PATH = "/v1/messages"


class MessagesClient(SdkClient[anthropic.AsyncAnthropic]):
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
        super().__init__(address, key, timeout)
        self._headers = _request_headers(key, headers, is_vendors=is_vendors)

    def make(self) -> anthropic.AsyncAnthropic:
        """A client of the SDK."""
        return anthropic.AsyncAnthropic(
            # Without one it looks for keys in the environment; the headers see to it that this one is not sent.
            api_key=self.key or "none",
            base_url=self.address,
            timeout=anthropic.Timeout(self.timeout, connect=min(self.timeout, CONNECTING)),
            max_retries=0,
        )

    async def post(self, client: anthropic.AsyncAnthropic, content: bytes) -> HttpEvents:
        """Send a body."""
        return await client.post(
            _PATH,
            content=content,
            cast_to=object,
            stream=True,
            stream_cls=anthropic.AsyncStream[object],
            options={"headers": self._headers, "follow_redirects": False},
        )

    def failure_of(self, error: Exception, *, begun: bool) -> ModelFailure:
        """What an error of the SDK stands for."""
        return failure_of(error, begun=begun)


def _request_headers(key: str | None, further: Mapping[str, str], *, is_vendors: bool) -> dict[str, Any]:
    """What a request has beside the SDK's own headers; what the SDK adds that is not for this server is left out."""
    omitted = anthropic.Omit()
    headers: dict[str, Any] = dict(STREAMED)
    if key is None:
        headers["Authorization"] = omitted
    if not is_vendors:  # the SDK takes these from the environment
        told = os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "")
        headers |= {line.partition(":")[0].strip(): omitted for line in told.split("\n") if ":" in line}
    return headers | dict(further)
