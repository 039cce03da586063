"""The digests of bodies that follow each other: of one that begins like the last, only the rest is hashed.

A request mostly repeats the one before it, and adds a little at its end. Hashing 100 KB takes 120 µs, as long as all
else that the log does in a step; holding them against the last 100 KB takes a tenth of that.
"""

from __future__ import annotations

from typing import Final

from foreword.session.digests import body_hash

__all__ = ["Bodies"]

CHUNK: Final = 4096
"""Bytes from one kept state of the hash to the next. A state takes 450 bytes; a chunk that differs is hashed whole."""


class Bodies:
    """Gives the digests of bodies as `body_digest` does. It keeps the last body, in chunks."""

    __slots__ = ("_chunks", "_hashes")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Keep nothing of the last body."""
        self._chunks: list[bytes] = []  # whole ones; apart, they are compared without a copy
        self._hashes = [body_hash()]  # before the first of them, and behind each

    @property
    def kept(self) -> int:
        """How many bytes of the last body are kept."""
        return len(self._chunks) * CHUNK

    def digest(self, body: bytes) -> bytes:
        """The digest of a body."""
        same = self._same(body)
        del self._chunks[same:], self._hashes[same + 1 :]
        hashed = self._hashes[same].copy()
        whole = len(body) - len(body) % CHUNK
        for at in range(same * CHUNK, whole, CHUNK):
            chunk = body[at : at + CHUNK]
            hashed.update(chunk)
            self._chunks.append(chunk)
            self._hashes.append(hashed.copy())
        hashed.update(body[whole:])
        return hashed.digest()

    def _same(self, body: bytes) -> int:
        """How many of the chunks a body begins with."""
        for at, chunk in enumerate(self._chunks):
            if not body.startswith(chunk, at * CHUNK):
                return at
        return len(self._chunks)
