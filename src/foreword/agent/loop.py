"""The loop: a turn from its first step to its end, whatever happens.

Every turn that began ends in the log, and so does every step in it. What cancels a turn is its token. An interrupt, or
a cancellation of the task that the turn runs in (its event loop is torn down), is turned into that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from foreword.agent.events import AGENT_ERROR, AGENT_TURN_STOPPING, Reject, TurnFailed, TurnStopping
from foreword.agent.failure import code_of, in_words
from foreword.agent.prepare import prepare
from foreword.agent.step import take_step
from foreword.errors import EventRefusedError, StepLimitError
from foreword.session.events import TurnEnd

if TYPE_CHECKING:
    from foreword.agent.run import Run
    from foreword.agent.step import Ending
    from foreword.agent.stream import TurnFinished

__all__ = ["run_turn"]


async def run_turn(run: Run) -> None:
    """Run a turn whose ``turn/start`` is logged. When its caller hears of its end, all of it is durable.

    Raises:
        BaseException: what was no mere error (an interrupt, an exit, the cancellation of this task), after the end.
    """
    stop: BaseException | None = None
    try:
        end = await _steps(run)
    except GeneratorExit:  # the event loop has gone, and with it whoever could wait for a flush
        raise
    except BaseException as error:  # whatever a turn runs into, it ends in the log
        if not isinstance(error, Exception):
            stop = error
            run.signal.cancel("user")
        end = _failed(run, error)
    try:
        end = await _closed(run, end)
    finally:
        run.finish(end)
    if stop is not None:
        raise stop


async def _steps(run: Run) -> TurnFinished:
    ending: Ending | None = None
    while True:
        _hold_to_limit(run)
        prepared = await prepare(run)
        decision = prepared.decision
        if isinstance(decision, Reject):
            return run.finished("blocked", decision.reason)
        if not decision.messages and (ending is not None or not run.step):
            return run.finished(ending or "completed")  # what was rewritten to nothing opens nothing
        ended = await take_step(run, prepared, decision.messages)
        ending = "max-tokens" if "max-tokens" in (ending, ended) else ended
        run.check()
        if ending is not None and await _nothing_follows(run):
            return run.finished(ending)


def _hold_to_limit(run: Run) -> None:
    limit = run.agent.terms.max_steps
    if limit is not None and run.step >= limit:
        raise StepLimitError(run.agent.name, limit)


async def _nothing_follows(run: Run) -> bool:
    """Whether nobody has more to say in this turn."""
    agent = run.agent
    if not agent.inbox:
        await run.foreign(lambda: agent.ctx.serial(AGENT_TURN_STOPPING, TurnStopping(agent, run.turn, run.signal)))
    return not agent.inbox


# -- the end -----------------------------------------------------------------------------------------------------------


def _failed(run: Run, error: BaseException) -> TurnFinished:
    """How a turn ends that something was raised in. What follows from a cancellation is no error."""
    if run.signal.cancelled:
        return run.finished("aborted", run.signal.reason or "")
    told = run.guarded(error)
    return run.finished("error", in_words(told), told)


async def _closed(run: Run, end: TurnFinished) -> TurnFinished:
    """Log the end, and wait until it is durable; where that fails, the end that is given back says so."""
    if end.error is not None:
        _report(run, end.error)
    try:
        end = _logged(run, end)
        await run.session.flush()
    except Exception as error:  # of the session, or its store
        if end.error is not None:
            end.error.add_note(f"afterwards also: {type(error).__name__}: {error}")
            return end
        if run.signal.cancelled:
            return replace(end, error=error)
        _report(run, error)
        return run.finished("error", in_words(error), error)
    return end


def _logged(run: Run, end: TurnFinished) -> TurnFinished:
    """Log the end; where the log cannot hold it, an end that says so, for no session may be left with an open turn."""
    code = None if end.error is None else code_of(end.error)
    try:
        run.session.append(TurnEnd(run.turn, end.reason, end.detail, code))
    except EventRefusedError as refused:
        run.session.append(TurnEnd(run.turn, "error", in_words(refused), code_of(refused)))
        if end.error is not None:
            end.error.add_note(f"its end could not be logged as it was: {refused}")
            return end
        _report(run, refused)
        return run.finished("error", in_words(refused), refused)
    return end


def _report(run: Run, error: BaseException) -> None:
    run.agent.ctx.emit(AGENT_ERROR, TurnFailed(run.agent, run.turn, run.step, error))
