"""``foreword run``: an agent answers, by a real server, and what was sent is what the log gives again."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from pathlib import Path
from threading import Event

import pytest
from tests.cli.agents import KEY, Child, answers, served, shop
from tests.cli.support import COMMAND, clean_environment, in_terminal, run, write
from tests.support.recording_server import RecordingServer, call, chunk, failing, said, streaming, text, usage

from foreword.compose import TrustStore

MODEL = "openai:gpt-5-mini"


def wait_for(file: Path) -> None:
    """Wait until a file is there."""
    limit = time.monotonic() + 30
    while not file.exists():
        assert time.monotonic() < limit, f"there is no {file}"
        time.sleep(0.01)


# -- an answer ---------------------------------------------------------------------------------------------------------


def test_an_answer(tmp_path: Path) -> None:
    """The answer alone goes to stdout; tool calls, a line each, and the sum to stderr, beside what plugins print."""
    asking = streaming(
        text("Let me see."), call(0, '{"order": 4711}', id="c1", name="lookup"), chunk(finish="tool_calls"), usage()
    )
    with RecordingServer(asking, said("It is late.")) as server:
        shop(tmp_path, MODEL)
        ran = run("run", "foreword.yaml", "Where is it?", folder=tmp_path, **served(server))
    assert (ran.code, ran.out) == (0, "Let me see.\nIt is late.\n"), ran.err
    printed, *told = sorted(ran.err.splitlines(), key=lambda line: line.startswith("["))
    assert printed == "looking 4711"
    assert told[0] == '[lookup {"order": 4711}]'
    assert told[1].startswith("[completed: 2 steps, 1 tool call, 24 tokens in, 6 out; foreword log show ")


def test_what_was_sent_is_what_the_log_gives(tmp_path: Path) -> None:
    """Each body that the server got is rebuilt to the byte, and so is the neutral request, with all plugins gone."""
    asking = streaming(call(0, '{"order": 4711}', id="c1", name="lookup"), chunk(finish="tool_calls"), usage())
    with RecordingServer(failing(503), asking, said("It is late.")) as server:
        shop(tmp_path, MODEL)
        assert run("run", "foreword.yaml", "Where is it?", folder=tmp_path, **served(server)).code == 0
    for file in ("foreword.yaml", "desk.py"):
        (tmp_path / file).unlink()
    addresses = ["last@1/1", "last@1", "last@1.2"]
    assert len(server.requests) == len(addresses)
    for address, request in zip(addresses, server.requests, strict=True):
        body = run("log", "rebuild", address, "--body", folder=tmp_path)
        assert (body.code, body.out.encode()) == (0, request.body + b"\n")
        neutral = json.loads(run("log", "rebuild", address, folder=tmp_path).out)
        assert neutral["system"] == "You are a clerk.\n\nBe brief."
        assert len(neutral["messages"]) == len(request.json["messages"]) - 1
    assert run("log", "verify", folder=tmp_path).code == 0


def test_sessions_go_on(tmp_path: Path) -> None:
    """`--session` goes on with one, `--label` labels a new one, `--model` takes another model."""
    with RecordingServer(said("One."), said("Two.")) as server:
        shop(tmp_path, MODEL)
        begun = run("run", "foreword.yaml", "--label", "ticket=a=b", "Hi", folder=tmp_path, **served(server))
        more = ["--session", "last", "--model", "openai:gpt-5", "--agent", "support", "More"]
        gone_on = run("run", "foreword.yaml", *more, folder=tmp_path, **served(server))
    assert (begun.code, gone_on.code, gone_on.out) == (0, 0, "Two.\n")
    assert [request.json["model"] for request in server.requests] == ["gpt-5-mini", "gpt-5"]
    assert [message["content"] for message in server.requests[1].json["messages"]][3:] == ["One.", "More"]
    (session,) = json.loads(run("log", "list", "--json", folder=tmp_path).out)["sessions"]
    assert session["labels"] == {"tenant": "acme", "ticket": "a=b"}


def test_what_is_read_from_stdin(tmp_path: Path) -> None:
    """With - the text comes from stdin, to the letter."""
    with RecordingServer(said("Ok.")) as server:
        shop(tmp_path, MODEL)
        from click.testing import CliRunner

        from foreword.cli.main import main

        done = CliRunner(env=served(server)).invoke(
            main, ["run", str(tmp_path / "foreword.yaml"), "--log", f"sqlite:{tmp_path}/a.db", "-"], input=" a\nb "
        )
    assert done.exit_code == 0
    assert server.requests[0].json["messages"][1]["content"] == " a\nb "


def test_as_json(tmp_path: Path) -> None:
    """`--json` tells all that happens, an object a line, while it happens."""
    shop(tmp_path)
    ran = run("run", "foreword.yaml", "Hi", "--json", folder=tmp_path)
    told = answers(ran)
    assert [each["event"] for each in told if each["event"] != "text"] == [
        "session", "step", "retry", "tool-call", "tool-result", "step-end", "step", "step-end", "end"
    ]  # fmt: skip
    assert (told[0]["agent"], told[0]["model"]) == ("support", "scripted:small")
    assert next(each for each in told if each["event"] == "retry")["failure"]["code"] == "overloaded"
    assert "".join(each["text"] for each in told if each["event"] == "text" and each["step"] == 2) == "It is late."
    assert told[-1] == {"event": "end", "turn": 1, "reason": "completed", "text": "It is late.", "detail": ""}


def test_an_attempt_that_failed_is_no_answer(tmp_path: Path) -> None:
    """A pipe gets what stands; what an attempt said that failed afterwards is left out, and the retry is told."""
    shop(tmp_path)
    ran = run("run", "foreword.yaml", "Hi", folder=tmp_path)
    assert ran.out == "Let me see.\nIt is late.\n"
    assert "[attempt 1 failed (overloaded): too busy; trying again" in ran.err


def test_in_a_terminal(tmp_path: Path) -> None:
    """A terminal gets the answer as it comes; control characters cannot act on it, and a failed attempt is told off."""
    with RecordingServer(said("\x1b[2J\u202eGone."), said("Good.")) as server:
        shop(tmp_path, MODEL)
        ran = in_terminal("run", "foreword.yaml", "Hi", folder=tmp_path, **served(server))
        assert ran.code == 0
        assert r"\x1b[2J\u202eGone." in ran.out
        as_json = in_terminal("run", "foreword.yaml", "Hi", "--json", folder=tmp_path, **served(server))
    assert '"text": "Good."' in as_json.out
    shop(tmp_path)
    ran = in_terminal("run", "foreword.yaml", "Hi", folder=tmp_path)
    assert "I beg\n" in ran.out
    assert "what it said so far does not count" in ran.out


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_that_has_seen_enough(tmp_path: Path, options: list[str]) -> None:
    """Where whoever reads the answer goes, nobody is blamed: the exit code is 0, as that of other commands."""
    shop(tmp_path)
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as out:
        done = subprocess.run(
            [*COMMAND, "run", "foreword.yaml", "Hi", *options],
            stdout=out, stderr=subprocess.PIPE, cwd=tmp_path, env=clean_environment({}), check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode == 0
    assert b"error" not in done.stderr
    assert run("log", "verify", folder=tmp_path).code == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_full_disk_is_told(tmp_path: Path) -> None:
    """An answer that cannot be written is no fault of the deployment."""
    shop(tmp_path)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, "run", "foreword.yaml", "Hi"],
            stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, env=clean_environment({}), check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == b"error: the output cannot be written: No space left on device"


def test_a_pipe_of_a_plugin_is_its_own(tmp_path: Path) -> None:
    """A plugin whose own pipe is closed is told with its place."""
    write(tmp_path, "def broken() -> None:\n    raise BrokenPipeError('theirs')\n", "broken.py")
    (tmp_path / "foreword.yaml").write_text("foreword: 1\nplugins: [{id: a, use: 'broken:broken'}]\nagents: {a: {}}\n")
    ran = run("run", "foreword.yaml", "Hi", folder=tmp_path)
    assert ran.code == 2
    assert "broken.py:2" in ran.err


# -- where it is logged ------------------------------------------------------------------------------------------------


def test_the_store(tmp_path: Path) -> None:
    """It is that of `--log`, else of FOREWORD_LOG, else the deployment's, else foreword.db in the current folder."""
    shop(tmp_path, more="log: {store: 'sqlite:theirs.db'}\n")
    for given, options, environment in (
        ("mine.db", ["--log", "sqlite:mine.db"], {"FOREWORD_LOG": "sqlite:other.db"}),
        ("other.db", [], {"FOREWORD_LOG": "sqlite:other.db"}),
        ("theirs.db", [], {"FOREWORD_LOG": ""}),
    ):
        assert run("run", "foreword.yaml", "Hi", *options, folder=tmp_path, **environment).code == 0
        assert (tmp_path / given).exists()
        listed = run("log", "list", "--json", *options, folder=tmp_path, **environment)
        assert len(json.loads(listed.out)["sessions"]) == 1
    assert not (tmp_path / "foreword.db").exists()
    shop(tmp_path)
    run("run", "foreword.yaml", "Hi", folder=tmp_path)
    assert (tmp_path / "foreword.db").exists()


def test_the_way_to_its_log(tmp_path: Path) -> None:
    """The command that it ends with works where it was typed: with the store behind it where nobody else names it."""
    theirs, mine = tmp_path / "their s", tmp_path / "mine"
    for each in (theirs, mine):
        each.mkdir()
        shop(each, more="log: {store: 'sqlite:its.db'}\n")
    for folder, arguments, is_found in (
        (mine, ["foreword.yaml"], True),
        (mine, ["foreword.yaml", "--log", f"sqlite:{mine}/its.db"], True),
        (mine, ["foreword.yaml", "--log", "sqlite:other.db"], False),
        (mine, [str(theirs / "foreword.yaml")], False),
        (tmp_path, ["mine/foreword.yaml"], False),
    ):
        ran = run("run", *arguments, "Hi", folder=folder)
        assert ran.code == 0
        (told,) = [line for line in ran.err.splitlines() if line.startswith("[completed: ")]
        command = shlex.split(told.removesuffix("]").partition("; foreword ")[2])
        assert ("--log" not in command) == is_found
        assert run(*command, folder=folder).code == 0
    variable = run("run", str(theirs / "foreword.yaml"), "Hi", folder=mine, FOREWORD_LOG="sqlite:other.db")
    assert "--log" not in variable.err


# -- what cannot be ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "say what the agent is to be told"),
        (["foreword.yaml"], "say what the agent is to be told"),
        (["foreword.yaml", "where", "is", "it"], "put it in quotes"),
        (["foreword.yaml", "  "], "is empty"),
        (["foreword.yaml", "Hi", "--label", "x"], "write --label NAME=TEXT"),
        (["foreword.yaml", "Hi", "--label", "=x"], "write --label NAME=TEXT"),
        (["foreword.yaml", "Hi", "--label", "a=b", "--session", "last"], "--label is for a new session"),
        (["foreword.yaml", "Hi", "--agent", "supportt"], 'did you mean "support"'),
        (["foreword.yaml", "Hi", "--model", "gpt-5"], "write provider:model"),
        (["foreword.yaml", "Hi", "--model", "nobody:x"], 'no model adapter is registered for the provider "nobody"'),
        (["foreword.yaml", "Hi", "--session", "nosuch"], '"nosuch" leads nowhere'),
        (["foreword.yaml", "Hi", "--log", "foreword.db"], "given as sqlite:PATH"),
        (["Hi"], "is not trusted"),
    ],
)
def test_what_cannot_be(tmp_path: Path, arguments: list[str], words: str) -> None:
    """Whatever is wrong is one paragraph with the way out, exit code 2, and no traceback; no session is begun."""
    shop(tmp_path)
    ran = run("run", *arguments, folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert "Traceback" not in ran.err
    listed = run("log", "list", "--json", folder=tmp_path)
    assert listed.code == 2 or json.loads(listed.out) == {"sessions": []}


def test_a_missing_key(tmp_path: Path) -> None:
    """Without a key the error says which variable to set."""
    shop(tmp_path, MODEL)
    ran = run("run", "foreword.yaml", "Hi", folder=tmp_path, OPENAI_API_KEY="")
    assert (ran.code, ran.out, ran.err) == (2, "", "error: the API key for openai is missing; set OPENAI_API_KEY\n")


def test_which_agent(tmp_path: Path) -> None:
    """Of several agents one has to be named; one without a model needs one."""
    shop(tmp_path, more="  trainee: {}\n")
    assert "it has several: support, trainee" in run("run", "foreword.yaml", "Hi", folder=tmp_path).err
    ran = run("run", "foreword.yaml", "--agent", "trainee", "Hi", folder=tmp_path)
    assert (ran.code, "as agents.trainee.model" in ran.err) == (2, True)
    ran = run("run", "foreword.yaml", "--agent", "trainee", "--model", "scripted:x", "Hi", folder=tmp_path)
    assert (ran.code, ran.out) == (0, "Let me see.\nIt is late.\n")
    (tmp_path / "foreword.yaml").write_text("foreword: 1\n")
    assert "it has none; agents stand in it" in run("run", "foreword.yaml", "Hi", folder=tmp_path).err


def test_a_trusted_file_runs_unnamed(tmp_path: Path) -> None:
    """The file of the current folder runs once it is trusted."""
    TrustStore().trust(shop(tmp_path))
    assert run("run", "Hi", folder=tmp_path).out == "Let me see.\nIt is late.\n"


def test_a_failing_model(tmp_path: Path) -> None:
    """A refusal ends in exit code 2 and is logged; the key is in no output, and not in the store."""
    refusal = failing(401, f"Incorrect API key provided: {KEY}", code="invalid_api_key")
    with RecordingServer(refusal, refusal) as server:
        shop(tmp_path, MODEL)
        for options in ([], ["--json", "--traceback"]):
            ran = run("run", "foreword.yaml", "Hi", *options, folder=tmp_path, **served(server))
            assert ran.code == 2
            assert "the request to openai:gpt-5-mini failed (authentication, HTTP 401)" in ran.err
            assert KEY not in ran.out + ran.err
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    told = run("log", "show", folder=tmp_path).out + run("log", "show", "--json", folder=tmp_path).out
    assert "authentication" in told
    stored = b"".join(file.read_bytes() for file in tmp_path.rglob("foreword.db*") if file.is_file())
    assert KEY.encode() not in stored + told.encode()


def test_answers_that_are_not_whole(tmp_path: Path) -> None:
    """An answer that the model's limit cut gives exit code 1; so does a turn that a listener blocks."""
    with RecordingServer(said("It is", finish="length")) as server:
        shop(tmp_path, MODEL)
        ran = run("run", "foreword.yaml", "Hi", folder=tmp_path, **served(server))
    assert (ran.code, ran.out) == (1, "It is\n")
    assert "[max-tokens: " in ran.err


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_ctrl_c_cancels_the_turn(tmp_path: Path) -> None:
    """The connection is cut, the turn ends as aborted in the log with what had been said, and the exit code is 130."""
    with RecordingServer(streaming(text("It is"), Event(), done=False), said("Again.")) as server:
        shop(tmp_path, MODEL)
        with Child(["run", "foreword.yaml", "Hi", "--json"], tmp_path, **served(server)) as child:
            child.answers(b'"text"')
            child.interrupt()
            ran = child.ran()
        server.wait_for_hang_up()
        assert ran.code == 130
        assert "Traceback" not in ran.err
        assert json.loads(ran.out.splitlines()[-1])["reason"] == "aborted"
        events = json.loads(run("log", "show", "--json", folder=tmp_path).out)["events"]
        assert [(each["type"], each.get("reason")) for each in events][-1] == ("turn/end", "aborted")
        (cut,) = [each for each in events if each["type"] == "assistant/message"]
        assert (cut["message"]["content"], cut["interrupted"]) == ("It is", True)
        assert run("log", "verify", folder=tmp_path).code == 0
        again = run("run", "foreword.yaml", "--session", "last", "Hi", folder=tmp_path, **served(server))
        assert (again.code, again.out) == (0, "Again.\n")


@pytest.mark.slow
def test_a_second_ctrl_c_leaves(tmp_path: Path) -> None:
    """A tool that blocks the loop holds the first one up, not the second; what is open is told, and closed by a resume."""
    asking = streaming(call(0, "{}", id="c1", name="hang"), chunk(finish="tool_calls"), usage())
    with RecordingServer(asking, said("Again.")) as server:
        shop(tmp_path, MODEL)
        with Child(["run", "foreword.yaml", "Hi"], tmp_path, **served(server)) as child:
            wait_for(tmp_path / "hanging")
            child.interrupt()
            assert b"Ctrl-C again leaves at once" in child.says(b"cancelled")
            child.interrupt()
            ran = child.ran()
        assert ran.code == 130
        assert "Traceback" not in ran.err
        assert run("log", "verify", folder=tmp_path).code == 0
        assert "turn 1 has no end in the log" in run("log", "show", folder=tmp_path).out
        again = run("run", "foreword.yaml", "--session", "last", "Hi", folder=tmp_path, **served(server))
        assert (again.code, again.out) == (0, "Again.\n")
        assert "TOOL_OUTCOME_UNKNOWN" in run("log", "show", folder=tmp_path).out
