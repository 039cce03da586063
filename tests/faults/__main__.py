"""The fault suite at its nightly size: `python -m tests.faults`, which is `make faults`. Prints what was found."""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.faults import shim
from tests.faults.running import figures_of, seed

KILLS, LOSSES, CONTROLS, EVERY, RACES = 1000, 500, 100, 1, 1000


def kills(folder: Path, made: Path | None, chance: str) -> str:
    """Processes killed at random moments."""
    figures = figures_of("kills", folder, KILLS, chance)
    return (
        f"{figures['kills']:,} kills ({_kinds(figures)}): every log verifies; of {figures['heads']:,} acknowledgements "
        f"held against what was left, none was lost"
    )


def losses(folder: Path, made: Path | None, chance: str) -> str:
    """Power lost at random moments."""
    figures = figures_of("power", folder, LOSSES, chance, with_shim=made)
    return (
        f"{figures['losses']:,} losses of power ({_kinds(figures)}; {figures['changes']:,} changes of files and names, "
        f"{figures['syncs']:,} syncs): every log verifies; of {figures['heads']:,} acknowledgements, none was lost"
    )


def control(folder: Path, made: Path | None, chance: str) -> str:
    """The same without syncs, which must lose something."""
    figures = figures_of("power", folder, CONTROLS, chance, "--control", "--count", with_shim=made)
    assert figures.get("lost"), "the control lost nothing, so the losses of power prove nothing"
    return (
        f"control, synchronous=NORMAL: of {figures['losses']:,} losses of power, {figures['lost']:,} lost something "
        f"that was acknowledged"
    )


def calls(folder: Path, made: Path | None, chance: str) -> str:
    """Calls of the system that fail."""
    figures = figures_of("calls", folder, EVERY, with_shim=made)
    return (
        f"{figures['victims']:,} victims, each with its n-th call failing, or all from it on: {figures['failed']:,} were "
        f"told by one clear error, nothing was tried again blindly, {figures['went']:,} went on where they were when "
        f"the disk was well, the others when they opened the store anew; nothing acknowledged was lost"
    )


def races(folder: Path, made: Path | None, chance: str) -> str:
    """Two processes that want one session."""
    figures = figures_of("races", folder, RACES, chance)
    return (
        f"{figures['races']:,} races for a session, its writer stopped and taken over "
        f"({figures.get('stopped within a transaction', 0):,} times first found within a transaction): one chain each, "
        f"the loser always fenced off, no event interleaved"
    )


def _kinds(figures: dict[str, int]) -> str:
    opening = "while it did "
    return ", ".join(f"{kind.removeprefix(opening)} {count}" for kind, count in figures.items() if opening in kind)


def main() -> int:
    """Run all; 1 if anything was not as it should be."""
    suites: list[Callable[[Path, Path | None, str], str]] = [kills, losses, control, calls, races]
    chance, failed, missing = seed(), 0, shim.missing()
    print(f"── faults: SQLite {sqlite3.sqlite_version}, Python {sys.version.split()[0]}, seed {chance}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        made = None if missing else shim.build(Path(folder))
        for suite in suites:
            if made is None and suite not in (kills, races):
                print(f"skipped {suite.__name__}: {missing}", flush=True)
                continue
            stage, began = Path(folder) / suite.__name__, time.monotonic()
            stage.mkdir()
            try:
                told = suite(stage, made, chance)
            except AssertionError as error:
                told, failed = f"FAILED {suite.__name__}: {error}", 1
            print(f"{told} ({time.monotonic() - began:.0f} s)", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
