"""The adapters that ship, by the name of the provider. An SDK is loaded only for whoever makes one."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from foreword.agent.models.adapter import ModelAdapter
from foreword.errors import UnknownProviderError
from foreword.wire.profiles import ANTHROPIC, DEEPSEEK, OPENAI

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foreword.wire.profiles import ServerProfile

__all__ = ["SHIPPED", "ShippedAdapter", "shipped_adapter"]

SHIPPED: Final[Mapping[str, ServerProfile]] = MappingProxyType(
    {profile.name: profile for profile in (ANTHROPIC, DEEPSEEK, OPENAI)}
)
"""The profiles of the providers that an adapter ships for: where they are, and which variables say so."""


class ShippedAdapter(ModelAdapter, Protocol):
    """An adapter that holds connections."""

    async def aclose(self) -> None:
        """Close them."""
        ...


def shipped_adapter(provider: str, *, api_key: str, base_url: str | None = None) -> ShippedAdapter:
    """A new adapter for a provider.

    Args:
        provider: one of `SHIPPED`.
        api_key: what to ask it with.
        base_url: where it is, if not where its profile says; the environment is not asked.

    Raises:
        UnknownProviderError: no adapter ships for it.
        MissingExtraError: the extra of that adapter is not installed.
        ApiKeyError: no header can hold the key.
        ValueError: the address is none.
    """
    profile = SHIPPED.get(provider)
    if profile is None:
        raise UnknownProviderError(provider, tuple(SHIPPED))
    address = base_url or profile.base_url
    if profile is ANTHROPIC:
        from foreword.agent.models.anthropic import AnthropicAdapter

        return AnthropicAdapter(provider, api_key=api_key, base_url=address)
    from foreword.agent.models.openai import OpenAIAdapter

    return OpenAIAdapter(provider, api_key=api_key, base_url=address)
