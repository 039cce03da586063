"""The adapters that ship, by the provider's name."""

import pytest

from foreword.agent.models.anthropic import AnthropicAdapter
from foreword.agent.models.openai import OpenAIAdapter
from foreword.agent.models.shipped import SHIPPED, shipped_adapter
from foreword.errors import ApiKeyError, UnknownProviderError


@pytest.mark.parametrize("provider", SHIPPED)
def test_each_has_its_adapter(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The adapter bears the provider's name, and goes where its profile says, whatever the environment says."""
    for variable in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.setenv(variable, "http://elsewhere")
    adapter = shipped_adapter(provider, api_key="sk-1")
    assert isinstance(adapter, AnthropicAdapter if provider == "anthropic" else OpenAIAdapter)
    assert (adapter.name, adapter.profile) == (provider, SHIPPED[provider])
    assert adapter.base_url == SHIPPED[provider].base_url
    elsewhere = shipped_adapter(provider, api_key="sk-1", base_url="http://localhost:1")
    assert isinstance(elsewhere, AnthropicAdapter | OpenAIAdapter)
    assert elsewhere.base_url == "http://localhost:1"


def test_others() -> None:
    """A provider without an adapter, and a key that cannot be sent, are told."""
    with pytest.raises(UnknownProviderError, match='did you mean "openai"'):
        shipped_adapter("opnai", api_key="sk-1")
    with pytest.raises(ApiKeyError):
        shipped_adapter("anthropic", api_key="")
