"""Trust: a file that was named runs; one that was found runs only as it stood when its owner trusted it."""

from __future__ import annotations

import json
import pickle
import stat
from pathlib import Path

import pytest
from tests.compose.support import Folder

from foreword.compose import (
    DeploymentError,
    TrustEntry,
    TrustStore,
    TrustStoreError,
    UntrustedFileError,
    find_deployment,
    open_deployment,
)

HOSTILE = "plugins: [{id: a, use: 'plugs:billing'}]\nsystem_prompt: {persona: {file: /etc/passwd}}\n"


@pytest.fixture
def store(tmp_path_factory: pytest.TempPathFactory) -> TrustStore:
    return TrustStore(tmp_path_factory.mktemp("own") / "deep" / "trust.json")


def test_trusting(folder: Folder, store: TrustStore) -> None:
    """A file is trusted as it stands: not before, not after a change, again after it is changed back."""
    file = folder.deployment("variables: {}\n")
    assert not store.trusts(file)
    store.trust(file)
    assert store.trusts(file)
    text = file.read_text()
    file.write_text(text + "#")
    assert not store.trusts(file)
    assert store.knows(file)
    file.write_text(text)
    assert store.trusts(file)
    store.revoke(file)
    assert not store.trusts(file)
    store.revoke(file)


def test_a_copy_is_another_file(folder: Folder, store: TrustStore) -> None:
    """The same content elsewhere is not trusted; another way to the same file is."""
    file = folder.deployment("variables: {}\n")
    store.trust(file)
    assert not store.trusts(folder.write("copy/foreword.yaml", file.read_bytes()))
    (folder.path / "link").symlink_to(folder.path)
    assert store.trusts(folder.path / "link" / "foreword.yaml")
    assert store.trusts(folder.path / "copy" / ".." / "foreword.yaml")


def test_entries(folder: Folder, store: TrustStore) -> None:
    """The list tells path and digest, by path, and outlives the process."""
    second, first = folder.write("b.yaml", "foreword: 1\n"), folder.write("a.yaml", "foreword: 1\n")
    assert store.entries() == ()
    for file in (second, first):
        store.trust(file)
    entries = TrustStore(store.path).entries()
    assert [each.path for each in entries] == [str(first.resolve()), str(second.resolve())]
    assert entries[0] == TrustEntry(str(first.resolve()), entries[1].sha256)
    assert len(entries[0].sha256) == 64


def test_the_list_is_its_owners(folder: Folder, store: TrustStore) -> None:
    """Nobody else may read or write the list, and nothing else is left in its folder."""
    store.trust(folder.deployment(""))
    assert stat.S_IMODE(store.path.stat().st_mode) & 0o077 == 0
    assert stat.S_IMODE(store.path.parent.stat().st_mode) & 0o077 == 0
    assert [each.name for each in store.path.parent.iterdir()] == ["trust.json"]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"trusted": []}', '{"trusted": {"/a": 1}}', "no json", "\udcff"])
def test_a_damaged_list(folder: Folder, store: TrustStore, text: str) -> None:
    """A damaged list trusts nothing: it is an error that says what to do."""
    store.path.parent.mkdir(parents=True)
    store.path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(TrustStoreError, match=r"trust\.json"):
        store.trusts(folder.deployment(""))


def test_what_was_looked_at_is_trusted(folder: Folder, store: TrustStore) -> None:
    """Given the bytes that were read, those are trusted, and what the file has become meanwhile is not."""
    file = folder.deployment("variables: {}\n")
    content = file.read_bytes()
    file.write_text("foreword: 1\nplugins: [{id: a, use: 'evil:x'}]\n")
    entry = store.trust(file, content)
    assert store.entries() == (entry,)
    assert not store.trusts(file)
    assert store.trusts(file, content)


def test_what_cannot_be_read_is_not_trusted(folder: Folder, store: TrustStore) -> None:
    """Only a file that is there can be trusted."""
    with pytest.raises(DeploymentError, match="is not there"):
        store.trust(folder.path / "foreword.yaml")


def test_where_the_list_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is where FOREWORD_TRUST says, else in the user's data folder; never relative to the current folder."""
    monkeypatch.setenv("FOREWORD_TRUST", str(tmp_path / "mine.json"))
    assert TrustStore().path == tmp_path / "mine.json"
    monkeypatch.setenv("FOREWORD_TRUST", "mine.json")
    with pytest.raises(TrustStoreError, match="FOREWORD_TRUST"):
        TrustStore()
    monkeypatch.delenv("FOREWORD_TRUST")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert TrustStore().path.is_relative_to(tmp_path)


# -- finding -----------------------------------------------------------------------------------------------------------


def test_finding(folder: Folder, store: TrustStore) -> None:
    """Of a folder's files the first of .yaml, .yml, .toml counts, if it is trusted."""
    with pytest.raises(DeploymentError, match=r"there is no foreword\.yaml, foreword\.yml, foreword\.toml here"):
        find_deployment(folder.path, store)
    toml = folder.write("foreword.toml", "foreword = 1\n")
    with pytest.raises(UntrustedFileError, match=r"was found, not named.*foreword trust"):
        find_deployment(folder.path, store)
    store.trust(toml)
    assert find_deployment(folder.path, store) == toml
    yaml = folder.write("foreword.yaml", "foreword: 1\n")
    with pytest.raises(UntrustedFileError, match=r"foreword\.yaml"):
        find_deployment(folder.path, store)
    store.trust(yaml)
    assert find_deployment(folder.path, store) == yaml
    yaml.write_text("foreword: 1\n#\n")
    with pytest.raises(UntrustedFileError, match="has changed since you trusted it"):
        find_deployment(folder.path, store)


def test_finding_in_the_current_folder(folder: Folder, store: TrustStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a folder the current one counts, and the operator's own list."""
    monkeypatch.chdir(folder.path)
    monkeypatch.setenv("FOREWORD_TRUST", str(store.path))
    file = folder.deployment("")
    with pytest.raises(UntrustedFileError):
        find_deployment()
    store.trust(file)
    assert find_deployment() == Path("foreword.yaml")


def test_the_error(folder: Folder, store: TrustStore) -> None:
    """The error is a PermissionError, names its kind, and survives pickling."""
    folder.deployment("")
    with pytest.raises(PermissionError) as caught:
        find_deployment(folder.path, store)
    error = caught.value
    assert isinstance(error, UntrustedFileError)
    assert error.kind == "untrusted_file"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


# -- a hostile folder --------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_hostile_folder_runs_nothing(folder: Folder, store: TrustStore) -> None:
    """A file that was only found runs nothing of its folder, nor is any other file of it read."""
    folder.plugins()
    file = folder.deployment(HOSTILE)
    with pytest.raises(UntrustedFileError):
        find_deployment(folder.path, store)
    with pytest.raises(UntrustedFileError):
        async with open_deployment(file, named=False, store=store):
            pass
    assert not (folder.path / "mark").exists()


@pytest.mark.anyio
async def test_a_named_file_runs(folder: Folder) -> None:
    """A file that was named runs."""
    folder.plugins()
    async with folder.open("plugins: [{id: a, use: 'plugs:billing'}]"):
        assert (folder.path / "mark").exists()


@pytest.mark.anyio
async def test_a_trusted_file_runs(folder: Folder, store: TrustStore) -> None:
    """A file that was found and is trusted runs; what is judged is what is run."""
    folder.plugins()
    file = folder.deployment("plugins: [{id: a, use: 'plugs:billing'}]")
    store.trust(file)
    async with open_deployment(find_deployment(folder.path, store), named=False, store=store) as app:
        assert app.plugins[0].state == "active"
    (folder.path / "mark").unlink()
    found = find_deployment(folder.path, store)
    folder.deployment("plugins: [{id: a, use: 'plugs:tools'}]")  # between the look and the opening
    with pytest.raises(UntrustedFileError):
        async with open_deployment(found, named=False, store=store):
            pass
    assert not (folder.path / "mark").exists()


def test_the_list_does_not_come_from_the_folder(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that lies in the folder is not read: the operator's own is elsewhere."""
    file = folder.deployment(HOSTILE)
    listed = {"trusted": {str(file.resolve()): __import__("hashlib").sha256(file.read_bytes()).hexdigest()}}
    folder.write("trust.json", json.dumps(listed))
    folder.write(".local/share/foreword/trust.json", json.dumps(listed))
    monkeypatch.chdir(folder.path)
    monkeypatch.setenv("FOREWORD_TRUST", "trust.json")
    with pytest.raises(TrustStoreError):
        find_deployment()
    monkeypatch.delenv("FOREWORD_TRUST")
    monkeypatch.setenv("XDG_DATA_HOME", ".local/share")
    with pytest.raises((TrustStoreError, UntrustedFileError)):
        find_deployment()
