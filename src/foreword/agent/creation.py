"""How an agent comes: set up in private, then published. What fails on the way is undone, and nobody has seen it.

    join the kernel's agents ─▶ a scope of its own ─▶ outfit ─▶ set-up ─▶ session ─▶ published

It goes in the opposite order: its turn ends, then what was registered for it is undone, then its session is let go.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from foreword.agent.agent import Agent
from foreword.agent.live import LiveAgents
from foreword.agent.model_selection import current_model, model_config
from foreword.agent.outfit import Outfit
from foreword.agent.retry import Clock, RetryPolicy
from foreword.agent.terms import Terms
from foreword.errors import InactiveContextError, PluginFailedError
from foreword.kernel.scope import GLOBAL
from foreword.kernel.source import caller, calling_line
from foreword.prompt.checks import checked_name
from foreword.prompt.context import AssembleContext
from foreword.prompt.text import described
from foreword.session.session import Session

if TYPE_CHECKING:
    from foreword.kernel.context import Context
    from foreword.kernel.source import Source
    from foreword.prompt.context import ContextKey
    from foreword.session.drift import Drift
    from foreword.session.log import Log
    from foreword.tools.masks import ToolMask
    from foreword.wire.request import ModelConfig

__all__ = ["MAX_STEPS", "SetUp", "create_agent", "spawn_agent"]

SetUp: TypeAlias = "Callable[[Agent], Awaitable[None] | None]"
"""Registers what an agent is to have before anybody sees it, through ``agent.ctx``."""

MAX_STEPS = 100
"""Steps that a turn may have unless the agent is told otherwise: beyond, a model most likely goes round in circles."""

Claim: TypeAlias = Callable[[], Awaitable[Session]]
"""Gets the session of an agent."""


async def create_agent(
    ctx: Context,
    name: str,
    *,
    model: str | ModelConfig | None,
    log: Log | None = None,
    session: str | Session | None = None,
    drift: Drift = "fresh",
    persona: str | Path | None = None,
    tools: ToolMask | None = None,
    values: Mapping[ContextKey[Any], object] | None = None,
    labels: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    setup: SetUp | None = None,
    retry: RetryPolicy | None = None,
    max_steps: int | None = MAX_STEPS,
    clock: Clock | None = None,
) -> Agent:
    """Make an agent. It belongs to the context's plugin, and goes with it; its scope stands below the context's.

    The kernel must have a `SystemPrompt`; a `ToolRegistry` if it is to have tools, and a `ModelAdapters` with an
    adapter for the model's provider by the time of its first request.

    Args:
        ctx: whose it is.
        name: for people, errors and traces.
        model: ``"provider:model"``, or a config with settings; None if a selection or a listener always gives one.
        log: where its session is kept, and those of the agents that it spawns.
        session: None for a new one, the id of one that is to go on, or one that is open already (a fork, say), which is
            closed with the agent.
        drift: of a session that goes on, which request header goes out if today's differs from the recorded one:
            ``"fresh"`` today's, ``"recorded"`` the recorded one, ``"error"`` none: the turn ends with an error.
        persona: takes the deployment's place for this agent: a template, or a `Path` to one.
        tools: which of the tools that it inherits it may see and call.
        values: what the providers of its prompt get in their context.
        labels: of a new session: tenant, ticket, release, …
        cwd: the absolute path of the folder that a new session is about.
        setup: registers what the agent is to have before anybody sees it; sync or async, called with the agent.
        retry: when a failed request is tried again; None for the stock policy.
        max_steps: steps that one turn may have; None for any number.
        clock: the time that it goes by; None for the real one.

    Returns:
        The agent, published.

    Raises:
        MissingServiceError: the kernel has no prompt, or there is a mask and no tools.
        ForewordError: the model, the mask, the persona, the labels or the session is refused.
        InactiveContextError: the context's owner has gone, or the kernel does not run.
        Exception: what ``setup`` raised. Whatever it is, nothing is left of the agent.
    """
    source = calling_line(caller(1))
    if session is not None and (labels or cwd is not None):
        raise TypeError("labels and cwd are given to a new session only; this one has its own")
    if drift != "fresh" and not isinstance(session, str):
        raise TypeError("drift is for a session that goes on, given by its id; of an open one `Log.resume` decides")
    _check_terms(retry, max_steps, clock)
    terms = Terms(
        model=None if model is None else model_config(model),
        values=dict(values or {}),
        scope=ctx.key,
        delegator=None,
        log=_log_of(log, session),
        retry=RetryPolicy() if retry is None else retry,
        max_steps=max_steps,
        clock=Clock() if clock is None else clock,
    )
    outfit = Outfit(persona, tools, None, source)
    return await _made(ctx, name, terms, outfit, setup, partial(_claimed, terms.log, session, labels, cwd, drift))


def _check_terms(retry: object, max_steps: object, clock: object) -> None:
    """Refuse now what would fail in some turn."""
    if retry is not None and not isinstance(retry, RetryPolicy):
        raise TypeError(f"retry is a RetryPolicy, not {described(retry)}; RetryPolicy(retries=5), say")
    if clock is not None and not isinstance(clock, Clock):
        raise TypeError(f"clock is a Clock, not {described(clock)}")
    if max_steps is None:
        return
    if not isinstance(max_steps, int) or isinstance(max_steps, bool):
        raise TypeError(f"max_steps is an int, or None for any number, not {described(max_steps)}")
    if max_steps < 1:
        raise ValueError(f"max_steps is {max_steps}; a turn takes at least one step")


def _check_labels(labels: Mapping[str, str] | None) -> None:
    """Name the label that is none; the log would only say that one of them is."""
    for name, value in (labels or {}).items():
        if not isinstance(cast("object", value), str):
            raise TypeError(f"the label {name!r} is {described(value)}; give a string")


def _log_of(log: Log | None, session: str | Session | None) -> Log:
    if isinstance(session, Session):
        if log is not None and log is not session.log:
            raise TypeError("the session is in another log than log=…; leave log out")
        return session.log
    if log is None:
        raise TypeError("an agent needs log=…, or an open session=…")
    return log


async def _claimed(
    log: Log,
    session: str | Session | None,
    labels: Mapping[str, str] | None,
    cwd: str | Path | None,
    drift: Drift = "fresh",
) -> Session:
    if isinstance(session, Session):
        return session
    if session is not None:
        return await log.resume(session, drift=drift)
    _check_labels(labels)
    return await log.create(labels=labels or {}, cwd=None if cwd is None else str(cwd))


async def spawn_agent(
    parent: Agent,
    name: str,
    source: Source,
    *,
    persona: str | Path | None,
    tools: ToolMask | None,
    model: str | ModelConfig | None,
    values: Mapping[ContextKey[Any], object] | None,
    labels: Mapping[str, str] | None,
    setup: SetUp | None,
) -> Agent:
    """Make a child; see `Agent.spawn`."""
    terms = replace(
        parent.terms,
        model=current_model(parent) if model is None else model_config(model),
        values={**parent.values, **(values or {})},
        scope=parent.parent or GLOBAL,
        delegator=parent,
    )
    session = parent.session
    outfit = Outfit(persona, tools, parent.name, source)
    claim = partial(_claimed, terms.log, None, {**session.labels, **(labels or {})}, session.cwd)
    return await _made(parent.ctx, name, terms, outfit, setup, claim)


async def _made(ctx: Context, name: str, terms: Terms, outfit: Outfit, setup: SetUp | None, claim: Claim) -> Agent:
    """Make an agent, or leave nothing of it."""
    checked_name("agent", name, ctx.name)
    AssembleContext(terms.values)  # raises now what each assembly would
    ctx.root.check_thread("making an agent")
    ctx.root.check_running()
    others = await LiveAgents.joined(ctx)
    try:
        agent = Agent(name, terms, ctx, others)
    except BaseException:
        await others.leave()
        raise
    try:
        await _set_up(agent, outfit, setup)
        await _publish(agent, await claim())
    except BaseException as error:  # whatever it is, a cancellation too: nobody may find half an agent
        await _roll_back(agent, error)
        raise
    return agent


async def _set_up(agent: Agent, outfit: Outfit, setup: SetUp | None) -> None:
    agent.outfit = agent.ctx.mount(outfit.as_plugin(agent.name))
    try:
        await agent.settled()
    except PluginFailedError as failure:
        raise failure.__cause__ or failure from None  # it says what is wrong with the persona, or the mask
    pending = None if setup is None else setup(agent)
    if inspect.isawaitable(pending):
        await pending


async def _publish(agent: Agent, session: Session) -> None:
    import anyio

    try:
        agent.publish(session)
    except InactiveContextError:  # its owner has gone while the session was claimed
        with anyio.CancelScope(shield=True):
            await session.close()
        raise


async def _roll_back(agent: Agent, error: BaseException) -> None:
    import anyio

    with anyio.CancelScope(shield=True):
        try:
            await agent.dispose()
        except BaseExceptionGroup as undone:  # the error that led here comes first
            error.add_note(f"on the way out also: {undone!r}")
