"""The prompt of a deployment, or of one of its agents."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from foreword.cli.deployments import answer_of
from foreword.cli.faults import Fault
from foreword.cli.shown import Shown, scope_of, shown_of
from foreword.errors import did_you_mean
from foreword.prompt.context import AssembleContext

if TYPE_CHECKING:
    from collections.abc import Generator

    from foreword.compose.loading import App
    from foreword.kernel.scope import ScopeKey

__all__ = ["rendered"]

_WAY_OUT: Final = "let the plugin that makes them give each a name of its own"


@contextmanager
def rendered(typed: str | None, agent: str | None, scope: str | None) -> Generator[Shown]:
    """Open a deployment, assemble a prompt of it, and render it.

    While the context is open, sources are told relative to the deployment's folder.

    Args:
        typed: the file that was named; None for that of the current folder, if it is trusted.
        agent: the name of one of its agents; None for the prompt that all share.
        scope: the name of a scope, of an agent or one that a plugin made; None for that of no scope.

    Raises:
        DeploymentError, UntrustedFileError: the deployment cannot be opened.
        Fault: there is no such agent or scope, or the assembly failed.
    """

    async def ask(app: App) -> Shown:
        if agent is None:
            key = _key_of(scope, app)
            return shown_of(await app.prompt.render(AssembleContext(scope=key)), key)
        if agent not in app.agents:
            raise Fault(_why_unknown(agent, app))
        view = app.agents[agent]
        rendering = await view.render(AssembleContext(agent=view.key))
        return replace(shown_of(rendering, view.key), is_agent=True)

    with answer_of(typed, "rendering", ask) as answer:
        yield replace(answer.value, hide=answer.hide)


def _key_of(scope: str | None, app: App) -> ScopeKey:
    if scope is not None and scope in app.agents:  # which need not hold anything
        return app.agents[scope].key
    return scope_of(app.prompt, scope, _WAY_OUT)


def _why_unknown(agent: str, app: App) -> str:
    what = f'{app.deployment.name} has no agent "{agent}"'
    if not app.agents:
        return f"{what}, and no others: agents stand in it under the key agents"
    return f"{what}; {did_you_mean(agent, app.agents, 'agents')}"
