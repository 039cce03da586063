"""`foreword init`: a deployment that works at once, and never at the cost of what is there."""

import json
from pathlib import Path

import pytest
from tests.cli.support import piped, run

from foreword.cli.wrapping import cell_len
from foreword.compose import TrustStore, read_deployment, schema

FILES = ["foreword.yaml", "persona.md", "refunds.py", ".foreword/schema.json"]
PROMPT = """\
You are Acme's support assistant.
Answer in the customer's language, in three sentences at most.

Refunds of up to 50 EUR need no consent.

Call refund once per order, and tell the customer the sum.
"""


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """All that is in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def names(folder: Path) -> list[str]:
    """What stands in a folder."""
    return [path.name for path in folder.iterdir()]


def test_init_and_show(tmp_path: Path) -> None:
    """In a fresh folder, `init` and then `show` print a prompt; so do an agent and all other commands."""
    ran = run("init", folder=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert sorted(name for name, data in snapshot(tmp_path).items() if data is not None) == sorted(FILES)
    assert all(name in ran.out for name in [*FILES, "foreword show", "foreword trust"])
    shown = run("show", folder=tmp_path)
    assert (shown.code, shown.out, shown.err) == (0, PROMPT, "")
    assert run("show", "--agent", "trainee", folder=tmp_path).out == PROMPT[: PROMPT.index("\n\nCall")] + "\n"
    assert "2 sections" in run("plugins", folder=tmp_path).out
    config = run("config", folder=tmp_path)
    assert (config.code, config.err) == (0, "")
    assert "refund service is not connected" in run("show", "--contexts", folder=tmp_path).out
    assert "not connected" not in run("show", "--contexts", folder=tmp_path, REFUNDS_KEY="geheimnis").out


def test_in_another_process(tmp_path: Path) -> None:
    """The same as users do it."""
    assert piped("init", "a b/deep", folder=tmp_path).returncode == 0
    done = piped("show", folder=tmp_path / "a b" / "deep")
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, PROMPT, b"")


def test_what_is_written(tmp_path: Path) -> None:
    """The file chooses its identity, says where its schema is, and has no fault; the schema is that of `schema`."""
    run("init", "new", folder=tmp_path)
    text = (tmp_path / "new" / "foreword.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=.foreword/schema.json\nforeword: 1\n")
    held = read_deployment(tmp_path / "new" / "foreword.yaml")
    assert held.system_prompt.include_harness_identity is False
    assert held.origin_of("system_prompt.include_harness_identity").endswith("foreword.yaml:6")
    assert json.loads((tmp_path / "new" / ".foreword" / "schema.json").read_text()) == schema()


def test_where_to_go(tmp_path: Path) -> None:
    """Written into another folder, the first thing to do is to change to it, whatever it is called."""
    assert "  cd plain  " in run("init", "plain", folder=tmp_path).out
    assert "  cd 'two words'  " in run("init", "two words", folder=tmp_path).out
    assert "  cd " not in run("init", ".", folder=tmp_path).out


def test_json(tmp_path: Path) -> None:
    """As JSON: the folder, the files, and which of them is trusted."""
    told = json.loads(run("init", "--json", folder=tmp_path).out)
    assert told == {"folder": str(tmp_path), "written": FILES, "trusted": str((tmp_path / "foreword.yaml").resolve())}
    assert [each.path for each in TrustStore().entries()] == [told["trusted"]]


def test_twice(tmp_path: Path) -> None:
    """The second time nothing is written, and all that is in the way is named."""
    run("init", folder=tmp_path)
    (tmp_path / "foreword.yaml").write_text("foreword: 1\n# mine\n")
    before = snapshot(tmp_path)
    trusted = TrustStore().entries()
    ran = run("init", folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f"error: {tmp_path} already holds foreword.yaml, persona.md, refunds.py, .foreword/schema.json, "
        "so nothing was written; name another folder: foreword init FOLDER\n"
    )
    assert snapshot(tmp_path) == before
    assert TrustStore().entries() == trusted


@pytest.mark.parametrize("name", [*FILES, "foreword.yml", "foreword.toml", "refunds/__init__.py"])
def test_nothing_is_overwritten(tmp_path: Path, name: str) -> None:
    """One file in the way, also one that would take the new deployment's place, is enough: nothing is written."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    before = snapshot(tmp_path)
    ran = run("init", folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert f"already holds {name}, so nothing was written" in ran.err
    assert snapshot(tmp_path) == before
    assert TrustStore().entries() == ()


def test_a_link_to_nowhere_is_in_the_way(tmp_path: Path) -> None:
    """A link that leads nowhere is something that is there; nothing is written through it."""
    (tmp_path / "persona.md").symlink_to(tmp_path / "elsewhere")
    assert "already holds persona.md" in run("init", folder=tmp_path).err
    assert names(tmp_path) == ["persona.md"]


def test_all_or_nothing(tmp_path: Path, store: Path) -> None:
    """Where something cannot be written, the list of trusted files included, nothing stays behind."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / ".foreword").write_text("a file")
    ran = run("init", "one", folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "the folder one/.foreword cannot be made" in ran.err
    assert names(tmp_path / "one") == [".foreword"]
    store.write_text("damaged")
    ran = run("init", "two/deep", folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "is damaged" in ran.err
    assert names(tmp_path) == ["one"]
    (tmp_path / "file").write_text("")
    assert run("init", "file", folder=tmp_path).code == 2
    assert run("init", "file/below", folder=tmp_path).code == 2


@pytest.mark.parametrize("columns", [200, 80, 40])
def test_every_width(tmp_path: Path, columns: int) -> None:
    """What was written and what to do next fits every terminal."""
    out = run("init", "x", folder=tmp_path, columns=columns).out
    assert max(map(cell_len, out.splitlines())) <= columns
