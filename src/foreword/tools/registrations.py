"""Registrations of tools and masks: what is closed by hand, and what happens when a plugin goes while its tool runs.

A tool goes at once: from then on it is unknown. Calls that run go on. A plugin on its way out waits for them, for half
of the kernel's ``teardown_timeout`` at most, before it closes what it had opened before it registered the tool; then
it cancels them. Standing alone there is nobody who could wait: running calls simply end when they end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from foreword.kernel.effects import Registration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from foreword.kernel.context import Context
    from foreword.kernel.effects import Owner, Undo
    from foreword.prompt.running import Running
    from foreword.tools.execute import Call
    from foreword.tools.masks import Mask
    from foreword.tools.resolver import Tool

__all__ = ["MaskRegistration", "ToolRegistration"]

_LONGEST_WAIT: Final = 5.0
"""Seconds that running calls have where teardown may take any time."""


class MaskRegistration(Registration):
    """The registration of a mask."""

    __slots__ = ("_inherited", "_mask")

    def __init__(self, mask: Mask, owner: Owner, undo: Undo, inherited: Callable[[], Iterable[str]]) -> None:
        super().__init__(mask, owner, undo)
        self._mask, self._inherited = mask, inherited

    @property
    def unmatched(self) -> tuple[str, ...]:
        """The names and patterns that mean no tool as things are now: mistakes, or tools that are still to come."""
        mask, inherited = self._mask.mask, list(self._inherited())
        return (*mask.unknown(inherited), *mask.unmatched(inherited))


class ToolRegistration(Registration):
    """The registration of a tool."""

    __slots__ = ("_ctx", "_running", "_tool")

    def __init__(self, tool: Tool, owner: Owner, undo: Undo, running: Running, ctx: Context | None) -> None:
        super().__init__(tool, owner, undo)
        self._tool, self._running, self._ctx = tool, running, ctx

    @property
    def in_turn(self) -> Undo:
        """What the owner runs when it goes: under a kernel it waits for calls that run."""
        return self.close if self._ctx is None else self._leave

    def close(self) -> None:
        """Take the tool away, at once and once. Calls that run go on."""
        super().close()
        if self._ctx is not None and self._owner.active and self._busy():
            self._owner.add(self._drain)  # its plugin still has to wait for them when it goes
            self._ctx.root.start(self._forget)

    async def _leave(self) -> None:
        try:
            super().close()
        finally:
            await self._drain()

    async def _drain(self) -> None:
        """Wait for the calls that run, then cancel them; those that do not go then are left behind."""
        import anyio

        ctx = cast("Context", self._ctx)
        longest = ctx.root.teardown_timeout
        with anyio.move_on_after(_LONGEST_WAIT if longest is None else longest / 2):
            await self._wait()
        for call in self._busy():
            call.signal.cancel(f"plugin {self._owner.name} is being unloaded")
        await self._wait()

    async def _forget(self) -> None:
        await self._wait()
        self._owner.discard(self._drain)

    async def _wait(self) -> None:
        waiting = cast("Context", self._ctx).root.waiting
        await self._running.wait_for(self._owner, waiting, self._tool)

    def _busy(self) -> list[Call]:
        waiting = cast("Context", self._ctx).root.waiting
        return cast("list[Call]", self._running.busy_for(self._owner, waiting, self._tool))
