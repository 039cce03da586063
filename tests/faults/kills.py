"""Victims that are killed at random moments: `python -m tests.faults.kills FOLDER KILLS SEED`.

A process of its own, so that victims can be forked from it, which is much faster than starting a Python for each. It has
a store open only while no victim is forked.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import anyio
from tests.faults import formats
from tests.faults.deeds import KINDS, Told, check, do

_STORES = 12
"""How many victims work on one store after each other."""


def victim(path: Path, kind: str, chance: random.Random, tell: int) -> None:
    """In the child: go on until killed."""

    def say(line: str) -> None:
        os.write(tell, f"{line}\n".encode())

    anyio.run(partial(do, path, chance, say, kind), backend=chance.choice(["asyncio", "trio"]))


def killed(path: Path, kind: str, chance: random.Random, lines: int, seconds: float) -> list[str]:
    """Have a victim killed some time after it told of so much; gives all that it told."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(told)
        victim(path, kind, chance, tell)
        os._exit(0)
    os.close(tell)
    with os.fdopen(told) as pipe:
        heard = [pipe.readline() for _ in range(lines)]
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "it ended by itself"
        heard += pipe.readlines()
    return [line.rstrip("\n") for line in heard]


def main(folder: str, kills: str, seed: str) -> None:
    """Kill so many victims; prints what they had been told was done."""
    chance = random.Random(seed)
    told, path = Told(), Path()
    figures: Counter[str] = Counter()
    for at in range(int(kills)):
        if at % _STORES == 0:
            told, path = Told(), Path(folder) / f"{at}" / "foreword.db"
        formats.be(formats.of(path) if path.exists() else 0)
        kind = KINDS[at % len(KINDS)]
        begins = at % 4 == 0
        lines = 0 if begins else chance.randint(1, 8)
        seconds = chance.uniform(0, 0.1 if begins else 0.02)
        told.take(killed(path, kind, random.Random(f"{seed} {at}"), lines, seconds))
        try:
            anyio.run(check, path, told)
        except BaseException as error:
            error.add_note(f"at kill {at} of seed {seed}, in {kind}, of {path}")
            raise
        figures.update({"kills": 1, f"while it did {kind}": 1, "heads": told.lines})
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
