"""The formats of model requests that a recorder can read: from a body to what it says, from an answer to what came.

One file a format, each pure: no SDK, no network. `format_of` tells by its address which one a request is in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from foreword.integrations.formats.answers import Answer
    from foreword.integrations.told import Told

__all__ = ["Format", "format_of"]


@dataclass(frozen=True, slots=True)
class Format:
    """One format of requests."""

    name: str
    read: Callable[[Mapping[str, Any]], Told]  # a body, parsed; raises ValueError, KeyError or TypeError
    answer: Callable[[list[Mapping[str, Any]], bool], Answer]  # events of a stream, or one whole answer


def format_of(path: str) -> Format | None:
    """The format of a request by the path that it goes to; None for what is no request of a model that we can read."""
    from foreword.integrations.formats import answers, anthropic, openai_chat, openai_responses

    if path.endswith("/chat/completions"):
        return Format("openai-chat", openai_chat.read, answers.of_chat)
    if path.endswith("/responses"):
        return Format("openai-responses", openai_responses.read, answers.of_responses)
    if path.endswith("/v1/messages"):
        return Format("anthropic-messages", anthropic.read, answers.of_messages)
    return None
