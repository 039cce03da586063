"""The tree of errors. Every one names its culprit and the way out, carries its objects, and survives pickling.

    ForewordError                         .kind tells errors apart by a stable word
    ├── NotJsonError                      a value that JSON cannot hold
    ├── ScopeError                        scopes: bound twice, a cycle
    ├── InactiveContextError              something is used after its owner has gone
    ├── PluginError                       a plugin that cannot be mounted, fails, hangs or waits for itself
    ├── MissingServiceError, DuplicateServiceError, EventModeError, WrongThreadError, KernelOwnsError
    ├── RegistrationError                 a registration that is refused; nothing was changed
    ├── InvalidConfigError                all faults of a configuration at once
    ├── YamlError, DeploymentError        all faults of a file at once, each with its place
    ├── UntrustedFileError, TrustStoreError
    ├── SessionError                      a session that cannot be had, written or read; an address; a damaged log
    ├── StoreError                        a store of sessions that cannot be opened, read or written
    ├── MissingExtraError                 an extra of this library that is not installed
    ├── RecorderError                     a recorder that cannot be attached, missed what it must not, or did not see
    ├── ModelError                        models: a provider that nobody serves, a bad setting or tool name
    │   └── ModelFailedError              a request that was sent and failed; carries the failure's facts
    ├── AgentError                        agents: busy, without a model, in circles, misled by a listener
    ├── ExplainError                      a question about a prompt that has no answer
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
    "AgentBusyError",
    "AgentError",
    "ApiKeyError",
    "AssemblyCancelledError",
    "AssemblyError",
    "BodyNotRecordedError",
    "ConfigFault",
    "ContentNotStoredError",
    "DamagedLogError",
    "DeploymentError",
    "DiffMismatchError",
    "DuplicateAdapterError",
    "DuplicateEntryError",
    "DuplicateServiceError",
    "EmptyNameError",
    "EmptyProtectionError",
    "EntryRef",
    "ErasedContentError",
    "ErasureBlockedError",
    "ErasureConflictError",
    "EventModeError",
    "EventRefusedError",
    "ExplainError",
    "Fault",
    "FlushFailedError",
    "ForewordError",
    "ForgedSnapshotError",
    "HeaderDriftError",
    "InactiveContextError",
    "InvalidAddressError",
    "InvalidConfigError",
    "InvalidMaskError",
    "InvalidModelError",
    "InvalidModelSettingError",
    "InvalidOptionError",
    "InvalidPluginConfigError",
    "InvalidPluginError",
    "InvalidSectionFilesError",
    "InvalidSessionIdError",
    "InvalidToolNameError",
    "InvalidToolSchemaError",
    "InvalidVariableNameError",
    "KernelOwnsError",
    "ListenerError",
    "LoneSurrogateError",
    "MalformedReferenceError",
    "MiscountedTokensError",
    "MisplacedInstructionsError",
    "MissingContextValueError",
    "MissingExtraError",
    "MissingServiceError",
    "ModelError",
    "ModelFailedError",
    "MultipleCompleteSectionsError",
    "NewerLogError",
    "NoModelError",
    "NonFiniteOrderError",
    "NotAStringError",
    "NotJsonError",
    "NothingToRecordError",
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
    "RecorderError",
    "RecordingFailedError",
    "RegistrationError",
    "RenderError",
    "RequestMismatchError",
    "ReservedToolNameError",
    "RunningLoopError",
    "ScopeAlreadyBoundError",
    "ScopeCycleError",
    "ScopeError",
    "ScriptEndedError",
    "SessionBusyError",
    "SessionConflictError",
    "SessionError",
    "SessionExistsError",
    "SessionFencedError",
    "SessionInUseError",
    "StepLimitError",
    "StoreError",
    "StoreForkedError",
    "StoreVersionError",
    "TextNotFoundError",
    "ThreadsExhaustedError",
    "ToolNameCollisionError",
    "TrustStoreError",
    "UnknownAddressError",
    "UnknownCacheProfileError",
    "UnknownEntryError",
    "UnknownProviderError",
    "UnknownSessionError",
    "UnknownTokenizerError",
    "UnknownToolError",
    "UnknownToolOrderError",
    "UnknownVariableError",
    "UnreadableTextError",
    "UnresolvedAnnotationError",
    "UntrustedFileError",
    "ValuelessVariableError",
    "WrongAnswerError",
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
    return on_one_line(name if len(name) <= _LONGEST_NAME_SHOWN else f"{name[:_LONGEST_NAME_SHOWN]}…")


def on_one_line(text: str) -> str:
    """A text of one line, what cannot be printed escaped; paths are shown so, since a cut one leads nowhere."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def message_of(error: BaseException) -> str:
    """What somebody else's error says, as text that can be written down; empty if it cannot say it."""
    try:
        message = "".join((str(error),))  # what `__str__` gives may be of a subclass, with code of its own
    except Exception:  # somebody else's `__str__`: its type, then, is all that can be told
        return ""
    return message if message.isascii() else message.encode("utf-8", "backslashreplace").decode()


def words_of(error: BaseException) -> str:
    """Its type, and what it says."""
    message = message_of(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


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
    """A plugin failed; all that it had registered was undone. ``__cause__`` is what it raised.

    Attributes:
        phase: when: ``in set-up``, or ``after set-up``, as by a task that it had started.
    """

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

    def __init__(
        self,
        service: str,
        plugin: str,
        provided: Sequence[str],
        way_out: str = "mount its provider, or wait for it by annotating a parameter of the plugin",
    ) -> None:
        self.service, self.plugin, self.provided, self.way_out = service, plugin, tuple(provided), way_out
        super().__init__(
            f"{shown(plugin)} requires the service {service}, which nobody provides now; {way_out}; "
            f"provided now: {', '.join(self.provided) or 'nothing'}",
            service,
            plugin,
            self.provided,
            way_out,
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
    """An event is dispatched or listened to in a way that its mode does not allow, or is no declared one."""

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

    def __init__(self, entry_kind: str, owner: str | None, given: str) -> None:
        self.entry_kind, self.owner, self.given = entry_kind, owner, given
        whose = "" if owner is None else f" of {owner}"  # a scope's key is made by nobody in particular
        custom = '; by custom it is "owner:name", as in "tool:bash"' if entry_kind in ("section", "context") else ""
        super().__init__(
            f"the name of {with_article(entry_kind)}{whose} must be a non-empty string that UTF-8 can spell, "
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
    """The name is taken in this layer; ``kind`` says of what: ``duplicate_section``, ``duplicate_tool`` and so on."""

    def __init__(self, entry: EntryRef, holder: EntryRef) -> None:
        self.entry, self.holder = entry, holder
        self.kind = f"duplicate_{entry.kind}"
        way_out = {
            "variable": "give it another name, or register it in a scope, where it shadows the outer one",
            "tool": "give it another name, or register it in a scope, where it shadows the outer one",
            "override": "there is one for each name: say in one of them all that is to be changed",
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


class InvalidMaskError(RegistrationError, ValueError):
    """A mask of tools that masks nothing (``empty_mask``), or that stands in no scope (``unscoped_mask``)."""

    def __init__(self, kind: str, owner: str | None, why: str) -> None:
        self.kind, self.owner, self.why = kind, owner, why
        super().__init__(f"a tool mask{'' if owner is None else f' of {owner}'} {why}", kind, owner, why)


class UnknownToolError(RegistrationError, LookupError):
    """A mask names tools that its scope does not inherit; all of them at once."""

    kind = "unknown_tool"

    def __init__(self, owner: str, unknown: Sequence[str], known: Sequence[str]) -> None:
        self.owner, self.unknown, self.known = owner, tuple(unknown), tuple(known)
        listed = ", ".join(f'"{shown(name)}"' for name in self.unknown)
        what = "a tool" if len(self.unknown) == 1 else "tools"
        super().__init__(
            f"a tool mask of {owner} names {what} that its scope does not inherit: {listed}; "
            f"{did_you_mean(self.unknown[0], self.known, 'tools')}",
            owner,
            self.unknown,
            self.known,
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


class InvalidSectionFilesError(RegistrationError, ValueError):
    """All faults of a folder of section files, none of which was registered; ``kind`` is theirs when they agree."""

    kind = "invalid_section_files"

    def __init__(self, owner: str, faults: Sequence[Fault], kind: str = kind) -> None:
        self.owner, self.faults, self.kind = owner, tuple(faults), kind
        told = "".join(f"\n  {fault}" for fault in self.faults)
        what = f"the section files of {owner} have {_count(self.faults, 'fault')}, and none was registered"
        super().__init__(f"{what}:{told}", owner, self.faults, kind)


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


# -- models ------------------------------------------------------------------------------------------------------------


class MissingExtraError(ForewordError, ImportError):
    """Something needs an extra of this library that is not installed."""

    kind = "missing_extra"

    def __init__(self, what: str, extra: str, package: str) -> None:
        self.what, self.extra, self.package = what, extra, package
        super().__init__(
            f'{what} needs the package {package}, which is not installed; pip install "foreword[{extra}]"',
            what,
            extra,
            package,
        )


class RecorderError(ForewordError):
    """A recorder cannot do what it is there for."""


class NothingToRecordError(RecorderError, TypeError):
    """A recorder was to be attached to something whose requests it cannot see."""

    kind = "nothing_to_record"

    def __init__(self, client: str) -> None:
        self.client = client  # the type of what was given
        super().__init__(
            f"{client} shows no HTTP client with event hooks; make one (httpx2.AsyncClient()), attach the recorder to "
            f"it, and hand it to the SDK as http_client=",
            client,
        )


class BodyNotRecordedError(RecorderError, LookupError):
    """The bytes of a request are asked for, and the log cannot give them; all that they said it can."""

    kind = "body_not_recorded"

    def __init__(self, session: str, request: str, why: str) -> None:
        self.session, self.request, self.why = session, request, why  # the request by its address
        super().__init__(
            f"the bytes of {shown(request)} are not in the log: {why}; what they said is: rebuild the request without "
            f"its body (foreword log rebuild without --body, foreword.session.rebuild)",
            session,
            request,
            why,
        )


class RecordingFailedError(RecorderError, RuntimeError):
    """A request could not be logged, and was to be sent only if it was; it was not sent. The cause says why."""

    kind = "recording_failed"

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(
            f"the request was not sent, since it could not be recorded: {why}; mend that, or give the recorder "
            f'on_error="warn" to have requests sent all the same',
            why,
        )


class ModelError(ForewordError):
    """A model that cannot be asked, or a request to one that failed."""


class InvalidModelError(ModelError, ValueError):
    """A model's name that is not "provider:model"."""

    kind = "invalid_model"

    def __init__(self, given: str) -> None:
        self.given = given
        super().__init__(
            f'"{shown(given)}" names no model; write provider:model, both without blanks around, '
            f'as in "openai:gpt-5" or "deepseek:deepseek-chat"',
            given,
        )


class UnknownProviderError(ModelError, LookupError):
    """No adapter is registered for a model's provider."""

    kind = "unknown_provider"

    def __init__(self, provider: str, known: Sequence[str]) -> None:
        self.provider, self.known = provider, tuple(known)
        super().__init__(
            f'no model adapter is registered for the provider "{shown(provider)}"; '
            f"{did_you_mean(provider, known, 'providers')}; register one: adapters.register(adapter)",
            provider,
            self.known,
        )


class DuplicateAdapterError(ModelError, ValueError):
    """A provider has an adapter already."""

    kind = "duplicate_adapter"

    def __init__(self, adapter: EntryRef, holder: EntryRef) -> None:
        self.adapter, self.holder = adapter, holder
        super().__init__(
            f"{adapter} cannot be registered: the provider has {holder} already; close that registration first, or "
            f"give the new adapter another name and use that as the provider",
            adapter,
            holder,
        )


class InvalidModelSettingError(ModelError, ValueError):
    """A setting of a model that the wire cannot carry, or that the provider is known to refuse."""

    kind = "invalid_model_setting"

    def __init__(self, model: str, setting: str, why: str) -> None:
        self.model, self.setting, self.why = model, setting, why
        super().__init__(f"setting {shown(setting)} of model {shown(model)} {why}", model, setting, why)


class InvalidToolNameError(ModelError, ValueError):
    """A tool's name breaks the provider's rules, so every request with it would be refused."""

    kind = "invalid_tool_name"

    def __init__(self, tool: EntryRef, provider: str, rule: str) -> None:
        self.tool, self.provider, self.rule = tool, provider, rule
        super().__init__(
            f"{tool} has a name that {shown(provider)} refuses: there {rule}; rename the tool",
            tool,
            provider,
            rule,
        )


class ToolNameCollisionError(ModelError, ValueError):
    """Two tools of one request bear the same name on the wire, so a call could not be told from the other's."""

    kind = "tool_name_collision"

    def __init__(self, name: str, first: EntryRef, second: EntryRef) -> None:
        self.name, self.first, self.second = name, first, second
        super().__init__(
            f'two tools would both be "{shown(name)}" on the wire: {first} and {second}; rename one, or hide it',
            name,
            first,
            second,
        )


class MisplacedInstructionsError(ModelError, ValueError):
    """A history holds a system or developer message, beside the prompt that is the only one."""

    kind = "misplaced_instructions"

    def __init__(self, index: int, role: str) -> None:
        self.index, self.role = index, role
        super().__init__(
            f"message {index} of the history has the role {role}, but the system text is the prompt's alone; register "
            f"that text as a section, and hand over the history without it",
            index,
            role,
        )


class ApiKeyError(ModelError, ValueError):
    """There is no key to ask a provider with, or none that can be sent. Never shows the key."""

    kind = "api_key"

    def __init__(self, provider: str, why: str) -> None:
        self.provider, self.why = provider, why
        super().__init__(f"the API key for {shown(provider)} {why}", provider, why)


class ScriptEndedError(ModelError, AssertionError):
    """A scripted model is asked more often than its script has steps."""

    kind = "script_ended"

    def __init__(self, name: str, steps: int) -> None:
        self.name, self.steps = name, steps
        super().__init__(
            f'the scripted model "{shown(name)}" is asked for answer {steps + 1}, but its script has {steps}; add a '
            f"step, or look why it is asked again (its requests are in .requests)",
            name,
            steps,
        )


class ModelFailedError(ModelError, RuntimeError):
    """A request was sent, failed, and nobody asked for another attempt."""

    kind = "model_failed"

    def __init__(
        self,
        model: str,
        message: str,
        code: str,
        status: int | None = None,
        transient: bool = False,
        retry_after: float | None = None,
    ) -> None:
        self.model, self.message, self.code = model, message, code
        self.status, self.transient, self.retry_after = status, transient, retry_after
        answered = "" if status is None else f", HTTP {status}"
        again = "; the same request may succeed later" if transient else ""
        super().__init__(
            f"the request to {shown(model)} failed ({code}{answered}): {message}{again}",
            model,
            message,
            code,
            status,
            transient,
            retry_after,
        )


# -- sessions and their stores -----------------------------------------------------------------------------------------


class SessionError(ForewordError):
    """A session that cannot be had, or not be written."""


class InvalidSessionIdError(SessionError, ValueError):
    """No session could bear this id."""

    kind = "invalid_session_id"

    def __init__(self, given: str) -> None:
        self.given = given
        super().__init__(
            f'"{shown(given)}" is no id for a session: an id has at most 128 letters, digits, hyphens and underscores '
            f'of ASCII, begins with a letter or a digit, and is not "last", which stands for the newest',
            given,
        )


class UnknownSessionError(SessionError, LookupError):
    """The store has no session of this id."""

    kind = "unknown_session"

    def __init__(self, session: str, store: str) -> None:
        self.session, self.store = session, store
        super().__init__(
            f'there is no session "{shown(session)}" in {on_one_line(store)}; look what is there, or begin a new one',
            session,
            store,
        )


class SessionExistsError(SessionError, ValueError):
    """A session was to be begun under an id that the store has already."""

    kind = "session_exists"

    def __init__(self, session: str, store: str) -> None:
        self.session, self.store = session, store
        super().__init__(
            f'there is a session "{shown(session)}" in {on_one_line(store)} already; resume it, or begin one with '
            f"another id",
            session,
            store,
        )


class SessionBusyError(SessionError, RuntimeError):
    """Somebody else may write the session now."""

    kind = "session_busy"

    def __init__(self, session: str, pid: int | None) -> None:
        self.session, self.pid = session, pid  # the pid is None where it cannot be known
        holder = "another process" if pid is None else f"process {pid}"
        super().__init__(
            f'session "{shown(session)}" is being written by {holder}; wait until it is closed there, read it, '
            f"or fork it; if it hangs there, take it over",
            session,
            pid,
        )


class SessionFencedError(SessionError, RuntimeError):
    """The session was taken over; who wrote it before may do so no more. Nothing was written."""

    kind = "session_fenced"

    def __init__(self, session: str, epoch: int, now: int) -> None:
        self.session, self.epoch, self.now = session, epoch, now
        super().__init__(
            f'session "{shown(session)}" has been taken over: it is in epoch {now}, and this writer claimed it in '
            f"epoch {epoch}; what it holds and has not written is not in the log; resume the session to go on",
            session,
            epoch,
            now,
        )


class SessionConflictError(SessionError, RuntimeError):
    """The session is not as a batch of events expects it. Nothing was written."""

    kind = "session_conflict"

    def __init__(self, session: str, expected: int, expected_head: str, found: int, found_head: str) -> None:
        self.session, self.expected, self.expected_head = session, expected, expected_head
        self.found, self.found_head = found, found_head
        super().__init__(
            f'session "{shown(session)}" has {found} events and the head {found_head[:12]}…, where its writer expects '
            f"{expected} and {expected_head[:12]}…; somebody else wrote it, or the same batch was written twice; "
            f"resume the session to go on from what is there",
            session,
            expected,
            expected_head,
            found,
            found_head,
        )


class EventRefusedError(SessionError, ValueError):
    """An event that does not fit where a session is, or that could not be read again. Nothing was logged."""

    kind = "event_refused"

    def __init__(self, session: str, event: str, why: str) -> None:
        self.session, self.event, self.why = session, event, why
        super().__init__(f'session "{shown(session)}" refuses {event}: {why}', session, event, why)


class FlushFailedError(SessionError, RuntimeError):
    """Events could not be made durable. They are kept; ``__cause__`` says what the store met with."""

    kind = "flush_failed"

    def __init__(self, session: str, first: int, count: int, why: str) -> None:
        self.session, self.first, self.count, self.why = session, first, count, why
        what = f"event {first} is" if count == 1 else f"events {first} to {first + count - 1} are"
        super().__init__(
            f'{what} not known to be durable in session "{shown(session)}": {why}; nothing is lost while the session '
            f"lives: flush it again, which first looks how much the store holds",
            session,
            first,
            count,
            why,
        )


class InvalidAddressError(SessionError, ValueError):
    """A text that is no address of a request."""

    kind = "invalid_address"

    def __init__(self, address: str, why: str) -> None:
        self.address, self.why = address, why
        super().__init__(
            f'"{shown(address)}" is no address: {why}; write SESSION, SESSION@STEP or SESSION@TURN.STEP, and /ATTEMPT '
            f"behind it if it is not the last, as in last, 7f3a@12 or 7f3a@3.1/2",
            address,
            why,
        )


class UnknownAddressError(SessionError, LookupError):
    """An address of something that is not in the log, or that does not say which of several is meant."""

    kind = "unknown_address"

    def __init__(self, address: str, why: str) -> None:
        self.address, self.why = address, why
        super().__init__(f'"{shown(address)}" leads nowhere: {why}', address, why)


class DamagedLogError(SessionError, RuntimeError):
    """What a store gives back is not what was logged. It names the first event or blob that is wrong."""

    kind = "damaged_log"

    def __init__(self, session: str, seq: int | None, why: str, blob: str | None = None) -> None:
        self.session, self.seq, self.why, self.blob = session, seq, why, blob
        where = "" if seq is None else f" at event {seq}"
        which = "" if blob is None else f", blob {blob[:12]}…"
        super().__init__(
            f'session "{shown(session)}" is damaged{where}{which}: {why}; restore it from a backup, or fork it at a '
            f"turn before",
            session,
            seq,
            why,
            blob,
        )


class NewerLogError(SessionError, RuntimeError):
    """An event that only a newer version of this library knows how to read."""

    kind = "newer_log"

    def __init__(self, session: str, seq: int, what: str) -> None:
        self.session, self.seq, self.what = session, seq, what
        super().__init__(
            f'event {seq} of session "{shown(session)}" {what}; it was written by a newer Foreword: upgrade this one',
            session,
            seq,
            what,
        )


class ErasedContentError(SessionError, LookupError):
    """A content that was erased on purpose."""

    kind = "erased_content"

    def __init__(self, session: str, seq: int, blob: str) -> None:
        self.session, self.seq, self.blob = session, seq, blob
        super().__init__(
            f'a content of event {seq} of session "{shown(session)}" was erased (blob {blob[:12]}…); neither it nor a '
            f"request that held it can be had again",
            session,
            seq,
            blob,
        )


class HeaderDriftError(SessionError, RuntimeError):
    """What was assembled differs from what a resumed session has recorded, and that was to be an error."""

    kind = "header_drift"

    def __init__(self, session: str, parts: Sequence[str], differences: str) -> None:
        self.session, self.parts, self.differences = session, tuple(parts), differences
        super().__init__(
            f'session "{shown(session)}" was to go on with the request header that it has recorded, and today\'s '
            f'differs: {differences or ", ".join(self.parts)}; resume it with drift="fresh" to go on with today\'s, or '
            f'with drift="recorded" to go on with the recorded one',
            session,
            self.parts,
            differences,
        )


class ErasureBlockedError(SessionError, RuntimeError):
    """Sessions that hold what is to be erased are being written by others. Nothing was erased."""

    kind = "erasure_blocked"

    def __init__(self, holders: Sequence[tuple[str, int | None]]) -> None:
        self.holders = tuple(holders)  # session and pid, which is None where it cannot be known
        told = [
            f'"{shown(session)}" by {"another process" if pid is None else f"process {pid}"}'
            for session, pid in self.holders[:_MOST_NAMES_LISTED]
        ]
        more = len(self.holders) - len(told)
        super().__init__(
            f"nothing was erased: what is to go is held by sessions that are being written, {', '.join(told)}"
            f"{f' and {more} more' if more else ''}; close them, wait for that (wait=True, --wait), or erase it in "
            f"that process",
            self.holders,
        )


class ErasureConflictError(SessionError, RuntimeError):
    """While it was worked out what to erase, another session came to refer to it. Nothing was erased."""

    kind = "erasure_conflict"

    def __init__(self, sessions: Sequence[str], blob: str) -> None:
        self.sessions, self.blob = tuple(sessions), blob
        names = ", ".join(f'"{shown(each)}"' for each in self.sessions[:_MOST_NAMES_LISTED])
        super().__init__(
            f"nothing was erased: session {names} refers to blob {blob[:12]}… by now, which was not reckoned with; "
            f"work out anew what to erase",
            self.sessions,
            blob,
        )


class ContentNotStoredError(SessionError, LookupError):
    """A content that the log was not to hold: it was opened with ``content="masked"`` or ``"digests"``."""

    kind = "content_not_stored"

    def __init__(self, session: str, seq: int, blob: str) -> None:
        self.session, self.seq, self.blob = session, seq, blob
        super().__init__(
            f'a content of event {seq} of session "{shown(session)}" was never stored (blob {blob[:12]}…), since the '
            f"log was opened not to hold it; a request that held it cannot be had again",
            session,
            seq,
            blob,
        )


class RequestMismatchError(SessionError, AssertionError):
    """A request is not the one that the log holds."""

    kind = "request_mismatch"

    def __init__(self, session: str, where: str, why: str) -> None:
        self.session, self.where, self.why = session, where, why
        super().__init__(
            f'{where} of session "{shown(session)}" is not what the log holds: {why}; whatever a model can see must '
            f"come from the log",
            session,
            where,
            why,
        )


class StoreError(ForewordError, RuntimeError):
    """A store of sessions cannot be opened, read or written; ``kind`` says why."""

    def __init__(self, store: str, kind: str, why: str) -> None:
        self.store, self.kind, self.why = store, kind, why
        super().__init__(f"the session store {on_one_line(store)} {why}", store, kind, why)


class StoreVersionError(StoreError):
    """The store was written by another version of Foreword, and this one cannot use it as it is."""

    def __init__(self, store: str, found: int, known: int) -> None:
        self.found, self.known = found, known
        way_out = (
            "upgrade Foreword here"
            if found > known
            else "open it for writing once, as every agent does, and it is brought up to date"
        )
        super().__init__(store, "store_version", f"has format {found}, and this Foreword knows {known}; {way_out}")
        self._given = (store, found, known)


class StoreForkedError(StoreError):
    """The process is a fork of one that had the store open; SQLite's locks do not survive that."""

    def __init__(self, store: str, pid: int) -> None:
        self.pid = pid
        super().__init__(
            store,
            "store_forked",
            f"was open in process {pid} when this one was forked from it, and cannot be used here; close it before "
            f'forking, or start the process by "spawn"',
        )
        self._given = (store, pid)


# -- agents ------------------------------------------------------------------------------------------------------------


class AgentError(ForewordError):
    """Something that an agent cannot do."""


class AgentBusyError(AgentError, RuntimeError):
    """An agent is to begin a turn while one of its turns runs."""

    kind = "agent_busy"

    def __init__(self, agent: str, turn: int) -> None:
        self.agent, self.turn = agent, turn
        super().__init__(
            f"agent {shown(agent)} is in turn {turn}; await that turn, cancel it, or tell the agent something for its "
            f"next step: agent.inject(text)",
            agent,
            turn,
        )


class NoModelError(AgentError, ValueError):
    """Nobody says which model an agent is to ask."""

    kind = "no_model"

    def __init__(self, agent: str) -> None:
        self.agent = agent
        super().__init__(
            f'agent {shown(agent)} has no model to ask; make it with model="provider:model", select one '
            f"(install_model_selection), or have a listener of agent/request give one",
            agent,
        )


class StepLimitError(AgentError, RuntimeError):
    """A turn wants more steps than its agent may take."""

    kind = "step_limit"

    def __init__(self, agent: str, limit: int) -> None:
        self.agent, self.limit = agent, limit
        super().__init__(
            f"the turn of agent {shown(agent)} has taken {limit} steps and wants more, so it most likely goes round in "
            f"circles; see its tool calls in the log, or allow it more: max_steps=…",
            agent,
            limit,
        )


class WrongAnswerError(AgentError, TypeError):
    """A listener answers an event with something that is no answer to it."""

    kind = "wrong_answer"

    def __init__(self, event: str, expected: str, given: str) -> None:
        self.event, self.expected, self.given = event, expected, given
        super().__init__(
            f"a listener of {event} gave {given}; it must give {expected}, as `await call_next()` does",
            event,
            expected,
            given,
        )


class ForgedSnapshotError(AgentError, ValueError):
    """A listener has a message say that it is a runtime-context snapshot, and the loop did not write it."""

    kind = "forged_snapshot"

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(
            f"a listener of agent/pre-step gave a message that claims to be a runtime-context snapshot: "
            f'"{shown(text)}"; only the loop writes those: register a context, or give the message another source',
            text,
        )


class SessionInUseError(AgentError, RuntimeError):
    """A session is to be driven by two agents."""

    kind = "session_in_use"

    def __init__(self, session: str, agent: str) -> None:
        self.session, self.agent = session, agent
        super().__init__(
            f"session {shown(session)} is that of agent {shown(agent)}; use that agent, dispose it first, or fork the "
            f"session",
            session,
            agent,
        )


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
    """All threads for plain functions (of providers, or of tools) are stuck."""

    kind = "threads_exhausted"

    def __init__(self, stuck: Sequence[EntryRef]) -> None:
        self.stuck = tuple(stuck)
        super().__init__(
            f"all {len(self.stuck)} threads for plain functions are stuck, in {'; '.join(map(str, self.stuck))}; "
            f"mend those, or make them async",
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


# -- explaining --------------------------------------------------------------------------------------------------------


class ExplainError(ForewordError):
    """A question about a prompt that has no answer."""


class TextNotFoundError(ExplainError, LookupError):
    """A text or line that a prompt does not have."""

    kind = "text_not_found"

    def __init__(self, what: str, where: str, why: str) -> None:
        self.what, self.where, self.why = what, where, why
        super().__init__(f'{on_one_line(where)} does not hold "{shown(what)}": {why}', what, where, why)


class DiffMismatchError(ExplainError, ValueError):
    """A diff is applied to something else than what it was made of."""

    kind = "diff_mismatch"

    def __init__(self, what: str) -> None:
        self.what = what
        told = f"the diff does not fit: {shown(what)} is not as it was; apply it to what it was made of"
        super().__init__(told, what)


class UnknownTokenizerError(ExplainError, LookupError):
    """A tokenizer of a name that nobody knows."""

    kind = "unknown_tokenizer"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name, self.known = name, tuple(known)
        super().__init__(
            f'there is no tokenizer "{shown(name)}"; {did_you_mean(name, known, "tokenizers")}', name, self.known
        )


class MiscountedTokensError(ExplainError, ValueError):
    """A tokenizer whose tokens do not make up the text."""

    kind = "miscounted_tokens"

    def __init__(self, tokenizer: str, told: int, size: int) -> None:
        self.tokenizer, self.told, self.size = tokenizer, told, size
        super().__init__(
            f"the tokenizer {shown(tokenizer)} gives tokens of {told:,} bytes for a text of {size:,}; its sizes() must "
            f"give the sizes of all tokens in bytes of UTF-8",
            tokenizer,
            told,
            size,
        )


class UnknownCacheProfileError(ExplainError, LookupError):
    """A provider's cache of which there is no profile."""

    kind = "unknown_cache_profile"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name, self.known = name, tuple(known)
        super().__init__(
            f'there is no cache profile "{shown(name)}"; {did_you_mean(name, known, "profiles")}', name, self.known
        )


def _listed(what: str, faults: Sequence[Fault]) -> str:
    return f"{what} has {_count(faults, 'fault')}:" + "".join(f"\n  {fault}" for fault in faults)


def _count(things: Sequence[object], noun: str) -> str:
    return f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"
