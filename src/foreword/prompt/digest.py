"""Digests of rendered texts: BLAKE2b-256 with domain tags, so that no text can pass for another kind of thing."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Digests", "shared_digest"]

_MOST_REMEMBERED: Final = 4 * 1024 * 1024  # code points of all remembered texts together


def frame(data: bytes) -> bytes:
    """Length in 8 bytes, big-endian, then the bytes: what is concatenated can be taken apart in one way only."""
    return len(data).to_bytes(8, "big") + data


def shared_digest(data: bytes) -> bytes:
    """The digest of something that many prompts share: a section's text, a tool's schema."""
    return blake2b(frame(b"fw1/s") + frame(data), digest_size=32).digest()


class Digests:
    """The digests of texts seen lately: a text that many prompts share is hashed once."""

    __slots__ = ("_known", "_size")

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}
        self._size = 0

    def of_list(self, texts: Sequence[str]) -> str:
        """The digest of a list of texts, in hex: taken over the texts' own digests."""
        found = list(map(self._known.get, texts))
        digests = [self._taken(text) if known is None else known for text, known in zip(texts, found, strict=True)]
        whole = blake2b(frame(b"fw1/texts"), digest_size=32)
        whole.update(b"".join(digests))
        return whole.hexdigest()

    def _taken(self, text: str) -> bytes:
        if self._size > _MOST_REMEMBERED:
            self._known, self._size = {}, 0
        self._size += len(text)
        digest = self._known[text] = shared_digest(text.encode())
        return digest
