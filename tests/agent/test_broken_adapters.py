"""Adapters are somebody else's code: one that breaks its contract fails the turn by name, and the next turn works."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.agent.support import kinds, logged, stage

from foreword import Agent, ModelAdapters
from foreword.errors import ModelFailedError
from foreword.session import AssistantSaid, RequestEnded
from foreword.testing import Reply
from foreword.wire.chunks import Finish, ModelFailure, TextChunk, ToolCallChunk, Usage

pytestmark = pytest.mark.anyio

FINE = (TextChunk("Fine."), Finish("stop"))


class Iterator:
    """Gives some pieces, and is an async iterator without anything more."""

    def __init__(self, *pieces: Any) -> None:
        self.pieces = list(pieces)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        if not self.pieces:
            raise StopAsyncIteration
        return self.pieces.pop(0)


class Broken:
    """An adapter whose methods give what a test wants, until it is mended."""

    name, version = "broken", "1"

    def __init__(self, **gives: Any) -> None:
        self.gives = gives

    def resolve(self, config: Any) -> Any:
        return self.gives.get("resolve", config)

    def body(self, request: Any) -> Any:
        return self.gives.get("body", request.canonical())

    def stream(self, request: Any, signal: Any = None) -> Any:
        made = self.gives.get("stream", lambda: Iterator(*FINE))
        return made()


async def fails(adapter: Broken, error: type[Exception], match: str) -> Agent:
    """A turn fails so, the log of it is closed, and with a mended adapter the next one works."""
    async with stage() as play:
        play.ctx.require(ModelAdapters).register(adapter)
        agent = await play.agent(model="broken:m")
        with pytest.raises(error, match=match):
            await agent.run("Hi")
        assert kinds(agent)[-2:] == ["StepEnd", "TurnEnd"]
        assert not logged(agent, AssistantSaid)
        adapter.gives = {}
        assert (await agent.run("Hi again")).text == "Fine."
    return agent


FAILURE = ModelFailure("overloaded", "overloaded")


@pytest.mark.parametrize(
    "finish",
    [
        Finish("bogus"),  # type: ignore[arg-type]
        Finish("stop", Usage(-1, 2)),
        Finish("stop", Usage(1.5, 2)),  # type: ignore[arg-type]
        Finish("stop", {"input": 1}),  # type: ignore[arg-type]
        Finish("error", failure=ModelFailure("bad \ud800", "timeout")),
        Finish("error", failure=ModelFailure("bad", "timeout", status="500")),  # type: ignore[arg-type]
        Finish("error", failure=ModelFailure("bad", "timeout", retry_after=float("nan"))),
    ],
    ids=["kind", "negative", "float", "dict", "surrogate", "status", "nan"],
)
async def test_a_finish_that_no_log_can_hold(finish: Finish) -> None:
    """The attempt has an outcome all the same: that the adapter gave such a thing."""
    told = "broken:m failed .malformed_response.: the adapter gave a Finish that no log can hold: ."
    agent = await fails(Broken(stream=lambda: Iterator(TextChunk("Hi"), finish)), ModelFailedError, told)
    ended = logged(agent, RequestEnded)[0]
    assert (ended.finish, ended.usage, ended.failure.code) == ("error", None, "malformed_response")


@pytest.mark.parametrize(
    ("pieces", "match"),
    [
        (("Hi", Finish("stop")), "gave a str as a piece"),
        ((None, Finish("stop")), "gave None as a piece"),
        ((TextChunk(5), Finish("stop")), "a TextChunk with an int"),  # type: ignore[arg-type]
        ((TextChunk("a\ud800"), Finish("stop")), "half of a surrogate pair"),
        ((ToolCallChunk(0, "1", "t", {}), Finish("tool-calls")), "a ToolCallChunk with a dict"),  # type: ignore[arg-type]
        ((ToolCallChunk("0", "1", "t", ""), Finish("tool-calls")), "whose index is a str"),  # type: ignore[arg-type]
        ((TextChunk("Hi"), Finish("error")), "without the failure"),
        ((TextChunk("Hi"), Finish("stop", failure=FAILURE)), "with a failure, which only"),
        ((TextChunk("Hi"), Finish("stop"), Finish("max-tokens")), "gave a Finish after its Finish"),
        ((TextChunk("Hi"), Finish("stop"), TextChunk("!")), "gave a TextChunk after its Finish"),
        ((TextChunk("Hi"),), "ended without a finish"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
async def test_pieces_that_are_none(pieces: tuple[Any, ...], match: str) -> None:
    """They are neither dropped nor taken for an answer: the attempt has failed, and the log says by whose fault."""
    agent = await fails(Broken(stream=lambda: Iterator(*pieces)), ModelFailedError, match)
    assert logged(agent, RequestEnded)[0].failure.code == "malformed_response"


async def _a_list() -> list[Any]:
    return list(FINE)


@pytest.mark.parametrize(
    ("method", "gives", "match"),
    [
        ("resolve", None, "resolve gave None, not a ModelConfig"),
        ("body", "text", "body gave a str, not bytes"),
        ("stream", _a_list, "stream gave a coroutine, not an async iterator"),
        ("stream", lambda: list(FINE), "stream gave a list, not an async iterator"),
    ],
    ids=["resolve", "body", "coroutine", "list"],
)
async def test_methods_that_give_something_else(method: str, gives: Any, match: str) -> None:
    """The error names the adapter, the method, and what it must give."""
    await fails(Broken(**{method: gives}), TypeError, f'the model adapter "broken" is broken: {match}')


async def test_a_stream_that_cannot_be_closed() -> None:
    """An async iterator will do."""
    async with stage() as play:
        play.ctx.require(ModelAdapters).register(Broken())
        agent = await play.agent(model="broken:m")
        assert (await agent.run("Hi")).text == "Fine."


async def test_an_answer_is_not_read_beyond_a_fault() -> None:
    """Whatever would follow is left unread, and the stream is closed."""
    closed: list[bool] = []

    async def endless() -> Any:
        try:
            while True:
                yield None
        finally:
            closed.append(True)

    await fails(Broken(stream=endless), ModelFailedError, "gave None")
    assert closed == [True]


async def test_a_scripted_failure_with_half_a_surrogate_pair() -> None:
    """Likewise of a model that a test wrote."""
    async with stage(Reply(failure=ModelFailure("bad \ud800", "timeout")), "Fine.") as play:
        agent = await play.agent()
        with pytest.raises(ModelFailedError, match="no log can hold"):
            await agent.run("Hi")
        assert (await agent.run("Hi again")).reason == "completed"
