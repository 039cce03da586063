"""For tests of agents: a kernel with all that an agent needs, a scripted model, and a log that is checked throughout."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.kernel import kernel

from foreword import Agent, Context, SystemPrompt, create_agent, open_log
from foreword.agent.live import LiveAgents
from foreword.agent.models import ModelAdapters
from foreword.agent.retry import Clock
from foreword.errors import RequestMismatchError, StoreError
from foreword.session import RequestAttempted, UserSaid
from foreword.session.log import Log
from foreword.session.rebuild import rebuild, verify_request
from foreword.session.store.contract import Batch
from foreword.session.verify import verify
from foreword.testing import ScriptedModel
from foreword.testing.memory_store import MemoryStore
from foreword.tools.registry import ToolRegistry

MODEL = "scripted:m1"


class WatchedStore(MemoryStore):
    """A store that notes each batch before it writes it, and can be told to refuse them."""

    def __init__(self) -> None:
        super().__init__()
        self.journal: list[str] = []
        self.refuses = False
        self.before_write: Callable[[], Awaitable[None]] | None = None
        self.before_claim: Callable[[], Awaitable[None]] | None = None

    async def claim(self, session: str, **options: Any) -> Any:
        if self.before_claim is not None:
            await self.before_claim()
        return _WatchedClaim(self, await super().claim(session, **options))


class _WatchedClaim:
    def __init__(self, store: WatchedStore, claim: Any) -> None:
        self._store, self._claim = store, claim

    async def write(self, batch: Batch) -> bytes:
        if self._store.before_write is not None:
            await self._store.before_write()
        if self._store.refuses:
            raise StoreError("the disk", "store_full", "is full")
        types = [json.loads(event.envelope)["type"] for event in batch.events]
        head: bytes = await self._claim.write(batch)
        self._store.journal.append(f"stored to {types[-1]}")
        return head

    def __getattr__(self, name: str) -> Any:
        return getattr(self._claim, name)


class CheckedModel(ScriptedModel):
    """A scripted model that is sent nothing but what follows from the log of some agent; it keeps which attempts sent it."""

    ctx: Context

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.sent: list[tuple[str, bytes]] = []  # address and canonical bytes

    async def stream(self, request: Any, signal: Any = None) -> AsyncGenerator[Any]:
        self.sent.append((self._sender(request), request.canonical()))
        async with aclosing(super().stream(request, signal)) as chunks:
            async for chunk in chunks:
                yield chunk

    def _sender(self, request: Any) -> str:
        """The address of the attempt that sends a request."""
        live = self.ctx.get(LiveAgents)
        assert live is not None
        faults = []
        for agent in live.published.values():
            try:
                verify_request(agent.session, request)
            except RequestMismatchError as fault:
                faults.append(fault)
            else:
                attempt = logged(agent, RequestAttempted)[-1]
                return f"{agent.id}@{attempt.turn}.{attempt.step}/{attempt.attempt}"
        raise ExceptionGroup("what is sent is in no log", faults)


@dataclass
class Stage:
    """Where a test plays."""

    ctx: Context
    log: Log
    model: CheckedModel

    @property
    def prompt(self) -> SystemPrompt:
        return self.ctx.require(SystemPrompt)

    @property
    def tools(self) -> ToolRegistry:
        return self.ctx.require(ToolRegistry)

    async def agent(self, name: str = "reviewer", **options: Any) -> Agent:
        options = {"model": MODEL, "log": self.log, **options}
        return await create_agent(options.pop("ctx", self.ctx), name, **options)


@asynccontextmanager
async def stage(
    *steps: Any, store: Any = None, persona: str = "You review.", options: dict[str, Any] | None = None, **config: Any
) -> AsyncGenerator[Stage]:
    """A kernel with prompt, tools and a scripted model; `steps` is its script, or one function.

    What the model is sent is held against the log when it is sent, and again on leaving, when the whole log is verified.
    """
    model = CheckedModel(steps[0] if len(steps) == 1 and callable(steps[0]) else steps)
    async with open_log(MemoryStore() if store is None else store) as log:
        async with kernel(**options or {}) as ctx:
            await ctx.mount(SystemPrompt, {"include_harness_identity": False, "persona": persona, **config}).ready()
            await ctx.mount(ToolRegistry).ready()
            await ctx.mount(ModelAdapters).ready()
            ctx.require(ModelAdapters).register(model)
            model.ctx = ctx
            yield Stage(ctx, log, model)
        await check_log(log, model)


async def check_log(log: Log, *models: CheckedModel) -> None:
    """The log is whole and closed, and gives again what the models got, with the bodies that were sent."""
    assert (await verify(log)).intact
    for info in await log.sessions():
        assert (await log.view(info.id)).repaired == ()
    for model in models:
        for address, canonical in model.sent:
            rebuilt = await rebuild(log, address, adapter=model)
            assert rebuilt.canonical == rebuilt.body == canonical


class Sleeps(list[float]):
    """A clock on which nobody waits: it notes how long somebody would have."""

    @property
    def clock(self) -> Clock:
        async def sleep(wait: float) -> None:
            self.append(wait)

        return Clock(now=lambda: float(sum(self)), sleep=sleep)


def logged(agent: Agent, *types: type) -> list[Any]:
    """The events of an agent's session, those of some types only if there are any."""
    return [each.event for each in agent.session.events if not types or isinstance(each.event, types)]


def kinds(agent: Agent) -> list[str]:
    """What happened, by the names of the events."""
    return [type(event).__name__ for event in logged(agent)]


def said(agent: Agent) -> list[str]:
    """The user-role messages that were logged."""
    return [event.message.text for event in logged(agent, UserSaid)]


async def events_of(turn: Any) -> list[Any]:
    """All that a turn tells."""
    return [event async for event in turn]
