"""``foreword log``: what an operator reads of a session, and whether it is what was logged."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.cli.agents import shop
from tests.cli.support import in_terminal, piped, run

from foreword.cli.wrapping import cell_len
from foreword.session import TurnStart, open_log
from foreword.session.store.sqlite import weakness


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store in which one session was logged: an attempt that failed, a tool call, an answer."""
    made = tmp_path_factory.mktemp("log")
    shop(made)
    assert run("run", "foreword.yaml", "Where is it?", "--label", "ticket=4711", folder=made).code == 0
    return made


def as_json(*arguments: str, folder: Path) -> Any:
    ran = run("log", *arguments, "--json", folder=folder)
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def events_of(folder: Path, address: str = "last") -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = as_json("show", address, folder=folder)["events"]
    return events


# -- list --------------------------------------------------------------------------------------------------------------


def test_list(folder: Path) -> None:
    """Each session with when it began, its labels, and how many events it has; the newest last."""
    (session,) = as_json("list", folder=folder)["sessions"]
    assert session["labels"] == {"tenant": "acme", "ticket": "4711"}
    assert session["parent"] is None
    assert session["began"] <= session["newest_event"]
    told = run("log", "list", folder=folder).out
    assert told.startswith(f"Sessions  1, with {session['events']} events\n\nSESSION")
    for word in (session["session"], "ticket=4711", "tenant=acme"):
        assert word in told


def test_list_of_nothing(tmp_path: Path) -> None:
    """Where there is no store, the error says so, and none is made."""
    ran = run("log", "list", folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "foreword.db is not there" in ran.err
    assert list(tmp_path.iterdir()) == []


# -- show --------------------------------------------------------------------------------------------------------------


def test_show(folder: Path) -> None:
    """Turns, steps, requests with the digest of their system text, what changed, messages, tools, outcome and usage."""
    ran = run("log", "show", folder=folder, columns=80)
    (header,) = [each for each in events_of(folder) if each["type"] == "request/header"]
    shown = json.loads(run("show", "foreword.yaml", "--agent", "support", "--json", folder=folder).out)
    assert header["system_digest"] == shown["digest"]
    system = f"system {shown['digest'][:12]}"
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    story = " ".join(lines)
    assert all(cell_len(line) <= 80 for line in ran.out.splitlines())
    for told in (
        "label tenant=acme", "Step 1 1 of turn 1", "user Where is it?", "facts Open until six.",
        "prompt initial: scripted:small, 2 sections, 27 characters, 2 tools",
        f"request 1 failed (overloaded, HTTP 529): too busy; {system}, 2 tools, 2 messages",
        f"request 2 tool-calls; {system}, 2 tools, 2 messages, 120 tokens in (100 cached), 20 out",
        "assistant Let me see.", 'call lookup {"order": 4711}', "result 4711 is late", "Step 2 2 of turn 1",
        "assistant It is late.", "end completed, after ", "1 turn, 2 steps, 3 requests, 1 tool call, 270 tokens in",
    ):  # fmt: skip
        assert told in story


def test_show_of_one_step(folder: Path) -> None:
    """An address of a step, or of an attempt, shows that one alone."""
    kinds = [each["type"] for each in events_of(folder, "last@2")]
    assert kinds[1:] == ["step/start", "request/attempt", "request/outcome", "assistant/message", "step/end"]
    attempts = [each["attempt"] for each in events_of(folder, "last@1.1/2") if each["type"] == "request/attempt"]
    assert attempts == [2]
    told = run("log", "show", "last@2", folder=folder).out
    assert "It is late." in told
    assert "Where is it?" not in told


def test_show_of_changes(tmp_path: Path) -> None:
    """A header that changed tells what: the model, the tool and the section, and whose they are."""
    assert run("demo", folder=tmp_path).code == 0
    told = run("log", "show", folder=tmp_path).out
    for line in (
        "+ tool track_parcel of carrier", "model scripted:small → scripted:large", "- tool refund of refunds",
        "- section tool:refund of refunds", "compacted  messages 1 to 16 of the history gave way to: So far",
    ):  # fmt: skip
        assert line in told
    changed = [each["changes"] for each in events_of(tmp_path) if each.get("changes")]
    assert [[(change["action"], change["name"], change["owner"]) for change in each] for each in changed] == [
        [("added", "track_parcel", "carrier")],
        [
            ("removed", "refund", "refunds"),
            ("removed", "tool:refund", "refunds"),
            ("changed", "refunds:desk", "refunds"),
        ],
    ]


def test_long_texts_are_cut(tmp_path: Path) -> None:
    """A long text takes three rows and says how long it is; with --full, and of one step, it stands whole."""
    shop(tmp_path)
    assert run("run", "foreword.yaml", "word " * 200, folder=tmp_path).code == 0
    for arguments, count in ((["show"], 24), (["show", "--full"], 200), (["show", "last@1"], 200)):
        told = run("log", *arguments, folder=tmp_path, columns=72).out
        assert told.count("word") == count
        assert ("… 1,000 characters in all" in told) == (count < 200)


def test_nothing_acts_on_a_terminal(tmp_path: Path) -> None:
    """What models, tools and users said is text: control characters are spelled out, markup is not read."""
    shop(tmp_path)
    assert run("run", "foreword.yaml", "\x1b[2J\u202e[bold]x", "--label", "a=\x1b[31m", folder=tmp_path).code == 0
    for arguments in (["show"], ["show", "--json"], ["list"], ["rebuild"], ["rebuild", "--text"]):
        told = in_terminal("log", *arguments, folder=tmp_path).out
        assert "\x1b[2J" not in told
        assert "\u202e" not in told
    assert r"\x1b[2J\u202e[bold]x" in in_terminal("log", "show", folder=tmp_path, columns=200).out


def test_a_session_that_goes_on(tmp_path: Path) -> None:
    """A turn without an end is told as open: it is going on, or its writer died."""

    async def begin() -> None:
        async with open_log(f"sqlite:{tmp_path}/foreword.db") as log:
            session = await log.create("live")
            session.append(TurnStart(1))
            await session.flush()
            assert "turn 1 has no end in the log" in run("log", "show", "live", folder=tmp_path).out

    anyio.run(begin)


# -- rebuild -----------------------------------------------------------------------------------------------------------


def test_rebuild(folder: Path) -> None:
    """The canonical JSON to the byte, and a newline; as a text for reading; as the body that was sent."""
    ran = piped("log", "rebuild", "last@2", folder=folder)
    told = json.loads(ran.stdout)
    assert list(told) == ["system", "tools", "messages", "config"]
    assert ran.stdout == json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    assert run("log", "rebuild", folder=folder).out == ran.stdout.decode()
    assert run("log", "rebuild", "--body", folder=folder).out == ran.stdout.decode()  # the script's body is just that
    text = run("log", "rebuild", "--text", folder=folder).out
    for word in ("You are a clerk.", "lookup(order: integer)", "Look an order up.", "tool lookup", "4711 is late"):
        assert word in text
    document = as_json("rebuild", "last@1/1", folder=folder)
    assert (document["step"], document["attempt"], document["attempts"]) == (1, 1, 2)
    assert document["outcome"]["failure"]["code"] == "overloaded"
    assert not document["perhaps_sent"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rebuild", "last@9"], "has 2 steps"),
        (["rebuild", "last@1/7"], "made 2 attempts"),
        (["show", "nosuch"], "no session's id begins so"),
        (["show", "last@x"], "is no number of a step"),
        (["verify", "nosuch"], "no session's id begins so"),
        (["verify", "last@3"], "this takes a whole session: foreword log verify last"),
        (["verify", "--head", "abc"], "give the 64 hexadecimal digits that foreword log head gave"),
        (["head", "last@9"], "has 2 steps"),
        (["rebuild", "--text", "--body"], "give one of them"),
        (["list", "--log", "x.db"], "given as sqlite:PATH"),
        (["list", "--log", "sqlite:desk.py"], "is no SQLite database"),
        (["lst"], "lst"),
    ],
)
def test_what_cannot_be(folder: Path, arguments: list[str], words: str) -> None:
    """What is wrong with an address, a digest or a store is told in a paragraph, with exit code 2."""
    ran = run("log", *arguments, folder=folder)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert "Traceback" not in ran.err


# -- verify and head ---------------------------------------------------------------------------------------------------


def tampered(folder: Path, target: Path, statement: str) -> str:
    """The URL of a copy of a store in which somebody changed something behind the log's back."""
    shutil.copy(folder / "foreword.db", target / "copy.db")
    with closing(sqlite3.connect(target / "copy.db")) as connection:
        assert connection.execute(statement).rowcount == 1
        connection.commit()
    return f"sqlite:{target / 'copy.db'}"


def test_verify(folder: Path) -> None:
    """An intact log is told as such, with its head; the exit code is 0."""
    ran = run("log", "verify", folder=folder)
    assert ran.code == 0
    assert ran.out.startswith("Log intact  1 session, ")
    (report,) = as_json("verify", folder=folder)["sessions"]
    assert report["head"] in ran.out
    assert (weakness() is None) == (ran.err == "")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE event SET envelope = CAST(replace(CAST(envelope AS TEXT), 'completed', 'abortedXX') AS BLOB) "
         "WHERE seq = (SELECT max(seq) FROM event)", "event {last}"),
        ("DELETE FROM event WHERE seq = 7", "event 7"),
        ("UPDATE blob SET body = CAST('It was late.' AS BLOB) WHERE CAST(body AS TEXT) LIKE '%It is late.%'", "blob"),
        ("UPDATE session SET head = zeroblob(32)", "the session"),
    ],
)  # fmt: skip
def test_verify_names_the_damage(folder: Path, tmp_path: Path, statement: str, words: str) -> None:
    """In a copy that somebody changed, the first event or blob that is wrong is named, and the exit code is 1."""
    last = len(events_of(folder)) - 1
    store = tampered(folder, tmp_path, statement)
    ran = run("log", "verify", "--log", store, folder=tmp_path)
    assert ran.code == 1
    told = " ".join(ran.out.split())
    assert "1 session damaged" in told
    assert words.format(last=last) in told
    document = json.loads(run("log", "verify", "--json", "--log", store, folder=tmp_path).out)
    assert (document["intact"], document["sessions"][0]["intact"]) == (False, False)
    assert document["sessions"][0]["fault"]["why"]


def test_head(folder: Path) -> None:
    """The head is the digest that verify looks for; that of an earlier request is found, too, and another one is not."""
    head = run("log", "head", folder=folder).out.strip()
    first = run("log", "head", "last@1/1", folder=folder).out.strip()
    assert len({head, first}) == 2
    assert all(run("log", "verify", "--head", each, folder=folder).code == 0 for each in (head, first))
    assert as_json("head", folder=folder)["events"] == len(events_of(folder))
    ran = run("log", "verify", "--head", "0" * 64, folder=folder)
    assert ran.code == 1
    assert "no event has the digest of --head" in ran.out


# -- which log ---------------------------------------------------------------------------------------------------------


def test_which_log(tmp_path: Path) -> None:
    """Reading takes the store of a deployment here, trusted or not, and runs nothing of it; faults elsewhere are none."""
    shop(tmp_path, more="log: {store: 'sqlite:theirs.db'}\n")
    assert run("run", "foreword.yaml", "Hi", folder=tmp_path).code == 0
    (tmp_path / "desk.py").write_text("raise AssertionError('it was run')")
    with (tmp_path / "foreword.yaml").open("a") as file:
        file.write("nonsense: 1\n")
    assert len(as_json("list", folder=tmp_path)["sessions"]) == 1
    (tmp_path / "foreword.yaml").write_text("foreword: 1\nlog: {stor: x}\n")
    ran = run("log", "list", folder=tmp_path)
    assert (ran.code, "log.stor" in ran.err) == (2, True)
    assert run("log", "list", "--log", "sqlite:theirs.db", folder=tmp_path).code == 0


def test_reading_changes_nothing(folder: Path) -> None:
    """No command of the group writes to the store."""
    before = (folder / "foreword.db").read_bytes()
    for arguments in (["list"], ["show"], ["rebuild"], ["verify"], ["head"]):
        assert run("log", *arguments, folder=folder).code == 0
    assert (folder / "foreword.db").read_bytes() == before


def test_a_fork_is_told(tmp_path: Path) -> None:
    """A session that began as a copy of another one says so, in the list and in its story."""
    assert run("demo", folder=tmp_path).code == 0

    async def fork() -> None:
        async with open_log(f"sqlite:{tmp_path}/foreword.db") as log:
            session = await log.fork("last@2", id="branch")
            session.append(TurnStart(session.turn + 1))
            await session.close()

    anyio.run(fork)
    parent, branch = as_json("list", folder=tmp_path)["sessions"]
    assert branch["parent"]["session"] == parent["session"]
    assert f"forked from {parent['session']}" in run("log", "show", "branch", folder=tmp_path).out.replace("\n", " ")


def test_what_was_erased_says_so(tmp_path: Path) -> None:
    """After an erasure the session is still told: placeholders stand for what is gone, and the rest is as it was."""
    shop(tmp_path)
    assert run("run", "foreword.yaml", "My secret.", folder=tmp_path).code == 0

    async def erase() -> None:
        async with open_log(f"sqlite:{tmp_path}/foreword.db") as log:
            await log.erase("last@1")

    anyio.run(erase)
    ran = run("log", "show", folder=tmp_path)
    assert (ran.code, ran.err) == (0, "")
    assert "My secret." not in ran.out
    assert "It is late." in ran.out
    assert "emptied on purpose" in ran.out
    assert run("log", "list", folder=tmp_path).code == 0
    assert "erased" in run("log", "verify", folder=tmp_path).out


BROKEN = {
    "foreword: 1\nplugins: [\n": ["foreword.yaml:3:1: this is no YAML"],
    "foreword: 1\nlog: {shop: x}\nagents: {a: {model: 7}}\n": ["log.store: is missing", "log.shop", "agents.a.model"],
    'foreword: 1\nlog: {store: "${env:NOT_SET}"}\n': ["NOT_SET is not set"],
}
"""Deployments that do not say where their log is, and what is wrong with each."""


@pytest.mark.parametrize("text", BROKEN, ids=["syntax", "keys", "environment"])
@pytest.mark.parametrize("command", [("log", "list"), ("log", "show"), ("log", "erase", "last@1"), ("cache", "last")])
def test_a_deployment_that_cannot_be_read_is_no_dead_end(
    command: tuple[str, ...], text: str, folder: Path, tmp_path: Path
) -> None:
    """It is asked where the log is; whoever cannot mend it now is told how to do without it, and all that is wrong."""
    shutil.copy(folder / "foreword.db", tmp_path)
    (tmp_path / "foreword.yaml").write_text(text)
    ran = run(*command, folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "foreword.yaml was asked where the log is; --log STORE reads one without it" in ran.err
    assert all(fault in ran.err for fault in BROKEN[text]), ran.err
    assert run(*command, "--log", "sqlite:foreword.db", folder=tmp_path).code == 0
