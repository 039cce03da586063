"""The scripted model: a stand-in for a real one, with the manners of a real one."""

from contextlib import aclosing
from threading import Thread
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword import CancelToken
from foreword.agent.models import Chunk, Finish, ModelAdapter, ModelFailure, TextChunk, ToolCallChunk, Usage
from foreword.errors import ScriptEndedError
from foreword.testing import Gate, Reply, ScriptedModel, call_tools
from foreword.wire.messages import ToolCall, UserMessage
from foreword.wire.request import ModelConfig, ModelRequest


def asked(what: str) -> ModelRequest:
    return ModelRequest("", (), (UserMessage(what),), ModelConfig("scripted", "any"))


async def answer(model: ModelAdapter, what: str = "?", signal: CancelToken | None = None) -> list[Chunk]:
    return [chunk async for chunk in model.stream(asked(what), signal)]


pytestmark = pytest.mark.anyio


async def test_a_script_is_played_in_order() -> None:
    """Each step answers one request: texts word by word, calls in pieces, failures as facts."""
    failure = ModelFailure("busy", "overloaded", 529, transient=True, retry_after=1.0)
    model = ScriptedModel(["It is late.", call_tools(look_up={"order": 4711}, text="Wait."), failure])
    assert await answer(model) == [
        TextChunk("It"),
        TextChunk(" is"),
        TextChunk(" late."),
        Finish("stop", raw_reason="stop"),
    ]
    assert await answer(model) == [
        TextChunk("Wait."),
        ToolCallChunk(0, "call_1", "look_up", '{"order'),
        ToolCallChunk(0, "call_1", "look_up", '": 4711}'),
        Finish("tool-calls", raw_reason="tool-calls"),
    ]
    assert model.remaining == 1
    assert await answer(model) == [Finish("error", failure=failure, raw_reason="overloaded")]
    assert model.remaining == 0


async def test_a_reply_in_full() -> None:
    """A reply says all: pieces, calls that are no JSON, another end, and what it cost."""
    reply = Reply(("a", "", "b"), (ToolCall("c", "t", "{"),), finish="max-tokens", usage=Usage(7, 2, 5))
    assert await answer(ScriptedModel([reply])) == [
        TextChunk("a"),
        TextChunk("b"),
        ToolCallChunk(0, "c", "t", ""),
        ToolCallChunk(0, "c", "t", "{"),
        Finish("max-tokens", Usage(7, 2, 5), raw_reason="max-tokens"),
    ]
    failed = Reply("half", usage=Usage(7, 1), failure=ModelFailure("cut", "stream_cut"))
    assert (await answer(ScriptedModel([failed])))[-1] == Finish("error", Usage(7, 1), failed.failure, "stream_cut")


async def test_calls_are_numbered() -> None:
    """Calls without an id get one that is new in the model's life, so the same tool can be called again and again."""
    model = ScriptedModel([call_tools(clock={}, look_up={}), call_tools(ToolCall("mine", "t", ""), clock={})])
    ids = [[each.id for each in await answer(model) if isinstance(each, ToolCallChunk)] for _ in range(2)]
    assert ids == [["call_1", "call_1", "call_2", "call_2"], ["mine", "mine", "call_3", "call_3"]]


async def test_it_keeps_what_it_was_asked() -> None:
    """Every request is kept as canonical bytes, which are also the body."""
    model = ScriptedModel(["1", "2"])
    await answer(model, "first")
    await answer(model, "second")
    assert model.requests == [asked("first").canonical(), asked("second").canonical()]
    assert model.body(asked("first")) == asked("first").canonical()
    assert isinstance(model, ModelAdapter)
    assert model.resolve(ModelConfig.parse("scripted:any")) == ModelConfig("scripted", "any")
    assert ScriptedModel(name="openai").name == "openai"


async def test_a_step_can_look_at_the_request() -> None:
    """A step may be a function of the request, sync or async; a function in place of the script answers without end."""

    def echo(request: ModelRequest) -> str:
        last = request.messages[-1]
        assert isinstance(last, UserMessage)
        return last.text

    async def slow_echo(request: ModelRequest) -> Reply:
        await anyio.lowlevel.checkpoint()
        return Reply((echo(request),))

    model = ScriptedModel([echo, slow_echo])
    assert (await answer(model, "a"))[0] == TextChunk("a")
    assert (await answer(model, "b"))[0] == TextChunk("b")
    endless = ScriptedModel(echo)
    for what in "abc":
        assert (await answer(endless, what))[0] == TextChunk(what)
    assert len(endless.requests) == 3


async def test_a_script_that_ends() -> None:
    """A request beyond the script is an error that says how long it is; it is not kept as a request."""
    model = ScriptedModel("One answer.")
    await answer(model)
    with pytest.raises(ScriptEndedError, match="asked for answer 2, but its script has 1"):
        await answer(model)
    assert len(model.requests) == 1


async def test_a_step_that_is_none() -> None:
    """A function that gives something else is told what to give."""
    wrong: Any = ScriptedModel([lambda request: None])  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="gives NoneType; give a text, a Reply or a ModelFailure"):
        await answer(wrong)


async def test_a_gate_holds_an_answer() -> None:
    """An answer stops at a gate until the gate is opened, which is known from outside."""
    gate = Gate()
    model = ScriptedModel([Reply(("a", gate, "b"))])
    got: list[Chunk] = []

    async def read() -> None:
        async for chunk in model.stream(asked("?")):
            got.append(chunk)  # noqa: PERF401 - one by one, since the test looks on

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await gate.reached()
        await anyio.wait_all_tasks_blocked()
        assert got == [TextChunk("a")]
        gate.open()
    assert got == [TextChunk("a"), TextChunk("b"), Finish("stop", raw_reason="stop")]


async def test_a_gate_that_is_open_already() -> None:
    """A gate that was opened before is no obstacle."""
    gate = Gate()
    gate.open()
    assert len(await answer(ScriptedModel([Reply((gate, "b"))]))) == 2


async def test_cancelling_at_a_gate() -> None:
    """A token that is cancelled in another thread ends an answer that waits at a gate."""
    gate, signal = Gate(), CancelToken()
    model = ScriptedModel([Reply(("a", gate, "b"))])

    async def cancel() -> None:
        await gate.reached()
        Thread(target=signal.cancel, args=("enough",)).start()

    async with anyio.create_task_group() as group:
        group.start_soon(cancel)
        assert await answer(model, signal=signal) == [TextChunk("a"), Finish("aborted", raw_reason="enough")]


async def test_cancelling_between_chunks() -> None:
    """A token that is cancelled between two chunks ends the answer at the next."""
    signal = CancelToken()
    async with aclosing(ScriptedModel(["a b c"]).stream(asked("?"), signal)) as stream:
        assert await anext(stream) == TextChunk("a")
        signal.cancel()
        assert [chunk async for chunk in stream] == [Finish("aborted", raw_reason="user")]


async def test_cancelling_the_task() -> None:
    """Cancelling the task that reads goes through as a cancellation."""
    model = ScriptedModel([Reply((Gate(),))])
    with anyio.CancelScope() as scope:
        scope.cancel()
        await answer(model)
    assert scope.cancelled_caught


@given(text=st.text(), arguments=st.text())
def test_nothing_is_lost(text: str, arguments: str) -> None:
    """The chunks make up the text and the arguments, and each but a call's is not empty."""

    async def chunks() -> list[Chunk]:
        return await answer(ScriptedModel([Reply(text, (ToolCall("c", "t", arguments),))]))

    got = anyio.run(chunks)
    assert "".join(each.text for each in got if isinstance(each, TextChunk)) == text
    assert all(each.text for each in got if isinstance(each, TextChunk))
    assert "".join(each.arguments for each in got if isinstance(each, ToolCallChunk)) == arguments
