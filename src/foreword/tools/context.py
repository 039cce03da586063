"""What a tool may know of one call of it: whom it is for, which call it is, whether it is still wanted.

A tool asks for it by annotation; the model never sees that parameter:

    @tools.register
    async def refund(order: str, context: ToolContext) -> str: ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from foreword.prompt.context import AssembleContext, CancelToken

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from foreword.kernel.scope import HasKey, ScopeKey
    from foreword.prompt.context import ContextKey, ModelRef

__all__ = ["ToolContext"]


class ToolContext(AssembleContext):
    """What one call of a tool is for: all that an `AssembleContext` tells, and which call it is. Immutable.

    Its ``signal`` is always there, and is cancelled when the call is no longer wanted for whatever reason: by the
    caller's own signal, past its timeout, or when its plugin goes. A plain function in its thread cannot be
    interrupted; it can look at ``context.signal.cancelled`` from time to time, and what it gives within 100 ms of that
    still counts.

    Args:
        values: the caller's own values by `ContextKey`.
        scope: whose tool is called.
        agent: the agent that calls.
        model: the model that asked for the call.
        signal: cancels the call; None for one that nobody cancels.
        tool: the name of the tool.
        call_id: which call it is, as the model named it.
    """

    __slots__ = ("call_id", "tool")

    signal: CancelToken  # pyright: ignore[reportIncompatibleVariableOverride] - immutable, so it may be narrower
    tool: str
    call_id: str

    def __init__(
        self,
        values: Mapping[ContextKey[Any], object] | None = None,
        *,
        scope: ScopeKey | HasKey | None = None,
        agent: ScopeKey | None = None,
        model: ModelRef | None = None,
        signal: CancelToken | None = None,
        tool: str = "",
        call_id: str = "",
    ) -> None:
        super().__init__(values, scope=scope, agent=agent, model=model, signal=signal or CancelToken())
        object.__setattr__(self, "tool", tool)
        object.__setattr__(self, "call_id", call_id)

    @classmethod
    def of_call(
        cls, context: AssembleContext, scope: ScopeKey, tool: str, call_id: str, signal: CancelToken | None
    ) -> Self:
        """The context of a call: what its caller told, and which call it is."""
        values = {key: context[key] for key in context.keys}
        return cls(
            values, scope=scope, agent=context.agent, model=context.model, signal=signal, tool=tool, call_id=call_id
        )

    def followed_by(self, signal: CancelToken) -> Self:
        """The same context with another signal."""
        return self.of_call(self, cast("ScopeKey", self.scope), self.tool, self.call_id, signal)
