"""A step, on one screen: enter it, ask the model until it answers, run the tools it wants.

prepare ─▶ step/start ─▶ messages ─▶ attempt (again while it fails and somebody asks for that) ─▶ calls ─▶ step/end
"""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Literal, TypeAlias

from foreword.agent.attempt import make_attempt
from foreword.agent.calls import run_calls, sensitive_calls
from foreword.agent.events import AGENT_REQUEST_ERROR, AttemptFailed, Retry
from foreword.agent.stream import RetryScheduled, StepFinished, StepStarted
from foreword.errors import ModelFailedError, WrongAnswerError
from foreword.prompt.text import described
from foreword.session.events import AssistantSaid, StepEnd, StepStart
from foreword.session.header import RequestHeader
from foreword.session.trace import step_trace
from foreword.wire.request import ModelConfig

if TYPE_CHECKING:
    from foreword.agent.answer import Answer
    from foreword.agent.prepare import Prepared
    from foreword.agent.run import Run
    from foreword.session.events import UserSaid
    from foreword.session.trace import StepTrace
    from foreword.wire.chunks import ModelFailure

__all__ = ["Ending", "take_step"]

Ending: TypeAlias = Literal["completed", "max-tokens"]

_ANY = ModelConfig("", "")  # for a header of which only the prompt is looked at


async def take_step(run: Run, prepared: Prepared, messages: tuple[UserSaid, ...]) -> Ending | None:
    """Take a step that was prepared; None if another one has to follow, with what the tools answered."""
    session = run.session
    session.append(StepStart(run.turn, run.step + 1, _trace(run, prepared)))
    run.step += 1
    try:
        for said in messages:
            session.append(said)
        run.tell(StepStarted(run.step))
        answer = await _ask(run, prepared)
        cut = answer.ended.kind == "max-tokens"
        message = answer.message(with_calls=not cut)  # a call that was cut is no call
        session.append(AssistantSaid(run.turn, run.step, message, sensitive=sensitive_calls(run, prepared, message)))
        run.text = answer.text
        if not message.tool_calls:
            return "max-tokens" if cut else "completed"
        await run_calls(run, prepared, answer.offered, message.tool_calls)
        return None
    finally:
        session.append(StepEnd(run.turn, run.step))
        run.tell(StepFinished(run.step))


def _trace(run: Run, prepared: Prepared) -> StepTrace | None:
    """Who put what into the prompt: for a recorded one that is sent again, who did when it was recorded.

    Raises:
        HeaderDriftError: the session was resumed, its recorded prompt is not today's, and that was to be an error.
    """
    session, rendering = run.session, prepared.rendering
    today = RequestHeader.of(rendering, _ANY)
    if session.resumption.prompt(today).sections is today.sections:
        return step_trace(rendering, session.trace)
    return session.resumption.trace(rendering)


async def _ask(run: Run, prepared: Prepared) -> Answer:
    """Ask the model: one attempt, and another one as long as it fails and somebody asks for that."""
    for attempt in count(1):
        answer = await make_attempt(run, prepared, attempt)
        failure = answer.ended.failure
        if failure is None:
            return answer
        retry = await _retry(run, attempt, answer, failure)
        if retry is None:
            raise _failed(answer, failure)
        run.tell(RetryScheduled(run.step, attempt, retry.after, failure))
        await run.foreign(partial(run.agent.terms.clock.sleep, retry.after))
    raise AssertionError("counting has no end")


def _failed(answer: Answer, failure: ModelFailure) -> ModelFailedError:
    model = str(answer.config)
    return ModelFailedError(
        model, failure.message, failure.code, failure.status, failure.transient, failure.retry_after
    )


async def _retry(run: Run, attempt: int, answer: Answer, failure: ModelFailure) -> Retry | None:
    """What the listeners say, around what the agent's policy says."""
    default = run.agent.terms.retry.decide(attempt, failure)
    failed = AttemptFailed(run.agent, run.turn, run.step, attempt, answer.config, failure, run.signal)
    retry = await run.ask(AGENT_REQUEST_ERROR, failed, default)
    if retry is None or isinstance(retry, Retry):
        return retry
    raise WrongAnswerError(AGENT_REQUEST_ERROR.name, "Retry or None", described(retry))
