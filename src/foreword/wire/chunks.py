"""What comes back from a model, in neutral form: pieces of an answer, and how it ended.

Adapters make them (`foreword.agent.models`), the loop reads them, the session log keeps how each attempt ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

__all__ = ["FAILURE_CODES", "Chunk", "Finish", "FinishKind", "ModelFailure", "TextChunk", "ToolCallChunk", "Usage"]

FinishKind: TypeAlias = Literal["stop", "tool-calls", "max-tokens", "error", "aborted"]
"""How an answer ended: as the model meant, asking for tools, cut by its limit, failed, or cancelled by us."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a request cost, in the provider's tokens."""

    input_tokens: int  # all of them, however they are paid for
    output_tokens: int
    cached_tokens: int | None = None  # of the input, those read from the provider's cache; None if it does not say
    written_tokens: int | None = None  # of the input, those written to it, where that costs; None if it does not say


@dataclass(frozen=True, slots=True)
class ModelFailure:
    """Why there is no answer; plain facts, so that it can be logged and a policy can decide whether to try again."""

    message: str  # in words; never holds a credential
    code: str  # ours, a stable word of `FAILURE_CODES`
    status: int | None = None  # of the HTTP answer, if there was one
    transient: bool = False  # whether the same request may well succeed later
    retry_after: float | None = None  # seconds that the provider asks to wait


FAILURE_CODES: Final = (
    "rate_limit",
    "quota",
    "overloaded",
    "server_error",
    "conflict",
    "timeout",
    "connection",
    "stream_cut",
    "malformed_response",
    "content_filter",
    "refusal",
    "authentication",
    "permission",
    "not_found",
    "context_length",
    "invalid_request",
    "unknown",
)
"""The codes of failures, whatever the provider calls them."""


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A further piece of the answer's text; never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallChunk:
    """A further piece of a tool call; those of one ``index`` belong together.

    The first piece of a call has its ``id`` and ``name``, the later ones repeat them. ``arguments`` is what is to be
    appended to the pieces before, and may be empty.
    """

    index: int  # from 0, without gaps, in the order of the calls
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a stream: exactly one, and nothing after it."""

    kind: FinishKind
    usage: Usage | None = None
    failure: ModelFailure | None = None  # there if and only if the kind is "error"
    raw_reason: str = ""  # the provider's own word; for "aborted" the token's reason; empty if there was none


Chunk: TypeAlias = TextChunk | ToolCallChunk | Finish
"""What a stream gives: pieces in their order, then one `Finish`."""
