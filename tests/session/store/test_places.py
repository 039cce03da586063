"""Where a store may be: URLs, folders, modes of files, file systems; and what is said where it cannot be."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.concurrency.support import run_script
from tests.session.store.support import batch_on, begun, check_whole, names_in

from foreword.errors import StoreError
from foreword.session.store import open_store
from foreword.session.store.faults import from_os
from foreword.session.store.places import file_system_of, mounted_type
from foreword.session.store.sqlite import SqliteStore


def one_paragraph(error: StoreError) -> None:
    """Messages of stores are one readable line that names the store."""
    text = str(error)
    assert error.store in text
    assert text.isprintable()
    assert text.startswith("the session store ")


# -- URLs


@pytest.mark.anyio
async def test_a_url_names_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path starts at the folder that is current when the store is made; odd characters are no hindrance."""
    for name in ("foreword.db", "with space?&#%41é.db", "a:b.db"):
        monkeypatch.chdir(tmp_path)
        store = open_store(f"sqlite:{name}")
        monkeypatch.chdir("/")
        async with store:
            await begun(store, "s")
        assert name in names_in(tmp_path)
        async with open_store(f"sqlite:{tmp_path}/{name}", read_only=True) as reader:
            await check_whole(reader, "s")


@pytest.mark.anyio
async def test_a_home_folder_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tilde is the home folder, as where a shell has replaced it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    async with open_store("sqlite:~/foreword.db"):
        assert "foreword.db" in names_in(tmp_path)


@pytest.mark.parametrize(
    ("url", "way_out"),
    [
        ("foreword.db", "sqlite:foreword.db"),
        ("", "sqlite:foreword.db"),
        ("sqlite:", "names no file"),
        ("sqlite:a/", "names no file"),
        ("sqlite:a\0b", "names no file"),
        ("sqlite:///foreword.db", "write sqlite:foreword.db, or sqlite:/var"),
        ("sqlite://foreword.db", "write sqlite:foreword.db, or sqlite:/var"),
        ("sqlite::memory:", "MemoryStore"),
        ("postgresql://user:hunter2@host/db", "sqlite:PATH"),
    ],
)
def test_other_urls_are_refused(url: str, way_out: str) -> None:
    """A URL that names no file of SQLite's is refused at once with what to write; a password in it is not shown."""
    with pytest.raises(StoreError) as caught:
        open_store(url)
    assert caught.value.kind == "store_url"
    assert way_out in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert str(caught.value).isprintable()


# -- folders and files


@pytest.mark.parametrize("umask", [0o000, 0o022])
@pytest.mark.anyio
async def test_nobody_else_reads(tmp_path: Path, umask: int) -> None:
    """The file, those beside it, and the folders that are made are the owner's alone, whatever the umask."""
    before = os.umask(umask)
    try:
        async with SqliteStore(tmp_path / "var" / "foreword.db") as store:
            await begun(store, "s")
            folder = tmp_path / "var"
            files = {"foreword.db", "foreword.db-wal", "foreword.db-shm"}
            assert names_in(folder) == files | {"foreword.db-claims"}
            assert {(folder / name).stat().st_mode & 0o777 for name in files} == {0o600}
            assert (folder / "foreword.db-claims" / "s.0.lock").stat().st_mode & 0o777 == 0o600
            assert {each.stat().st_mode & 0o777 for each in (folder, folder / "foreword.db-claims")} == {0o700}
    finally:
        os.umask(before)


@pytest.mark.anyio
async def test_closed_one_file_is_left(tmp_path: Path) -> None:
    """A store that is closed is one file, beside an empty folder for claims."""
    async with SqliteStore(tmp_path / "foreword.db") as store:
        await begun(store, "s")
    assert names_in(tmp_path) == {"foreword.db", "foreword.db-claims"}
    assert names_in(tmp_path / "foreword.db-claims") == set()


@pytest.mark.anyio
async def test_modes_that_somebody_chose_are_kept(tmp_path: Path) -> None:
    """A folder and a file that are there keep their modes."""
    folder = tmp_path / "var"
    folder.mkdir(mode=0o755)
    path = folder / "foreword.db"
    path.touch()
    path.chmod(0o640)
    async with SqliteStore(path) as store:
        await begun(store, "s")
    assert folder.stat().st_mode & 0o777 == 0o755
    assert path.stat().st_mode & 0o777 == 0o640


async def fails(store: SqliteStore, kind: str, *words: str) -> None:
    """Opening, and every use, fails with this kind and these words; nothing else is left open."""
    for call in (store.open, store.sessions, store.open):
        with pytest.raises(StoreError) as caught:
            await call()
        assert caught.value.kind == kind
        one_paragraph(caught.value)
        for word in words:
            assert word in str(caught.value)
    await store.close()


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.anyio
async def test_places_where_no_store_can_be(tmp_path: Path, read_only: bool) -> None:
    """A folder, a device, what is no database, and somebody else's database are refused and left as they are."""
    (tmp_path / "text.db").write_text("Dear diary, " * 1000)
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE recipes(name)")
    other.close()
    os.mkfifo(tmp_path / "pipe")
    before = {name: (tmp_path / name).read_bytes() for name in ("text.db", "other.db")}

    def store(name: str) -> SqliteStore:
        return SqliteStore(tmp_path / name, read_only=read_only)

    await fails(store("."), "store_not_a_file", "is a folder")
    await fails(store("pipe"), "store_not_a_file", "no regular file")
    await fails(store("text.db"), "store_not_a_database", "is no SQLite database")
    await fails(store("other.db"), "store_not_a_store", "another program")
    assert before == {name: (tmp_path / name).read_bytes() for name in ("text.db", "other.db")}
    assert names_in(tmp_path) == {"text.db", "other.db", "pipe"}  # and nothing is left beside them


@pytest.mark.anyio
async def test_a_store_that_came_alone(tmp_path: Path) -> None:
    """A store whose file was copied without its folder for claims gets one when it is opened to write."""
    path = tmp_path / "foreword.db"
    async with SqliteStore(path) as store:
        await begun(store, "s")
    (tmp_path / "foreword.db-claims").rmdir()
    async with SqliteStore(path) as store:
        await (await store.claim("s")).release()
    assert (tmp_path / "foreword.db-claims").stat().st_mode & 0o777 == 0o700


@pytest.mark.anyio
async def test_missing_folders(tmp_path: Path) -> None:
    """The folder of a store is made, the one above is not: that would be a misspelt path."""
    await fails(SqliteStore(tmp_path / "a" / "b" / "foreword.db"), "store_no_folder", f"there is no {tmp_path}/a;")
    assert names_in(tmp_path) == set()
    (tmp_path / "file").touch()
    await fails(SqliteStore(tmp_path / "file" / "foreword.db"), "store_no_folder", "which is no folder")


@pytest.mark.anyio
async def test_reading_makes_nothing(tmp_path: Path) -> None:
    """Opened to read only, a store that is not there is not made, and one that is there cannot be claimed."""
    path = tmp_path / "foreword.db"
    await fails(SqliteStore(path, read_only=True), "store_missing", "is not there")
    assert names_in(tmp_path) == set()
    path.touch()
    await fails(SqliteStore(path, read_only=True), "store_missing", "is empty")
    async with SqliteStore(path) as store, SqliteStore(path, read_only=True) as reader:
        claim = await begun(store, "s")
        assert await check_whole(reader, "s") == claim.row
        for call in (lambda: reader.claim("s"), reader.checkpoint):
            with pytest.raises(StoreError, match="opened to read only") as caught:
                await call()
            assert caught.value.kind == "store_read_only"


UNPRIVILEGED = """
    import anyio, os, shutil, sys, tempfile
    from pathlib import Path
    from foreword.errors import StoreError
    from foreword.session.store.sqlite import SqliteStore
    from tests.session.store.support import batch_on, begun, check_whole

    async def main(path):
        async with SqliteStore(path) as store:
            await begun(store, "s")
        kinds = []
        for mode, folder in ((0o400, 0o700), (0o600, 0o500), (0o000, 0o700), (0o600, 0o000)):
            path.chmod(mode)
            path.parent.chmod(folder)
            try:
                async with SqliteStore(path) as store:
                    claim = await store.claim("s")
                    await claim.write(batch_on(claim.row))
            except StoreError as error:
                assert str(path) in str(error)
                kinds.append(error.kind)
            path.parent.chmod(0o700)
            path.chmod(0o600)
        path.chmod(0o400)
        async with SqliteStore(path, read_only=True) as store:
            await check_whole(store, "s")
        path.chmod(0o600)
        try:
            await SqliteStore(path).open()
        except StoreError as error:  # what that reader had to make can be read only, too
            assert f"{path}-wal is read-only" in str(error), str(error)
            kinds.append(error.kind)
        for left in path.parent.glob("foreword.db-[sw]*"):
            left.unlink()
        async with SqliteStore(path) as store:
            await check_whole(store, "s")
            claim = await store.claim("s")
            await claim.write(batch_on(claim.row))
        return kinds

    if os.getuid() == 0:  # to whom nothing is forbidden; but what is to be imported may be root's alone
        with tempfile.TemporaryDirectory() as folder:
            anyio.run(main, Path(folder) / "var" / "foreword.db")
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    folder = tempfile.mkdtemp()
    try:
        print(*anyio.run(main, Path(folder) / "var" / "foreword.db"))
    finally:
        shutil.rmtree(folder)
"""


def test_what_may_not_be_written() -> None:
    """A file or folder that is read-only, or not to be read at all, is told so; given back, it is used as before."""
    code, output, errors = run_script(UNPRIVILEGED)
    assert code == 0, errors
    assert output.split() == ["store_read_only"] * 5


# -- file systems


@pytest.mark.parametrize("kind", ["nfs4", "nfs", "cifs", "smb3", "9p", "fuse.sshfs", "fuse.rclone", "ceph", "lustre"])
@pytest.mark.anyio
async def test_network_file_systems_are_refused(tmp_path: Path, kind: str) -> None:
    """A store on another machine's disk is refused by name before anything is made, to read as to write."""
    path = tmp_path / "var" / "foreword.db"
    for read_only in (False, True):
        store = SqliteStore(path, read_only=read_only, file_system=lambda _: kind)
        await fails(store, "store_network", kind, "disk of this machine")
    assert names_in(tmp_path) == set()


@pytest.mark.parametrize("kind", ["ext4", "btrfs", "xfs", "tmpfs", "overlay", "zfs", "fuse.mergerfs", "apfs", None])
@pytest.mark.anyio
async def test_other_file_systems_will_do(tmp_path: Path, kind: str | None) -> None:
    """File systems of this machine are used, and so is one of which nothing is known."""
    async with SqliteStore(tmp_path / "foreword.db", file_system=lambda _: kind) as store:
        await begun(store, "s")


MOUNTS = """\
21 1 254:0 / / rw,relatime - ext4 /dev/root rw
22 21 0:5 / /proc rw - proc proc rw
35 21 0:40 / /home rw shared:3 master:1 - nfs4 server:/home rw,addr=10.0.0.1
36 35 0:41 / /home/me/local\\040disk rw - xfs /dev/sdb rw
37 21 0:42 / /data rw - xfs /dev/sdc rw
38 37 0:43 / /data rw - cifs //server/data rw
39 21 0:44 / /mnt/x rw - fuse.sshfs me@host: rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/foreword.db", "ext4"),
        ("/homes/foreword.db", "ext4"),
        ("/home/me/foreword.db", "nfs4"),
        ("/home/me/local disk/foreword.db", "xfs"),
        ("/data/a/foreword.db", "cifs"),  # mounted over the other
        ("/mnt/x/foreword.db", "fuse.sshfs"),
        ("/mnt/xy/foreword.db", "ext4"),
    ],
)
def test_which_file_system_a_path_is_on(path: str, kind: str) -> None:
    """The mount point nearest above counts; of two on one point, the later."""
    assert mounted_type(Path(path), MOUNTS) == kind


@pytest.mark.skipif(sys.platform != "linux", reason="what is mounted is read from /proc")
def test_the_real_file_system_is_found(tmp_path: Path) -> None:
    """On Linux the type of the file system of a path is known, also of a file that is not there yet."""
    assert file_system_of(Path("/proc/self/status")) == "proc"
    assert file_system_of(tmp_path / "foreword.db") is not None


# -- disks that fail


def test_what_the_system_says_is_told() -> None:
    """An error of the operating system becomes one paragraph that says what to do."""
    for number, kind in ((errno.ENOSPC, "store_full"), (errno.EROFS, "store_read_only"), (errno.EIO, "store_io")):
        error = from_os(Path("/x.db"), OSError(number, os.strerror(number), "/x.db-claims"))
        assert error.kind == kind
        assert os.strerror(number) in str(error)
        one_paragraph(error)


FULL_DISK = """
    import anyio, sys
    from foreword.errors import StoreError
    from foreword.session.store.sqlite import SqliteStore
    from tests.session.store.support import batch_on, begun, check_whole, private

    async def main():
        async with SqliteStore(sys.argv[1] + "/foreword.db") as store:
            claim = await begun(store, "s")
            ballast = open(sys.argv[1] + "/ballast", "wb")
            ballast.write(bytes(500_000))
            ballast.flush()
            written = 1
            for kind in ("store_full", "store_full"):
                try:
                    while True:
                        await claim.write(batch_on(claim.row, 10, [private("x" * 20_000)]))
                        written += 10
                except StoreError as error:
                    assert error.kind == kind, error
                row = await claim.settle()
                assert row == claim.row == await check_whole(store, "s")
                assert row.count == written
            ballast.truncate(0)
            await claim.write(batch_on(claim.row, 10, [private("x" * 20_000)]))
            assert await store.checkpoint()
        async with SqliteStore(sys.argv[1] + "/foreword.db") as store:
            assert (await check_whole(store, "s")).count == written + 10
        print("went on")

    anyio.run(main)
"""


def test_a_full_disk(tmp_path: Path) -> None:
    """On a full disk a batch is refused as a whole, the store stays whole, and it goes on when there is room again."""
    mount = f"mount -t tmpfs -o size=1m none {tmp_path}"
    unshare = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec"]
    try:
        subprocess.run([*unshare, mount], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("nobody may mount a small disk here")
    done = subprocess.run(
        [*unshare, f'{mount}; exec "$0" -c "$1" {tmp_path}', sys.executable, textwrap.dedent(FULL_DISK)],
        capture_output=True, text=True, check=False, timeout=60, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr


def test_a_failing_disk(tmp_path: Path) -> None:
    """A write that fails midway (here at a limit for files) is told as such; settling tells what is there."""
    code, output, errors = run_script(f"""
        import anyio, resource
        from foreword.errors import StoreError
        from foreword.session.store.sqlite import SqliteStore
        from tests.session.store.support import batch_on, begun, check_whole, private

        async def main():
            async with SqliteStore({str(tmp_path / "foreword.db")!r}) as store:
                claim = await begun(store, "s")
                resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, -1))
                for _ in range(3):
                    try:
                        await claim.write(batch_on(claim.row, 10, [private("x" * 400_000)]))
                    except StoreError as error:
                        print(error.kind)
                    assert await claim.settle() == await check_whole(store, "s") == claim.row
                resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
                await claim.write(batch_on(claim.row, 10, [private("x" * 400_000)]))
                print((await check_whole(store, "s")).count)

        anyio.run(main)
    """)
    assert (code, output) == (0, "store_io\nstore_io\nstore_io\n11\n"), errors


@pytest.mark.anyio
async def test_a_damaged_file(tmp_path: Path) -> None:
    """A page that is overwritten is told as damage, with what to do, and the file is left as it is."""
    path = tmp_path / "foreword.db"
    async with SqliteStore(path) as store:
        await begun(store, "s", 2000)
    size = path.stat().st_size
    with path.open("r+b") as file:
        for page in range(7, size // 4096):
            file.seek(page * 4096)
            file.write(b"\x55" * 64)
    before = path.read_bytes()
    async with SqliteStore(path, read_only=True) as store:
        with pytest.raises(StoreError, match="is damaged; copy it") as caught:
            await store.events("s")
        assert caught.value.kind == "store_corrupt"
        one_paragraph(caught.value)
    assert path.read_bytes() == before


@pytest.mark.anyio
async def test_a_file_that_is_taken_away(tmp_path: Path) -> None:
    """What is written to a removed or replaced file would be lost, so it is refused; put back, it goes on."""
    path, away = tmp_path / "foreword.db", tmp_path / "away.db"
    async with SqliteStore(path) as store:
        claim = await begun(store, "s")
        path.rename(away)  # before anything was read, too
        for replacement in (None, b""):
            if replacement is not None:
                path.write_bytes(replacement)
            calls = [lambda: claim.write(batch_on(claim.row)), store.sessions, claim.settle, store.checkpoint]
            for call in calls:
                with pytest.raises(StoreError, match="was moved, removed or replaced while it was open") as caught:
                    await call()
                assert caught.value.kind == "store_replaced"
        away.rename(path)
        await claim.write(batch_on(claim.row))
        await check_whole(store, "s")


@pytest.mark.anyio
async def test_a_locked_file(tmp_path: Path) -> None:
    """A store that another program keeps locked is told as such when the patience ends; readers are not disturbed."""
    path = tmp_path / "foreword.db"
    async with SqliteStore(path, lock_timeout=0.05) as store:
        claim = await begun(store, "s")
        locker = sqlite3.connect(path, isolation_level=None)
        locker.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"is locked: another process .* for 0\.05 s") as caught:
            await claim.write(batch_on(claim.row))
        assert caught.value.kind == "store_locked"
        one_paragraph(caught.value)
        await check_whole(store, "s")
        locker.execute("ROLLBACK")
        locker.close()
        await claim.write(batch_on(claim.row))
