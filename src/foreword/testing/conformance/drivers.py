"""Drivers: how a root, a plugin and a scope come and go. A further kernel joins by a `Driver` of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from foreword import SystemPrompt, SystemPromptConfig
from foreword.kernel.context import Context
from foreword.kernel.plugins import plugin

__all__ = ["Driver", "Kernel", "Place", "Standalone"]


class Place(Protocol):
    """Where a step happens: the root, a plugin or a scope, each with its own view of the prompt."""

    @property
    def prompt(self) -> SystemPrompt:
        """The view through which this place registers and assembles."""
        ...

    async def plugin(self, name: str) -> Place:
        """Mount a plugin here; it goes when this place does."""
        ...

    async def scope(self, name: str, parent: SystemPrompt | None) -> Place:
        """Make a scope below that of ``parent``, or directly under the global one."""
        ...

    async def close(self) -> None:
        """Undo what was registered through this place; a second time does nothing."""
        ...


class Driver(Protocol):
    """Makes the root that a scenario runs in; whatever else is under test brings its own."""

    async def root(self, config: SystemPromptConfig) -> Place:
        """Build a prompt of this configuration, in a place of its own."""
        ...


@dataclass(frozen=True, slots=True)
class _View:
    """A place that is nothing but a view of a `SystemPrompt` standing alone."""

    prompt: SystemPrompt

    async def plugin(self, name: str) -> Place:
        return _View(self.prompt.owner(name))

    async def scope(self, name: str, parent: SystemPrompt | None) -> Place:
        return _View(self.prompt.scope(name, parent=parent))

    async def close(self) -> None:
        self.prompt.close()


class Standalone:
    """The driver of a `SystemPrompt` built directly, without a kernel; its plugins are owners. It never waits."""

    async def root(self, config: SystemPromptConfig) -> Place:
        """Build a prompt of this configuration; the place is its own view."""
        return _View(SystemPrompt(config))


@dataclass(frozen=True, slots=True)
class _Mounted:
    """A place in a kernel: a plugin, or a scope that one made, and how it goes."""

    ctx: Context
    prompt: SystemPrompt
    leave: Callable[[], Awaitable[object]]

    async def plugin(self, name: str) -> Place:
        return await _mounted(self.ctx, name)

    async def scope(self, name: str, parent: SystemPrompt | None) -> Place:
        ctx = self.ctx.scope(name, parent)
        return _Mounted(ctx, ctx.require(SystemPrompt), ctx.dispose)

    async def close(self) -> None:
        await self.leave()


async def _mounted(ctx: Context, name: str) -> _Mounted:
    """Mount a plugin that does nothing but keep what it is given."""
    given: list[tuple[Context, SystemPrompt]] = []

    @plugin(name=name)
    def keep(ctx: Context, prompt: SystemPrompt) -> None:
        given.append((ctx, prompt))

    fiber = await ctx.mount(keep).ready()
    return _Mounted(*given[-1], fiber.dispose)


class Kernel:
    """The driver of a `SystemPrompt` that a kernel serves; every place is a plugin's or a scope's. It needs a loop."""

    async def root(self, config: SystemPromptConfig) -> Place:
        """Run a kernel that serves a prompt of this configuration; the place is a plugin, and goes with the kernel."""
        kernel = Context()
        await kernel.__aenter__()

        async def leave() -> None:
            await kernel.__aexit__(None, None, None)

        try:
            await kernel.mount(SystemPrompt, config).ready()
            place = await _mounted(kernel, "root")
        except BaseException:
            await leave()
            raise
        return _Mounted(place.ctx, place.prompt, leave)
