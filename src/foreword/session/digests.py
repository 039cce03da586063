"""The digests of the log: BLAKE2b-256 with domain tags, so that nothing can pass for another kind of thing.

Shared blobs (`prompt.digest.shared_digest`) are the same in every session; private ones are salted.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from foreword.prompt.digest import frame, shared_digest

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "DIGEST_SIZE",
    "EMPTY_HISTORY",
    "SALT_SIZE",
    "body_digest",
    "body_hash",
    "event_digest",
    "history_digest",
    "private_digest",
    "request_digest",
    "shared_digest",
]

DIGEST_SIZE: Final = 32
SALT_SIZE: Final = 16


def _begun(head: bytes) -> Callable[[], blake2b]:
    """Makes hashes that have taken in how all of a kind begin; a copy takes a third of the time that a new one does."""
    return blake2b(head, digest_size=DIGEST_SIZE).copy


# What is hashed most begins with a tag and the length of what comes next, which never varies.
_SIZE = DIGEST_SIZE.to_bytes(8, "big")
_private = _begun(frame(b"fw1/p") + SALT_SIZE.to_bytes(8, "big"))
_event = _begun(frame(b"fw1/event") + _SIZE)
_history = _begun(frame(b"fw1/h") + _SIZE)
_request = _begun(frame(b"fw1/request") + _SIZE)

EMPTY_HISTORY: Final = blake2b(frame(b"fw1/h"), digest_size=DIGEST_SIZE).digest()
"""What the history's digest is rooted in: that of a history without messages."""


def private_digest(salt: bytes, data: bytes) -> bytes:
    """The digest of what belongs to one session; without the salt its content cannot be guessed from it."""
    hashed = _private()
    hashed.update(salt + len(data).to_bytes(8, "big") + data)
    return hashed.digest()


def event_digest(before: bytes, envelope: bytes) -> bytes:
    """The digest of an event: over the one before it and its own envelope, as stored."""
    hashed = _event()
    hashed.update(before + len(envelope).to_bytes(8, "big") + envelope)
    return hashed.digest()


def history_digest(before: bytes, message: bytes) -> bytes:
    """The digest of a history one message longer, given that message's digest."""
    hashed = _history()
    hashed.update(before + _SIZE + message)
    return hashed.digest()


def request_digest(header: bytes, history: bytes) -> bytes:
    """The digest of a request: over those of its header and its history."""
    hashed = _request()
    hashed.update(header + _SIZE + history)
    return hashed.digest()


def body_digest(body: bytes) -> bytes:
    """The digest of what an adapter sends."""
    hashed = body_hash()
    hashed.update(body)
    return hashed.digest()


body_hash: Final = _begun(frame(b"fw1/body"))
"""What a body is hashed with, before anything of it.

Its length is left out, so that bodies which begin alike are hashed alike up to where they differ (see `bodies`).
Nothing follows a body, so that none can pass for another all the same.
"""
