"""The vendor's SDK as `OpenAIAdapter` uses it: connections, headers, and what a failure says.

The SDK is imported here and in `openai_failures` only; without the extra ``openai`` this module cannot be imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from foreword.agent.models.sdk_client import CONNECTING, STREAMED, HttpEvents, SdkClient
from foreword.errors import MissingExtraError

try:
    import openai
except ModuleNotFoundError as missing:
    if missing.name != "openai":
        raise
    raise MissingExtraError("the model adapter for chat completions", "openai", "openai") from missing

from foreword.agent.models.openai_failures import failure_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foreword.wire.chunks import ModelFailure

__all__ = ["ChatClient"]


class ChatClient(SdkClient[openai.AsyncOpenAI]):
    """Sends bodies to one server.

    Args:
        address: of the server, checked.
        key: what it is asked with, checked; None for none.
        timeout: seconds that may pass without a byte from the server.
        headers: further headers of each request.
        is_openai: whether the server is the vendor's own.
    """

    def __init__(
        self, address: str, key: str | None, timeout: float, headers: Mapping[str, str], *, is_openai: bool
    ) -> None:
        super().__init__(address, key, timeout)
        self._headers = _request_headers(key, headers, is_openai=is_openai)

    def make(self) -> openai.AsyncOpenAI:
        """A client of the SDK."""
        return openai.AsyncOpenAI(
            # Without one it looks for keys in the environment; the headers see to it that this one is not sent.
            api_key=self.key or "none",
            base_url=self.address,
            timeout=openai.Timeout(self.timeout, connect=min(self.timeout, CONNECTING)),
            max_retries=0,
        )

    async def post(self, client: openai.AsyncOpenAI, content: bytes) -> HttpEvents:
        """Send a body."""
        return await client.post(
            "/chat/completions",
            content=content,
            cast_to=object,
            stream=True,
            stream_cls=openai.AsyncStream[object],
            options={"headers": self._headers, "follow_redirects": False},
        )

    def failure_of(self, error: Exception, *, begun: bool) -> ModelFailure:
        """What an error of the SDK stands for."""
        return failure_of(error, begun=begun)


def _request_headers(key: str | None, further: Mapping[str, str], *, is_openai: bool) -> dict[str, Any]:
    """What a request has beside the SDK's own headers; what the SDK adds that is not for this server is left out."""
    omitted = openai.Omit()
    headers: dict[str, Any] = dict(STREAMED)
    if key is None:
        headers["Authorization"] = omitted
    if not is_openai:  # the SDK takes these from the environment
        headers |= {"OpenAI-Organization": omitted, "OpenAI-Project": omitted}
    return headers | dict(further)
