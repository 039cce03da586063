"""`OpenAIAdapter`: chat completions over the vendor's SDK, for OpenAI and every server that speaks its format.

    async with OpenAIAdapter() as openai, OpenAIAdapter("deepseek") as deepseek:
        adapters = ModelAdapters(openai, deepseek)

Needs the extra ``openai``; without it, importing this module raises `MissingExtraError`. The SDK does the transport.
The body is ours, byte for byte, and the SDK's own retries are off: one attempt in the log is one request on the wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.agent.models.credentials import address_of, key_of
from foreword.agent.models.exchange import exchanged
from foreword.agent.models.openai_client import ChatClient
from foreword.wire import openai_chat
from foreword.wire.openai_chat_stream import AnswerReader
from foreword.wire.profiles import OPENAI, profile_of
from foreword.wire.request import canonical_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from types import TracebackType
    from typing import Self

    from foreword.prompt.context import CancelToken
    from foreword.wire.chunks import Chunk
    from foreword.wire.profiles import ChatProfile
    from foreword.wire.request import ModelConfig, ModelRequest

__all__ = ["OpenAIAdapter"]


class OpenAIAdapter:
    """Asks models over the chat-completions format.

    One adapter serves many requests at a time, and several event loops. Use it as an async context manager, or call
    `aclose` in the loop that it was used in. It runs on asyncio and on trio; the SDK leaves its generators to the
    garbage collector, which trio remarks by a `ResourceWarning` (Python hides those unless told otherwise).

    Args:
        name: the provider under which it is registered. That of a known profile ("openai", "deepseek") brings its
            address and the variable of its key; for any other server give ``base_url``.
        base_url: where the server is, the path included, as in "http://localhost:8000/v1".
        api_key: the key; by default that of the profile's environment variable. Other servers may need none.
        profile: how the server differs from others; by default that of the name.
        timeout: seconds that may pass without a byte from the server.
        headers: further headers of each request.

    Attributes:
        name: see above.
        version: of the bodies' format.
        profile: see above.

    Raises:
        ApiKeyError: there is no key, or one that no header can hold.
        ValueError: there is no address, or one that is not plain http or https.
    """

    def __init__(
        self,
        name: str = "openai",
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        profile: ChatProfile | None = None,
        timeout: float = 600.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.version = openai_chat.VERSION
        self.profile = profile or profile_of(name)
        address, key = address_of(name, base_url, self.profile), key_of(name, api_key, self.profile)
        self._client = ChatClient(address, key, timeout, headers or {}, is_openai=self.profile is OPENAI)

    @property
    def base_url(self) -> str:
        """Where the server is."""
        return self._client.address

    def resolve(self, config: ModelConfig) -> ModelConfig:
        """The config as it is, its settings checked; what it leaves open is left to the server.

        Raises:
            InvalidModelSettingError: a setting that no body can carry.
        """
        openai_chat.check_settings(config, self.profile)
        return config

    def body(self, request: ModelRequest) -> bytes:
        """The body that `stream` sends: `openai_chat.body`, then the options of a stream with its usage at the end.

        Raises:
            ModelError: as `openai_chat.body`.
        """
        options = {"stream_options": {"include_usage": True}} if self.profile.stream_usage else {}
        return canonical_json({**openai_chat.body(request, profile=self.profile), "stream": True, **options})

    def stream(self, request: ModelRequest, signal: CancelToken | None = None) -> AsyncGenerator[Chunk]:
        """Send a request once and give the answer piece by piece; see `ModelAdapter.stream`.

        Raises:
            InactiveContextError: the adapter is closed.
        """
        return exchanged(self._client, lambda: self.body(request), AnswerReader(self.profile), signal)

    async def aclose(self) -> None:
        """Close the connections; requests that are under way end in a failure. Closing twice does nothing."""
        await self._client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<OpenAIAdapter {self.name}: {self.base_url}>"
