"""The sync doors: loops and threads of their own, nesting, the end of the process, Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.to_thread
import pytest
from tests.concurrency.support import FAR, PATIENCE, in_threads, living_tasks, run_script, started

from foreword import (
    AssembleContext,
    ContextKey,
    PromptAssembly,
    ProviderFailedError,
    RunningLoopError,
    SystemPrompt,
)

REQUEST = ContextKey("request", str)
CALLER: ContextVar[str] = ContextVar("caller", default="nobody")
TIMEOUTS = [(None,), (FAR,), (None, None), (FAR, None)]


class Stop(BaseException):
    """Somebody's own exit."""


def wait_until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.001)


async def text() -> str:
    await anyio.sleep(0.001)
    return "text"


async def never() -> str:
    await anyio.sleep(FAR)
    return "never"


# -- threads and loops ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeouts", TIMEOUTS)
def test_a_sync_door_leaves_no_thread_behind(timeouts: tuple[float | None, ...]) -> None:
    """Also with a loop in a thread: when all have answered, or gone, it has ended with the call."""
    prompt = SystemPrompt()
    for number, timeout in enumerate(timeouts):
        prompt.section(f"s{number}", text, order=number, timeout=timeout)
    prompt.section("late", never, order=9, timeout=0.02, on_error="skip")
    before = set(threading.enumerate())
    for _ in range(5):
        assert prompt.render_sync().text.split("\n\n") == ["text"] * len(timeouts)
    assert set(threading.enumerate()) == before


@pytest.mark.parametrize("timeouts", [(None,), (None, None)])
def test_without_a_timeout_async_providers_run_in_the_callers_thread(timeouts: tuple[float | None, ...]) -> None:
    """What belongs to a thread is at hand for them, and no other thread is needed."""
    prompt = SystemPrompt()
    threads: list[threading.Thread] = []

    async def where() -> str:
        threads.append(threading.current_thread())
        return "text"

    for number, timeout in enumerate(timeouts):
        prompt.section(f"s{number}", where, order=number, timeout=timeout)
    prompt.render_sync()
    assert threads == [threading.current_thread()] * len(timeouts)


@pytest.mark.parametrize("timeouts", TIMEOUTS)
def test_a_sync_door_leaves_the_threads_own_event_loop_set(timeouts: tuple[float | None, ...]) -> None:
    """Code that goes by `asyncio.get_event_loop` finds its loop as it was, open and in place."""
    prompt = SystemPrompt()
    for number, timeout in enumerate(timeouts):
        prompt.section(f"s{number}", text, order=number, timeout=timeout)
    own = asyncio.new_event_loop()
    asyncio.set_event_loop(own)
    try:
        prompt.render_sync()
        assert asyncio.get_event_loop() is own
        assert own.run_until_complete(text()) == "text"
    finally:
        asyncio.set_event_loop(None)
        own.close()


@pytest.mark.parametrize("timeouts", TIMEOUTS)
def test_async_providers_behind_a_sync_door_see_the_callers_context_variables(
    timeouts: tuple[float | None, ...],
) -> None:
    """With a loop in the caller's thread, and with one in a thread of its own."""
    prompt = SystemPrompt()

    async def caller() -> str:
        await anyio.sleep(0.001)
        return CALLER.get()

    for number, timeout in enumerate(timeouts):
        prompt.section(f"s{number}", caller, order=number, timeout=timeout)
    token = CALLER.set("me")
    try:
        assert prompt.render_sync().text.split("\n\n") == ["me"] * len(timeouts)
    finally:
        CALLER.reset(token)


def test_a_clinging_provider_keeps_its_loop_in_a_daemon_thread_until_it_ends() -> None:
    """The call comes back in time; `stuck` is seen and emptied across threads, and the thread ends with the provider."""
    prompt = SystemPrompt()
    released = threading.Event()

    async def clinging() -> str:
        end = time.monotonic() + 2 * PATIENCE
        while not released.is_set() and time.monotonic() < end:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.005)
        return "late"

    prompt.section("clings", clinging, order=1, timeout=0.05, on_error="skip")
    before = set(threading.enumerate())
    start = time.perf_counter()
    assert prompt.render_sync().text == ""
    assert time.perf_counter() - start < 0.15 + 2
    assert [ref.name for ref in prompt.stuck] == ["clings"]
    (thread,) = set(threading.enumerate()) - before
    assert thread.daemon
    released.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert prompt.stuck == ()


@pytest.mark.parametrize("timeouts", TIMEOUTS)
def test_a_sync_door_works_while_another_thread_runs_a_loop(timeouts: tuple[float | None, ...]) -> None:
    """Another thread's running loop is none of this thread's, and is not held up."""
    prompt = SystemPrompt()
    for number, timeout in enumerate(timeouts):
        prompt.section(f"s{number}", text, order=number, timeout=timeout)
    running, finish = threading.Event(), threading.Event()
    turns: list[int] = []

    async def busy() -> None:
        running.set()
        while not finish.is_set():
            turns.append(1)
            await asyncio.sleep(0.001)

    def in_loop() -> None:
        asyncio.run(busy())

    def plain() -> None:
        running.wait(PATIENCE)
        try:
            for _ in range(5):
                assert prompt.render_sync().text.split("\n\n") == ["text"] * len(timeouts)
        finally:
            finish.set()

    in_threads(in_loop, plain)
    assert turns


@pytest.mark.anyio
@pytest.mark.parametrize("timeouts", TIMEOUTS)
async def test_sync_doors_in_worker_threads_of_a_running_loop(timeouts: tuple[float | None, ...]) -> None:
    """A worker thread has no running loop of its own: the way out for plain code called from async code."""
    prompt = SystemPrompt()
    for number, timeout in enumerate(timeouts):
        prompt.section(f"s{number}", text, order=number, timeout=timeout)
    texts: list[str] = []

    async def render() -> None:
        texts.append((await anyio.to_thread.run_sync(prompt.render_sync)).text)

    before = living_tasks()
    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(render)
    assert texts == ["\n\n".join(["text"] * len(timeouts))] * 8
    assert living_tasks() == before


def test_eight_threads_at_once_each_get_their_own() -> None:
    """Sync doors with async providers of both sorts and a listener, called at the same time, never mix."""
    prompt = SystemPrompt()

    async def who(context: AssembleContext) -> str:
        await anyio.sleep(0.001)
        return context[REQUEST]

    async def listener(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        await anyio.sleep(0.001)
        assembly.sections.swap("plain", text=f"{context[REQUEST]} {{{{who}}}}")
        return await call_next()

    prompt.variable("who", who)
    prompt.section("plain", "nobody", order=1)
    prompt.section("timed", who, order=2, timeout=FAR)
    prompt.on_assemble(listener)

    def job(request: str) -> Callable[[], None]:
        def render() -> None:
            for turn in range(10):
                me = f"{request}-{turn}"
                assert prompt.render_sync(AssembleContext({REQUEST: me})).text == f"{me} {me}\n\n{me}"

        return render

    before = set(threading.enumerate())
    in_threads(*(job(str(number)) for number in range(8)))
    wait_until(lambda: set(threading.enumerate()) <= before)


@pytest.mark.parametrize("timeouts", TIMEOUTS)
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, Stop])
def test_exits_and_cancellations_come_through_a_sync_door(
    stop: type[BaseException], timeouts: tuple[float | None, ...]
) -> None:
    """Plain code gets the very exception, from a loop in its own thread or in another; its siblings are stopped."""
    prompt = SystemPrompt()
    raised = stop("now")

    async def stopping() -> str:
        raise raised

    prompt.section("stops", stopping, order=1, timeout=timeouts[0])
    for timeout in timeouts[1:]:
        prompt.section("hangs", never, order=2, timeout=timeout)
    before = set(threading.enumerate())
    with pytest.raises(stop) as caught:
        prompt.render_sync()
    assert caught.value is raised
    assert set(threading.enumerate()) == before


# -- nesting -------------------------------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("timeout", [None, FAR])
async def test_a_sync_door_inside_a_running_loop_says_what_to_call(timeout: float | None) -> None:
    """With something async in force it raises, names loop, culprit and the call to use, and asks nobody."""
    prompt = SystemPrompt()
    asked: list[int] = []

    async def provider() -> str:
        asked.append(1)
        return "text"

    prompt.section("slow", provider, order=1, timeout=timeout)
    for door, call in ((prompt.render_sync, "render"), (prompt.assemble_sync, "assemble")):
        with pytest.raises(RunningLoopError) as caught:
            door()
        library = "trio" if "trio" in str(caught.value) else "asyncio"
        for told in (f"{call}_sync()", library, "slow", "main", f"await prompt.{call}(context)"):
            assert told in str(caught.value)
    assert asked == []


@pytest.mark.anyio
async def test_a_sync_door_inside_a_running_loop_works_while_nothing_is_async() -> None:
    """Plain providers need no loop; a listener does."""
    prompt = SystemPrompt()
    prompt.section("s", lambda: "text", order=1)
    assert prompt.render_sync().text == "text"

    async def listener(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
        return await call_next()

    with prompt.on_assemble(listener), pytest.raises(RunningLoopError, match="listener"):
        prompt.render_sync()
    assert prompt.render_sync().text == "text"


@pytest.mark.anyio
@pytest.mark.parametrize("inner_timeout", [None, FAR])
@pytest.mark.parametrize("outer_timeout", [None, FAR])
async def test_an_async_provider_that_renders_another_prompt(
    outer_timeout: float | None, inner_timeout: float | None
) -> None:
    """Awaiting works at any depth; through the sync door it is the provider's failure, of kind `running_loop`."""
    inner, outer = SystemPrompt(), SystemPrompt()
    inner.section("inner", text, order=1, timeout=inner_timeout)

    async def awaiting() -> str:
        return (await inner.render()).text

    async def through_the_door() -> str:
        return inner.render_sync().text

    outer.section("awaits", awaiting, order=1, timeout=outer_timeout)
    assert (await outer.render()).text == "text"
    outer.section("sync", through_the_door, order=2, timeout=outer_timeout)
    with pytest.raises(ProviderFailedError) as caught:
        await outer.render()
    (failure,) = caught.value.failures
    assert (failure.entry.name, failure.kind) == ("sync", "running_loop")
    assert "await prompt.render(context)" in failure.message


@pytest.mark.parametrize("timeout", [None, FAR])
def test_nesting_behind_a_sync_door(timeout: float | None) -> None:
    """Within the loop that a sync door started, awaiting works and another sync door says so."""
    inner, outer = SystemPrompt(), SystemPrompt()
    inner.section("inner", text, order=1)

    async def awaiting() -> str:
        return (await inner.render()).text

    async def through_the_door() -> str:
        return inner.render_sync().text

    outer.section("awaits", awaiting, order=1, timeout=timeout)
    assert outer.render_sync().text == "text"
    outer.section("sync", through_the_door, order=2, timeout=timeout)
    with pytest.raises(ProviderFailedError) as caught:
        outer.render_sync()
    assert [failure.kind for failure in caught.value.failures] == ["running_loop"]


@pytest.mark.anyio
async def test_a_provider_may_assemble_the_prompt_that_asks_it_for_another_scope() -> None:
    """No lock is held while providers run, so a prompt may be rendered from within itself."""
    prompt = SystemPrompt()
    child = prompt.scope("child")
    child.section("child", text, order=1)

    async def whole(context: AssembleContext) -> str:
        if context.scope is child.key:
            return "leaf"
        return "with: " + (await prompt.render(AssembleContext(scope=child))).text

    prompt.section("whole", whole, order=0, timeout=FAR)
    assert (await prompt.render()).text == "with: leaf\n\ntext"


# -- the end of the process ----------------------------------------------------------------------------------------------

CLINGING = """
import asyncio, time
from foreword import ProviderFailedError, SystemPrompt

async def clinging():
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

def bounded(call):
    start = time.perf_counter()
    try:
        return call()
    finally:
        assert time.perf_counter() - start < 2.2, time.perf_counter() - start

prompt = SystemPrompt()
"""


@pytest.mark.slow
@pytest.mark.parametrize("on_error", ["fail", "skip"])
def test_the_process_ends_though_a_provider_never_goes(on_error: str) -> None:
    """With a timeout, the call comes back in time, and the process ends by itself, with code 0 and not a word."""
    code, output, errors = run_script(f"""{CLINGING}
prompt.section("clings", clinging, order=1, timeout=0.1, on_error={on_error!r})
prompt.section("fine", "fine", order=2)
try:
    print(bounded(prompt.render_sync).text)
except ProviderFailedError as error:
    print([failure.kind for failure in error.failures])
print(len(prompt.stuck), "stuck")
start = time.perf_counter()
import atexit
atexit.register(lambda: print("quick" if time.perf_counter() - start < 5 else "slow"))
""")
    result = "['timeout']" if on_error == "fail" else "fine"
    assert output.splitlines() == [result, "1 stuck", "quick"]
    assert errors == ""
    assert code == 0


@pytest.mark.slow
def test_the_process_ends_with_what_a_provider_exits_with() -> None:
    """`sys.exit(7)` in a provider, with or without a timeout, is the exit code."""
    for timeout in (None, 60):
        code, output, errors = run_script(f"""
            import sys
            from foreword import SystemPrompt
            prompt = SystemPrompt()
            async def leaving(): sys.exit(7)
            prompt.section("s", leaving, order=1, timeout={timeout})
            prompt.render_sync()
            print("not here")
        """)
        assert (code, output, errors) == (7, "", "")


@pytest.mark.slow
@pytest.mark.parametrize("library", ["asyncio", "trio"])
def test_an_exit_of_a_provider_that_was_left_running_is_not_lost(library: str) -> None:
    """Nobody waits for it any more, so it goes to the event loop: asyncio exits with it, trio ends and tells of it."""
    code, output, errors = run_script(f"""
        import anyio
        from foreword import SystemPrompt
        prompt = SystemPrompt()
        async def leaving():
            try:
                await anyio.sleep(60)
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await anyio.sleep(0.3)
                sys.exit(5)
        prompt.section("s", leaving, order=1, timeout=0.02, on_error="skip")
        async def main():
            await prompt.assemble()
            print("assembled")
            await anyio.sleep(60)
            print("not here")
        anyio.run(main, backend={library!r})
    """)
    assert code == {"asyncio": 5, "trio": 1}[library]
    assert output == "assembled\n"
    assert "SystemExit: 5" in errors


@pytest.mark.slow
def test_an_ordinary_process_says_nothing_at_its_end() -> None:
    """A sync door under a timeout right before the end leaves no loop, thread or warning behind."""
    code, output, errors = run_script("""
        from foreword import SystemPrompt
        prompt = SystemPrompt()
        async def text(): return "text"
        prompt.section("s", text, order=1, timeout=60)
        for _ in range(20):
            prompt.render_sync()
        print(prompt.render_sync().text)
    """)
    assert (code, output, errors) == (0, "text\n", "")


@pytest.mark.slow
def test_the_first_sync_doors_of_a_process_in_many_threads_at_once() -> None:
    """While one thread is still importing the event loop's library, others ask whether one runs here."""
    code, output, errors = run_script("""
        import threading, time
        from foreword import SystemPrompt
        prompt = SystemPrompt()
        async def text(): return "text"
        prompt.section("plain", text, order=1)
        timed = SystemPrompt()
        timed.section("timed", text, order=2, timeout=60)
        start, texts = threading.Barrier(40), []
        def render(number):
            start.wait()
            time.sleep(number * 0.002)
            texts.append((timed if number % 2 else prompt).render_sync().text)
        threads = [threading.Thread(target=render, args=(number,)) for number in range(40)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(texts.count("text"))
    """)
    assert (code, output, errors) == (0, "40\n", "")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a console's Ctrl-C cannot be sent to one process there")
@pytest.mark.parametrize("timeouts", [(None,), (3600,), (None, None), (3600, None)])
def test_ctrl_c_ends_a_sync_door(timeouts: tuple[float | None, ...]) -> None:
    """Ctrl-C while providers hang cancels them and ends the process as KeyboardInterrupt does."""
    process = started(f"""
        import asyncio
        from foreword import SystemPrompt
        prompt = SystemPrompt()
        gone = []
        async def hanging():
            print("asked")
            try:
                await asyncio.sleep(3600)
            finally:
                gone.append(1)
        for number, timeout in enumerate({timeouts}):
            prompt.section(f"s{{number}}", hanging, order=number, timeout=timeout)
        try:
            prompt.render_sync()
        finally:
            while len(gone) < {len(timeouts)}: pass  # in a thread of its own, this may take a moment
            print("all gone")
    """)
    try:
        assert process.stdout is not None
        for _ in timeouts:
            assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=FAR / 2)
    except subprocess.TimeoutExpired:
        raise AssertionError("Ctrl-C does not end the process") from None
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGINT
    assert output == "all gone\n"
    assert errors.splitlines()[-1] == "KeyboardInterrupt"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a console's Ctrl-C cannot be sent to one process there")
def test_ctrl_c_ends_a_sync_door_whose_provider_never_goes() -> None:
    """With a timeout far off and a provider that swallows its cancellation, Ctrl-C still ends the process."""
    process = started(f"""{CLINGING}
async def announcing():
    print("asked")
    await clinging()
prompt.section("s", announcing, order=1, timeout=3600)
prompt.render_sync()
""")
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "asked\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=FAR / 2)
    except subprocess.TimeoutExpired:
        raise AssertionError("Ctrl-C does not end the process") from None
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGINT
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
