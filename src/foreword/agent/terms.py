"""What an agent is made with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foreword.agent.agent import Agent
    from foreword.agent.retry import Clock, RetryPolicy
    from foreword.kernel.scope import ScopeKey
    from foreword.prompt.context import ContextKey
    from foreword.session.log import Log
    from foreword.wire.request import ModelConfig

__all__ = ["Terms"]


@dataclass(frozen=True, slots=True)
class Terms:
    """What an agent is made with; a child gets its parent's, changed where it is told otherwise.

    Attributes:
        model: None for an agent whose model is always selected.
        values: for the contexts that its prompt is assembled for.
        scope: that it stands below; `GLOBAL` for directly under the global layer.
        delegator: the agent that has spawned it.
        log: that its session is in, and those of its children will be.
        retry: when a failed request is tried again.
        max_steps: how many steps a turn may have; None for any number.
        clock: that it goes by.
    """

    model: ModelConfig | None
    values: Mapping[ContextKey[Any], object]
    scope: ScopeKey
    delegator: Agent | None
    log: Log
    retry: RetryPolicy
    max_steps: int | None
    clock: Clock
