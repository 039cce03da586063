"""The review example: its owners, its scopes, its guidance, and what it reads of the repository."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from examples.review.prompt import build

from foreword import AssembleContext, ProtectedSectionShadowError, Rendering, SystemPrompt
from foreword.kernel.scope import GLOBAL, ScopeKey

ROOT = Path(__file__).parents[2]
TARGET = "examples/review/prompt.py:build"
CONTRIBUTING = "# Contributing\n\nWrite `{{name}}` in braces.\n\n\n\tKeep tabs.   \n"

# Leaves a mark that it was run, reads all that it is given, and signs it.
TRAP = """\
#!/bin/sh
touch '{sprung}'
cat > /dev/null
printf '\\n[GNUPG:] SIG_CREATED x\\n' >&2
printf '%s\\n' '-----BEGIN PGP SIGNATURE-----' '' 'x' '-----END PGP SIGNATURE-----'
"""

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A small repository, without git yet."""
    root = tmp_path / "shop"
    root.mkdir()
    (root / "CONTRIBUTING.md").write_text(CONTRIBUTING, encoding="utf-8")
    (root / "Makefile").write_text("test:\n", encoding="utf-8")
    (root / "pyproject.toml").write_text("[tool.ruff]\nline-length = 99\n", encoding="utf-8")
    return root


def git(root: Path, *arguments: str) -> None:
    settings = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    settings += ["-c", "maintenance.auto=false", "-c", "gc.auto=0"]  # which would go on behind the test's back
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(["git", *settings, *arguments], cwd=root, env=environment, check=True, capture_output=True)


def scope_of(prompt: SystemPrompt, name: str) -> ScopeKey:
    return next(key for key in prompt.scopes if key.name == name)


def rendering(root: Path, scope: str = "reviewer") -> Rendering:
    prompt = build(root)
    key = GLOBAL if scope == "global" else scope_of(prompt, scope)
    return prompt.render_sync(AssembleContext(scope=key))


def show(*options: str, folder: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[bytes]:
    target = str(ROOT / TARGET)
    return subprocess.run(
        [sys.executable, "-m", "foreword", "show", target, *options],
        capture_output=True, cwd=folder, env={**os.environ, "PYTHONUTF8": "1", **environment}, check=False, timeout=60,
    )  # fmt: skip


# -- the prompt --------------------------------------------------------------------------------------------------------


def test_each_plugin_owns_its_part(repository: Path) -> None:
    """Seven owners contribute to the reviewer's text, and their spans cover it."""
    rendered = rendering(repository)
    owners = {span.owner for span in rendered.spans}
    assert owners == {"assembler", "reviewer", "review", "style", "files", "shell", "instructions"}
    assert "".join(rendered.text[span.start : span.end] for span in rendered.spans) == rendered.text
    assert {span.owner for span in rendered.snapshot_spans} == {"assembler", "git", "instructions"}


def test_values_cross_from_one_owner_to_another(repository: Path) -> None:
    """The shell's guidance names a command that the product provides, and the span says so."""
    rendered = rendering(repository)
    (span,) = rendered.owner_of("make test")
    assert (span.owner, span.section, span.variable) == ("review", "tool:run", "checks")
    assert "at most 99 characters" in rendered.text


def test_scopes_differ_in_their_persona(repository: Path) -> None:
    """Reviewer, security and the prompt of no scope have each its own persona, in the same place."""
    personas = {
        scope: rendering(repository, scope).text.partition("\n")[0] for scope in ("reviewer", "security", "global")
    }
    assert len(set(personas.values())) == 3
    assert all("shop" in persona for persona in personas.values())
    rest = {rendering(repository, scope).text.partition("\n")[2] for scope in ("reviewer", "global")}
    assert len(rest) == 1


def test_guidance_goes_with_a_hidden_tool(repository: Path) -> None:
    """In the scope `security` the tool `run` is taken away, its guidance goes, and the trace tells why."""
    reviewer, security = rendering(repository), rendering(repository, "security")
    assert [tool.name for tool in reviewer.tools] == ["read_file", "run", "search"]
    assert [tool.name for tool in security.tools] == ["read_file", "search"]
    assert "Use `run`" in reviewer.text
    assert "Use `run`" not in security.text
    absence = security.missing("tool:run")
    assert absence is not None
    assert absence.reason == "requires_tools:run"
    assert reviewer.missing("tool:run") is None


def test_limits_cannot_be_replaced(repository: Path) -> None:
    """No scope may shadow the protected limits."""
    with pytest.raises(ProtectedSectionShadowError):
        build(repository).scope("careless").section("review:limits", "None.", order=1)


# -- the repository ----------------------------------------------------------------------------------------------------


def test_the_instruction_file_comes_word_for_word(repository: Path) -> None:
    """CONTRIBUTING.md is in the snapshot as it is, braces and all, and not in the system text; AGENTS.md goes before it."""
    rendered = rendering(repository)
    assert f"CONTRIBUTING.md of this repository:\n\n{CONTRIBUTING.strip()}" in rendered.snapshot
    assert "Keep tabs" not in rendered.text
    (repository / "AGENTS.md").write_text("Be kind.\n", encoding="utf-8")
    assert rendering(repository).snapshot.endswith("AGENTS.md of this repository:\n\nBe kind.")


def test_without_files_it_works_as_well(tmp_path: Path) -> None:
    """In an empty folder there is no instruction context, and the defaults stand in."""
    rendered = rendering(tmp_path)
    assert rendered.missing("instructions:file") is not None
    assert "at most 88 characters" in rendered.text
    assert "`python -m pytest`" in rendered.text


@needs_git
def test_git_state_is_told(repository: Path) -> None:
    """Branch, last commit and changed files come from git, before the first commit too."""
    git(repository, "init", "--initial-branch", "work")
    assert "Branch: No commits yet on work\nChanged files: 3\n" in rendering(repository).snapshot
    git(repository, "add", "--all")
    git(repository, "commit", "--message", "Start with {{braces}}")
    assert "Branch: work\nLast commit: " in rendering(repository).snapshot
    assert " Start with {{braces}}\nChanged files: 0\n" in rendering(repository).snapshot
    (repository / "Makefile").write_text("", encoding="utf-8")
    (repository / "new.txt").write_text("", encoding="utf-8")
    assert "\nChanged files: 2\n M Makefile\n?? new.txt\n" in rendering(repository).snapshot
    for number in range(30):
        (repository / f"new{number}.txt").write_text("", encoding="utf-8")
    snapshot = rendering(repository).snapshot
    assert "\nChanged files: 32\n" in snapshot
    assert snapshot.count("?? new") == 19


@needs_git
def test_git_runs_no_program_of_the_repository(repository: Path) -> None:
    """Hooks, a monitor, a signature program and a pager that the repository's configuration names are not run."""
    sprung, trap = repository.parent / "sprung", repository.parent / "trap.sh"
    trap.write_text(TRAP.format(sprung=sprung), encoding="utf-8")
    trap.chmod(0o755)
    git(repository, "init")
    git(repository, "add", "--all")
    git(repository, "config", "gpg.program", str(trap))
    git(repository, "commit", "--gpg-sign=x", "--message", "Signed")
    assert sprung.exists()
    sprung.unlink()
    git(repository, "config", "log.showSignature", "true")
    git(repository, "config", "core.pager", str(trap))
    git(repository, "config", "core.fsmonitor", str(trap))
    snapshot = rendering(repository).snapshot
    assert " Signed\nChanged files: 0" in snapshot
    assert not sprung.exists()


@needs_git
def test_outside_a_repository_a_placeholder_stands_in(repository: Path) -> None:
    """Where git has nothing to say the context says so, and the rest of the prompt is there."""
    rendered = rendering(repository)
    assert "\n\nWhat git would say is not known.\n\n" in rendered.snapshot
    assert any(event.action == "placeholder" and event.name == "git:state" for event in rendered.trace.events)


def test_without_git_a_placeholder_stands_in(repository: Path) -> None:
    """On a machine without git the prompt is whole but for the state of git."""
    done = show("--json", folder=repository, PATH=str(repository))
    told = json.loads(done.stdout)
    assert done.returncode == 0
    assert "What git would say is not known." in told["snapshot"]
    assert "Use `run`" in told["text"]


# -- on the command line -----------------------------------------------------------------------------------------------


def test_the_command_shows_it_on_this_repository() -> None:
    """`foreword show` prints the example's prompt for this very repository, each stretch beside its owner."""
    done = show("--annotate", "--contexts", "--tools", COLUMNS="120")
    out = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert out.startswith("Prompt of scope reviewer  ")
    assert "You review changes to foreword" in out
    assert "CONTRIBUTING.md of this repository:" in out
    rows = [row.split()[:2] for row in out.splitlines()]
    for note in (["review", "review:task"], ["shell", "tool:run"], ["review", "{{checks}}"], ["files", "search"]):
        assert note in rows


@pytest.mark.parametrize("scope", ["reviewer", "security", "global"])
def test_plain_show_is_the_same_text(repository: Path, scope: str) -> None:
    """Behind a pipe the command gives what rendering gives."""
    done = show("--scope", scope, folder=repository)
    assert done.stdout.decode() == rendering(repository, scope).text + "\n"


def test_two_builds_do_not_meet(repository: Path, tmp_path: Path) -> None:
    """Two prompts built for two repositories tell each its own."""
    other = tmp_path / "other"
    other.mkdir()
    first, second = build(repository), build(other)
    assert "shop" in first.render_sync().text
    assert "shop" not in second.render_sync().text
