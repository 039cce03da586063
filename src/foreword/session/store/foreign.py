"""A store from elsewhere: looked at before anything in it is believed.

Whoever can make such a file can make one that misleads a reader: pages that lead into each other, a trigger or a view
in the place of a table. So its structure is checked first, and its tables must be just those that Foreword makes.
(That functions in a schema are not run, and that cells are checked, holds for every store; see `connections`.) What its
sessions say is another matter: only a head that was kept elsewhere tells that a log was not rewritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.errors import StoreError
from foreword.session.store import schema

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

__all__ = ["examine"]


def examine(connection: sqlite3.Connection, store: Path) -> None:
    """Look at a whole file, before anything else is asked of it.

    Raises:
        StoreError: it is damaged (``store_corrupt``), or holds what no store has (``store_not_a_store``).
        StoreVersionError: a newer version wrote it.
        sqlite3.Error: whatever SQLite says of the file.
    """
    told: str = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if told != "ok":
        why = f"is damaged ({' '.join(told.split())}); ask whoever gave it to you for an export"
        raise StoreError(str(store), "store_corrupt", why)
    schema.check_ours(connection, store)
    strange = schema.strange_part(connection)
    if strange is not None:
        schema.check_not_newer(connection, store)
        why = f"holds {strange}, which no store has; ask whoever gave it to you for an export"
        raise StoreError(str(store), "store_not_a_store", why)
