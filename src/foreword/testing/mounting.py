"""`mount`: one plugin in a kernel of its own, for the tests of whoever writes it.

    async with mount(house_style, {"language": "en-US"}) as mounted:
        assert "American" in (await mounted.render()).text

Leaving unloads the plugin and sees that nothing of it is left. Needs no test framework; what is found is an
`AssertionError`, or the error of the plugin itself.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias, cast

from foreword.errors import EntryRef, MissingServiceError, shown
from foreword.kernel.context import Context
from foreword.kernel.fiber import FiberState, PluginFiber
from foreword.kernel.names import shortened
from foreword.prompt.config import SystemPromptConfig
from foreword.prompt.system_prompt import SystemPrompt
from foreword.testing.leftovers import Standing, Tasks, told

if TYPE_CHECKING:
    from typing import Unpack

    from foreword.kernel.fiber import Fiber
    from foreword.prompt.config import ConfigFields
    from foreword.prompt.context import AssembleContext
    from foreword.prompt.rendering import Rendering

__all__ = ["Mounted", "mount"]

Services: TypeAlias = Iterable[object] | Mapping[type, object]


class Mounted:
    """A plugin that is mounted for a test.

    Attributes:
        fiber: the mounted plugin: ``fiber.state``, ``fiber.config``, ``fiber.missing``.
        kernel: the root's context, where the rest of an application would stand: mount other plugins there, provide
            services, emit events. What you do through it, undo before you leave.
        prompt: the whole prompt, as the global layer has it. It goes on when the plugin is unloaded.
    """

    __slots__ = ("_before", "_unloaded", "fiber", "kernel", "prompt")

    def __init__(self, kernel: Context, fiber: PluginFiber, before: Standing) -> None:
        self.kernel, self.fiber = kernel, fiber
        self.prompt = kernel.require(SystemPrompt)
        self._before = before
        self._unloaded = False

    @property
    def ctx(self) -> Context:
        """The plugin's own context, as it gets it."""
        return self.fiber.ctx

    @property
    def contributions(self) -> tuple[EntryRef, ...]:
        """What the plugin has registered, in order; then what its scopes and the plugins that it mounted have."""
        return tuple(ref for each in _with_all_below(self.fiber) for ref in each.contributions)

    async def render(self, context: AssembleContext | None = None) -> Rendering:
        """Assemble and render the whole prompt; raises as `SystemPrompt.render` does."""
        return await self.prompt.render(context)

    async def update(self, config: object) -> None:
        """Give the plugin another config, and wait until it is loaded anew with it.

        Raises:
            InvalidPluginConfigError: it does not fit; the plugin goes on with its old one.
            PluginFailedError: the plugin fails with it.
            MissingServiceError: it waits for a service now.
        """
        await self.fiber.update(config)
        await _settle(self.kernel, self.fiber)

    async def unload(self) -> None:
        """Unload the plugin, and see that all is as it was before; leaving the context does this if you did not.

        Raises:
            AssertionError: something of it is left; names all of it.
            BaseExceptionGroup: undos of the plugin raised; all of them were run.
        """
        self._unloaded = True
        await self.fiber.dispose()
        left = await self._before.what_is_left()
        if left:
            raise AssertionError(told(self.fiber.name, left))

    async def leave(self) -> None:
        """Unload, unless that was done; raises as `unload`."""
        if not self._unloaded:
            await self.unload()

    async def leave_on(self, error: Exception) -> None:
        """Unload on the way out on an error, which comes first: what else is found is noted on it."""
        try:
            await self.leave()
        except (AssertionError, BaseExceptionGroup) as also:
            error.add_note(f"on the way out also: {also}")

    def __repr__(self) -> str:
        return f"<Mounted {self.fiber.name}: {self.fiber.state.value}>"


@asynccontextmanager
async def mount(
    plugin: object,
    config: object = None,
    *,
    services: Services = (),
    plugins: Iterable[object] = (),
    system_prompt: SystemPromptConfig | None = None,
    setup_timeout: float | None = 5.0,
    teardown_timeout: float | None = 5.0,
    **fields: Unpack[ConfigFields],
) -> AsyncGenerator[Mounted]:
    """Mount a plugin in a fresh kernel that has a `SystemPrompt`; on leaving, unload it and see that nothing is left.

    Nothing of it may be left: no entry, listener, service, plugin or task that was not there before, and the assembly
    must be what it was. What the test itself has registered through ``mounted.prompt`` or ``mounted.kernel``, and the
    tasks that it has started inside, must be gone as well.

    Args:
        plugin: what `Context.mount` takes.
        config: what the plugin's config is made from: a dict, or an object of its config's class.
        services: what the plugin needs beside a `SystemPrompt`: objects, each provided under its own type; or a
            mapping, to provide a stand-in under the type that it stands for.
        plugins: others that are mounted before it, each alone or as a pair with its config; also functions of your
            test, which register variables or tools that the plugin counts on.
        system_prompt: the configuration of the prompt; or give its fields by name. Unless you say so, the prompt is
            empty but for what the plugin contributes.
        setup_timeout: seconds that set-up may take; None for any time.
        teardown_timeout: seconds that each step of teardown may take; None for any time.
        fields: fields of a `SystemPromptConfig`, such as ``persona`` and ``tool_order``.

    Yields:
        The mounted plugin, loaded, as are the plugins that it mounts.

    Raises:
        InvalidPluginError, UnresolvedAnnotationError: it is no plugin, or does not say what it needs.
        InvalidPluginConfigError: its config does not fit.
        PluginFailedError: its set-up failed; the cause is what it raised.
        PluginTimeoutError: its set-up hangs.
        MissingServiceError: nobody provides a service that it, or one that it mounts, needs.
        AssertionError: on leaving, something of it is left.
        BaseExceptionGroup: on leaving, undos of the plugin raised.
        TypeError: the services are no list and no mapping of classes, or the plugins no list of plugins and pairs.
    """
    provided, beside = _provisions(services), _mounts(plugins)
    if system_prompt is None:
        if "includeHarnessIdentity" not in fields:
            fields.setdefault("include_harness_identity", False)
        system_prompt = SystemPromptConfig(**fields)
    elif fields:
        raise TypeError("give either system_prompt=… or its fields, not both")
    tasks = Tasks()
    async with Context(setup_timeout=setup_timeout, teardown_timeout=teardown_timeout) as kernel:
        await kernel.mount(SystemPrompt, system_prompt).ready()
        for key, service in provided:
            kernel.provide(service, key=key)
        for other, its_config in beside:
            await kernel.mount(other, its_config).ready()
        before = await Standing.of(kernel)
        mounted = Mounted(kernel, kernel.mount(plugin, config), before)
        try:
            await _settle(kernel, mounted.fiber)
            yield mounted
        except Exception as error:  # the plugin's, or the test's: it is what the reader must see first
            await mounted.leave_on(error)
            raise
        await mounted.leave()
    left = await tasks.left()
    if left:
        raise AssertionError(told(mounted.fiber.name, left))


def _provisions(services: object) -> list[tuple[type, object]]:
    """The services that a plugin is to find, each with the type under which it finds it."""
    if not isinstance(services, Mapping):
        way_out = "a list of services, or a mapping as in {Ledger: EmptyLedger()}"
        return [(type(service), service) for service in _listed("services", services, way_out)]
    provisions: list[tuple[type, object]] = []
    for key, service in cast("Mapping[object, object]", services).items():
        if not isinstance(key, type):
            why = "a service is found by its class, or one that it stands in for"
            raise TypeError(f"mount(services=…) has the key {shortened(key)}, which is no class; {why}")
        provisions.append((key, service))
    return provisions


def _mounts(plugins: object) -> list[tuple[object, object]]:
    """The plugins that stand beside, each with its config."""
    mounts: list[tuple[object, object]] = []
    for each in _listed("plugins", plugins, "a list of plugins, each alone or as a pair (plugin, config)"):
        pair = cast("tuple[object, ...]", each) if isinstance(each, tuple) else (each, None)
        if len(pair) != 2:
            why = f"a tuple of {len(pair)}; give each plugin alone, or as a pair (plugin, config)"
            raise TypeError(f"mount(plugins=…) holds {why}")
        mounts.append((pair[0], pair[1]))
    return mounts


def _listed(option: str, given: object, wanted: str) -> list[object]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"mount({option}=…) is {shortened(given)}; give {wanted}")
    return list(cast("Iterable[object]", given))


async def _settle(kernel: Context, fiber: Fiber) -> None:
    """Wait until a plugin is loaded, with the plugins that it mounts.

    Raises:
        MissingServiceError: one of them waits for a service.
        PluginError: one of them failed.
    """
    if isinstance(fiber, PluginFiber):
        await fiber.ready()
        if fiber.state is not FiberState.ACTIVE:
            provided = sorted(key.__qualname__ for key in kernel.root.services.provided())
            raise MissingServiceError(", ".join(fiber.missing), fiber.name, provided, _way_out(kernel, fiber))
    for child in fiber.children:
        await _settle(kernel, child)


def _way_out(kernel: Context, waiting: Fiber) -> str:
    """How a plugin that waits gets its service: from the test; or never, where plugins wait for each other."""
    way_out = "give mount(…) the service itself, services=[…], or a plugin that provides it, plugins=[…]"
    others = [
        each.name
        for each in _with_all_below(kernel.fiber)
        if isinstance(each, PluginFiber) and each.missing and each is not waiting
    ]
    if not others:
        return way_out
    names = ", ".join(map(shown, others))
    return f"{way_out}; or one of those that wait as well provides it: then they wait for each other ({names})"


def _with_all_below(fiber: Fiber) -> Iterator[Fiber]:
    yield fiber
    for child in fiber.children:
        yield from _with_all_below(child)
