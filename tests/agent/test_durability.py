"""What is durable when: before a request leaves, before a tool starts, before a turn's caller hears of its end."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.agent.support import Sleeps, WatchedStore, check_log, logged, said, stage

from foreword import open_log
from foreword.session import HeaderWritten, LoggedEvent, TurnEnd
from foreword.session.repair import REQUEST_OUTCOME_UNKNOWN, TOOL_OUTCOME_UNKNOWN
from foreword.session.view import SessionView
from foreword.testing import call_tools
from foreword.wire.chunks import ModelFailure

ROOT = Path(__file__).parents[2]


@pytest.mark.anyio
async def test_the_order_of_things() -> None:
    """The log is durable up to the attempt before it is sent, up to the call before its tool runs, and to the end at the end."""
    store = WatchedStore()
    busy = ModelFailure("overloaded", "overloaded", transient=True, retry_after=0.0)

    def answer(request: Any) -> Any:
        store.journal.append("request sent")
        return [busy, call_tools(look={}), "Fine."][len(play.model.requests) - 1]

    async with stage(answer, store=store) as play:

        @play.tools.register
        async def look() -> str:
            """Look."""
            store.journal.append("tool runs")
            return "seen"

        agent = await play.agent(clock=Sleeps().clock)
        await agent.run("Hi")
        store.journal.append("caller hears")
        assert store.journal == [
            "stored to request/attempt",
            "request sent",
            "stored to request/attempt",
            "request sent",
            "stored to tool/call",
            "tool runs",
            "stored to request/attempt",
            "request sent",
            "stored to turn/end",
            "caller hears",
        ]


PROGRAM = '''
"""An agent that stops at a place of a turn, says so, and waits for what comes."""

import sys
import anyio
from foreword import Context, SystemPrompt, create_agent, open_log
from foreword.agent.models import ModelAdapters
from foreword.testing import Gate, Reply, ScriptedModel, call_tools
from foreword.tools.registry import ToolRegistry

url, backend, where, how = sys.argv[1:]


def ready() -> None:
    print("ready", flush=True)


async def look() -> str:
    """Look."""
    if where == "tool":
        ready()
        await anyio.sleep_forever()
    return "seen"


async def answer(request):
    if where == "model":
        ready()
        await anyio.sleep_forever()
    if where == "text" and len(request.messages) == 2:
        return Reply(("Well, ", stop))
    return call_tools(look={}) if len(request.messages) == 2 else "Fine."


async def assembly() -> str:
    if where == "assembly":
        ready()
        await anyio.sleep_forever()
    return ""


stop = Gate()


async def main() -> None:
    async with open_log(url) as log, Context() as ctx:
        await ctx.mount(SystemPrompt, {"include_harness_identity": False, "persona": "You review."}).ready()
        await ctx.mount(ToolRegistry).ready()
        await ctx.mount(ModelAdapters).ready()
        ctx.require(ModelAdapters).register(ScriptedModel(answer))
        ctx.require(ToolRegistry).register(look)
        prompt = ctx.require(SystemPrompt)
        prompt.context("fact", "It is noon.", order=1)
        prompt.section("slow", assembly, order=1)
        agent = await create_agent(ctx, "reviewer", model="scripted:m1", log=log)
        turn = agent.run("Hi")
        if how == "with":
            async with turn:
                async for event in turn:
                    if where == "text" and type(event).__name__ == "TextDelta":
                        ready()
        else:
            await turn


anyio.run(main, backend=backend)
'''


@contextmanager
def program(tmp_path: Path, backend: str, where: str, how: str = "with") -> Iterator[subprocess.Popen[str]]:
    """The program, once it has come to a place; its store is ``log.db``."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    command = [sys.executable, str(file), f"sqlite:{tmp_path / 'log.db'}", backend, where, how]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONUNBUFFERED": "1"}, **pipes) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == "ready\n", child.stderr and child.stderr.read()
            yield child
        finally:
            child.kill()


def press_until_it_ends(child: subprocess.Popen[str]) -> None:
    """Press Ctrl-C again whenever the program has not ended after some seconds."""
    for _ in range(6):
        try:
            child.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGINT)
        else:
            return
    raise AssertionError("Ctrl-C does not end it, however often it is pressed")


async def read(view: SessionView) -> list[Any]:
    logged: list[LoggedEvent] = [each async for each in view.events()]
    return [each.event for each in logged]


@pytest.mark.parametrize(
    ("where", "codes"),
    [("assembly", []), ("model", [REQUEST_OUTCOME_UNKNOWN]), ("tool", [TOOL_OUTCOME_UNKNOWN])],
)
@pytest.mark.slow
@pytest.mark.anyio
async def test_killed(where: str, codes: list[str], tmp_path: Path, anyio_backend: str) -> None:
    """A process that is killed before the first chunk, or in a tool, leaves a log that is closed as interrupted on resume.

    The next agent goes on: the prompt is in the history, the snapshot is not repeated, and the header is a resumed one.
    """
    with program(tmp_path, anyio_backend, where) as child:
        child.kill()
        child.wait()
    url = f"sqlite:{tmp_path / 'log.db'}"
    if where == "assembly":
        async with open_log(url) as log:
            assert await log.sessions() == []
        return
    async with stage("Fine.", store=url) as play:
        (info,) = await play.log.sessions()
        view = await play.log.view(info.id)
        events = await read(view)
        assert events[-1] == TurnEnd(1, "interrupted")
        told = [getattr(each, "code", None) or getattr(getattr(each, "failure", None), "code", None) for each in events]
        assert [code for code in told if code is not None] == codes
        play.prompt.context("fact", "It is noon.", order=1)
        agent = await play.agent(session=info.id)
        assert (await agent.run("Go on")).text == "Fine."
        assert said(agent) == ["Go on"]
        assert [event.reason for event in logged(agent, HeaderWritten)] == ["resume"]
        (request,) = play.model.requests
        roles = [each["role"] for each in json.loads(request)["messages"]]
        assert roles == ["user", "user", *(["assistant", "tool"] if where == "tool" else []), "user"]


@pytest.mark.parametrize("where", ["assembly", "model", "text", "tool"])
@pytest.mark.parametrize("how", ["with", "await"])
@pytest.mark.slow
@pytest.mark.anyio
async def test_interrupted(where: str, how: str, tmp_path: Path, anyio_backend: str) -> None:
    """Ctrl-C in whatever part of a turn: the program ends as it would, and the log holds a turn that the user aborted."""
    if (where, how) == ("text", "await"):
        how = "with"  # pieces are only heard there
    with program(tmp_path, anyio_backend, where, how) as child:
        child.send_signal(signal.SIGINT)
        _, stderr = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGINT or "KeyboardInterrupt" in stderr
    async with open_log(f"sqlite:{tmp_path / 'log.db'}") as log:
        await check_log(log)
        (info,) = await log.sessions()
        assert (await read(await log.view(info.id)))[-1] == TurnEnd(1, "aborted", "user")


@pytest.mark.parametrize("where", ["model", "tool"])
@pytest.mark.slow
@pytest.mark.anyio
async def test_interrupted_twice(where: str, tmp_path: Path, anyio_backend: str) -> None:
    """A second Ctrl-C may break through: then the log is as it was written so far, and whoever resumes it closes it.

    If it does not end the program, Ctrl-C is pressed again, as a person would: asyncio loses a wake-up when the second
    falls between two of its callbacks (of 200 runs of a program of anyio alone, with the second after 0 to 5 ms, one
    hung, its main task cancelled, its future too, and no callback left to tell it; of 500 of this one two did so).
    """
    with program(tmp_path, anyio_backend, where) as child:
        child.send_signal(signal.SIGINT)
        child.send_signal(signal.SIGINT)
        press_until_it_ends(child)
    assert child.returncode not in (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS)
    async with stage("Fine.", store=f"sqlite:{tmp_path / 'log.db'}") as play:
        (info,) = await play.log.sessions()
        events = await read(await play.log.view(info.id))
        assert events[-1].reason in ("aborted", "interrupted")
        agent = await play.agent(session=info.id)
        assert (await agent.run("Go on")).text == "Fine."
