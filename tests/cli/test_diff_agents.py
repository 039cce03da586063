"""``foreword diff --agent '*'``: every agent of a deployment, held against itself."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.cli.support import deployment, run

OLD = """
    system_prompt: {include_harness_identity: false, persona: You are a clerk.}
    plugins:
      - {id: billing, use: "plugs:billing"}
    agents:
      support: {}
      trainee: {}
      gone: {}
"""
NEW = OLD.replace("gone: {}", "new: {}").replace("trainee: {}", "trainee: {persona: You are a trainee. You ask first.}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    deployment(tmp_path, OLD, "old.yaml")
    deployment(tmp_path, NEW, "new.yaml")
    return tmp_path


def test_each_agent_and_a_table(folder: Path) -> None:
    """What changed of each, then all of them in a table: changes, tokens before and after, what can be reused."""
    ran = run("diff", "old.yaml", "new.yaml", "--agent", "*", folder=folder)
    assert ran.code == 0, ran.err
    assert "agent support of old.yaml → agent support of new.yaml  nothing differs" in ran.out
    assert "section deployment:persona of" in ran.out
    assert "Agents  1 of 2 agents changed\n  removed gone\n  added new\n" in ran.out
    (row,) = [line for line in ran.out.splitlines() if line.startswith("trainee")]
    assert "section deployment:persona" in row


def test_for_scripts(folder: Path) -> None:
    """JSON by agent; the agents without counterpart; the exit code of --check."""
    ran = run("diff", "old.yaml", "new.yaml", "--agent", "*", "--json", "--check", folder=folder)
    told = json.loads(ran.out)
    assert ran.code == 1
    assert (told["removed_agents"], told["added_agents"]) == (["gone"], ["new"])
    assert [each["name"] for each in told["agents"]["trainee"]["changes"]] == ["deployment:persona"]
    trainee = told["agents"]["trainee"]
    assert trainee["new_tokens"] > trainee["old_tokens"]
    assert run("diff", "old.yaml", "old.yaml", "--agent", "*", "--check", folder=folder).code == 0


def test_for_a_pull_request(folder: Path) -> None:
    """Markdown: a diff for each agent, then who came and went."""
    ran = run("diff", "old.yaml", "new.yaml", "--agent", "*", "--github", folder=folder)
    assert ran.out.count("### ") == 2
    assert ran.out.endswith("Removed agent `gone`.\n\nAdded agent `new`.\n")


def test_against_a_revision(folder: Path) -> None:
    """The agents of the file as it is, each against itself as it was."""
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)
    (folder / "old.yaml").write_text((folder / "new.yaml").read_text())
    ran = run("diff", "old.yaml", "--against", "HEAD", "--agent", "*", folder=folder)
    assert ran.code == 0, ran.err
    assert "Agents  1 of 2 agents changed\n  removed gone\n  added new\n" in ran.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["old.yaml", "--agent", "*"], "needs a second deployment, or --against REV"),
        (["last@1", "last@2", "--agent", "*"], "is for deployment files"),
        (["old.yaml", "new.yaml", "--agent", "*", "--agent", "support"], "means all agents"),
    ],
)
def test_what_cannot_be_asked(folder: Path, arguments: list[str], words: str) -> None:
    """The error says what would do."""
    ran = run("diff", *arguments, folder=folder)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
