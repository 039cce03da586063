"""`foreword plugins`: what a deployment's plugins contribute, and which plugins are installed."""

import json
from pathlib import Path

import pytest
from tests.cli.support import deployment, piped, run, write

from foreword.cli.wrapping import cell_len
from foreword.compose import TrustStore

TEXT = """
    plugins:
      - {id: billing, use: "plugs:billing"}
      - {id: legal, use: "plugs:legal"}
      - {id: quiet, use: "plugs:quiet"}
      - {id: off, use: no-such-plugin, disabled: true}
"""


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages: two offer one plugin, one of them another as well."""
    site = tmp_path_factory.mktemp("site")
    offers = {"acme-one": "shared = plugs_one:legal\nalone = plugs_one:billing\n", "acme-two": "shared = plugs_two:x\n"}
    for name, entry_points in offers.items():
        info = site / f"{name.replace('-', '_')}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[foreword.plugins]\n{entry_points}")
    write(site, "from pathlib import Path\nPath(__file__).with_name('mark').write_text('ran')", "plugs_two.py")
    deployment(site, "", "none.yaml")  # for the plugins beside it
    (site / "plugs.py").rename(site / "plugs_one.py")
    return site


# -- of a deployment ---------------------------------------------------------------------------------------------------


def test_what_each_contributes(tmp_path: Path) -> None:
    """A row for each plugin: what the file calls it, how it fares, who it is, and what it contributes by kind."""
    deployment(tmp_path, TEXT)
    ran = run("plugins", "foreword.yaml", folder=tmp_path, columns=120)
    assert (ran.code, ran.err) == (0, "importing plugs\n")
    assert ran.out == (
        "Plugins of foreword.yaml  3 active, 1 disabled\n"
        "\n"
        "PLUGIN   STATE     OWNER         USE             CONTRIBUTES\n"
        "billing  active    acme-billing  plugs:billing   2 sections  billing:rules, tool:refund\n"
        "                                                 1 context   billing:hours\n"
        "                                                 1 tool      refund\n"
        "                                                 1 variable  currency\n"
        "legal    active    acme-legal    plugs:legal     1 section   legal:notice\n"
        "                                                 1 listener  legal.watch\n"
        "quiet    active    acme-quiet    plugs:quiet     nothing\n"
        "off      disabled                no-such-plugin\n"
    )


def test_in_a_narrow_terminal(tmp_path: Path) -> None:
    """Where the table does not fit, each plugin is a block, and nothing is lost."""
    deployment(tmp_path, TEXT)
    out = run("plugins", "foreword.yaml", folder=tmp_path, columns=40).out
    assert "\nbilling\n  state        active\n  owner        acme-billing\n" in out
    assert "\noff\n  state        disabled\n  use          no-such-plugin\n" in out
    for columns in (200, 80, 40, 20):
        out = run("plugins", "foreword.yaml", folder=tmp_path, columns=columns).out
        assert max(map(cell_len, out.splitlines())) <= columns
        bare = "".join(out.split())
        assert all(each in bare for each in ("billing:rules", "tool:refund", "legal.watch", "no-such-plugin"))


def test_json(tmp_path: Path) -> None:
    """In JSON each contribution has its kind, name, owner, scope and place, and tools have their names."""
    deployment(tmp_path, TEXT)
    told = json.loads(run("plugins", "foreword.yaml", "--json", folder=tmp_path).out)
    assert (list(told), told["deployment"]) == (["deployment", "plugins"], "foreword.yaml")
    keys = ("id", "use", "owner", "version", "state", "contributions", "tools")
    assert {tuple(each) for each in told["plugins"]} == {keys}
    billing, _, quiet, off = told["plugins"]
    assert billing["tools"] == ["refund"]
    assert [each["kind"] for each in billing["contributions"]] == [
        "variable", "section", "context", "tool provider", "section",
    ]  # fmt: skip
    assert billing["contributions"][0] == {
        "kind": "variable", "name": "currency", "owner": "acme-billing", "scope": None, "source": "plugs.py:15",
    }  # fmt: skip
    assert (quiet["contributions"], quiet["state"]) == ([], "active")
    assert off == {
        "id": "off", "use": "no-such-plugin", "owner": None, "version": None, "state": "disabled",
        "contributions": [], "tools": [],
    }  # fmt: skip
    elsewhere = json.loads(run("plugins", f"{tmp_path.name}/foreword.yaml", "--json", folder=tmp_path.parent).out)
    assert elsewhere["plugins"] == told["plugins"]


def test_the_version_of_an_installed_one(tmp_path: Path, site: Path) -> None:
    """A plugin that is used by its name has the version of its package."""
    deployment(tmp_path, "plugins: [{id: a, use: alone}]")
    done = piped("plugins", "foreword.yaml", "--json", folder=tmp_path, PYTHONPATH=str(site))
    (plugin,) = json.loads(done.stdout)["plugins"]
    assert (plugin["owner"], plugin["version"], plugin["use"]) == ("acme-billing", "1.2", "alone")


def test_a_prompt_that_cannot_be_assembled(tmp_path: Path) -> None:
    """Plugins are told all the same; only the names of tools are then not known, which is said."""
    write(
        tmp_path,
        """
        from foreword import SystemPrompt, ToolSchema
        def failing(prompt: SystemPrompt) -> None:
            prompt.tools([ToolSchema("t", "", {})])
            @prompt.section("s", order=1)
            def text(): raise ValueError("no\\ntext")
        """,
        "failing_one.py",
    )
    deployment(tmp_path, "plugins: [{id: a, use: 'failing_one:failing'}]")
    ran = run("plugins", "foreword.yaml", folder=tmp_path)
    assert ran.code == 0
    assert "1 section        s\n" in ran.out
    assert "1 tool provider  tools\n" in ran.out
    assert ran.err.startswith("warning: the prompt cannot be assembled, so the names of tools are not known: ")
    assert ran.err.count("\n") == 1


def test_a_deployment_without_plugins(tmp_path: Path) -> None:
    """A file that names none is told as such."""
    deployment(tmp_path, "")
    assert run("plugins", "foreword.yaml", folder=tmp_path).out == "Plugins of foreword.yaml  it names none\n"


def test_the_file_that_is_here(tmp_path: Path) -> None:
    """Without a file, the trusted one of the current folder counts; one that is not trusted is an error."""
    file = deployment(tmp_path, TEXT)
    ran = run("plugins", folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "foreword trust foreword.yaml" in ran.err
    assert not (tmp_path / "mark").exists()
    TrustStore().trust(file)
    assert run("plugins", folder=tmp_path).out.startswith("Plugins of foreword.yaml")


# -- installed ---------------------------------------------------------------------------------------------------------


def test_what_is_installed(tmp_path: Path, site: Path) -> None:
    """Where there is no deployment, installed plugins are listed, and none of their code runs; doubles are marked."""
    done = piped("plugins", folder=tmp_path, PYTHONPATH=str(site))
    assert done.returncode == 0
    double = "another package offers it, too: uninstall one, or use the target"
    expected = [
        "PLUGIN  PACKAGE   VERSION  TARGET             REMARK",
        "alone   acme-one  1.2      plugs_one:billing",
        f"shared  acme-one  1.2      plugs_one:legal    {double}",
        f"shared  acme-two  1.2      plugs_two:x        {double}",
    ]
    out = done.stdout.decode()
    assert out.startswith("Installed plugins  3, offered by 2 packages\n\n")
    assert out.splitlines()[2:] == expected
    assert not (site / "mark").exists()


def test_installed_as_json(tmp_path: Path, site: Path) -> None:
    """The same as JSON; `--installed` asks for it where a deployment stands, too."""
    deployment(tmp_path, TEXT)
    done = piped("plugins", "--installed", "--json", folder=tmp_path, PYTHONPATH=str(site))
    told = json.loads(done.stdout)
    assert (list(told), told["deployment"]) == (["deployment", "installed"], None)
    assert told["installed"][0] == {
        "name": "alone", "distribution": "acme-one", "version": "1.2", "target": "plugs_one:billing",
        "is_duplicate": False,
    }  # fmt: skip
    assert [each["is_duplicate"] for each in told["installed"]] == [False, True, True]
    assert not (tmp_path / "mark").exists()


def test_nothing_is_installed(tmp_path: Path) -> None:
    """Where there is nothing to list, that is said."""
    out = run("plugins", folder=tmp_path).out
    if "none" in out:  # whoever runs the tests may have some
        assert out.count("\n") == 1
    assert run("plugins", "--installed", "foreword.yaml", folder=tmp_path).code == 2
