"""What the tests of deployments share: a folder with files in it, and ways to look at what comes out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from foreword.compose import App, Deployment, DeploymentError, Fault, open_deployment, read_deployment

PLUGINS = '''
"""Plugins for tests; importing this module leaves a mark."""
from pathlib import Path
from pydantic import BaseModel, SecretStr
from foreword import SystemPrompt, ToolSchema
from foreword.kernel.plugins import plugin

Path(__file__).with_name("mark").write_text("ran")

class Config(BaseModel):
    currency: str = "EUR"
    key: SecretStr | None = None
    limit: int = 3

@plugin(name="acme-billing", config=Config)
def billing(config: Config, prompt: SystemPrompt) -> None:
    prompt.variable("currency", config.currency)
    prompt.section("acme-billing:rules", "Quote prices in {{currency}}.", order=20)
    prompt.section("growth:upsell", "Offer the larger plan.", order=30)

@plugin(name="acme-tools")
def tools(prompt: SystemPrompt) -> None:
    prompt.tools([ToolSchema(name, "", {}) for name in ("refund", "charge", "mcp__orders__list", "mcp__orders__get")])
    prompt.section("tool:charge", "Charge once.", order=110, requires_tools=["charge"])

@plugin(name="acme-legal")
def legal(prompt: SystemPrompt) -> None:
    prompt.section("legal:notice", "This is no legal advice.", order=50)
    prompt.protect(sections=["legal:notice"])
'''


class Folder:
    """A folder for one deployment."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file, with its folders."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else dedent(text).lstrip("\n").encode())
        return file

    def deployment(self, text: str, name: str = "foreword.yaml") -> Path:
        """Write a deployment file; its first line is added."""
        first = "foreword = 1\n" if name.endswith(".toml") else "foreword: 1\n"
        return self.write(name, first + dedent(text).lstrip("\n"))

    def plugins(self, name: str = "plugs.py", text: str = PLUGINS) -> Path:
        """Write a module with plugins."""
        return self.write(name, text)

    def read(self, text: str, name: str = "foreword.yaml", environment: Mapping[str, str] | None = None) -> Deployment:
        """Write a deployment file and read it."""
        return read_deployment(self.deployment(text, name), environment=environment or {})

    def read_faults(
        self, text: str, name: str = "foreword.yaml", environment: Mapping[str, str] | None = None
    ) -> tuple[Fault, ...]:
        """What is wrong with a deployment file, as far as reading tells."""
        with pytest.raises(DeploymentError) as caught:
            self.read(text, name, environment)
        return caught.value.faults

    def only_fault(self, text: str, name: str = "foreword.yaml", environment: Mapping[str, str] | None = None) -> Fault:
        """The one thing that is wrong with a deployment file."""
        faults = self.read_faults(text, name, environment)
        assert len(faults) == 1, "\n".join(map(str, faults))
        return faults[0]

    def open(self, text: str, environment: Mapping[str, str] | None = None, **options: Any) -> Any:
        """Write a deployment file and open it."""
        return open_deployment(self.deployment(text), environment=environment or {}, **options)

    async def open_faults(self, text: str, environment: Mapping[str, str] | None = None, **options: Any) -> list[Fault]:
        """What is wrong with a deployment, opening included."""
        with pytest.raises(DeploymentError) as caught:
            async with self.open(text, environment, **options):
                pass
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        return list(caught.value.faults)


def places(faults: Any) -> list[tuple[int | None, str]]:
    """Line and path of each fault."""
    return [(fault.line, fault.path) for fault in faults]


async def text_of(app: App, agent: str | None = None) -> str:
    """The rendered prompt, of all or of an agent."""
    view = app.prompt if agent is None else app.agents[agent]
    return (await view.render()).text


async def tools_of(app: App, agent: str | None = None) -> list[str]:
    """The names of the tools, of all or of an agent."""
    view = app.prompt if agent is None else app.agents[agent]
    return [tool.name for tool in (await view.render()).tools]
