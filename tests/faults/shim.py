"""The preloaded shim, as Python sees it: built from shim.c, and armed in a process that was started with it."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["arm", "build", "calls", "disarm", "mark", "missing", "python_with"]

_SOURCE = Path(__file__).with_name("shim.c")
CHANGES = "CWTSUR"
"""The kinds of calls that change something on a disk."""


def missing() -> str | None:
    """What this machine lacks for a shim; None if nothing."""
    if sys.platform != "linux":
        return "not Linux, where LD_PRELOAD puts a library before the system's"
    return None if shutil.which("gcc") else "no gcc to build the shim with"


def build(folder: Path) -> Path:
    """Compile it."""
    made = folder / "shim.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-O2", "-o", made, _SOURCE, "-ldl", "-lpthread"], check=True, capture_output=True
    )
    return made


def python_with(shim: Path, *arguments: str) -> list[str]:
    """The command of a Python that has it, for `subprocess`; give it `environment`, too."""
    return ["env", f"LD_PRELOAD={shim}", sys.executable, *arguments]


# -- in a process that has it ------------------------------------------------------------------------------------------


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def arm(
    folder: Path, journal: int = -1, *, stop_at: int = 0, fail_at: int = 0, fail_with: int = errno.EIO,
    always: bool = False, kinds: str = CHANGES,
) -> None:  # fmt: skip
    """From now on watch the files in a folder.

    Args:
        folder: which; absolute, and without symbolic links.
        journal: a descriptor to write down what is done; -1 for none.
        stop_at: the number of the call, from 1, at which the process is killed before it is done; 0 for none.
        fail_at: the number of the call that fails; 0 for none.
        fail_with: the errno that it gives.
        always: let all that follow fail, too.
        kinds: of calls, which are counted and may fail; see shim.c.
    """
    _library().shim_arm(
        os.fsencode(folder), journal, ctypes.c_long(stop_at), ctypes.c_long(fail_at), fail_with, int(always),
        kinds.encode(),
    )  # fmt: skip


def disarm() -> None:
    """Let nothing fail any more, and kill nobody. The journal goes on."""
    _library().shim_disarm()


def calls() -> int:
    """How many calls were counted since it was armed."""
    _library().shim_calls.restype = ctypes.c_long
    return int(_library().shim_calls())


def mark(text: str) -> None:
    """Write a text into the journal."""
    _library().shim_mark(text.encode())
