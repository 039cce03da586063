"""The review example: its owners, its agents, its guidance, what it reads of the repository, and how it goes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from foreword import App, ProtectedSectionShadowError, Rendering, open_deployment
from foreword.kernel.fiber import Fiber, FiberState

ROOT = Path(__file__).parents[2]
DEPLOYMENT = ROOT / "examples" / "review" / "foreword.yaml"
PLUGINS = ["repository", "review", "style", "files", "shell", "git", "instructions"]
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


def review_of(root: Path) -> AbstractAsyncContextManager[App]:
    return open_deployment(DEPLOYMENT, environment={"REVIEW_ROOT": str(root)})


async def render(app: App, agent: str = "reviewer") -> Rendering:
    view = app.prompt if agent == "global" else app.agents[agent]
    return await view.render()


async def rendering(root: Path, agent: str = "reviewer") -> Rendering:
    async with review_of(root) as app:
        return await render(app, agent)


def foreword(
    command: str, *options: str, folder: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    inherited = {name: value for name, value in os.environ.items() if name not in ("REVIEW_ROOT", "COLUMNS")}
    return subprocess.run(
        [sys.executable, "-m", "foreword", command, str(DEPLOYMENT), *options],
        capture_output=True, cwd=folder, env={**inherited, "PYTHONUTF8": "1", **environment}, check=False, timeout=60,
    )  # fmt: skip


# -- the prompt --------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_each_plugin_owns_its_part(repository: Path) -> None:
    """Six plugins and the deployment contribute to the reviewer's text, and their spans cover it."""
    rendered = await rendering(repository)
    owners = {span.owner for span in rendered.spans}
    assert owners == {"assembler", "deployment", "repository", "review", "style", "files", "shell", "instructions"}
    assert "".join(rendered.text[span.start : span.end] for span in rendered.spans) == rendered.text
    assert {span.owner for span in rendered.snapshot_spans} == {"assembler", "git", "instructions"}


@pytest.mark.anyio
async def test_values_cross_from_one_owner_to_another(repository: Path) -> None:
    """The shell's guidance names a command that another plugin provides; the persona, what the deployment says."""
    rendered = await rendering(repository)
    (span,) = rendered.owner_of("make test")
    assert (span.owner, span.section, span.variable) == ("repository", "tool:run", "checks")
    (span,) = rendered.owner_of("the people who maintain it")
    assert (span.owner, span.variable) == ("deployment", "maintainers")
    assert str(span.source).startswith("foreword.yaml:")
    assert "at most 99 characters" in rendered.text


@pytest.mark.anyio
async def test_agents_differ_in_their_persona(repository: Path) -> None:
    """Reviewer, security and the prompt of no agent have each its own persona, in the same place."""
    async with review_of(repository) as app:
        texts = {agent: (await render(app, agent)).text for agent in ("reviewer", "security", "global")}
    personas = {text.partition("\n")[0] for text in texts.values()}
    assert len(personas) == 3
    assert all("shop" in persona for persona in personas)
    assert texts["reviewer"].partition("\n")[2] == texts["global"].partition("\n")[2]


@pytest.mark.anyio
async def test_guidance_goes_with_a_masked_tool(repository: Path) -> None:
    """The deployment denies `run` to security: the tool goes, its guidance too, and the trace tells both."""
    async with review_of(repository) as app:
        reviewer, security = await render(app), await render(app, "security")
    assert [tool.name for tool in reviewer.tools] == ["read_file", "run", "search"]
    assert [tool.name for tool in security.tools] == ["read_file", "search"]
    assert "Use `run`" in reviewer.text
    assert "Use `run`" not in security.text
    absence = security.missing("tool:run")
    assert absence is not None
    assert absence.reason == "requires_tools:run"
    assert reviewer.missing("tool:run") is None
    assert any("agents.security.tools" in str(event.by) for event in security.trace.about("run"))


@pytest.mark.anyio
async def test_the_deployment_has_the_last_word(repository: Path) -> None:
    """It moves the style behind the report, and the trace tells where that stands and why."""
    rendered = await rendering(repository)
    assert rendered.text.index("# Your report") < rendered.text.index("# House style")
    (event,) = rendered.trace.about("style:guide")
    assert event.action == "overridden"
    assert event.by is not None
    assert event.by.endswith("how to report comes before what is a matter of taste")


@pytest.mark.anyio
async def test_limits_cannot_be_replaced(repository: Path) -> None:
    """No agent may shadow the protected limits."""
    async with review_of(repository) as app:
        with pytest.raises(ProtectedSectionShadowError):
            app.agents["security"].section("review:limits", "None.", order=1)


# -- the repository ----------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_the_instruction_file_comes_word_for_word(repository: Path) -> None:
    """CONTRIBUTING.md is in the snapshot as it is, braces and all, not in the text; AGENTS.md goes before it."""
    async with review_of(repository) as app:
        rendered = await render(app)
        assert f"CONTRIBUTING.md of this repository:\n\n{CONTRIBUTING.strip()}" in rendered.snapshot
        assert "Keep tabs" not in rendered.text
        (repository / "AGENTS.md").write_text("Be kind.\n", encoding="utf-8")
        assert (await render(app)).snapshot.endswith("AGENTS.md of this repository:\n\nBe kind.")


@pytest.mark.anyio
async def test_without_files_it_works_as_well(tmp_path: Path) -> None:
    """In an empty folder there is no instruction context, and the defaults stand in."""
    rendered = await rendering(tmp_path)
    assert rendered.missing("instructions:file") is not None
    assert "at most 88 characters" in rendered.text
    assert "`python -m pytest`" in rendered.text


@needs_git
@pytest.mark.anyio
async def test_git_state_is_told(repository: Path) -> None:
    """Branch, last commit and changed files come from git at each step, before the first commit too."""
    async with review_of(repository) as app:
        git(repository, "init", "--initial-branch", "work")
        assert "Branch: No commits yet on work\nChanged files: 3\n" in (await render(app)).snapshot
        git(repository, "add", "--all")
        git(repository, "commit", "--message", "Start with {{braces}}")
        snapshot = (await render(app)).snapshot
        assert "Branch: work\nLast commit: " in snapshot
        assert " Start with {{braces}}\nChanged files: 0\n" in snapshot
        (repository / "Makefile").write_text("", encoding="utf-8")
        (repository / "new.txt").write_text("", encoding="utf-8")
        assert "\nChanged files: 2\n M Makefile\n?? new.txt\n" in (await render(app)).snapshot
        for number in range(30):
            (repository / f"new{number}.txt").write_text("", encoding="utf-8")
        snapshot = (await render(app)).snapshot
        assert "\nChanged files: 32\n" in snapshot
        assert snapshot.count("?? new") == 19


@needs_git
@pytest.mark.anyio
async def test_git_runs_no_program_of_the_repository(repository: Path) -> None:
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
    snapshot = (await rendering(repository)).snapshot
    assert " Signed\nChanged files: 0" in snapshot
    assert not sprung.exists()


@needs_git
@pytest.mark.anyio
async def test_outside_a_repository_a_placeholder_stands_in(repository: Path) -> None:
    """Where git has nothing to say the context says so, and the rest of the prompt is there."""
    rendered = await rendering(repository)
    assert "\n\nWhat git would say is not known.\n\n" in rendered.snapshot
    assert any(event.action == "placeholder" and event.name == "git:state" for event in rendered.trace.events)


def test_without_git_a_placeholder_stands_in(repository: Path) -> None:
    """On a machine without git the prompt is whole but for the state of git."""
    done = foreword("show", "--agent", "reviewer", "--json", folder=repository, PATH=str(repository))
    told = json.loads(done.stdout)
    assert done.returncode == 0
    assert "What git would say is not known." in told["snapshot"]
    assert "Use `run`" in told["text"]


# -- coming and going --------------------------------------------------------------------------------------------------


def fiber_of(app: App, plugin: str) -> Fiber:
    return next(fiber for fiber in app.ctx.fiber.children if fiber.name == plugin)


@pytest.mark.anyio
async def test_every_plugin_is_there(repository: Path) -> None:
    """All of them are active, nothing is worth a warning, and each has something registered."""
    async with review_of(repository) as app:
        assert [(each.name, each.state) for each in app.plugins] == [(name, "active") for name in PLUGINS]
        assert all(each.contributions for each in app.plugins)
        assert app.warnings == ()


@pytest.mark.anyio
async def test_unloading_a_plugin_takes_away_its_part(repository: Path) -> None:
    """What git contributed goes with it, the rest stays to the byte; who needs the repository goes with that."""
    async with review_of(repository) as app:
        before = await render(app)
        await fiber_of(app, "git").dispose()
        after = await render(app)
        assert after.text == before.text
        assert {span.owner for span in after.snapshot_spans} == {"assembler", "instructions"}
        await fiber_of(app, "repository").dispose()
        waiting = {each.name for each in app.plugins if each.state == FiberState.PENDING.value}
        assert waiting == {"style", "instructions"}


@pytest.mark.anyio
async def test_unloading_all_leaves_nothing(repository: Path) -> None:
    """Without its plugins the prompt holds what the file itself says, and closed, no module of theirs is left."""
    async with review_of(repository) as app:
        for name in reversed(PLUGINS):
            await fiber_of(app, name).dispose()
        for view in (app.prompt, *app.agents.values()):
            assembly = await view.assemble()
            assert [section.name for section in assembly.sections] == ["deployment:persona"]
            assert (assembly.contexts, assembly.tools) == ([], [])
            assert list(assembly.variables) == ["maintainers"]
        root = app.ctx.root
    assert not [fiber for fiber in root.fibers if fiber.parent is not None]
    assert not any(name.startswith("review_plugins") for name in sys.modules)


@pytest.mark.anyio
async def test_two_of_them_do_not_meet(repository: Path, tmp_path: Path) -> None:
    """Opened twice at once for two repositories, each tells of its own."""
    other = tmp_path / "other"
    other.mkdir()
    async with review_of(repository) as first, review_of(other) as second:
        assert "shop" in (await render(first)).text
        assert "shop" not in (await render(second)).text
        assert "changes to other for" in (await render(second)).text


# -- on the command line -----------------------------------------------------------------------------------------------


def test_the_command_shows_it_on_this_repository() -> None:
    """`foreword show` prints the example's prompt for this very repository, each stretch beside its owner."""
    done = foreword("show", "--agent", "reviewer", "--annotate", "--contexts", "--tools", COLUMNS="120")
    out = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    assert "reviewer" in out.partition("\n")[0]
    assert "You review changes to foreword" in out
    assert "CONTRIBUTING.md of this repository:" in out
    rows = [row.split()[:2] for row in out.splitlines()]
    for note in (["review", "review:task"], ["shell", "tool:run"], ["repository", "{{checks}}"], ["files", "search"]):
        assert note in rows


@pytest.mark.parametrize("agent", ["reviewer", "security"])
def test_plain_show_is_the_same_text(repository: Path, agent: str) -> None:
    """Behind a pipe the command gives what rendering gives."""
    done = foreword("show", "--agent", agent, folder=repository)
    assert done.stdout.decode() == anyio.run(rendering, repository, agent).text + "\n"


def test_where_the_repository_is(repository: Path) -> None:
    """The environment says it, where it does; `foreword config` tells that, and not what it says."""
    done = foreword("show", "--agent", "reviewer", REVIEW_ROOT=str(repository))
    assert done.stdout.decode().startswith("You review changes to shop ")
    assert "${env:REVIEW_ROOT} (not set)" in foreword("config").stdout.decode()
    told = foreword("config", REVIEW_ROOT=str(repository)).stdout.decode()
    assert "${env:REVIEW_ROOT} (set)" in told
    assert str(repository) not in told
