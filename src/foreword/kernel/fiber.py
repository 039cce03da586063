"""Fibers: one mounted plugin each, with a life of its own.

    pending ──▶ loading ──▶ active ──▶ unloading ──▶ pending, loading again, or disposed
                   └─────────┴─▶ failed (undone; tried again when its services or its config change)

A `Fiber` owns what is registered through it and undoes it last in, first out, every undo once, all of them even when
one raises. A `PluginFiber` has a task that loads its plugin when its services are there and unloads it when they go;
each loading is a `Life`, in a task of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from foreword.errors import (
    EntryRef,
    InactiveContextError,
    InvalidConfigError,
    PluginDeadlockError,
    PluginError,
    PluginFailedError,
    message_of,
)
from foreword.kernel.effects import Registration
from foreword.kernel.life import Life, run_undo, when_it_failed
from foreword.kernel.plugins import PluginSpec, copied, validated

if TYPE_CHECKING:
    import anyio

    from foreword.kernel.context import Context, Root
    from foreword.kernel.effects import Undo
    from foreword.kernel.services import Epoch

__all__ = ["Fiber", "FiberState", "PluginFiber", "log_error"]

_log = logging.getLogger("foreword.kernel")
_running: ContextVar[Fiber | None] = ContextVar("the fiber whose plugin's code is running", default=None)


class FiberState(Enum):
    """Where a fiber is in its life."""

    PENDING = "pending"
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    UNLOADING = "unloading"
    DISPOSED = "disposed"


class Fiber:
    """An owner in a kernel: a root, a scope, or (as a `PluginFiber`) a mounted plugin."""

    def __init__(self, root: Root, parent: Fiber | None, name: str) -> None:
        self.root, self.parent, self.name = root, parent, name
        self.state = FiberState.ACTIVE
        self.awaits: list[Fiber] = []  # those whose going or settling its own set-up or teardown awaits now
        self._undos: dict[Undo | Fiber, None] = {}  # in order of registration; a fiber stands for its disposal
        self._gone: anyio.Event | None = None  # set up by the first who disposes; shared by all
        self._undo_errors: list[BaseException] = []

    # -- an owner ------------------------------------------------------------------------------------------------------

    @property
    def active(self) -> bool:
        """Whether things can be registered through it."""
        return self.state not in (FiberState.UNLOADING, FiberState.DISPOSED)

    @property
    def within_reach(self) -> bool:
        """Whether this is the kernel's thread, which alone may undo."""
        return self.root.in_thread

    @property
    def serves(self) -> bool:
        """Whether what it provides is seen by others."""
        return self.state is FiberState.ACTIVE

    @property
    def providers(self) -> tuple[Fiber, ...]:
        """Those whose services it was loaded with."""
        return ()

    @property
    def plugin(self) -> Fiber:
        """The plugin (or root) that acts through it: itself, or of a scope whoever made it."""
        return self if self.parent is None else self.parent.plugin

    @property
    def children(self) -> tuple[Fiber, ...]:
        """Those that go with it, in order."""
        return tuple(each for each in self._undos if isinstance(each, Fiber))

    @property
    def contributions(self) -> tuple[EntryRef, ...]:
        """What is registered through it now, in order: entries and listeners; not services, undos and children."""
        registrations = map(Registration.behind, self._undos)
        return tuple(ref for each in registrations if each is not None for ref in each.refs)

    def add(self, undo: Undo) -> None:
        """Keep an undo, sync or async, until the fiber unloads.

        Raises:
            InactiveContextError: it is unloading or gone.
        """
        self.check_active("register while it is loaded")
        self._undos[undo] = None

    def add_child(self, child: Fiber) -> None:
        """Have another fiber disposed in its turn when this one unloads; raises as `add`."""
        self.check_active("mount it while this one is loaded")
        self._undos[child] = None
        self.root.fibers[child] = None

    def check_active(self, way_out: str) -> None:
        """See that it is not unloading or gone; raises as `add`."""
        if not self.active:
            raise InactiveContextError(f"plugin {self.name} ({self.state.value})", way_out)

    def discard(self, undo: Undo | Fiber) -> None:
        """Forget an undo that has run already."""
        self._undos.pop(undo, None)

    # -- going ---------------------------------------------------------------------------------------------------------

    async def dispose(self) -> None:
        """Undo everything and go for good. Shared: everybody who calls waits for the one teardown.

        Called from the fiber's own plugin it does not wait, since the plugin must end first.

        Raises:
            BaseExceptionGroup: undos that raised; all of them were run.
            PluginDeadlockError: this one cannot go before the plugin that calls has ended.
        """
        if _running.get() is self:
            self._told_to_go()
            return
        self._refuse_deadlock()
        gone = self._told_to_go()
        with self._awaited():
            await gone.wait()
        self.raise_undo_errors()

    async def dispose_in_turn(self) -> None:
        """As `dispose`, for the kernel itself, whose order leads to no deadlock.

        It starts no task, and waits for none that may not have begun: when asyncio's loop is ending it takes no more
        tasks, and of those that it cancels before their first step not a line is run.
        """
        import anyio

        self._gone = self._gone or anyio.Event()
        await self._go_in_turn()
        await self._gone.wait()
        self.raise_undo_errors()

    @property
    def failed_to_go(self) -> bool:
        """Whether undos raised on its way out, its own or of what went with it."""
        return bool(self._undo_errors)

    def raise_undo_errors(self) -> None:
        """Raise what undos raised, all in one group."""
        if self._undo_errors:
            raise BaseExceptionGroup(f"undoing {self.name} failed", self._undo_errors)

    def hurry(self) -> None:
        """Somebody waits for it to go."""

    def _told_to_go(self) -> anyio.Event:
        import anyio

        if self._gone is None:
            self.root.check_running()
            self._gone = anyio.Event()
            self._start_going()
        return self._gone

    def _start_going(self) -> None:
        self.root.start(self._go)

    async def _go_in_turn(self) -> None:
        await self._go()

    async def _go(self) -> None:
        if not self.active:
            return  # another task came first
        token = _running.set(self)
        self.state = FiberState.UNLOADING
        try:
            await self._unload_dependents()
            await self._unwind(lambda undo: run_undo(self.name, undo, self.root.teardown_timeout))
        finally:
            self._end()
            _running.reset(token)

    async def _unload_dependents(self) -> None:
        """Serve no more, and wait until every plugin that was loaded with what this one provides is unloaded."""
        self.root.services.told(self)
        await self.root.wait_for_dependents(self)

    async def _unwind(self, run: Callable[[Undo], Awaitable[None]]) -> None:
        """Run every undo, last in, first out; keep what they raise."""
        import anyio

        while self._undos:
            undo = next(reversed(self._undos))
            try:
                if isinstance(undo, Fiber):
                    with anyio.CancelScope(shield=True):  # it has its own time
                        await undo.dispose_in_turn()
                else:
                    del self._undos[undo]
                    await run(undo)
            except BaseException as error:  # whatever an undo raises, the others must run
                self._undo_errors.append(self.root.guard(self.name, "teardown", error))

    def _end(self) -> None:
        import anyio

        self.state = FiberState.DISPOSED
        self.root.fibers.pop(self, None)
        if self.parent is not None:
            self.parent.discard(self)
        self._gone = self._gone or anyio.Event()
        self._gone.set()

    # -- deadlocks -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _awaited(self) -> Generator[None]:
        """While this is entered, whoever calls awaits this fiber, and so does the plugin whose code that is."""
        caller = _busy_caller()
        if caller is not None:
            caller.awaits.append(self)
        try:
            with self.root.waiting.entered(self):
                yield
        finally:
            if caller is not None:
                caller.awaits.remove(self)

    def _refuse_deadlock(self, *, going: bool = True) -> None:
        """See that this fiber can go, or only settle, while the plugin that calls awaits that in set-up or teardown.

        Raises:
            PluginDeadlockError: it has to wait for the one that calls.
        """
        caller = _busy_caller()
        if caller is not None and self.waits_for(caller, going=going):
            raise PluginDeadlockError(caller.name, self.name)

    def waits_for(self, other: Fiber, *, going: bool = True) -> bool:
        """Whether this one cannot go (or only settle) before another one does, or is that one."""
        seen: set[Fiber] = {self}
        ahead: list[Fiber] = [self]
        while ahead:
            each = ahead.pop()
            if each is other:
                return True
            must_go = going or each is not self or self.state is not FiberState.LOADING
            for next_one in each.held_up_by() if must_go else each.awaits:
                if next_one not in seen:
                    seen.add(next_one)
                    ahead.append(next_one)
        return False

    def held_up_by(self) -> list[Fiber]:
        """Those that must go, or settle, before this one can go."""
        return [*self.awaits, *self.children, *self.root.dependents(self)]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.state.value}>"


class PluginFiber(Fiber):
    """One mounted plugin."""

    def __init__(self, ctx: Context, spec: PluginSpec, raw: object) -> None:
        super().__init__(ctx.root, ctx.fiber, spec.name)
        self.spec = spec
        self.ctx = ctx.of(self)
        self.config: object = None  # as the body got it last
        self.error: Exception | None = None  # why it failed
        self.state = FiberState.PENDING
        self.needs = frozenset(need.type for need in spec.needs)
        self.epoch: Epoch | None = None  # what it is loaded with
        self._raw = copied(raw)
        self._version = 0  # counts updates
        self._loaded: Wanted | None = None  # what it is loaded, or failed, with
        self._life: Life | None = None
        self._settled = False
        self._asking = 0  # those who wait for it to be ready
        self._moved: anyio.Event | None = None  # set, and replaced, whenever its state changes
        self._wake: anyio.Event | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of the services that it waits for."""
        return self.root.services.missing(self, self.spec.needs)

    @property
    def plugin(self) -> Fiber:
        """Itself."""
        return self

    @property
    def providers(self) -> tuple[Fiber, ...]:
        """Those whose services it was loaded with."""
        return tuple(each.fiber for each in self.epoch or () if each is not None)

    async def ready(self) -> PluginFiber:
        """Wait until it is settled: active, or pending for a service that nobody provides (see `missing`).

        Raises:
            PluginFailedError: its set-up failed; everything was rolled back.
            InvalidPluginConfigError: its config does not fit.
            PluginTimeoutError: its set-up hangs.
            InactiveContextError: it was disposed.
            PluginDeadlockError: it cannot settle before the plugin that calls has ended.
        """
        self._asking += 1
        try:
            while not self._settled and self._moved is not None:
                self._refuse_deadlock(going=False)
                with self._awaited():
                    await self._moved.wait()
        finally:
            self._asking -= 1
        if self.state is FiberState.FAILED and self.error is not None:
            raise self.error
        if self.state is FiberState.DISPOSED:
            raise InactiveContextError(f"plugin {self.name} (disposed)", "mount it again")
        return self

    async def update(self, config: object) -> PluginFiber:
        """Give the plugin another config: checked at once, then the plugin is loaded anew.

        Called from the fiber's own plugin it does not wait, since the plugin must end first.

        Raises:
            InvalidPluginConfigError: it does not fit; the plugin goes on with its old one.
            PluginFailedError: the plugin fails with it.
            InactiveContextError: it was disposed.
            PluginDeadlockError: it cannot be loaded anew before the plugin that calls has ended; nothing was changed.
        """
        own = _running.get() is self
        if not own:
            self._refuse_deadlock()
        validated(self.spec, config)
        self._raw = copied(config)
        self._version += 1
        self.nudge()
        return self if own else await self.ready()

    # -- the task ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the task that loads and unloads the plugin."""
        import anyio

        self._moved, self._wake = anyio.Event(), anyio.Event()
        self.root.start(self._live)

    def nudge(self) -> None:
        """Look again whether to load or to unload."""
        if self._wake is None or self.state is FiberState.DISPOSED:
            return
        if self._settled and not self._at_rest():
            self._settled = False
        self._wake.set()

    def hurry(self) -> None:
        """Somebody waits for it to go: a set-up under way has no more time than a teardown."""
        if self._life is not None:
            self._life.hurry()

    def _wanted(self) -> Wanted:
        return self.root.services.epoch(self, self.spec.needs), self._version

    def _at_rest(self) -> bool:
        """Whether nothing asks for a change of its state."""
        if self._gone is not None:
            return False
        if self.state is FiberState.PENDING:
            return not self._can_load()
        torn = self._life is not None and self._life.torn
        return self._loaded == self._wanted() and not torn

    def _can_load(self) -> bool:
        """Whether its services are there, and nothing that it stands below is going, which it would soon follow."""
        above = self.parent
        while above is not None:
            if not above.active:
                return False
            above = above.parent
        return self._wanted()[0] is not None

    def _start_going(self) -> None:
        self.nudge()
        self.hurry()

    async def _go_in_turn(self) -> None:
        self._start_going()  # in its own task, which runs since it was mounted

    async def _live(self) -> None:
        try:
            while self._gone is None:
                await self._step()
            self._move(FiberState.UNLOADING)
            await self._unwind(lambda undo: run_undo(self.name, undo, self.root.teardown_timeout))  # came while pending
        finally:  # also when asyncio cancels all its tasks, against which nothing is shielded
            self._end()

    async def _step(self) -> None:
        """Load and unload once, or wait until there may be something to do."""
        wanted = self._wanted()
        if not self._can_load():
            self.error, self._loaded = None, None
            await self._rest(FiberState.PENDING)
        elif self._loaded == wanted:
            await self._rest(FiberState.FAILED)
        else:
            await self._load_and_unload(wanted)

    async def _rest(self, state: FiberState) -> None:
        """Be settled until there may be something to do."""
        import anyio

        assert self._wake is not None  # noqa: S101 - it has started
        self._settled = True
        self._move(state)
        await self._wake.wait()
        self._wake = anyio.Event()

    async def _load_and_unload(self, wanted: Wanted) -> None:
        """Load, stay active while nothing changes, unload."""
        self.epoch, self._loaded, self.error = wanted[0], wanted, None
        self._move(FiberState.LOADING)
        life = self._life = Life(self, self.root.setup_timeout, self.root.teardown_timeout, self.nudge)
        self.root.start(lambda: self._in_life(life))
        try:
            await life.up.wait()
            if life.error is None and self._at_rest():
                self._move(FiberState.ACTIVE)
                self.root.services.told(self)
                while self._at_rest():
                    await self._rest(FiberState.ACTIVE)
            self._move(FiberState.UNLOADING)
            await self._unload_dependents()
        finally:
            life.leave.set()
        await life.over.wait()
        self._unloaded(life)

    async def _in_life(self, life: Life) -> None:
        _running.set(self)
        call = self._call if self._at_rest() else _nothing  # what has changed since counts
        await life.run(call, self._unwind)

    def _unloaded(self, life: Life) -> None:
        """Note that it is unloaded, and why, if it failed; tell who waits for that."""
        self._life, self.epoch = None, None
        if life.error is None:
            self._loaded = None
        else:
            phase = life.failed_in
            self.error = _explained(self.name, phase, self.root.guard(self.name, phase, life.error))
            if not self._asking or self._gone is not None:  # else it reaches those who wait for it to be ready
                log_error(f"plugin {self.name} failed", self.error)
            self.root.heed(life.error)
        if self._undo_errors and self._gone is None:  # nobody waits for it, so it is told here
            errors = BaseExceptionGroup("undos raised", self._undo_errors)
            self._undo_errors = []
            log_error(f"undoing plugin {self.name} failed", errors)
            self.root.heed(errors)
        self._move(FiberState.PENDING)
        self.root.unloaded(self)

    def _call(self) -> object:
        """Call the plugin."""
        spec = self.spec
        self.config = validated(spec, self._raw)
        given: dict[str, object] = {}
        for need, provision in zip(spec.needs, self.epoch or (), strict=True):
            if provision is not None:
                given[need.parameter] = provision.bound(self.ctx)
            elif not need.has_default:
                given[need.parameter] = None
        if spec.config_parameter is not None:
            given[spec.config_parameter] = self.config
        if spec.context_parameter is not None:
            given[spec.context_parameter] = self.ctx
        return spec.call(**given)

    def _move(self, state: FiberState) -> None:
        """Come into a state, and let those look who wait for that."""
        import anyio

        assert self._moved is not None  # noqa: S101 - it has started
        self.state = state
        moved, self._moved = self._moved, anyio.Event()
        moved.set()

    def _end(self) -> None:
        super()._end()
        self._settled = True
        self._move(FiberState.DISPOSED)
        self.root.unloaded(self)


Wanted: TypeAlias = "tuple[Epoch | None, int]"
"""What a plugin is to be loaded with: services (None while one is missing), and the number of its config."""


def log_error(what: str, error: BaseException) -> None:
    """Log an error that reaches nobody."""
    _log.error("%s", what, exc_info=error)


def _busy_caller() -> Fiber | None:
    """The fiber whose set-up or teardown calls; what runs beside these holds nobody up."""
    caller = _running.get()
    busy = caller is not None and caller.state in (FiberState.LOADING, FiberState.UNLOADING)
    return caller if busy else None


def _nothing() -> None:
    return None


def _explained(name: str, phase: str, error: BaseException) -> Exception:
    if isinstance(error, InvalidConfigError) or (isinstance(error, PluginError) and _about(error) == name):
        return error  # it says what is wrong with the plugin, or its config
    failure = PluginFailedError(name, type(error).__name__, message_of(error), when_it_failed(phase))
    failure.__cause__ = error
    return failure


def _about(error: PluginError) -> object:
    return getattr(error, "plugin", None)
