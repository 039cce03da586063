"""Blobs: what the log holds of content. Reading one checks it against its digest, always."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, cast

from foreword.session.digests import private_digest, shared_digest
from foreword.session.placeholders import ERASED, NOT_STORED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from foreword.session.store.contract import BlobRow

__all__ = ["NOTHING", "BlobFault", "BlobReader", "Blobs", "ErasedBlob", "Gone", "add_blob", "blob_fault", "utf8"]


class BlobFault(Exception):  # noqa: N818 - caught and told as an error that names the event
    """A blob that is missing, or is not what its digest says."""

    def __init__(self, digest: bytes, why: str) -> None:
        super().__init__(why)
        self.digest, self.why = digest, why


class ErasedBlob(BlobFault):
    """A blob that was emptied."""

    def __init__(self, digest: bytes) -> None:
        super().__init__(digest, "it is empty, and no event says that it was erased, or never stored")


@dataclass(frozen=True, slots=True)
class Gone:
    """Of which blobs the content may be missing."""

    unseen: AbstractSet[bytes] = frozenset()  # that were erased when the model was asked: it saw placeholders
    erased: AbstractSet[bytes] = frozenset()  # that were erased, if ever
    withheld: AbstractSet[bytes] = frozenset()  # that were never stored
    any: bool = False  # whatever is empty

    def has(self, digest: bytes) -> bool:
        """Whether the content of a blob may be missing."""
        return self.any or digest in self.unseen or digest in self.erased or digest in self.withheld

    def mark(self, digest: bytes) -> str:
        """The text that stands in its place."""
        return ERASED if digest in self.unseen or digest in self.erased else NOT_STORED


NOTHING: Final = Gone()
"""What is empty then is a fault."""


class BlobReader(Protocol):
    """Where blobs come from: a store's ``blobs``."""

    async def blobs(self, digests: Iterable[bytes]) -> dict[bytes, BlobRow]:
        """The blobs of these digests."""
        ...


class Blobs:
    """Reads the contents of blobs, each checked."""

    __slots__ = ("_source",)

    def __init__(self, source: BlobReader) -> None:
        self._source = source

    async def read(self, digests: Iterable[bytes]) -> dict[bytes, bytes]:
        """The contents behind digests.

        Raises:
            BlobFault: one is missing or wrong.
            ErasedBlob: one is empty.
        """
        wanted = list(dict.fromkeys(digests))
        rows = await self._source.blobs(wanted) if wanted else {}
        return {digest: content_of(rows.get(digest), digest) for digest in wanted}

    async def held(self, digests: Iterable[bytes]) -> dict[bytes, bytes | None]:
        """The contents behind digests; None for those that are empty.

        Raises:
            BlobFault: one is missing or wrong.
        """
        wanted = list(dict.fromkeys(digests))
        rows = await self._source.blobs(wanted) if wanted else {}
        return {digest: _held(rows.get(digest), digest) for digest in wanted}

    async def read_what_is_left(self, digests: Iterable[bytes], gone: Gone) -> dict[bytes, bytes | None]:
        """The contents behind digests; None for what is gone.

        Raises:
            BlobFault: one is missing or wrong.
            ErasedBlob: one is empty that is not to be.
        """
        contents = await self.held(digests)
        for digest, content in contents.items():
            if digest in gone.unseen:
                contents[digest] = None
            elif content is None and not gone.has(digest):
                raise ErasedBlob(digest)
        return contents

    async def one(self, digest: bytes) -> bytes:
        """The content behind one digest."""
        return (await self.read((digest,)))[digest]


def _held(row: BlobRow | None, digest: bytes) -> bytes | None:
    is_empty = row is not None and row.body is None
    return None if is_empty else content_of(row, digest)


def content_of(row: BlobRow | None, digest: bytes) -> bytes:
    """The content of a row, checked."""
    fault = blob_fault(row, digest)
    if fault is not None:
        raise fault
    assert row is not None  # noqa: S101 - or there was a fault
    assert row.body is not None  # noqa: S101 - or there was a fault
    return row.body


def blob_fault(row: BlobRow | None, digest: bytes) -> BlobFault | None:
    """What is wrong with a row, if anything is."""
    if row is None:
        return BlobFault(digest, "it is missing")
    if row.body is None:
        return ErasedBlob(digest)
    made = shared_digest(row.body) if row.salt is None else private_digest(row.salt, row.body)
    return None if made == digest == row.digest else BlobFault(digest, "its content does not match its digest")


def utf8(text: str) -> bytes:
    """The bytes of a text.

    Raises:
        TypeError: it is no string.
        UnicodeEncodeError: it holds a lone surrogate.
    """
    if not isinstance(cast("object", text), str):
        raise TypeError(f"{text!r} is no string")
    return text.encode()


def add_blob(blobs: dict[bytes, bytes], body: bytes) -> bytes:
    """Put a shared blob among others, and give its digest."""
    digest = shared_digest(body)
    blobs[digest] = body
    return digest
