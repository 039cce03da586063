"""How servers differ that speak one wire format: data, no code of theirs.

A profile says what a server calls things and what it refuses. Adapters and the pure functions of this package read it;
for a server of your own, make one with `dataclasses.replace(COMPATIBLE, …)`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ANTHROPIC",
    "COMPATIBLE",
    "COMPATIBLE_MESSAGES",
    "DEEPSEEK",
    "OPENAI",
    "ChatProfile",
    "FinishWord",
    "MarkPlace",
    "MessagesProfile",
    "ServerProfile",
    "ToolNameRule",
    "messages_profile_of",
    "profile_of",
]

FinishWord: TypeAlias = Literal["stop", "tool-calls", "max-tokens", "content_filter", "overloaded", "refusal"]
"""What a provider's finish reason means; the last three are failures."""

MarkPlace: TypeAlias = Literal["system", "stable-head", "tools"]
"""The end of what a mark says to keep: of all the system text, of its stable head, of the tools."""


@dataclass(frozen=True, slots=True)
class ToolNameRule:
    """Which names of tools a provider accepts."""

    pattern: str  # a regular expression that a whole name must match
    words: str  # the same, as the end of a sentence

    def accepts(self, name: str) -> bool:
        """Whether the provider accepts a name."""
        return re.fullmatch(self.pattern, name) is not None


_FUNCTION_NAMES = ToolNameRule(
    "[a-zA-Z0-9_-]{1,64}", "a name has 1 to 64 characters, and only a-z, A-Z, 0-9, underscores and dashes"
)
_REASONS: Mapping[str, FinishWord] = MappingProxyType(
    {"stop": "stop", "tool_calls": "tool-calls", "length": "max-tokens", "content_filter": "content_filter"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProfile:
    """What is to be known of any server."""

    name: str  # of the provider, as errors show it
    base_url: str | None  # where it is; None where the user must say
    url_variable: str | None = None  # the environment variable that says where else it is
    key_variable: str | None  # the environment variable with the API key; None where a server may need no key


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatProfile(ServerProfile):
    """A server that speaks OpenAI's chat-completions format."""

    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    developer_models: tuple[str, ...] = ()  # globs of models whose instructions are a developer message
    stream_usage: bool = True  # whether it may be asked, in ``stream_options``, to say at the end what it cost
    tool_names: ToolNameRule = _FUNCTION_NAMES
    finish_reasons: Mapping[str, FinishWord] = field(default_factory=lambda: _REASONS, hash=False)

    def instructions_role(self, model: str) -> Literal["system", "developer"]:
        """The role of the one message that holds the system text."""
        return "developer" if any(fnmatchcase(model, glob) for glob in self.developer_models) else "system"


OPENAI = ChatProfile(
    name="openai",
    base_url="https://api.openai.com/v1",
    url_variable="OPENAI_BASE_URL",
    key_variable="OPENAI_API_KEY",
    # "max_tokens" is deprecated there, and reasoning models refuse it (API reference, "Create chat completion").
    max_tokens_key="max_completion_tokens",
    # Since o1, developer messages replace system messages; models that are not listed take either.
    developer_models=("o1", "o1-2*", "o1-pro*", "o3*", "o4*", "gpt-5*"),
)
DEEPSEEK = ChatProfile(
    name="deepseek",
    base_url="https://api.deepseek.com",
    key_variable="DEEPSEEK_API_KEY",
    finish_reasons=MappingProxyType({**_REASONS, "insufficient_system_resource": "overloaded"}),
)
COMPATIBLE = ChatProfile(
    name="compatible",
    base_url=None,
    key_variable=None,
    finish_reasons=MappingProxyType({**_REASONS, "eos": "stop", "eos_token": "stop", "stop_sequence": "stop"}),
)
"""Any other server: only what all of them understand."""


_MESSAGES_NAMES = ToolNameRule(
    "[a-zA-Z0-9_-]{1,128}", "a name has 1 to 128 characters, and only a-z, A-Z, 0-9, underscores and dashes"
)
_STOP_REASONS: Mapping[str, FinishWord] = MappingProxyType(
    {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "tool_use": "tool-calls",
        "max_tokens": "max-tokens",
        "model_context_window_exceeded": "max-tokens",
        "refusal": "refusal",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesProfile(ServerProfile):
    """A server that speaks Anthropic's messages format.

    The marks tell it which beginnings of a request to keep. There are at most `most_marks` of them, those that a user's
    own messages bring included.
    """

    max_tokens: int  # the format asks for a limit; this one is sent if the config has none
    tool_names: ToolNameRule = _MESSAGES_NAMES
    finish_reasons: Mapping[str, FinishWord] = field(default_factory=lambda: _STOP_REASONS, hash=False)
    most_marks: int = 4  # that the server takes
    head_marks: int = 2  # of them, how many go at most to the tools and the system text
    mark_places: tuple[MarkPlace, ...] = ("system", "stable-head", "tools")  # where, the more useful place first
    message_marks: int = 2  # and how many to the last messages of the user
    lifetime: Literal["5m", "1h"] | None = None  # of what is marked; None for the server's own, which is 5 minutes


ANTHROPIC = MessagesProfile(
    name="anthropic",
    base_url="https://api.anthropic.com",
    url_variable="ANTHROPIC_BASE_URL",
    key_variable="ANTHROPIC_API_KEY",
    max_tokens=32_000,  # all models that are served take that much, and only what is used is paid for
)
COMPATIBLE_MESSAGES = MessagesProfile(name="compatible", base_url=None, key_variable=None, max_tokens=4096)
"""Any other server of that format."""

_CHAT = {profile.name: profile for profile in (OPENAI, DEEPSEEK)}


def profile_of(provider: str) -> ChatProfile:
    """The profile of a provider of chat completions by its name; `COMPATIBLE` for one that is not known here."""
    return _CHAT.get(provider, COMPATIBLE)


def messages_profile_of(provider: str) -> MessagesProfile:
    """The profile of a provider of messages by its name; `COMPATIBLE_MESSAGES` for one that is not known here."""
    return ANTHROPIC if provider == ANTHROPIC.name else COMPATIBLE_MESSAGES
