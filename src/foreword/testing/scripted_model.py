"""`ScriptedModel`: a model that answers by script, for tests, demos and documents. It needs no key and no network.

    model = ScriptedModel(["Let me look.", call_tools(lookup={"order": 4711}), "It is late because of the strike."])
    adapters.register(model)                       # the provider "scripted"
    ...
    assert len(model.requests) == 3                # what the model got, as canonical bytes

Each step of the script answers one request: a text, a `Reply`, a `ModelFailure`, or a function of the request that
gives one of those. A `Gate` in a reply's text stops the answer there until the test opens it.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias, cast

from foreword.errors import ScriptEndedError
from foreword.prompt.cancelling import cancelled_by
from foreword.wire.chunks import Chunk, Finish, FinishKind, ModelFailure, TextChunk, ToolCallChunk, Usage
from foreword.wire.messages import ToolCall

if TYPE_CHECKING:
    import anyio

    from foreword.jsonvalue import JsonValue
    from foreword.prompt.context import CancelToken
    from foreword.wire.request import ModelConfig, ModelRequest

__all__ = ["Gate", "Reply", "ScriptedModel", "Step", "call_tools"]


class Gate:
    """A place where an answer stops until it is opened. It is opened once, and stays open.

    A gate belongs to one event loop; open it from there.
    """

    __slots__ = ("_opened", "_reached")

    def __init__(self) -> None:
        self._opened: anyio.Event | None = None
        self._reached: anyio.Event | None = None

    def open(self) -> None:
        """Let the answer go on."""
        self._events()[0].set()

    async def reached(self) -> None:
        """Wait until an answer stops here (or did)."""
        await self._events()[1].wait()

    async def _pass(self, signal: CancelToken | None) -> None:
        """Wait until it is open, or the signal is cancelled."""
        opened, reached = self._events()
        reached.set()
        with cancelled_by(signal):
            await opened.wait()

    def _events(self) -> tuple[anyio.Event, anyio.Event]:
        import anyio

        if self._opened is None or self._reached is None:  # made late: a gate may be made before there is a loop
            self._opened, self._reached = anyio.Event(), anyio.Event()
        return self._opened, self._reached


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer.

    Attributes:
        text: what the model says; or pieces of it, each of which arrives as one chunk, with `Gate` s between them. A
            plain string arrives word by word.
        calls: the tools that it wants called. One with an empty id gets the model's next: ``call_1``, ``call_2``, ….
        finish: how it ends; unless given, ``"tool-calls"`` if there are calls, else ``"stop"``.
        usage: what it cost.
        failure: why it ends in ``"error"``; after the text and the calls.
    """

    text: str | tuple[str | Gate, ...] = ""
    calls: tuple[ToolCall, ...] = ()
    finish: FinishKind | None = None
    usage: Usage | None = None
    failure: ModelFailure | None = None


Answer: TypeAlias = str | Reply | ModelFailure
Step: TypeAlias = "Answer | Callable[[ModelRequest], Answer] | Callable[[ModelRequest], Awaitable[Answer]]"
"""What answers one request."""


def call_tools(*wanted: ToolCall, text: str = "", usage: Usage | None = None, **tools: JsonValue) -> Reply:
    """A reply that calls tools: ``call_tools(lookup={"order": 4711}, clock={})``.

    Args:
        wanted: whole calls, where a tool is called twice, or with arguments that are no JSON.
        text: what the model says before it.
        usage: what it cost.
        tools: the arguments by the name of the tool.
    """
    made = (ToolCall("", name, json.dumps(value, ensure_ascii=False)) for name, value in tools.items())
    return Reply(text, (*wanted, *made), usage=usage)


class ScriptedModel:
    """A model adapter that answers by script, and keeps what it was asked.

    Args:
        steps: what answers the first request, the second, …; requests that run together take them in the order in which
            they are sent. A single function answers all requests, without end.
        name: the provider under which it is registered.

    Attributes:
        requests: the requests that it got, as canonical bytes, in their order.
        name: see above.
        version: of the body's format, which is the canonical one.
    """

    def __init__(
        self,
        steps: Iterable[Step] | Callable[[ModelRequest], Answer] | Callable[[ModelRequest], Awaitable[Answer]] = (),
        *,
        name: str = "scripted",
    ) -> None:
        self.name = name
        self.version = "1"
        self.requests: list[bytes] = []
        self._answers_all = steps if callable(steps) else None
        self._steps: list[Step] = [] if callable(steps) else [steps] if isinstance(steps, str) else list(steps)
        self._numbers = count(1)  # of the calls
        self._lock = Lock()

    @property
    def remaining(self) -> int:
        """How many steps of the script were not asked for yet; 0 where a function answers all."""
        return max(len(self._steps) - len(self.requests), 0)

    def resolve(self, config: ModelConfig) -> ModelConfig:
        """The config as it is: a script takes any model and any settings."""
        return config

    def body(self, request: ModelRequest) -> bytes:
        """The request's canonical bytes."""
        return request.canonical()

    async def stream(self, request: ModelRequest, signal: CancelToken | None = None) -> AsyncGenerator[Chunk]:
        """Answer by the next step of the script.

        Raises:
            ScriptEndedError: there is no further step.
            Exception: what a function of the script raises.
        """
        step = self._next_step(request)
        reply = await _reply(step, request)
        calls = tuple(call if call.id else replace(call, id=f"call_{next(self._numbers)}") for call in reply.calls)
        async for chunk in _played(replace(reply, calls=calls), signal):
            yield chunk

    def _next_step(self, request: ModelRequest) -> Step:
        canonical = request.canonical()
        with self._lock:
            if self._answers_all is None and len(self.requests) >= len(self._steps):
                raise ScriptEndedError(self.name, len(self._steps))
            self.requests.append(canonical)
            return self._answers_all or self._steps[len(self.requests) - 1]

    def __repr__(self) -> str:
        script = "a function" if self._answers_all else f"{len(self._steps)} steps"
        return f"<ScriptedModel {self.name}: {script}, {len(self.requests)} requests>"


async def _reply(step: Step, request: ModelRequest) -> Reply:
    """What a step answers, as a reply."""
    answer = step(request) if callable(step) else step
    if isinstance(answer, Awaitable):
        answer = await answer
    if isinstance(answer, str):
        return Reply(answer)
    if isinstance(answer, ModelFailure):
        return Reply(failure=answer)
    if isinstance(answer, Reply):  # pyright: ignore[reportUnnecessaryIsInstance] - a script's function may forget it
        return answer
    raise TypeError(f"a step of a script gives {type(answer).__name__}; give a text, a Reply or a ModelFailure")


async def _played(reply: Reply, signal: CancelToken | None) -> AsyncGenerator[Chunk]:
    """A reply, piece by piece, until the signal is cancelled."""
    import anyio.lowlevel

    for piece in _pieces(reply):
        if isinstance(piece, Gate):
            await piece._pass(signal)  # pyright: ignore[reportPrivateUsage] - a gate is passed here only
        else:
            await anyio.lowlevel.checkpoint()  # as a real stream would: others run between two pieces
        if signal is not None and signal.reason is not None:
            yield Finish("aborted", raw_reason=signal.reason)
            return
        if not isinstance(piece, Gate):
            yield piece


def _pieces(reply: Reply) -> Iterator[Chunk | Gate]:
    """A reply as the chunks of a stream. Words and arguments are cut, since readers must cope with that."""
    for part in (
        cast("list[str]", re.findall(r"\s*\S+|\s+$", reply.text)) if isinstance(reply.text, str) else reply.text
    ):
        if part:
            yield part if isinstance(part, Gate) else TextChunk(part)
    for index, call in enumerate(reply.calls):
        middle = len(call.arguments) // 2
        yield ToolCallChunk(index, call.id, call.name, call.arguments[:middle])
        yield ToolCallChunk(index, call.id, call.name, call.arguments[middle:])
    if reply.failure is not None:
        yield Finish("error", reply.usage, reply.failure, reply.failure.code)
    else:
        kind = reply.finish or ("tool-calls" if reply.calls else "stop")
        yield Finish(kind, reply.usage, raw_reason=kind)
