"""How long a session of 100,000 events takes to verify, to resume and to rebuild, in a file, and in how much memory.

    python benchmarks/session_log.py [EVENTS]

The goals: resuming, and rebuilding any step, in under a second; at least 10,000 events a second verified; memory that
does not grow with the session. Seconds are those of the machine as it is; the ratio says how much of them is what
nobody is spared: reading the rows with SQLite alone, and hashing them.
"""

from __future__ import annotations

import sqlite3
import sys
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import anyio

from foreword import ToolSchema
from foreword.session import (
    AssistantSaid,
    HeaderWritten,
    RequestAttempted,
    RequestEnded,
    RequestHeader,
    Session,
    StepEnd,
    StepStart,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnStart,
    UserSaid,
    open_log,
    rebuild,
    verify,
)
from foreword.wire.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from foreword.wire.request import ModelConfig

EVENTS = 100_000
COMPACTED_EVERY = 50  # turns
ROUNDS = 3

_HEADER = RequestHeader(
    ModelConfig("openai", "gpt-5"),
    tuple(f"Section {number}. {'Mind this. ' * 20}" for number in range(20)),
    tuple(ToolSchema(f"tool_{number}", "Does something.", {"type": "object"}) for number in range(10)),
)


def take_turn(session: Session) -> None:
    """A turn of two steps, with a tool call between them."""
    turn = session.turn + 1
    call = ToolCall("call", "tool_1", '{"order": 4711}')
    session.append(TurnStart(turn))
    for step in (1, 2):
        session.append(StepStart(turn, step))
        if step == 1:
            session.append(UserSaid(UserMessage(f"Why is order {turn} late?")))
        if session.header is None:
            session.append(HeaderWritten(_HEADER, "initial"))
        session.append(RequestAttempted(turn, step, 1))
        session.append(RequestEnded(turn, step, 1, "stop"))
        session.append(AssistantSaid(turn, step, AssistantMessage("Let me see.", (call,) if step == 1 else ())))
        if step == 1:
            session.append(ToolCalled(turn, step, call))
            session.append(ToolAnswered(turn, step, ToolMessage("call", "tool_1", "It waits for stock. " * 10)))
        session.append(StepEnd(turn, step))
    session.append(TurnEnd(turn, "completed"))
    if turn % COMPACTED_EVERY == 0:
        session.replace_history(0, len(session.messages) - 1, UserMessage("What was said before."))


async def build(url: str, events: int) -> int:
    """A session of so many events; gives how many steps it has."""
    async with open_log(url) as log:
        session = await log.create("long")
        while not session.events or session.events[-1].seq < events:
            for _ in range(COMPACTED_EVERY):
                take_turn(session)
            await session.flush()
        return 2 * session.turn


async def best(work: Callable[[], Awaitable[Any]]) -> float:
    """The shortest of a few runs, in seconds."""
    times: list[float] = []
    for _ in range(ROUNDS):
        start = perf_counter()
        await work()
        times.append(perf_counter() - start)
    return min(times)


async def floor(file: Path) -> None:
    """What cannot be done without: the rows, and a digest over each."""
    with closing(sqlite3.connect(file)) as connection:
        before = b""
        for envelope, digest in connection.execute("SELECT envelope, digest FROM event ORDER BY session, seq"):
            blake2b(before + envelope, digest_size=32).digest()
            before = digest


async def peak(work: Callable[[], Awaitable[Any]]) -> float:
    """The most memory that Python's objects took meanwhile, in MiB."""
    tracemalloc.start()
    await work()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 2**20


async def measure(events: int) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "log.db"
        steps = await build(f"sqlite:{file}", events)
        async with open_log(f"sqlite:{file}") as log:
            count = (await log.sessions())[0].events
            print(f"{count:,} events, {steps:,} steps, {file.stat().st_size / 2**20:.1f} MiB")

            async def resume() -> None:
                await (await log.resume("long")).close()

            least = await best(lambda: floor(file))
            print(f"{'floor':<24}{least:8.2f} s")
            for name, work in (
                ("resume", resume),
                ("rebuild the first step", lambda: rebuild(log, "long@1")),
                ("rebuild a step midway", lambda: rebuild(log, f"long@{steps // 2}")),
                ("rebuild the last step", lambda: rebuild(log, "long")),
                ("verify", lambda: verify(log)),
            ):
                seconds = await best(work)
                rate = f"{count / seconds:12,.0f} events/s" if name == "verify" else ""
                print(f"{name:<24}{seconds:8.2f} s  {seconds / least:6.1f} × floor{rate}  {await peak(work):6.1f} MiB")


if __name__ == "__main__":
    anyio.run(measure, int(sys.argv[1]) if len(sys.argv) > 1 else EVENTS)
