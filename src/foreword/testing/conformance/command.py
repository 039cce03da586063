"""The command: replay files, print what differs."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from foreword.testing.conformance.comparison import mismatches
from foreword.testing.conformance.drivers import Kernel, Standalone
from foreword.testing.conformance.scenario import ScenarioError, load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foreword.testing.conformance.drivers import Driver
    from foreword.testing.conformance.replay import Door
    from foreword.testing.conformance.scenario import Scenario

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay the files named on the command line, print what differs, and give the exit code."""
    options = _arguments(arguments)
    try:
        passed, failed = _replayed(options, [(path, load(path)) for path in options.files])
    except ScenarioError as error:
        print(_printable(str(error), sys.stderr.encoding), file=sys.stderr)
        return 2
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


_DRIVERS: dict[str, tuple[Driver, Door]] = {"standalone": (Standalone(), "sync"), "kernel": (Kernel(), "async")}
"""What a driver is called, and the door that it is used through when none is named."""


class _Options(argparse.Namespace):
    files: list[str]
    driver: str
    door: Door | None


def _arguments(arguments: Sequence[str] | None) -> _Options:
    parser = argparse.ArgumentParser(
        prog="python -m foreword.testing.conformance",
        description="Replay recorded prompt-assembly scenarios and print where the answers differ.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file of scenarios, one JSON object a line")
    parser.add_argument("--driver", choices=_DRIVERS, default="standalone", help="what assembles (standalone)")
    parser.add_argument("--door", choices=("sync", "async"), help="how it is asked to (sync; a kernel only async)")
    options = parser.parse_args(arguments, namespace=_Options())
    if options.driver == "kernel" and options.door == "sync":
        parser.error("--driver kernel runs in an event loop: use --door async")
    return options


def _replayed(options: _Options, files: Sequence[tuple[str, Sequence[Scenario]]]) -> tuple[int, int]:
    """Replay all scenarios, print their mismatches, and count those that passed and those that failed."""
    driver, usual = _DRIVERS[options.driver]
    passed = failed = 0
    for path, scenarios in files:
        for scenario in scenarios:
            found = mismatches(scenario, door=options.door or usual, driver=driver)
            passed, failed = (passed, failed + 1) if found else (passed + 1, failed)
            for mismatch in found:
                print(_printable(f"{path}: {mismatch}", sys.stdout.encoding))
    return passed, failed


def _printable(text: str, encoding: str | None) -> str:
    """Escape what the terminal cannot show, lone surrogates among it."""
    return text.encode(encoding or "utf-8", "backslashreplace").decode(encoding or "utf-8")
