"""One attempt: the request is made, logged and durable, then sent; the answer is read, and how it ended is logged.

agent/request ─▶ header if it changed ─▶ request/attempt ─▶ flush ─▶ dispatch ─▶ request/outcome

Nothing is sent that is not in the log, and what is sent is just what the log says.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from foreword.agent.events import AGENT_REQUEST, RequestProposed
from foreword.agent.failure import in_words
from foreword.agent.models import ModelAdapters
from foreword.agent.stream import TextDelta
from foreword.errors import NoModelError, WrongAnswerError
from foreword.prompt.text import described
from foreword.session.events import (
    AssistantSaid,
    HeaderWritten,
    Note,
    RequestAttempted,
    RequestEnded,
    Timings,
)
from foreword.session.header import RequestHeader
from foreword.wire.chunks import Finish, ModelFailure, TextChunk, ToolCallChunk
from foreword.wire.messages import AssistantMessage, ToolCall
from foreword.wire.request import ModelConfig

if TYPE_CHECKING:
    from foreword.agent.models import ModelAdapter
    from foreword.agent.prepare import Prepared
    from foreword.agent.run import Run
    from foreword.prompt.origin import Origin
    from foreword.session.events import HeaderReason
    from foreword.wire.chunks import Chunk
    from foreword.wire.request import ModelRequest

__all__ = ["HELD_BACK", "Answer", "make_attempt"]

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
    answer = Answer(header.config)
    body = run.session.body_digest(adapter.name, adapter.version, adapter.body(request))
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
    today = RequestHeader.of(prepared.rendering, resolved)
    header = run.session.resumption.header(today)
    if header is not today:  # the recorded one goes out again
        adapter, _ = adapters.resolve(header.config)
        if not agent.has_written_header:
            run.session.append(Note(HELD_BACK, list(today.differs_in(header))))
    return adapter, header


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


@dataclass(slots=True)
class Answer:
    """What arrives of an answer."""

    config: ModelConfig  # that was asked
    finish: Finish | None = None
    sent: float | None = None  # by the agent's clock
    first: float | None = None
    done: float | None = None
    _texts: list[str] = field(default_factory=list[str])
    _calls: dict[int, ToolCall] = field(default_factory=dict[int, ToolCall])

    @property
    def text(self) -> str:
        """What was said."""
        return "".join(self._texts)

    @property
    def ended(self) -> Finish:
        """How it ended. An adapter that says nothing about that is at fault; so is one that aborts by itself."""
        if self.finish is None:
            return Finish("error", failure=ModelFailure("the stream has ended without a finish", "malformed_response"))
        if self.finish.kind == "aborted":
            failure = ModelFailure("the adapter has aborted, though nobody cancelled the turn", "unknown")
            return Finish("error", self.finish.usage, failure, self.finish.raw_reason)
        return self.finish

    def message(self, *, with_calls: bool = True) -> AssistantMessage:
        """What was said, as a message."""
        calls = tuple(self._calls[index] for index in sorted(self._calls)) if with_calls else ()
        return AssistantMessage(self.text, calls)

    def take(self, chunk: Chunk) -> None:
        """Take in a further piece."""
        match chunk:
            case TextChunk(text):
                self._texts.append(text)
            case ToolCallChunk(index, id, name, arguments):
                before = self._calls.get(index)
                self._calls[index] = ToolCall(id, name, arguments if before is None else before.arguments + arguments)
            case Finish():
                self.finish = chunk


async def _read(run: Run, adapter: ModelAdapter, request: ModelRequest, number: int, answer: Answer) -> None:
    """Send the request, and read the answer to its end."""
    now = run.agent.terms.clock.now
    answer.sent = now()
    stream: Any = adapter.stream(request, run.signal)
    try:
        async with aclosing(stream) as chunks:
            async for chunk in chunks:
                if answer.first is None:
                    answer.first = now()
                answer.take(chunk)
                if isinstance(chunk, TextChunk):
                    run.tell(TextDelta(run.step, number, chunk.text))
    finally:
        answer.done = now()


# -- how it ended ------------------------------------------------------------------------------------------------------


def _cut_off(run: Run, error: BaseException) -> Finish:
    """The outcome of an attempt that never came to its finish."""
    if run.signal.cancelled:
        return Finish("aborted", raw_reason=run.signal.reason or "")
    return Finish("error", failure=ModelFailure(in_words(run.guarded(error)), "unknown"))


def _log_outcome(run: Run, number: int, answer: Answer, finish: Finish) -> None:
    timings = None
    if answer.sent is not None and answer.done is not None:
        first = None if answer.first is None else _milliseconds(answer.first - answer.sent)
        timings = Timings(_milliseconds(answer.done - answer.sent), first)
    ended = RequestEnded(run.turn, run.step, number, finish.kind, finish.usage, finish.failure, timings)
    run.session.append(ended)


def _log_interrupted(run: Run, answer: Answer) -> None:
    """Of an answer that was cut by a cancellation, the text stays; the tools that it might have wanted do not."""
    if answer.text.strip():
        run.text = answer.text
        run.session.append(AssistantSaid(run.turn, run.step, answer.message(with_calls=False), interrupted=True))


def _milliseconds(seconds: float) -> int:
    return max(round(seconds * 1000), 0)
