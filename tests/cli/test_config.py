"""`foreword config`: every value in force and where it came from, without running anything."""

import json
import re
from pathlib import Path

import pytest
from tests.cli.support import Ran, deployment, run

from foreword.cli.wrapping import cell_len

TEXT = """
    system_prompt: {persona: Hello., limits: {text: 1000}}
    variables: {company: "Ac\\nme"}
    plugins:
      - id: a
        use: plugs:billing
        config: {currency: USD, key: "${env:CLI_KEY}", url: "https://${env:CLI_HOST:-h}/"}
"""


def rows(out: str) -> dict[str, tuple[str, str]]:
    """The settings of a table: value and place by path."""
    cells = [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in out.splitlines()]
    return {path: (value, place) for path, value, place in cells[1:]}


def test_every_value_and_its_place(tmp_path: Path) -> None:
    """Each value that was written is told with its line, each default as such; of secrets only the name."""
    deployment(tmp_path, TEXT)
    ran = run("config", "foreword.yaml", folder=tmp_path, columns=None, CLI_KEY="geheimnis")
    assert (ran.code, ran.err) == (0, "")
    told = rows(ran.out)
    assert told["variables.company"] == (r'"Ac\nme"', "foreword.yaml:3")
    assert told["plugins[0].config.currency"] == ('"USD"', "foreword.yaml:7")
    assert told["plugins[0].config.key"] == ("${env:CLI_KEY} (set)", "foreword.yaml:7")
    assert told["plugins[0].config.url"] == ('"https://${env:CLI_HOST}/" (CLI_HOST: not set)', "foreword.yaml:7")
    assert told["system_prompt.limits.text"] == ("1000", "foreword.yaml:2")
    assert told["system_prompt.limits.value"] == ("4194304", "default")
    assert told["system_prompt.tool_order"] == ("null", "default")
    assert "geheimnis" not in ran.out


def test_json(tmp_path: Path) -> None:
    """In JSON values are values, but for those that an expression stands for."""
    deployment(tmp_path, TEXT)
    ran = run("config", "foreword.yaml", "--json", folder=tmp_path, CLI_KEY="geheimnis")
    told = json.loads(ran.out)
    assert (list(told), told["file"]) == (["file", "settings"], "foreword.yaml")
    settings = {each["path"]: each for each in told["settings"]}
    assert settings["variables.company"] == {
        "path": "variables.company", "value": "Ac\nme", "is_expression": False, "from": "foreword.yaml:3",
    }  # fmt: skip
    assert settings["system_prompt.limits.text"]["value"] == 1000
    assert settings["plugins[0].config.key"]["value"] == "${env:CLI_KEY} (set)"
    assert settings["plugins[0].config.key"]["is_expression"]
    assert {tuple(each) for each in told["settings"]} == {("path", "value", "is_expression", "from")}


def test_an_unset_variable_is_a_finding(tmp_path: Path) -> None:
    """Where a variable without default is not set, everything is told all the same, and the exit code is 1."""
    deployment(tmp_path, TEXT)
    for options in ([], ["--json"]):
        ran = run("config", "foreword.yaml", *options, folder=tmp_path)
        assert ran.code == 1
        assert "${env:CLI_KEY} (not set)" in ran.out
        assert ran.err == (
            "warning: foreword.yaml:7: plugins[0].config.key: the environment variable CLI_KEY is not set; "
            "set it, or give a default: ${env:CLI_KEY:-default}\n"
        )


def test_nothing_is_run(tmp_path: Path) -> None:
    """A file that is only found is told without being trusted, since nothing of it is imported."""
    deployment(tmp_path, TEXT)
    ran = run("config", folder=tmp_path, CLI_KEY="x")
    assert (ran.code, ran.err) == (0, "")
    assert not (tmp_path / "mark").exists()


def test_texts_of_files_are_not_shown(tmp_path: Path) -> None:
    """Of a file that a deployment names, as one that was only found may name any, the name is told, and no text."""
    (tmp_path / "private").write_text("Nobody's business.")
    deployment(tmp_path, "system_prompt: {persona: {file: private}}")
    for options in ([], ["--json"], ["--traceback"]):
        ran = run("config", *options, folder=tmp_path)
        assert ran.code == 0
        assert "private" in ran.out
        assert "business" not in ran.out + ran.err


def test_toml_has_no_lines(tmp_path: Path) -> None:
    """Of TOML the file is told."""
    deployment(tmp_path, 'variables = {company = "Acme"}\n', "foreword.toml")
    told = rows(run("config", folder=tmp_path, columns=None).out)
    assert told["variables.company"] == ('"Acme"', "foreword.toml")


def test_faults_are_told(tmp_path: Path) -> None:
    """A file with faults has no values in force."""
    deployment(tmp_path, "variables: {ok: 3}\nplugins: 7\n")
    ran = run("config", folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "error: foreword.yaml has 2 faults:\n"
        "  foreword.yaml:2: variables.ok: must be a string, not a number; put it in quotes\n"
        "  foreword.yaml:3: plugins: must be a list of plugins, not a number\n"
        "mend them all, then run the command again\n"
    )
    assert run("config", "nope.yaml", folder=tmp_path) == Ran(
        2, "", "error: nope.yaml: is not there; . holds foreword.yaml\n"
    )


@pytest.mark.parametrize("columns", [200, 80, 40, 20])
def test_every_width(tmp_path: Path, columns: int) -> None:
    """No row is wider than the terminal, and nothing of a value is lost."""
    deployment(tmp_path, TEXT)
    out = run("config", folder=tmp_path, columns=columns, CLI_KEY="x").out
    assert max(map(cell_len, out.splitlines())) <= columns
    told = re.sub(r"foreword\.yaml:\d+", "", "".join(out.split()))  # which stands between the rows of a value
    assert '"https://${env:CLI_HOST}/"(CLI_HOST:notset)' in told
