"""Victims whose machine loses power: `python -m tests.faults.power FOLDER LOSSES SEED`, with the shim.

A victim is killed at one of the calls by which it changes the disk, or when something has just been acknowledged to
it; then what it had written and not synced is undone at random, and the look is at what the disk holds then. The next
victim goes on with that.

With ``--control`` victims do not sync each transaction, and something must get lost: if not, nothing is proved here.
It ends with the first thing lost, or tells of all with ``--count``.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import anyio
from tests.faults import formats, shim
from tests.faults.deeds import KINDS, LOST, Told, check, do
from tests.faults.disk import Disk, changes_in

from foreword.session.store import connections

_STORES = 8
"""How many losses one store goes through."""

_DEEDS = 6
"""How many things a victim does at most; it is killed before, mostly."""


def victim(path: Path, kind: str, chance: random.Random, tell: int, stop_at: int, full_sync: bool) -> None:
    """In the child: work until killed."""
    if not full_sync:
        connections.SETTINGS["synchronous"] = 1  # NORMAL, for the control
    journal = os.open(path.parent.with_suffix(".journal"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)

    moment = random.Random(stop_at)

    def say(line: str) -> None:
        os.write(tell, f"{line}\n".encode())
        if moment.random() < (0.8 if line.startswith("erased") else 0.02):
            os.kill(os.getpid(), signal.SIGKILL)  # the moment after a promise

    shim.arm(path.parent, journal, stop_at=stop_at)
    anyio.run(partial(do, path, chance, say, kind, times=_DEEDS), backend=chance.choice(["asyncio", "trio"]))
    os.kill(os.getpid(), signal.SIGKILL)


def unplugged(path: Path, kind: str, chance: random.Random, stop_at: int, full_sync: bool) -> list[str]:
    """Have a victim killed at that call; gives all that it told."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(told)
        victim(path, kind, chance, tell, stop_at, full_sync)
    os.close(tell)
    with os.fdopen(told) as pipe:
        heard = pipe.read().splitlines()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, f"it ended by itself, after {heard}"
    return heard


def after(before: Path, stage: Path, journal: Path, chance: random.Random) -> tuple[int, int]:
    """Put into a new folder what may be left of one; gives how many changes and how many syncs there were."""
    disk, changes = Disk(before), 0
    for change in changes_in(journal):
        disk.follow(change)
        changes += 1
    stage.mkdir()
    disk.after_power_loss(stage, chance)
    return changes, disk.synced


def main(folder: str, losses: str, seed: str, *options: str) -> None:
    """Let the power go so often; prints what was found."""
    control = "--control" in options
    kinds = KINDS[:1] if control else KINDS
    chance, figures = random.Random(seed), Counter[str]()
    told, stage, store = Told(), Path(), -1
    for at in range(int(losses)):
        if store < 0 or at - store == _STORES:
            told, store, stage = Told(), at, Path(folder) / f"{at}"
            stage.mkdir()
        path, kind = stage / "foreword.db", kinds[at % len(kinds)]
        formats.be(formats.of(path) if path.exists() else 0)
        before = _copy(stage)
        told.take(unplugged(path, kind, random.Random(f"{seed} {at}"), chance.randint(1, 400), not control))
        stage = Path(folder) / f"{store}-{at + 1}"
        changes, synced = after(before, stage, path.parent.with_suffix(".journal"), chance)
        figures.update({"losses": 1, "changes": changes, "syncs": synced, f"while it did {kind}": 1})
        try:
            anyio.run(check, stage / "foreword.db", told)
        except BaseException as error:
            if not (control and LOST in str(error)):
                error.add_note(f"at loss {at} of seed {seed}, in {kind}, of {stage}")
                raise
            figures["lost"] += 1
            store = -1
            if "--count" not in options:
                break
        figures["heads"] += told.lines
    print(json.dumps(figures))


def _copy(stage: Path) -> Path:
    """What is on the disk before a victim: all of it sure."""
    before = stage.with_suffix(".before")
    before.mkdir()
    for each in stage.iterdir():
        if each.is_file():
            (before / each.name).write_bytes(each.read_bytes())
    return before


if __name__ == "__main__":
    main(*sys.argv[1:])
