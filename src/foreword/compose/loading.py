"""From a deployment file to a running application: its plugins under a kernel, its agents, its log.

Here the deployment's code runs. Its faults join those of the file, and all are told at once; nothing is left behind.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from foreword.agent.models.registry import ModelAdapters
from foreword.compose.agents import DEPLOYMENT, furnished, own_of
from foreword.compose.configs import check_config
from foreword.compose.discovery import Found, Unresolved, resolve
from foreword.compose.files import path_of, read_file
from foreword.compose.guard import guard_of, place_of, told
from foreword.compose.masks import check_names
from foreword.compose.models import Shipped
from foreword.compose.modules import FolderModules
from foreword.compose.reading import Reading
from foreword.compose.secrets import Secrets
from foreword.compose.stores import LateLog, store_of
from foreword.compose.trust import TrustStore, check_trusted
from foreword.errors import DeploymentError, EntryRef, Fault, ForewordError, RegistrationError, did_you_mean, shown
from foreword.kernel.context import Context
from foreword.kernel.fiber import Fiber, FiberState, PluginFiber
from foreword.kernel.names import shortened
from foreword.kernel.plugins import plugin, spec_of
from foreword.prompt.system_prompt import SystemPrompt
from foreword.strictyaml import spelled
from foreword.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterator, Mapping

    from foreword.agent.agent import Agent
    from foreword.agent.creation import SetUp
    from foreword.agent.retry import RetryPolicy
    from foreword.compose.deployment import AgentEntry, Deployment, PluginEntry
    from foreword.compose.faults import Faults
    from foreword.prompt.context import ContextKey
    from foreword.session.log import Log
    from foreword.session.session import Session
    from foreword.session.store.contract import Store
    from foreword.strictyaml import Path as Way
    from foreword.wire.request import ModelConfig

__all__ = ["App", "PluginStatus", "open_deployment"]


@dataclass(frozen=True, slots=True)
class PluginStatus:
    """How one plugin of a deployment fares."""

    id: str
    use: str
    name: str  # the owner of what it contributes; empty if it is disabled
    version: str | None  # of the distribution that offers it by name
    state: str  # of its fiber, as in "active"; or "disabled"
    contributions: tuple[EntryRef, ...]


@dataclass(frozen=True, slots=True)
class _Mounted:
    """A plugin of the deployment that is mounted."""

    entry: PluginEntry
    fiber: PluginFiber
    version: str | None


@dataclass(frozen=True, slots=True)
class App:
    """An open deployment.

    Attributes:
        ctx: the root of its kernel.
        prompt: the view of the prompt on the global layer.
        tools: the view of the tools on the global layer; the prompt also has those that plugins bring to it alone.
        deployment: the file.
        agents: for each agent of the file a view with its persona and its tools, to look at; `agent` has one run.
        warnings: what is worth a look, and no fault.
        secrets: takes out of a text what the environment gave to plugins: ``app.secrets.hide(text)``.
    """

    ctx: Context
    prompt: SystemPrompt
    tools: ToolRegistry
    deployment: Deployment
    agents: Mapping[str, SystemPrompt]
    warnings: tuple[Fault, ...]
    secrets: Secrets
    _mounted: tuple[_Mounted, ...] = field(repr=False)
    _log: LateLog = field(repr=False)
    _shipped: Shipped = field(repr=False)

    @property
    def log(self) -> Log:
        """The log of its agents: the one that was given, else that of the file, else ``sqlite:foreword.db`` here.

        It is opened when it is first used, and closed after all agents.

        Raises:
            StoreError: it is no store's.
            InactiveContextError: the deployment is closed.
        """
        return self._log.log

    async def agent(
        self,
        name: str,
        session: str | Session | None = None,
        *,
        model: str | ModelConfig | None = None,
        labels: Mapping[str, str] | None = None,
        values: Mapping[ContextKey[Any], object] | None = None,
        cwd: str | Path | None = None,
        setup: SetUp | None = None,
        retry: RetryPolicy | None = None,
        max_steps: int | None = None,
    ) -> Agent:
        """Make an agent of the file that runs; it goes when the deployment is closed, or by its own `dispose`.

        Its persona and its mask are its own: children that it spawns inherit neither.

        Args:
            name: of an agent in the file. Any number may run at a time, each with a session of its own.
            session: None for a new one; the id of one that is to go on, the beginning of one, or ``last``; or one that
                is open already.
            model: None for that of the file. The providers "anthropic", "openai" and "deepseek" are served by
                adapters that ship, with keys from ``ANTHROPIC_API_KEY``, ``OPENAI_API_KEY`` and ``DEEPSEEK_API_KEY``,
                and the addresses of the first two from ``ANTHROPIC_BASE_URL`` and ``OPENAI_BASE_URL``; any other by an
                adapter that a plugin registers.
            labels: of a new session, beside those of the file.
            values: what the providers of its prompt get in their context.
            cwd: the absolute path of the folder that a new session is about.
            setup: registers what else it is to have before anybody sees it; sync or async, called with the agent.
            retry: when a failed request is tried again; None for the stock policy.
            max_steps: steps that one turn may have; None for the usual number.

        Raises:
            DeploymentError: the file has no agent of that name.
            ModelError: nobody serves the model's provider, or its key is missing.
            MissingExtraError: what serves it is not installed.
            Exception: as `create_agent`; nothing is left of the agent then.
        """
        from foreword.agent.creation import MAX_STEPS, create_agent
        from foreword.agent.model_selection import model_config

        entry = self._entry(name)
        config = entry.model if model is None else model_config(model)
        if config is not None:
            self._shipped.serve(config.provider, self.ctx)
        await self._log.look_after()
        return await create_agent(
            self.ctx,
            name,
            model=config,
            log=self.log if session is None or isinstance(session, str) else None,
            session=session,
            values=values,
            labels={**entry.labels, **(labels or {})} if session is None else labels,
            cwd=cwd,
            setup=furnished(entry, self.deployment, setup),
            retry=retry,
            max_steps=MAX_STEPS if max_steps is None else max_steps,
        )

    def _entry(self, name: str) -> AgentEntry:
        known = self.deployment.agents
        named = name if isinstance(cast("object", name), str) else shortened(name)
        if named not in known:
            way_out = did_you_mean(named, known, "agents") if known else "agents stand in it under the key agents"
            raise DeploymentError([Fault(self.deployment.name, None, "", f'has no agent "{shown(named)}"; {way_out}')])
        return known[named]

    @property
    def plugins(self) -> tuple[PluginStatus, ...]:
        """Every plugin of the file, in its order, as it is now."""
        mounted = {each.entry.index: each for each in self._mounted}
        return tuple(_status(entry, mounted.get(entry.index)) for entry in self.deployment.plugins)


@asynccontextmanager
async def open_deployment(
    file: str | Path,
    *,
    named: bool = True,
    store: TrustStore | None = None,
    environment: Mapping[str, str] | None = None,
    setup_timeout: float | None = 30.0,
    backwards: bool = False,
    log: Log | Store | str | None = None,
) -> AsyncGenerator[App]:
    """Open a deployment: import its plugins, mount them, and wait until nothing moves any more.

    Args:
        file: a YAML or TOML file, by its suffix.
        named: the operator named the file. One that was only found must be trusted as it stands, or nothing runs.
        store: the list of trusted files; None for the operator's own. Only for files that were not named.
        environment: where expressions look for variables; None for the process's own, as it is now.
        setup_timeout: seconds that a plugin's set-up may take; None for any time.
        backwards: load the plugins from the last to the first, to see what depends on the order.
        log: where its agents log their sessions: a log or a store, which stays its owner's to close, or a URL as in
            ``"sqlite:foreword.db"``; None for what the file says.

    Yields:
        The application. Leaving the context unloads everything.

    Raises:
        DeploymentError: every fault of the file, its plugins and their configs at once; or every plugin that failed or
            still waits for a service. Nothing is left loaded.
        UntrustedFileError: the file was not named, and is not trusted.
        TypeError: the file is no path.
        BaseExceptionGroup: on leaving, undos of plugins raised; all of them were run. Its notes name the plugins.
    """
    environment = dict(os.environ if environment is None else environment)
    path = path_of(file)
    data = read_file(path, str(file))
    if not named:
        check_trusted(path, data, store)
    reading = Reading.of(file, data, environment)
    if reading.deployment is None:
        reading.faults.check()
    deployment = reading.deployment
    assert deployment is not None  # noqa: S101 - without faults there is one
    secrets = Secrets(environment)
    # all of them before any code runs: what one plugin is given, another may tell when it fails
    configs = [(entry, secrets.filled_in(entry.config)) for entry in deployment.plugins if not entry.disabled]
    if backwards:
        configs.reverse()
    with FolderModules(deployment.folder) as modules:
        made = [_prepared(entry, config, modules, secrets, reading.faults) for entry, config in configs]
        reading.faults.check()
        where = store_of(deployment, secrets, environment) if log is None else log
        async with (
            LateLog(where, deployment.log) as late,  # both are closed after the agents
            Shipped(environment, secrets) as shipped,
        ):
            ctx = Context(setup_timeout=setup_timeout, guard=guard_of(secrets))
            opening = _Opening(deployment, ctx, modules, reading.faults, secrets)
            with opening.failed_teardowns_named():
                async with ctx:
                    yield await opening.app([each for each in made if each is not None], late, shipped)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A plugin that is ready to be mounted."""

    entry: PluginEntry
    plugin: object
    config: object = field(repr=False)
    version: str | None


def _prepared(
    entry: PluginEntry, filled_in: object, modules: FolderModules, secrets: Secrets, faults: Faults
) -> _Prepared | None:
    """Import a plugin and check its config; None if it cannot be had, which is noted."""
    use: Way = (*entry.path, "use")
    try:
        found: Found = resolve(entry.use, modules)
        spec = spec_of(found.plugin)
    except (Unresolved, ForewordError) as error:
        faults.add(use, secrets.hide(str(error)))
        return None
    except Exception as error:  # importing runs somebody else's code, and so does resolving its annotations
        faults.add(use, f"{entry.use} cannot be imported: {told(error, secrets)}")
        return None
    config: Way = (*entry.path, "config")
    if not faults.touch(config):
        check_config(spec, filled_in, config, faults, secrets)
    return _Prepared(entry, found.plugin, filled_in, found.version)


class _Opening:
    """A deployment that is being opened in a kernel."""

    def __init__(
        self, deployment: Deployment, ctx: Context, modules: FolderModules, faults: Faults, secrets: Secrets
    ) -> None:
        self._deployment, self._ctx, self._modules = deployment, ctx, modules
        self._faults, self._secrets = faults, secrets
        self._warnings: list[Fault] = []
        self._mounted: list[_Mounted] = []

    async def app(self, prepared: list[_Prepared], log: LateLog, shipped: Shipped) -> App:
        """Mount everything and see that it stands.

        Raises:
            DeploymentError: a plugin failed, or still waits; or what the file says does not fit what they contribute.
        """
        base = [self._ctx.mount(self._system_prompt()), self._ctx.mount(self._variables())]
        for service in (ToolRegistry, ModelAdapters):
            self._ctx.mount(service)
        await _settle(self._ctx)
        mounted = self._mounted
        for each in prepared:
            mounted.append(_Mounted(each.entry, self._ctx.mount(each.plugin, each.config), each.version))
            await _settle(self._ctx)  # one after the other, so that equal orders never depend on who was faster
        for way, fiber in zip((("system_prompt",), ("variables",)), base, strict=True):
            self._note_trouble(way, fiber)
        for one in mounted:
            self._note_trouble(one.entry.path, one.fiber)
        self._faults.check()
        await self._change_sections()
        agents = {name: await self._agent(entry) for name, entry in self._deployment.agents.items()}
        self._faults.check()
        self._note_idle_changes()
        return App(
            self._ctx,
            self._ctx.require(SystemPrompt),
            self._ctx.require(ToolRegistry),
            self._deployment,
            agents,
            tuple(self._warnings),
            self._secrets,
            tuple(mounted),
            log,
            shipped,
        )

    # -- what the file itself contributes ------------------------------------------------------------------------------

    def _system_prompt(self) -> Any:
        deployment = self._deployment

        @plugin(name="system-prompt")
        def system_prompt(ctx: Context) -> None:
            identity = deployment.source_of(("system_prompt", "identity"))
            persona = deployment.source_of(("system_prompt", "persona"))
            ctx.provide(SystemPrompt.serving(deployment.system_prompt, ctx, identity=identity, persona=persona))

        return system_prompt

    def _variables(self) -> Any:
        deployment = self._deployment

        @plugin(name=DEPLOYMENT)
        def variables(prompt: SystemPrompt) -> None:
            for name, value in deployment.variables.items():
                prompt.variable(name, value, source=deployment.source_of(("variables", name)))

        return variables

    async def _change_sections(self) -> None:
        deployment, faults = self._deployment, self._faults

        @plugin(name=DEPLOYMENT)
        def changes(prompt: SystemPrompt) -> None:
            for name, each in deployment.sections.items():
                source = deployment.source_of((*each.path, "text"))
                try:
                    prompt.override(
                        name, enabled=each.enabled, order=each.order, text=each.text, why=each.why, source=source
                    )
                except RegistrationError as error:
                    faults.add(each.path, str(error))

        if deployment.sections:
            self._note_trouble(("sections",), await _settled(self._ctx.mount(changes)))

    def _note_idle_changes(self) -> None:
        """Warn of sections that the file changes and nobody contributes; they may still come, so it is no fault."""
        refs = [ref for fiber in _plugins_below(self._ctx.fiber) for ref in fiber.contributions]
        names = {ref.name for ref in refs if ref.kind in ("section", "context")}
        for name, change in self._deployment.sections.items():
            if name not in names:
                why = "changes nothing: nobody contributes a section or context of that name"
                self._warn(change.path, f"{why}; {did_you_mean(name, names, 'sections and contexts')}")

    async def _agent(self, entry: AgentEntry) -> SystemPrompt:
        faults, ctx = self._faults, self._ctx.scope(entry.name)
        own = own_of(entry, self._deployment, lambda way, error: faults.add(way, str(error)))
        self._note_trouble(entry.path, await _settled(ctx.mount(own)))
        view = ctx.require(SystemPrompt)
        for remark in await check_names(view, entry):
            if remark.is_fault:
                faults.add(remark.path, remark.message)
            else:
                self._warn(remark.path, remark.message)
        return view

    def _warn(self, path: Way, message: str) -> None:
        self._warnings.append(Fault(self._faults.name, self._faults.line(path), spelled(path), message))

    # -- trouble -------------------------------------------------------------------------------------------------------

    def _note_trouble(self, path: Way, fiber: PluginFiber) -> None:
        """Note if a plugin, or one that it mounted, failed or still waits."""
        for each in (fiber, *_plugins_below(fiber)):
            who = "" if each is fiber else f"plugin {each.name}, which it mounted: "
            if each.state is FiberState.FAILED and each.error is not None:
                self._faults.add(path, f"{who}{self._why(each.error)}")
            elif each.state is not FiberState.ACTIVE:
                services = ", ".join(each.missing)
                what = f"plugin {each.name} still waits for {services}, which nobody provides"
                way_out = "add the plugin that does, or take this one out"
                if self._several_wait():
                    way_out += "; or one of those that wait provides it: then they wait for each other"
                self._faults.add(
                    path, f"{who}{what}; {way_out}" if services else f"{who}plugin {each.name} is {each.state.value}"
                )

    def _several_wait(self) -> bool:
        """Whether more than one plugin waits for a service."""
        waiting = [each for each in _plugins_below(self._ctx.fiber) if each.state is FiberState.PENDING]
        return len(waiting) > 1

    @contextmanager
    def failed_teardowns_named(self) -> Generator[None]:
        """Note which plugins of the file failed to go, on the error that leaves the kernel: that says no id of them."""
        try:
            yield
        except BaseException as error:  # undos raise anything; it goes on as it is
            for one in self._mounted:
                if one.fiber.failed_to_go:
                    error.add_note(f"plugin {self._called(one)} failed in teardown")
            raise

    def _called(self, one: _Mounted) -> str:
        """A plugin as the file calls it, and where."""
        line = self._faults.line(one.entry.path)
        return f"{one.entry.id} ({self._faults.name}{'' if line is None else f':{line}'})"

    def _why(self, error: Exception) -> str:
        cause, place = error.__cause__, place_of(error)
        hint = ""
        if isinstance(cause, ModuleNotFoundError) and cause.name in self._modules.offered():
            hint = f"; {cause.name} stands beside this file: import it at the top of the plugin's module"
        return f"{self._secrets.hide(str(error))}{hint}" + ("" if place is None else f" (raised at {place})")


async def _settle(ctx: Context) -> None:
    """Wait until no plugin of a kernel moves any more."""
    before: list[tuple[PluginFiber, FiberState]] | None = None
    now = _states(ctx)
    while now != before:
        before = now
        for fiber, _ in now:
            await _settled(fiber)
        now = _states(ctx)


async def _settled(fiber: PluginFiber) -> PluginFiber:
    with suppress(ForewordError):  # it stays on the fiber, and is told with all others
        await fiber.ready()
    return fiber


def _states(ctx: Context) -> list[tuple[PluginFiber, FiberState]]:
    return [(fiber, fiber.state) for fiber in _plugins_below(ctx.fiber)]


def _plugins_below(fiber: Fiber) -> Iterator[PluginFiber]:
    for child in fiber.children:
        if isinstance(child, PluginFiber):
            yield child
        yield from _plugins_below(child)


def _status(entry: PluginEntry, mounted: _Mounted | None) -> PluginStatus:
    if mounted is None:
        return PluginStatus(entry.id, entry.use, "", None, "disabled", ())
    fiber = mounted.fiber
    refs = [ref for each in (fiber, *_plugins_below(fiber)) for ref in each.contributions]
    return PluginStatus(entry.id, entry.use, fiber.name, mounted.version, fiber.state.value, tuple(refs))
