"""Stores of other formats: a Foreword of the future, which has more migrations than this one.

Used in processes of their own only, since it changes what the code in them takes for the newest format.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from foreword.session.store import schema

__all__ = ["be", "now", "of", "upgrade"]

_OURS = schema.MIGRATIONS
_LATER = tuple(
    statement
    for number in range(20)
    for statement in (
        f"CREATE TABLE later_{number}(x TEXT) STRICT",
        f"CREATE INDEX ref_later_{number} ON ref(digest)",
        f"ALTER TABLE session ADD COLUMN later_{number} TEXT",
    )
)
"""What no migration of ours will be, but of their kinds: a table, an index over what is there, another column."""


def be(number: int) -> None:
    """Be a Foreword that knows so many migrations; at least those of this one."""
    number = max(number, len(_OURS))
    schema.MIGRATIONS = (*_OURS, *_LATER)[:number]  # type: ignore[misc]
    schema.VERSION = number  # type: ignore[misc]


def now() -> int:
    """How many are known here."""
    return schema.VERSION


def upgrade(by: int) -> None:
    """Be a newer one."""
    be(now() + by)


def of(path: Path) -> int:
    """The format that a store is in; 0 if it has no tables yet."""
    with closing(sqlite3.connect(path)) as connection:
        if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            return 0
        numbers = [number for (number,) in connection.execute("SELECT number FROM migration ORDER BY number")]
    assert numbers == list(range(1, len(numbers) + 1)), "a set of migrations is there in part"
    return len(numbers)
