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

from collections.abc import Awaitable, Callable, Coroutine
from threading import get_ident
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, overload

from foreword.errors import EventModeError, WrongThreadError
from foreword.kernel.effects import Registration, Undo, add_later_error
from foreword.kernel.events import Event, Listener, Listeners, Mode, is_async_function
from foreword.kernel.fiber import Fiber, FiberState, PluginFiber, log_error
from foreword.kernel.plugins import spec_of
from foreword.kernel.scope import GLOBAL, HasKey, ParentBinding, ScopeKey, bind_parent
from foreword.kernel.services import Services
from foreword.kernel.source import caller, calling_line

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    import anyio.abc

__all__ = ["Context"]

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


class Root:
    """What all contexts of one kernel share."""

    def __init__(self, setup_timeout: float | None, teardown_timeout: float | None) -> None:
        self.setup_timeout, self.teardown_timeout = setup_timeout, teardown_timeout
        self.fibers: set[Fiber] = set()
        self.services = Services()
        self.services.changed = self._services_changed
        self.events: dict[Event[Any, Any], Listeners] = {}
        self.thread: int | None = None  # that the event loop runs in
        self.tasks: anyio.abc.TaskGroup | None = None
        self._unloaded: dict[Fiber, list[anyio.Event]] = {}

    def listeners(self, event: Event[Any, Any]) -> Listeners:
        """The table of an event."""
        return self.events.setdefault(event, Listeners())

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task of the kernel."""
        if self.tasks is None:
            raise RuntimeError("the kernel is not running; enter it: async with Context() as ctx")
        self.tasks.start_soon(work)

    def check_thread(self, what: str) -> None:
        """See that this is the kernel's thread.

        Raises:
            WrongThreadError: it is another one.
        """
        if self.thread is not None and self.thread != get_ident():
            raise WrongThreadError(what)

    async def wait_for_dependents(self, provider: Fiber) -> None:
        """Wait until every plugin that was loaded with what a fiber provides is unloaded."""
        import anyio

        for fiber in list(self.fibers):
            if isinstance(fiber, PluginFiber) and fiber.epoch is not None and provider in fiber.epoch:
                event = anyio.Event()
                self._unloaded.setdefault(fiber, []).append(event)
                provider.waits_for.add(fiber)
                try:
                    await event.wait()
                finally:
                    provider.waits_for.discard(fiber)

    def unloaded(self, fiber: Fiber) -> None:
        """A plugin was unloaded: whoever waits for that goes on."""
        for event in self._unloaded.pop(fiber, ()):
            event.set()

    def _services_changed(self) -> None:
        for fiber in list(self.fibers):
            if isinstance(fiber, PluginFiber):
                fiber.nudge()


class Context:
    """A view on a kernel: an owner (the fiber), and a scope.

    Args:
        setup_timeout: seconds that a plugin's set-up may take; None for any time.
        teardown_timeout: seconds that a plugin's teardown may take; None for any time.
    """

    def __init__(self, *, setup_timeout: float | None = None, teardown_timeout: float | None = 10.0) -> None:
        self.root = Root(setup_timeout, teardown_timeout)
        self.fiber = Fiber(self.root, None, "root")
        self.key = GLOBAL
        self.binding: ParentBinding | None = None

    async def __aenter__(self) -> Self:
        import anyio

        self.root.thread = get_ident()
        self.root.tasks = anyio.create_task_group()
        await self.root.tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        import anyio

        tasks = self.root.tasks
        assert tasks is not None  # noqa: S101 - it was entered
        failure: BaseException | None = None
        with anyio.CancelScope(shield=True):
            try:
                await self.fiber.dispose()
            except BaseExceptionGroup as undone:
                failure = undone
        self.root.tasks = None
        if failure is not None and error is not None:
            error.add_note(f"while the kernel was left also: {failure}")
        if error is None or isinstance(error, anyio.get_cancelled_exc_class()):
            swallowed = await tasks.__aexit__(kind, error, trace)
            if failure is not None and error is None:
                raise failure
            return swallowed
        await tasks.__aexit__(None, None, None)  # a task group would wrap the error in a group
        return None

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
            ScopeAlreadyBoundError, ScopeCycleError: as `bind_parent` says.
        """
        self.root.check_thread("making a scope")
        if isinstance(name, ScopeKey):
            key, binding = name, None if parent is None else bind_parent(name, parent)
        else:
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
            InactiveContextError: this context's owner has gone.
        """
        self.root.check_thread("mounting a plugin")
        fiber = PluginFiber(self, spec_of(plugin), config)
        try:
            self.fiber.add_child(fiber)
            fiber.start()
        except BaseException:
            self.root.fibers.discard(fiber)
            raise
        return fiber

    def provide(self, service: object, *, key: type | None = None) -> Registration:
        """Provide a service; others see it when this plugin is active.

        Args:
            service: the object.
            key: the type under which it is found; None for its own.

        Raises:
            DuplicateServiceError: somebody provides that type already.
        """
        self.root.check_thread("providing a service")
        return self.root.services.provide(self.fiber, type(service) if key is None else key, service)

    def get(self, key: type[S]) -> S | None:
        """The service of a type, bound to this context; None if nobody provides it now."""
        return self.root.services.get(self, key)

    def require(self, key: type[S]) -> S:
        """The service of a type, bound to this context. To wait for one, annotate a parameter of the plugin instead.

        Raises:
            MissingServiceError: nobody provides it now.
        """
        return self.root.services.require(self, key)

    def defer(self, undo: Undo) -> Registration:
        """Have something undone when this context's owner goes, or when the registration is closed.

        Args:
            undo: a function; what it gives is awaited if it is awaitable and the owner goes.
        """
        registration = Registration(f"undo of {self.name}", self.fiber, undo)
        self.fiber.add(registration.close)
        return registration

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
            EventModeError: an async listener for an ``EMIT`` event, which would never be awaited.
        """
        self.root.check_thread("listening to an event")
        source = calling_line(caller(1))

        def register(call: Callable[..., Any]) -> Registration:
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
        for listener in self._hearing(event, Mode.EMIT, told, more):
            try:
                listener.call(*told, **more)
            except Exception as error:  # a listener is somebody else's code; the others must hear all the same
                first = add_later_error(first, error)
        if first is not None and event.on_error == "raise":
            raise first
        if first is not None:
            log_error(f"a listener of {event.name} failed", first)

    async def parallel(self, event: Event[P, Any], *told: P.args, **more: P.kwargs) -> None:
        """Tell every listener, together; come back when all are done.

        Raises:
            ExceptionGroup: what listeners raised; none stops another.
        """
        import anyio

        errors: list[Exception] = []

        async def tell(listener: Listener) -> None:
            try:
                await listener.call(*told, **more)
            except Exception as error:  # see `emit`
                errors.append(error)

        async with anyio.create_task_group() as group:
            for listener in self._hearing(event, Mode.PARALLEL, told, more):
                group.start_soon(tell, listener)
        if errors:
            raise ExceptionGroup(f"listeners of {event.name} failed", errors)

    async def serial(self, event: Event[P, R], *told: P.args, **more: P.kwargs) -> R | None:
        """Ask listeners one by one; the first answer that is neither None nor False counts, and ends it."""
        for listener in self._hearing(event, Mode.SERIAL, told, more):
            answer = await listener.call(*told, **more)
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

            answer: R = await listeners[position].call(*told, call_next)
            return answer

        return await step(0)

    def _hearing(
        self, event: Event[..., Any], mode: Mode, told: tuple[Any, ...], more: dict[str, Any]
    ) -> tuple[Listener, ...]:
        if event.mode is not mode:
            raise EventModeError(event.name, f"is declared as {event.mode.value}, and was dispatched as {mode.value}")
        table = self.root.listeners(event)
        return table.all() if event.subject is None else table.about(event.subject(*told, **more))

    def __repr__(self) -> str:
        state = "" if self.fiber.state is FiberState.ACTIVE else f", {self.fiber.state.value}"
        return f"<Context: {self.name}, scope {self.key.name}{state}>"
