"""The digests of the log: BLAKE2b-256 with domain tags, so that nothing can pass for another kind of thing.

Shared blobs (`prompt.digest.shared_digest`) are the same in every session; private ones are salted.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from foreword.prompt.digest import frame, shared_digest

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

_PRIVATE = frame(b"fw1/p") + SALT_SIZE.to_bytes(8, "big")
_EVENT = frame(b"fw1/event") + DIGEST_SIZE.to_bytes(8, "big")
_SIZE = DIGEST_SIZE.to_bytes(8, "big")
_HISTORY = frame(b"fw1/h")
_REQUEST = frame(b"fw1/request")
_BODY = frame(b"fw1/body")  # the body follows as it is; see `body_hash`
# The tags of what is hashed most are followed by the length of what comes next, which never varies.


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=DIGEST_SIZE).digest()


EMPTY_HISTORY: Final = _digest(_HISTORY)
"""What the history's digest is rooted in: that of a history without messages."""


def private_digest(salt: bytes, data: bytes) -> bytes:
    """The digest of what belongs to one session; without the salt its content cannot be guessed from it."""
    return blake2b(_PRIVATE + salt + len(data).to_bytes(8, "big") + data, digest_size=DIGEST_SIZE).digest()


def event_digest(before: bytes, envelope: bytes) -> bytes:
    """The digest of an event: over the one before it and its own envelope, as stored."""
    return blake2b(_EVENT + before + len(envelope).to_bytes(8, "big") + envelope, digest_size=DIGEST_SIZE).digest()


def history_digest(before: bytes, message: bytes) -> bytes:
    """The digest of a history one message longer, given that message's digest."""
    return _digest(_HISTORY + _SIZE + before + _SIZE + message)


def request_digest(header: bytes, history: bytes) -> bytes:
    """The digest of a request: over those of its header and its history."""
    return _digest(_REQUEST + _SIZE + header + _SIZE + history)


def body_digest(body: bytes) -> bytes:
    """The digest of what an adapter sends."""
    hashed = body_hash()
    hashed.update(body)
    return hashed.digest()


def body_hash() -> blake2b:
    """What a body is hashed with, before anything of it.

    Its length is left out, so that bodies which begin alike are hashed alike up to where they differ (see `bodies`).
    Nothing follows a body, so that none can pass for another all the same.
    """
    return blake2b(_BODY, digest_size=DIGEST_SIZE)
