"""Runtime contexts: what is so just now in the workspace, told outside the system prompt and word for word."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
from pydantic import BaseModel, Field

from foreword import DOMAIN_ORDER, Placeholder, SystemPrompt, plugin

from .repository import Repository

TEXTS = Path(__file__).parents[1] / "texts"

# Hooks, a file-system monitor, a signature check: programs that a repository may configure, and git is not to run.
GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false")


class GitConfig(BaseModel):
    """How much of git's state is told."""

    most_files: int = Field(20, ge=0)  # that have changed


@plugin(name="git", config=GitConfig)
def git(config: GitConfig, prompt: SystemPrompt, repository: Repository) -> None:
    """Branch, last commit, changed files."""

    @prompt.context(
        "git:state", order=10, verbatim=True, timeout=5, on_error=Placeholder("What git would say is not known.")
    )
    async def state() -> str:
        root = repository.root
        head, *changed = (await ask_git(root, "status", "--porcelain", "--branch")).splitlines()
        told = [f"Branch: {head.removeprefix('## ')}"]
        if not head.startswith("## No commits yet"):
            told.append(f"Last commit: {await ask_git(root, 'log', '-1', '--format=%h %s')}")
        told += [f"Changed files: {len(changed)}", *changed[: config.most_files]]
        return "\n".join(told)


async def ask_git(root: Path, *arguments: str) -> str:
    """What git answers; raises when there is no git, or no repository."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = await anyio.run_process([*GIT, "--no-optional-locks", *arguments], cwd=root, env=environment)
    return done.stdout.decode("utf-8", "replace").rstrip()


class InstructionsConfig(BaseModel):
    """Where a repository's instructions stand."""

    files: list[str] = ["AGENTS.md"]  # the first that is there


@plugin(name="instructions", config=InstructionsConfig)
def instructions(config: InstructionsConfig, prompt: SystemPrompt, repository: Repository) -> None:
    """The repository's own instructions, and how far they go."""
    prompt.section("instructions:rank", TEXTS / "instructions.md", order=DOMAIN_ORDER + 25)

    @prompt.context("instructions:file", order=20, verbatim=True)
    def instruction_file() -> str:
        for path in (repository.root / name for name in config.files):
            if path.is_file():
                return f"{path.name} of this repository:\n\n{path.read_text('utf-8', 'replace').strip()}"
        return ""  # says nothing, so it is left out
