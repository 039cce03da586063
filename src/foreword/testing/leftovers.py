"""What a plugin has left behind, now that it is unloaded: `mount` looks before and after, and names the difference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from foreword.errors import ForewordError
from foreword.kernel.effects import Registration
from foreword.prompt.system_prompt import SystemPrompt

if TYPE_CHECKING:
    from typing import Self

    from anyio import TaskInfo

    from foreword.kernel.context import Context
    from foreword.kernel.fiber import Fiber
    from foreword.prompt.entries import Entries

__all__ = ["GRACE", "Standing", "Tasks", "told"]

GRACE: Final = 1.0
"""Seconds that tasks have to end, once the plugin is unloaded: what is cancelled may need a turn or two."""

Facts: TypeAlias = dict[tuple[str, str], object]
"""What an assembly says, by kind and name."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How things stand in a kernel at one moment: who is there, what is registered, what an assembly says."""

    kernel: Context = field(repr=False)
    fibers: tuple[Fiber, ...]
    registrations: tuple[Registration, ...]
    facts: Facts

    @classmethod
    async def of(cls, kernel: Context) -> Self:
        """How things stand now."""
        fibers = tuple(kernel.root.fibers)
        registrations = tuple(each for fiber in fibers for each in _registered_through(fiber))
        return cls(kernel, fibers, registrations, await _facts(kernel.require(SystemPrompt)))

    async def what_is_left(self) -> list[str]:
        """What there is now that was not there at that moment, in words.

        Differences of the assembly are told only where nothing else explains them.
        """
        now = await self.of(self.kernel)
        left = [f"{_what(each)} below {_name_above(each)}" for each in now.fibers if each not in self.fibers]
        left += [each.label for each in now.registrations if each not in self.registrations]
        return left or list(_differences(self.facts, now.facts))


def _registered_through(fiber: Fiber) -> Iterator[Registration]:
    """What is registered through a fiber, services and undos included."""
    for undo in fiber._undos:  # pyright: ignore[reportPrivateUsage] - `contributions` tells of entries and listeners only
        registration = Registration.behind(undo)
        if registration is not None:
            yield registration


def _what(fiber: Fiber) -> str:
    return f"{'plugin' if fiber.plugin is fiber else 'scope'} {fiber.name}"


def _name_above(fiber: Fiber) -> str:
    return "nothing" if fiber.parent is None else fiber.parent.name


async def _facts(prompt: SystemPrompt) -> Facts:
    """What an assembly says; of one that cannot be made, why."""
    try:
        assembly = await prompt.assemble()
    except ForewordError as error:
        return {("error", error.kind): str(error)}
    lists: dict[str, Entries[Any]] = {
        "section": assembly.sections,
        "context": assembly.contexts,
        "tool": assembly.tools,
    }
    facts: Facts = {("variable", name): value for name, value in assembly.variables.items()}
    for kind, entries in lists.items():
        facts["order", kind] = [each.name for each in entries]
        for each in entries:
            facts[kind, each.name] = getattr(each, "text", each)
    return facts


def _differences(before: Facts, now: Facts) -> Iterator[str]:
    for key in sorted(before.keys() | now.keys()):
        kind, name = key
        if before.get(key) == now.get(key) or (kind == "order" and before.keys() != now.keys()):
            continue
        if kind == "error":
            yield f"an assembly fails otherwise than before: {now.get(key, 'no longer')}"
        elif kind == "order":
            yield f"the {name}s of an assembly stand in another order"
        else:
            how = "is new" if key not in before else "is gone" if key not in now else "is another one"
            yield f'{kind} "{name}" of an assembly {how}'


class Tasks:
    """The tasks of the event loop at one moment."""

    def __init__(self) -> None:
        import anyio

        self._before = {each.id for each in anyio.get_running_tasks()}

    async def left(self) -> list[str]:
        """Those that have come since, and do not end."""
        import anyio

        with anyio.move_on_after(GRACE):
            while self._new():  # noqa: ASYNC110 - they are anybody's: nothing tells when they end
                await anyio.sleep(0.01)
        return [f"task {each.name} ({getattr(each.coro, '__qualname__', each.coro)})" for each in self._new()]

    def _new(self) -> list[TaskInfo]:
        import anyio

        return [each for each in anyio.get_running_tasks() if each.id not in self._before]


def told(plugin: str, left: Iterable[str]) -> str:
    """What is left of a plugin, as a message."""
    lines = "".join(f"\n  {each}" for each in left)
    way_out = "what a plugin does through the SystemPrompt and the Context that it gets goes with it; undo all else"
    return f"plugin {plugin} is unloaded, and left behind:{lines}\n{way_out}"
