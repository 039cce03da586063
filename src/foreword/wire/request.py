"""A model request in neutral form: system text, tools, messages, configuration; and its canonical bytes.

    request = ModelRequest("You are …", tools, (UserMessage("Hello."),), ModelConfig("openai", "gpt-5"))
    request.canonical()     # what `rebuild` gives again, byte for byte

The canonical bytes are JSON with the keys ``system``, ``tools``, ``messages``, ``config`` in that order, without
blanks, in UTF-8; within a tool's schema and the settings the order of keys is that in which they were given.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from foreword.errors import InvalidModelError, NotJsonError, with_article
from foreword.jsonvalue import freeze, thaw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foreword.jsonvalue import JsonValue
    from foreword.prompt.contributions import ToolSchema
    from foreword.prompt.origin import Origin
    from foreword.wire.messages import Message

__all__ = ["ModelConfig", "ModelRequest", "canonical_json", "tool_to_json"]


def canonical_json(value: object) -> bytes:
    """JSON without blanks, in UTF-8, keys in their order; for values that `jsonvalue` lets pass."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Which model is asked, and how.

    Attributes:
        provider: the name of an adapter, as in "openai".
        model: the provider's name of the model.
        settings: what else is asked of it, by neutral name (``temperature``, ``max_tokens``, ``stop``,
            ``reasoning_effort``) or by the provider's own; frozen JSON.

    Raises:
        NotJsonError: a name holds half a character, or a setting is no JSON: no log could keep it.
        TypeError: a name is no text.
    """

    provider: str
    model: str
    settings: Mapping[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])

    def __post_init__(self) -> None:
        object.__setattr__(self, "provider", _name(self.provider, "provider"))
        object.__setattr__(self, "model", _name(self.model, "model"))
        object.__setattr__(self, "settings", freeze(dict(self.settings)))

    @classmethod
    def parse(cls, text: str, settings: Mapping[str, JsonValue] | None = None) -> ModelConfig:
        """The config that ``"provider:model"`` stands for, as in ``"openai:gpt-5"``.

        The first colon parts the two, so a model's own name may hold some.

        Args:
            text: provider and model.
            settings: what else is asked of it.

        Raises:
            InvalidModelError: one of the two is missing, or has blanks around it.
            NotJsonError: a setting is no JSON.
        """
        provider, colon, model = text.partition(":")
        if not colon or not provider or not model or provider != provider.strip() or model != model.strip():
            raise InvalidModelError(text)
        return cls(provider, model, {} if settings is None else settings)

    def to_json(self) -> dict[str, Any]:
        """The neutral JSON: provider, model, then the settings in their order."""
        return {"provider": self.provider, "model": self.model, "settings": thaw(dict(self.settings))}

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"


def _name(given: object, what: str) -> str:
    """A name as the log gives it back: a plain string. Empty ones pass; they stand for a model not chosen yet."""
    if not isinstance(given, str):
        raise TypeError(f"the {what} of a ModelConfig is its name as a text, not {with_article(type(given).__name__)}")
    try:
        return str(freeze(given))
    except NotJsonError as fault:
        raise NotJsonError(f"the {what} of a ModelConfig", fault.reason) from None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """All that a model gets to see, and how it is asked."""

    system: str  # empty for none
    tools: tuple[ToolSchema, ...]
    messages: tuple[Message, ...]
    config: ModelConfig
    # Who brought each tool, as far as known, so that errors can name them. No part of what is sent, kept or compared.
    origins: tuple[Origin | None, ...] = field(default=(), compare=False, repr=False)
    # How many characters of the system text, from its start, are the same in every step. A provider that wants to be
    # told what to keep is told to keep this much for other sessions, too. No part of the canonical bytes.
    stable_head: int = field(default=0, compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """The neutral JSON, with its keys in canonical order."""
        return {
            "system": self.system,
            "tools": [tool_to_json(tool) for tool in self.tools],
            "messages": [message.to_json() for message in self.messages],
            "config": self.config.to_json(),
        }

    def canonical(self) -> bytes:
        """The canonical bytes."""
        return canonical_json(self.to_json())


def tool_to_json(tool: ToolSchema) -> dict[str, Any]:
    """A tool's neutral JSON: name, description, parameters."""
    return {"name": tool.name, "description": tool.description, "parameters": thaw(dict(tool.parameters))}
