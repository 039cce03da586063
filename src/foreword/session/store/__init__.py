"""Where sessions are kept. `contract` says what a store does; `sqlite` keeps one in a file."""

from __future__ import annotations

import os

from foreword.session.store.contract import (
    Batch,
    BlobRow,
    Claim,
    Erased,
    EventRow,
    SessionRow,
    Store,
    TakeOver,
    events_in_chunks,
)

__all__ = [
    "Batch",
    "BlobRow",
    "Claim",
    "Erased",
    "EventRow",
    "SessionRow",
    "Store",
    "TakeOver",
    "events_in_chunks",
    "open_store",
]


def open_store(url: str, *, read_only: bool = False, foreign: bool = False) -> Store:
    """The store of a URL. It is opened when it is first used, or by its ``open``.

    Args:
        url: ``sqlite:PATH``; a relative path starts at the current folder. A missing file is made, and so is the folder
            that it is in, but not the one above.
        read_only: never make or change the file; sessions cannot be claimed.
        foreign: it comes from elsewhere: when it is opened, see first that it is whole, and nothing but a store. Takes
            as long as reading all of it.

    Raises:
        StoreError: the URL is none of a store that we know (``store_url``), or the system has no locks that would do.
    """
    from foreword.errors import StoreError
    from foreword.session.store.places import path_of

    path = path_of(url)
    if os.name != "posix":
        raise StoreError(str(path), "store_failed", f"needs flock and fork hooks of POSIX, which {os.name} has not")
    from foreword.session.store.sqlite import SqliteStore

    return SqliteStore(path, read_only=read_only, foreign=foreign)
