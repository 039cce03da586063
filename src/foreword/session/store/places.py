"""Where a store may stand: in a folder of the file system of this machine, readable by nobody else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from foreword.errors import StoreError

__all__ = [
    "check_file",
    "check_writable",
    "claims_folder",
    "file_system_of",
    "make_file",
    "make_folder",
    "mounted_type",
    "path_of",
    "sync",
]

_MOUNTS: Final = Path("/proc/self/mountinfo")

# Of other machines, or shared with them: locks and shared memory, which SQLite's WAL needs, do not reach over.
# fmt: off
_NETWORK: Final = frozenset({
    "9p", "acfs", "afs", "beegfs", "ceph", "cifs", "coda", "cvmfs", "davfs", "fhgfs", "gfs", "gfs2", "glusterfs",
    "gpfs", "lustre", "ncpfs", "nfs", "nfs3", "nfs4", "ocfs2", "orangefs", "panfs", "prl_fs", "pvfs2", "smb3",
    "smbfs", "vboxsf",
})
_NETWORK_FUSE: Final = frozenset({
    "blobfuse", "blobfuse2", "ceph-fuse", "curlftpfs", "davfs", "davfs2", "gcsfuse", "geesefs", "glusterfs",
    "goofys", "juicefs", "mfs", "mount-s3", "rclone", "s3fs", "seaweedfs", "smbnetfs", "sshfs", "vmhgfs-fuse",
})
# fmt: on


def path_of(url: str) -> Path:
    """The file of a URL like ``sqlite:foreword.db``.

    Raises:
        StoreError: it is none that we know; the message shows nothing behind its scheme, which may be a password.
    """
    scheme, colon, path = url.partition(":")
    if not colon or scheme != "sqlite":
        given = f"{scheme}:…" if colon else url
        raise _bad_url(given, "is of no kind that we know; a store is given as sqlite:PATH, as in sqlite:foreword.db")
    if path.startswith("//"):
        raise _bad_url(url, "has slashes before its path; write sqlite:foreword.db, or sqlite:/var/lib/foreword.db")
    if path == ":memory:":
        raise _bad_url(url, "would be gone with the process; give a file, or in tests use foreword.testing.MemoryStore")
    if not path or path.endswith("/") or "\0" in path:
        raise _bad_url(url, "names no file; a store is given as sqlite:PATH, as in sqlite:foreword.db")
    return Path(path).expanduser().absolute()


def _bad_url(url: str, why: str) -> StoreError:
    return StoreError(url, "store_url", why)


def claims_folder(store: Path) -> Path:
    """The folder beside a store where its claims are."""
    return store.with_name(f"{store.name}-claims")


def check_file(store: Path, file_system: str | None) -> None:
    """See whether a store can be at its path, before SQLite is asked.

    Args:
        store: the path of the file, which need not be there.
        file_system: the type of the file system that it is on; None if that is not known.

    Raises:
        StoreError: its folder is missing, it is a folder or a device, or it is on another machine.
    """
    if store.exists() and not store.is_file():
        it_is = "is a folder" if store.is_dir() else "is no regular file"
        raise StoreError(str(store), "store_not_a_file", f"{it_is}; give the path of a file, as in sqlite:foreword.db")
    if file_system is not None and _is_network(file_system):
        raise StoreError(
            str(store),
            "store_network",
            f"is on a network file system ({file_system}), where SQLite's locks and shared memory cannot be relied on; "
            f"keep the store on a disk of this machine",
        )


def make_folder(store: Path) -> None:
    """Make the folder of a store if it is missing, for its owner only; not the one above.

    Raises:
        StoreError: the folder above is missing, or what is there is no folder.
        OSError: it cannot be made.
    """
    folder = store.parent
    if folder.is_dir():
        return
    if folder.exists():
        raise StoreError(str(store), "store_no_folder", f"cannot be in {folder}, which is no folder; give another path")
    if not folder.parent.is_dir():
        why = f"has no folder to be in: there is no {folder.parent}; make it, or give another path"
        raise StoreError(str(store), "store_no_folder", why)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync(folder.parent)


def make_claims_folder(store: Path) -> None:
    """Make the folder for a store's claims if it is missing, for its owner only."""
    claims_folder(store).mkdir(mode=0o700, exist_ok=True)


def make_file(store: Path) -> None:
    """Make an empty file, readable for its owner only, if none is there; SQLite gives those beside it the same mode."""
    try:
        os.close(os.open(store, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    sync(store.parent)


def check_writable(store: Path) -> None:
    """See that SQLite can write a file that is there, which it would find out too late.

    It opens what may not be written to read only, and so makes files beside it that may not be written either.

    Raises:
        StoreError: something may not be written; says what.
    """
    for each in (store, *(store.with_name(store.name + ending) for ending in ("-wal", "-shm"))):
        if each.exists() and not os.access(each, os.R_OK | os.W_OK):
            why = f"cannot be written: {each} is read-only for you, or unreadable; change that, or use another store"
            raise StoreError(str(store), "store_read_only", why)


def sync(place: Path) -> None:
    """Make durable what a file holds, or which names are in a folder."""
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_system_of(store: Path) -> str | None:
    """The type of the file system that a path is on, as Linux calls it; None where that cannot be known."""
    if not _MOUNTS.exists():
        return None
    return mounted_type(Path(os.path.realpath(store)), _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape"))


def mounted_type(path: Path, mounts: str) -> str | None:
    """The type of the file system that a path is on.

    Args:
        path: absolute, and without symbolic links.
        mounts: the text of ``/proc/self/mountinfo`` (proc(5)): of two mounts on one point, the later hides the earlier.
    """
    found: tuple[int, str] | None = None
    for line in mounts.splitlines():
        before, separator, behind = line.partition(" - ")
        if not separator:
            continue
        point = Path(_unescaped(before.split(" ")[4]))
        if path.is_relative_to(point) and (found is None or len(point.parts) >= found[0]):
            found = len(point.parts), behind.split(" ")[0]
    return None if found is None else found[1]


def _unescaped(text: str) -> str:
    for octal, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(octal, character)
    return text


def _is_network(file_system: str) -> bool:
    kind, _, subtype = file_system.partition(".")
    return kind in _NETWORK or (kind in {"fuse", "fuseblk"} and subtype in _NETWORK_FUSE)
