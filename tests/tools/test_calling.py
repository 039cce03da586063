"""Calling tools: every outcome is a result; what takes too long, hangs or is cancelled included."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_serializer
from tests.concurrency.support import FAR, PATIENCE, cling, living_tasks, until
from tests.tools.support import OBJECT, Gate, names, registry, stub

from foreword import (
    AssembleContext,
    CancelToken,
    ContextKey,
    ModelRef,
    ScopeKey,
    SystemPrompt,
    ToolContext,
    ToolDefinition,
    ToolRegistry,
    ToolResult,
    freeze,
)

TENANT = ContextKey("tenant", str)
UNSURE = "whether it took effect is not known"


@pytest.fixture
def long_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """So long that a loaded machine wakes a thread, or a task, within it."""
    monkeypatch.setattr("foreword.prompt.asking.GRACE", PATIENCE)
    monkeypatch.setattr("foreword.tools.execute.GRACE", PATIENCE)


async def outcome(function: Any, *, max_result: int = 256 * 1024, **options: Any) -> ToolResult:
    """What comes of a tool that takes nothing."""
    _, tools = registry()
    tools.register(lambda arguments: None, name="other", parameters=OBJECT)
    tools.register(function, name="tool", parameters=OBJECT, max_result=max_result, **options)
    return await tools.call("tool", "{}")


# -- results -----------------------------------------------------------------------------------------------------------


class Model(BaseModel):
    day: date


@dataclass
class Record:
    pair: tuple[int, str]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "text", "value"),
    [
        ("text", "text", "text"),
        ("", "", ""),
        (None, "null", None),
        (True, "true", True),
        ({"b": [1, 2.5, None], "a": "ä"}, '{"b":[1,2.5,null],"a":"ä"}', {"b": [1, 2.5, None], "a": "ä"}),
        ((1, "x"), '[1,"x"]', [1, "x"]),
        pytest.param({"b", "a", "c"}, '["a","b","c"]', ["a", "b", "c"], id="set"),  # as text it differs in each process
        (Model(day=date(2026, 1, 2)), '{"day":"2026-01-02"}', {"day": "2026-01-02"}),
        ([Record((1, "x"))], '[{"pair":[1,"x"]}]', [{"pair": [1, "x"]}]),
        ({"at": date(2026, 1, 2)}, '{"at":"2026-01-02"}', {"at": "2026-01-02"}),
        (-0.0, "0.0", 0.0),
        ({"x": [-0.0]}, '{"x":[0.0]}', {"x": [0.0]}),
        (b"bytes", "bytes", "bytes"),
        (ToolResult("Said.", value={"a": 1}), "Said.", {"a": 1}),
    ],
    ids=repr,
)
async def test_what_a_tool_may_give(answer: object, text: str, value: object) -> None:
    """Text is told as it is, everything else as JSON; values are kept as frozen JSON beside it."""
    result = await outcome(lambda arguments: answer)
    assert result == ToolResult(text, value=value)  # type: ignore[arg-type]
    assert result.error is None


@pytest.mark.anyio
async def test_a_tool_may_say_that_it_failed() -> None:
    """A ToolResult comes out as the tool made it: an error, with a code of its own."""
    said = ToolResult("No such order.", is_error=True, code="NO_ORDER")
    assert await outcome(lambda arguments: said) == said


class Shown(str):
    """A string as template engines make them: it says more than it holds."""

    def __str__(self) -> str:
        return "shown"

    def __format__(self, spec: str) -> str:
        return "shown"


@pytest.mark.anyio
async def test_a_result_of_odd_strings() -> None:
    """Strings of other types become plain ones, of what they hold; a value is frozen as any other."""
    said = ToolResult(Shown("No."), is_error=True, code=Shown("NO_ORDER"), value={"a": [Shown("b")]})  # type: ignore[dict-item]
    result = await outcome(lambda arguments: said)
    assert result == ToolResult("No.", is_error=True, code="NO_ORDER", value={"a": ["b"]})  # type: ignore[dict-item]
    assert (type(result.text), type(result.code)) == (str, str)
    assert type(result.value) is type(freeze({}))


class Hostile(BaseModel):
    a: int = 1

    @field_serializer("a")
    def refuse(self, value: int) -> int:
        raise ZeroDivisionError("no")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (object(), "Unable to serialize"),
        (float("nan"), "is nan"),
        ({"a": [float("inf")]}, ".a[0] is inf"),
        ({"id": 2**60}, ".id is an integer beyond"),
        ({1: 2}, "has the key 1"),
        ("\ud800", "holds a lone surrogate"),
        (b"\xff", "utf"),
        ({"a": object()}, "Unable to serialize"),
        (ToolResult(5), "the text of its ToolResult is an int"),  # type: ignore[arg-type]
        (ToolResult("\ud800"), "half of a surrogate pair"),
        (ToolResult("a", code=5), "the code of its ToolResult is an int"),  # type: ignore[arg-type]
        (ToolResult("a", is_error=True, code="\ud800"), "half of a surrogate pair"),
        (ToolResult("a", is_error=1), "the is_error of its ToolResult is an int"),  # type: ignore[arg-type]
        (ToolResult("a", is_error=None), "the is_error of its ToolResult is None"),  # type: ignore[arg-type]
        (ToolResult("a", is_error="yes"), "the is_error of its ToolResult is a str"),  # type: ignore[arg-type]
        (ToolResult("a", value=object()), "which JSON does not have"),  # type: ignore[arg-type]
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else ascii(value)[:20],
)
async def test_what_a_tool_may_not_give(answer: object, told: str) -> None:
    """What is neither text nor JSON is a failure of the tool, with the place inside and the whole error kept."""
    result = await outcome(lambda arguments: answer)
    assert (result.is_error, result.code, result.value) == (True, "INVALID_TOOL_OUTPUT", None)
    assert result.text.startswith("Error: the tool gave back what cannot be told: ")
    assert told in result.text
    assert result.error is not None


@pytest.mark.anyio
async def test_a_value_with_code_of_its_own() -> None:
    """A value that raises when it is looked at is a failure like the others."""
    result = await outcome(lambda arguments: Hostile())
    assert (result.code, result.is_error) == ("INVALID_TOOL_OUTPUT", True)
    assert "ZeroDivisionError: no" in result.text


@pytest.mark.anyio
async def test_a_long_result_is_cut() -> None:
    """A text over its limit is cut between two characters, and says how much there was."""
    result = await outcome(lambda arguments: "ä" * 600, max_result=1001)
    assert result.text == "ä" * 500 + "\n[cut off here: the result has 1,200 bytes, and only 1,001 are shown]"
    assert result.value == "ä" * 600
    assert (await outcome(lambda arguments: "ä" * 500, max_result=1000)).text == "ä" * 500


@given(st.text(max_size=40), st.integers(1, 60))
def test_the_law_of_cutting(text: str, limit: int) -> None:
    """What is shown is the text's beginning, in at most as many bytes as allowed; nothing is cut that need not be."""
    from foreword.tools.result import result_of

    shown, mark, _ = result_of(text, limit).text.partition("\n[cut off here: ")
    assert text.startswith(shown)
    assert len(shown.encode()) <= limit
    assert bool(mark) is (len(text.encode()) > limit)
    assert mark or shown == text
    assert not mark or len(shown.encode()) > limit - 4


# -- failures ----------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_what_a_tool_raises_is_told_shortly(caplog: pytest.LogCaptureFixture) -> None:
    """The model is told type and message; the error itself, with its traceback, is kept and logged for the operator."""

    def tool(arguments: Any) -> str:
        raise ConnectionError("no route to host")

    with caplog.at_level(logging.INFO, "foreword.tools"):
        result = await outcome(tool)
    assert result == ToolResult("Error: ConnectionError: no route to host", is_error=True, code="TOOL_FAILED")
    assert isinstance(result.error, ConnectionError)
    assert result.error.__traceback__ is not None
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[1] is result.error


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError(), "ValueError"),
        (KeyError("a"), "KeyError: 'a'"),
        (ExceptionGroup("g", [ValueError("one")]), "ValueError: one"),
        (ExceptionGroup("g", [ValueError("one"), ExceptionGroup("h", [OSError("two")])]), "ValueError: one; OSError: two"),
        (ValueError("\ud800"), "ValueError: \\ud800"),
        (ValueError("x" * 10_000), "ValueError: " + "x" * 1988 + "…"),
        (TimeoutError("mine"), "TimeoutError: mine"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value[:20],
)  # fmt: skip
async def test_messages_of_errors(error: Exception, text: str) -> None:
    """Messages are short, spelled in UTF-8, and those of a group are those of its members."""

    async def tool(arguments: Any) -> str:
        raise error

    result = await outcome(tool)
    assert (result.text, result.code) == (f"Error: {text}", "TOOL_FAILED")


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class OddlyPrintableError(Exception):
    def __str__(self) -> str:
        return Shown("held")


@pytest.mark.anyio
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (UnprintableError(), "UnprintableError"),
        (ExceptionGroup("g", [ValueError("one"), UnprintableError()]), "ValueError: one; UnprintableError"),
        (OddlyPrintableError(), "OddlyPrintableError: held"),
    ],
    ids=["raises", "in a group", "odd string"],
)
async def test_an_error_that_cannot_be_printed(error: Exception, text: str, is_async: bool) -> None:
    """It is a failure of the tool like any other, told by its type; the error itself is kept."""

    def tool(arguments: Any) -> str:
        raise error

    async def tool_async(arguments: Any) -> str:
        raise error

    result = await outcome(tool_async if is_async else tool)
    assert (result.text, result.code) == (f"Error: {text}", "TOOL_FAILED")
    assert result.error is error


@pytest.mark.anyio
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
async def test_exits_are_nobodys_failure(stop: type[BaseException], is_async: bool) -> None:
    """An exit that a tool raises reaches the caller as what it is."""

    def tool(arguments: Any) -> str:
        raise stop

    async def tool_async(arguments: Any) -> str:
        raise stop

    with pytest.raises(stop):
        await outcome(tool_async if is_async else tool)


@pytest.mark.anyio
async def test_an_unknown_tool() -> None:
    """The model is told the nearest name, and which tools there are."""
    _, tools = registry()
    tools.register(stub("bash"))
    result = await tools.call("bsah", "{}")
    assert result == ToolResult(
        'Error: there is no tool "bsah"; did you mean "bash"? known tools: bash', is_error=True, code="UNKNOWN_TOOL"
    )


@pytest.mark.anyio
@pytest.mark.parametrize(("name", "kind"), [(None, "None"), (3, "an int"), ([], "a list")])
async def test_a_name_that_is_none(name: Any, kind: str) -> None:
    """It is an unknown tool like any other: what a model names is nobody's mistake here, so nothing is raised."""
    _, tools = registry()
    tools.register(stub("bash"))
    assert await tools.call(name, {}) == ToolResult(
        f"Error: a tool is called by its name, not by {kind}; known tools: bash", is_error=True, code="UNKNOWN_TOOL"
    )


@pytest.mark.anyio
async def test_a_masked_tool_does_not_exist() -> None:
    """In look-up and execution a tool that a mask hides is like one that nobody registered."""
    prompt, tools = registry()
    view = prompt.scope("agent")
    tools.register(stub("bash"))
    tools.register(stub("read"))
    tools.at(view).restrict(deny=["bash"])
    masked = await tools.call("bash", "{}", scope=view)
    never = await tools.call("bahs", "{}", scope=view)
    assert masked.text == never.text.replace("bahs", "bash") == 'Error: there is no tool "bash"; known tools: read'
    assert masked.code == never.code == "UNKNOWN_TOOL"
    assert tools.get("bash", view) is None
    assert (await tools.call("bash", "{}")).text == "done"


# -- functions of all kinds --------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_sync_tools_run_in_a_thread() -> None:
    """A plain function does not hold up the event loop; two run at once; context variables are there."""
    _, tools = registry()
    barrier = threading.Barrier(2, timeout=PATIENCE)
    threads: set[int] = set()

    @tools.register
    def meet(name: str) -> str:
        threads.add(threading.get_ident())
        barrier.wait()
        return name

    results: dict[str, str] = {}

    async def call(name: str) -> None:
        results[name] = (await tools.call("meet", {"name": name})).text

    async with anyio.create_task_group() as group:
        group.start_soon(call, "a")
        group.start_soon(call, "b")
    assert results == {"a": "a", "b": "b"}
    assert len(threads) == 2
    assert threading.get_ident() not in threads


@pytest.mark.anyio
async def test_an_async_function_behind_a_plain_one() -> None:
    """A decorator may hide that a function is async: what it gives is awaited all the same."""

    async def answer() -> str:
        await anyio.lowlevel.checkpoint()
        return "awaited"

    assert (await outcome(lambda arguments: answer())).text == "awaited"


@pytest.mark.anyio
async def test_the_context_of_a_call() -> None:
    """A tool may ask which call it is, whose, for which model, with which values of the caller."""
    prompt, tools = registry()
    view = prompt.scope("support")
    seen: list[ToolContext] = []

    @tools.register
    async def ask(order: str, context: ToolContext) -> str:
        seen.append(context)
        return f"{order} {context[TENANT]}"

    agent = ScopeKey("agent")
    given = AssembleContext({TENANT: "acme"}, agent=agent, model=ModelRef("p", "m"))
    assert (await tools.call("ask", {"order": "7"}, scope=view, call_id="c1", context=given)).text == "7 acme"
    (context,) = seen
    assert (context.tool, context.call_id, context.agent, context.scope) == ("ask", "c1", agent, view.key)
    assert context.model == ModelRef("p", "m")
    assert not context.signal.cancelled
    bare = await tools.at(view).call("ask", {"order": "7"})
    assert "no value for the key" in bare.text
    assert (seen[1].scope, seen[1].agent, seen[1].call_id) == (view.key, None, "")


@pytest.mark.anyio
async def test_the_scope_of_a_call() -> None:
    """The scope that is named counts, then that of the context, then that of the view."""
    prompt, tools = registry()
    one, two = prompt.scope("one"), prompt.scope("two")
    tools.register(stub("where", "global"))
    tools.at(one).register(stub("where", "one"))
    tools.at(two).register(stub("where", "two"))
    assert (await tools.call("where", "")).text == "global"
    assert (await tools.at(one).call("where", "")).text == "one"
    assert (await tools.at(one).call("where", "", context=AssembleContext(scope=two))).text == "two"
    assert (await tools.at(two).call("where", "", scope=one, context=AssembleContext(scope=two))).text == "one"


@pytest.mark.anyio
async def test_a_tool_may_call_a_tool() -> None:
    """A tool that calls another one, or itself registers one, is in nobody's way."""
    _, tools = registry()

    @tools.register
    async def outer() -> str:
        tools.register(stub("inner", "inside"))
        return (await tools.call("inner", "")).text

    assert (await tools.call("outer", "")).text == "inside"


# -- time and cancellation ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("long_grace")
@pytest.mark.anyio
async def test_a_timeout() -> None:
    """An async tool that takes too long is cancelled, and its call is a result."""
    cancelled = anyio.Event()

    async def tool(arguments: Any) -> str:
        try:
            await anyio.sleep(FAR)
        finally:
            cancelled.set()
        return "late"

    before = living_tasks()
    result = await outcome(tool, timeout=0.01)
    assert result.code == "TIMEOUT"
    assert result.text == f"Error: no answer within its timeout of 0.01 s: it was cancelled; {UNSURE}"
    assert cancelled.is_set()
    await until(lambda: living_tasks() == before)


@pytest.mark.anyio
async def test_a_tool_that_clings_is_left_behind() -> None:
    """One that does not go when cancelled holds nobody up; it is listed as stuck until it ends."""
    prompt, tools = registry()
    released = anyio.Event()

    @tools.register(timeout=0.01)
    async def clings() -> str:
        await cling(released)
        return "late"

    result = await tools.call("clings", "")
    assert result.code == "TIMEOUT"
    assert "was left running" in result.text
    (ref,) = tools.stuck
    assert (ref.kind, ref.name, ref.owner) == ("tool", "clings", "main")
    assert prompt.stuck == ()
    released.set()
    await until(lambda: not tools.stuck)


@pytest.mark.anyio
async def test_a_thread_past_its_timeout() -> None:
    """A plain function cannot be interrupted: it is left behind, and can see that nobody waits any more."""
    _, tools = registry()
    gate = Gate()
    signals: list[CancelToken] = []

    @tools.register(timeout=0.05)
    def slow(context: ToolContext) -> str:
        signals.append(context.signal)
        gate()
        return "late"

    result = await tools.call("slow", "")
    assert result.code == "TIMEOUT"
    assert [ref.name for ref in tools.stuck] == ["slow"]
    assert signals[0].cancelled
    gate.open.set()
    await until(lambda: not tools.stuck)


class Watchful:
    """A plain function that ends once its signal is cancelled, and then does what it was given."""

    def __init__(self, then: Callable[[], Any]) -> None:
        self.started = threading.Event()
        self.reason: str | None = None
        self.then = then

    def __call__(self, context: ToolContext) -> Any:
        told = threading.Event()
        context.signal.on_cancel(told.set)
        self.started.set()
        assert told.wait(PATIENCE)
        self.reason = context.signal.reason
        return self.then()


def watchful(tools: ToolRegistry, then: Callable[[], Any], timeout: float | None = None) -> Watchful:
    """Register a tool ``watch``."""
    watch = Watchful(then)

    def tool(context: ToolContext) -> Any:
        return watch(context)

    tools.register(tool, name="watch", timeout=timeout)
    return watch


def fail() -> None:
    """What a tool that rolls back may raise."""
    raise ConnectionError("rolled back")


@pytest.mark.usefixtures("long_grace")
@pytest.mark.anyio
async def test_a_thread_that_ends_when_its_signal_says_so() -> None:
    """Past its timeout a plain function is told by its signal, and waited for a moment: its answer is the result."""
    _, tools = registry()
    watch = watchful(tools, lambda: "rolled back", timeout=0.02)
    assert await tools.call("watch", "") == ToolResult("rolled back", value="rolled back")
    assert watch.reason == "nobody waits for the call any more"
    assert tools.stuck == ()


@pytest.mark.usefixtures("long_grace")
@pytest.mark.anyio
async def test_a_thread_that_fails_when_its_signal_says_so() -> None:
    """An error that comes after the timeout is no answer: the call ran out of time, but nothing is left running."""
    _, tools = registry()
    watchful(tools, fail, timeout=0.02)
    result = await tools.call("watch", "")
    assert (result.code, result.text) == (
        "TIMEOUT", f"Error: no answer within its timeout of 0.02 s: it was cancelled; {UNSURE}",
    )  # fmt: skip
    assert tools.stuck == ()


@pytest.mark.usefixtures("long_grace")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("then", "code", "text"),
    [
        (lambda: "rolled back", None, "rolled back"),
        (fail, "ABORTED", f"Error: the call was cancelled (stop); {UNSURE}"),
    ],
    ids=["answers", "fails"],
)
async def test_a_thread_whose_caller_cancels(then: Callable[[], Any], code: str | None, text: str) -> None:
    """A plain function that ends when the caller's signal is cancelled has answered, however it was cut short."""
    _, tools = registry()
    watch = watchful(tools, then)
    token = CancelToken()
    results: list[ToolResult] = []

    async def call() -> None:
        results.append(await tools.call("watch", "", signal=token))

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await until(watch.started.is_set)
        token.cancel("stop")
    (result,) = results
    assert (result.code, result.text) == (code, text)
    assert isinstance(result.error, ConnectionError) is (code is not None)
    assert watch.reason == "stop"
    assert tools.stuck == ()


@pytest.mark.usefixtures("long_grace")
@pytest.mark.anyio
async def test_a_thread_whose_calling_task_is_cancelled() -> None:
    """A cancellation of the calling task goes on, but not before the plain function had its moment to end."""
    _, tools = registry()
    watch = watchful(tools, lambda: "rolled back")
    results: list[ToolResult] = []
    stuck: list[object] = []

    async def call() -> None:
        try:
            results.append(await tools.call("watch", ""))
        finally:
            stuck.extend(tools.stuck)

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await until(watch.started.is_set)
        group.cancel_scope.cancel()
    assert not results
    assert watch.reason == "nobody waits for the call any more"
    assert not stuck


@pytest.mark.usefixtures("long_grace")
@pytest.mark.anyio
async def test_a_late_thread_that_gives_an_awaitable() -> None:
    """Past the timeout nobody awaits any more: what a plain function then gives to be awaited is not begun."""
    _, tools = registry()
    begun: list[int] = []

    async def more() -> str:
        begun.append(1)
        return "never"

    watchful(tools, more, timeout=0.02)
    result = await tools.call("watch", "")
    assert result.code == "TIMEOUT"
    assert not begun
    assert tools.stuck == ()


@pytest.mark.usefixtures("long_grace")
@pytest.mark.anyio
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
async def test_an_exit_of_a_late_thread(stop: type[BaseException]) -> None:
    """An exit that a plain function raises after its timeout is not lost."""
    _, tools = registry()

    def leave() -> None:
        raise stop

    watchful(tools, leave, timeout=0.02)
    with pytest.raises(stop):
        await tools.call("watch", "")


@pytest.mark.anyio
async def test_an_async_tool_learns_of_its_timeout_from_its_signal() -> None:
    """The signal is cancelled along with the task, for what no cancellation reaches, such as a thread of the tool's."""
    _, tools = registry()
    reasons: list[str | None] = []

    @tools.register(timeout=0.02)
    async def waits(context: ToolContext) -> str:
        try:
            await anyio.sleep(FAR)
        finally:
            reasons.append(context.signal.reason)
        return "never"

    assert (await tools.call("waits", "")).code == "TIMEOUT"
    assert reasons == ["nobody waits for the call any more"]


@pytest.mark.anyio
async def test_an_answer_counts_even_if_it_is_late() -> None:
    """A tool that comes back after its timeout has done what it did: its answer is the result."""

    async def tool(arguments: Any) -> str:
        end = anyio.current_time() + 0.2
        while anyio.current_time() < end:
            pass  # it blocks the event loop, as ill-behaved tools do
        return "done after all"

    assert await outcome(tool, timeout=0.01) == ToolResult("done after all", value="done after all")


@pytest.mark.anyio
async def test_a_timeout_that_is_not_reached() -> None:
    """A tool within its time answers; its own TimeoutError is an error of its own."""

    async def tool(arguments: Any) -> str:
        raise TimeoutError("mine")

    assert (await outcome(lambda arguments: "in time", timeout=FAR)).text == "in time"
    assert (await outcome(tool, timeout=FAR)).code == "TOOL_FAILED"


@pytest.mark.anyio
async def test_a_signal_before_the_call() -> None:
    """With a cancelled signal nothing is called."""
    _, tools = registry()
    called: list[int] = []
    tools.register(lambda arguments: called.append(1), name="a", parameters=OBJECT)
    token = CancelToken()
    token.cancel("the user left")
    expected = ToolResult(
        "Error: the call was cancelled before it began (the user left)", is_error=True, code="ABORTED_BEFORE_DISPATCH"
    )
    assert await tools.call("a", "", signal=token) == expected
    assert await tools.call("a", "", context=AssembleContext(signal=token)) == expected
    assert not called


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["async", "thread", "clinging"])
@pytest.mark.parametrize("from_thread", [False, True])
async def test_a_signal_during_the_call(kind: str, from_thread: bool) -> None:
    """Cancelling the signal, in whatever thread, ends the call shortly after, however the tool behaves."""
    _, tools = registry()
    started, released, gate = anyio.Event(), anyio.Event(), Gate()
    seen: list[CancelToken] = []

    @tools.register(name="async")
    async def waits(context: ToolContext) -> str:
        seen.append(context.signal)
        started.set()
        await anyio.sleep(FAR)
        return "never"

    @tools.register(name="clinging")
    async def clings(context: ToolContext) -> str:
        seen.append(context.signal)
        started.set()
        await cling(released)
        raise ConnectionError("late")

    @tools.register(name="thread")
    def blocks(context: ToolContext) -> str:
        seen.append(context.signal)
        gate()
        return "never"

    token = CancelToken()
    results: list[ToolResult] = []

    async def call() -> None:
        results.append(await tools.call(kind, "", signal=token))

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await until(lambda: started.is_set() or gate.reached.is_set())
        if from_thread:
            await anyio.to_thread.run_sync(token.cancel, "stop")
        else:
            token.cancel("stop")
    (result,) = results
    assert (result.code, result.text) == ("ABORTED", f"Error: the call was cancelled (stop); {UNSURE}")
    assert seen[0].reason == "stop"
    assert len(tools.stuck) == (kind != "async")
    released.set()
    gate.open.set()
    await until(lambda: not tools.stuck)


@pytest.mark.anyio
async def test_a_call_leaves_the_callers_signal_alone() -> None:
    """What ends one call cancels nothing of the caller's; a call that ended well cancels not even its own signal."""
    _, tools = registry()
    own: list[CancelToken] = []

    @tools.register
    async def good(context: ToolContext) -> str:
        own.append(context.signal)
        context.signal.on_cancel(lambda: own.clear())
        return "good"

    @tools.register(timeout=0.01)
    async def late() -> str:
        await anyio.sleep(FAR)
        return "never"

    token = CancelToken()
    assert (await tools.call("late", "", signal=token)).code == "TIMEOUT"
    assert (await tools.call("good", "", signal=token)).text == "good"
    assert not token.cancelled
    token.cancel()
    assert [each.cancelled for each in own] == [False]


@pytest.mark.anyio
async def test_cancelling_the_caller() -> None:
    """A cancellation of the calling task is no result: the tool is cancelled, and the cancellation goes on."""
    _, tools = registry()
    started, cancelled = anyio.Event(), anyio.Event()

    @tools.register
    async def waits() -> str:
        started.set()
        try:
            await anyio.sleep(FAR)
        finally:
            cancelled.set()
        return "never"

    results: list[ToolResult] = []

    async def call() -> None:
        results.append(await tools.call("waits", ""))

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await started.wait()
        group.cancel_scope.cancel()
    assert not results
    assert cancelled.is_set()
    assert tools.stuck == ()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.anyio
async def test_a_stray_cancellation_is_a_failure(anyio_backend: str) -> None:
    """Something that a tool awaits was cancelled by others: that is an error of the tool, not the end of its caller."""

    async def tool(arguments: Any) -> str:
        task = asyncio.create_task(asyncio.sleep(FAR))
        task.cancel()
        await task
        return "never"

    result = await outcome(tool)
    assert (result.code, result.text) == (
        "TOOL_FAILED", "Error: RuntimeError: it was cancelled by something that it awaits",
    )  # fmt: skip


@pytest.mark.anyio
async def test_cancel_scopes_of_a_tool() -> None:
    """What a tool cancels in itself is its own affair."""

    async def tool(arguments: Any) -> str:
        with anyio.move_on_after(0.001):
            await anyio.sleep(FAR)
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep, FAR)
            group.cancel_scope.cancel()
        return "went on"

    assert (await outcome(tool)).text == "went on"


@pytest.mark.anyio
async def test_all_threads_stuck() -> None:
    """When every thread is held by a plain function that hangs, the next call fails and says by whom."""
    from foreword.tools.toolbox import MOST_THREADS

    _, tools = registry()
    gate = Gate()

    @tools.register(timeout=0.05)
    def hangs() -> None:
        gate()

    async with anyio.create_task_group() as group:
        for _ in range(MOST_THREADS):
            group.start_soon(tools.call, "hangs", "")
    result = await tools.call("hangs", "")
    assert f"all {MOST_THREADS} threads for plain functions are stuck" in result.text
    gate.open.set()
    await until(lambda: not tools.stuck)
    assert (await tools.call("hangs", "")).text == "null"


@pytest.mark.anyio
async def test_standing_alone_a_running_call_finishes() -> None:
    """A tool that is closed while it runs is unknown to new calls; the running one ends when it ends."""
    prompt, tools = registry()
    started, go_on = anyio.Event(), anyio.Event()

    async def slow(arguments: Any) -> str:
        started.set()
        await go_on.wait()
        return "finished"

    owned = tools.at(prompt.owner("plugin"))
    owned.register(ToolDefinition("slow", "", OBJECT, slow))
    results: list[ToolResult] = []

    async def call() -> None:
        results.append(await tools.call("slow", ""))

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await started.wait()
        prompt.close()
        assert names(tools) == []
        assert (await tools.call("slow", "")).code == "UNKNOWN_TOOL"
        go_on.set()
    assert [result.text for result in results] == ["finished"]


@pytest.mark.anyio
async def test_many_calls_at_once() -> None:
    """Calls are independent: each gets its own arguments, context and result."""
    tools = ToolRegistry(SystemPrompt())

    @tools.register
    async def slow(number: int, context: ToolContext) -> str:
        await anyio.sleep(0.001 * (number % 3))
        return f"{number} {context.call_id}"

    @tools.register
    def quick(number: int, context: ToolContext) -> str:
        return f"{number} {context.call_id}"

    results: dict[int, str] = {}

    async def call(number: int) -> None:
        name = "quick" if number % 2 else "slow"
        results[number] = (await tools.call(name, {"number": number}, call_id=f"c{number}")).text

    async with anyio.create_task_group() as group:
        for number in range(60):
            group.start_soon(call, number)
    assert results == {number: f"{number} c{number}" for number in range(60)}
