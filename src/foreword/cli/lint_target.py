"""What ``foreword lint`` looks at: a deployment, one of its agents, or a prompt that Python makes."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import click

from foreword.cli.deployments import answer_of
from foreword.cli.faults import Fault
from foreword.cli.folders import sources_from
from foreword.cli.hiding import Hiding
from foreword.cli.targets import answered
from foreword.cli.typed import is_deployment
from foreword.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from foreword.compose.deployment import Deployment
    from foreword.compose.loading import App
    from foreword.kernel.scope import ScopeKey
    from foreword.prompt.system_prompt import SystemPrompt

__all__ = ["Asked", "Target", "asking"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Target:
    """What to look at, as it was typed."""

    typed: str | None  # None for the deployment of the current folder
    agent: str | None = None
    backwards: bool = False  # load a deployment's plugins from the last to the first


@dataclass(frozen=True, slots=True)
class Asked:
    """What is looked at, once it is there.

    Attributes:
        prompt: the view: of all, or of the agent that was named.
        agents: the scopes of the deployment's agents.
        deployment: the file; None for a prompt that Python makes.
        hide: takes out of texts what the environment gave to the plugins.
    """

    prompt: SystemPrompt
    agents: tuple[ScopeKey, ...] = ()
    deployment: Deployment | None = None
    hide: Callable[[str], str] = str


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What came of it."""

    value: T
    name: str  # of the target
    hide: Hiding


@contextmanager
def asking(target: Target, doing: str, ask: Callable[[Asked], Coroutine[Any, Any, T]]) -> Generator[Answer[T]]:
    """Open a target, ask it something, and close it again.

    Args:
        target: what to open.
        doing: what for, as in "linting".
        ask: what to do while it is open; places in files are told relative to its folder then.

    Raises:
        DeploymentError, UntrustedFileError: the deployment cannot be opened.
        Fault: there is no such target or agent, or its code failed.
    """
    typed = target.typed
    if typed is None or is_deployment(typed):

        async def ask_app(app: App) -> T:
            with sources_from(app.deployment.folder):
                return await ask(_asked(app, target.agent))

        with answer_of(typed, doing, ask_app, backwards=target.backwards) as answer:
            yield Answer(answer.value, answer.file, answer.hide)
    elif target.agent is not None:
        raise click.UsageError(f'--agent is for deployment files, and "{typed}" is none')
    else:

        async def ask_prompt(prompt: SystemPrompt) -> T:
            return await ask(Asked(prompt))

        with answered(typed, doing, ask_prompt) as value:
            yield Answer(value, typed, Hiding())


def _asked(app: App, agent: str | None) -> Asked:
    keys = tuple(view.key for view in app.agents.values())
    hide = Hiding(app.secrets).name
    if agent is None:
        return Asked(app.prompt, keys, app.deployment, hide)
    if agent not in app.agents:
        what = f'{app.deployment.name} has no agent "{agent}"'
        raise Fault(f"{what}; {did_you_mean(agent, app.agents, 'agents')}")
    return Asked(app.agents[agent], keys, app.deployment, hide)
