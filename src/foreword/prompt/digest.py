"""Digests of rendered texts: BLAKE2b-256 with domain tags, so that no text can pass for another kind of thing."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["digest_of_texts", "shared_digest"]


def frame(data: bytes) -> bytes:
    """Length in 8 bytes, big-endian, then the bytes: what is concatenated can be taken apart in one way only."""
    return len(data).to_bytes(8, "big") + data


def shared_digest(data: bytes) -> bytes:
    """The digest of something that many prompts share: a section's text, a tool's schema."""
    return blake2b(frame(b"fw1/s") + frame(data), digest_size=32).digest()


def digest_of_texts(texts: Iterable[str]) -> str:
    """The digest of a list of texts, in hex: taken over the texts' own digests, so a shared text is hashed once."""
    whole = blake2b(frame(b"fw1/texts"), digest_size=32)
    for text in texts:
        whole.update(shared_digest(text.encode()))
    return whole.hexdigest()
