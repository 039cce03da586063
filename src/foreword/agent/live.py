"""The agents of a kernel that are there now. The first brings the loop's variables, the last takes them away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.agent.variables import loop_variables
from foreword.kernel.scope import GLOBAL

if TYPE_CHECKING:
    from foreword.agent.agent import Agent
    from foreword.kernel.context import Context
    from foreword.kernel.fiber import PluginFiber

__all__ = ["LiveAgents"]


class LiveAgents:
    """The agents of one kernel; a service that is there while some are, or are being made.

    It belongs to the root, since agents of several plugins share it. When the root goes, it goes before what was
    mounted earlier; so it stops all agents first, while all that their turns need is still there.
    """

    def __init__(self, ctx: Context) -> None:
        import anyio

        self.published: dict[str, Agent] = {}  # by the id of the session
        self._users = 0  # agents that are there, or are being made
        self._gone = False
        self._lock = anyio.Lock()
        self._home = _at_root(ctx)
        self._service = self._home.provide(self)
        self._variables: PluginFiber | None = None

    @classmethod
    async def joined(cls, ctx: Context) -> LiveAgents:
        """Those of a context's kernel, with the variables there; to be left again.

        Raises:
            PluginFailedError: the variables cannot be registered: somebody has one of their names.
        """
        while True:
            agents = ctx.get(LiveAgents) or cls(ctx)
            await agents._join()
            if not agents._gone:
                return agents

    async def _join(self) -> None:
        """One agent more, unless all of this has just gone."""
        import anyio

        with anyio.CancelScope(shield=True):  # it takes no time, and what was joined halfway could not be left
            async with self._lock:
                if not self._gone:
                    await self._one_more()

    async def _one_more(self) -> None:
        if self._variables is None:
            self._variables = self._home.mount(loop_variables)
            self._home.defer(self._stop_all)
        self._users += 1
        try:
            await self._variables.ready()
        except BaseException:
            await self._one_less()
            raise

    async def leave(self) -> None:
        """One agent less; with the last one all of this goes."""
        import anyio

        with anyio.CancelScope(shield=True):
            async with self._lock:
                await self._one_less()

    async def _one_less(self) -> None:
        self._users -= 1
        if self._users or self._gone:
            return
        if self._variables is not None:
            await self._variables.dispose()
        self._gone = True
        self._service.close()
        await self._home.dispose()

    async def _stop_all(self) -> None:
        for agent in list(self.published.values()):
            await agent.stop()


def _at_root(ctx: Context) -> Context:
    """A context in no scope, with an owner of its own that goes with the root."""
    fiber = ctx.fiber
    while fiber.parent is not None:
        fiber = fiber.parent
    return ctx.of(fiber).scope(GLOBAL)
