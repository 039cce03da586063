"""The lock that a claim is: one holder at a time, whoever makes, removes, leaves or reads its file."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest
from tests.concurrency.support import PATIENCE, run_script

from foreword.session.store.claims import FileLock, holder_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.lock"


def test_one_holder_at_a_time(path: Path) -> None:
    """Held, it cannot be taken; released, it can, and its file is gone; released twice, nothing happens."""
    first = FileLock.take(path)
    assert first is not None
    assert FileLock.take(path) is None
    assert FileLock.take(path, patience=0.02) is None
    assert holder_of(path) == os.getpid()
    first.release()
    assert not path.exists()
    second = FileLock.take(path)
    assert second is not None
    first.release()
    assert FileLock.take(path) is None
    second.release()


def test_nobody_has_a_lock_on_a_removed_file(path: Path) -> None:
    """However often holders remove the file while other processes wait for it, there is never more than one holder."""
    code, output, errors = run_script(f"""
        import os
        from pathlib import Path
        from foreword.session.store.claims import FileLock

        path = Path({str(path)!r})
        children = []
        for _ in range(4):
            children.append(os.fork())
            if children[-1] == 0:
                for _ in range(400):
                    lock = FileLock.take(path, patience=10)
                    os.close(os.open(path.with_name("inside"), os.O_CREAT | os.O_EXCL))  # fails if somebody else is
                    os.unlink(path.with_name("inside"))
                    lock.release()
                os._exit(0)
        print(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
    """)
    assert (code, output) == (0, "0 0 0 0\n"), errors


def test_waiting_ends_when_the_holder_lets_go(path: Path) -> None:
    """Whoever waits gets the lock as soon as it is free."""
    first = FileLock.take(path)
    assert first is not None
    taken: list[FileLock | None] = []
    waiter = threading.Thread(target=lambda: taken.append(FileLock.take(path, patience=PATIENCE)))
    waiter.start()
    first.release()
    waiter.join()
    (second,) = taken
    assert second is not None
    second.release()


def test_a_holder_that_cannot_be_known(path: Path) -> None:
    """A lock without a pid, or with that of a process that is gone, is held by somebody unknown."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    for text in ("", "no number", "99999999"):
        path.write_text(text)
        assert FileLock.take(path) is None
        assert holder_of(path) is None
    path.write_text("1")
    assert holder_of(path) == 1
    os.close(descriptor)


def test_a_link_is_not_followed(path: Path) -> None:
    """A link that somebody laid in the place of a claim is not followed, so nothing elsewhere is overwritten."""
    path.with_name("diary").write_text("dear")
    path.symlink_to(path.with_name("diary"))
    with pytest.raises(OSError, match="symbolic links"):
        FileLock.take(path)
    assert path.with_name("diary").read_text() == "dear"


def test_children_by_exec_hold_nothing(path: Path) -> None:
    """A program that is started while a lock is held does not have it."""
    lock = FileLock.take(path)
    assert lock is not None
    leading_here = [int(each.name) for each in Path("/proc/self/fd").iterdir() if _leads_to(each, path)]
    assert [os.get_inheritable(each) for each in leading_here] == [False]
    lock.release()


def _leads_to(descriptor: Path, path: Path) -> bool:
    try:
        return descriptor.readlink() == path
    except FileNotFoundError:
        return False
