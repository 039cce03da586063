"""Running the command line: in this process, in a process of its own behind pipes, or in a terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from click.testing import CliRunner

from foreword.cli.main import main

COMMAND = (sys.executable, "-m", "foreword")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_OF_THE_OUTSIDE = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "COLORTERM", "PYTHONIOENCODING", "TTY_COMPATIBLE")


_written: set[str] = set()  # folders


@dataclass(frozen=True)
class Ran:
    """What a command did. In a terminal all it says comes as `out`."""

    code: int
    out: str
    err: str = ""


def write(folder: Path, code: str, name: str = "target.py") -> str:
    """A Python file; gives back its path as a target has it."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(code), encoding="utf-8")
    _written.add(str(path.parent))
    return str(path)


def run(*arguments: str, columns: int = 100, folder: Path | None = None) -> Ran:
    """Run in this process, with pipes for outputs."""
    with chdir(folder or Path.cwd()):
        done = CliRunner(env={"COLUMNS": str(columns)}).invoke(main, arguments, prog_name="foreword")
    _forget_modules()
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Ran(done.exit_code, done.stdout_bytes.decode(), done.stderr)


def piped(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run in a process of its own, with pipes for outputs."""
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, cwd=folder, env=_environment(environment), check=False, timeout=60
    )


def in_terminal(*arguments: str, folder: Path, columns: int = 100, **environment: str) -> Ran:
    """Run in a process of its own, in a terminal of that many columns."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=_environment(environment)
    )
    os.close(theirs)
    with process:
        said = b"".join(_read(ours))
        os.close(ours)
        code = process.wait(timeout=60)
    return Ran(code, said.decode().replace("\r\n", "\n"))


def plain(text: str) -> str:
    """A text without its colours."""
    return COLOUR.sub("", text)


def _forget_modules() -> None:
    """Modules that were read from files written here go, so that others may have their names."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and str(Path(file).parent) in _written:
            del sys.modules[name]


def _read(descriptor: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(descriptor, 65536)
        except OSError:  # how Linux says that the other side has closed
            return
        if not data:
            return
        yield data


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _OF_THE_OUTSIDE}
    return {**kept, "TERM": "xterm-256color", "PYTHONUTF8": "1", **given}
