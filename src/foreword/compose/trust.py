"""Which deployment files may run without being named: those that you trusted, as they stood when you did.

A file that the operator named runs. One that is only found, in a folder that somebody may have cloned, runs if its path
and the digest of its content stand in the operator's own list, which lies outside all such folders. Trusting a file
also trusts the modules of the folder it stands in, since its plugins are sought there first.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from foreword.compose.files import NAMES, read_file
from foreword.errors import DeploymentError, Fault, TrustStoreError, UntrustedFileError

__all__ = ["TrustEntry", "TrustStore", "check_trusted", "deployment_in", "find_deployment"]

_VARIABLE: Final = "FOREWORD_TRUST"


@dataclass(frozen=True, slots=True)
class TrustEntry:
    """One file that is trusted."""

    path: str  # absolute, links resolved
    sha256: str  # of its content


class TrustStore:
    """The operator's own list of trusted files.

    Args:
        path: the list; None for the file that the environment's ``FOREWORD_TRUST`` names, else one in the user's own
            data folder.

    Raises:
        TrustStoreError: ``FOREWORD_TRUST`` or the data folder is no absolute path, so that a folder that somebody
            else made could hold the list.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path is not None else _own_path()

    def trusts(self, file: str | Path, content: bytes | None = None) -> bool:
        """Whether a file is trusted as it stands.

        Args:
            file: the file.
            content: its bytes, where they were read already: what is judged must be what is run.
        """
        data = read_file(Path(file), str(file)) if content is None else content
        return self._read().get(_key(file)) == hashlib.sha256(data).hexdigest()

    def knows(self, file: str | Path) -> bool:
        """Whether a file was trusted, as it stands or as it stood."""
        return _key(file) in self._read()

    def trust(self, file: str | Path, content: bytes | None = None) -> TrustEntry:
        """Trust a file as it stands now.

        Args:
            file: the file.
            content: its bytes, where they were read already: what was looked at must be what is trusted.

        Returns:
            What now stands in the list.

        Raises:
            DeploymentError: it cannot be read.
            TrustStoreError: the list cannot be written.
        """
        data = read_file(Path(file), str(file)) if content is None else content
        entry = TrustEntry(_key(file), hashlib.sha256(data).hexdigest())
        self._write({**self._read(), entry.path: entry.sha256})
        return entry

    def revoke(self, file: str | Path) -> None:
        """Trust a file no more; one that is not in the list is no fault."""
        held = self._read()
        if held.pop(_key(file), None) is not None:
            self._write(held)

    def entries(self) -> tuple[TrustEntry, ...]:
        """All that are trusted, by path."""
        return tuple(TrustEntry(path, digest) for path, digest in sorted(self._read().items()))

    def _read(self) -> dict[str, str]:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as fault:
            raise TrustStoreError(str(self.path), f"cannot be read: {fault}") from fault
        try:
            held: object = json.loads(text)
        except ValueError:
            held = None
        files: Any = cast("dict[str, Any]", held).get("trusted") if isinstance(held, dict) else None
        if not isinstance(files, dict) or not all(isinstance(each, str) for each in files.values()):  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
            raise TrustStoreError(str(self.path), "is damaged; delete it, and trust your files again")
        return cast("dict[str, str]", files)

    def _write(self, files: dict[str, str]) -> None:
        text = json.dumps({"trusted": dict(sorted(files.items()))}, indent=2, ensure_ascii=True)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # beside it and then in its place, so that whoever reads meanwhile finds the old list or the new one
            with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=self.path.parent, delete=False) as stream:
                stream.write(text + "\n")
            Path(stream.name).replace(self.path)
        except OSError as fault:
            raise TrustStoreError(str(self.path), f"cannot be written: {fault}") from fault

    def __repr__(self) -> str:
        return f"<TrustStore {self.path}>"


def find_deployment(folder: str | Path | None = None, store: TrustStore | None = None) -> Path:
    """The deployment file of a folder, if it is trusted.

    Args:
        folder: where to look; None for the current folder.
        store: the list of trusted files; None for the operator's own.

    Returns:
        ``foreword.yaml``, ``foreword.yml`` or ``foreword.toml``, the first that is there. Open it with
        ``open_deployment(file, named=False)``, which looks again at what it then reads.

    Raises:
        DeploymentError: there is none.
        UntrustedFileError: it is not trusted, or has changed since.
    """
    file = deployment_in(Path() if folder is None else Path(folder))
    check_trusted(file, read_file(file, str(file)), store)
    return file


def deployment_in(folder: Path) -> Path:
    """The deployment file of a folder, trusted or not: it may be read, and nothing of it run.

    Raises:
        DeploymentError: there is none.
    """
    for name in NAMES:
        file = folder / name
        if file.exists() or file.is_symlink():
            return file
    why = f"there is no {', '.join(NAMES)} here; name a file, or write one with: foreword init"
    raise DeploymentError([Fault(str(folder.absolute()), None, "", why)])


def check_trusted(file: Path, content: bytes, store: TrustStore | None = None) -> None:
    """See that a file that was not named may run.

    Raises:
        UntrustedFileError: it may not.
    """
    store = TrustStore() if store is None else store
    if not store.trusts(file, content):
        known = store.knows(file)
        why = "has changed since you trusted it" if known else "was found, not named, and is not trusted"
        raise UntrustedFileError(str(file), why)


def _key(file: str | Path) -> str:
    """A file as the list calls it: two ways to it are one file."""
    return str(Path(file).resolve())


def _own_path() -> Path:
    named = os.environ.get(_VARIABLE)
    if named:
        path, what = Path(named), _VARIABLE
    else:
        from platformdirs import user_data_path

        path, what = user_data_path("foreword", appauthor=False) / "trust.json", "the user's data folder"
    if not path.is_absolute():  # it would lie in whatever folder one is in, which may be somebody else's
        raise TrustStoreError(str(path), f"is no absolute path; set {what} to one")
    return path
