"""Start-up: whole processes beside each other, so what an interpreter and others' libraries take can be taken off.

What counts is the processor's time, which others on the machine do not stretch; the wall's stands beside it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Final

from benchmarks.figures import Figures
from benchmarks.peers import PEERS, ROOT, command

__all__ = ["measure_startup"]

BARE: Final = "pass"
FIRST: Final = """\
from foreword import SystemPrompt
prompt = SystemPrompt(persona="You are {{company}}'s billing assistant.")
prompt.variable("company", "Acme")
prompt.section("rules", "Never promise a refund.", order=20)
prompt.render_sync().text
"""
SHOW: Final = ["show", "examples/review/foreword.yaml", "--agent", "reviewer"]
LIBRARIES: Final = f"""\
import atexit, sys

def tell():
    ours = ("foreword", "review_plugins", "__main__")
    print(*(name for name in sys.modules if name.partition(".")[0] not in ours), file=sys.stderr)

atexit.register(tell)
sys.argv[1:] = {SHOW!r}
from foreword.cli.main import main
main()
"""
"""Runs the command, and tells which modules that are not ours it has loaded, in their order."""
ALONE: Final = """\
for name in {}:
    try:
        __import__(name)
        print(name)
    except ImportError:
        pass
"""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a process took."""

    cpu: float  # milliseconds
    wall: float


def measure_startup(figures: Figures, rounds: int) -> None:
    """Each round times the processes in turn; ours and the one to compare with stand beside each other."""
    show = [str(Path(sys.executable).with_name("foreword")), *SHOW]
    same_libraries = [sys.executable, "-c", importing(libraries())]
    pairs = {
        "first": ([sys.executable, "-c", FIRST], [sys.executable, "-c", BARE]),
        "show": (show, same_libraries),
    }
    for number in range(-1, rounds):  # the first run writes bytecode, and does not count
        for name, (ours, base) in pairs.items():
            taken, compared = spawn(ours), spawn(base)
            if number >= 0:
                note(figures, name, taken, compared)
        for peer in PEERS:
            if peer.name not in figures.missing and number >= 0:
                figures.add(f"process.{peer.name}.ms", spawn(command(peer, measure="first")).cpu)


def note(figures: Figures, name: str, taken: Taken, compared: Taken) -> None:
    figures.add(f"startup.{name}.over.ms", taken.cpu - compared.cpu)
    figures.add(f"startup.{name}.over.wall.ms", taken.wall - compared.wall)
    figures.add(f"startup.{name}.ms", taken.cpu)
    figures.add(f"startup.{name}.compared.ms", compared.cpu)


def spawn(command: Sequence[str]) -> Taken:
    """Run a process to its end.

    Raises:
        CalledProcessError: it failed.
    """
    start = perf_counter()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Taken((usage.ru_utime + usage.ru_stime) * 1e3, (perf_counter() - start) * 1e3)


def libraries() -> list[str]:
    """The modules that the command loads and that are not ours, as far as they can be imported by themselves."""
    done = subprocess.run([sys.executable, "-c", LIBRARIES], capture_output=True, text=True, cwd=ROOT, check=True)
    alone = ALONE.format(done.stderr.splitlines()[-1].split())
    return subprocess.run([sys.executable, "-c", alone], capture_output=True, text=True, check=True).stdout.split()


def importing(names: Sequence[str]) -> str:
    """A program that does nothing but import."""
    return f"for name in {names!r}:\n    __import__(name)"
