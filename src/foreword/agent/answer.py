"""What arrives of an answer, and what an adapter may not have arrive.

Adapters are somebody else's code. What breaks their contract (`foreword.agent.models.adapter`) makes a failed attempt,
which says what it was: it must neither pass for an answer nor reach a log that could not hold it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from foreword.kernel.names import spellable
from foreword.prompt.text import described
from foreword.wire.chunks import Finish, ModelFailure, TextChunk, ToolCallChunk
from foreword.wire.messages import AssistantMessage, ToolCall
from foreword.wire.request import ModelConfig

__all__ = ["Answer"]


@dataclass(slots=True)
class Answer:
    """What arrives of an answer."""

    config: ModelConfig  # that was asked
    offered: tuple[str, ...] = ()  # the tools that the request had
    finish: Finish | None = None
    sent: float | None = None  # by the agent's clock
    first: float | None = None
    done: float | None = None
    fault: str = "the stream has ended without a finish"  # of the adapter, while there is no finish
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
            return Finish("error", failure=ModelFailure(self.fault, "malformed_response"))
        if self.finish.kind == "aborted":
            failure = ModelFailure("the adapter has aborted, though nobody cancelled the turn", "unknown")
            return Finish("error", self.finish.usage, failure, self.finish.raw_reason)
        return self.finish

    def message(self, *, with_calls: bool = True) -> AssistantMessage:
        """What was said, as a message."""
        calls = tuple(self._calls[index] for index in sorted(self._calls)) if with_calls else ()
        return AssistantMessage(self.text, calls)

    def take(self, chunk: object) -> bool:
        """Take in a further piece; False if the adapter may not give it, and nothing more is to be read."""
        fault = _fault_after_finish(chunk) if self.finish is not None else _fault_of(chunk)
        if fault:
            self.blame(fault)
            return False
        match chunk:
            case TextChunk(text):
                self._texts.append(text)
            case ToolCallChunk(index, id, name, arguments):
                before = self._calls.get(index)
                self._calls[index] = ToolCall(id, name, arguments if before is None else before.arguments + arguments)
            case Finish():
                self.finish = chunk
            case _:
                raise AssertionError("other pieces are at fault")
        return True

    def blame(self, fault: str) -> None:
        """Have it end as the adapter's fault, whatever the adapter says about its end."""
        self.fault, self.finish = fault, None


def _fault_after_finish(chunk: object) -> str:
    return f"the adapter gave {described(chunk)} after its Finish, which must be the last piece"


def _fault_of(chunk: object) -> str:
    """What is wrong with a piece; empty for nothing."""
    match chunk:
        case TextChunk(text):
            return _fault_of_texts(chunk, text)
        case ToolCallChunk(index, id, name, arguments):
            if type(index) is not int:
                return f"the adapter gave a ToolCallChunk whose index is {described(index)}, no int"
            return _fault_of_texts(chunk, id, name, arguments)
        case Finish("error", _, None):
            return 'the adapter gave a Finish("error") without the failure'
        case Finish(kind, _, failure) if kind != "error" and failure is not None:
            return f'the adapter gave a Finish("{kind}") with a failure, which only an "error" has'
        case Finish():
            return ""
        case _:
            return f"the adapter gave {described(chunk)} as a piece of the answer; pieces are the classes of Chunk"


def _fault_of_texts(chunk: object, *texts: object) -> str:
    for text in texts:
        if type(text) is not str:
            return f"the adapter gave {described(chunk)} with {described(text)} where a plain str belongs"
        if not spellable(text):
            return f"the adapter gave {described(chunk)} with half of a surrogate pair, which no log can hold"
    return ""
