"""The front door: `SystemPrompt`, alone in six lines, or as many views as there are owners and scopes.

    prompt = SystemPrompt(persona="You are {{company}}'s billing assistant.")
    prompt.variable("company", "Acme")
    prompt.section("rules", "Never promise a refund.", order=20)
    print(prompt.render_sync().text)

A `SystemPrompt` is always a view: a registry that all views share, an owner, and a scope. What is registered through a
view belongs to its owner and stands in its scope's layer; closing the view undoes it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from foreword.errors import EntryRef, InactiveContextError, InvalidOptionError, KernelOwnsError, RunningLoopError, shown
from foreword.kernel.context import Context
from foreword.kernel.effects import Owner, Registration, UndoStack
from foreword.kernel.events import is_async_function, name_of
from foreword.kernel.plugins import plugin
from foreword.kernel.scope import GLOBAL, ParentBinding, ScopeKey, bind_parent
from foreword.kernel.services import Service
from foreword.kernel.source import Source, caller, calling_line
from foreword.prompt.asking import run_loop, running_loop
from foreword.prompt.checks import (
    checked_last_good,
    checked_name,
    checked_order,
    checked_protection,
    checked_required,
    checked_static,
    checked_tools,
    checked_variable_name,
    with_value,
)
from foreword.prompt.config import HARNESS_IDENTITY, ConfigFields, SystemPromptConfig
from foreword.prompt.context import AssembleContext
from foreword.prompt.contributions import (
    IDENTITY_ORDER,
    IDENTITY_SECTION,
    PERSONA_ORDER,
    PERSONA_SECTION,
    Override,
    Provider,
    RuntimeContext,
    Section,
    Suppressor,
    ToolSource,
    Variable,
)
from foreword.prompt.events import SYSTEM_PROMPT_ASSEMBLE, SYSTEM_PROMPT_CHANGE
from foreword.prompt.origin import Origin
from foreword.prompt.pipeline import Run
from foreword.prompt.registry import EntryRegistration, Registrar, Registry
from foreword.prompt.rendering import Rendering
from foreword.prompt.text import described
from foreword.prompt.transform import AssembleListener

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self, Unpack

    from foreword.prompt.assembly import PromptAssembly
    from foreword.prompt.context import ContextKey
    from foreword.prompt.contributions import (
        OnError,
        Text,
        TextProvider,
        Tools,
        ToolsProvider,
        Value,
        ValueProvider,
        When,
    )

__all__ = ["SystemPrompt"]

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
_MAIN = "main"


class _Missing:
    """Stands for an argument that was not given, where None means something."""

    def __repr__(self) -> str:
        return "…"


_MISSING: Any = _Missing()


class SystemPrompt(Service):
    """The system prompt of an agent, assembled from what its plugins contribute.

    Built directly, it is the view of the owner ``main`` on the global layer, and needs no kernel and no event loop.

    Args:
        config: the configuration; or give its fields by name.
        fields: the fields of a `SystemPromptConfig`.

    Raises:
        InvalidConfigError: all faults of the configuration at once.
    """

    __slots__ = ("_above", "_binding", "_ctx", "_key", "_nothing_said", "_owner", "_registry")

    def __init__(self, config: SystemPromptConfig | None = None, **fields: Unpack[ConfigFields]) -> None:
        if config is not None and fields:
            raise TypeError("give either a SystemPromptConfig or its fields, not both")
        config = SystemPromptConfig(**fields) if config is None else config
        if not isinstance(cast("object", config), SystemPromptConfig):
            raise TypeError(f"{described(config)} is no configuration; to give the persona's text, write persona=…")
        self._registry = Registry(config)
        self._owner: Owner = UndoStack(_MAIN)
        self._key = GLOBAL
        self._binding: ParentBinding | None = None
        self._ctx: Context | None = None
        self._above: Owner | None = None  # closes this view with itself
        self._nothing_said: AssembleContext | None = None  # the context of assemblies that are given none
        place = calling_line(caller(1))
        self._open(place, place, harness_identity=bool(config.include_harness_identity))

    # -- as a service --------------------------------------------------------------------------------------------------

    @classmethod
    def as_plugin(cls) -> Callable[..., Any]:
        """The plugin that provides a `SystemPrompt` to others; what ``ctx.mount(SystemPrompt, config)`` mounts."""
        return system_prompt_plugin

    def bind(self, ctx: Context) -> SystemPrompt:
        """The view of a context: its owner is the context's plugin, its scope the context's."""
        return self._view(ctx.fiber, ctx.key, ctx.binding, ctx)

    @classmethod
    def serving(
        cls,
        config: SystemPromptConfig,
        ctx: Context,
        *,
        identity: Source | None = None,
        persona: Source | None = None,
    ) -> SystemPrompt:
        """A prompt for a kernel: its listeners are those of the kernel's events, its openers belong to its plugin.

        ``ctx.mount(SystemPrompt, config)`` does this; call it only in a plugin that then provides what it gives.

        Args:
            config: the configuration.
            ctx: the context of the plugin that provides the prompt.
            identity: the place to show for the identity's text, if it was not written in code.
            persona: the same for the persona's.
        """
        prompt = cls.__new__(cls)
        root = ctx.root
        prompt._registry = Registry(
            config, root.listeners(SYSTEM_PROMPT_ASSEMBLE), root.listeners(SYSTEM_PROMPT_CHANGE), root.guard
        )
        prompt._owner, prompt._key, prompt._binding, prompt._ctx = ctx.fiber, GLOBAL, None, ctx
        prompt._above = None
        prompt._nothing_said = None
        here = calling_line(caller(0))
        prompt._open(identity or here, persona or here, harness_identity=config.include_harness_identity is not False)
        return prompt

    def _open(self, identity: Source, persona: Source, *, harness_identity: bool) -> None:
        """Register the sections that every prompt opens with."""
        config = self._registry.config
        text = HARNESS_IDENTITY if config.identity is None and harness_identity else config.identity
        if text is not None:
            self._text(Section, IDENTITY_SECTION, text, identity, order=IDENTITY_ORDER)
        self._text(Section, PERSONA_SECTION, config.persona, persona, order=PERSONA_ORDER)

    # -- views ---------------------------------------------------------------------------------------------------------

    @property
    def key(self) -> ScopeKey:
        """The key of this view's scope; `GLOBAL` for the global layer."""
        return self._key

    @property
    def binding(self) -> ParentBinding | None:
        """The right to move this view's scope; None if somebody else holds it, and for the global layer."""
        return self._binding

    @property
    def active(self) -> bool:
        """Whether one may still register and assemble through this view."""
        return self._owner.active

    @property
    def config(self) -> SystemPromptConfig:
        """The configuration that all views share."""
        return self._registry.config

    @property
    def scopes(self) -> tuple[ScopeKey, ...]:
        """The scopes that hold something, in the order in which they first did."""
        return self._registry.scopes()

    @property
    def stuck(self) -> tuple[EntryRef, ...]:
        """The providers that did not go when their timeout had passed and they were cancelled; until they end."""
        return self._registry.running.stuck()

    def known_tools(self) -> tuple[frozenset[str], bool]:
        """The names of tools that this view's scope is known to have, as `tool_order` may list them.

        Returns:
            The names, of static tools and of the last answers of providers; and whether every provider has answered
            so far, without which a name that is not among them may still be one.
        """
        answers = [source.memory.known for source in self._registry.plan(self._key).tools]
        known = frozenset(name for each in answers for name in each or ())
        return known, all(each is not None for each in answers)

    def owner(self, name: str) -> SystemPrompt:
        """A view with a new owner in the same scope; it closes with this one, or before.

        Raises:
            KernelOwnsError: under a kernel, where every owner is a plugin.
            InactiveContextError: this view is closed.
        """
        self._require_active()
        if self._ctx is not None:
            raise KernelOwnsError(f"owner({name!r})", "ctx.mount(plugin)")
        view = self._view(UndoStack(checked_name("owner", name, self._owner.name)), self._key, None)
        view._above = self._owner
        self._owner.add(view.close)
        return view

    def scope(self, name: str | ScopeKey, parent: ScopeKey | SystemPrompt | None = None) -> SystemPrompt:
        """A view with a new owner in a new scope, which sees what its ancestors and the global layer hold.

        Args:
            name: the scope's name, also the owner's; or a key, for one that exists already.
            parent: the enclosing scope, a key or a view; None for directly under the global layer, or, with a key, to
                leave it where it is.

        Returns:
            The view. It does not close with this one: a scope outlives the view that it was made from.

        Raises:
            ScopeAlreadyBoundError: a parent is given for a key that has one.
            ScopeCycleError: the parent stands below the key.
            InactiveContextError: this view is closed.
        """
        self._require_active()
        if self._ctx is not None:
            return self.bind(self._ctx.scope(name, parent))
        if isinstance(name, ScopeKey):
            binding = None if parent is None else bind_parent(name, parent)
            return self._view(UndoStack(name.name), name, binding)
        key = ScopeKey(checked_name("scope", name, self._owner.name))
        return self._view(UndoStack(key.name), key, bind_parent(key, parent))

    def close(self) -> None:
        """Undo all that was registered through this view and through the views that `owner` made from it.

        Last in, first out; every undo runs. A scope bound below this one stays, and so does this one's own binding.
        Closing twice does nothing.

        Raises:
            KernelOwnsError: under a kernel, where undoing may have to wait: ``await fiber.dispose()``, or of a scope
                ``await ctx.scope("…").dispose()``.
            Exception: the first error of a change listener, later ones noted on it.
        """
        if not isinstance(self._owner, UndoStack):
            raise KernelOwnsError("close()", f"await fiber.dispose(){self._way_to_dispose_a_scope()}")
        try:
            self._owner.close()
        finally:
            if self._above is not None:
                self._above.discard(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = "" if self.active else ", closed"
        return f"<SystemPrompt: owner {self._owner.name}, scope {self._key.name}{closed}>"

    # -- registering ---------------------------------------------------------------------------------------------------

    @overload
    def section(
        self, name: str, text: Text, *, order: float, complete: bool = False, verbatim: bool = False,
        requires_tools: Iterable[str] = (), when: When | None = None, on_error: OnError = "fail",
        last_good_by: Iterable[ContextKey[Any]] = (), timeout: float | None = None, thread: bool = False,
        source: Source | None = None,
    ) -> EntryRegistration[Section]: ...  # fmt: skip
    @overload
    def section(
        self, name: str, *, order: float, complete: bool = False, verbatim: bool = False,
        requires_tools: Iterable[str] = (), when: When | None = None, on_error: OnError = "fail",
        last_good_by: Iterable[ContextKey[Any]] = (), timeout: float | None = None, thread: bool = False,
        source: Source | None = None,
    ) -> Callable[[TP], TP]: ...  # fmt: skip
    def section(
        self,
        name: str,
        text: Any = _MISSING,
        *,
        order: float,
        complete: bool = False,
        verbatim: bool = False,
        requires_tools: Iterable[str] = (),
        when: When | None = None,
        on_error: OnError = "fail",
        last_good_by: Iterable[ContextKey[Any]] = (),
        timeout: float | None = None,
        thread: bool = False,
        source: Source | None = None,
    ) -> Any:
        """Contribute a part of the system prompt.

        Args:
            name: unique in its layer, by custom ``owner:name``; in a scope it shadows a namesake further out.
            text: a template, a `Path` to one (read once, now), or a provider, sync or async, that gives one at each
                assembly; without it the call is a decorator for a provider.
            order: its place: ascending, equal ones by registration. Identity −100, persona 0, tool guidance 100 to 199.
            complete: this section is the whole prompt, whatever others and listeners say.
            verbatim: the text is no template.
            requires_tools: tools without which the section goes.
            when: a condition on the context, asked before all providers; false leaves the section out.
            on_error: what to do when the provider or the condition fails: ``"fail"``, ``"skip"``, a `Placeholder`, or
                ``"last_good"``: its last good answer for the same scope, model and values of `last_good_by`.
            last_good_by: the context's keys whose values tell last good answers apart. With none, only assemblies
                without any values keep or reuse one.
            timeout: seconds that an async provider, or one in a thread, has.
            thread: call a plain function in a daemon thread, so that it cannot hold up the event loop.
            source: the place to show for it; the line of this call if not given.

        Returns:
            The registration, or, without a text, a decorator that gives its function back unchanged.

        Raises:
            EmptyNameError, NonFiniteOrderError, InvalidOptionError, NotAStringError, UnreadableTextError,
            PromptTooLargeError, DuplicateEntryError, ProtectedSectionShadowError, InactiveContextError: nothing was
                changed. An exception of a change listener takes the registration back.
        """
        place = calling_line(caller(1)) if source is None else source
        options: dict[str, Any] = {
            "order": order, "complete": complete, "verbatim": verbatim, "requires_tools": requires_tools, "when": when,
            "on_error": on_error, "last_good_by": last_good_by, "timeout": timeout, "thread": thread,
        }  # fmt: skip
        return self._now_or_decorated(text, lambda given: self._text(Section, name, given, place, **options))

    def sections_from(self, folder: Path, *, order: float | None = None) -> Registration:
        """Contribute each ``*.md`` file of a folder as a section, in one change.

        A file may begin with front matter: YAML between two lines ``---``, with the keys ``name`` (without it the
        section is called ``owner:stem``), ``order``, ``when_model`` (a glob, or a list of some; without a model that
        one of them fits the section is left out), ``requires_tools`` and ``verbatim``. What stands behind is the text,
        read as that of a `Path` in `section`: once, now. Equal orders stand in the order of the file names.

        Args:
            folder: where the files are. Its hidden files and sub-folders are not looked at.
            order: the place of those files that give none.

        Returns:
            The registration of all of them, which are undone together.

        Raises:
            InvalidSectionFilesError: the folder cannot be read or has no such file, or files are at fault: all faults
                at once, each with its line.
            NonFiniteOrderError, DuplicateEntryError, ProtectedSectionShadowError, InactiveContextError: as `section`
                says. Whatever is raised, no file was registered; an exception of a change listener takes all back.
        """
        from foreword.prompt.section_files import read_folder  # with YAML, a tenth of the start of those who need none

        self._require_active()
        if not isinstance(cast("object", folder), Path):
            raise TypeError(f"sections_from takes a Path, not {described(folder)}: sections_from(Path(…))")
        registry, origin = self._registry, self._origin(calling_line(caller(1)))
        default = None if order is None else checked_order(order, Section.KIND, f"{self._owner.name}:*", origin)
        files = read_folder(folder, origin, default, registry.config.limits.text)
        sections = [
            Section(
                file.name, self._origin(file.source), registry.next_seq(), Provider(file.text), file.when,
                owner=self._owner, order=file.order, verbatim=file.verbatim, requires_tools=file.requires_tools,
            )
            for file in files
        ]  # fmt: skip
        what = f"{len(sections)} section{'' if len(sections) == 1 else 's'} from {folder} of {origin}"
        return registry.add_sections(self._owner, self._key, sections, what)

    @overload
    def context(
        self, name: str, text: Text, *, order: float, verbatim: bool = False, requires_tools: Iterable[str] = (),
        sensitive: bool = False, when: When | None = None, on_error: OnError = "fail",
        last_good_by: Iterable[ContextKey[Any]] = (), timeout: float | None = None, thread: bool = False,
    ) -> EntryRegistration[RuntimeContext]: ...  # fmt: skip
    @overload
    def context(
        self, name: str, *, order: float, verbatim: bool = False, requires_tools: Iterable[str] = (),
        sensitive: bool = False, when: When | None = None, on_error: OnError = "fail",
        last_good_by: Iterable[ContextKey[Any]] = (), timeout: float | None = None, thread: bool = False,
    ) -> Callable[[TP], TP]: ...  # fmt: skip
    def context(
        self,
        name: str,
        text: Any = _MISSING,
        *,
        order: float,
        verbatim: bool = False,
        requires_tools: Iterable[str] = (),
        sensitive: bool = False,
        when: When | None = None,
        on_error: OnError = "fail",
        last_good_by: Iterable[ContextKey[Any]] = (),
        timeout: float | None = None,
        thread: bool = False,
    ) -> Any:
        """Contribute a runtime context: dynamic facts for the model that never become part of the system text.

        Args and errors are those of `section`; `sensitive` marks a text that logs and pages are to keep to themselves.
        """
        source = calling_line(caller(1))
        options: dict[str, Any] = {
            "order": order, "verbatim": verbatim, "requires_tools": requires_tools, "sensitive": sensitive,
            "when": when, "on_error": on_error, "last_good_by": last_good_by, "timeout": timeout, "thread": thread,
        }  # fmt: skip
        return self._now_or_decorated(text, lambda given: self._text(RuntimeContext, name, given, source, **options))

    @overload
    def variable(
        self, name: str, value: Value, *, sensitive: bool = False, when: When | None = None,
        on_error: OnError = "fail", last_good_by: Iterable[ContextKey[Any]] = (), timeout: float | None = None,
        thread: bool = False, source: Source | None = None,
    ) -> EntryRegistration[Any]: ...  # fmt: skip
    @overload
    def variable(
        self, name: str, *, sensitive: bool = False, when: When | None = None, on_error: OnError = "fail",
        last_good_by: Iterable[ContextKey[Any]] = (), timeout: float | None = None, thread: bool = False,
        source: Source | None = None,
    ) -> Callable[[VP], VP]: ...  # fmt: skip
    def variable(
        self,
        name: str,
        value: Any = _MISSING,
        *,
        sensitive: bool = False,
        when: When | None = None,
        on_error: OnError = "fail",
        last_good_by: Iterable[ContextKey[Any]] = (),
        timeout: float | None = None,
        thread: bool = False,
        source: Source | None = None,
    ) -> Any:
        """Contribute a value for ``{{name}}`` references. It is spliced in as it is, never read as a template.

        Args:
            name: ``[a-z][a-z0-9_]*``, unique in its layer; in a scope it shadows a namesake further out.
            value: a string, None for "no value", or a provider of one of them; without it the call is a decorator.
            sensitive: marks a value that logs and pages are to keep to themselves.
            when: a condition on the context; false leaves the variable without a value.
            on_error: what to do when the provider fails: ``"fail"``, ``"skip"`` (no value), a `Placeholder`, or
                ``"last_good"``; see `section`, also for the options that follow.
            last_good_by: the context's keys whose values tell last good values apart.
            timeout: seconds that an async provider, or one in a thread, has.
            thread: call a plain function in a daemon thread.
            source: the place to show for it; the line of this call if not given.

        Raises:
            InvalidVariableNameError, InvalidOptionError, NotAStringError, PromptTooLargeError, DuplicateEntryError,
            InactiveContextError: nothing was changed. An exception of a change listener takes the registration back.
        """
        place = calling_line(caller(1)) if source is None else source

        def register(given: object) -> EntryRegistration[Any]:
            self._require_active()
            registry, origin = self._registry, self._origin(place)
            checked = checked_variable_name(name, origin)
            registry.check_free(self._key, Variable.KIND, checked, origin)
            last_good = checked_last_good(on_error, last_good_by, origin.ref(Variable.KIND, checked))
            bare = Variable(
                checked, origin, registry.next_seq(), Provider(None), when, on_error, timeout, thread,
                last_good, self._owner, sensitive=sensitive,
            )  # fmt: skip
            return registry.add_named(self._owner, self._key, with_value(bare, given, registry.config.limits))

        return self._now_or_decorated(value, register)

    @overload
    def tools(
        self, provider: Tools, *, when: When | None = None, on_error: OnError = "fail",
        last_good_by: Iterable[ContextKey[Any]] = (), timeout: float | None = None, thread: bool = False,
        source: Source | None = None,
    ) -> Registration: ...  # fmt: skip
    @overload
    def tools(
        self, *, when: When | None = None, on_error: OnError = "fail",
        last_good_by: Iterable[ContextKey[Any]] = (), timeout: float | None = None, thread: bool = False,
        source: Source | None = None,
    ) -> Callable[[XP], XP]: ...  # fmt: skip
    def tools(
        self,
        provider: Any = _MISSING,
        *,
        when: When | None = None,
        on_error: OnError = "fail",
        last_good_by: Iterable[ContextKey[Any]] = (),
        timeout: float | None = None,
        thread: bool = False,
        source: Source | None = None,
    ) -> Any:
        """Contribute tool schemas.

        Args:
            provider: a list of `ToolSchema`, a `ToolProviderResult`, or a provider of one, asked at each assembly.
            when: a condition on the context; false leaves the provider out.
            on_error: what to do when the provider fails: ``"fail"``, ``"skip"`` (no tools) or ``"last_good"``; see
                `section`, also for the options that follow.
            last_good_by: the context's keys whose values tell last good answers apart.
            timeout: seconds that an async provider, or one in a thread, has.
            thread: call a plain function in a daemon thread.
            source: the place to show for it; the line of this call if not given.

        Raises:
            InvalidToolSchemaError, ReservedToolNameError, InvalidOptionError, InactiveContextError: nothing was
                changed. An exception of a change listener takes the registration back.
        """
        place = calling_line(caller(1)) if source is None else source

        def register(given: object) -> Registration:
            self._require_active()
            origin = self._origin(place)
            name = name_of(given) if callable(given) else "tools"
            last_good = checked_last_good(on_error, last_good_by, origin.ref(ToolSource.KIND, name))
            bare = ToolSource(
                name, origin, self._registry.next_seq(), Provider(None), when, on_error, timeout, thread,
                last_good, self._owner,
            )  # fmt: skip
            return self._registry.add_tools(self._owner, self._key, checked_tools(given, bare))

        return self._now_or_decorated(provider, register)

    def protect(self, *, sections: Iterable[str] = (), tools: Iterable[str] = ()) -> Registration:
        """Make the canonical state of sections and tools outlast every listener: their presence, text, and absence.

        In the global layer it also reserves the section names: no scope may shadow them.

        Raises:
            EmptyProtectionError: no name is given.
            NotAStringError: a name is no string, or a bare string stands for the list.
            ProtectionConflictError: a section of such a name stands in a scope.
            InactiveContextError: this view is closed.
        """
        self._require_active()
        protection = checked_protection(self._origin(calling_line(caller(1))), sections, tools)
        return self._registry.add_protection(self._owner, self._key, protection)

    def override(
        self,
        name: str,
        *,
        enabled: bool = True,
        order: float | None = None,
        text: str | Path | None = None,
        why: str = "",
        source: Source | None = None,
    ) -> Registration:
        """Have the last word on a section or context, in every scope: for whoever puts a deployment together.

        It counts after shadows are merged and before any provider is asked; a name that nobody bears is no fault.

        Args:
            name: whose; one override a name.
            enabled: False leaves it out.
            order: another place.
            text: another text, a template or a `Path` to one; the entry's provider is then not asked.
            why: the reason, for traces.
            source: the place to show for it; the line of this call if not given.

        Raises:
            DuplicateEntryError: the name has an override already.
            ProtectedOverrideError: a section of that name is protected.
            InvalidOptionError: nothing is overridden.
            EmptyNameError, NonFiniteOrderError, NotAStringError, UnreadableTextError, PromptTooLargeError,
            InactiveContextError: nothing was changed.
        """
        self._require_active()
        origin = self._origin(calling_line(caller(1)) if source is None else source)
        checked = checked_name("override", name, origin)
        if not isinstance(cast("object", enabled), bool):
            raise InvalidOptionError(origin.ref("override", checked), "enabled", "must be True or False")
        if enabled and order is None and text is None:
            why = "says nothing; give enabled=False, order=… or text=…"
            raise InvalidOptionError(origin.ref("override", checked), "enabled", why)
        place = None if order is None else checked_order(order, "override", checked, origin)
        if isinstance(text, Path):
            origin = replace(origin, source=Source(str(text.absolute()), 1, is_text=True))
        given = None if text is None else checked_static(text, origin.ref("override", checked), self.config.limits)
        return self._registry.add_override(self._owner, Override(checked, origin, enabled, place, given, why))

    def suppress_runtime_context(self) -> Registration:
        """Leave out every runtime context, for whoever sees this view's layer; none is asked while this stands."""
        self._require_active()
        suppressor = Suppressor(self._origin(calling_line(caller(1))))
        return self._registry.add_suppressor(self._owner, self._key, suppressor)

    @overload
    def on_assemble(
        self, listener: AssembleListener, *, prepend: bool = False, source: Source | None = None
    ) -> Registration: ...
    @overload
    def on_assemble(self, *, prepend: bool = False, source: Source | None = None) -> Callable[[LP], LP]: ...
    def on_assemble(self, listener: Any = _MISSING, *, prepend: bool = False, source: Source | None = None) -> Any:
        """Take part in the waterfall around each assembly of this view's scope and the scopes below it.

        Args:
            listener: ``async def listener(assembly, context, call_next) -> PromptAssembly``. It may change the assembly
                before or after ``await call_next()``, give another one back, or not call on. Without it the call is a
                decorator.
            prepend: go in front of all, instead of behind all.
            source: the place to show for it; the line of this call if not given.

        Returns:
            The registration; it announces no change.

        Raises:
            InvalidOptionError: the listener is no function, or none that takes three arguments.
            InactiveContextError: this view is closed.
        """
        place = calling_line(caller(1)) if source is None else source

        def register(given: Any) -> Registration:
            self._check_listener(given, place)
            if not _takes(given, 3):
                why = "must take three arguments: async def listener(assembly, context, call_next)"
                raise InvalidOptionError(self._origin(place).ref("listener", name_of(given)), "listener", why)
            return self._registry.assemble_listeners.add(self._owner, self._key, given, place, prepend=prepend)

        return self._now_or_decorated(listener, register)

    @overload
    def on_change(self, listener: Callable[[], object]) -> Registration: ...
    @overload
    def on_change(self) -> Callable[[CP], CP]: ...
    def on_change(self, listener: Any = _MISSING) -> Any:
        """Hear of every change of what is registered, in any scope: once when it is made, once when it is undone.

        A listener (called without arguments) that raises takes the registration back, and hears of that, too; on an
        undo nothing comes back, and the error reaches whoever closed. Without a listener the call is a decorator.

        Raises:
            InvalidOptionError: the listener is no function.
            InactiveContextError: this view is closed.
        """
        source = calling_line(caller(1))

        def register(given: Any) -> Registration:
            self._check_listener(given, source, is_plain=True)
            return self._registry.change_listeners.add(self._owner, self._key, given, source)

        return self._now_or_decorated(listener, register)

    def registrar(self, source: Source) -> Registrar:
        """In whose name this view registers: for registries that stand on a prompt, as that of the tools does.

        Args:
            source: the place of the call.

        Raises:
            InactiveContextError: this view is closed.
            WrongThreadError: under a kernel, this is not its thread.
        """
        self._require_active()
        return Registrar(self._owner, self._key, self._origin(source), self._registry, self._ctx)

    def is_view_of(self, other: SystemPrompt) -> bool:
        """Whether this and another one are views of the same prompt."""
        return self._registry is other._registry

    # -- assembling ----------------------------------------------------------------------------------------------------

    async def assemble(self, context: AssembleContext | None = None) -> PromptAssembly:
        """Assemble for a context.

        Args:
            context: what the assembly is for; without a scope it is for this view's.

        Raises:
            AssemblyError: it cannot be made; see its subclasses.
            InactiveContextError: this view is closed.
        """
        return await self._run(context).assemble()

    async def render(self, context: AssembleContext | None = None) -> Rendering:
        """Assemble for a context and render.

        Raises:
            AssemblyError: it cannot be assembled.
            RenderError: a text has a fault; names its place.
            InactiveContextError: this view is closed.
        """
        return await self._run(context).render()

    def assemble_sync(self, context: AssembleContext | None = None) -> PromptAssembly:
        """Assemble from plain code. With nothing async in force this needs no event loop and works anywhere.

        Raises:
            RunningLoopError: an async provider or a listener is in force, and a loop is running here.
            AssemblyError: it cannot be made.
            InactiveContextError: this view is closed.
        """
        run = self._run(context)
        why = run.needs_loop()
        if why is None:
            return run.assemble_sync()
        return _in_a_loop(run, run.assemble, "assemble_sync", "await prompt.assemble(context)", why)

    def render_sync(self, context: AssembleContext | None = None) -> Rendering:
        """Assemble and render from plain code; see `assemble_sync` and `render`."""
        run = self._run(context)
        why = run.needs_loop()
        if why is None:
            return run.render_sync()
        return _in_a_loop(run, run.render, "render_sync", "await prompt.render(context)", why)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _run(self, context: AssembleContext | None) -> Run:
        if not self._owner.active:
            self._require_active()
        if context is None:
            context = self._nothing_said
            if context is None:
                context = self._nothing_said = AssembleContext(scope=None if self._key is GLOBAL else self._key)
        elif not isinstance(cast("object", context), AssembleContext):
            raise TypeError(f"the context is {described(context)}; give AssembleContext({{KEY: value}}, scope=…)")
        elif context.scope is None and self._key is not GLOBAL:
            context = context.at(self._key)  # so that providers know whom they answer
        return Run(self._registry, GLOBAL if context.scope is None else context.scope, context)

    def _view(
        self, owner: Owner, key: ScopeKey, binding: ParentBinding | None, ctx: Context | None = None
    ) -> SystemPrompt:
        view = SystemPrompt.__new__(SystemPrompt)
        view._registry, view._owner, view._key, view._binding, view._ctx = self._registry, owner, key, binding, ctx
        view._above = None
        view._nothing_said = None
        return view

    def _text(
        self,
        kind: type[Section] | type[RuntimeContext],
        name: str,
        given: object,
        source: Source,
        *,
        order: float,
        requires_tools: Iterable[str] = (),
        last_good_by: Iterable[ContextKey[Any]] = (),
        **options: Any,
    ) -> EntryRegistration[Any]:
        self._require_active()
        registry, origin = self._registry, self._origin(source)
        checked = checked_name(kind.KIND, name, origin)
        place = checked_order(order, kind.KIND, checked, origin)
        registry.check_free(self._key, kind.KIND, checked, origin)
        if requires_tools != ():
            ref = origin.ref(kind.KIND, checked)
            options["requires_tools"] = checked_required(requires_tools, ref, complete=options.get("complete", False))
        if last_good_by != () or options.get("on_error") == "last_good":
            ref = origin.ref(kind.KIND, checked)
            options["last_good"] = checked_last_good(options.get("on_error"), last_good_by, ref)
        bare = kind(checked, origin, registry.next_seq(), Provider(""), owner=self._owner, order=place, **options)
        return registry.add_named(self._owner, self._key, with_value(bare, given, registry.config.limits))

    @staticmethod
    def _now_or_decorated(given: object, register: Callable[[Any], Any]) -> Any:
        if given is not _MISSING:
            return register(given)

        def decorate(function: F) -> F:
            register(function)
            return function

        return decorate

    def _check_listener(self, listener: object, source: Source, *, is_plain: bool = False) -> None:
        self._require_active()
        self._require_own_thread()
        if not callable(listener):
            why = f"must be a function, not {described(listener)}"
            raise InvalidOptionError(self._origin(source).ref("listener", "(none)"), "listener", why)
        if is_plain and is_async_function(listener):
            why = "must be a plain function: a change is told at once, and nobody could wait for it"
            raise InvalidOptionError(self._origin(source).ref("listener", name_of(listener)), "listener", why)

    def _origin(self, source: Source) -> Origin:
        self._require_own_thread()
        if not isinstance(cast("object", source), Source):
            raise TypeError(f"source is {described(source)}; give a Source(file, line)")
        return Origin(self._owner.name, None if self._key is GLOBAL else self._key.name, source)

    def _require_own_thread(self) -> None:
        """Under a kernel, changes belong to its thread, and a plugin that goes waits for its providers."""
        if self._ctx is not None:
            self._ctx.root.check_thread("registering")
            self._registry.running.guard(self._owner, self._ctx.root.waiting)

    def _way_to_dispose_a_scope(self) -> str:
        if self._key is GLOBAL:
            return ""
        return f'; of a scope keep the context, scope = ctx.scope("{shown(self._key.name)}"), and await scope.dispose()'

    def _require_active(self) -> None:
        if not self._owner.active:
            raise InactiveContextError(f"the view of owner {self._owner.name} on scope {self._key.name}")


def _takes(call: Callable[..., object], count: int) -> bool:
    """Whether a function can be called with so many arguments, as far as its signature can be read."""
    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):  # builtins may have none
        return True
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _in_a_loop(run: Run, take: Callable[[], Coroutine[Any, Any, T]], call: str, instead: str, why: EntryRef) -> T:
    """Take the stages of a run in an event loop of our own, for a sync call that needs one.

    Raises:
        RunningLoopError: a loop is running here already.
    """
    library = running_loop()
    if library is not None:
        raise RunningLoopError(call, instead, library, why)
    return run_loop(take, may_hang=run.may_hang())


@plugin(name="system-prompt", config=SystemPromptConfig)
def system_prompt_plugin(config: SystemPromptConfig, ctx: Context) -> None:
    """Provide a `SystemPrompt` to the plugins of a kernel."""
    ctx.provide(SystemPrompt.serving(config, ctx))


LP = TypeVar("LP", bound=AssembleListener)
CP = TypeVar("CP", bound=Callable[[], object])
TP = TypeVar("TP", bound="TextProvider")
VP = TypeVar("VP", bound="ValueProvider")
XP = TypeVar("XP", bound="ToolsProvider")
