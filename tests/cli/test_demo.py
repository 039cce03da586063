"""``foreword demo``: it runs anywhere, logs what it says, and proves it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.support import deployment, in_terminal, piped, plain, run

from foreword.cli.wrapping import cell_len

README = Path(__file__).parents[2] / "README.md"


def test_it_runs_in_an_empty_folder(tmp_path: Path) -> None:
    """Without a file, a key or an argument: a line a step, and a last line with the counts; no row is wider than 80."""
    done = piped("demo", folder=tmp_path, COLUMNS="80", OPENAI_API_KEY="", HOME=str(tmp_path / "nowhere"))
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode().splitlines()
    assert all(cell_len(line) <= 80 for line in lines)
    steps = [line.split() for line in lines if line[:1].isdigit() and "requests" not in line]
    assert [step[0] for step in steps] == list("12345678")
    assert lines[-1].startswith("8 steps, 9 requests, all rebuilt byte for byte (")
    assert lines[-1].endswith(" events intact")
    assert {file.name for file in tmp_path.iterdir()} <= {"foreword.db", "foreword.db-claims"}


def test_the_readme_shows_it(tmp_path: Path) -> None:
    """What the README shows is what it prints."""
    shown = README.read_text(encoding="utf-8").partition("$ foreword demo\n")[2].partition("\n$ ")[0]
    assert run("demo", folder=tmp_path, columns=80).out == f"{shown}\n"


def test_the_readme_shows_it_in_its_order(tmp_path: Path) -> None:
    """In the folder that `foreword init` made, too, where a deployment names no other store; elsewhere --log is told."""
    shop = tmp_path / "shop"
    assert run("init", "shop", folder=tmp_path).code == 0
    shown = README.read_text(encoding="utf-8").partition("$ foreword demo\n")[2].partition("\n$ ")[0]
    assert run("demo", folder=shop, columns=80).out == f"{shown}\n"
    assert run("log", "show", folder=shop).code == 0
    deployment(shop, "log: {store: 'sqlite:other.db'}\n")
    assert "foreword log show --log sqlite:foreword.db" in " ".join(run("demo", folder=shop).out.split())


def test_its_story_is_true(tmp_path: Path) -> None:
    """What each line says happened: a retry, a late tool, another model, a new fact with a masked tool, a compaction."""
    ran = run("demo", "--json", folder=tmp_path)
    told = json.loads(ran.out)
    assert (told["requests"], told["sent"], told["equal"], told["intact"]) == (9, 9, 9, True)
    assert [step["requests"] for step in told["steps"]] == [2, 1, 1, 1, 1, 1, 1, 1]
    assert [step["tools"] for step in told["steps"]] == [2, 2, 3, 3, 3, 3, 2, 2]
    assert [step["model"] for step in told["steps"]] == ["small"] * 4 + ["large"] * 4
    assert [step["messages"] for step in told["steps"]] == [2, 4, 6, 8, 10, 12, 15, 3]
    systems = [step["system"] for step in told["steps"]]
    assert len(set(systems)) == 2
    assert systems.index(systems[-1]) == 6  # the guidance goes with its tool, and nothing else changes the text
    events = json.loads(run("log", "show", "--json", folder=tmp_path).out)["events"]
    facts = [
        each["message"]["content"] for each in events if (each.get("source") or {}).get("kind") == "runtime-context"
    ]
    assert ["closed" in fact for fact in facts] == [False, True, True]
    assert len(events) == told["events"]


def test_its_log_is_a_log_like_others(tmp_path: Path) -> None:
    """The other commands read it; a second demo adds a session; --log puts it elsewhere."""
    for _ in range(2):
        assert run("demo", folder=tmp_path).code == 0
    assert len(json.loads(run("log", "list", "--json", folder=tmp_path).out)["sessions"]) == 2
    assert run("log", "verify", folder=tmp_path).code == 0
    assert json.loads(run("log", "rebuild", "last@5", folder=tmp_path).out)["config"]["model"] == "large"
    empty = tmp_path / "empty"
    empty.mkdir()
    ran = run("demo", "--log", f"sqlite:{tmp_path / 'elsewhere.db'}", folder=empty)
    assert (ran.code, list(empty.iterdir())) == (0, [])
    assert f"foreword log show --log sqlite:{tmp_path}" in " ".join(ran.out.split())
    assert run("demo", "--log", "nowhere", folder=empty).code == 2


@pytest.mark.slow
def test_in_a_terminal(tmp_path: Path) -> None:
    """In a terminal it has colours, and fits narrow ones."""
    ran = in_terminal("demo", folder=tmp_path, columns=40)
    assert ran.code == 0
    assert plain(ran.out) != ran.out
    assert all(cell_len(line) <= 40 for line in plain(ran.out).splitlines())


def test_a_network_is_not_needed(tmp_path: Path) -> None:
    """It makes no connection: not even a socket to another machine is opened."""
    code = (
        "import sys, socket\n"
        "def refuse(event, arguments):\n"
        "    if event == 'socket.connect': raise AssertionError('it wants a network')\n"
        "sys.addaudithook(refuse)\n"
        "sys.argv[1:] = ['demo']\n"
        "from foreword.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=tmp_path, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_its_predicted_hits_are_those_of_its_bytes(tmp_path: Path) -> None:
    """What `foreword cache` expects of the whole session is, within two points in a hundred, what a provider finds that
    holds each request's bytes against all that it was sent before."""
    assert run("demo", folder=tmp_path).code == 0
    told = json.loads(run("cache", "last", "--json", folder=tmp_path).out)
    sent: list[str] = []
    hits = 0
    for step in told["steps"]:
        request = json.loads(run("log", "rebuild", step["request"], folder=tmp_path).out)
        order = {key: request[key] for key in ("tools", "system", "messages")}
        read = json.dumps({"model": step["model"], **order}, separators=(",", ":"))
        hits += max((alike(read, earlier) for earlier in sent if step["model"] in earlier), default=0)
        sent.append(read)
    assert len(sent) == 9
    assert told["predicted_share"] == pytest.approx(hits / sum(map(len, sent)), abs=0.02)


def alike(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginning."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
