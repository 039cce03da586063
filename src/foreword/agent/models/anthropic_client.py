"""The vendor's SDK as `AnthropicAdapter` uses it: connections, headers, and what a failure says.

The SDK is imported here and in `anthropic_failures` only; without the extra ``anthropic`` this module cannot be
imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from foreword.agent.models.credentials import environment_headers
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
    from collections.abc import Iterable, Mapping

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
        ambient = environment_headers("ANTHROPIC_CUSTOM_HEADERS")  # the SDK sends these, too
        super().__init__(address, key, timeout, {**ambient, **headers})
        # Given to the SDK's client and not with each request: the headers of a request go into the SDK's own log.
        self._own = {name.lower(): value for name, value in headers.items()}
        if key is not None and not is_vendors:  # what the environment says must not take its place
            self._own = {"authorization": f"Bearer {key}", **self._own}
        theirs = () if is_vendors else tuple(ambient)
        self._headers = _request_headers(self._own, theirs if key is not None else ("authorization", *theirs))

    def make(self) -> anthropic.AsyncAnthropic:
        """A client of the SDK."""
        return anthropic.AsyncAnthropic(
            # Without one it looks for keys in the environment; the headers see to it that this one is not sent.
            api_key=self.key or "none",
            base_url=self.address,
            timeout=anthropic.Timeout(self.timeout, connect=min(self.timeout, CONNECTING)),
            max_retries=0,
            default_headers=self._own,
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


def _request_headers(own: Mapping[str, str], omitted: Iterable[str]) -> dict[str, Any]:
    """What a request says of the headers of the SDK's client: what is not for this server is left out."""
    said: dict[str, Any] = {**dict.fromkeys(omitted, anthropic.Omit()), **STREAMED}
    return {name: value for name, value in said.items() if name not in own}
