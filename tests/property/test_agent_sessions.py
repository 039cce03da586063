"""Whatever an agent goes through, each request that a model got can be made again from the log, byte for byte.

Plugins come and go, contexts change, models are switched, answers fail and are tried again or cancelled, histories are
compacted, sessions forked and resumed, children spawned. Every request is held against the log when it is sent; then
the kernel is gone, and all of them are rebuilt from the store alone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.agent.support import CheckedModel, Sleeps, WatchedStore, check_log

from foreword import (
    Agent,
    Context,
    ModelSelection,
    RetryPolicy,
    SystemPrompt,
    ToolSchema,
    create_agent,
    install_model_selection,
    open_log,
)
from foreword.agent.models import ModelAdapters
from foreword.errors import DuplicateEntryError, EventRefusedError, UnknownAddressError
from foreword.session.log import Log
from foreword.testing import Reply
from foreword.tools.masks import ToolMask
from foreword.tools.registry import ToolRegistry
from foreword.wire.chunks import ModelFailure
from foreword.wire.messages import ToolCall, UserMessage
from foreword.wire.request import ModelConfig

names = st.sampled_from(["a", "b", "c"])
texts = st.sampled_from(["", "One.", "Two, {{model}}.", "Drei 🦉.", "{{v}}", "x" * 300]) | st.text(max_size=8).filter(
    lambda text: "{{" not in text
)
models = st.sampled_from([None, "scripted:m2", ModelConfig("scripted", "m3", {"temperature": 0.5})])
calls = st.builds(
    ToolCall,
    st.sampled_from(["1", "2"]),
    st.sampled_from(["echo", "fail", "nosuch"]),
    st.sampled_from(['{"text": "hi"}', "{}", "no json", '{"text": "🦉"}']),
)
busy = st.builds(ModelFailure, st.just("busy"), st.just("overloaded"), transient=st.booleans())
answers = (
    st.builds(Reply, st.sampled_from(["Yes.", "", "Ja 🦉."]))
    | st.builds(Reply, st.just("Well"), st.lists(calls, min_size=1, max_size=2).map(tuple))
    | st.builds(Reply, st.just("Well"), finish=st.just("max-tokens"))
    | st.builds(Reply, st.just("Well"), failure=busy)
    | st.just("cancel")
)
turns = st.tuples(st.just("turn"), texts, st.lists(answers, max_size=4))
others = st.one_of(
    st.tuples(st.just("section"), names, texts),
    st.tuples(st.just("context"), names, texts),
    st.tuples(st.just("variable"), texts.filter(lambda text: "{{" not in text)),
    st.tuples(st.just("tool"), names),
    st.tuples(st.just("close"), st.integers(0, 9)),
    st.tuples(st.just("model"), models),
    st.tuples(st.just("persona"), texts, st.booleans()),
    st.tuples(st.just("compact"), st.integers(0, 9), st.integers(0, 9)),
    st.tuples(st.just("fork"), st.none() | st.integers(1, 4)),
    st.tuples(st.just("resume")),
    st.tuples(st.just("crash"), texts, st.lists(answers, max_size=4), st.integers(1, 4)),
    st.tuples(st.just("spawn"), texts, st.booleans()),
    st.tuples(st.just("switch"), st.integers(0, 9)),
)
lives = st.lists(st.tuples(st.lists(others, max_size=2), turns), min_size=4, max_size=10)


@dataclass
class Life:
    """A kernel and its agents, and what can happen to them."""

    ctx: Context
    log: Log
    store: WatchedStore
    answers: list[Any]
    agents: list[Agent] = field(default_factory=list)
    at: int = 0
    selection: ModelSelection = field(default_factory=ModelSelection)
    undos: list[Callable[[], None]] = field(default_factory=list)

    @property
    def agent(self) -> Agent:
        return self.agents[self.at % len(self.agents)]

    @property
    def prompt(self) -> SystemPrompt:
        return self.ctx.require(SystemPrompt)

    async def begin(self, **options: Any) -> None:
        options = {"model": "scripted:m1", "log": self.log, **options}
        agent = await create_agent(
            self.ctx, "agent", clock=Sleeps().clock, retry=RetryPolicy(retries=2), max_steps=6, **options
        )
        install_model_selection(agent, self.selection)
        self.agents.append(agent)
        self.at = len(self.agents) - 1

    async def turn(self, text: str, script: list[Any]) -> None:
        self.answers[:] = script
        turn = self.agent.run(text)
        await turn.over()
        assert turn.end is not None
        event(f"turn {turn.end.reason}")

    def section(self, name: str, text: str) -> None:
        self.undos.append(self.prompt.section(name, text, order=1).close)

    def context(self, name: str, text: str) -> None:
        self.undos.append(self.prompt.context(name, text, order=1).close)

    def variable(self, text: str) -> None:
        self.undos.append(self.prompt.variable("v", text).close)

    def tool(self, name: str) -> None:
        self.undos.append(self.prompt.tools([ToolSchema(name, name, {"type": "object"})]).close)

    def close(self, number: int) -> None:
        if self.undos:
            self.undos.pop(number % len(self.undos))()

    def model(self, model: Any) -> None:
        self.selection.current = model

    async def persona(self, text: str, masked: bool) -> None:
        await self.begin(persona=text, tools=ToolMask(deny=["echo"]) if masked else None)

    def compact(self, first: int, last: int) -> None:
        length = len(self.agent.session.messages)
        if length:
            self.agent.session.replace_history(first % length, last % length, UserMessage("In short."))

    async def fork(self, number: int | None) -> None:
        session = await self.agent.session.fork(None if number is None else f"@{number}")
        await self.begin(session=session)

    async def resume(self) -> None:
        agent = self.agents.pop(self.at % len(self.agents))
        await agent.session.flush()  # a session comes into being with its first flush
        await agent.dispose()
        await self.begin(session=agent.id)

    async def crash(self, text: str, script: list[Any], write: int) -> None:
        """A turn of which the store gets the first few writes only; then the session goes on from what it has."""
        agent = self.agents.pop(self.at % len(self.agents))
        await agent.session.flush()
        writes = iter(range(1, write))

        async def fail_then() -> None:
            self.store.refuses = next(writes, None) is None

        self.store.before_write = fail_then
        self.answers[:] = script
        await agent.run(text).over()
        with suppress(BaseExceptionGroup):  # its session cannot be flushed any more
            await agent.dispose()
        self.store.before_write, self.store.refuses = None, False
        await self.begin(session=agent.id)
        event(f"crash in a turn: {self.agent.session.turn == agent.session.turn}")

    async def spawn(self, text: str, masked: bool) -> None:
        self.agents.append(await self.agent.spawn("child", persona=text, tools=ToolMask(allow=[]) if masked else None))
        self.at = len(self.agents) - 1

    async def switch(self, number: int) -> None:
        self.at = number


async def live(todo: list[tuple[list[Any], Any]]) -> None:
    store, script = WatchedStore(), list[Any]()

    async def answer(request: Any) -> Any:
        step = script.pop(0) if script else Reply("Done.")
        if step == "cancel":
            life.agent.cancel()
            return "Never heard."
        return step

    model = CheckedModel(answer)
    async with open_log(store) as log, Context() as ctx:
        await ctx.mount(SystemPrompt, {"include_harness_identity": False}).ready()
        await ctx.mount(ToolRegistry).ready()
        await ctx.mount(ModelAdapters).ready()
        model.ctx = ctx
        ctx.require(ModelAdapters).register(model)
        ctx.require(ToolRegistry).register(echo)
        ctx.require(ToolRegistry).register(fail)
        life = Life(ctx, log, store, script)
        await life.begin()
        for others, turn in todo:
            for name, *arguments in [*others, turn]:
                await carry_out(life, name, arguments)
        event(f"about {len(model.sent) // 5 * 5} requests")
    async with open_log(store.reopened()) as log:
        await check_log(log, model)


async def carry_out(life: Life, name: str, arguments: list[Any]) -> None:
    """Do one thing; that it is refused is one of the things that can happen."""
    if not life.agents or not life.agent.active:  # its parent has gone
        await life.begin()
    try:
        done = getattr(life, name)(*arguments)
        if done is not None:
            await done
    except (DuplicateEntryError, EventRefusedError, UnknownAddressError) as refused:
        event(f"{name} refused: {refused.kind}")


@pytest.mark.slow
@settings(max_examples=300)
@given(lives)
def test_every_request_can_be_made_again(todo: list[tuple[list[Any], Any]]) -> None:
    """See above."""
    anyio.run(live, todo)


def echo(text: str) -> str:
    """Say it again."""
    return text


def fail() -> str:
    """Fail."""
    raise ValueError("no")
