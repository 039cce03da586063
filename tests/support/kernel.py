"""For tests of the kernel: services to provide, plugins that keep a log, and a count of what a kernel holds."""

# Without `from __future__ import annotations`: what is annotated here is what the kernel reads.
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from inspect import Parameter, Signature
from typing import Any, NamedTuple

import anyio
import anyio.lowlevel

from foreword.kernel.context import Context
from foreword.kernel.fiber import FiberState, PluginFiber
from foreword.kernel.plugins import plugin


class Alpha:
    """A service."""


class Beta:
    """Another one."""


class Gamma:
    """And another."""


class Held(NamedTuple):
    """How much a kernel holds."""

    fibers: int
    services: int
    listeners: int
    tasks: int


def held(ctx: Context) -> Held:
    """Count what a kernel holds, its event loop's tasks included."""
    root = ctx.root
    listeners = sum(len(table) for table in root.events.values())
    return Held(len(root.fibers), len(root.services.provided()), listeners, len(anyio.get_running_tasks()))


def made(
    name: str,
    body: Callable[..., object],
    *,
    needs: Sequence[type] = (),
    wants: Sequence[type] = (),
    config: type | None = None,
) -> Callable[..., object]:
    """Make a plugin whose body gets its context and the services it needs, and wants, by position.

    The body may be of any form that plugins may have.
    """
    keyword = Parameter.POSITIONAL_OR_KEYWORD
    parameters = [Parameter("ctx", keyword, annotation=Context)]
    parameters += [Parameter(f"need{at}", keyword, annotation=each) for at, each in enumerate(needs)]
    parameters += [Parameter(f"want{at}", keyword, annotation=each | None) for at, each in enumerate(wants)]
    if config is not None:
        parameters.append(Parameter("config", keyword, annotation=config))

    def call(**given: Any) -> object:
        return body(*(given[each.name] for each in parameters))

    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return plugin(name=name, config=config)(call)


def logged(
    name: str,
    log: list[str],
    *,
    provides: Sequence[type] = (),
    needs: Sequence[type] = (),
    wants: Sequence[type] = (),
) -> Callable[..., object]:
    """Make a plugin that provides and needs services, and logs ``+name`` and ``-name`` when it comes and goes."""

    def body(ctx: Context, *services: object) -> None:
        log.append(f"+{name}")
        ctx.defer(lambda: log.append(f"-{name}"))
        for each in provides:
            ctx.provide(each())

    return made(name, body, needs=needs, wants=wants)


async def comes_to(fiber: PluginFiber, state: FiberState) -> None:
    """Wait until a plugin has come into a state of itself."""
    with anyio.fail_after(20):
        while fiber.state is not state:
            await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def kernel(**options: Any) -> AsyncGenerator[Context]:
    """A kernel that is the test's whole world: on leaving, nothing is left of it."""
    before = len(anyio.get_running_tasks())
    async with Context(**options) as ctx:
        yield ctx
    assert held(ctx) == (0, 0, 0, before)
