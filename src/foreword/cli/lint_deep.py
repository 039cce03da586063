"""``foreword lint --deep``: fresh processes make the same prompt, each with one thing changed.

A process is this module, run with a task on its standard input; it writes what it made to a file. Processes run one
after the other, since the plugins of a deployment may not like to meet themselves.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from foreword.cli.faults import Fault, in_one_line, paragraph
from foreword.cli.lint_target import Asked, Target, asking
from foreword.cli.typed import is_deployment
from foreword.explain.lint.clock import can_move_clock, moved_clock
from foreword.explain.lint.gathering import Wanted, agather
from foreword.explain.lint.processes import Run
from foreword.prompt.context import AssembleContext

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["runs_of"]

_SEEDS: Final = 4
"""Other hash seeds that are tried: two names in a set come in one order under every second seed."""


@dataclass(frozen=True, slots=True)
class _Variation:
    """What is different in a process."""

    words: str  # as the end of a sentence
    seed: int = 0
    backwards: bool = False
    moved: bool = False


def runs_of(target: Target) -> tuple[Run, ...]:
    """What fresh processes make of a target: the first as a rule, each other with one thing changed.

    Raises:
        Fault: a process failed; with what it said.
    """
    with TemporaryDirectory(prefix="foreword-lint-") as folder:
        file = Path(folder) / "run.json"
        return tuple(_run(target, variation, file) for variation in _variations(target))


def _variations(target: Target) -> Iterator[_Variation]:
    yield _Variation("")
    yield _Variation("in another process")
    for seed in range(1, _SEEDS + 1):
        yield _Variation(f"under another hash seed (PYTHONHASHSEED={seed})", seed)
    if is_deployment(target.typed):
        yield _Variation("when the plugins are loaded in the opposite order", backwards=True)
    if can_move_clock():
        yield _Variation("when the clock is moved", moved=True)


def _run(target: Target, variation: _Variation, file: Path) -> Run:
    task = {
        "typed": target.typed,
        "agent": target.agent,
        "backwards": variation.backwards,
        "moved": variation.moved,
        "variation": variation.words,
        "file": str(file),
    }
    done = subprocess.run(
        [sys.executable, "-P", "-m", "foreword.cli.lint_deep"],
        input=json.dumps(task),
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, "PYTHONHASHSEED": str(variation.seed), "PYTHONUTF8": "1"},
        check=False,
    )
    if done.returncode:
        said = in_one_line(done.stderr) if done.stderr.strip() else f"exit code {done.returncode}"
        raise Fault(f"a fresh process could not make the prompt {variation.words}".rstrip() + f": {said}")
    return Run.from_json(json.loads(file.read_text("utf-8")))


# -- in the other process ----------------------------------------------------------------------------------------------


def _carry_out(task: dict[str, Any]) -> None:
    target = Target(task["typed"], task["agent"], task["backwards"])

    async def ask(asked: Asked) -> Run:
        wanted = Wanted(asked.prompt, AssembleContext(), asked.agents, again=False, section_tokens=1)
        return Run.of(replace(await agather(wanted), hide=asked.hide), task["variation"])

    with moved_clock() if task["moved"] else nullcontext(), asking(target, "linting", ask) as answer:
        Path(task["file"]).write_text(json.dumps(answer.value.to_json()), "utf-8")


def _main() -> int:
    import click

    from foreword.errors import ForewordError

    try:
        _carry_out(json.load(sys.stdin))
    except click.ClickException as fault:
        print(fault.format_message(), file=sys.stderr)
        return 2
    except ForewordError as error:
        print(paragraph(error), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(_main())
