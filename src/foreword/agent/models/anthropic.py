"""`AnthropicAdapter`: messages over the vendor's SDK, for Anthropic and every server that speaks its format.

    async with AnthropicAdapter() as anthropic:
        adapters = ModelAdapters(anthropic)

Needs the extra ``anthropic``; without it, importing this module raises `MissingExtraError`. The SDK does the transport.
The body is ours, byte for byte, and the SDK's own retries are off: one attempt in the log is one request on the wire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.agent.models.anthropic_client import MessagesClient
from foreword.agent.models.credentials import address_of, key_of
from foreword.agent.models.exchange import exchanged
from foreword.wire import anthropic
from foreword.wire.anthropic_settings import check_settings, with_limit
from foreword.wire.anthropic_stream import AnswerReader
from foreword.wire.profiles import ANTHROPIC, messages_profile_of
from foreword.wire.request import canonical_json

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from types import TracebackType
    from typing import Self

    from foreword.prompt.context import CancelToken
    from foreword.wire.chunks import Chunk
    from foreword.wire.profiles import MessagesProfile
    from foreword.wire.request import ModelConfig, ModelRequest

__all__ = ["AnthropicAdapter"]


class AnthropicAdapter:
    """Asks models over the messages format.

    One adapter serves many requests at a time, and several event loops. Use it as an async context manager, or call
    `aclose` in the loop that it was used in. It runs on asyncio and on trio; the SDK leaves its generators to the
    garbage collector, which trio remarks by a `ResourceWarning` (Python hides those unless told otherwise).

    A model's thoughts are not kept: they are no part of the answer, and are not sent back to it.

    Args:
        name: the provider under which it is registered. "anthropic" brings its address and the variable of its key;
            for any other server give ``base_url``.
        base_url: where the server is, without the path of the format, as in "http://localhost:8000".
        api_key: the key; by default that of the profile's environment variable. Other servers may need none.
        profile: how the server differs from others, and what is marked for its cache; by default that of the name.
        timeout: seconds that may pass without a byte from the server.
        headers: further headers of each request, as ``anthropic-beta``.

    Attributes:
        name: see above.
        version: of the bodies' format.
        profile: see above.

    Raises:
        ApiKeyError: there is no key, or one that no header can hold.
        ValueError: there is no address, or one that is not plain http or https, or that holds the format's path.
    """

    def __init__(
        self,
        name: str = "anthropic",
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        profile: MessagesProfile | None = None,
        timeout: float = 600.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.version = anthropic.VERSION
        self.profile = profile or messages_profile_of(name)
        address, key = address_of(name, base_url, self.profile), key_of(name, api_key, self.profile)
        is_vendors = self.profile.base_url == ANTHROPIC.base_url
        self._client = MessagesClient(address, key, timeout, headers or {}, is_vendors=is_vendors)

    @property
    def base_url(self) -> str:
        """Where the server is."""
        return self._client.address

    def resolve(self, config: ModelConfig) -> ModelConfig:
        """The config with its limit of tokens, since the format asks for one, its settings checked.

        Raises:
            InvalidModelSettingError: a setting that no body can carry.
        """
        check_settings(config)
        return with_limit(config, self.profile)

    def body(self, request: ModelRequest) -> bytes:
        """The body that `stream` sends: `foreword.wire.anthropic.body`, as a stream.

        Raises:
            ModelError: as `foreword.wire.anthropic.body`.
        """
        return canonical_json({**anthropic.body(request, profile=self.profile), "stream": True})

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
        return f"<AnthropicAdapter {self.name}: {self.base_url}>"
