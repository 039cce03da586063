"""Fibers: one mounted plugin each, with a life of its own.

    pending ──▶ loading ──▶ active ──▶ unloading ──▶ pending, loading again, or disposed
                   └─▶ failed (undone; tried again when its services or its config change)

A `Fiber` owns what is registered through it and undoes it last in, first out, every undo once, all of them even when
one raises. A `PluginFiber` has a task that loads its plugin when its services are there, unloads it when they go, and
does both in that one task, so that a plugin may hold open what must be closed where it was opened.

Only this module opens an event loop's task group, when a root context is entered; importing it imports no event loop.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextvars import ContextVar
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from foreword.errors import (
    InactiveContextError,
    InvalidConfigError,
    InvalidPluginError,
    PluginDeadlockError,
    PluginError,
    PluginFailedError,
    PluginTimeoutError,
)
from foreword.kernel.plugins import PluginSpec, validated

if TYPE_CHECKING:
    import anyio

    from foreword.kernel.context import Context, Root
    from foreword.kernel.effects import Undo

__all__ = ["Fiber", "FiberState", "PluginFiber"]

_log = logging.getLogger("foreword.kernel")
_running: ContextVar[Fiber | None] = ContextVar("the fiber whose plugin code is running", default=None)


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
        self.waits_for: set[Fiber] = set()  # to go, before this one can unwind
        self._undos: dict[Undo | Fiber, None] = {}  # in order of registration; a fiber stands for its disposal
        self._gone: anyio.Event | None = None  # set up by the first who disposes; shared by all
        self._undo_errors: list[BaseException] = []
        root.fibers.add(self)

    # -- an owner ------------------------------------------------------------------------------------------------------

    @property
    def active(self) -> bool:
        """Whether things can be registered through it."""
        return self.state not in (FiberState.UNLOADING, FiberState.DISPOSED)

    @property
    def serves(self) -> bool:
        """Whether what it provides is seen by others."""
        return self.state is FiberState.ACTIVE

    def add(self, undo: Undo) -> None:
        """Keep an undo, sync or async, until the fiber unloads.

        Raises:
            InactiveContextError: it is unloading or gone.
        """
        if not self.active:
            raise InactiveContextError(f"plugin {self.name} ({self.state.value})", "register while it is loaded")
        self._undos[undo] = None

    def add_child(self, child: Fiber) -> None:
        """Have another fiber disposed in its turn when this one unloads; raises as `add`."""
        if not self.active:
            raise InactiveContextError(f"plugin {self.name} ({self.state.value})", "mount it while this one is loaded")
        self._undos[child] = None

    def discard(self, undo: Undo | Fiber) -> None:
        """Forget an undo that has run already."""
        self._undos.pop(undo, None)

    # -- going ---------------------------------------------------------------------------------------------------------

    async def dispose(self) -> None:
        """Undo everything and go for good. Shared: everybody who calls waits for the one teardown.

        Called from the fiber's own plugin it does not wait, since the plugin must end first.

        Raises:
            BaseExceptionGroup: undos that raised; all of them were run.
            PluginDeadlockError: the caller's own plugin is one that this one waits for.
        """
        import anyio

        caller = _running.get()
        if caller is not None and caller is not self and _waits_for(self, caller):
            raise PluginDeadlockError(caller.name, self.name)
        if self._gone is None:
            self._gone = anyio.Event()
            self._start_going()
        if caller is self:
            return
        await self._wait_until_gone(self._gone)
        if self._undo_errors:
            raise BaseExceptionGroup(f"undoing {self.name} failed", self._undo_errors)

    def _start_going(self) -> None:
        self.root.start(self._go)

    async def _go(self) -> None:
        import anyio

        with anyio.CancelScope(shield=True):
            self.state = FiberState.UNLOADING
            await self._unwind()
            self._end()

    async def _wait_until_gone(self, gone: anyio.Event) -> None:
        await gone.wait()

    def _end(self) -> None:
        self.state = FiberState.DISPOSED
        self.root.fibers.discard(self)
        if self.parent is not None:
            self.parent.discard(self)
        assert self._gone is not None  # noqa: S101 - nobody ends who was not told to go
        self._gone.set()

    async def _unwind(self) -> None:
        """Let dependents unload, then run every undo, last in, first out; keep what they raise."""
        self.root.services.changed()  # this fiber serves no more
        await self.root.wait_for_dependents(self)
        while self._undos:
            undo, _ = self._undos.popitem()
            try:
                if isinstance(undo, Fiber):
                    await undo.dispose()  # has its own time
                else:
                    await self._in_time("teardown", self.root.teardown_timeout, partial(_run, undo))
            except BaseException as error:  # whatever an undo raises, the others must run
                self._undo_errors.append(error)

    async def _in_time(self, phase: str, seconds: float | None, work: Callable[[], Awaitable[None]]) -> None:
        """Run code of this fiber's plugin, and cancel it when its time is over.

        Raises:
            PluginTimeoutError: names the plugin.
        """
        import anyio

        token = _running.set(self)
        try:
            with anyio.CancelScope() as scope:
                if seconds is not None:
                    scope.deadline = anyio.current_time() + seconds
                await work()
        finally:
            _running.reset(token)
        if scope.cancelled_caught:
            raise PluginTimeoutError(self.name, phase, seconds or 0)

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
        self.epoch: tuple[Fiber | None, ...] | None = None  # the providers it is loaded with
        self._raw = raw
        self._version = 0  # counts updates
        self._failed_with: tuple[object, int] | None = None
        self._settled: anyio.Event | None = None
        self._wake: anyio.Event | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of the services that it waits for."""
        return self.root.services.missing(self, self.spec.needs)

    async def ready(self) -> PluginFiber:
        """Wait until it is settled: active, or pending for a service that nobody provides (see `missing`).

        Raises:
            PluginFailedError: its set-up failed; everything was rolled back.
            InvalidPluginConfigError: its config does not fit.
            PluginTimeoutError: its set-up hangs.
            InactiveContextError: it was disposed.
        """
        while self._settled is not None and not self._settled.is_set():
            await self._settled.wait()
        if self.state is FiberState.FAILED and self.error is not None:
            raise self.error
        if self.state is FiberState.DISPOSED:
            raise InactiveContextError(f"plugin {self.name} (disposed)", "mount it again")
        return self

    async def update(self, config: object) -> PluginFiber:
        """Give the plugin another config: checked at once, then the plugin is loaded anew.

        Raises:
            InvalidPluginConfigError: it does not fit; the plugin goes on with its old one.
            PluginFailedError: the plugin fails with it.
        """
        validated(self.spec, config)
        self._raw = config
        self._version += 1
        self.nudge()
        return await self.ready()

    # -- the task ------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the task that loads and unloads the plugin."""
        import anyio

        self._settled, self._wake = anyio.Event(), anyio.Event()
        self.root.start(self._live)

    def nudge(self) -> None:
        """Look again whether to load or to unload."""
        import anyio

        if self._wake is None or self.state is FiberState.DISPOSED:
            return
        wanted = (self.root.services.epoch(self, self.spec.needs), self._version)
        held = (self.epoch, self._loaded_version) if self.state is FiberState.ACTIVE else self._failed_with
        at_rest = held == wanted or (wanted[0] is None and self.state is FiberState.PENDING)
        if (not at_rest or self._gone is not None) and self._settled is not None and self._settled.is_set():
            self._settled = anyio.Event()
        self._wake.set()

    _loaded_version = 0

    def _start_going(self) -> None:
        self.nudge()

    async def _live(self) -> None:
        import anyio

        with anyio.CancelScope(shield=True):
            while self._gone is None:
                self._wake = anyio.Event()
                epoch = self.root.services.epoch(self, self.spec.needs)
                if epoch is None:
                    self._settle(FiberState.PENDING)
                    await self._wake.wait()
                elif self._failed_with == (epoch, self._version):
                    self._settle(FiberState.FAILED)
                    await self._wake.wait()
                else:
                    await self._load_and_hold(epoch)
            self._end()
            self._settle(FiberState.DISPOSED)

    async def _load_and_hold(self, epoch: tuple[Fiber | None, ...]) -> None:
        """Load, stay active while nothing changes, unload."""
        import anyio

        version = self._loaded_version = self._version
        self.state, self.epoch, self.error = FiberState.LOADING, epoch, None
        try:
            await self._in_time("set-up", self.root.setup_timeout, self._set_up)
        except Exception as error:  # a plugin is somebody else's code
            self.error = _explained(self.name, error)
            self._failed_with = (epoch, version)
        else:
            self._failed_with = None
            self.state = FiberState.ACTIVE
            self.root.services.changed()
            while self._gone is None and (self.root.services.epoch(self, self.spec.needs), self._version) == (
                epoch,
                version,
            ):
                self._settle(FiberState.ACTIVE)
                self._wake = anyio.Event()
                await self._wake.wait()
        await self._unload()

    async def _unload(self) -> None:
        self.state = FiberState.UNLOADING
        self._undo_errors = []
        await self._unwind()
        self.epoch = None
        self.state = FiberState.PENDING
        self.root.unloaded(self)
        if self._undo_errors and self._gone is None:  # nobody waits for it, so it is told here
            log_error(f"undoing plugin {self.name} failed", BaseExceptionGroup("undos raised", self._undo_errors))

    async def _set_up(self) -> None:
        self.config = validated(self.spec, self._raw)
        body: Any = self.spec.call(**self._arguments())
        if isinstance(body, (Generator, AsyncGenerator)):
            # entered before all that it registers, so left after it: what it opened is there while others may ask
            teardown = _Teardown(self.name, body)  # pyright: ignore[reportUnknownArgumentType]
            self.add(teardown.run)
            await teardown.enter()
            return
        result: object = await body if inspect.isawaitable(body) else body
        if result is not None:
            raise InvalidPluginError(self.name, f"gave back a {type(result).__name__}; give nothing, or yield once")

    def _arguments(self) -> dict[str, Any]:
        spec = self.spec
        given: dict[str, Any] = {
            need.parameter: self.ctx.get(need.type) if need.optional else self.ctx.require(need.type)
            for need in spec.needs
        }
        if spec.config_parameter is not None:
            given[spec.config_parameter] = self.config
        if spec.context_parameter is not None:
            given[spec.context_parameter] = self.ctx
        return given

    def _settle(self, state: FiberState) -> None:
        self.state = state
        if self._settled is not None:
            self._settled.set()


def log_error(what: str, error: BaseException) -> None:
    """Log an error that reaches nobody."""
    _log.error("%s", what, exc_info=error)


def _waits_for(fiber: Fiber, other: Fiber) -> bool:
    """Whether a fiber waits, itself or through others, for another to go."""
    seen: set[Fiber] = set()
    ahead = [fiber]
    while ahead:
        each = ahead.pop()
        if other in each.waits_for:
            return True
        if each not in seen:
            seen.add(each)
            ahead += each.waits_for
    return False


def _explained(name: str, error: Exception) -> Exception:
    if isinstance(error, (PluginError, InvalidConfigError)):
        return error  # it says what is wrong with the plugin, or its config
    failure = PluginFailedError(name, type(error).__name__, str(error))
    failure.__cause__ = error
    return failure


Body: TypeAlias = Generator[Any, Any, Any] | AsyncGenerator[Any, Any]


class _Teardown:
    """A generator plugin: entered up to its one ``yield``, and resumed for its teardown if it got that far."""

    def __init__(self, name: str, body: Body) -> None:
        self._name, self._body = name, body
        self._entered = False

    async def enter(self) -> None:
        """Run the set-up.

        Raises:
            InvalidPluginError: it never yields.
        """
        if not await self._resume():
            raise InvalidPluginError(self._name, "never yields; a plugin yields once, between set-up and teardown")
        self._entered = True

    async def run(self) -> None:
        """Run the teardown.

        Raises:
            InvalidPluginError: it yields again.
        """
        if self._entered and await self._resume():
            await _run(self._body.aclose if isinstance(self._body, AsyncGenerator) else self._body.close)
            raise InvalidPluginError(self._name, "yields more than once; a plugin yields once")

    async def _resume(self) -> bool:
        """Go on to the next yield; False at the end."""
        try:
            if isinstance(self._body, AsyncGenerator):
                await anext(self._body)
            else:
                next(self._body)
        except (StopIteration, StopAsyncIteration):
            return False
        return True


async def _run(undo: Undo) -> None:
    result = undo()
    if inspect.isawaitable(result):
        await result
