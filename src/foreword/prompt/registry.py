"""The registry: what is registered, in which layer, by whom; how it is undone; who is told.

Tables change under one lock. Change listeners and providers run outside it, so they may register and assemble.
Nothing here is cached but the plans, which hang on the layers whose numbers say whether they still hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from foreword.errors import (
    DuplicateEntryError,
    ForewordError,
    InactiveContextError,
    ProtectedOverrideError,
    ProtectedSectionShadowError,
    ProtectionConflictError,
    WrongThreadError,
)
from foreword.kernel.effects import Batch, Owner, Registration, Undo, add_later_error, notes_of
from foreword.kernel.events import Listeners
from foreword.kernel.layers import Layers, NamedTable
from foreword.kernel.scope import GLOBAL, ScopeKey
from foreword.kernel.source import caller, calling_line
from foreword.prompt.checks import with_value
from foreword.prompt.contributions import (
    Override,
    Protection,
    RuntimeContext,
    Section,
    Suppressor,
    ToolSource,
    Variable,
)
from foreword.prompt.plan import Memo, Plan, compile_plan
from foreword.prompt.running import Running

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from foreword.kernel.context import Context, Guard
    from foreword.prompt.config import SystemPromptConfig
    from foreword.prompt.origin import Origin

__all__ = ["EntryRegistration", "PromptLayer", "Registrar", "Registry"]

E = TypeVar("E", bound=Section | RuntimeContext | Variable)

_NO_OVERRIDES: Final[Mapping[str, Override]] = MappingProxyType({})


class PromptLayer:
    """What is registered in one layer, by kind."""

    __slots__ = (
        "contexts",
        "key",
        "number",
        "overrides",
        "plan",
        "protections",
        "sections",
        "suppressors",
        "tools",
        "variables",
    )

    def __init__(self, key: ScopeKey) -> None:
        self.key = key
        self.number = 0
        self.plan: Plan | None = None  # the last plan of the chain that ends here
        self.sections: NamedTable[Section] = NamedTable()
        self.contexts: NamedTable[RuntimeContext] = NamedTable()
        self.variables: NamedTable[Variable] = NamedTable()
        # tuples: most layers have none of these, and an empty tuple weighs nothing
        self.tools: tuple[ToolSource, ...] = ()
        self.protections: tuple[Protection, ...] = ()
        self.suppressors: tuple[Suppressor, ...] = ()
        self.overrides: Mapping[str, Override] = {} if key is GLOBAL else _NO_OVERRIDES

    def is_empty(self) -> bool:
        """Whether nothing is registered in it."""
        named = (self.sections, self.contexts, self.variables)
        return not any(named) and not (self.tools or self.protections or self.suppressors)

    def put(self, entry: ToolSource | Protection | Suppressor) -> None:
        """Add what has no name, behind all others of its kind."""
        if isinstance(entry, ToolSource):
            self.tools = (*self.tools, entry)
        elif isinstance(entry, Protection):
            self.protections = (*self.protections, entry)
        else:
            self.suppressors = (*self.suppressors, entry)

    def take_out(self, entry: ToolSource | Protection | Suppressor) -> None:
        """Remove what has no name, if it is still there."""
        if isinstance(entry, ToolSource):
            self.tools = tuple([each for each in self.tools if each is not entry])
        elif isinstance(entry, Protection):
            self.protections = tuple([each for each in self.protections if each is not entry])
        else:
            self.suppressors = tuple([each for each in self.suppressors if each is not entry])

    def table(self, kind: str) -> NamedTable[Any]:
        """The table of a kind of named entries."""
        if kind == Section.KIND:
            return self.sections
        return self.contexts if kind == RuntimeContext.KIND else self.variables


class Registry:
    """The core that all views of one `SystemPrompt` share."""

    def __init__(
        self,
        config: SystemPromptConfig,
        assemble_listeners: Listeners | None = None,
        change_listeners: Listeners | None = None,
        guard: Guard | None = None,
    ) -> None:
        self.config = config
        self._guard = guard
        self.layers: Layers[PromptLayer] = Layers(PromptLayer)
        self.running = Running()
        self._memo = Memo()
        self._lock = Lock()
        self._sequence = count(1)
        self.assemble_listeners = Listeners() if assemble_listeners is None else assemble_listeners
        self.change_listeners = Listeners() if change_listeners is None else change_listeners
        self._reserved: Counter[str] = Counter()  # section names under a global protection
        self._in_scopes: Counter[str] = Counter()  # section names in layers of scopes

    # -- reading -------------------------------------------------------------------------------------------------------

    def plan(self, scope: ScopeKey) -> Plan:
        """The plan of a scope: the one made last if no layer of its chain has changed, else a new one."""
        layers = self.layers.chain(scope)
        plan = layers[-1].plan
        if plan is not None and plan.holds(layers):
            return plan
        with self._lock:
            layers = self.layers.chain(scope)
            return self._compile(layers)

    def _compile(self, layers: tuple[PromptLayer, ...]) -> Plan:
        globally = layers[:1]
        base = globally[0].plan
        if base is None or not base.holds(globally):
            base = globally[0].plan = compile_plan(globally, None, self._memo, self.config)
        if len(layers) == 1:
            return base
        plan = layers[-1].plan = compile_plan(layers, base, self._memo, self.config)
        return plan

    def scopes(self) -> tuple[ScopeKey, ...]:
        """The keys of the scopes that hold something, or that somebody listens in."""
        with self._lock:
            keys = [layer.key for layer in self.layers.scoped()]
        return tuple(dict.fromkeys([*keys, *self.assemble_listeners.scopes()]))

    def next_seq(self) -> int:
        """The next place in the order of registration."""
        return next(self._sequence)

    def guarded(self, owner: str, what: str, error: Exception) -> Exception:
        """What is told of an error of a plugin's provider or listener: under a kernel, what its guard makes of it."""
        return error if self._guard is None else cast("Exception", self._guard(owner, what, error))

    # -- registering ---------------------------------------------------------------------------------------------------

    def check_free(self, scope: ScopeKey, kind: str, name: str, origin: Origin) -> None:
        """See that a name can be registered; the registration itself looks again, under the lock.

        Raises:
            DuplicateEntryError: the name is taken in this layer.
            ProtectedSectionShadowError: a section in a scope bears a globally protected name.
        """
        layer = self.layers.peek(scope)
        held = None if layer is None else layer.table(kind).get(name)
        if held is not None:
            raise DuplicateEntryError(origin.ref(kind, name), held.ref)
        if kind == Section.KIND and scope is not GLOBAL and self._reserved[name]:
            for protection in self.layers.globally.protections:
                if name in protection.sections:
                    raise ProtectedSectionShadowError(origin.ref(kind, name), protection.ref)

    def add_named(self, owner: Owner, scope: ScopeKey, entry: E) -> EntryRegistration[E]:
        """Register a section, context or variable; raises as `check_free`."""

        def insert() -> None:
            self.check_free(scope, entry.KIND, entry.name, entry.origin)
            self._put(scope, entry)

        registration = EntryRegistration(self, owner, scope, entry)
        self._register(owner, scope, registration, insert)
        return registration

    def remove_named(self, scope: ScopeKey, registration: EntryRegistration[Any]) -> None:
        """Undo `add_named`."""
        self._change(scope, lambda: self._take_out(scope, registration.take()))

    def add_sections(self, owner: Owner, scope: ScopeKey, sections: Sequence[Section], label: str) -> Registration:
        """Register sections of different names in one change, all or none; raises as `check_free`, for the first."""

        def insert() -> None:
            for section in sections:
                self.check_free(scope, section.KIND, section.name, section.origin)
            for section in sections:
                self._put(scope, section)

        def remove() -> None:
            for section in reversed(sections):
                self._take_out(scope, section)

        batch = Batch(label, tuple(section.ref for section in sections))
        registration = Registration(batch, owner, lambda: self._change(scope, remove))
        self._register(owner, scope, registration, insert)
        return registration

    def _put(self, scope: ScopeKey, entry: Section | RuntimeContext | Variable) -> None:
        self.layers.of(scope).table(entry.KIND).insert(entry)
        if entry.KIND == Section.KIND and scope is not GLOBAL:
            self._in_scopes[entry.name] += 1

    def _take_out(self, scope: ScopeKey, entry: Section | RuntimeContext | Variable) -> None:
        self.layers.of(scope).table(entry.KIND).remove(entry)
        if entry.KIND == Section.KIND and scope is not GLOBAL:
            _count_down(self._in_scopes, entry.name)

    def exchange(self, scope: ScopeKey, registration: EntryRegistration[E], new: E) -> None:
        """Put a new entry in the place of a registration's; a raising change listener brings the old one back."""
        old: list[E] = []

        def put(after: E) -> None:
            before = registration.held()
            if before is None or not self.layers.of(scope).table(after.KIND).exchange(before, after):
                raise InactiveContextError(f"the registration of {after}", "register it again")
            registration.hold(after)
            old.append(before)

        self._mutate(scope, lambda: put(new))
        try:
            self.announce()
        except BaseException as error:
            if registration.held() is new:
                self._take_back(error, lambda: self._change(scope, lambda: put(old[0])))
            raise

    def add_tools(self, owner: Owner, scope: ScopeKey, source: ToolSource) -> Registration:
        """Register a tool provider."""
        return self._add_anonymous(owner, scope, source)

    def add_suppressor(self, owner: Owner, scope: ScopeKey, suppressor: Suppressor) -> Registration:
        """Register a suppressor of runtime contexts."""
        return self._add_anonymous(owner, scope, suppressor)

    def add_protection(self, owner: Owner, scope: ScopeKey, protection: Protection) -> Registration:
        """Register a protection; a global one reserves its section names against shadows.

        Raises:
            ProtectionConflictError: a section of a protected name stands in some scope.
        """
        reserved = protection.sections if scope is GLOBAL else ()

        def insert() -> None:
            for name in protection.sections:
                if name in self.layers.globally.overrides:
                    raise ProtectedOverrideError(name, str(self.layers.globally.overrides[name]), protection.ref)
            for name in reserved:
                if self._in_scopes[name]:
                    shadows = [layer.sections.get(name) for layer in self.layers.scoped()]
                    raise ProtectionConflictError(
                        name, str(protection.origin), [each.ref for each in shadows if each is not None]
                    )
            self.layers.of(scope).put(protection)
            self._reserved.update(reserved)

        def remove() -> None:
            for name in reserved:
                _count_down(self._reserved, name)
            self.layers.of(scope).take_out(protection)

        registration = Registration(protection, owner, lambda: self._change(scope, remove))
        self._register(owner, scope, registration, insert)
        return registration

    def add_override(self, owner: Owner, override: Override) -> Registration:
        """Register a deployment's last word on a name.

        Raises:
            DuplicateEntryError: there is one already.
            ProtectedOverrideError: some layer protects a section of that name.
        """
        overrides = cast("dict[str, Override]", self.layers.globally.overrides)

        def insert() -> None:
            if override.name in overrides:
                raise DuplicateEntryError(override.ref, overrides[override.name].ref)
            for layer in (self.layers.globally, *self.layers.scoped()):
                for protection in layer.protections:
                    if override.name in protection.sections:
                        raise ProtectedOverrideError(override.name, str(override), protection.ref)
            overrides[override.name] = override

        def remove() -> None:
            overrides.pop(override.name, None)

        registration = Registration(override, owner, lambda: self._change(GLOBAL, remove))
        self._register(owner, GLOBAL, registration, insert)
        return registration

    # -- how a change is made ------------------------------------------------------------------------------------------

    def _add_anonymous(self, owner: Owner, scope: ScopeKey, entry: ToolSource | Suppressor) -> Registration:
        def insert() -> None:
            self.layers.of(scope).put(entry)

        def remove() -> None:
            self.layers.of(scope).take_out(entry)

        registration = Registration(entry, owner, lambda: self._change(scope, remove))
        self._register(owner, scope, registration, insert)
        return registration

    def _register(
        self,
        owner: Owner,
        scope: ScopeKey,
        registration: Registration,
        insert: Callable[[], None],
    ) -> None:
        """Insert, note the undo with the owner, tell the change listeners; roll back if one raises."""
        self._mutate(scope, insert)
        self.keep(owner, registration)

    def keep(self, owner: Owner, registration: Registration) -> None:
        """Note the undo of what was inserted with its owner, and tell the change listeners; undo it if one raises.

        For what stands in tables beside these, too, which a provider answers from.
        """
        try:
            owner.add(registration.in_turn)
            self.announce()
        except BaseException as error:
            self._take_back(error, registration.close)
            raise

    def _change(self, scope: ScopeKey, change: Callable[[], None]) -> None:
        self._mutate(scope, change)
        self.announce()

    def _mutate(self, scope: ScopeKey, change: Callable[[], None]) -> None:
        """Make one change under the lock; a refused one leaves the layer's number, and so all plans, as they were."""
        with self._lock:
            try:
                change()
            except ForewordError:
                self.layers.forget_if_empty(scope)
                raise
            self.layers.touch(scope)

    def announce(self) -> None:
        """Tell every change listener; the first error is raised when all were told, later ones are noted on it."""
        first: Exception | None = None
        for listener in self.change_listeners.all():
            try:
                listener.call()
            except Exception as error:  # a listener is somebody else's code; the others must hear all the same
                first = add_later_error(first, error)
        if first is not None:
            raise first

    @staticmethod
    def _take_back(error: BaseException, undo: Callable[[], None]) -> None:
        try:
            undo()
        except Exception as later:
            for note in (f"while this was taken back also: {type(later).__name__}: {later}", *notes_of(later)):
                error.add_note(note)


@dataclass(frozen=True, slots=True)
class Registrar:
    """In whose name something is registered, for registries that stand on a prompt, as that of tools does."""

    owner: Owner
    scope: ScopeKey
    origin: Origin
    registry: Registry
    ctx: Context | None  # under a kernel


class EntryRegistration(Registration, Generic[E]):
    """The registration of a section, context or variable, whose value can be replaced."""

    __slots__ = ("_entry", "_registry", "_scope")

    def __init__(self, registry: Registry, owner: Owner, scope: ScopeKey, entry: E) -> None:
        super().__init__(entry, owner, _as_entry)
        self._registry, self._scope = registry, scope
        self._entry: E | None = entry

    def replace(self, value: object) -> None:
        """Put another text or value in this entry's place, with the same name, order and options; one change is told.

        Args:
            value: what the registering call takes: for a text a string, a `Path` or a provider; for a variable also
                None.

        Raises:
            InactiveContextError: the registration is closed.
            WrongThreadError: under a kernel, this is not its thread.
            RegistrationError: the value does not fit, as the registering call would say.
        """
        entry = self._entry
        if entry is None:
            raise InactiveContextError(f"the registration of {self.label}", "register it again")
        if not self._owner.within_reach:
            raise WrongThreadError(f"replacing {self.label}")
        source = calling_line(caller(1))  # where the new value stands
        here = replace(entry, origin=replace(entry.origin, source=source))
        self._registry.exchange(self._scope, self, with_value(here, value, self._registry.config.limits))

    # What follows is called under the registry's lock, where the table and this agree on which entry is held.

    def held(self) -> E | None:
        """The entry that is registered now; None once it is undone."""
        return self._entry

    def hold(self, entry: E) -> None:
        """Have another entry registered."""
        self._entry = self._what = entry

    def take(self) -> E:
        """Hand the entry over, to be removed."""
        entry = self._entry
        assert entry is not None  # noqa: S101 - an undo runs once
        self._entry = None
        return entry

    def _take_back(self, undo: Undo) -> None:
        self._registry.remove_named(self._scope, self)


def _as_entry() -> None:
    """The undo of an entry's registration, which knows itself what to do: one for all of them."""


def _count_down(counter: Counter[str], name: str) -> None:
    counter[name] -= 1
    if not counter[name]:
        del counter[name]
