"""Blobs that were read once are not read again: consecutive steps share most of theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from foreword.session.blobs import Blobs, ErasedBlob

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["KeptBlobs"]

_MOST_BYTES: Final = 64 * 1024 * 1024  # then all is forgotten, and read anew


class KeptBlobs(Blobs):
    """Blobs of a store, kept once they were read and checked; for one walk along a session."""

    __slots__ = ("_kept", "_size")

    def __init__(self, blobs: Blobs) -> None:
        """Read through these."""
        super().__init__(blobs._source)  # pyright: ignore[reportPrivateUsage] - of its own kind
        self._kept: dict[bytes, bytes | None] = {}
        self._size = 0

    async def read(self, digests: Iterable[bytes]) -> dict[bytes, bytes]:
        """The contents behind digests, as `Blobs.read` gives them."""
        held = await self.held(digests)
        empty = next((digest for digest, content in held.items() if content is None), None)
        if empty is not None:
            raise ErasedBlob(empty)
        return {digest: content for digest, content in held.items() if content is not None}

    async def held(self, digests: Iterable[bytes]) -> dict[bytes, bytes | None]:
        """The contents behind digests, as `Blobs.held` gives them."""
        wanted = list(dict.fromkeys(digests))
        known = self._kept
        fresh = await super().held([digest for digest in wanted if digest not in known])
        found = {digest: fresh[digest] if digest in fresh else known[digest] for digest in wanted}
        self._size += sum(len(content or b"") for content in fresh.values())
        if self._size > _MOST_BYTES:
            self._kept, self._size = {}, 0
        self._kept.update(fresh)
        return found
