"""``foreword log find``: the addresses of requests, for people and scripts."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from tests.cli.support import run
from tests.explain.support import Clock, Script

from foreword import SystemPrompt, open_log
from foreword.cli.wrapping import cell_len

START = 1_700_000_000_000  # 2023-11-14 22:13:20 UTC


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two sessions, an hour apart."""
    made = tmp_path_factory.mktemp("find")

    async def write() -> None:
        clock = Clock(START)
        async with open_log(f"sqlite:{made / 'foreword.db'}", clock=clock) as log:
            for name, rules in (("first", "Be kind."), ("second", "Be quick.")):
                prompt = SystemPrompt(persona="You are a clerk.")
                prompt.owner("acme").section("rules", rules, order=1)
                prompt.owner("acme").context("hours", "Open until six.", order=1)
                script = Script(await log.create(name, labels={"tenant": name, "ticket": "4711"}), clock)
                script.step(prompt.render_sync(), "Where is it?")
                script.step(prompt.render_sync(), f"And now, {name}?")
                await script.session.flush()
                await script.session.close()
                clock.now += 3_600_000

    anyio.run(write)
    return made


def addresses(folder: Path, *arguments: str) -> list[str]:
    ran = run("log", "find", *arguments, "--json", folder=folder)
    assert ran.code == (0 if json.loads(ran.out)["found"] else 1), ran.err
    return [each["address"] for each in json.loads(ran.out)["found"]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["first@1/1", "first@2/1", "second@1/1", "second@2/1"]),
        (["--label", "tenant=second"], ["second@1/1", "second@2/1"]),
        (["--label", "ticket=4711", "--label", "tenant=first"], ["first@1/1", "first@2/1"]),
        (["--label", "tenant=nobody"], []),
        (["--text", "kind"], ["first@1/1", "first@2/1"]),
        (["--text", "And now"], ["first@2/1", "second@2/1"]),
        (["--section", "hours", "--text", "quick"], ["second@1/1", "second@2/1"]),
        (["--section", "nothing"], []),
        (["--session", "fir"], ["first@1/1", "first@2/1"]),
        (["--since", "2023-11-14T23:00"], ["second@1/1", "second@2/1"]),
        (["--since", "2023-11-14"], ["first@1/1", "first@2/1", "second@1/1", "second@2/1"]),
        (["--since", "2h"], []),
    ],
)
def test_what_is_found(folder: Path, arguments: list[str], expected: list[str]) -> None:
    """By label, text, section, session and time, all of which must hold; the exit code is grep's."""
    assert addresses(folder, *arguments) == expected


def test_for_people(folder: Path) -> None:
    """Address, time, labels, and where the text stands."""
    ran = run("log", "find", "--text", "kind", folder=folder, columns=120)
    assert ran.out.splitlines() == [
        "Found  2 requests of 1 session",
        "",
        "ADDRESS    SENT                  LABELS        STANDS IN",
        "first@1/1  2023-11-14 22:13:20Z  tenant=first  section rules",
        "                                 ticket=4711",
        "first@2/1  2023-11-14 22:13:20Z  tenant=first  section rules",
        "                                 ticket=4711",
    ]


@pytest.mark.parametrize("columns", [200, 80, 40, 20])
def test_every_width(folder: Path, columns: int) -> None:
    """No row is wider than the terminal, and addresses stay whole."""
    out = run("log", "find", "--text", "clerk", folder=folder, columns=columns).out
    assert all(cell_len(line) <= columns for line in out.splitlines())
    assert "second@2/1" in out


def test_every_kind_of_place(folder: Path) -> None:
    """A context and a message are told as such."""
    assert "context hours" in run("log", "find", "--text", "until six", folder=folder).out
    assert "message 1, by the user" in run("log", "find", "--text", "Where is", folder=folder).out


def test_nothing(folder: Path) -> None:
    """It says so, and a script can tell."""
    ran = run("log", "find", "--text", "KIND", folder=folder, columns=200)
    assert (ran.code, ran.err) == (1, "")
    why = "no request fits; a text is matched to the letter, in what the log holds"
    unseen = "what is sensitive was not looked through; --reveal looks there too"
    assert ran.out == f"Nothing found  {why}; {unseen}\n"
    assert run("log", "find", "--text", "KIND", "--reveal", folder=folder, columns=200).out == f"Nothing found  {why}\n"


def test_a_sensitive_text(tmp_path: Path) -> None:
    """A value that is not to be shown is not found, which is said with the option that finds it."""
    prompt = SystemPrompt()
    prompt.owner("acme").variable("account", "123-45", sensitive=True)
    prompt.owner("acme").section("who", "It is account {{account}}.", order=1)

    async def write() -> None:
        clock = Clock(START)
        async with open_log(f"sqlite:{tmp_path / 'foreword.db'}", clock=clock) as log:
            script = Script(await log.create("only"), clock)
            script.step(prompt.render_sync(), "Where is it?")
            await script.session.flush()

    anyio.run(write)
    hidden = run("log", "find", "--text", "123-45", folder=tmp_path, columns=200)
    assert hidden.code == 1
    assert "what is sensitive was not looked through; --reveal looks there too" in hidden.out
    assert addresses(tmp_path, "--text", "123-45", "--reveal") == ["only@1/1"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--label", "tenant"], "is no label as in ticket=4711"),
        (["--since", "yesterday"], "--since 'yesterday' is no age as in 30d (m, h, d, w), and no date"),
        (["--text", ""], "--text is empty"),
        (["--section", ""], "--section is empty"),
        (["--session", "first@2"], '"first@2" names a request, and this takes a whole session: --session first'),
        (["--session", "nobody"], "no session's id begins so"),
    ],
)
def test_what_cannot_be_asked(folder: Path, arguments: list[str], words: str) -> None:
    """An error names the option or the session, and what would do."""
    ran = run("log", "find", *arguments, folder=folder)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err


def test_an_address_leads_on(folder: Path) -> None:
    """What is found is what other commands take."""
    (first, *_) = addresses(folder, "--text", "quick")
    assert "Be quick." in run("show", first, folder=folder).out
    annotated = run("show", first, "--annotate", "--contexts", folder=folder)
    assert annotated.out.startswith("Prompt of second@1/1")
    assert "acme" in annotated.out
    document = json.loads(run("show", first, "--json", folder=folder).out)
    assert document["text"].endswith("Be quick.")
    assert document["snapshot"].endswith("Open until six.")
    assert run("show", first, "--agent", "clerk", folder=folder).code == 2


def test_a_damaged_session_hides_no_other(folder: Path, tmp_path: Path) -> None:
    """It is told and not looked through; all others are listed, found and looked through as ever."""
    assert run("log", "export", str(tmp_path / "foreword.db"), folder=folder).code == 0
    with closing(sqlite3.connect(tmp_path / "foreword.db")) as store, store:
        store.execute("delete from event where session = 'second' and seq = (select max(seq) from event)")
    found = run("log", "find", "--text", "clerk", folder=tmp_path)
    assert found.code == 2
    assert "first@2/1" in found.out
    assert 'not looked through: session "second" is damaged at event' in found.err
    told = json.loads(run("log", "find", "--json", folder=tmp_path).out)
    assert [each["address"] for each in told["found"]] == ["first@1/1", "first@2/1"]
    assert len(told["unread"]) == 1
    assert run("log", "find", "--session", "first", folder=tmp_path).code == 0
    assert run("log", "find", "--session", "second", folder=tmp_path).code == 2

    listed = json.loads(run("log", "list", "--json", folder=tmp_path).out)["sessions"]
    assert {each["session"]: each["fault"] is None for each in listed} == {"first": True, "second": False}
    assert "damaged at event" in run("log", "list", folder=tmp_path, columns=160).out

    explained = run("explain", "first", "clerk", folder=tmp_path)
    assert explained.code == 0
    assert "second: damaged, or of a newer version, so not looked through" in explained.out
