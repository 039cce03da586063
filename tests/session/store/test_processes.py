"""A store among processes: claims, reading beside a writer, kills, forks, and how a process ends."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import anyio
import pytest
from tests.concurrency.support import FAR, run_script, started
from tests.session.store.support import batch_on, begun, check_whole, names_in, opening

from foreword.errors import SessionBusyError, StoreError, StoreVersionError
from foreword.session.store.sqlite import SqliteStore

KILLS = int(os.environ.get("FOREWORD_KILLS") or 50)
"""How many writers are killed; more than the default is for a long search."""

OPENING = """
    import anyio, os, sys
    from foreword.errors import *
    from foreword.session.store.sqlite import SqliteStore
    from tests.session.store.support import *
    PATH = {path!r}
"""


def script(path: Path, body: str) -> str:
    return textwrap.dedent(OPENING).format(path=str(path)) + textwrap.dedent(body)


@contextmanager
def running(path: Path, body: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs a script, until the end of the block."""
    process = started(script(path, body))
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that a process prints."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        _, errors = process.communicate()
        raise AssertionError(f"the process ended: {errors}")
    return line.strip()


async def counts(path: Path) -> dict[str, int]:
    """How many events each session has, all of them whole, and free to be claimed."""
    async with SqliteStore(path) as store:
        found = {row.id: (await check_whole(store, row.id)).count for row in await store.sessions()}
        for each in found:
            await store.claim(each)
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "foreword.db"


# -- claims

CLAIM_AT_ONCE = """
    async def main():
        store = SqliteStore(PATH)
        print("ready", flush=True)
        sys.stdin.readline()
        try:
            claim = await store.claim("s", new=new_row("s"))
            await claim.write(batch_on(claim.row))
            print("mine", os.getpid(), flush=True)
        except SessionBusyError as error:
            print("busy", error.pid, flush=True)
        sys.stdin.readline()
        await store.close()

    anyio.run(main)
"""


@pytest.mark.parametrize("processes", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_one_of_many_gets_the_claim(path: Path, processes: int) -> None:
    """Of processes that make a store and claim a session in it at once, one gets it, and the others are told by whom."""
    code = ["-W", "error", "-c", script(path, CLAIM_AT_ONCE)]
    with ExitStack() as stack:
        all_of_them = [
            stack.enter_context(
                subprocess.Popen([sys.executable, *code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(processes)
        ]
        assert [line_of(each) for each in all_of_them] == ["ready"] * processes
        for process in all_of_them:
            print(file=process.stdin, flush=True)
        told = [line_of(process).split() for process in all_of_them]
        winners = [pid for what, pid in told if what == "mine"]
        assert len(winners) == 1
        assert [pid for what, pid in told if what == "busy"] == winners * (processes - 1)
        for process in all_of_them:
            print(file=process.stdin, flush=True)
            assert process.wait(FAR) == 0


def test_many_make_one_store(tmp_path: Path) -> None:
    """Processes that open a store at once, of which each may be the one to make it, all can use it."""
    code, output, errors = run_script(script(tmp_path, """
        async def main(path, start):
            os.read(start, 1)
            async with SqliteStore(path) as store:
                await begun(store, f"s{os.getpid()}")

        for at in range(6):
            start, go = os.pipe()
            children = []
            for _ in range(4):
                children.append(os.fork())
                if children[-1] == 0:
                    os.close(go)
                    anyio.run(main, f"{PATH}/{at}.db", start)
                    os._exit(0)
            os.close(go)  # at which all of them begin
            print(*(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
    """))  # fmt: skip
    assert (code, output) == (0, "0 0 0 0\n" * 6), errors


HOLD = """
    async def main():
        store = SqliteStore(PATH)
        claim = await begun(store, "s", 3)
        print("held", flush=True)
        await anyio.sleep(600)

    anyio.run(main)
"""


@pytest.mark.anyio
async def test_a_killed_writer_holds_nothing(path: Path) -> None:
    """While its writer lives, a session is busy; when it is killed, the session is free at once."""
    with running(path, HOLD) as process:
        assert line_of(process) == "held"
        async with SqliteStore(path) as store:
            with pytest.raises(SessionBusyError) as caught:
                await store.claim("s")
            assert caught.value.pid == process.pid
            process.kill()
            process.wait()
            assert names_in(path.with_name("foreword.db-claims")) == {"s.0.lock"}
            claim = await store.claim("s")
            await claim.write(batch_on(claim.row))
            assert (await check_whole(store, "s")).count == 4


@pytest.mark.anyio
async def test_a_stopped_writer_still_holds(path: Path) -> None:
    """A writer that does not run, but lives, keeps its claim: it may go on at any moment."""
    with running(path, HOLD) as process:
        assert line_of(process) == "held"
        process.send_signal(signal.SIGSTOP)
        async with SqliteStore(path) as store:
            with pytest.raises(SessionBusyError):
                await store.claim("s")
            assert (await check_whole(store, "s")).count == 3
            await begun(store, "another")


WRITE_WHEN_TOLD = """
    async def main():
        store = SqliteStore(PATH)
        claim = await begun(store, "s", 3)
        print("held", flush=True)
        while sys.stdin.readline():
            try:
                await claim.write(batch_on(claim.row))
                print("wrote", flush=True)
            except (SessionFencedError, StoreVersionError) as error:
                print(error.kind, flush=True)
        await store.close()

    anyio.run(main)
"""


@contextmanager
def told(path: Path, body: str) -> Iterator[tuple[subprocess.Popen[str], Callable[[], str]]]:
    """A process that does something at each line that it is given, and a function that gives it one; it ends well."""
    code = ["-W", "error", "-c", script(path, body)]
    with subprocess.Popen(
        [sys.executable, *code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None

        def next_line() -> str:
            print(file=process.stdin, flush=True)
            return line_of(process)

        try:
            yield process, next_line
            process.stdin.close()
            assert process.wait(FAR) == 0
        finally:
            process.kill()


@pytest.mark.anyio
async def test_a_stopped_writer_is_taken_over(path: Path) -> None:
    """A session whose writer is stopped can be taken over; when that one goes on, it writes nothing more, and what it
    still holds is in nobody's way."""
    with told(path, WRITE_WHEN_TOLD) as (process, write):
        assert line_of(process) == "held"
        assert write() == "wrote"
        process.send_signal(signal.SIGSTOP)
        async with SqliteStore(path) as store:
            claim = await store.claim("s", take_over=opening)
            assert claim.row.epoch == 1
            process.send_signal(signal.SIGCONT)
            assert write() == "session_fenced"
            await claim.write(batch_on(claim.row))
            assert write() == "session_fenced"
            assert (await check_whole(store, "s")).count == 6
            await claim.release()
            assert (await store.claim("s")).row == claim.row
    assert names_in(path.with_name("foreword.db-claims")) == set()


@pytest.mark.anyio
@pytest.mark.parametrize("left", [pytest.param(str(os.getpid()), id="ours"), "1", "99999999", "", "no number"])
async def test_a_pid_that_was_left_means_nothing(path: Path, left: str) -> None:
    """The pid in a claim's file may be that of another process by now; without the lock it counts for nothing."""
    async with SqliteStore(path) as store:
        await (await begun(store, "s")).release()
        path.with_name("foreword.db-claims").joinpath("s.0.lock").write_text(left)
        claim = await store.claim("s")
        await claim.write(batch_on(claim.row))


# -- reading beside a writer

WRITE_ON = """
    async def main():
        async with SqliteStore(PATH) as store:
            claim = await begun(store, "s", 3)
            print("begun", flush=True)
            while True:
                await claim.write(batch_on(claim.row, 3, [private("a"), shared("b")]))
                if claim.row.count % 30 == 0:
                    await store.checkpoint()

    anyio.run(main)
"""


@pytest.mark.anyio
async def test_reading_while_another_process_writes(path: Path) -> None:
    """A reader in another process sees whole batches only, and more of them with time, past every checkpoint."""
    with running(path, WRITE_ON) as process:
        assert line_of(process) == "begun"
        async with SqliteStore(path, read_only=True) as store:
            seen = 0
            with anyio.fail_after(FAR):
                while seen < 300:
                    row = await check_whole(store, "s")
                    assert row.count >= seen
                    assert row.count % 3 == 0
                    seen = row.count
        assert process.poll() is None


WRITE_MINE = """
    async def main():
        async with SqliteStore(PATH) as store:
            claim = await begun(store, f"s{os.getpid()}")
            for _ in range(20):
                await claim.write(batch_on(claim.row, 2, [private("a"), shared("b")]))
                await store.checkpoint()

    anyio.run(main)
"""


@pytest.mark.slow
def test_processes_write_sessions_of_their_own(path: Path) -> None:
    """Several processes write one store at once, each its own session, and wait for each other as long as it takes."""
    with ExitStack() as stack:
        writers = [stack.enter_context(running(path, WRITE_MINE)) for _ in range(4)]
        for each in writers:
            assert each.wait(FAR) == 0, each.communicate()[1]
    assert anyio.run(counts, path) == {f"s{each.pid}": 41 for each in writers}


# -- other versions at the same store

NEWER = """
    from tests.faults import formats
    formats.upgrade(3)

    async def main():
        async with SqliteStore(PATH, lock_timeout=60) as store:
            print("migrated", flush=True)
            await begun(store, "newer")
            await check_whole(store, "s")

    anyio.run(main)
"""


def test_a_newer_version_beside_an_older_one(path: Path) -> None:
    """When a newer Foreword brings a store up to date while an older one has it open, the older one is told at its next
    write; what it wrote before is there, and it does not hold up the newer one."""
    with told(path, WRITE_WHEN_TOLD) as (process, write):
        assert line_of(process) == "held"
        assert write() == "wrote"
        with running(path, NEWER) as newer:
            assert line_of(newer) == "migrated"
            assert newer.wait(FAR) == 0
        assert write() == "store_version"
        assert write() == "store_version"
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT seq FROM session WHERE id = 's'").fetchone() == (4,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.anyio
async def test_a_migration_waits_for_a_writer(path: Path) -> None:
    """A newer Foreword waits until a transaction of an older one is through, and loses nothing of it."""
    async with SqliteStore(path) as store:
        claim = await begun(store, "s", 1)
        locker = sqlite3.connect(path, isolation_level=None)
        locker.execute("BEGIN IMMEDIATE")
        with running(path, NEWER) as newer:
            assert (await check_whole(store, "s")).count == 1  # it has changed nothing yet
            locker.execute("UPDATE session SET created = 7")
            locker.execute("COMMIT")
            locker.close()
            assert line_of(newer) == "migrated"
            with pytest.raises(StoreVersionError):
                await claim.write(batch_on(claim.row))
            assert newer.wait(FAR) == 0
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT created FROM session WHERE id = 's'").fetchone() == (7,)


# -- kills


@pytest.mark.slow
def test_kills_lose_nothing(tmp_path: Path) -> None:
    """Writers are killed at random moments, also while they make a store: what they acknowledged is there and whole."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.session.store.kills", str(tmp_path), str(KILLS)],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > KILLS  # or it was no test


# -- forks


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_store_is_of_no_use_after_a_fork(path: Path, backend: str) -> None:
    """In a forked child the store, its claims and new stores of the same file refuse; the parent goes on unharmed."""
    code, output, errors = run_script(script(path, f"""
        from foreword.session.store import open_store

        async def refused(call):
            try:
                await call()
            except StoreForkedError as error:
                assert error.kind == "store_forked" and error.pid == os.getppid(), error
                assert "spawn" in str(error)
            else:
                raise AssertionError("was not refused")

        async def in_child(store, claim, batch):
            for call in (
                store.sessions, store.open, store.checkpoint, lambda: store.claim("other"), claim.settle, claim.release,
                lambda: claim.write(batch), lambda: store.events("s"), store.close,
                SqliteStore(PATH).open, SqliteStore(PATH, read_only=True).sessions, open_store(f"sqlite:{{PATH}}").open,
            ):
                await refused(call)
            async with SqliteStore(PATH + ".another") as another:
                await begun(another, f"s{{os.getpid()}}")

        async def main():
            store = SqliteStore(PATH)
            claim = await begun(store, "s")
            await store.sessions()
            return store, claim

        async def after(store, claim):
            for _ in range(3):
                await claim.write(batch_on(claim.row))
            assert (await check_whole(store, "s")).count == 4
            try:
                await SqliteStore(PATH).claim("s")
            except SessionBusyError as error:
                assert error.pid == os.getpid()
            else:
                raise AssertionError("the claim was lost")
            await store.close()
            async with SqliteStore(PATH) as store:
                await store.claim("s")

        store, claim = anyio.run(main, backend={backend!r})
        for _ in range(3):
            child = os.fork()
            if child == 0:
                anyio.run(in_child, store, claim, batch_on(claim.row), backend={backend!r})
                sys.exit(7)  # as a program would, with all finalizers
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        anyio.run(after, store, claim, backend={backend!r})
        print("well")
    """))  # fmt: skip
    assert (code, output) == (0, "well\n"), errors


@pytest.mark.slow
def test_forks_in_the_middle_of_writing(path: Path) -> None:
    """Children that are forked while a thread writes end as they should, and what is written is whole."""
    code, output, errors = run_script(script(path, """
        import threading, warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons say what this test is about
        stop = threading.Event()

        async def main():
            async with SqliteStore(PATH) as store:
                claim = await begun(store, "s")
                while not stop.is_set():
                    await claim.write(batch_on(claim.row, 20, [private("x" * 10_000)]))
                    await store.events("s", max(0, claim.row.count - 50))
                await check_whole(store, "s")
                print("whole")

        thread = threading.Thread(target=anyio.run, args=(main,))
        thread.start()
        for _ in range(25):
            child = os.fork()
            if child == 0:
                sys.exit(0)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), end=" ", flush=True)
        stop.set()
        thread.join()
    """))  # fmt: skip
    assert (code, output) == (0, "0 " * 25 + "whole\n"), errors


def test_a_child_does_not_keep_its_parents_claims(path: Path) -> None:
    """A claim goes with the process that made it, even if one that was forked from it lives on."""
    code, output, errors = run_script(script(path, """
        import signal, subprocess

        async def main():
            store = SqliteStore(PATH)
            await begun(store, "s")

        async def claim():
            async with SqliteStore(PATH) as store:
                await store.claim("s")

        told, tell = os.pipe()
        parent = os.fork()
        if parent == 0:
            anyio.run(main)
            child = os.fork()
            if child == 0:
                signal.pause()
            os.write(tell, f"{child}\\n".encode())
            signal.pause()
        child = int(os.read(told, 100))
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
        try:
            anyio.run(claim)
            os.kill(child, 0)
            print("free")
        finally:
            os.kill(child, signal.SIGKILL)
    """))  # fmt: skip
    assert (code, output) == (0, "free\n"), errors


def test_a_child_never_touches_the_file(path: Path) -> None:
    """A forked child that ends, as the last that has the file open, leaves it as it is; whoever opens it finds all."""
    code, output, errors = run_script(script(path, """
        import signal

        async def main():
            store = SqliteStore(PATH)
            claim = await begun(store, "s")
            await claim.write(batch_on(claim.row, 100))
            return store

        told, tell = os.pipe()
        wait, go = os.pipe()
        parent = os.fork()
        if parent == 0:
            kept = anyio.run(main)
            child = os.fork()
            if child == 0:
                os.read(wait, 1)
                sys.exit(0)
            os.write(tell, b"forked")
            signal.pause()
        os.close(tell)
        os.read(told, 6)
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
        os.write(go, b"!")
        os.read(told, 1)  # until the child has closed its end, which is all that can be seen of a grandchild's end
        print(os.path.getsize(PATH + "-wal") > 0)
    """))  # fmt: skip
    assert (code, output) == (0, "True\n"), errors
    assert anyio.run(counts, path) == {"s": 101}


def test_closed_before_the_fork(path: Path) -> None:
    """A store that is closed before the fork can be opened in parent and child."""
    code, output, errors = run_script(script(path, """
        async def main(id):
            async with SqliteStore(PATH) as store:
                await begun(store, id)

        anyio.run(main, "s0")
        child = os.fork()
        anyio.run(main, f"s{child == 0}")
        if child:
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """))  # fmt: skip
    assert (code, output) == (0, "0\n"), errors


# -- how a process ends

ENDINGS = {
    "at its end": "",
    "by sys.exit": "sys.exit(0)",
    "by an error": "raise SystemExit(0) from ValueError()",
    "in a daemon thread": "",
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_what_was_handed_over_outlives_the_loop(path: Path, backend: str, ending: str) -> None:
    """A process ends when what was handed over is written, however it ends, without waiting for anything else."""
    body = f"""
        import threading

        async def main():
            store = SqliteStore(PATH)
            claim = await begun(store, "s")
            row = claim.row
            for _ in range(5):
                batch = batch_on(row, 500, [private("x" * 100_000)])
                row = type(row)(row.id, row.genesis, 0, batch.count_after, batch.head_after, row.created)
                await write_cancelled(claim, batch)
            {ENDINGS[ending] or "return"}

        def run():
            anyio.run(main, backend={backend!r})

        if {ending == "in a daemon thread"}:
            thread = threading.Thread(target=run, daemon=True)
            thread.start()
            thread.join()
        else:
            run()
    """
    code, _, errors = run_script(script(path, body))
    assert code == 0, errors
    assert anyio.run(counts, path) == {"s": 2501}


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_loop_that_is_stopped_holds_up_nothing(path: Path, backend: str) -> None:
    """Interrupted twice in the middle of writing, a process ends at once, and what was written is whole."""
    body = f"""
        import signal

        async def main():
            store = SqliteStore(PATH)
            claim = await begun(store, "s")
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            while True:
                await claim.write(batch_on(claim.row, 100))

        anyio.run(main, backend={backend!r})
    """
    code, _, errors = run_script(script(path, body))
    assert code in (1, -signal.SIGINT), errors
    assert "KeyboardInterrupt" in errors
    assert anyio.run(counts, path)["s"] % 100 == 1


@pytest.mark.anyio
async def test_a_process_that_opens_for_too_long(path: Path) -> None:
    """While another process makes the tables, one waits; not for ever, and the error says for what."""
    body = """
        import threading
        from pathlib import Path
        from foreword.session.store.claims import FileLock
        Path(PATH + "-claims").mkdir()
        lock = FileLock.take(Path(PATH + "-claims") / ".opening")
        print("held", flush=True)
        threading.Event().wait()
    """
    with running(path, body) as process:
        assert line_of(process) == "held"
        store = SqliteStore(path, lock_timeout=0.05)
        with pytest.raises(StoreError, match="is being made by another process") as caught:
            await store.open()
        assert caught.value.kind == "store_locked"
        process.kill()
        process.wait()
        await store.open()
        await store.close()
