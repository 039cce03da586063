"""Laws of random trees of plugins that need, want and provide services, and come, change and go in any order."""

# Without `from __future__ import annotations`: the kernel reads the annotations of plugins made in functions.
import logging
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel import Held, held, kernel, made
from tests.support.short import facts

from foreword import ForewordError, SystemPrompt
from foreword.kernel.context import Context
from foreword.kernel.fiber import Fiber, FiberState, PluginFiber

pytestmark = pytest.mark.anyio

PATIENCE = 60.0


@pytest.fixture(autouse=True, scope="module")
def quiet() -> Iterator[None]:
    """Here plugins fail by the thousand, and writing down why would take longer than all the rest."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


SERVICES = [type(f"Service{number}", (), {"life": None}) for number in range(4)]


@dataclass(frozen=True)
class Spec:
    """A plugin to be."""

    provides: frozenset[int]
    needs: frozenset[int]
    wants: frozenset[int]
    form: str
    undos: tuple[str, ...]
    fails: bool  # in its first life
    contributes: bool  # to the prompt, which it then needs
    children: tuple["Spec", ...] = ()


@dataclass(eq=False)
class Life:
    """One life of a plugin: what it was given, what it registered, what was undone."""

    given: list[Any]
    registered: int = 0
    undone: list[int] = field(default_factory=list[int])


class World:
    """All that happened, and what should not have."""

    def __init__(self) -> None:
        self.lives: list[Life] = []
        self.faults: list[str] = []
        self.names = 0

    def plugin(self, spec: Spec) -> Callable[..., object]:
        """A plugin after a spec."""
        self.names += 1
        name = f"p{self.names}"
        lives: list[Life] = []

        def register(ctx: Context, *services: Any) -> None:
            life = Life([each for each in services if each is not None and not isinstance(each, SystemPrompt)])
            lives.append(life)
            self.lives.append(life)
            if spec.contributes:
                contribute(services[0], name)
            self._register(ctx, spec, life)
            if spec.fails and len(lives) == 1:
                raise ValueError(name)

        needs = [SERVICES[number] for number in spec.needs]
        needs = [SystemPrompt, *needs] if spec.contributes else needs
        return made(name, in_form(spec.form, register), needs=needs, wants=[SERVICES[number] for number in spec.wants])

    def _register(self, ctx: Context, spec: Spec, life: Life) -> None:
        for number in spec.provides:
            service = SERVICES[number]()
            service.life = life
            with suppress(ForewordError):
                ctx.provide(service)
        children = list(spec.children)
        for kind in spec.undos:
            ctx.defer(self._undo(life, life.registered, kind))
            life.registered += 1
            if children:
                ctx.mount(self.plugin(children.pop()))

    def _undo(self, life: Life, number: int, kind: str) -> Callable[[], object]:
        def undo() -> None:
            if not life.undone:
                self._unwinds(life)
            life.undone.append(number)
            if kind.startswith("raising"):
                raise LookupError(number)

        async def undo_later() -> None:
            await anyio.lowlevel.checkpoint()
            undo()
            await anyio.lowlevel.checkpoint()

        return undo_later if kind.endswith("async") else undo

    def _unwinds(self, life: Life) -> None:
        for other in self.lives:
            unloaded = len(other.undone) == other.registered
            if not unloaded and any(service.life is life for service in other.given):
                self.faults.append("a provider unwinds before one that was loaded with it is unloaded")

    def check(self) -> None:
        """See that all is undone, and was in order."""
        assert self.faults == []
        for life in self.lives:
            assert life.undone == list(reversed(range(life.registered))), "each undo runs once, last in, first out"


def contribute(prompt: SystemPrompt, name: str) -> None:
    prompt.section(f"{name}:section", name, order=1)
    prompt.scope(f"{name}'s").variable("v", name)
    prompt.on_change(lambda: None)


def in_form(form: str, register: Callable[..., None]) -> Callable[..., object]:
    """The body of a plugin of one form or another."""

    async def later(*given: Any) -> None:
        await anyio.lowlevel.checkpoint()
        register(*given)
        await anyio.lowlevel.checkpoint()

    def generator(*given: Any) -> Generator[None]:
        register(*given)
        yield

    async def async_generator(*given: Any) -> AsyncGenerator[None]:
        register(*given)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            yield
            tasks.cancel_scope.cancel()

    return {"plain": register, "async": later, "generator": generator, "async generator": async_generator}[form]


numbers = st.frozensets(st.integers(0, len(SERVICES) - 1), max_size=2)
undos = st.lists(st.sampled_from(["sync", "async", "raising", "raising async"]), min_size=1, max_size=3).map(tuple)
forms = st.sampled_from(["plain", "async", "generator", "async generator"])
rarely = st.integers(0, 5).map(lambda number: number == 5)


def specs(children: st.SearchStrategy[tuple[Spec, ...]]) -> st.SearchStrategy[Spec]:
    return st.builds(Spec, numbers, numbers, numbers, forms, undos, rarely, st.booleans(), children)


leaves = specs(st.just(()))
trees = specs(st.lists(leaves, max_size=2).map(tuple))
which = st.integers(0, 9)
steps = st.one_of(
    st.tuples(st.just("mount"), trees, which),
    st.tuples(st.just("mount"), trees, which),
    st.tuples(st.sampled_from(["dispose", "update", "update the prompt", "dispose a scope"]), which, st.booleans()),
    st.tuples(st.just("pause"), which, st.none()),
)
plans = st.lists(steps, max_size=12)
Plan = list[tuple[str, Any, Any]]


class Run:
    """A plan carried out: everything below one plugin's context, so that nothing hides on the root."""

    def __init__(self, ctx: Context, tasks: anyio.abc.TaskGroup, prompt: PluginFiber) -> None:
        self.ctx, self.tasks, self.prompt = ctx, tasks, prompt
        self.world = World()
        self.scopes = [ctx.scope("one"), ctx.scope("two")]
        self.fibers: list[PluginFiber] = []

    async def take(self, plan: Plan) -> None:
        """Take every step, waiting for its end or not."""
        for kind, what, how in plan:
            if kind == "mount":
                place = [self.ctx, *self.scopes, *(fiber.ctx for fiber in self.fibers)]
                with suppress(ForewordError):
                    self.fibers.append(place[how % len(place)].mount(self.world.plugin(what)))
            elif kind == "pause":
                for _ in range(what):
                    await anyio.lowlevel.checkpoint()
            else:
                await self._change(kind, what, wait=how)

    async def _change(self, kind: str, at: int, *, wait: bool) -> None:
        if kind == "dispose a scope":
            call: Callable[[], Any] = self.scopes[at % 2].dispose
        elif kind == "update the prompt" or not self.fibers:
            call = lambda: self.prompt.update({"persona": "P"})  # noqa: E731
        elif kind == "dispose":
            call = self.fibers[at % len(self.fibers)].dispose
        else:
            fiber = self.fibers[at % len(self.fibers)]
            call = lambda: fiber.update(None)  # noqa: E731

        async def tolerant() -> None:
            with suppress(BaseExceptionGroup, ForewordError):
                await call()

        if wait:
            await tolerant()
        else:
            self.tasks.start_soon(tolerant)

    async def settle(self) -> None:
        """Wait until all that can be loaded is, and nothing changes any more."""
        while not all(at_rest(fiber) for fiber in self.ctx.root.fibers):
            await anyio.lowlevel.checkpoint()


def at_rest(fiber: Fiber) -> bool:
    """Whether a fiber is active, has failed, or waits for a service."""
    waiting = isinstance(fiber, PluginFiber) and fiber.state is FiberState.PENDING and fiber.missing
    return fiber.state in (FiberState.ACTIVE, FiberState.FAILED) or bool(waiting)


def a_resident(prompt: SystemPrompt) -> None:
    """Contribute something that stays."""
    prompt.section("resident", "R", order=9)


async def run(plan: Plan, unload: Callable[[Run], Any]) -> None:
    """Carry out a plan and unload everything, one way or another; then nothing of it is left."""
    with anyio.fail_after(PATIENCE):
        async with kernel() as ctx:
            prompt = await ctx.mount(SystemPrompt, {"persona": "P"}).ready()
            resident = await ctx.mount(a_resident).ready()
            before, text = held(ctx), facts(ctx.require(SystemPrompt))
            async with anyio.create_task_group() as tasks:
                running = Run(ctx, tasks, prompt)
                await running.take(plan)
                await running.settle()
            await unload(running)
            for scope in running.scopes:
                with suppress(BaseExceptionGroup):
                    await scope.dispose()
            running.world.check()
            await prompt.ready()
            await resident.ready()
            view = ctx.require(SystemPrompt)
            assert facts(view) == text
            assert view.scopes == ()
            for _ in range(5):  # the last tasks end a moment after they have told that all is done
                await anyio.lowlevel.checkpoint()
            assert held(ctx) == before


async def in_order(running: Run) -> None:
    """Unload first in, first out: the hard way round."""
    for fiber in running.fibers:
        with suppress(BaseExceptionGroup):
            await fiber.dispose()


async def at_once(running: Run) -> None:
    """Unload all in tasks of their own."""

    async def dispose(fiber: PluginFiber) -> None:
        with suppress(BaseExceptionGroup):
            await fiber.dispose()

    async with anyio.create_task_group() as tasks:
        for fiber in running.fibers:
            tasks.start_soon(dispose, fiber)


async def in_reverse(running: Run) -> None:
    """Unload last in, first out."""
    for fiber in reversed(running.fibers):
        with suppress(BaseExceptionGroup):
            await fiber.dispose()


@pytest.mark.slow
@pytest.mark.parametrize("unload", [in_order, at_once, in_reverse])
@given(plan=plans)
async def test_unloading_everything_leaves_nothing(plan: Plan, unload: Callable[[Run], Any]) -> None:
    """Whatever came, changed and went, in whatever order all goes: the assembly is what it was, no task, listener,
    service or fiber is left, every undo ran once, and dependents were unloaded before their providers unwound."""
    await run(plan, unload)


@pytest.mark.slow
@given(plan=plans)
async def test_leaving_the_kernel_undoes_everything(plan: Plan) -> None:
    """Leaving at any moment, with all under way, is an unloading like any other."""
    worlds: list[World] = []
    contexts: list[Context] = []
    tasks_before = len(anyio.get_running_tasks())

    async def live() -> None:
        async with anyio.create_task_group() as tasks, Context() as ctx:
            contexts.append(ctx)
            running = Run(ctx, tasks, ctx.mount(SystemPrompt, {"persona": "P"}))
            worlds.append(running.world)
            await running.take(plan)

    with anyio.fail_after(PATIENCE), suppress(BaseExceptionGroup):
        await live()
    worlds[0].check()
    assert held(contexts[0]) == Held(0, 0, 0, tasks_before)
