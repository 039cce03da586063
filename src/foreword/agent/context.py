"""What a step of an agent is assembled for: `assemble_context_for`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.agent.model_selection import SelectedModel
from foreword.prompt.context import AssembleContext, ModelRef

if TYPE_CHECKING:
    from foreword.agent.agent import Agent
    from foreword.prompt.context import CancelToken

__all__ = ["assemble_context_for"]


def assemble_context_for(agent: Agent, signal: CancelToken | None = None) -> AssembleContext:
    """The context to assemble an agent's prompt for: its scope, itself, its values and its model.

    Scope and agent are the same agent, so that they cannot part: a context with an agent and without its scope would
    lose all that is registered for it. The model is what a `ModelSelection` selects now, else the agent's own.

    Args:
        agent: whose prompt is asked for.
        signal: cancels the assembly.
    """
    return AssembleContext(agent.values, scope=agent, agent=agent, model=_model_of(agent), signal=signal)


def _model_of(agent: Agent) -> ModelRef | None:
    for selection in reversed(agent.selections):
        if (config := selection.current) is not None:
            return SelectedModel(selection, config)
    return None if agent.model is None else ModelRef(agent.model.provider, agent.model.model)
