"""Calls of the system that fail, one after the other: `python -m tests.faults.calls FOLDER EVERY`, with the shim.

A victim does some of everything, and the n-th call by which it touches the disk fails; the next victim's fails later, by
EVERY, until all went well. Whatever fails, the victim is told by one clear error, does not try again by itself, and can
go on when the disk is well; and all that was acknowledged is there.
"""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
from tests.faults import formats, shim
from tests.faults.deeds import Told, Victim, check
from tests.faults.disk import Change, changes_in

from foreword.errors import ForewordError

SCRIPT = ("append", "erase", "fork", "checkpoint", "export", "take over", "append", "migrate", "append")


_MOST_CALLS = 2000
"""More than a victim makes."""


@dataclass(frozen=True, slots=True)
class Fault:
    """How calls fail."""

    name: str
    kinds: str  # of calls that are counted and fail
    error: int
    always: bool  # all that follow, too, or only one


FAULTS = (
    Fault("a failing disk", "CWTSUR", errno.EIO, always=True),
    Fault("one failing change", "CWTSUR", errno.EIO, always=False),
    Fault("a full disk", "CWT", errno.ENOSPC, always=True),
    Fault("one failing sync", "S", errno.EIO, always=False),
    Fault("what cannot be read", "G", errno.EIO, always=False),
    Fault("what cannot be opened", "O", errno.EIO, always=False),
    Fault("too many open files", "OC", errno.EMFILE, always=True),
)


def unclear(error: BaseException, path: Path) -> str | None:
    """What is wrong with an error as something to tell a user; None if nothing is."""
    if isinstance(error, BaseExceptionGroup):
        return next((why for each in error.exceptions if (why := unclear(each, path)) is not None), None)
    if not isinstance(error, ForewordError):
        return f"{type(error).__name__}: {error}"
    text = str(error)
    return None if text.isprintable() and str(path.parent) in text else f"it does not say where: {text}"


async def suffer(path: Path, tell: int, fault: Fault, fail_at: int, backend: str) -> None:
    """In the child: do things until one fails; then, with the disk well again, go on."""

    def say(line: str) -> None:
        os.write(tell, f"{line}\n".encode())

    victim = Victim(path, random.Random(1), say)
    try:
        await victim.open()
        for kind in SCRIPT:
            await victim.do(kind)
        await victim.close()
    except Exception as error:
        shim.mark("raised")
        shim.disarm()
        say(f"failed {unclear(error, path) or ''}")
        await go_on(victim)
    else:
        say(f"passed {shim.calls()}")


async def go_on(victim: Victim) -> None:
    """The victim flushes what it has, and closes; what it is told then counts as well."""
    if hasattr(victim, "log"):
        if hasattr(victim, "session"):
            try:
                await victim.flush()
                victim.tell("went on")
            except ForewordError as error:
                victim.tell(f"stays failed {error.kind}")
        await victim.close()


def suffered(path: Path, fault: Fault, fail_at: int, backend: str) -> list[str]:
    """What a victim told."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(told)
        signal.alarm(60)
        journal = os.open(path.parent.with_suffix(".journal"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        shim.arm(path.parent, journal, fail_at=fail_at, fail_with=fault.error, always=fault.always, kinds=fault.kinds)
        anyio.run(partial(suffer, path, tell, fault, fail_at, backend), backend=backend)
        sys.stderr.flush()
        os._exit(0)
    os.close(tell)
    with os.fdopen(told) as pipe:
        heard = pipe.read().splitlines()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, f"it did not end well, after {heard}"
    return heard


def again(journal: Path) -> list[str]:
    """What was written or synced again between its failure and the error that told of it.

    To undo is not to try again: SQLite makes half a copy empty, and takes back what is in a rollback journal, which a
    store has while it is made.
    """
    found: list[str] = []
    failed: Change | None = None
    undone_by_journal = False
    for change in changes_in(journal):
        if change.kind == "M":
            break
        if change.name.endswith("-journal") and change.kind in "CU":
            undone_by_journal = change.kind == "C"
        if change.name.endswith(".partial") or undone_by_journal:
            continue
        if change.kind == "F" and failed is None:
            failed = change if change.other in "WTS" else None
        elif failed is not None:
            same = (change.name, change.other if change.kind == "F" else change.kind) == (failed.name, failed.other)
            if same and (failed.other == "S" or change.number == failed.number):
                found.append(f"{failed.other} of {failed.name}")
    return found


def trials(folder: Path, every: int, figures: Counter[str]) -> Iterator[tuple[str, list[str]]]:
    for fault in FAULTS:
        fail_at = 1 + len(fault.name) % every
        while True:
            stage = folder / f"{fault.name} {fail_at}".replace(" ", "-")
            stage.mkdir()
            path = stage / "foreword.db"
            formats.be(0)
            lines = suffered(path, fault, fail_at, ("asyncio", "trio")[fail_at % 2])
            where = f"{fault.name}, call {fail_at}"
            problems = [f"{where}: {line}" for line in lines if line.startswith("failed ") and line != "failed "]
            problems += [f"{where}: tried again: {each}" for each in again(stage.with_suffix(".journal"))]
            told = Told()
            told.take(line for line in lines if line.split()[0] in ("flushed", "erased", "format", "exported"))
            anyio.run(check, path, told)
            figures.update({"victims": 1, fault.name: 1})
            for line in lines:
                if line.split()[0] in ("went", "stays", "failed"):
                    figures[line.split(" ")[0]] += 1
            yield where, problems
            passed = [int(line.split()[1]) for line in lines if line.startswith("passed")]
            if passed and fail_at > passed[0]:
                break
            assert fail_at < _MOST_CALLS, f"{where}: {lines}"
            fail_at += every


def main(folder: str, every: str) -> None:
    """Let every n-th call fail; prints what came of it."""
    figures: Counter[str] = Counter()
    wrong: list[str] = []
    for _, problems in trials(Path(folder), int(every), figures):
        wrong += problems
    assert not wrong, "\n".join(wrong)
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
