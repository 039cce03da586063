"""What a command explains: a step of a log by its address, a deployment or one of its agents, a prompt of Python's."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from foreword.cli.explain_log import ask_log
from foreword.cli.hiding import Hiding

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager

    from foreword.cli.shown import Shown
    from foreword.explain.subject import Subject
    from foreword.wire.request import ModelConfig

__all__ = ["Looked", "Wanted", "document", "is_address", "looked_at", "title_of"]

_FILES = (".yaml", ".yml", ".toml")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be explained, as it was typed."""

    typed: str | None  # None for the deployment of the current folder
    agent: str | None = None
    scope: str | None = None
    log: str | None = None


@dataclass(frozen=True, slots=True)
class Looked:
    """What is explained, and what must not be seen of it."""

    subject: Subject
    hide: Hiding = field(default_factory=Hiding)


def is_address(typed: str | None) -> bool:
    """Whether an argument names a step of a log: it is no file, and no ``module:name``."""
    return typed is not None and ":" not in typed and not typed.endswith(_FILES) and not Path(typed).exists()


@contextmanager
def looked_at(wanted: Wanted) -> Generator[Looked]:
    """The subject of what was typed.

    Raises:
        ForewordError: there is no such step, or it cannot be read; or the deployment cannot be opened.
        Fault: there is no such target, agent or scope, or its code failed.
        click.UsageError: the options do not go with such a target.
    """
    typed = wanted.typed
    if typed is not None and is_address(typed):
        for option, value in (("--agent", wanted.agent), ("--scope", wanted.scope)):
            if value is not None:
                raise click.UsageError(
                    f'{option} is for deployments and prompts, and "{typed}" is the address of a step'
                )
        yield Looked(_logged(typed, wanted.log))
        return
    with _rendered(wanted) as shown:
        from foreword.explain.subject import subject_of

        yield Looked(subject_of(shown.rendering, title_of(wanted), config=_model_of(wanted)), shown.hide)


def document(value: Any, hide: Hiding) -> Any:
    """A JSON value with secrets taken out of what is said about a prompt; texts of the prompt are told as they are."""
    from foreword.cli.as_json import without_secrets

    if isinstance(value, dict):
        told = cast("dict[str, Any]", value)
        return {
            key: item if key in _TEXTS and isinstance(item, str) else document(item, hide) for key, item in told.items()
        }
    if isinstance(value, (list, tuple)):
        return [document(item, hide) for item in cast("list[Any]", value)]
    return without_secrets(value, hide)


_TEXTS = frozenset({"text", "old", "new", "content", "system", "description"})


def _logged(address: str, log: str | None) -> Subject:
    from foreword.explain.steps import subject_at

    return ask_log(log, lambda opened: subject_at(opened, address))


def _rendered(wanted: Wanted) -> AbstractContextManager[Shown]:
    typed = wanted.typed
    if typed is None or ":" not in typed:
        if wanted.agent is not None and wanted.scope is not None:
            raise click.UsageError("--agent and --scope both say whose prompt it is; give one of them")
        from foreword.cli.agents import rendered as rendered_deployment

        return rendered_deployment(typed, wanted.agent, wanted.scope)
    if wanted.agent is not None:
        raise click.UsageError(f'--agent is for deployment files, and "{typed}" is none; --scope NAME chooses a scope')
    from foreword.cli.targets import rendered

    return rendered(typed, wanted.scope)


def title_of(wanted: Wanted) -> str:
    """What is explained, in words."""
    name = wanted.typed if wanted.typed is not None else _file(wanted).name
    if wanted.agent is not None:
        return f"agent {wanted.agent} of {name}"
    return name if wanted.scope is None else f"scope {wanted.scope} of {name}"


def _model_of(wanted: Wanted) -> ModelConfig | None:
    """The model that the deployment gives an agent."""
    if wanted.agent is None:
        return None
    from foreword.cli.deployments import EverythingSet
    from foreword.compose.reading import read_deployment

    return read_deployment(_file(wanted), environment=EverythingSet()).agents[wanted.agent].model


def _file(wanted: Wanted) -> Path:
    from foreword.cli.deployments import file_to_read

    return file_to_read(wanted.typed)
