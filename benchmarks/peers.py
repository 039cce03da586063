"""Who takes part, and how to run one of them in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["FLOOR", "HANDWRITTEN", "ORIGINAL", "OURS", "PEERS", "ROOT", "Peer", "run", "run_module"]

ROOT: Final = Path(__file__).resolve().parents[1]
TIMEOUT: Final = 300
"""Seconds that one process may take."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One who takes part."""

    name: str  # in tables, and in the names of figures
    module: str | None  # of benchmarks.entrants; None: it runs on Node
    variant: str | None = None


OURS: Final = Peer("foreword", "ours")
FLOOR: Final = Peer("floor", "floor")
HANDWRITTEN: Final = Peer("handwritten", "handwritten")
ORIGINAL: Final = Peer("original", None)

# Those whose ratios count stand beside each other: a slow moment of the machine then hits all of them.
PEERS: Final = (
    FLOOR,
    OURS,
    HANDWRITTEN,
    ORIGINAL,
    Peer("floor-copied", "floor", "copied"),
    Peer("handwritten-copied", "handwritten", "copied"),
    Peer("jinja2", "jinja2"),
    Peer("langchain", "langchain"),
    Peer("openai-agents", "openai_agents"),
    Peer("pydantic-ai", "pydantic_ai", "prepare"),
    Peer("pydantic-ai-run", "pydantic_ai", "run"),
)


def command(peer: Peer, **options: object) -> list[str]:
    """The command that measures a peer."""
    told = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    if peer.module is None:
        return ["node", "--expose-gc", str(ROOT / "benchmarks/node/original.mjs"), *told]
    variant = [] if peer.variant is None else ["--variant", peer.variant]
    return [sys.executable, "-m", "benchmarks.entrant", peer.module, *variant, *told]


def run(peer: Peer, **options: object) -> dict[str, Any] | str:
    """What a peer measured; a line that says why not, if it could not."""
    return answer(command(peer, **options))


def run_module(module: str, *arguments: str) -> dict[str, Any] | str:
    """What a module of the benchmarks measured in a process of its own, or why it could not."""
    return answer([sys.executable, "-m", f"benchmarks.{module}", *arguments])


def answer(command: list[str]) -> dict[str, Any] | str:
    """The JSON in a command's last line, or the line that says what it lacks."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, encoding="utf-8", timeout=TIMEOUT, cwd=ROOT, check=False
        )
    except FileNotFoundError:
        return f"there is no {command[0]} here"
    except subprocess.TimeoutExpired:
        return f"no answer in {TIMEOUT} s"
    if done.returncode:
        return complaint(done.stderr) or f"exit code {done.returncode}"
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def complaint(stderr: str) -> str:
    """The line of a traceback that tells what is wrong."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    told = [line for line in lines if "Error" in line.partition(":")[0]]
    return (told or lines or [""])[-1]
