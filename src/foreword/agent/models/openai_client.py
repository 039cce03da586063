"""The vendor's SDK as `OpenAIAdapter` uses it: connections, headers, and what a failure says.

The SDK is imported here and in `openai_failures` only; without the extra ``openai`` this module cannot be imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from foreword.agent.models.credentials import environment_headers
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
        ambient = environment_headers("OPENAI_CUSTOM_HEADERS")  # the SDK sends these, too
        super().__init__(address, key, timeout, {**ambient, **headers})
        self._headers = {**_sdk_headers(key, ambient, is_openai=is_openai), **headers}

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


def _sdk_headers(key: str | None, ambient: Mapping[str, str], *, is_openai: bool) -> dict[str, Any]:
    """What is said of the SDK's own headers: what it adds that is not for this server is left out. Lower-case names."""
    omitted = openai.Omit()
    # The SDK takes these from the environment, and prefers them to the key.
    theirs = () if is_openai else ("openai-organization", "openai-project", *ambient)
    headers: dict[str, Any] = {**dict.fromkeys(theirs, omitted), **STREAMED}
    if key is None:
        headers["authorization"] = omitted
    elif not is_openai:
        headers["authorization"] = f"Bearer {key}"
    return headers
