"""What a command explains: a step of a log by its address, a deployment or one of its agents, a prompt of Python's."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from foreword.cli.hiding import Hiding
from foreword.cli.logs import asked
from foreword.cli.typed import is_address, is_deployment
from foreword.errors import shown

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager

    from foreword.cli.shown import Shown
    from foreword.explain.subject import Subject
    from foreword.prompt.rendering import Rendering
    from foreword.wire.request import ModelConfig

__all__ = ["Looked", "Wanted", "document", "logged_subject", "looked_at", "refuse_names", "title_of"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be explained, as it was typed."""

    typed: str | None  # None for the deployment of the current folder
    agent: str | None = None
    scope: str | None = None
    log: str | None = None
    reveal: bool = False  # tell what is sensitive, too


@dataclass(frozen=True, slots=True)
class Looked:
    """What is explained, and what must not be seen of it.

    Attributes:
        subject: as it is, which is what is measured and compared.
        shown: as it is told: without what is sensitive, unless that is to be revealed.
        hide: takes out of texts what the environment gave to a deployment.
    """

    subject: Subject
    shown: Subject
    hide: Hiding = field(default_factory=Hiding)

    @classmethod
    def of(cls, subject: Subject, hide: Hiding | None = None, *, reveal: bool) -> Looked:
        """A subject that was found."""
        from foreword.explain.masking import masked

        return cls(subject, subject if reveal else masked(subject), hide or Hiding())


def refuse_names(address: str, agent: str | None, scope: str | None) -> None:
    """See that nobody names an agent or a scope of a logged step.

    Raises:
        click.UsageError: one is named.
    """
    for option, value in (("--agent", agent), ("--scope", scope)):
        if value is not None:
            raise click.UsageError(f'{option} is for deployments and prompts, and "{address}" is the address of a step')


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
        refuse_names(typed, wanted.agent, wanted.scope)
        yield Looked.of(logged_subject(typed, wanted.log), reveal=wanted.reveal)
        return
    with _rendered(wanted) as shown:
        from foreword.explain.subject import subject_of

        live = cast("Rendering", shown.rendering)  # what is logged is looked for by its address, above
        subject = subject_of(live, title_of(wanted), config=_model_of(wanted))
        yield Looked.of(subject, shown.hide, reveal=wanted.reveal)


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


def logged_subject(address: str, log: str | None) -> Subject:
    """The request behind an address.

    Args:
        address: as it was typed.
        log: the store that was named, if one was.

    Raises:
        Fault: there is no store, so that a mere word was perhaps not meant as an address.
        StoreError: the store cannot be read.
        SessionError: there is no such step, or it cannot be read.
    """
    from foreword.cli.faults import Fault
    from foreword.errors import StoreError
    from foreword.explain.steps import subject_at
    from foreword.session.address import LAST

    try:
        return asked(log, lambda opened: subject_at(opened, address))
    except StoreError as error:
        if error.kind != "store_missing" or "@" in address or address == LAST:
            raise
        meant = "for a deployment name its file (.yaml, .yml, .toml), for a SystemPrompt write module:name"
        raise Fault(f'"{shown(address)}" is taken for a session of a log, and {error}; {meant}') from error


def _rendered(wanted: Wanted) -> AbstractContextManager[Shown]:
    typed = wanted.typed
    if typed is None or is_deployment(typed):
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
