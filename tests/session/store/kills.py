"""Writers that are killed at random moments, and a look at what they left: `python -m tests.session.store.kills`.

A process of its own, so that writers can be forked from it, which is much faster than starting a Python for each. It
has the store open only while no writer is forked.
"""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import time
from pathlib import Path

import anyio
from tests.session.store.support import batch_on, check_whole, new_row, private, shared

from foreword.errors import UnknownSessionError
from foreword.session.store.sqlite import SqliteStore


async def write_on(path: Path, tell: int) -> None:
    """Write batches without end, and tell of each that was acknowledged."""
    async with SqliteStore(path) as store:
        try:
            claim = await store.claim("s")
        except UnknownSessionError:
            claim = await store.claim("s", new=new_row("s"))
        while True:
            batch = batch_on(claim.row, 1 + claim.row.count % 7, [private("x" * 3000), shared("b")])
            head = await claim.write(batch)
            os.write(tell, f"wrote {batch.count_after} {head.hex()}\n".encode())
            if claim.row.count % 3 == 0:
                await store.checkpoint()


def killed_writer(path: Path, backend: str, acknowledged: int, seconds: float) -> str:
    """Have a writer killed some time after it told of so many batches; gives all that it told."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(told)
        anyio.run(write_on, path, tell, backend=backend)
    os.close(tell)
    with os.fdopen(told) as pipe:
        heard = "".join(pipe.readline() for _ in range(acknowledged))
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "it ended by itself"
        return heard + pipe.read()


async def check(path: Path, told: str) -> None:
    """All that was acknowledged is there, the chain is whole, and the session can be claimed and written."""
    async with SqliteStore(path) as store:
        acknowledged = re.findall(r"^wrote (\d+) (\w+)$", told, re.MULTILINE)
        if acknowledged:
            count, head = acknowledged[-1]
            assert (await check_whole(store, "s")).count >= int(count)
            (last,) = await store.events("s", int(count) - 1, int(count))
            assert last.digest.hex() == head
        there = await store.session("s") is not None
        claim = await store.claim("s", new=None if there else new_row("s"))
        await claim.write(batch_on(claim.row))
        await check_whole(store, "s")


def main(folder: str, kills: str) -> None:
    """Kill some writers of stores that are there, and every fourth while it may still be making one."""
    chance = random.Random()
    acknowledged = 0
    for at in range(int(kills)):
        begins = at % 4 == 0
        path = Path(folder) / (f"new-{at}.db" if begins else f"{at // 20}.db")
        wait_for, seconds = (0, chance.uniform(0, 0.1)) if begins else (chance.randint(2, 7), chance.uniform(0, 0.01))
        told = killed_writer(path, ("asyncio", "trio")[at % 2], wait_for, seconds)
        anyio.run(check, path, told)
        acknowledged += told.count("wrote")
    print(acknowledged)


if __name__ == "__main__":
    main(*sys.argv[1:])
