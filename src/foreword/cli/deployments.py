"""The deployment that a command is about: which file it is, whether it may run, and what it answers once it is open."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from foreword.cli.faults import Fault, in_one_line, others_code
from foreword.cli.folders import here, sources_from
from foreword.cli.hiding import Hiding
from foreword.cli.terminal import warn
from foreword.compose.files import NAMES, read_file
from foreword.compose.loading import App, open_deployment
from foreword.compose.models import note_keys
from foreword.compose.reading import Reading
from foreword.compose.secrets import Secrets
from foreword.compose.trust import deployment_in, find_deployment
from foreword.errors import DeploymentError
from foreword.prompt.asking import run_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

__all__ = ["Answer", "EverythingSet", "answer_of", "file_to_read", "file_to_run"]

T = TypeVar("T")


def file_to_read(typed: str | None) -> Path:
    """The file that was named, else that of the current folder, trusted or not: reading it runs nothing.

    Raises:
        DeploymentError: none was named, and there is none.
        Fault: a folder was named.
    """
    here()
    return deployment_in(Path()) if typed is None else _file(typed)


def file_to_run(typed: str | None) -> tuple[Path, bool]:
    """The file that was named, else that of the current folder, if it is trusted; and whether it was named.

    Raises:
        DeploymentError: none was named, and there is none.
        UntrustedFileError: none was named, and the one that is there is not trusted.
        Fault: a folder was named.
    """
    here()
    return (find_deployment(), False) if typed is None else (_file(typed), True)


def _file(typed: str) -> Path:
    """A path that was typed, unless it is one of a folder, which whoever means the deployment in it types first."""
    file = Path(typed)
    if file.is_dir():
        raise Fault(f'"{typed}" is a folder; name the deployment file in it: {file / NAMES[0]}')
    return file


class EverythingSet(Mapping[str, str]):
    """An environment in which every variable is set: for looking at a file where its secrets are not."""

    def __getitem__(self, name: str) -> str:
        return os.environ.get(name, "set")

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What a deployment answered."""

    value: T
    file: str  # the deployment, as it was named or found
    hide: Hiding  # of what is said about it


@contextmanager
def answer_of(
    typed: str | None,
    doing: str,
    ask: Callable[[App], Coroutine[Any, Any, T]],
    *,
    backwards: bool = False,
    log: str | None = None,
) -> Generator[Answer[T]]:
    """Open a deployment, ask it something, and close it again; what is worth a look in it is said on stderr.

    While the context is open, sources are told relative to the deployment's folder.

    Args:
        typed: the file that was named; None for that of the current folder, if it is trusted.
        doing: what for, as in "rendering".
        ask: what to do while it is open.
        backwards: load its plugins from the last to the first.
        log: the store of its log; None for what the file says.

    Raises:
        DeploymentError, UntrustedFileError: it cannot be opened.
        Fault: its code failed; or the answer is one.
    """
    file, is_named = file_to_run(typed)
    hide = Hiding(_secrets_of(file))

    async def opened() -> T:
        async with open_deployment(file, named=is_named, backwards=backwards, log=log) as app:
            for each in app.warnings:
                warn(in_one_line(hide(str(each))))
            return await ask(app)

    with others_code(f"{doing} {file}", hide):
        answer = run_loop(opened, may_hang=True)
    with sources_from(file.parent):
        yield Answer(answer, str(file), hide)


def _secrets_of(file: Path) -> Secrets | None:
    """What a file takes from the environment, and the keys of models; None where it says too little for that.

    They are known before any code runs, since it may tell them in ways that no guard inside sees, as in ``sys.exit``.
    """
    try:
        deployment = Reading.of(file, read_file(file, str(file)), os.environ).deployment
    except DeploymentError:  # as opening it is going to tell
        return None
    if deployment is None:
        return None
    secrets = Secrets(os.environ)
    for each in deployment.plugins:
        secrets.filled_in(each.config)
    secrets.filled_in(deployment.log.store)
    note_keys(secrets, os.environ)
    return secrets
