"""The log: what it adds to a step whose header stays, and what verifying and rebuilding take.

A step is logged as the agent's loop does it, in a store in memory: no disk is waited for. The body of the request is
there anyway, since it is sent; its digest is the log's own doing, and counts. Each body is that of the step before with
one more message. Digest and flush stand apart as well.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.entrants import ours
from benchmarks.workload import SIZES
from foreword import AssistantMessage, ModelConfig, UserMessage, UserSaid, open_log
from foreword.session import (
    AssistantSaid,
    HeaderWritten,
    RequestAttempted,
    RequestEnded,
    RequestHeader,
    StepEnd,
    StepStart,
    TurnEnd,
    TurnStart,
    rebuild,
    step_trace,
    verify,
)
from foreword.testing.memory_store import MemoryStore

if TYPE_CHECKING:
    from foreword import Rendering
    from foreword.session import Log, Session

__all__ = ["measure"]

CONFIG = ModelConfig("scripted", "m1")
ANSWER = AssistantMessage("It is late because of the strike.")
SESSIONS, STEPS = 40, 12
"""Sessions are short, since a store in memory takes longer for each event that it holds already."""
LONG = 1500
"""Steps of the log that is verified; every fiftieth has another header."""


def measure() -> dict[str, float]:
    return asyncio.run(logging_adds()) | asyncio.run(reading_takes())


def workload_step() -> Callable[[], Rendering]:
    """A step of one scope of the medium workload."""
    entrant = ours.Entrant(SIZES["medium"])
    entrant.add_scope(0)
    return entrant.scopes[0].render_sync


class Logged:
    """An agent's session as far as the log is concerned: one open turn."""

    def __init__(self, session: Session) -> None:
        self.session, self.step = session, 0
        self.digests: list[float] = []  # seconds
        self.flushes: list[float] = []
        session.append(TurnStart(1))
        session.append(UserSaid(UserMessage("Why is order 4711 late?")))

    async def add(self, rendering: Rendering, body: bytes, flush: bool = True) -> None:
        """Log a step."""
        session = self.session
        self.step += 1
        session.append(StepStart(1, self.step, step_trace(rendering, session.trace)))
        header = RequestHeader.of(rendering, CONFIG)
        if session.header != header:
            session.append(HeaderWritten(header, "change" if session.header else "initial"))
        start = perf_counter()
        digest = session.body_digest("scripted", "1", body)
        self.digests.append(perf_counter() - start)
        session.append(RequestAttempted(1, self.step, 1, digest))
        if flush:
            self.flushes.append(await seconds(session.flush()))
        session.append(RequestEnded(1, self.step, 1, "stop"))
        session.append(AssistantSaid(1, self.step, ANSWER))
        session.append(StepEnd(1, self.step))


async def logging_adds() -> dict[str, float]:
    """Microseconds that a step takes longer. The last rendering is kept, as whoever sends it does."""
    render = workload_step()
    kept = render()
    header = RequestHeader.of(kept, CONFIG)
    bodies = [header.request((ANSWER,) * told).canonical() for told in range(STEPS + 1)]
    plain: list[float] = []
    logged: list[float] = []
    digests: list[float] = []
    flushes: list[float] = []
    async with open_log(MemoryStore()) as log:
        for _ in range(SESSIONS):
            async with await log.create() as session:
                steps = Logged(session)
                await steps.add(kept, bodies[0])  # the first has a header to write
                for body in bodies[1:]:
                    start = perf_counter()
                    kept = render()
                    between = perf_counter()
                    kept = render()
                    await steps.add(kept, body)
                    plain.append(between - start)
                    logged.append(perf_counter() - between)
            digests += steps.digests[1:]
            flushes += steps.flushes[1:]
    adds = (statistics.median(logged) - statistics.median(plain)) * 1e6
    return {
        "log.adds.us": adds,
        "log.adds.digest.us": statistics.median(digests) * 1e6,
        "log.adds.flush.us": statistics.median(flushes) * 1e6,
    }


async def seconds(work: Awaitable[object]) -> float:
    start = perf_counter()
    await work
    return perf_counter() - start


async def reading_takes() -> dict[str, float]:
    """A log in a file: what verifying takes an event, resuming and rebuilding the last step take."""
    with tempfile.TemporaryDirectory() as folder:
        async with open_log(f"sqlite:{Path(folder) / 'foreword.db'}") as log:
            await write_long(log)
            events = sum(info.events for info in await log.sessions())
            verified = await seconds(verify(log))
            rebuilt = await seconds(rebuild(log, "last"))
            resumed = await seconds(reopened(log))
    return {
        "log.verify.each.us": verified / events * 1e6,
        "log.rebuild.ms": rebuilt * 1e3,
        "log.resume.ms": resumed * 1e3,
        "log.events.count": float(events),
    }


async def write_long(log: Log) -> None:
    numbers = count()
    entrant = ours.Entrant(SIZES["medium"])
    entrant.add_scope(0)
    entrant.scopes[0].section("round", lambda: f"Round {next(numbers) // 50}.", order=200)
    async with await log.create() as session:
        steps = Logged(session)
        for at in range(LONG):
            await steps.add(entrant.scopes[0].render_sync(), b"{}", flush=at % 100 == 0)
        session.append(TurnEnd(1, "completed"))


async def reopened(log: Log) -> None:
    async with await log.resume("last"):
        pass
