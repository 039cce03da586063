"""`foreword schema`: what editors complete a file with, printed or written."""

import json
from pathlib import Path

from tests.cli.support import run

from foreword.compose import schema


def test_the_schema_is_printed() -> None:
    """Without options the schema goes to stdout, with `--json` as well."""
    for options in ([], ["--json"]):
        ran = run("schema", *options)
        assert (ran.code, ran.err, json.loads(ran.out)) == (0, "", schema())


def test_the_schema_is_written(tmp_path: Path) -> None:
    """`--write` puts it where the first line of a deployment says, or where one wants it."""
    ran = run("schema", "--write", folder=tmp_path)
    assert ran.code == 0
    assert json.loads((tmp_path / ".foreword" / "schema.json").read_text()) == schema()
    assert "\n# yaml-language-server: $schema=.foreword/schema.json\n" in ran.out
    assert run("schema", "--write", "deep/er/s.json", folder=tmp_path).code == 0
    assert json.loads((tmp_path / "deep" / "er" / "s.json").read_text()) == schema()


def test_an_older_schema_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    """Writing again is fine; over a file that is no schema it is refused."""
    run("schema", "--write", "s.json", folder=tmp_path)
    older = json.loads((tmp_path / "s.json").read_text())
    (tmp_path / "s.json").write_text(json.dumps({**older, "properties": {}}))
    assert run("schema", "--write", "s.json", folder=tmp_path).code == 0
    assert json.loads((tmp_path / "s.json").read_text()) == schema()
    for name, text in (("foreword.yaml", "foreword: 1\n"), ("other.json", "[1]"), ("empty.json", "{}")):
        (tmp_path / name).write_text(text)
        ran = run("schema", "--write", name, folder=tmp_path)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == f"error: {name} is there, and is no schema of foreword; name another file, or take it away\n"
        assert (tmp_path / name).read_text() == text


def test_what_cannot_be_written(tmp_path: Path) -> None:
    """A folder that cannot be made is told."""
    (tmp_path / "file").write_text("")
    ran = run("schema", "--write", "file/schema.json", folder=tmp_path)
    assert ran.code == 2
    assert ran.err.startswith("error: file/schema.json cannot be written: ")
