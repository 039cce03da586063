"""A log where a disk is full, locked or read-only: one clear error, nothing is damaged, and it goes on afterwards."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import pytest
from tests.concurrency.support import run_script
from tests.session.store.support import left_of
from tests.session.support import take_turn

from foreword.errors import FlushFailedError, StoreError
from foreword.session import open_log, verify
from foreword.session.store.sqlite import SqliteStore


@pytest.mark.anyio
async def test_a_locked_store(tmp_path: Path) -> None:
    """While another program keeps the store locked, what was said is kept in memory, and nothing is erased; a copy can
    be made. When it lets go, the same calls go through."""
    path = tmp_path / "foreword.db"
    async with SqliteStore(path, lock_timeout=0.05) as store, open_log(store) as log:
        session = await log.create("s")
        take_turn(session, "The password is hunter2.")
        head = await session.flush()
        with closing(sqlite3.connect(path, isolation_level=None)) as locker:
            locker.execute("BEGIN IMMEDIATE")
            take_turn(session)
            for _ in range(2):
                with pytest.raises(FlushFailedError, match="is locked: another process has not stopped writing"):
                    await session.flush()
            assert (await verify(log, head=head)).intact
            with pytest.raises((FlushFailedError, StoreError)):
                await log.erase(match="hunter2")
            await store.export(tmp_path / "copy.db")
        assert await session.flush() == session.head
        await log.erase(match="hunter2")
        assert left_of(path, b"hunter2") == set()
        assert (await verify(log, head=head)).intact
        await session.close()
    async with open_log(f"sqlite:{tmp_path / 'copy.db'}", read_only=True) as copy:
        assert (await verify(copy, head=head)).intact


FULL = """
    import anyio, os, sys
    from foreword.errors import FlushFailedError, StoreError
    from foreword.session import open_log, verify
    from tests.session.support import take_turn

    async def main(folder):
        async with open_log(f"sqlite:{folder}/foreword.db") as log:
            session = await log.create("s")
            take_turn(session, "The password is hunter2.")
            await session.flush()
            with open(f"{folder}/ballast", "wb") as ballast:
                ballast.write(bytes(1_300_000))
            try:
                while True:
                    take_turn(session, "x" * 50_000)
                    head = await session.flush()
            except (FlushFailedError, StoreError) as error:
                assert "is full; make room, then go on" in str(error), error
            assert (await verify(log, head=head)).intact
            try:
                await log.store.export(f"{folder}/copy.db")
            except StoreError as error:
                assert error.kind == "store_full" and "copy.db" in str(error), error
            assert not [name for name in os.listdir(folder) if name.startswith("copy")]
            os.unlink(f"{folder}/ballast")
            await session.flush()
            report = await log.erase(match="hunter2")
            assert report.complete
            assert (await verify(log, head=head)).intact
            assert b"hunter2" not in open(f"{folder}/foreword.db", "rb").read()
        print("went on")

    anyio.run(main, sys.argv[1])
"""


def test_a_full_disk(tmp_path: Path) -> None:
    """On a full disk what was said is kept in memory, and no half copy is left; when there is room, all goes on."""
    mount = f"mount -t tmpfs -o size=2m none {tmp_path}"
    unshare = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec"]
    try:
        subprocess.run([*unshare, mount], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("nobody may mount a small disk here")
    done = subprocess.run(
        [*unshare, f'{mount}; exec "$0" -c "$1" {tmp_path}', sys.executable, textwrap.dedent(FULL)],
        capture_output=True, text=True, check=False, timeout=60, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr


UNPRIVILEGED = """
    import anyio, os, shutil, tempfile
    from pathlib import Path
    from foreword.errors import StoreError
    from foreword.session import open_log, rebuild, verify
    from tests.session.support import take_turn

    async def main(folder):
        url = f"sqlite:{folder}/var/foreword.db"
        async with open_log(url) as log:
            session = await log.create("s")
            take_turn(session)
        (folder / "var" / "foreword.db").chmod(0o400)
        try:
            async with open_log(url):
                pass
        except StoreError as error:
            assert error.kind == "store_read_only" and "foreword.db" in str(error), error
        else:
            raise AssertionError("it was opened to write")
        async with open_log(url, read_only=True) as log:
            assert (await verify(log)).intact
            await rebuild(log, "s")
            await log.store.export(folder / "copy.db")
            (folder / "shut").mkdir(mode=0o500)
            for call in (log.resume("s"), log.erase(session="s"), log.store.export(folder / "shut" / "copy.db")):
                try:
                    await call
                except StoreError as error:
                    assert error.kind == "store_read_only", error
                else:
                    raise AssertionError("something was written")
        async with open_log(f"sqlite:{folder}/copy.db") as log:
            take_turn(await log.resume("s"))
        print("well")

    async def imported():
        async with open_log(f"sqlite:{tempfile.mkdtemp()}/foreword.db") as log:
            take_turn(await log.create())
            await log.erase(match="4711")

    if os.getuid() == 0:  # to whom nothing is forbidden; but what is to be imported may be root's alone
        anyio.run(imported)
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    folder = tempfile.mkdtemp()
    try:
        anyio.run(main, Path(folder))
    finally:
        shutil.rmtree(folder)
"""


def test_a_read_only_store() -> None:
    """A store that may not be written can be verified, rebuilt from and exported; whatever would write is told so."""
    code, output, errors = run_script(UNPRIVILEGED)
    assert (code, output) == (0, "well\n"), errors
