"""The tool calls of a step, one after the other: each is in the log, durable, before its tool's body starts.

Every call gets an answer, whatever happens: a history in which one is missing is refused by providers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.agent.stream import ToolCallFinished, ToolCallStarted
from foreword.errors import did_you_mean, shown
from foreword.session.events import ToolAnswered, ToolCalled
from foreword.session.repair import TOOL_NOT_STARTED, TOOL_OUTCOME_UNKNOWN
from foreword.tools.registry import ToolRegistry
from foreword.tools.result import failure
from foreword.wire.messages import ToolMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foreword.agent.prepare import Prepared
    from foreword.agent.run import Run
    from foreword.tools.result import ToolResult
    from foreword.wire.messages import AssistantMessage, ToolCall

__all__ = ["run_calls", "sensitive_calls"]

_NOT_STARTED = failure(TOOL_NOT_STARTED, "the turn ended before this tool was started; it may be called again")
_UNKNOWN = failure(
    TOOL_OUTCOME_UNKNOWN,
    "the turn ended while this tool ran, and what it did is not known; see how things stand before it is called again",
)


def sensitive_calls(run: Run, prepared: Prepared, message: AssistantMessage) -> tuple[int, ...]:
    """The positions of the calls in an answer whose arguments and results are not to be shown to whoever looks on."""
    return tuple(at for at, call in enumerate(message.tool_calls) if _is_sensitive(run, prepared, call))


def _is_sensitive(run: Run, prepared: Prepared, call: ToolCall) -> bool:
    """Whether the tool was sensitive when it was offered, though it may have gone since, or is so now."""
    if call.name in prepared.sensitive:
        return True
    tools = run.agent.ctx.get(ToolRegistry)
    return tools is not None and call.name in tools.sensitive_names(run.agent)


async def run_calls(run: Run, prepared: Prepared, offered: Sequence[str], calls: Sequence[ToolCall]) -> None:
    """Run the tools that the model wants, in its order.

    Args:
        run: the turn.
        prepared: the step.
        offered: the names of the tools that the request had.
        calls: what the model wants.

    Raises:
        TurnCancelled: the turn was cancelled.
        Exception: the log could not be written, or what a tool gave could not be logged, so no further tool was run. In
            all these cases the calls that have no answer by then get one that says so.
    """
    for at, call in enumerate(calls):
        running, sensitive = False, _is_sensitive(run, prepared, call)
        try:
            await _log_durably(run, call, sensitive=sensitive)
            running = True
            result = await _call(run, prepared, offered, call)
            _answer(run, call, result, sensitive=sensitive)
        except BaseException:
            _give_up(run, calls[at:], running=running)
            raise
    run.check()


async def _log_durably(run: Run, call: ToolCall, *, sensitive: bool) -> None:
    run.check()
    run.session.append(ToolCalled(run.turn, run.step, call, sensitive))
    await run.session.flush()
    run.check()
    run.tell(ToolCallStarted(run.step, call))


async def _call(run: Run, prepared: Prepared, offered: Sequence[str], call: ToolCall) -> ToolResult:
    """Call a tool that the model was offered; to call it by name is not enough, since listeners may hide tools.

    What was offered is what the request had. Where a recorded header went out again, today's step must have it, too.
    """
    today = {tool.name for tool in prepared.rendering.tools}
    known = [name for name in offered if name in today]
    tools = run.agent.ctx.get(ToolRegistry)
    if tools is None or call.name not in known:
        why = f'there is no tool "{shown(call.name)}"; {did_you_mean(call.name, known, "tools")}'
        return failure("UNKNOWN_TOOL", why)
    return await tools.call(
        call.name, call.arguments, scope=run.agent, call_id=call.id, signal=run.signal, context=prepared.context
    )


def _give_up(run: Run, calls: Sequence[ToolCall], *, running: bool) -> None:
    """Answer the calls that will have no answer; of the first one the tool may have begun."""
    for at, call in enumerate(calls):
        why = _UNKNOWN if running and at == 0 else _NOT_STARTED
        _answer(run, call, why)


def _answer(run: Run, call: ToolCall, result: ToolResult, *, sensitive: bool = False) -> None:
    message = ToolMessage(call.id, call.name, result.text, result.is_error)
    run.session.append(ToolAnswered(run.turn, run.step, message, result.code, sensitive))
    run.tell(ToolCallFinished(run.step, call, message, result.code))
