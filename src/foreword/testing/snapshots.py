"""Which prompts a test run holds against which files: writing, comparing, and finding files that no test asks for.

Loaded in every run of pytest, so all of ours is imported where it is used. Under xdist each worker keeps its own record
and sends it to the controller, which has the last word.
"""

from __future__ import annotations

import os
import re
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from foreword.prompt.rendering import Rendering
    from foreword.testing.prompt_file import PromptFile

__all__ = ["FOLDER", "Check", "Snapshots"]

FOLDER: Final = "prompt_snapshots"
"""The folder beside a test module that holds one folder for each such module."""

_SUFFIX: Final = ".txt"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_RESERVED: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # Windows has no such files
_OTHERS: Final = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
_SENT: Final = "foreword_prompt_snapshots"
_UPDATE: Final = "pytest --prompt-update"


class Snapshots:
    """The record of one run; it is a plugin of its own, registered by `foreword.testing.pytest_plugin`."""

    def __init__(self, root: Path, *, update: bool) -> None:
        """Begin a run.

        Args:
            root: paths are told relative to it.
            update: write files instead of holding prompts against them.
        """
        self._root, self.update = root, update
        self.contents: dict[str, dict[str, str]] = {}  # by file: a text that a test wanted there, by the test
        self.changed: set[str] = set()  # files that were written
        self._tests: dict[str, set[str]] = {}  # by module: the ids of its tests
        self._passed: set[str] = set()
        self._partly: set[str] = set()  # modules of which some tests are left out
        self._obsolete: list[Path] = []
        self._conflicts: list[str] = []

    def told(self, path: Path) -> str:
        """A path as people are told it."""
        return path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else str(path)

    # -- what pytest tells ---------------------------------------------------------------------------------------------

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note which tests there are."""
        for item in session.items:
            self._tests.setdefault(str(item.path), set()).add(item.nodeid)
        if any("::" in argument for argument in session.config.args):
            self._partly.update(self._tests)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Note of which modules not every test is run."""
        self._partly.update(str(item.path) for item in items)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what passed: of a module whose tests did not all get to their end, nobody knows what they ask for."""
        if report.when == "call" and report.passed:
            self._passed.add(report.nodeid)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker of xdist has noted."""
        told = getattr(node, "workeroutput", {}).get(_SENT)
        if told is None:
            return
        for path, wanted in told["contents"].items():
            self.contents.setdefault(path, {}).update(wanted)
        self.changed.update(told["changed"])
        self._partly.update(told["partly"])
        for module, tests in told["tests"].items():
            self._tests.setdefault(module, set()).update(tests)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """In a worker, hand over; else find what nobody asked for, and two tests that want different things."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_SENT] = {
                "contents": self.contents,
                "changed": sorted(self.changed),
                "partly": sorted(self._partly),
                "tests": {module: sorted(tests) for module, tests in self._tests.items()},
            }
            return
        self._obsolete = sorted(self._find_obsolete())
        if self.update:
            for path in self._obsolete:
                _remove(path)
            self._conflicts = sorted(self._find_conflicts())
            if self._conflicts and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Tell what was written, and what is obsolete."""
        lines = [*self._summary()]
        if lines:
            terminalreporter.section("prompt snapshots")
            for line in lines:
                terminalreporter.line(line)

    # -- what it comes to ----------------------------------------------------------------------------------------------

    def _summary(self) -> Iterator[str]:
        yield from (f"written   {self.told(Path(path))}" for path in sorted(self.changed))
        word = "deleted " if self.update else "obsolete"
        yield from (f"{word}  {self.told(path)}" for path in self._obsolete)
        if self._obsolete and not self.update:
            yield f"no test asks for what is obsolete; delete it, or let {_UPDATE} do it"
        yield from self._conflicts

    def _find_obsolete(self) -> Iterator[Path]:
        """Files that no test asked for, of modules that ran to the end of each of their tests."""
        used = {os.path.normcase(path) for path in self.contents}
        whole = [
            Path(module)
            for module, tests in self._tests.items()
            if module not in self._partly and tests <= self._passed
        ]
        for module in whole:
            for path in (module.parent / FOLDER / module.stem).glob(f"*{_SUFFIX}"):
                if os.path.normcase(path) not in used:
                    yield path
        for folder in {module.parent for module in whole}:  # of modules that are gone
            for each in (folder / FOLDER).glob("*/"):
                if each.is_dir() and not (folder / f"{each.name}.py").exists():
                    yield from each.glob(f"*{_SUFFIX}")

    def _find_conflicts(self) -> Iterator[str]:
        for path, wanted in self.contents.items():
            if len(set(wanted.values())) > 1:
                tests = " and ".join(sorted(wanted))
                yield f"error: {self.told(Path(path))} is wanted with different contents by {tests}; name two files"


class Check:
    """Holds renderings against the files of a test."""

    def __init__(self, snapshots: Snapshots, item: pytest.Item) -> None:
        """Make one for a test."""
        self._snapshots, self._item = snapshots, item

    def __call__(self, rendering: Rendering, name: str | None = None) -> None:
        """Fail if a prompt is not as its file has it; with ``--prompt-update``, write the file.

        Args:
            rendering: the prompt.
            name: of the file, without folder and suffix: letters, digits, dots, dashes and underscores. None for the
                name of the test, with its parameters.

        Raises:
            ValueError: no file may have that name on every system.
            TypeError: what was given is no rendering.
        """
        __tracebackhide__ = True
        from foreword.prompt.rendering import Rendering
        from foreword.testing.prompt_file import PromptFile

        if not isinstance(cast("object", rendering), Rendering):
            told = type(rendering).__name__
            raise TypeError(f"prompt_snapshot takes a Rendering, and this is a {told}; render it first: render_sync()")
        path = self._path(_OTHERS.sub("-", self._item.name).strip("-.") if name is None else name)
        wanted = PromptFile.of(rendering)
        self._note(path, wanted.text)
        if self._snapshots.update:
            self._write(path, wanted.text)
            return
        problem = _problem(path, wanted, self._snapshots.told(path))
        if problem is not None:
            pytest.fail(problem, pytrace=False)

    def _path(self, name: str) -> Path:
        __tracebackhide__ = True
        if not _NAME.fullmatch(name) or _RESERVED.fullmatch(name) or name.endswith("."):
            rule = "letters, digits, dots, dashes and underscores, at most 100, and no name of a device of Windows"
            raise ValueError(f"{name!r} cannot name a prompt snapshot on every system; use {rule}")
        module = self._item.path
        path = module.parent / FOLDER / module.stem / f"{name}{_SUFFIX}"
        for other in self._snapshots.contents:
            if other != str(path) and other.casefold() == str(path).casefold():
                raise ValueError(f"{name!r} and {Path(other).stem!r} are one file where capitals do not count")
        return path

    def _note(self, path: Path, text: str) -> None:
        wanted = self._snapshots.contents.setdefault(str(path), {})
        for test, other in wanted.items():
            if self._snapshots.update and other != text:
                pytest.fail(f'two prompts are to be "{path.stem}": that of {test}, and another; name two files', False)
        wanted[self._item.nodeid] = text

    def _write(self, path: Path, text: str) -> None:
        data = text.encode()
        if path.exists() and path.read_bytes().replace(b"\r\n", b"\n") == data:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}")  # whole or not at all, whoever else writes it
        beside.write_bytes(data)
        beside.replace(path)
        self._snapshots.changed.add(str(path))


def _problem(path: Path, wanted: PromptFile, told: str) -> str | None:
    """How a prompt differs from its file, in words; None if it does not."""
    from foreword.testing.prompt_file import PromptFile, UnreadablePromptFile

    write = f"{_UPDATE} writes it"
    try:
        text = path.read_bytes().decode()
        kept = PromptFile.read(text, told)
    except FileNotFoundError:
        return f"there is no {told} to hold the prompt against; {write}"
    except UnicodeDecodeError:
        return f"{told} is no text in UTF-8; {write} anew"
    except UnreadablePromptFile as fault:
        return f"{told} cannot be read: {fault}; {write} anew"
    if kept.text == wanted.text:
        return None
    lines = _told_difference(kept, wanted)
    return "\n".join([f"the prompt is not as in {told}", "", *lines, "", f"if it is meant to be so: {_UPDATE}"])


def _told_difference(kept: PromptFile, wanted: PromptFile) -> list[str]:
    from foreword.explain.diff import compared
    from foreword.explain.telling import diff_lines

    told = list(diff_lines(compared(kept, wanted)))
    return told or list(unified_diff(kept.text.split("\n"), wanted.text.split("\n"), "kept", "now", n=1, lineterm=""))


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    for folder in path.parents[:2]:
        if next(folder.iterdir(), None) is None:
            folder.rmdir()
