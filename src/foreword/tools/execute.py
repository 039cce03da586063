"""Carrying a call out: arguments checked, the function called, and whatever comes of it made a result.

    read ─▶ bind ─▶ run (timeout, signal, thread) ─▶ result

An async function runs in a task of its own, a sync one in a daemon thread, so that one that does not let go can be left
behind: its task is cancelled, and the call's signal for a thread; if it has not come back `GRACE` seconds later the
caller goes on, and ``ToolRegistry.stuck`` lists it until it ends. Nothing that a tool raises reaches the
caller but exits (``KeyboardInterrupt``, ``SystemExit``); a cancellation of the caller itself passes through.
"""

from __future__ import annotations

import inspect
import logging
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

from foreword.errors import ProviderTimeoutError
from foreword.prompt.asking import GRACE, ask_in_time
from foreword.prompt.cancelling import cancelled_by
from foreword.prompt.collect import Question
from foreword.prompt.context import CancelToken
from foreword.tools.arguments import ArgumentsError, read_arguments
from foreword.tools.result import failure, raised, result_of, unusable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from foreword.prompt.contributions import Entry
    from foreword.prompt.running import Running
    from foreword.tools.context import ToolContext
    from foreword.tools.resolver import Tool
    from foreword.tools.result import ToolResult

__all__ = ["Call", "execute"]

_log = logging.getLogger("foreword.tools")
_NOTHING: Final = object()
_UNSURE: Final = "whether it took effect is not known"


class Call(Question):
    """One call of a tool, as the machinery for providers asks it."""

    __slots__ = ("attempt", "signal", "work")

    context: ToolContext

    def __init__(self, entry: Entry, context: ToolContext, running: Running, work: Callable[[], Any]) -> None:
        super().__init__(entry, context, running)
        self.work = work
        self.signal = context.signal  # its own: cancelling it concerns nobody else
        self.attempt: Call | None = None
        self.answer = _NOTHING

    async def ask(self) -> Any:
        """What the function gives, unchecked."""
        answer = await self.running.threads.run(self, self.work, GRACE) if self.entry.thread else self.work()
        return await answer if inspect.isawaitable(answer) else answer  # a decorator may hide that it is async

    @property
    def has_ended(self) -> bool:
        """Whether its function has come back, well or not."""
        attempt = self.attempt
        return attempt is not None and (attempt.answer is not _NOTHING or attempt.error is not None)

    def let_go(self) -> None:
        """Tell its function that it is no longer wanted, unless it has come back: a thread can look at the signal."""
        if not self.has_ended:
            self.signal.cancel("nobody waits for the call any more")

    def again(self) -> Call:
        """The attempt that a task of its own makes; kept, since what it answered counts even if it was late."""
        self.attempt = Call(self.entry, self.context, self.running, self.work)
        return self.attempt


async def execute(tool: Tool, arguments: str | Mapping[str, Any], context: ToolContext, running: Running) -> ToolResult:
    """Call a tool.

    Args:
        tool: which.
        arguments: as the model wrote them.
        context: what the tool is told, with the caller's signal; the call gets a signal of its own, which follows it.
        running: keeps track of what runs.

    Returns:
        What came of it; failures are results, too.
    """
    if context.signal.reason is not None:
        return failure("ABORTED_BEFORE_DISPATCH", f"the call was cancelled before it began ({context.signal.reason})")
    with _own_signal(context.signal) as own:
        told = context.followed_by(own)
        try:
            work = _bound(tool, arguments, told)
        except ArgumentsError as fault:
            return failure("INVALID_ARGS", str(fault))
        except Exception as error:  # a type's own validator is somebody else's code
            return _failed(tool, error)
        call = Call(tool, told, running, work)
        return await _carried_out(tool, call)


@contextmanager
def _own_signal(callers: CancelToken) -> Generator[CancelToken]:
    """A signal of the call's own: whatever cancels the caller's cancels it, and so may others."""
    own = CancelToken()
    undo = callers.on_cancel(lambda: own.cancel(callers.reason or "cancelled"))
    try:
        yield own
    finally:
        undo()


def _bound(tool: Tool, arguments: str | Mapping[str, Any], context: ToolContext) -> Callable[[], Any]:
    binding = tool.definition.binding
    assert binding is not None  # noqa: S101 - every definition makes itself one
    return binding.bind(read_arguments(arguments), context)


async def _carried_out(tool: Tool, call: Call) -> ToolResult:
    try:
        # No await between look-up and here: a plugin that goes from now on finds its tool in use, and waits for it.
        with call.running.asking(call), cancelled_by(call.signal) as cut:
            await _run(call, tool.timeout)
    finally:
        call.let_go()
    return _settled(tool, call, cut_short=cut.cancelled_caught)


async def _run(call: Call, timeout: float | None) -> None:
    import anyio

    try:
        await ask_in_time(call, math.inf if timeout is None else timeout, tell=call.let_go)
    except anyio.get_cancelled_exc_class() as stop:
        attempt = cast("Call", call.attempt)
        if stop is not attempt.stop:
            raise  # of this task
        # Something that the tool awaits was cancelled, and nobody told the tool to stop: a failure like any other.
        call.error = attempt.error = RuntimeError("it was cancelled by something that it awaits")


def _settled(tool: Tool, call: Call, *, cut_short: bool) -> ToolResult:
    """What came of a call that has been run. An answer counts however late it is: then it is known what was done."""
    attempt = cast("Call", call.attempt)
    if attempt.answer is not _NOTHING:
        return _answered(tool, attempt.answer)
    if cut_short:
        error = None if attempt.error is None else tool.guard(attempt.error)
        return failure("ABORTED", f"the call was cancelled ({call.signal.reason}); {_UNSURE}", error)
    if isinstance(call.error, ProviderTimeoutError) and call.error is not attempt.error:
        return failure("TIMEOUT", f"{call.error}; {_UNSURE}", call.error)
    return _failed(tool, cast("Exception", attempt.error))


def _answered(tool: Tool, answer: object) -> ToolResult:
    try:
        return result_of(answer, tool.definition.max_result)
    except Exception as error:  # a value may bring its own code along
        told = tool.guard(error)
        _log.info("%s gave back what cannot be told", tool, exc_info=told)
        return unusable(told)


def _failed(tool: Tool, error: Exception) -> ToolResult:
    told = tool.guard(error)
    _log.info("%s failed", tool, exc_info=told)
    return raised(told)
