"""The repository that is reviewed: what it is called, how it is checked, what it has set.

Provides a `Repository`, so that one line of the deployment tells all plugins where it is.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from foreword import Context, SystemPrompt, plugin


class Config(BaseModel):
    """The plugin's part of the deployment."""

    root: Path = Path()  # the folder you are in


@dataclass(frozen=True, slots=True)
class Repository:
    """A folder with code in it."""

    root: Path

    def settings(self) -> dict[str, Any]:
        """Its ``pyproject.toml``; empty if it has none."""
        path = self.root / "pyproject.toml"
        return tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}

    def name(self) -> str:
        """What its people call it; else its folder's name."""
        return self.settings().get("project", {}).get("name", self.root.name)

    def checks(self) -> str:
        """The command that runs its checks."""
        return "make test" if (self.root / "Makefile").is_file() else "python -m pytest"


@plugin(name="repository", config=Config)
def repository(config: Config, ctx: Context, prompt: SystemPrompt) -> None:
    """Tell others about the repository: plugins by a service, texts by variables, asked anew at each step."""
    found = Repository(config.root.resolve())
    ctx.provide(found)
    prompt.variable("repository", found.name)
    prompt.variable("checks", found.checks)
