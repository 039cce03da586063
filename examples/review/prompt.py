"""The prompt of an agent that reviews changes to a repository.

Six plugins contribute to it. Each is a function that gets a view of its own and knows nothing of the others; what it
registers is its own, to the last character. Two agents read the result, each in a scope with a persona of its own.

    foreword show examples/review/prompt.py:build --annotate
    foreword show examples/review/prompt.py:build --scope security --tools --trace
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio

from foreword import (
    DOMAIN_ORDER,
    PERSONA_ORDER,
    PERSONA_SECTION,
    TOOL_GUIDANCE_ORDER,
    AssembleContext,
    JsonValue,
    Placeholder,
    PromptAssembly,
    SystemPrompt,
    ToolSchema,
)

TEXTS = Path(__file__).parent / "texts"
INSTRUCTION_FILES = ("AGENTS.md", "CONTRIBUTING.md")
MOST_FILES_LISTED = 20

# Hooks, a file-system monitor, a signature check: programs that a repository may configure, and git is not to run.
GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false")


def build(root: Path | None = None) -> SystemPrompt:
    """The reviewer's view of the prompt for a repository; by default the one that you are in."""
    root = (root or Path()).resolve()
    prompt = SystemPrompt(persona=TEXTS / "persona.md")
    review(prompt.owner("review"), root)
    style(prompt.owner("style"), root)
    files(prompt.owner("files"))
    shell(prompt.owner("shell"))
    git(prompt.owner("git"), root)
    instructions(prompt.owner("instructions"), root)

    # A scope sees all of the above. A section of the same name takes the place of the one further out.
    reviewer = prompt.scope("reviewer")
    reviewer.section(PERSONA_SECTION, TEXTS / "reviewer.md", order=PERSONA_ORDER)

    security = prompt.scope("security")
    security.section(PERSONA_SECTION, TEXTS / "security.md", order=PERSONA_ORDER)
    security.on_assemble(read_only)
    return reviewer


# -- the product -------------------------------------------------------------------------------------------------------


def review(prompt: SystemPrompt, root: Path) -> None:
    """What a review is. Its limits outlast every listener, and no scope may replace them."""
    prompt.section("review:task", TEXTS / "task.md", order=DOMAIN_ORDER)
    prompt.section("review:report", TEXTS / "report.md", order=DOMAIN_ORDER + 20)
    prompt.section("review:limits", TEXTS / "limits.md", order=DOMAIN_ORDER + 30)
    prompt.protect(sections=["review:limits"])

    prompt.variable("repository", lambda: settings(root).get("project", {}).get("name", root.name))
    prompt.variable("checks", lambda: "make test" if (root / "Makefile").is_file() else "python -m pytest")


def style(prompt: SystemPrompt, root: Path) -> None:
    """The house style, with the line length that the repository has set."""
    prompt.section("style:guide", TEXTS / "style.md", order=DOMAIN_ORDER + 10)

    @prompt.variable("line_length", on_error=Placeholder("88"))
    def line_length() -> str:
        return str(settings(root)["tool"]["ruff"]["line-length"])


def settings(root: Path) -> dict[str, Any]:
    """The repository's ``pyproject.toml``; empty if it has none."""
    path = root / "pyproject.toml"
    return tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}


# -- tools: each with its guidance, which goes where the tool goes -----------------------------------------------------


def files(prompt: SystemPrompt) -> None:
    """Reading and searching."""
    path: JsonValue = {"type": "string", "description": "Relative to the root of the repository."}
    pattern: JsonValue = {"type": "string", "description": "A regular expression."}
    line: JsonValue = {"type": "integer", "minimum": 1}
    case: JsonValue = {"enum": ["match", "ignore"]}
    read = arguments(["path"], path=path, first_line=line, last_line=line)
    search = arguments(["pattern"], pattern=pattern, folder=path, case=case)
    prompt.tools(
        [
            ToolSchema("read_file", "Read a text file, or some lines of it.", read),
            ToolSchema("search", "Find the lines that match a pattern.", search),
        ]
    )
    prompt.section("tool:read_file", TEXTS / "read_file.md", order=TOOL_GUIDANCE_ORDER, requires_tools=["read_file"])
    prompt.section("tool:search", TEXTS / "search.md", order=TOOL_GUIDANCE_ORDER + 1, requires_tools=["search"])


def shell(prompt: SystemPrompt) -> None:
    """Running commands."""
    timeout: JsonValue = {"type": "number", "description": "In seconds; 60 unless given."}
    run = arguments(["command"], command={"type": "string"}, timeout=timeout)
    prompt.tools([ToolSchema("run", "Run a command in a sandbox without network.", run)])
    prompt.section("tool:run", TEXTS / "run.md", order=TOOL_GUIDANCE_ORDER + 2, requires_tools=["run"])


def arguments(required: list[str], **properties: JsonValue) -> dict[str, JsonValue]:
    """The JSON Schema of a tool's arguments."""
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


async def read_only(
    assembly: PromptAssembly, context: AssembleContext, call_next: Callable[[], Awaitable[PromptAssembly]]
) -> PromptAssembly:
    """Take the tool away that can change something."""
    assembly = await call_next()
    assembly.tools.drop("run")
    return assembly


# -- runtime contexts: what is so just now, told outside the system prompt and word for word ---------------------------


def git(prompt: SystemPrompt, root: Path) -> None:
    """Branch, last commit, changed files."""

    @prompt.context(
        "git:state", order=10, verbatim=True, timeout=5, on_error=Placeholder("What git would say is not known.")
    )
    async def state() -> str:
        head, *changed = (await ask_git(root, "status", "--porcelain", "--branch")).splitlines()
        told = [f"Branch: {head.removeprefix('## ')}"]
        if not head.startswith("## No commits yet"):
            told.append(f"Last commit: {await ask_git(root, 'log', '-1', '--format=%h %s')}")
        told += [f"Changed files: {len(changed)}", *changed[:MOST_FILES_LISTED]]
        return "\n".join(told)


async def ask_git(root: Path, *arguments: str) -> str:
    """What git answers; raises when there is no git, or no repository."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = await anyio.run_process([*GIT, "--no-optional-locks", *arguments], cwd=root, env=environment)
    return done.stdout.decode("utf-8", "replace").rstrip()


def instructions(prompt: SystemPrompt, root: Path) -> None:
    """The repository's own instructions, and how far they go."""
    prompt.section("instructions:rank", TEXTS / "instructions.md", order=DOMAIN_ORDER + 25)

    @prompt.context("instructions:file", order=20, verbatim=True)
    def instruction_file() -> str:
        for path in (root / name for name in INSTRUCTION_FILES):
            if path.is_file():
                return f"{path.name} of this repository:\n\n{path.read_text('utf-8', 'replace').strip()}"
        return ""  # says nothing, so it is left out
