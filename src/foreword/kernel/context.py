"""Contexts: who I am and what I see. Plugins register, listen, provide, look up and mount through theirs.

    async with Context() as ctx:
        await ctx.mount(SystemPrompt, SystemPromptConfig(persona="…")).ready()
        fiber = await ctx.mount(billing, {"currency": "EUR"}).ready()
        ...
        await fiber.dispose()

What is done through a context belongs to its fiber and is undone with it; it is filed under its scope. Leaving the
root unloads everything, last in, first out.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import Context as ContextVars
from contextvars import copy_context
from threading import get_ident
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar, cast, overload

from foreword.errors import (
    ConfigFault,
    EmptyNameError,
    EntryRef,
    EventModeError,
    InactiveContextError,
    InvalidConfigError,
    InvalidOptionError,
    WrongThreadError,
    with_article,
)
from foreword.kernel.effects import Owner, Registration, Undo, add_later_error
from foreword.kernel.events import Event, Listener, Listeners, Mode, is_async_function
from foreword.kernel.fiber import Fiber, FiberState, PluginFiber, log_error
from foreword.kernel.life import run_undo
from foreword.kernel.names import plain_name, shortened
from foreword.kernel.plugins import spec_of
from foreword.kernel.scope import GLOBAL, HasKey, ParentBinding, ScopeKey, bind_parent
from foreword.kernel.services import Services
from foreword.kernel.source import Source, caller, calling_line
from foreword.kernel.timeouts import TIMEOUT_RULE, is_timeout

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    import anyio.abc

__all__ = ["Context"]

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


Guard: TypeAlias = Callable[[str, str, BaseException], BaseException]


def _unchanged(plugin: str, phase: str, error: BaseException) -> BaseException:
    return error


class Waiting:
    """The calls that await that a fiber goes or settles.

    Whoever has a plugin wait for something on its way out (for its providers that are being asked) must not have it
    wait for a call that itself waits for that plugin, and finds those here.
    """

    def __init__(self) -> None:
        self._calls: dict[object, tuple[Fiber, ContextVars]] = {}
        self.told: list[Callable[[], None]] = []  # called when another call begins to wait

    def calls(self, owner: Owner) -> list[ContextVars]:
        """The calls that cannot go on before an owner has gone: the context variables of each tell whose it is."""
        if not isinstance(owner, Fiber):
            return []
        return [variables for awaited, variables in self._calls.values() if awaited.waits_for(owner)]

    @contextmanager
    def entered(self, awaited: Fiber) -> Generator[None]:
        """While this is entered, the code that calls awaits a fiber."""
        call = object()
        self._calls[call] = (awaited, copy_context())
        try:
            for tell in self.told:
                tell()
            yield
        finally:
            del self._calls[call]


class Root:
    """What all contexts of one kernel share."""

    def __init__(self, setup_timeout: float | None, teardown_timeout: float | None, guard: Guard | None) -> None:
        self.setup_timeout, self.teardown_timeout = setup_timeout, teardown_timeout
        self.guard: Guard = guard or _unchanged
        self.fibers: dict[Fiber, None] = {}  # all that are there, in the order in which they came
        self.services = Services(self._services_changed)
        self.events: dict[Event[Any, Any], Listeners] = {}
        self.thread: int | None = None  # that the event loop runs in
        self.tasks: anyio.abc.TaskGroup | None = None
        self.interrupted: BaseException | None = None
        self.waiting = Waiting()
        self._unloaded: dict[Fiber, list[anyio.Event]] = {}

    def listeners(self, event: Event[Any, Any]) -> Listeners:
        """The table of an event."""
        return self.events.setdefault(event, Listeners())

    def check_running(self) -> anyio.abc.TaskGroup:
        """See that the kernel runs, and give its tasks.

        Raises:
            InactiveContextError: it does not run.
        """
        if self.tasks is None:
            raise InactiveContextError("the kernel (not running)", "enter it first: async with Context() as ctx")
        return self.tasks

    def start(self, work: Callable[[], Awaitable[None]]) -> None:
        """Start a task of the kernel. No cancellation from outside reaches it: it ends by being told to go."""
        import anyio

        async def shielded() -> None:
            with anyio.CancelScope(shield=True):
                await work()

        self.check_running().start_soon(shielded)

    @property
    def in_thread(self) -> bool:
        """Whether this is the kernel's thread, or it has none yet."""
        return self.thread is None or self.thread == get_ident()

    def check_thread(self, what: str) -> None:
        """See that this is the kernel's thread.

        Raises:
            WrongThreadError: it is another one.
        """
        if not self.in_thread:
            raise WrongThreadError(what)

    def dependents(self, provider: Fiber) -> list[Fiber]:
        """The plugins that are loaded with what a fiber provides."""
        return [fiber for fiber in self.fibers if provider in fiber.providers]

    async def wait_for_dependents(self, provider: Fiber) -> None:
        """Wait until every plugin that was loaded with what a fiber provides is unloaded."""
        import anyio

        for fiber in self.dependents(provider):
            if provider in fiber.providers:  # still
                event = anyio.Event()
                self._unloaded.setdefault(fiber, []).append(event)
                fiber.hurry()
                await event.wait()

    def unloaded(self, fiber: Fiber) -> None:
        """A plugin was unloaded: whoever waits for that goes on."""
        for event in self._unloaded.pop(fiber, ()):
            event.set()

    def heed(self, error: BaseException) -> None:
        """Leave the kernel because of what a plugin raised, if that is no mere error: KeyboardInterrupt, SystemExit."""
        if not isinstance(error, Exception) and self.tasks is not None:
            self.interrupted = self.interrupted or error
            self.tasks.cancel_scope.cancel()

    def _services_changed(self, keys: frozenset[type]) -> None:
        for fiber in list(self.fibers):
            if isinstance(fiber, PluginFiber) and fiber.needs & keys:
                fiber.nudge()


class Deferred(Registration):
    """The registration of an undo that may be async."""

    __slots__ = ("_fiber",)

    def __init__(self, fiber: Fiber, undo: Undo) -> None:
        super().__init__(f"undo of {fiber.name}", fiber, undo)
        self._fiber = fiber
        fiber.add(self._in_turn)

    def close(self) -> None:
        """Undo it now, once; of an async undo, start that."""
        if not self.closed:
            self._fiber.root.check_thread("undoing")
            self._fiber.discard(self._in_turn)
            started = self._in_turn()
            if inspect.isawaitable(started):
                self._fiber.root.start(lambda: self._finish(started))

    def _in_turn(self) -> object:
        return self._undo.pop()() if self._undo else None

    async def _finish(self, started: Awaitable[object]) -> None:
        try:
            await run_undo(self._fiber.name, lambda: started, self._fiber.root.teardown_timeout)
        except BaseException as error:  # whatever it raises, nobody waits for it
            told = self._fiber.root.guard(self._fiber.name, "teardown", error)
            log_error(f"an undo of {self._fiber.name} failed", told)


class Context:
    """A view on a kernel: an owner (the fiber), and a scope.

    ``async with Context() as ctx`` runs a kernel, and unloads everything on leaving. A scope's context can be entered
    as well; leaving it disposes the scope.

    Args:
        setup_timeout: seconds that a plugin's set-up may take; None for any time, as long as nobody waits for it to go.
        teardown_timeout: seconds that each step of a plugin's teardown may take; None for any time.
        guard: what a plugin's code raised goes through it before it is kept, logged or raised again: it gets the name
            of the plugin, the phase (set-up, after set-up, teardown, listener, or what was asked, as in "tool refund",
            "section rules") and the error, and gives that or another one.

    Raises:
        InvalidConfigError: a timeout is no positive number of seconds.
    """

    def __init__(
        self,
        *,
        setup_timeout: float | None = None,
        teardown_timeout: float | None = 10.0,
        guard: Guard | None = None,
    ) -> None:
        _check_settings({"setup_timeout": setup_timeout, "teardown_timeout": teardown_timeout}, guard)
        self.root = Root(setup_timeout, teardown_timeout, guard)
        self.fiber = Fiber(self.root, None, "root")
        self.root.fibers[self.fiber] = None
        self.key = GLOBAL
        self.binding: ParentBinding | None = None

    async def __aenter__(self) -> Self:
        import anyio

        if self.fiber.parent is not None:
            return self
        if self.root.tasks is not None or not self.fiber.active:
            raise InactiveContextError("the kernel (entered before)", "make a new one: async with Context() as ctx")
        self.root.thread = get_ident()
        self.root.tasks = anyio.create_task_group()
        await self.root.tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        import anyio

        failure: BaseException | None = None
        with anyio.CancelScope(shield=True):
            try:
                await self.dispose()
            except BaseException as undone:  # what undos raised, or another signal; the tasks must be left all the same
                failure = undone
                if not isinstance(undone, (Exception, BaseExceptionGroup)):
                    await self._go_all_the_same(undone)
        leads = self.root.interrupted or error
        if failure is not None and leads is not None:
            leads.add_note(f"on the way out also: {failure!r}")
        swallowed = await self._stop(kind, error, trace) if self.fiber.parent is None else None
        if failure is not None and leads is None:
            raise failure
        return swallowed

    async def _go_all_the_same(self, signal: BaseException) -> None:
        """A second Ctrl-C, or the end of asyncio's loop, broke off the wait, perhaps before anybody was told to go."""
        try:
            await self.fiber.dispose_in_turn()
        except BaseException as undone:  # what led here comes first
            signal.add_note(f"on the way out also: {undone!r}")

    async def _stop(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Leave the task group, whose tasks have all been told to go."""
        import anyio

        root, tasks = self.root, self.root.check_running()
        root.tasks = None
        swallowed: bool | None = None
        if error is None or isinstance(error, anyio.get_cancelled_exc_class()):
            swallowed = await tasks.__aexit__(kind, error, trace)
        else:
            with suppress(anyio.get_cancelled_exc_class()):  # the error comes first
                await tasks.__aexit__(None, None, None)  # told of the error, it would wrap it in a group
        if root.interrupted is not None:
            raise root.interrupted
        return swallowed

    # -- views ---------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the plugin (or scope, or root) that owns what is done through this context."""
        return self.fiber.name

    @property
    def active(self) -> bool:
        """Whether one may still register through it."""
        return self.fiber.active

    def of(self, fiber: Fiber) -> Context:
        """The same view for another fiber."""
        return self._view(fiber, self.key, None)

    def scope(self, name: str | ScopeKey, parent: ScopeKey | HasKey | None = None) -> Context:
        """A context in a new scope, with an owner of its own; `dispose` it to undo what was done through it.

        Args:
            name: the scope's name, or the key of one that exists.
            parent: the enclosing scope, a key or a context; None for directly under the global layer.

        Raises:
            EmptyNameError: the name is no string, an empty one, or none that UTF-8 can spell.
            ScopeAlreadyBoundError, ScopeCycleError: as `bind_parent` says.
        """
        self.root.check_thread("making a scope")
        self.fiber.check_active("make the scope while it is loaded")
        if isinstance(name, ScopeKey):
            key, binding = name, None if parent is None else bind_parent(name, parent)
        else:
            if plain_name(name) is None:
                raise EmptyNameError("scope", self.name, shortened(name))
            key = ScopeKey(name)
            binding = bind_parent(key, parent)
        fiber = Fiber(self.root, self.fiber, key.name)
        self.fiber.add_child(fiber)
        return self._view(fiber, key, binding)

    async def dispose(self) -> None:
        """Undo what was done through this context's owner; see `Fiber.dispose`."""
        await self.fiber.dispose()

    def _view(self, fiber: Fiber, key: ScopeKey, binding: ParentBinding | None) -> Context:
        view = Context.__new__(Context)
        view.root, view.fiber, view.key, view.binding = self.root, fiber, key, binding
        return view

    # -- plugins and services ------------------------------------------------------------------------------------------

    def mount(self, plugin: object, config: object = None) -> PluginFiber:
        """Mount a plugin below this context's owner. It is loaded soon, when what it needs is there.

        Args:
            plugin: a function, an async function or a generator function with one ``yield``; or a service class that
                can be mounted, such as `SystemPrompt`.
            config: what its config is made from: a dict, or an object of its config's class.

        Returns:
            Its fiber: ``await fiber.ready()``, ``await fiber.update(config)``, ``await fiber.dispose()``.

        Raises:
            InvalidPluginError, UnresolvedAnnotationError: it is no plugin, or does not say what it needs.
            InactiveContextError: this context's owner has gone, or the kernel does not run.
        """
        self.root.check_thread("mounting a plugin")
        self.root.check_running()
        fiber = PluginFiber(self, spec_of(plugin), config)
        self.fiber.add_child(fiber)
        fiber.start()
        return fiber

    def provide(self, service: object, *, key: type | None = None) -> Registration:
        """Provide a service; others see it when this plugin is active.

        Args:
            service: the object.
            key: the type under which it is found; None for its own.

        Raises:
            DuplicateServiceError: somebody provides that type already.
            TypeError: the key is no class.
        """
        self.root.check_thread("providing a service")
        return self.root.services.provide(self.fiber, type(service) if key is None else key, service)

    def get(self, key: type[S]) -> S | None:
        """The service of a type, bound to this context; None if nobody provides it now.

        Raises:
            TypeError: the key is no class.
        """
        return self.root.services.get(self, key)

    def require(self, key: type[S]) -> S:
        """The service of a type, bound to this context. To wait for one, annotate a parameter of the plugin instead.

        Raises:
            MissingServiceError: nobody provides it now.
            TypeError: the key is no class.
        """
        return self.root.services.require(self, key)

    def defer(self, undo: Undo) -> Registration:
        """Have something undone when this context's owner goes, or when the registration is closed.

        Args:
            undo: a function; what it gives is awaited if it is awaitable. Closing the registration by hand only starts
                that; when the owner goes it is waited for.

        Raises:
            InvalidOptionError: the undo is no function.
            InactiveContextError: this context's owner has gone.
        """
        self.root.check_thread("registering an undo")
        self._check_undo(undo, calling_line(caller(1)))
        return Deferred(self.fiber, undo)

    # -- events --------------------------------------------------------------------------------------------------------

    @overload
    def on(self, event: Event[..., Any], listener: Callable[..., Any], *, prepend: bool = False) -> Registration: ...
    @overload
    def on(self, event: Event[..., Any], *, prepend: bool = False) -> Callable[[F], F]: ...
    def on(self, event: Event[..., Any], listener: Any = None, *, prepend: bool = False) -> Any:
        """Listen to an event, for this context's scope and the scopes below it; without a listener a decorator.

        Args:
            event: which.
            listener: plain for an ``EMIT`` event, async for the others; of a ``WATERFALL`` the last argument is
                ``call_next``.
            prepend: before all others.

        Raises:
            InvalidOptionError: the listener is no function.
            EventModeError: an async listener for an ``EMIT`` event, which would never be awaited; or something that
                is no event.
        """
        self.root.check_thread("listening to an event")
        _check_event(event)
        source = calling_line(caller(1))

        def register(call: Callable[..., Any]) -> Registration:
            self._check_listener(call, source)
            if event.mode is Mode.EMIT and is_async_function(call):
                raise EventModeError(event.name, "is emitted to plain functions, and the listener is async")
            return self.root.listeners(event).add(self.fiber, self.key, call, source, prepend=prepend)

        if listener is not None:
            return register(listener)

        def decorate(function: F) -> F:
            register(function)
            return function

        return decorate

    def emit(self, event: Event[P, None], *told: P.args, **more: P.kwargs) -> None:
        """Tell every listener, in order.

        Raises:
            Exception: the first error of a listener (later ones noted on it), if the event's policy is to raise.
        """
        first: Exception | None = None
        self.root.check_thread("emitting an event")
        for listener in self._hearing(event, Mode.EMIT, told, more):
            try:
                listener.call(*told, **more)
            except Exception as error:  # a listener is somebody else's code; the others must hear all the same
                first = add_later_error(first, error)
        if first is not None and event.on_error == "raise":
            raise first
        if first is not None:
            log_error(f"a listener of {event.name} failed", self.root.guard(self.name, "listener", first))

    async def parallel(self, event: Event[P, Any], *told: P.args, **more: P.kwargs) -> None:
        """Tell every listener, together; come back when all are done.

        Raises:
            ExceptionGroup: what listeners raised; none stops another.
        """
        import anyio

        listeners = self._hearing(event, Mode.PARALLEL, told, more)
        errors: list[Exception] = []

        async def tell(listener: Listener) -> None:
            try:
                await _answer(event, listener, listener.call(*told, **more))
            except Exception as error:  # see `emit`
                errors.append(error)

        async with anyio.create_task_group() as group:
            for listener in listeners:
                group.start_soon(tell, listener)
        if errors:
            raise ExceptionGroup(f"listeners of {event.name} failed", errors)

    async def serial(self, event: Event[P, R], *told: P.args, **more: P.kwargs) -> R | None:
        """Ask listeners one by one; the first answer that is neither None nor False counts, and ends it."""
        for listener in self._hearing(event, Mode.SERIAL, told, more):
            answer = await _answer(event, listener, listener.call(*told, **more))
            if answer is not None and answer is not False:
                return cast("R", answer)
        return None

    async def waterfall(self, event: Event[..., R], *told: Any, default: Callable[[], Awaitable[R]]) -> R:
        """Take listeners around each other, the first outermost, around a default.

        Each gets what is told and ``call_next``, an async function without arguments that gives what the inner ones
        and the default give. It may be called once at most; without a call the inner ones are skipped.
        """
        listeners = self._hearing(event, Mode.WATERFALL, told, {})

        async def step(position: int) -> R:
            if position == len(listeners):
                return await default()
            called = False

            async def call_next() -> R:
                nonlocal called
                if called:
                    raise EventModeError(event.name, f"had call_next() called twice by {listeners[position]}")
                called = True
                return await step(position + 1)

            listener = listeners[position]
            answer: R = await _answer(event, listener, listener.call(*told, call_next))
            return answer

        return await step(0)

    def _check_undo(self, undo: object, source: Source) -> None:
        if callable(undo):
            return
        if inspect.iscoroutine(undo):
            undo.close()  # nobody will await it, of which Python would warn at some other place
        why = f"must be a function, not {with_article(type(undo).__name__)}; give the function, not what it returned"
        raise InvalidOptionError(self._nameless("undo", source), "undo", why)

    def _check_listener(self, listener: object, source: Source) -> None:
        if not callable(listener):
            why = f"must be a function, not {with_article(type(listener).__name__)}"
            raise InvalidOptionError(self._nameless("listener", source), "listener", why)

    def _nameless(self, kind: str, source: Source) -> EntryRef:
        """What errors call something that bears no name."""
        scope = None if self.key is GLOBAL else self.key.name
        return EntryRef(kind, "(none)", self.name, scope, str(source))

    def _hearing(
        self, event: Event[..., Any], mode: Mode, told: tuple[Any, ...], more: dict[str, Any]
    ) -> tuple[Listener, ...]:
        _check_event(event)
        if event.mode is not mode:
            raise EventModeError(event.name, f"is declared as {event.mode.value}, and was dispatched as {mode.value}")
        table = self.root.listeners(event)
        return table.all() if event.subject is None else table.about(event.subject(*told, **more))

    def __repr__(self) -> str:
        state = "" if self.fiber.state is FiberState.ACTIVE else f", {self.fiber.state.value}"
        return f"<Context: {self.name}, scope {self.key.name}{state}>"


def _check_event(event: object) -> None:
    if not isinstance(event, Event):
        why = "is not declared; give the declared Event itself, as in ctx.on(SYSTEM_PROMPT_ASSEMBLE, listener)"
        raise EventModeError(shortened(event), why)


def _check_settings(timeouts: dict[str, object], guard: object) -> None:
    wanted = f"{TIMEOUT_RULE}, or None for any time"
    faults = [
        ConfigFault("invalid_config", name, f"{wanted}, not {shortened(timeout)}")
        for name, timeout in timeouts.items()
        if timeout is not None and not is_timeout(timeout)
    ]
    if guard is not None and not callable(guard):
        why = f"must be a function of a plugin's name, a phase and an error, not {shortened(guard)}"
        faults.append(ConfigFault("invalid_config", "guard", why))
    if faults:
        raise InvalidConfigError(faults)


def _answer(event: Event[..., Any], listener: Listener, answer: Any) -> Awaitable[Any]:
    if not inspect.isawaitable(answer):
        raise EventModeError(event.name, f"is told to async functions, and {listener} is plain")
    return answer
