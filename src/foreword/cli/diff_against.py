"""A prompt as it was at a revision: checked out beside the working tree, and rendered in a fresh process.

It runs the code of that revision, with the packages and the environment of today. What is registered, imported or
remembered in this process cannot reach it, nor the other way round.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import tarfile
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

from foreword.cli.explain_subject import Looked, Wanted, looked_at, title_of
from foreword.cli.faults import Fault
from foreword.cli.terminal import say
from foreword.cli.typed import is_deployment
from foreword.errors import shown

if TYPE_CHECKING:
    from collections.abc import Generator

    from foreword.explain.subject import Subject

__all__ = ["agents_at", "at_revision"]

_CHILD = "from foreword.cli.diff_against import render_here; render_here()"


@contextmanager
def at_revision(revision: str, wanted: Wanted) -> Generator[Looked]:
    """The subject of a target as it was at a revision.

    Args:
        revision: anything that git takes for a commit.
        wanted: a deployment file, or path/file.py:name; it need not be there any more.

    Raises:
        Fault: the target is in no git repository or has no file, there is no such revision, or what it holds cannot be
            rendered; the child says itself why.
    """
    file, rest = _file_of(wanted)
    with _checked_out(file, revision) as (folder, inside):
        subject = _rendered(folder, inside, replace(wanted, typed=f"{file.name}{rest}"), revision)
    yield Looked.of(replace(subject, title=f"{title_of(wanted)} at {revision}"), reveal=wanted.reveal)


def agents_at(revision: str, typed: str) -> tuple[str, ...]:
    """The names of the agents that a deployment had at a revision; nothing of it is run.

    Raises:
        DeploymentError: it cannot be read.
        Fault: as for `at_revision`.
    """
    from foreword.cli.deployments import EverythingSet
    from foreword.compose.reading import read_deployment

    file, _ = _file_of(Wanted(typed))
    with _checked_out(file, revision) as (folder, inside):
        return tuple(read_deployment(folder / inside / file.name, environment=EverythingSet()).agents)


@contextmanager
def _checked_out(file: Path, revision: str) -> Generator[tuple[Path, Path]]:
    """A temporary folder with all of a file's repository as it was, and where in it the file's folder is."""
    top = Path(_git(file.parent, "rev-parse", "--show-toplevel").decode().strip())
    inside = file.parent.resolve().relative_to(top.resolve())
    commit = _commit(top, revision)
    with TemporaryDirectory(prefix="foreword-") as folder:
        _check_out(top, commit, Path(folder))
        if not (Path(folder) / inside / file.name).is_file():
            raise Fault(f"{revision} has no {inside / file.name}")
        yield Path(folder), inside


def render_here() -> None:
    """What the child does: render what it is told to, and write the subject where it is told to."""
    told: tuple[Wanted, str] = pickle.loads(sys.stdin.buffer.read())  # of the process that started this one
    wanted, answer = told
    try:
        with looked_at(wanted) as looked:
            Path(answer).write_bytes(pickle.dumps(looked.subject))
    except Exception as error:
        from foreword.cli.faults import paragraph
        from foreword.cli.terminal import complain
        from foreword.errors import ForewordError

        complain(paragraph(error) if isinstance(error, ForewordError) else str(error))
        sys.exit(2)


def _file_of(wanted: Wanted) -> tuple[Path, str]:
    """The file of a target, and what stands behind it: ``:name``, or nothing."""
    from foreword.cli.deployments import file_to_read

    typed = wanted.typed
    if typed is None or is_deployment(typed):
        return file_to_read(typed).absolute(), ""
    home, _, name = typed.rpartition(":")
    if not home.endswith(".py"):
        raise Fault(f'"{typed}" has no file; with --against name one: a deployment, or path/file.py:{name}')
    return Path(home).absolute(), f":{name}"


def _check_out(top: Path, commit: str, folder: Path) -> None:
    archive = _git(top, "archive", "--format=tar", commit)
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")


def _rendered(folder: Path, inside: Path, wanted: Wanted, revision: str) -> Subject:
    with TemporaryDirectory(prefix="foreword-") as beside:
        answer = Path(beside) / "subject"
        done = subprocess.run(
            [sys.executable, "-c", _CHILD],
            input=pickle.dumps((wanted, str(answer))),
            capture_output=True,
            cwd=folder / inside,
            check=False,
        )
        say(done.stderr.decode(errors="replace"))  # what the code printed, and what is wrong with it
        if done.returncode or not answer.exists():
            raise Fault(f"the prompt of {wanted.typed} at {revision} cannot be rendered; the reason stands above")
        return cast("Subject", pickle.loads(answer.read_bytes()))  # the child wrote it, for us alone


def _commit(top: Path, revision: str) -> str:
    try:
        told = _git(top, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    except Fault as fault:
        way_out = "name a commit, a branch or a tag, as in HEAD~1; what a shallow clone lacks, git fetch brings"
        raise Fault(f'there is no revision "{shown(revision)}" in {top}; {way_out}') from fault
    return told.decode().strip()


def _git(folder: Path, *arguments: str) -> bytes:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=False)
    except FileNotFoundError as error:
        raise Fault("--against needs git, and there is none on the PATH") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise Fault(f"git {arguments[0]}: {said[-1] if said else 'failed'}")
    return done.stdout
