"""The tree of errors. Every one names its culprit and the way out, carries its objects, and survives pickling.

    ForewordError                         .kind tells errors apart by a stable word
    ├── NotJsonError                      a value that JSON cannot hold
    ├── ScopeError                        scopes: bound twice, a cycle
    ├── InactiveContextError              something is used after its owner has gone
    ├── PluginError                       a plugin that cannot be mounted, fails, hangs or waits for itself
    ├── MissingServiceError, DuplicateServiceError, EventModeError, WrongThreadError
    ├── RegistrationError                 a registration that is refused; nothing was changed
    ├── InvalidConfigError                all faults of a configuration at once
    ├── YamlError, DeploymentError        all faults of a file at once, each with its place
    ├── UntrustedFileError, TrustStoreError
    ├── AssemblyError                     one assembly that cannot be made
    │   └── ProviderFailedError           all failing providers at once, in a fixed order
    └── RenderError                       a text that cannot be rendered; carries line, column and a caret

A subclass also derives from the builtin that fits (``ValueError``, ``TypeError``, …), so plain ``except`` clauses work.
Errors hold names and values, never functions, contexts or registries: what can be pickled can cross a process
border and be logged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "AssemblyCancelledError",
    "AssemblyError",
    "ConfigFault",
    "DeploymentError",
    "DuplicateEntryError",
    "DuplicateServiceError",
    "EmptyNameError",
    "EmptyProtectionError",
    "EntryRef",
    "EventModeError",
    "Fault",
    "ForewordError",
    "InactiveContextError",
    "InvalidConfigError",
    "InvalidOptionError",
    "InvalidPluginConfigError",
    "InvalidPluginError",
    "InvalidToolSchemaError",
    "InvalidVariableNameError",
    "KernelOwnsError",
    "ListenerError",
    "LoneSurrogateError",
    "MalformedReferenceError",
    "MissingContextValueError",
    "MissingServiceError",
    "MultipleCompleteSectionsError",
    "NonFiniteOrderError",
    "NotAStringError",
    "NotJsonError",
    "PluginDeadlockError",
    "PluginError",
    "PluginFailedError",
    "PluginTimeoutError",
    "PromptTooLargeError",
    "ProtectedOverrideError",
    "ProtectedSectionShadowError",
    "ProtectionConflictError",
    "ProviderFailedError",
    "ProviderFailure",
    "ProviderTimeoutError",
    "RegistrationError",
    "RenderError",
    "ReservedToolNameError",
    "RunningLoopError",
    "ScopeAlreadyBoundError",
    "ScopeCycleError",
    "ScopeError",
    "ThreadsExhaustedError",
    "TrustStoreError",
    "UnknownEntryError",
    "UnknownToolOrderError",
    "UnknownVariableError",
    "UnreadableTextError",
    "UnresolvedAnnotationError",
    "UntrustedFileError",
    "ValuelessVariableError",
    "WrongThreadError",
    "YamlError",
    "did_you_mean",
]

_LONGEST_GUESSED_NAME = 64  # longer names get no suggestion: comparing them costs more than it helps
_MOST_NAMES_LISTED = 20
_LONGEST_NAME_SHOWN = 80


@dataclass(frozen=True, slots=True)
class EntryRef:
    """Which contribution is meant: enough to find it, and nothing that cannot be pickled."""

    kind: str  # "section", "context", "variable", "tool provider", "listener", …
    name: str
    owner: str  # the plugin that registered it
    scope: str | None = None  # the name of its scope; None for the global layer
    source: str | None = None  # "file:line" of its text or of the call that registered it

    def __str__(self) -> str:
        place = "" if self.scope is None else f" in scope {shown(self.scope)}"
        source = "" if self.source is None else f" ({self.source})"
        return f'{self.kind} "{shown(self.name)}" of {shown(self.owner)}{place}{source}'


def with_article(noun: str) -> str:
    """The noun with its indefinite article."""
    return f"an {noun}" if noun[:1].lower() in "aeiou" else f"a {noun}"


def shown(name: str) -> str:
    """A name as messages show it: on one line, what cannot be printed escaped, and cut where it is long."""
    cut = name if len(name) <= _LONGEST_NAME_SHOWN else f"{name[:_LONGEST_NAME_SHOWN]}…"
    if cut.isprintable():
        return cut
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in cut)


def did_you_mean(name: str, known: Iterable[str], what: str = "names") -> str:
    """The nearest of the known names, then the known names themselves, as the end of a message."""
    names = sorted(known)
    if not names:
        return f"there are no known {what}"
    listed = ", ".join(shown(each) for each in names[:_MOST_NAMES_LISTED])
    more = f" and {len(names) - _MOST_NAMES_LISTED} more" if len(names) > _MOST_NAMES_LISTED else ""
    guess = ""
    if len(name) <= _LONGEST_GUESSED_NAME:
        from difflib import get_close_matches  # only messages need it

        short = [each for each in names if len(each) <= _LONGEST_GUESSED_NAME]
        guess = "".join(f'did you mean "{match}"? ' for match in get_close_matches(name, short, n=1))
    return f"{guess}known {what}: {listed}{more}"


class ForewordError(Exception):
    """The base of all errors of this library."""

    kind: str = "error"

    def __init__(self, message: str, *given: object) -> None:
        super().__init__(message)
        self._given = given  # the subclass's own arguments: what a copy is made from

    def __reduce__(self) -> tuple[Any, ...]:
        notes: list[str] | None = getattr(self, "__notes__", None)
        return type(self), self._given, ({"__notes__": notes} if notes else None)


class NotJsonError(ForewordError, ValueError):
    """A value holds something that JSON, as `foreword.jsonvalue` defines it, cannot hold."""

    kind = "not_json"

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path or 'the value'} {reason}", path, reason)


# -- scopes and owners -------------------------------------------------------------------------------------------------


class ScopeError(ForewordError):
    """A scope key that cannot be bound as asked."""


class ScopeAlreadyBoundError(ScopeError, RuntimeError):
    """The key has a parent already; only the binding that gave it one may move it."""

    kind = "scope_already_bound"

    def __init__(self, key: str, parent: str | None) -> None:
        self.key, self.parent = key, parent
        under = "directly under the global layer" if parent is None else f"to {shown(parent)}"
        super().__init__(
            f"scope {shown(key)} is already bound {under}; to move it, use rebind() of the ParentBinding that bound it",
            key,
            parent,
        )


class ScopeCycleError(ScopeError, ValueError):
    """The parent is the key itself or stands below it."""

    kind = "scope_cycle"

    def __init__(self, key: str, parent: str) -> None:
        self.key, self.parent = key, parent
        super().__init__(
            f"scope {shown(key)} cannot stand below {shown(parent)}: that would form a cycle; "
            f"choose a parent that is not {shown(key)} or below it",
            key,
            parent,
        )


class InactiveContextError(ForewordError, RuntimeError):
    """Something is registered, replaced or assembled through an owner that has gone."""

    kind = "inactive_context"

    def __init__(self, what: str, hint: str = "make a new one") -> None:
        self.what, self.hint = what, hint
        super().__init__(f"{what} is closed; {hint}", what, hint)


# -- plugins, services, events -----------------------------------------------------------------------------------------


class PluginError(ForewordError):
    """A plugin that cannot be mounted, or that fails."""


class InvalidPluginError(PluginError, TypeError):
    """Something is mounted that is no plugin, or a plugin that breaks the rules of its kind."""

    kind = "invalid_plugin"

    def __init__(self, plugin: str, why: str) -> None:
        self.plugin, self.why = plugin, why
        super().__init__(f"plugin {shown(plugin)}: {why}", plugin, why)


class UnresolvedAnnotationError(PluginError, TypeError):
    """A plugin's parameter has no annotation, or one that cannot be resolved at run time."""

    kind = "unresolved_annotation"

    def __init__(self, plugin: str, parameter: str, why: str) -> None:
        self.plugin, self.parameter, self.why = plugin, parameter, why
        super().__init__(
            f"parameter {parameter} of plugin {shown(plugin)} {why}; annotate it with the type of a service (or of one "
            f"| None), with Context, or with the class of its config, imported where the plugin is defined",
            plugin,
            parameter,
            why,
        )


class InvalidPluginConfigError(PluginError, ValueError):
    """A plugin's config does not fit its class; all faults at once, without the values."""

    kind = "invalid_plugin_config"

    def __init__(self, plugin: str, faults: Sequence[ConfigFault]) -> None:
        self.plugin, self.faults = plugin, tuple(faults)
        told = "".join(f"\n  {fault.field or 'config'}: {fault.message}" for fault in self.faults)
        super().__init__(
            f"the config of plugin {shown(plugin)} has {_count(self.faults, 'fault')}:{told}", plugin, self.faults
        )


class PluginFailedError(PluginError, RuntimeError):
    """A plugin's set-up failed; all that it had registered was undone. ``__cause__`` is what it raised."""

    kind = "plugin_failed"

    def __init__(self, plugin: str, error: str, message: str, phase: str = "in set-up") -> None:
        self.plugin, self.error, self.message, self.phase = plugin, error, message, phase
        super().__init__(
            f"plugin {shown(plugin)} failed {phase} and was rolled back: {error}: {message}",
            plugin,
            error,
            message,
            phase,
        )


class PluginTimeoutError(PluginError, TimeoutError):
    """A plugin hangs in set-up or teardown."""

    kind = "plugin_timeout"

    def __init__(self, plugin: str, phase: str, seconds: float) -> None:
        self.plugin, self.phase, self.seconds = plugin, phase, seconds
        super().__init__(
            f"plugin {shown(plugin)} hangs in {phase}: it was cancelled after {seconds:g} s; "
            f"see what it awaits there, or allow it more time",
            plugin,
            phase,
            seconds,
        )


class PluginDeadlockError(PluginError, RuntimeError):
    """A plugin waits, in its own teardown or set-up, for one that waits for it."""

    kind = "plugin_deadlock"

    def __init__(self, waiting: str, target: str) -> None:
        self.waiting, self.target = waiting, target
        super().__init__(
            f"plugin {shown(waiting)} would wait for plugin {shown(target)}, which waits for it; "
            f"leave that to the kernel, which unloads dependents first",
            waiting,
            target,
        )


class MissingServiceError(ForewordError, LookupError):
    """Nobody provides a service, or its provider is not active."""

    kind = "missing_service"

    def __init__(self, service: str, plugin: str, provided: Sequence[str]) -> None:
        self.service, self.plugin, self.provided = service, plugin, tuple(provided)
        super().__init__(
            f"{shown(plugin)} requires the service {service}, which nobody provides now; mount its provider, or wait "
            f"for it by annotating a parameter of the plugin; provided now: {', '.join(self.provided) or 'nothing'}",
            service,
            plugin,
            self.provided,
        )


class DuplicateServiceError(ForewordError, ValueError):
    """A service of that type is provided already."""

    kind = "duplicate_service"

    def __init__(self, service: str, plugin: str, holder: str) -> None:
        self.service, self.plugin, self.holder = service, plugin, holder
        super().__init__(
            f"{shown(plugin)} cannot provide {service}: {shown(holder)} does already; unmount one of them",
            service,
            plugin,
            holder,
        )


class KernelOwnsError(ForewordError, TypeError):
    """A prompt under a kernel is asked for what only one that stands alone does: there, plugins own and undo."""

    kind = "kernel_owns"

    def __init__(self, call: str, instead: str) -> None:
        self.call, self.instead = call, instead
        super().__init__(
            f"{call} is for a prompt that stands alone; under a kernel every owner is a plugin: use {instead}",
            call,
            instead,
        )


class EventModeError(ForewordError, TypeError):
    """An event is dispatched or listened to in a way that its mode does not allow."""

    kind = "event_mode"

    def __init__(self, event: str, why: str) -> None:
        self.event, self.why = event, why
        super().__init__(f"event {event} {why}", event, why)


class WrongThreadError(ForewordError, RuntimeError):
    """Something that belongs to the kernel's thread is done in another one."""

    kind = "wrong_thread"

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(
            f"{what} belongs to the thread of the kernel's event loop; get there with anyio.from_thread.run_sync(call)",
            what,
        )


# -- registering -------------------------------------------------------------------------------------------------------


class RegistrationError(ForewordError):
    """A registration that was refused; nothing was changed."""


class EmptyNameError(RegistrationError, ValueError):
    """A name that is not a string, an empty one, or one with half of a surrogate pair."""

    kind = "empty_name"

    def __init__(self, entry_kind: str, owner: str, given: str) -> None:
        self.entry_kind, self.owner, self.given = entry_kind, owner, given
        custom = '; by custom it is "owner:name", as in "tool:bash"' if entry_kind in ("section", "context") else ""
        super().__init__(
            f"the name of {with_article(entry_kind)} of {owner} must be a non-empty string that UTF-8 can spell, "
            f"not {given}{custom}",
            entry_kind,
            owner,
            given,
        )


class NonFiniteOrderError(RegistrationError, ValueError):
    """An order that is no finite number."""

    kind = "non_finite_order"

    def __init__(self, entry: EntryRef, given: str) -> None:
        self.entry, self.given = entry, given
        super().__init__(f"the order of {entry} must be a finite int or float, got {given}", entry, given)


class DuplicateEntryError(RegistrationError, ValueError):
    """The name is taken in this layer; ``kind`` says for which: ``duplicate_section``, ``_context``, ``_variable``."""

    def __init__(self, entry: EntryRef, holder: EntryRef) -> None:
        self.entry, self.holder = entry, holder
        self.kind = f"duplicate_{entry.kind}"
        way_out = {
            "variable": "give it another name, or register it in a scope, where it shadows the outer one",
        }.get(entry.kind, 'name it "owner:name", or register it in a scope, where it shadows the outer one')
        super().__init__(f"{entry} is already registered in this layer, by {holder}; {way_out}", entry, holder)


class ProtectedSectionShadowError(RegistrationError, ValueError):
    """A section in a scope bears a name that a global protection reserves."""

    kind = "protected_section_shadow"

    def __init__(self, entry: EntryRef, protection: EntryRef) -> None:
        self.entry, self.protection = entry, protection
        super().__init__(
            f"{entry} would shadow a name that {protection} reserves for every scope; choose another name, "
            f"or have the name protected in the scopes that need it instead",
            entry,
            protection,
        )


class InvalidOptionError(RegistrationError, ValueError):
    """An option that does not fit its entry, or not its value."""

    kind = "invalid_option"

    def __init__(self, entry: EntryRef, option: str, why: str) -> None:
        self.entry, self.option, self.why = entry, option, why
        super().__init__(f"option {option} of {entry}: {why}", entry, option, why)


class InvalidVariableNameError(RegistrationError, ValueError):
    """A variable name that no reference could spell."""

    kind = "invalid_variable_name"

    def __init__(self, given: str, owner: str) -> None:
        self.given, self.owner = given, owner
        super().__init__(
            f'invalid prompt variable name "{shown(given)}" of {owner}: it must start with a lower-case letter and go '
            f"on with lower-case letters, digits or underscores ([a-z][a-z0-9_]*)",
            given,
            owner,
        )


class InvalidToolSchemaError(RegistrationError, ValueError):
    """A tool schema without a name, or whose parameters are no JSON object."""

    kind = "invalid_tool_schema"

    def __init__(self, tool: str | None, why: str) -> None:
        self.tool, self.why = tool, why
        super().__init__(why if tool is None else f'the schema of tool "{shown(tool)}": {why}', tool, why)


class ReservedToolNameError(RegistrationError, ValueError):
    """A tool bears the name that marks the unlisted tools in a ``tool_order``."""

    kind = "reserved_tool_name"

    def __init__(self, tool: str, owner: str) -> None:
        self.tool, self.owner = tool, owner
        super().__init__(
            f'{owner} provides a tool with the reserved tool name "{tool}"; it marks the unlisted tools in tool_order, '
            f"so rename the tool",
            tool,
            owner,
        )


class ProtectedOverrideError(RegistrationError, ValueError):
    """A deployment would override a section whose name is protected."""

    kind = "protected_override"

    def __init__(self, name: str, override: str, protection: EntryRef) -> None:
        self.name, self.override, self.protection = name, override, protection
        super().__init__(
            f'{override} would override section "{shown(name)}", which is protected by {protection}; '
            f"take out one of the two",
            name,
            override,
            protection,
        )


class EmptyProtectionError(RegistrationError, ValueError):
    """A protection that names nothing."""

    kind = "empty_protection"

    def __init__(self, owner: str) -> None:
        self.owner = owner
        super().__init__(
            f"a protection of {owner} needs at least one section or tool name: protect(sections=[…], tools=[…])",
            owner,
        )


class ProtectionConflictError(RegistrationError, ValueError):
    """A global protection names a section that stands in a scope."""

    kind = "protection_conflict"

    def __init__(self, name: str, owner: str, holders: Sequence[EntryRef]) -> None:
        self.name, self.owner, self.holders = name, owner, tuple(holders)
        super().__init__(
            f'{owner} cannot globally protect section "{shown(name)}": a scope already has one of that name, '
            f"{', '.join(str(each) for each in self.holders)}; remove that first, or protect it in that scope",
            name,
            owner,
            self.holders,
        )


class UnreadableTextError(RegistrationError, ValueError):
    """A text file that cannot be read as UTF-8."""

    kind = "unreadable_text"

    def __init__(self, entry: EntryRef, path: str, why: str) -> None:
        self.entry, self.path, self.why = entry, path, why
        super().__init__(
            f"the text of {entry} cannot be read from {path}: {why}; a relative path starts at the current folder",
            entry,
            path,
            why,
        )


class NotAStringError(RegistrationError, TypeError):
    """A text, value or name that is no string."""

    kind = "not_a_string"

    def __init__(self, what: str, given: str, way_out: str = "give a string") -> None:
        self.what, self.given, self.way_out = what, given, way_out
        it_is = given if given.startswith("not ") else f"not a string but {given}"
        super().__init__(f"{what} is {it_is}; {way_out}", what, given, way_out)


class PromptTooLargeError(RegistrationError, ValueError):
    """A text, a value or a whole prompt over its limit, in UTF-8 bytes."""

    kind = "prompt_too_large"

    def __init__(self, what: str, size: int, limit: int, largest: str = "") -> None:
        self.what, self.size, self.limit, self.largest = what, size, limit, largest
        most = f", the largest part being {largest}" if largest else ""
        super().__init__(
            f"{what} has {size:,} bytes in UTF-8, more than the limit of {limit:,}{most}; "
            f"shorten it or raise the limit in SystemPromptConfig(limits=PromptLimits(…))",
            what,
            size,
            limit,
            largest,
        )


# -- configuration -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ConfigFault:
    """One fault of a configuration."""

    kind: str
    field: str
    message: str


class InvalidConfigError(ForewordError, ValueError):
    """All faults of a configuration; ``kind`` is that of its faults when they agree, else ``invalid_config``."""

    def __init__(self, faults: Sequence[ConfigFault]) -> None:
        self.faults = tuple(faults)
        kinds = {fault.kind for fault in self.faults}
        self.kind = kinds.pop() if len(kinds) == 1 else "invalid_config"
        told = "".join(f"\n  {fault.field}: {fault.message}" for fault in self.faults)
        super().__init__(f"the configuration has {_count(self.faults, 'fault')}:{told}", self.faults)


# -- files that people write -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a file, and where it stands."""

    file: str  # as it was named
    line: int | None  # from 1; None where the syntax gives no lines, or the fault is about the whole file
    path: str  # inside the file, as in ``plugins[1].use``; empty for the whole
    message: str
    column: int | None = None  # from 1

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line is not None else self.file
        if not self.path and self.line is not None and self.column is not None:
            place += f":{self.column}"
        return f"{place}: {self.path}: {self.message}" if self.path else f"{place}: {self.message}"


class YamlError(ForewordError, ValueError):
    """All faults of a YAML text that could be found; after a fault of the syntax nothing more can be."""

    kind = "yaml_fault"

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(_listed("the YAML", self.faults), self.faults)


class DeploymentError(ForewordError, ValueError):
    """All faults of a deployment at once, in the order of its file."""

    kind = "invalid_deployment"

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(_listed("the deployment", self.faults), self.faults)


class UntrustedFileError(ForewordError, PermissionError):
    """A deployment file that was found, not named, and that nobody trusted as it stands."""

    kind = "untrusted_file"

    def __init__(self, file: str, why: str) -> None:
        self.file, self.why = file, why
        super().__init__(
            f"{file} {why}, so nothing of it is run; read it, then name it in the command, or trust it: "
            f"foreword trust {file}",
            file,
            why,
        )


class TrustStoreError(ForewordError, RuntimeError):
    """The list of trusted files cannot be found, read or written."""

    kind = "trust_store"

    def __init__(self, store: str, why: str) -> None:
        self.store, self.why = store, why
        super().__init__(f"the list of trusted files, {store}, {why}", store, why)


# -- assembling --------------------------------------------------------------------------------------------------------


class AssemblyError(ForewordError):
    """An assembly that cannot be made; the registry is as it was."""


class MultipleCompleteSectionsError(AssemblyError, ValueError):
    """More than one complete section is in force."""

    kind = "multiple_complete_sections"

    def __init__(self, sections: Sequence[EntryRef]) -> None:
        self.sections = tuple(sections)
        super().__init__(
            f"multiple complete prompt sections are in force: {'; '.join(str(each) for each in self.sections)}; "
            f"only one can be the whole prompt: remove the others or give them conditions (when=…)",
            self.sections,
        )


class UnknownToolOrderError(AssemblyError, ValueError):
    """Names in ``tool_order`` that no tool provider knows; all of them at once."""

    kind = "tool_order_unknown"

    def __init__(self, unknown: Sequence[str], known: Sequence[str]) -> None:
        self.unknown, self.known = tuple(unknown), tuple(known)
        listed = ", ".join(f'"{shown(name)}"' for name in self.unknown)
        super().__init__(
            f"tool_order lists unregistered tools: {listed}; {did_you_mean(self.unknown[0], self.known, 'tools')}",
            self.unknown,
            self.known,
        )


@dataclass(frozen=True, slots=True)
class ProviderFailure:
    """One provider that failed in an assembly."""

    entry: EntryRef
    kind: str  # "provider_failed", "timeout", or the kind of our own error that refused its answer
    error: str  # the type of what it raised
    message: str
    may_skip: bool = True  # whether ``on_error`` could excuse it; not for protected and complete sections

    def __str__(self) -> str:
        return (
            f"{self.entry}: {self.message}"
            if self.kind != "provider_failed"
            else (f"{self.entry} raised {self.error}: {self.message}")
        )


class ProviderFailedError(AssemblyError, RuntimeError):
    """All providers that failed in one assembly: variables, then tools, sections, contexts, each in its own order.

    ``__cause__`` is what the provider raised, or an ``ExceptionGroup`` of it when several failed.
    """

    kind = "provider_failed"

    def __init__(self, failures: Sequence[ProviderFailure]) -> None:
        self.failures = tuple(failures)
        told = "".join(f"\n  {failure}" for failure in self.failures)
        it = "it" if len(self.failures) == 1 else "them"
        skip = f', or let the prompt do without {it}: on_error="skip"' if any(e.may_skip for e in self.failures) else ""
        what = _count(self.failures, "provider")
        super().__init__(f"{what} of the prompt failed:{told}\nmend {it}{skip}", self.failures)


class ProviderTimeoutError(AssemblyError, TimeoutError):
    """A provider did not answer within its ``timeout``."""

    kind = "timeout"

    def __init__(self, timeout: float, how: str) -> None:
        self.timeout, self.how = timeout, how
        super().__init__(f"no answer within its timeout of {timeout:g} s: {how}", timeout, how)


class ThreadsExhaustedError(AssemblyError, RuntimeError):
    """All threads for sync providers are stuck."""

    kind = "threads_exhausted"

    def __init__(self, stuck: Sequence[EntryRef]) -> None:
        self.stuck = tuple(stuck)
        super().__init__(
            f"all {len(self.stuck)} threads for sync providers are stuck, in {'; '.join(map(str, self.stuck))}; "
            f"mend those providers, or make them async",
            self.stuck,
        )


class MissingContextValueError(AssemblyError, KeyError):
    """A provider reads a value that the assembly's context was not given."""

    kind = "missing_context_value"

    def __init__(self, key: str, given: Sequence[str]) -> None:
        self.key, self.given = key, tuple(given)
        super().__init__(
            f'the context has no value for the key "{shown(key)}"; pass AssembleContext({{KEY: value}}), '
            f"or read it with context.get(KEY, default); keys with values: {', '.join(self.given) or 'none'}",
            key,
            self.given,
        )

    def __str__(self) -> str:  # KeyError would show the repr
        return str(self.args[0])


class ListenerError(AssemblyError, RuntimeError):
    """A listener of the assembly raised, answered wrongly, or called on more than once or too late."""

    kind = "listener_error"

    def __init__(self, listener: EntryRef, why: str) -> None:
        self.listener, self.why = listener, why
        super().__init__(f"{listener} {why}", listener, why)


class RunningLoopError(AssemblyError, RuntimeError):
    """A sync door that needs an event loop was called inside a running one."""

    kind = "running_loop"

    def __init__(self, call: str, instead: str, library: str, why: EntryRef) -> None:
        self.call, self.instead, self.library, self.why = call, instead, library, why
        super().__init__(
            f"{call}() would have to start an event loop for {why}, but one of {library} is running here; "
            f"call `{instead}` instead",
            call,
            instead,
            library,
            why,
        )


class AssemblyCancelledError(AssemblyError, RuntimeError):
    """The context's ``signal`` was cancelled before the assembly was made."""

    kind = "cancelled"

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"the assembly was cancelled ({reason}) and nothing was rendered; give the next context a new CancelToken",
            reason,
        )


class UnknownEntryError(AssemblyError, LookupError):
    """A listener asks an assembly for an entry that is not in it."""

    kind = "unknown_entry"

    def __init__(self, entry_kind: str, name: str, known: Sequence[str]) -> None:
        self.entry_kind, self.name, self.known = entry_kind, name, tuple(known)
        super().__init__(
            f'there is no {entry_kind} "{shown(name)}" in this assembly; {did_you_mean(name, known, entry_kind + "s")}',
            entry_kind,
            name,
            self.known,
        )


# -- rendering ---------------------------------------------------------------------------------------------------------


class RenderError(ForewordError, ValueError):
    """A text that cannot be rendered; ``place`` says where, with a caret under it."""

    def __init__(self, what: str, place: Place, way_out: str, *given: object) -> None:
        self.place = place
        super().__init__(f"{what} in {place.entry}, {place}\n{place.excerpt}\n{way_out}", *given)

    @property
    def entry(self) -> EntryRef:
        """The section or context whose text it is."""
        return self.place.entry

    @property
    def line(self) -> int:
        """The line of the fault in the entry's text, from 1."""
        return self.place.line

    @property
    def column(self) -> int:
        """The column of the fault in its line, from 1, in code points."""
        return self.place.column


@dataclass(frozen=True, slots=True)
class Place:
    """Where in an entry's text a fault stands."""

    entry: EntryRef
    line: int
    column: int
    excerpt: str  # the line, cut to 120 characters, and a caret line under it

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}:"


class MalformedReferenceError(RenderError):
    """Double braces that are no reference: ``{{ name }}``, ``{{a.b}}``, ``{{{a}}}``."""

    kind = "malformed_reference"

    def __init__(self, reference: str, place: Place, way_out: str) -> None:
        self.reference, self.way_out = reference, way_out
        super().__init__(f"malformed prompt variable reference {reference}", place, way_out, reference, place, way_out)


class UnknownVariableError(RenderError):
    """A reference to a variable that this assembly does not have."""

    kind = "unknown_variable"

    def __init__(self, name: str, place: Place, known: Sequence[str]) -> None:
        self.name, self.known = name, tuple(known)
        super().__init__(
            f'unknown prompt variable "{{{{{shown(name)}}}}}"',
            place,
            did_you_mean(name, known, "variables"),
            name,
            place,
            self.known,
        )


class ValuelessVariableError(RenderError):
    """A reference to a variable that has no value in this assembly."""

    kind = "valueless_variable"

    def __init__(self, name: str, place: Place) -> None:
        self.name = name
        super().__init__(
            f'prompt variable "{{{{{shown(name)}}}}}" has no value for this assembly, but is used',
            place,
            "let its provider return a string (an empty one counts), or give the section a condition (when=…)",
            name,
            place,
        )


class LoneSurrogateError(RenderError):
    """A text or value holds half of a surrogate pair, which no provider accepts and UTF-8 cannot spell."""

    kind = "lone_surrogate"

    def __init__(self, code_point: str, place: Place, variable: str | None = None) -> None:
        self.code_point, self.variable = code_point, variable
        where = "" if variable is None else f' in the value of "{{{{{variable}}}}}"'
        super().__init__(
            f"lone surrogate {code_point}{where}",
            place,
            'repair the text where it is read, as in text.encode("utf-16", "surrogatepass").decode("utf-16")',
            code_point,
            place,
            variable,
        )


def _listed(what: str, faults: Sequence[Fault]) -> str:
    return f"{what} has {_count(faults, 'fault')}:" + "".join(f"\n  {fault}" for fault in faults)


def _count(things: Sequence[object], noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"
