"""What an agent has of its own from the start: a persona, a mask over the tools, what a child is told.

It is a plugin in the agent's scope, so it comes back when the prompt or the tools are reloaded; until then the agent
takes no step, and no tool shows that its mask hides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foreword.kernel.plugins import plugin
from foreword.prompt.contributions import PERSONA_ORDER, PERSONA_SECTION
from foreword.prompt.system_prompt import SystemPrompt
from foreword.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from foreword.kernel.source import Source
    from foreword.tools.masks import ToolMask

__all__ = ["DELEGATION_CONTEXT", "Outfit"]

DELEGATION_CONTEXT = "agent:delegation"
"""The runtime context that tells a child whose it is; another one of this name in its scope is refused."""


@dataclass(frozen=True, slots=True)
class Outfit:
    """What an agent has of its own from the start.

    Attributes:
        persona: takes the deployment's place; None to leave that.
        tools: what the agent may not see of the tools that it inherits; None for all.
        delegator: the name of the agent that has spawned it; None for nobody.
        source: the line that asked for it.
    """

    persona: str | Path | None
    tools: ToolMask | None
    delegator: str | None
    source: Source

    def as_plugin(self, name: str) -> Callable[..., Any]:
        """The plugin that registers it."""
        again = False

        def without_mask(prompt: SystemPrompt) -> None:
            self._contribute(prompt)

        def with_mask(prompt: SystemPrompt, tools: ToolRegistry) -> None:
            nonlocal again
            self._contribute(prompt)
            # Loaded anew, it may come before the plugins whose tools it names: those names were checked once.
            tools.restrict(self.tools, later=again, source=self.source)
            again = True

        return plugin(name=name)(without_mask if self.tools is None else with_mask)

    def _contribute(self, prompt: SystemPrompt) -> None:
        if self.persona is not None:
            prompt.section(PERSONA_SECTION, self.persona, order=PERSONA_ORDER, source=self.source)
        if self.delegator is not None:
            told = f'You work for another agent, "{self.delegator}". What you say last is your report to it.'
            prompt.context(DELEGATION_CONTEXT, told, order=PERSONA_ORDER, verbatim=True)
