"""`foreword trust`: what goes into the list of trusted files, what is shown before, and how it goes again."""

import hashlib
import json
from pathlib import Path

import pytest
from tests.cli.support import Ran, deployment, run

from foreword.compose import TrustStore

TEXT = """
    plugins:
      - {id: billing, use: "plugs:billing", config: {key: "${env:CLI_KEY}", more: {deep: ["x ${env:CLI_HOST:-h}"]}}}
      - {id: other, use: "anyio.abc:x"}
      - {id: named, use: no-such-plugin}
"""


def test_what_it_names_is_shown_and_the_file_trusted(tmp_path: Path) -> None:
    """Plugins, where their code would come from, and the secrets they get are shown; then the file is trusted."""
    file = deployment(tmp_path, TEXT)
    ran = run("trust", folder=tmp_path, columns=None)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        f"{file}  names 3 plugins, new\n"
        "\n"
        "PLUGIN   USE             FROM                          IS GIVEN\n"
        "billing  plugs:billing   plugs.py beside the file      ${env:CLI_KEY}, ${env:CLI_HOST}\n"
        "other    anyio.abc:x     the installed packages\n"
        "named    no-such-plugin  no package that is installed\n"
        "\n"
        "trusted as it stands now, with the modules of its folder\n"
        f"sha256 {digest}\n"
    )
    assert not (tmp_path / "mark").exists()
    (entry,) = TrustStore().entries()
    assert (entry.path, entry.sha256) == (str(file.resolve()), digest)
    assert "names 3 plugins, trusted already\n" in run("trust", folder=tmp_path, columns=None).out
    file.write_text(file.read_text() + "# more\n")
    assert "names 3 plugins, changed since\n" in run("trust", folder=tmp_path, columns=None).out
    assert TrustStore().trusts(file)


def test_json(tmp_path: Path) -> None:
    """The same as JSON."""
    file = deployment(tmp_path, TEXT, "other.yaml")
    told = json.loads(run("trust", str(file), "--json").out)
    assert (list(told), told["path"]) == (["path", "sha256", "plugins"], str(file.resolve()))
    assert told["plugins"][0] == {
        "id": "billing", "use": "plugs:billing", "from": "plugs.py beside the file",
        "environment": ["CLI_KEY", "CLI_HOST"],
    }  # fmt: skip
    assert TrustStore().trusts(file)


def test_a_package_beside_the_file(tmp_path: Path) -> None:
    """Code is sought beside the file first, also where a package of that name is installed."""
    deployment(tmp_path, "plugins: [{id: a, use: 'anyio.abc:x'}]")
    (tmp_path / "anyio").mkdir()
    assert "anyio/ beside the file" in run("trust", folder=tmp_path).out


def test_only_a_file_in_order_is_trusted(tmp_path: Path) -> None:
    """A file with faults is not trusted: nobody could say what it names."""
    deployment(tmp_path, "plugins: [{id: a}]")
    ran = run("trust", folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "plugins[0].use: is missing" in ran.err
    assert TrustStore().entries() == ()
    assert run("trust", folder=tmp_path / "..").code == 2


def test_the_list(tmp_path: Path, store: Path) -> None:
    """`--list` tells of each file whether it is as it was trusted."""
    for name in ("a.yaml", "b.yaml", "c.yaml", "d.yaml"):
        deployment(tmp_path, "", name)
        assert run("trust", name, folder=tmp_path).code == 0
    (tmp_path / "b.yaml").write_text("foreword: 1\n# more\n")
    (tmp_path / "c.yaml").unlink()
    (tmp_path / "d.yaml").unlink()
    (tmp_path / "d.yaml").mkdir()
    told = json.loads(run("trust", "--list", "--json").out)
    assert (list(told), told["store"]) == (["store", "trusted"], str(store))
    assert [each["state"] for each in told["trusted"]] == ["trusted", "changed", "gone", "unreadable"]
    assert {tuple(each) for each in told["trusted"]} == {("path", "sha256", "state")}
    rows = run("trust", "--list", columns=None).out.splitlines()
    assert rows[0] == f"Trusted files  4, listed in {store}"
    assert [row.split()[:2] for row in rows[3:]] == [[each["path"], each["state"]] for each in told["trusted"]]


def test_an_empty_list(store: Path) -> None:
    """Nothing is trusted before somebody says so."""
    assert run("trust", "--list", columns=None) == Ran(0, f"Trusted files  0, listed in {store}\n", "")


def test_removing(tmp_path: Path) -> None:
    """`--remove` takes a file out of the list, also one that is gone; one that is not in it is an error."""
    file = deployment(tmp_path, TEXT)
    run("trust", folder=tmp_path)
    assert run("trust", "--remove", folder=tmp_path).out == "foreword.yaml is trusted no more\n"
    assert TrustStore().entries() == ()
    ran = run("trust", "--remove", "foreword.yaml", folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: foreword.yaml is not in the list of trusted files; see foreword trust --list\n"
    run("trust", folder=tmp_path)
    file.unlink()
    told = json.loads(run("trust", str(file), "--remove", "--json").out)
    assert told == {"path": str(file.resolve()), "sha256": None}
    assert TrustStore().entries() == ()


@pytest.mark.parametrize("arguments", [["--list", "x.yaml"], ["--list", "--remove"]])
def test_wrong_usage(arguments: list[str]) -> None:
    """`--list` goes with nothing else."""
    ran = run("trust", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert "--list is about all files" in ran.err


def test_a_list_that_cannot_be_used(tmp_path: Path, store: Path) -> None:
    """A damaged list, or one that lies where anybody could write it, is an error that says so."""
    file = deployment(tmp_path, "")
    store.write_text("damaged")
    for arguments in (["trust", str(file)], ["trust", "--list"], ["trust", "--remove", str(file)]):
        ran = run(*arguments)
        assert (ran.code, ran.out) == (2, "")
        assert "is damaged; delete it, and trust your files again" in ran.err
    assert "is no absolute path" in run("trust", "--list", FOREWORD_TRUST="trust.json").err
    assert run("show", folder=tmp_path).code == 2
