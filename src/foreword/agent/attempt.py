"""One attempt: the request is made, logged and durable, then sent; the answer is read, and how it ended is logged.

agent/request ─▶ header if it changed ─▶ request/attempt ─▶ flush ─▶ dispatch ─▶ request/outcome

Nothing is sent that is not in the log, and what is sent is just what the log says.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from foreword.agent.answer import Answer
from foreword.agent.events import AGENT_REQUEST, RequestProposed
from foreword.agent.failure import in_words
from foreword.agent.models import ModelAdapters
from foreword.agent.stream import TextDelta
from foreword.errors import EventRefusedError, NoModelError, WrongAnswerError
from foreword.prompt.text import described, is_unawaited
from foreword.session.events import (
    AssistantSaid,
    HeaderWritten,
    Note,
    RequestAttempted,
    RequestEnded,
    Timings,
)
from foreword.session.header import RequestHeader
from foreword.wire.chunks import Finish, ModelFailure, TextChunk
from foreword.wire.request import ModelConfig

if TYPE_CHECKING:
    from foreword.agent.models import ModelAdapter
    from foreword.agent.prepare import Prepared
    from foreword.agent.run import Run
    from foreword.prompt.origin import Origin
    from foreword.session.events import HeaderReason
    from foreword.wire.request import ModelRequest

__all__ = ["HELD_BACK", "make_attempt"]

HELD_BACK: Final = "header/held-back"
"""The name of the note which says in what parts today's header differs from the recorded one that is sent instead."""


async def make_attempt(run: Run, prepared: Prepared, number: int) -> Answer:
    """Make one attempt of a step.

    Returns:
        What the model said, and how that ended; a failure of the provider is one way.

    Raises:
        TurnCancelled: what had arrived until then is in the log.
        Exception: nothing could be sent, or the adapter is at fault.
    """
    adapter, header = await _resolved(run, prepared, number)
    _write_header(run, header)
    request = replace(header.request(run.session.messages), origins=_origins(prepared, header))
    answer = Answer(header.config, tuple(tool.name for tool in header.tools))
    body = run.session.body_digest(adapter.name, adapter.version, _body(adapter, request))
    run.session.append(RequestAttempted(run.turn, run.step, number, body))
    try:
        await run.session.flush()
        await run.foreign(lambda: _read(run, adapter, request, number, answer))
    except BaseException as error:
        _log_outcome(run, number, answer, answer.finish or _cut_off(run, error))
        if run.signal.cancelled:
            _log_interrupted(run, answer)
        raise
    _log_outcome(run, number, answer, answer.ended)
    return answer


async def _resolved(run: Run, prepared: Prepared, number: int) -> tuple[ModelAdapter, RequestHeader]:
    """Which adapter is asked, and with what."""
    agent = run.agent
    seed = agent.model or ModelConfig("", "")
    proposed = RequestProposed(agent, run.turn, run.step, number, prepared.context, run.signal)
    config = await run.ask(AGENT_REQUEST, proposed, seed)
    if not isinstance(config, ModelConfig):
        raise WrongAnswerError(AGENT_REQUEST.name, "a ModelConfig", described(config))
    if not config.provider or not config.model:
        raise NoModelError(agent.name)
    adapters = agent.ctx.require(ModelAdapters)
    adapter, resolved = adapters.resolve(config)
    if not isinstance(cast("object", resolved), ModelConfig):
        raise _misbehaved(adapter, "resolve", resolved, "a ModelConfig")
    today = RequestHeader.of(prepared.rendering, resolved)
    header = run.session.resumption.header(today)
    if header is not today:  # the recorded one goes out again
        adapter, _ = adapters.resolve(header.config)
        if not agent.has_written_header:
            run.session.append(Note(HELD_BACK, list(today.differs_in(header))))
    return adapter, header


def _body(adapter: ModelAdapter, request: ModelRequest) -> bytes:
    body = cast("object", adapter.body(request))
    if not isinstance(body, bytes):
        raise _misbehaved(adapter, "body", body, "bytes")
    return body


def _misbehaved(adapter: ModelAdapter, method: str, given: object, expected: str) -> TypeError:
    """An adapter gave what its contract does not allow."""
    return TypeError(f'the model adapter "{adapter.name}" is broken: {method} gave {described(given)}, not {expected}')


def _origins(prepared: Prepared, header: RequestHeader) -> tuple[Origin | None, ...]:
    """Who brought each tool of a header; of one that is only recorded nobody can say."""
    rendering = prepared.rendering
    if header.tools is rendering.tools:
        return rendering.tool_origins
    brought = {tool.name: origin for tool, origin in zip(rendering.tools, rendering.tool_origins, strict=True)}
    return tuple(brought.get(tool.name) for tool in header.tools)


def _write_header(run: Run, header: RequestHeader) -> None:
    """Log the header if that is due."""
    agent, last = run.agent, run.session.header
    reason: HeaderReason
    if last is None:
        reason = "initial"
    elif not agent.has_written_header:
        reason = "resume"
    elif last != header:
        reason = "change"
    else:
        return
    run.session.append(HeaderWritten(header, reason))
    agent.has_written_header = True


# -- the answer --------------------------------------------------------------------------------------------------------


async def _read(run: Run, adapter: ModelAdapter, request: ModelRequest, number: int, answer: Answer) -> None:
    """Send the request, and read the answer to its end."""
    now = run.agent.terms.clock.now
    answer.sent = now()
    stream = _opened(run, adapter, request)
    try:
        async with aclosing(stream) if hasattr(stream, "aclose") else nullcontext(stream) as chunks:
            async for chunk in chunks:
                if answer.first is None:
                    answer.first = now()
                if not answer.take(chunk):
                    break
                if isinstance(chunk, TextChunk):
                    run.tell(TextDelta(run.step, number, chunk.text))
    finally:
        answer.done = now()


def _opened(run: Run, adapter: ModelAdapter, request: ModelRequest) -> Any:
    """The stream of an answer, which need not be a generator."""
    stream = cast("object", adapter.stream(request, run.signal))
    if isinstance(stream, AsyncIterator):
        return cast("Any", stream)
    is_unawaited(stream)  # a coroutine is closed, so that it is not complained about later
    raise _misbehaved(adapter, "stream", stream, "an async iterator; have it yield the pieces")


# -- how it ended ------------------------------------------------------------------------------------------------------


def _cut_off(run: Run, error: BaseException) -> Finish:
    """The outcome of an attempt that never came to its finish."""
    if run.signal.cancelled:
        return Finish("aborted", raw_reason=run.signal.reason or "")
    return Finish("error", failure=ModelFailure(in_words(run.guarded(error)), "unknown"))


def _log_outcome(run: Run, number: int, answer: Answer, finish: Finish) -> None:
    """Log how it ended; where the log cannot hold what the adapter said about that, that it could not."""
    try:
        run.session.append(_outcome(run, number, answer, finish))
    except EventRefusedError as refused:  # without an outcome neither step nor turn could end
        answer.blame(f"the adapter gave a Finish that no log can hold: {refused.why}")
        run.session.append(_outcome(run, number, answer, answer.ended))


def _outcome(run: Run, number: int, answer: Answer, finish: Finish) -> RequestEnded:
    timings = None
    if answer.sent is not None and answer.done is not None:
        first = None if answer.first is None else _milliseconds(answer.first - answer.sent)
        timings = Timings(_milliseconds(answer.done - answer.sent), first)
    return RequestEnded(run.turn, run.step, number, finish.kind, finish.usage, finish.failure, timings)


def _log_interrupted(run: Run, answer: Answer) -> None:
    """Of an answer that was cut by a cancellation, the text stays; the tools that it might have wanted do not."""
    if answer.text.strip():
        run.text = answer.text
        run.session.append(AssistantSaid(run.turn, run.step, answer.message(with_calls=False), interrupted=True))


def _milliseconds(seconds: float) -> int:
    return max(round(seconds * 1000), 0)
