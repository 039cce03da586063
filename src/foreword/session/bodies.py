"""The digests of bodies that follow each other: of one that begins like the last, only the rest is hashed.

A request mostly repeats the one before it, and adds a little at its end. Hashing 100 KB takes 120 µs, longer than all
else that the log does in a step; holding them against the last 100 KB takes 4 to 10 µs, as near as they are in caches.
"""

from __future__ import annotations

from typing import Final

from foreword.session.digests import body_hash

__all__ = ["Bodies"]

CHUNK: Final = 2048
"""Bytes from one kept state of the hash to the next. A state takes 450 bytes; a chunk that differs is hashed whole."""


class Bodies:
    """Gives the digests of bodies as `body_digest` does. It keeps the last body."""

    __slots__ = ("_hashes", "_last")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Keep nothing of the last body."""
        self._last = b""
        self._hashes = [body_hash()]  # before its first chunk, and behind each that is whole

    @property
    def kept(self) -> int:
        """How many bytes of the last body are kept."""
        return len(self._last)

    def digest(self, body: bytes) -> bytes:
        """The digest of a body."""
        hashes, same = self._hashes, self._same(body)
        del hashes[same + 1 :]
        hashed, at = hashes[same].copy(), same * CHUNK
        while at + CHUNK <= len(body):
            hashed.update(body[at : at + CHUNK])
            hashes.append(hashed.copy())
            at += CHUNK
        hashed.update(body[at:])
        self._last = bytes(body)  # no copy, unless an adapter gives what may change
        return hashed.digest()

    def _same(self, body: bytes) -> int:
        """With how many chunks of the last one a body begins. Found by halving; what is seen to be equal is left."""
        last, same, most = memoryview(self._last), 0, len(self._hashes) - 1
        while same < most:
            half = (same + most + 1) // 2
            if body.startswith(last[same * CHUNK : half * CHUNK], same * CHUNK):
                same = half
            else:
                most = half - 1
        return same
