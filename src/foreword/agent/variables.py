"""The variables of the loop: ``provider``, ``model`` and ``cwd`` of whichever agent an assembly is for.

They are global, and there as long as some agent of the kernel is. Without an agent they have no value.
"""

from __future__ import annotations

from foreword.agent.agent import Agent
from foreword.kernel.plugins import plugin
from foreword.prompt.context import AssembleContext
from foreword.prompt.system_prompt import SystemPrompt

__all__ = ["loop_variables"]


@plugin(name="agent-loop")
def loop_variables(prompt: SystemPrompt) -> None:
    """Register the variables of the loop."""
    prompt.variable("provider", _provider)
    prompt.variable("model", _model)
    prompt.variable("cwd", _cwd)


def _provider(context: AssembleContext) -> str | None:
    agent = context.agent
    return agent.model.provider if isinstance(agent, Agent) and agent.model is not None else None


def _model(context: AssembleContext) -> str | None:
    agent = context.agent
    return agent.model.model if isinstance(agent, Agent) and agent.model is not None else None


def _cwd(context: AssembleContext) -> str | None:
    agent = context.agent
    return agent.session.cwd if isinstance(agent, Agent) else None
