"""Claims: who may write a session. A claim is an `flock` on a file beside the store, with the claimant's pid in it.

The lock is the claim; the file and the pid are not. A lock goes with the process that holds it, however that ends, so
what a killed writer leaves is a file that anybody may lock, and a pid that says nothing.

Each epoch of a session has a file of its own. So whoever takes a session over locks what nobody else has locked, and
what its former writer still holds, stopped or hung, is in nobody's way.
"""

from __future__ import annotations

import fcntl
import os
import time
from threading import Lock
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["FileLock", "holder_of", "lock_file", "lock_files", "sweep"]

_POLL: Final = 0.005  # seconds between two looks at a lock that another process holds
_WRITING_PID: Final = 0.2  # seconds that a claimant has to write its pid, once it has the lock

# While a lock is taken or let go, no fork may happen: the child would not know which descriptors to close.
_guard = Lock()
_held: set[FileLock] = set()


class FileLock:
    """A lock on a file, held by this process and not by its children. Made by `take`."""

    __slots__ = ("_descriptor", "_path")

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, path: Path, patience: float = 0.0) -> FileLock | None:
        """Lock a file, making it if it is not there; None if it was locked all the time.

        Args:
            path: the file; its folder is there.
            patience: seconds to wait for another holder.

        Raises:
            OSError: the file cannot be made or opened.
        """
        end = time.monotonic() + patience
        while True:
            lock = cls._try(path)
            if lock is not None or time.monotonic() >= end:
                return lock
            time.sleep(_POLL)

    @classmethod
    def _try(cls, path: Path) -> FileLock | None:
        with _guard:
            descriptor = _locked(path)
            if descriptor is None:
                return None
            lock = cls(path, descriptor)
            _held.add(lock)
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BaseException:
            lock.release()
            raise
        return lock

    def release(self) -> None:
        """Remove the file and let it go; a second time, and in a forked child, does nothing."""
        with _guard:
            descriptor, self._descriptor = self._descriptor, None
            if descriptor is None:
                return
            _held.discard(self)
            try:
                if _is_at(self._path, descriptor):
                    self._path.unlink()
            finally:
                os.close(descriptor)

    def forget(self) -> None:
        """In a forked child: close our copy of what the parent holds, so that the lock goes when the parent does."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def holder_of(path: Path) -> int | None:
    """The pid of who holds a lock; None if it cannot be known: it has just let go, or is being killed."""
    end = time.monotonic() + _WRITING_PID
    while True:
        pid = _pid_in(path)
        if pid is not None and _lives(pid):
            return pid
        if time.monotonic() >= end:
            return None
        time.sleep(_POLL)


def lock_file(claims: Path, session: str, epoch: int) -> Path:
    """The file that whoever writes a session in an epoch has locked."""
    return claims / f"{session}.{epoch}.lock"


def lock_files(claims: Path, session: str, *, but: int | None = None) -> Iterator[Path]:
    """The files of a session that are there, but for that of one epoch."""
    spared = None if but is None else lock_file(claims, session, but)
    return (path for path in claims.glob(f"{session}.*.lock") if path != spared)


def sweep(claims: Path, session: str, *, but: int) -> None:
    """Remove the files that former claimants of a session have left, if they hold them no more."""
    for path in lock_files(claims, session, but=but):
        left = FileLock.take(path)
        if left is not None:
            left.release()


def _locked(path: Path) -> int | None:
    """A descriptor of the file at a path, locked; None if somebody else has locked it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, descriptor):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # who held it removed it before letting go: look at what is there now


def _pid_in(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # removed, or not written yet
        return None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # somebody else's
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether the open file is the one that has the path now."""
    try:
        there = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(there, os.fstat(descriptor))


def _after_fork_in_child() -> None:
    for lock in _held:
        lock.forget()
    _held.clear()
    _guard.release()


os.register_at_fork(before=_guard.acquire, after_in_parent=_guard.release, after_in_child=_after_fork_in_child)
