"""What a model adapter is: the border between the loop and a provider.

An adapter turns a neutral `ModelRequest` into the provider's bytes, sends them, and gives the answer back in neutral
pieces. All that can go wrong out there is a `Finish` of the stream; an exception is a fault of a program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from foreword.wire.chunks import Chunk, Finish, FinishKind, ModelFailure, TextChunk, ToolCallChunk, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from foreword.prompt.context import CancelToken
    from foreword.wire.request import ModelConfig, ModelRequest

__all__ = [
    "Chunk",
    "Finish",
    "FinishKind",
    "ModelAdapter",
    "ModelFailure",
    "TextChunk",
    "ToolCallChunk",
    "Usage",
]


@runtime_checkable
class ModelAdapter(Protocol):
    """Asks models of one provider.

    An adapter is for many requests at a time and keeps nothing between them that could change an answer.
    """

    @property
    def name(self) -> str:
        """The provider in a `ModelConfig`, as in "openai"."""
        ...

    @property
    def version(self) -> str:
        """The version of the body's format: equal versions make equal bytes of equal requests. Recorded per attempt."""
        ...

    def resolve(self, config: ModelConfig) -> ModelConfig:
        """The config to send: checked, and with what the adapter fills in.

        Raises:
            ModelError: a setting that the provider would refuse.
        """
        ...

    def body(self, request: ModelRequest) -> bytes:
        """The bytes that `stream` sends as the body of the request; the same bytes for the same request, always.

        Raises:
            ModelError: the request cannot be spelled for the provider, as with a tool name that it refuses.
        """
        ...

    def stream(self, request: ModelRequest, signal: CancelToken | None = None) -> AsyncGenerator[Chunk]:
        """Send the request once, without retries, and give the answer piece by piece.

        The last piece is a `Finish`, the only one. Whoever stops before it closes the stream (``aclosing``), which
        gives the connection back.

        Args:
            request: what to send.
            signal: when it is cancelled, the connection is closed at once and the finish is ``"aborted"``.

        Raises:
            ModelError: as with `body`; nothing was sent then.
        """
        ...
