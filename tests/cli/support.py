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


PLUGINS = """
    from pathlib import Path
    from pydantic import BaseModel, SecretStr
    from foreword import SystemPrompt, ToolSchema, plugin

    Path(__file__).with_name("mark").write_text("ran")
    print("importing plugs")

    class Config(BaseModel):
        currency: str = "EUR"
        key: SecretStr | None = None

    @plugin(name="acme-billing", config=Config)
    def billing(config: Config, prompt: SystemPrompt) -> None:
        prompt.variable("currency", config.currency)
        prompt.section("billing:rules", "Quote prices in {{currency}}.", order=20)
        prompt.context("billing:hours", "Open from nine to five.", order=10)
        prompt.tools([ToolSchema("refund", "Refund an order.", {"type": "object"})])
        prompt.section("tool:refund", "Refund once.", order=110, requires_tools=["refund"])

    @plugin(name="acme-legal")
    def legal(prompt: SystemPrompt) -> None:
        prompt.section("legal:notice", "This is no advice.", order=50)

        @prompt.on_assemble
        async def watch(assembly, context, call_next):
            return await call_next()

    @plugin(name="acme-quiet")
    def quiet() -> None: ...
"""
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


def deployment(folder: Path, text: str, name: str = "foreword.yaml") -> Path:
    """A deployment file, without its first line, beside the plugins that tests use; gives back its path."""
    write(folder, PLUGINS, "plugs.py")
    file = folder / name
    file.write_text(("foreword = 1\n" if name.endswith(".toml") else "foreword: 1\n") + dedent(text).lstrip("\n"))
    return file


def run(*arguments: str, columns: int | None = 100, folder: Path | None = None, **environment: str) -> Ran:
    """Run in this process, with pipes for outputs."""
    given = {"COLUMNS": None if columns is None else str(columns), **environment}
    with chdir(folder or Path.cwd()):
        done = CliRunner(env=given).invoke(main, arguments, prog_name="foreword")
    _forget_modules()
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Ran(done.exit_code, done.stdout_bytes.decode(), done.stderr)


def piped(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run in a process of its own, with pipes for outputs."""
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        cwd=folder,
        env=clean_environment(environment),
        check=False,
        timeout=60,
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
        [*COMMAND, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=clean_environment(environment),
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


def clean_environment(given: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _OF_THE_OUTSIDE}
    return {**kept, "TERM": "xterm-256color", "PYTHONUTF8": "1", **given}
