"""The first half of a step: its prompt is assembled and rendered, once, and listeners decide whether it is entered.

Nothing is logged here. What fails leaves no half step behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from foreword.agent.context import assemble_context_for
from foreword.agent.events import AGENT_PRE_STEP, Enter, PreStep, Reject
from foreword.agent.snapshot import due_snapshot, with_honest_sources
from foreword.errors import WrongAnswerError
from foreword.prompt.rendering import render
from foreword.prompt.system_prompt import SystemPrompt
from foreword.prompt.text import described
from foreword.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from foreword.agent.agent import Agent
    from foreword.agent.events import Decision
    from foreword.agent.run import Run
    from foreword.prompt.context import AssembleContext
    from foreword.prompt.rendering import Rendering
    from foreword.session.events import UserSaid

__all__ = ["Prepared", "prepare"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A step that is proposed.

    Attributes:
        context: that it is assembled for.
        rendering: of its prompt.
        sensitive: the names of the sensitive tools in it; by the time of a call, a tool may have gone.
        decision: what the listeners say.
    """

    context: AssembleContext
    rendering: Rendering
    sensitive: frozenset[str]
    decision: Decision


async def prepare(run: Run) -> Prepared:
    """Prepare the next step.

    Raises:
        TurnCancelled: the turn was cancelled meanwhile.
        Exception: the prompt cannot be assembled or rendered, or a listener raised.
    """
    agent = run.agent
    taken = run.take()
    await run.foreign(agent.settled)
    context = assemble_context_for(agent, run.signal)
    prompt = agent.ctx.require(SystemPrompt)
    assembly = await run.foreign(lambda: prompt.assemble(context))
    rendering = render(assembly)
    sensitive = _sensitive_tools(agent, rendering)
    snapshot = due_snapshot(run.session.held_snapshot, assembly, rendering.snapshot, rendering.snapshot_masks)
    decision = await _decide(run, taken, snapshot)
    return Prepared(context, rendering, sensitive, decision)


def _sensitive_tools(agent: Agent, rendering: Rendering) -> frozenset[str]:
    registry = agent.ctx.get(ToolRegistry)
    sensitive = frozenset[str]() if registry is None else registry.sensitive_names(agent)
    return sensitive and sensitive.intersection([tool.name for tool in rendering.tools])


async def _decide(run: Run, taken: tuple[UserSaid, ...], snapshot: UserSaid | None) -> Decision:
    default = Enter(taken if snapshot is None else (*taken, snapshot))
    proposed = PreStep(run.agent, run.turn, run.step + 1, taken, run.signal)
    decision = await run.ask(AGENT_PRE_STEP, proposed, default)
    if isinstance(decision, Enter):
        return Enter(with_honest_sources(decision.messages, snapshot))
    if isinstance(decision, Reject):
        return decision
    raise WrongAnswerError(AGENT_PRE_STEP.name, "Enter or Reject", described(decision))
