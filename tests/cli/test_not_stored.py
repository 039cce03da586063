"""A log that holds no texts: commands tell what it knows by name, and make up neither names nor figures."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from tests.cli.support import Ran, run
from tests.explain.support import Script, tool

from foreword import SystemPrompt, open_log


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a log of digests: a session of one step, with a section, a context, a tool and a label."""
    prompt = SystemPrompt(persona="You are a clerk.")
    prompt.owner("clock").context("plain", "A plain fact.", order=1)
    prompt.owner("shop").tools([tool("find_order")])

    async def fill() -> None:
        async with open_log(f"sqlite:{tmp_path / 'foreword.db'}", content="digests") as log:
            session = await log.create("k3fa", labels={"ticket": "4711"})
            Script(session, None).step(prompt.render_sync(), "Where is it?")  # type: ignore[arg-type]
            await session.flush()

    anyio.run(fill)
    return tmp_path


def test_the_story_has_no_figures_of_placeholders(folder: Path) -> None:
    """Model, size and digest of what is not there are told as such, and as null to machines."""
    out = run("log", "show", "last", folder=folder, columns=200).out
    assert "prompt     initial: [not stored], 1 section, [not stored] characters, 1 tool\n" in out
    assert "system [not stored], 1 tool, 2 messages" in out
    assert "gone" not in out
    events = json.loads(run("log", "show", "last", "--json", folder=folder).out)["events"]
    (header,) = [each for each in events if each["type"] == "request/header"]
    assert (header["config"], header["system_digest"], header["tools"]) == (None, None, [None])


def test_tools_and_contexts_go_by_their_names(folder: Path) -> None:
    """The trace of the step knows them, though their texts are nowhere."""
    tools = run("show", "last", "--tools", folder=folder, columns=200).out
    assert "shop  find_order" in tools
    assert "not in the log: section deployment:persona, tool find_order, the model and its settings" in tools
    assert (
        '"find_order" is there  in k3fa@1/1, 1 time'
        in run("explain", "last", "--missing", "find_order", folder=folder).out
    )
    assert "tool find_order" in run("tokens", "last", folder=folder).out
    known = run("explain", "last", "--missing", "plain", folder=folder, columns=200).out
    assert known == (
        '"plain" is there  in k3fa@1/1, as a context, by the trace of its step, and what it says is not in the log\n'
    )


def test_a_snapshot_that_is_not_there_is_no_blank(folder: Path) -> None:
    """In the gutter, too, a placeholder stands in its place."""
    out = run("show", "last", "--contexts", "--annotate", folder=folder).out
    assert "[not stored]" in out.partition("Runtime contexts")[2].splitlines()[2]


def test_the_model_is_not_made_up(folder: Path) -> None:
    """It is told by its mark: not stored, and which content it was."""
    told = json.loads(run("cache", "last", "--json", folder=folder).out)
    assert [step["model"].partition(":")[0] for step in told["steps"]] == ["[not stored]"]


@pytest.mark.parametrize("label", ["ticket=4711", "ticket=4712"])
def test_labels_that_are_not_stored_are_told(folder: Path, label: str) -> None:
    """Whether a session bears one cannot be told; that it has one of that name can."""
    ran = run("log", "find", "--label", label, folder=folder)
    assert (ran.code, ran.out) == (1, "Nothing found  no request fits\n")
    assert ran.err == "warning: 1 session may fit as well: the values of their labels are not stored, or were erased\n"
    other = run("log", "find", "--label", "tenant=acme", folder=folder)
    assert other == Ran(1, "Nothing found  no request fits\n")
