"""``foreword log erase`` and ``log export``: what an operator takes out of a log, and takes with him."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.cli.support import piped, run
from tests.session.support import attempt, take_tool_turn, take_turn

from foreword.session import (
    AssistantSaid,
    RequestEnded,
    StepEnd,
    StepStart,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnStart,
    UserSaid,
    open_log,
)
from foreword.wire.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a store of a session, a fork of it, and another session."""

    async def made() -> None:
        async with open_log(f"sqlite:{tmp_path / 'foreword.db'}") as log:
            session = await log.create("clerk", labels={"ticket": "4711"})
            take_turn(session, "I am Jane Doe")
            take_tool_turn(session)
            fork = await session.fork("@1", id="fork")
            take_turn(fork, "Write to Jane Doe")
            take_turn(await log.create("other"))

    anyio.run(made)
    return tmp_path


def erase(folder: Path, *arguments: str) -> Any:
    ran = run("log", "erase", *arguments, "--json", folder=folder)
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_by_a_text(folder: Path) -> None:
    """What it did and what it did not reach is told; the log verifies, and says how much was erased."""
    planned = erase(folder, "--match", "Jane Doe", "--dry-run")
    ran = run("log", "erase", "--match", "Jane Doe", folder=folder)
    assert ran.code == 0
    assert ran.out.startswith("Erased  6 contents of 2 sessions\n\nSESSION  CONTENTS  TOLD BY EVENT\n")
    for told in ("clerk    4", "fork     4", "Not reached", "backups", "exports"):
        assert told in ran.out, told
    assert planned["erased"] == 6
    assert [each["event"] for each in planned["sessions"]] == [None, None]
    verified = run("log", "verify", folder=folder)
    assert verified.code == 0
    assert verified.out.startswith("Log intact, 6 erased")
    assert json.loads(run("log", "verify", "--json", folder=folder).out)["erased"] == 6
    refused = run("log", "rebuild", "fork@2", folder=folder)
    assert refused.code == 2
    assert "was erased" in refused.err
    marked = run("log", "rebuild", "fork@2", "--mark", folder=folder)
    assert json.loads(marked.out)["messages"][0]["content"] == "[erased]"
    document = json.loads(run("log", "rebuild", "fork@2", "--mark", "--json", folder=folder).out)
    assert document["erased"] == ["message 1", "message 3"]
    assert run("log", "rebuild", "other", folder=folder).code == 0
    assert "Jane" not in run("log", "show", "fork", folder=folder).out


@pytest.mark.parametrize(
    ("arguments", "sessions"),
    [
        (("fork@2",), ["fork"]),
        (("--session", "cl"), ["clerk", "fork"]),
        (("--label", "ticket=4711"), ["clerk", "fork"]),
        (("--label", "ticket=4711", "--label", "tenant=acme"), []),
        (("--before", "1d"), []),
        (("--before", "0m"), ["clerk", "fork", "other"]),
        (("--before", "2001-01-01"), []),
        (("--before", "2101-01-01T00:00:00Z"), ["clerk", "fork", "other"]),
    ],
)
def test_by_events(folder: Path, arguments: tuple[str, ...], sessions: list[str]) -> None:
    """By address, session, label and age; what others need is kept, and named."""
    report = erase(folder, *arguments)
    assert [each["session"] for each in report["sessions"]] == sessions
    assert run("log", "verify", folder=folder).code == 0
    if "cl" in arguments:
        assert {(each["what"], *each["sessions"]) for each in report["kept"]} >= {("section", "fork", "other")}
    if len(sessions) == 3:
        assert {each["what"] for each in report["guessable"]} == {"section", "tool", "config"}


def test_the_story_says_what_was_erased(tmp_path: Path) -> None:
    """Readers tell that it was erased, not that it was never stored; and one tool that went as that one."""
    assert run("demo", folder=tmp_path).code == 0
    erase(tmp_path, "--session", "last")
    out = run("log", "show", folder=tmp_path, columns=200).out
    assert "prompt     initial: [erased], 4 sections, [erased] characters, 2 tools\n" in out
    assert "model [erased]:" in out
    assert "system [erased], 2 tools" in out
    diff = run("diff", "last@6", "last@7", folder=tmp_path, columns=200).out
    (gone,) = [line for line in diff.splitlines() if line[1:].startswith(" tool ")]
    assert gone.startswith("- tool gone_")
    assert gone.endswith(" removed")
    for told in (out, diff, run("cache", "last", folder=tmp_path, columns=200).out):
        assert "[not stored" not in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "say what to erase"),
        (("clerk@1", "--match", "x"), "say what to erase"),
        (("--match", ""), "say what to erase"),
        (("--before", "yesterday"), "no age as in 30d"),
        (("--label", "ticket"), "no label as in ticket=4711"),
        (("clerk@9",), "leads nowhere"),
        (("--session", "nobody"), "leads nowhere"),
    ],
)
def test_what_cannot_be_meant(folder: Path, arguments: tuple[str, ...], told: str) -> None:
    """It is refused with what to do, and nothing is changed."""
    before = (folder / "foreword.db").read_bytes()
    ran = run("log", "erase", *arguments, folder=folder)
    assert ran.code == 2
    assert told in ran.err
    assert (folder / "foreword.db").read_bytes() == before


def test_a_busy_session(folder: Path) -> None:
    """A session that another process writes is named, with its process."""

    async def meanwhile() -> None:
        async with open_log(f"sqlite:{folder / 'foreword.db'}") as log:
            await log.resume("fork")
            ran = await anyio.to_thread.run_sync(lambda: piped("log", "erase", "--match", "Jane Doe", folder=folder))
            assert ran.returncode == 2
            assert (
                'nothing was erased: what is to go is held by sessions that are being written, "fork" by'
                in ran.stderr.decode()
            )
            assert "--wait" in ran.stderr.decode()

    anyio.run(meanwhile)


def test_nothing_is_made(tmp_path: Path) -> None:
    """Where there is no store, none is made to erase from or to copy."""
    for arguments in (("erase", "--match", "x"), ("export", "copy.db")):
        ran = run("log", *arguments, folder=tmp_path)
        assert ran.code == 2
        assert "foreword.db is not there" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_export(folder: Path) -> None:
    """A copy holds what the log holds, and is one file; one that is there is not written over."""
    ran = run("log", "export", "copy.db", folder=folder)
    assert ran.out == "3 sessions with 54 events copied to copy.db\n"
    assert run("log", "verify", "--log", "sqlite:copy.db", folder=folder).code == 0
    heads = [
        run("log", "head", "clerk", "--log", f"sqlite:{name}.db", folder=folder).out for name in ("copy", "foreword")
    ]
    assert heads[0] == heads[1]
    again = run("log", "export", "copy.db", folder=folder)
    assert again.code == 2
    assert "copy.db" in again.err
    assert json.loads(run("log", "export", "other.db", "--json", folder=folder).out) == {
        "path": "other.db",
        "sessions": 3,
        "events": 54,
    }


def test_what_is_sensitive(tmp_path: Path) -> None:
    """What a tool or a context kept to itself is masked in JSON, unless it is asked for."""

    async def made() -> None:
        async with open_log(f"sqlite:{tmp_path / 'foreword.db'}") as log:
            session = await log.create("clerk")
            call = ToolCall("a", "unlock", '{"code": "hunter2"}')
            session.append(TurnStart(1))
            session.append(StepStart(1, 1))
            session.append(UserSaid(UserMessage("Open it.")))
            attempt(session)
            session.append(RequestEnded(1, 1, 1, "tool-calls"))
            session.append(AssistantSaid(1, 1, AssistantMessage("", (call,)), sensitive=(0,)))
            session.append(ToolCalled(1, 1, call, sensitive=True))
            session.append(ToolAnswered(1, 1, ToolMessage("a", "unlock", "hunter2 fits"), sensitive=True))
            session.append(StepEnd(1, 1))
            session.append(StepStart(1, 2))
            attempt(session)
            session.append(RequestEnded(1, 2, 1, "stop"))
            session.append(StepEnd(1, 2))
            session.append(TurnEnd(1, "completed"))

    anyio.run(made)
    for arguments in (("show",), ("rebuild",)):
        masked = run("log", *arguments, "--json", folder=tmp_path)
        assert masked.code == 0, masked.err
        assert "hunter2" not in masked.out
        assert "[sensitive]" in masked.out
        assert "hunter2" in run("log", *arguments, "--json", "--reveal", folder=tmp_path).out
    assert "hunter2" not in run("log", "rebuild", folder=tmp_path).out
    assert "hunter2" in run("log", "rebuild", "--reveal", folder=tmp_path).out  # byte for byte
