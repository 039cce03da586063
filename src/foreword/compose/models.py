"""The model adapters of a deployment: those that ship are made when an agent first needs one.

A plugin may register others, or one in the place of ours, before that: ``models: ModelAdapters`` gives it the registry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from foreword.agent.models.registry import ModelAdapters
from foreword.agent.models.shipped import SHIPPED, shipped_adapter
from foreword.errors import ApiKeyError, UnknownProviderError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

    from foreword.agent.models.shipped import ShippedAdapter
    from foreword.compose.secrets import Secrets
    from foreword.kernel.context import Context

__all__ = ["Shipped", "note_keys"]

_LEAST: Final = 8  # characters; what is shorter is a word for a server that wants no key, and stands in any text


def note_keys(secrets: Secrets, environment: Mapping[str, str]) -> None:
    """Tell secrets the keys of the providers that ship, so that nobody's message shows them."""
    for profile in SHIPPED.values():
        variable = profile.key_variable
        if variable is not None and len(environment.get(variable, "")) >= _LEAST:
            secrets.filled_in(f"${{env:{variable}}}")


class Shipped:
    """Makes adapters, and closes those that it made; an async context manager.

    Args:
        environment: where keys and addresses are looked up.
        secrets: are told each key, so that nobody's message shows it.
    """

    __slots__ = ("_environment", "_made", "_secrets")

    def __init__(self, environment: Mapping[str, str], secrets: Secrets) -> None:
        self._environment, self._secrets = environment, secrets
        self._made: list[ShippedAdapter] = []

    def serve(self, provider: str, ctx: Context) -> None:
        """See that a provider has an adapter.

        Raises:
            UnknownProviderError: nobody registered one, and none ships.
            ApiKeyError: the variable of its key is not set.
            MissingExtraError: its package is not installed.
            ValueError: the address that the environment gives is none.
        """
        models = ctx.require(ModelAdapters)
        if provider in models.names:
            return
        if provider not in SHIPPED:
            raise UnknownProviderError(provider, sorted({*models.names, *SHIPPED}))
        adapter = self._adapter(provider)
        self._made.append(adapter)
        models.register(adapter)

    def _adapter(self, provider: str) -> ShippedAdapter:
        profile = SHIPPED[provider]
        key = self._environment.get(profile.key_variable or "")
        if not key:
            raise ApiKeyError(provider, f"is missing; set {profile.key_variable}")
        note_keys(self._secrets, self._environment)
        return shipped_adapter(provider, api_key=key, base_url=self._environment.get(profile.url_variable or ""))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import anyio

        with anyio.CancelScope(shield=True):
            for adapter in self._made:
                await adapter.aclose()
