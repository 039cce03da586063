"""The agents of a deployment: what the file says of each, as a plugin for its scope; and agents that run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from foreword.compose.masks import masking
from foreword.errors import PluginFailedError, RegistrationError
from foreword.kernel.plugins import plugin
from foreword.prompt.contributions import PERSONA_ORDER, PERSONA_SECTION
from foreword.prompt.system_prompt import SystemPrompt
from foreword.strictyaml import spelled
from foreword.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from foreword.agent.agent import Agent
    from foreword.agent.creation import SetUp
    from foreword.compose.deployment import AgentEntry, Deployment
    from foreword.strictyaml import Path as Way

__all__ = ["DEPLOYMENT", "Refuse", "furnished", "own_of"]

DEPLOYMENT: Final = "deployment"
"""The owner of what the file itself contributes."""

Refuse: TypeAlias = "Callable[[Way, RegistrationError], None]"
"""Told where in the file the persona stands that is refused."""


def own_of(entry: AgentEntry, deployment: Deployment, refuse: Refuse) -> Callable[..., Any]:
    """The plugin that registers what an agent has of its own: its persona, and the mask of its tools.

    Args:
        entry: the agent.
        deployment: the file that it stands in.
        refuse: what to do where the persona cannot be.
    """

    @plugin(name=DEPLOYMENT)
    def own(prompt: SystemPrompt, tools: ToolRegistry) -> None:
        if entry.persona is not None:
            way: Way = (*entry.path, "persona")
            source = deployment.source_of(way)
            try:
                prompt.section(PERSONA_SECTION, entry.persona, order=PERSONA_ORDER, source=source)
            except RegistrationError as error:
                refuse(way, error)
        if entry.mask is not None:
            way = (*entry.path, "tools")
            source = deployment.source_of(way)
            prompt.on_assemble(masking(entry.mask, spelled(way)), prepend=True, source=source)
            tools.restrict(entry.mask, later=True, source=source)  # its names are checked against all tools, not here

    return own


def furnished(entry: AgentEntry, deployment: Deployment, further: SetUp | None) -> SetUp:
    """The set-up of an agent that runs: what the file says of it, in its own scope, and what else is wanted.

    It stands there, and not in a scope above the agent, because children stand beside their agent: what is its own they
    do not inherit.
    """
    return partial(_furnish, own_of(entry, deployment, _raise), further)


async def _furnish(own: Callable[..., Any], further: SetUp | None, agent: Agent) -> None:
    try:
        await agent.ctx.mount(own).ready()
    except PluginFailedError as failure:
        raise failure.__cause__ or failure from None  # it says what is wrong with the persona
    pending = None if further is None else further(agent)
    if pending is not None:
        await pending


def _raise(_: Way, error: RegistrationError) -> None:
    raise error
