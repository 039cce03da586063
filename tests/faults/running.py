"""Runs the suites of this folder, each in a Python of its own, and gives their figures."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

from tests.faults import shim

__all__ = ["figures_of", "seed"]

_ROOT = Path(__file__).parents[2]


def seed() -> str:
    """What decides all chances: another one each time, or that of ``FOREWORD_FAULTS_SEED``; failures name it."""
    return os.environ.get("FOREWORD_FAULTS_SEED") or f"{random.SystemRandom().getrandbits(32):08x}"


def figures_of(suite: str, folder: Path, *arguments: object, with_shim: Path | None = None) -> dict[str, int]:
    """Run one of the suites to its end.

    Args:
        suite: the name of its module.
        folder: an empty one, for its stores.
        arguments: what follows on its command line.
        with_shim: the built shim that it needs.

    Raises:
        AssertionError: something was not as it should be; tells all that the suite said.
    """
    command = ["-m", f"tests.faults.{suite}", os.path.realpath(folder), *map(str, arguments)]
    python = [sys.executable] if with_shim is None else shim.python_with(with_shim)
    paths = os.pathsep.join([str(_ROOT), *sys.path])
    done = subprocess.run(
        [*python, *command], capture_output=True, text=True, check=False, cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    figures: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return figures
