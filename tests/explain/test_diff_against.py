"""`foreword diff --against REV`: a prompt against itself at a revision; and diffs as Markdown."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from tests.cli.support import deployment, piped, run, write

PROMPT = """
    from pathlib import Path
    from foreword import SystemPrompt
    import texts
    print("made")
    def build():
        prompt = SystemPrompt(persona=texts.PERSONA)
        prompt.owner("policy").section("policy", Path(__file__).with_name("policy.md"), order=20)
        return prompt
"""


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a prompt in a folder, of which two commits differ from the working tree."""
    folder = tmp_path / "bots"
    write(folder, PROMPT, "clerk.py")
    write(folder, "PERSONA = 'You are a clerk.'\n", "texts.py")
    (folder / "policy.md").write_text("Be kind.\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    git(tmp_path, "tag", "v1")
    (folder / "policy.md").write_text("Be kind and quick.\n")
    git(tmp_path, "commit", "-qam", "two")
    write(folder, "PERSONA = 'You are the clerk.'\n", "texts.py")
    return tmp_path


@pytest.mark.slow
def test_a_prompt_is_held_against_its_past(repository: Path) -> None:
    """Texts and imported modules are those of the revision, and neither the repository nor the tree is touched."""
    before = subprocess.run(["git", "status", "--porcelain"], cwd=repository, capture_output=True, check=True).stdout
    done = piped("diff", "bots/clerk.py:build", "--against", "v1", folder=repository)
    out = done.stdout.decode()
    assert done.returncode == 0
    assert out.startswith("bots/clerk.py:build at v1 → bots/clerk.py:build  2 changes\n")
    assert "You are [-a-]{+the+} clerk." in out
    assert "Be kind{+ and quick+}." in out
    after = subprocess.run(["git", "status", "--porcelain"], cwd=repository, capture_output=True, check=True).stdout
    assert before == after
    head = json.loads(piped("diff", "bots/clerk.py:build", "--against", "HEAD", "--json", folder=repository).stdout)
    assert [change["name"] for change in head["changes"]] == ["deployment:persona"]


@pytest.mark.slow
def test_an_agent_of_a_deployment_is_held_against_its_past(tmp_path: Path) -> None:
    """Also where plugins, and an agent, are meant."""
    file = deployment(tmp_path, 'plugins: [{id: acme-billing, use: "plugs:billing"}]\nagents: {clerk: {persona: A.}}\n')
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    deployment(
        tmp_path,
        'plugins: [{id: acme-billing, use: "plugs:billing", config: {currency: USD}}]\nagents: {clerk: {persona: A.}}\n',
    )
    ran = run("diff", file.name, "--against", "HEAD", "--agent", "clerk", "--check", folder=tmp_path)
    assert ran.code == 1
    assert "variable {{currency}} of acme-billing" in ran.out
    assert ran.out.startswith("agent clerk of foreword.yaml at HEAD → agent clerk of foreword.yaml  2 changes\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bots/clerk.py:build", "--against", "nothing"], 'there is no revision "nothing" in '),
        (["bots/other.py:build", "--against", "v1"], "v1 has no bots/other.py"),
        (["clerk:build", "--against", "v1"], "has no file; with --against name one"),
        (["bots/clerk.py:build", "bots/clerk.py:build", "--against", "v1"], "with --against give one"),
        (["last@2", "--against", "v1"], "with --against give one"),
        (["bots/clerk.py:build", "--against", "v1", "--github", "--json"], "two forms of the same"),
    ],
)
def test_it_refuses_in_one_line(repository: Path, arguments: list[str], message: str) -> None:
    """What is wrong, and what to do."""
    ran = run("diff", *arguments, folder=repository)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


@pytest.mark.slow
def test_what_is_wrong_at_the_revision_is_told(repository: Path) -> None:
    """The child's own words, and that it was the child."""
    ran = run("diff", "bots/clerk.py:nope", "--against", "v1", folder=repository)
    assert ran.code == 2
    assert '"clerk.py" has no "nope"; known names: build' in ran.err
    assert "cannot be rendered; the reason stands above" in ran.err


def test_a_folder_without_a_repository(tmp_path: Path) -> None:
    """It is told that there is none."""
    write(tmp_path, PROMPT, "clerk.py")
    ran = run(
        "diff", "clerk.py:build", "--against", "HEAD", folder=tmp_path, GIT_CEILING_DIRECTORIES=str(tmp_path.parent)
    )
    assert (ran.code, "git rev-parse" in ran.err) == (2, True)


def test_markdown_for_a_pull_request(tmp_path: Path) -> None:
    """A table of what changed with its owner, the tokens, and the texts behind folds; nothing of them acts as Markdown."""
    write(
        tmp_path,
        r"""
        from foreword import SystemPrompt
        def build(mark="<img src=x> ```` @team | #1"):
            prompt = SystemPrompt(persona=f"You are a clerk. {mark}")
            prompt.owner("a|b").section("s`|1", f"Text {mark}", order=1)
            return prompt
        def other():
            return build("plain")
        def moved():
            prompt = SystemPrompt()
            return prompt
        """,
        "bad.py",
    )
    ran = run("diff", "bad.py:build", "bad.py:other", "--github", folder=tmp_path)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == "### `bad.py:build` → `bad.py:other`"
    assert "| section | `` s`\\|1 `` | `a\\|b` | changed |" in lines
    assert any(line.startswith("`````diff") for line in lines)
    outside = re.sub(
        r"^(`{3,})diff\n.*?^\1$|(?<!`)(`+)(?!`).*?(?<!`)\2(?!`)", "", ran.out, flags=re.MULTILINE | re.DOTALL
    )
    assert not set(outside) & set("@[]*_")
    assert "<img" not in outside
    assert lines.count("</details>") == 2
    assert run("diff", "bad.py:build", "bad.py:build", "--github", folder=tmp_path).out.endswith("Nothing differs.\n")
