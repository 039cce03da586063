"""What sessions and stores raise survives a process border, reads as one paragraph, and says what to do."""

from __future__ import annotations

import pickle

import pytest

from foreword.errors import (
    ErasureConflictError,
    ForewordError,
    InvalidSessionIdError,
    SessionBusyError,
    SessionConflictError,
    SessionError,
    SessionExistsError,
    SessionFencedError,
    StoreError,
    StoreForkedError,
    StoreVersionError,
    UnknownSessionError,
)

ODD = "a\nb\x1b[31m" + "/long" * 60
ERRORS = [
    (InvalidSessionIdError("a b"), ValueError, "letters, digits, hyphens and underscores"),
    (UnknownSessionError("s", ODD), LookupError, "begin a new one"),
    (SessionExistsError("s", ODD), ValueError, "resume it, or begin one with another id"),
    (SessionBusyError("s", 42), RuntimeError, "process 42; wait until it is closed there, read it, or fork it"),
    (SessionBusyError("s", None), RuntimeError, "another process; wait"),
    (SessionFencedError("s", 1, 2), RuntimeError, "resume the session"),
    (SessionConflictError("s", 1, "ab" * 32, 2, "cd" * 32), RuntimeError, "resume the session"),
    (ErasureConflictError(["s", "t"], "ab" * 32), RuntimeError, 'session "s", "t" refers to blob abababababab… by now'),
    (StoreError(ODD, "store_full", "is full; make room"), RuntimeError, "make room"),
    (StoreVersionError(ODD, 9, 5), RuntimeError, "upgrade Foreword here"),
    (StoreVersionError(ODD, 1, 5), RuntimeError, "open it for writing once"),
    (StoreForkedError(ODD, 7), RuntimeError, 'close it before forking, or start the process by "spawn"'),
]


@pytest.mark.parametrize(("error", "builtin", "way_out"), ERRORS, ids=lambda each: type(each).__name__)
def test_errors(error: ForewordError, builtin: type[Exception], way_out: str) -> None:
    """Each is caught as ours and as the builtin that fits, names the way out, and is the same when pickled."""
    assert isinstance(error, builtin)
    assert isinstance(error, SessionError | StoreError)
    assert way_out in str(error)
    assert str(error).isprintable()
    twin = pickle.loads(pickle.dumps(error))
    assert (type(twin), str(twin), twin.kind, vars(twin)) == (type(error), str(error), error.kind, vars(error))


def test_paths_are_shown_whole() -> None:
    """A path that is cut leads nowhere, so it is never cut, only made printable."""
    assert "/long" * 60 in str(StoreError(ODD, "store_io", "failed"))
    assert r"a\nb\x1b[31m" in str(StoreError(ODD, "store_io", "failed"))
