"""Killed: a process that is killed while it writes loses nothing that was acknowledged, and leaves a whole log."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.session.support import take_turn

from foreword.session import TurnEnd, open_log, rebuild, verify

WRITER = """\
import sys, anyio
from tests.session.support import answer, ask, end, take_tool_turn
from foreword.session import open_log

async def main():
    async with open_log(f"sqlite:{sys.argv[1]}") as log:
        there = [info.id for info in await log.sessions()]
        session = await (log.resume("clerk") if there else log.create("clerk"))
        while True:
            ask(session)
            print(await session.flush(), flush=True)
            answer(session)
            print(await session.flush(), flush=True)
            end(session)
            take_tool_turn(session)
            print(await session.flush(), flush=True)

anyio.run(main)
"""


def run_and_kill(file: Path, lines: int) -> list[str]:
    """Let the writer acknowledge some flushes, kill it, and give the heads that it told."""
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(file)], stdout=subprocess.PIPE, cwd=root, text=True, encoding="ascii"
    ) as process:
        assert process.stdout is not None
        heads = [process.stdout.readline().strip() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        heads += [line.strip() for line in process.stdout if line.endswith("\n")]
    assert all(heads), "the writer ended by itself"
    return heads


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_killed_writer(tmp_path: Path) -> None:
    """After each kill every head that was told is in the chain, the log verifies, what was open is closed, every
    attempt can be rebuilt, and the next process goes on."""
    file = tmp_path / "log.db"
    told: list[str] = []
    for _ in range(4):
        told += run_and_kill(file, random.randint(1, 12))
        async with open_log(f"sqlite:{file}", read_only=True) as log:
            for head in told:
                assert (await verify(log, head=head)).intact
            view = await log.view("clerk")
            last = [event async for event in view.events()][-1].event
            assert isinstance(last, TurnEnd)
            for number in range(1, view.steps + 1):
                assert (await rebuild(log, f"clerk@{number}")).canonical
    async with open_log(f"sqlite:{file}") as log:
        session = await log.resume("clerk")
        take_turn(session)
        await session.flush()
        assert (await verify(log, head=told[0])).intact
