"""What can be contributed: sections, contexts, variables, tool sources, protections, suppressors.

Each is a frozen value that knows its owner, its layer and its place among equals. What a provider is (a value, a
function, an async function) is found out here, once, when it is registered.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar, cast

from foreword.errors import EntryRef, InvalidToolSchemaError, NotJsonError, with_article
from foreword.jsonvalue import FrozenDict, freeze
from foreword.kernel.events import is_async_function
from foreword.prompt.assembly import AssembledContext, AssembledSection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foreword.jsonvalue import JsonValue
    from foreword.kernel.effects import Owner
    from foreword.prompt.context import AssembleContext
    from foreword.prompt.last_good import LastGood
    from foreword.prompt.origin import Origin

__all__ = [
    "DOMAIN_ORDER",
    "IDENTITY_ORDER",
    "PERSONA_ORDER",
    "PERSONA_SECTION",
    "TOOL_GUIDANCE_ORDER",
    "TOOL_ORDER_REST",
    "Placeholder",
    "ToolProviderResult",
    "ToolSchema",
]

T = TypeVar("T")

# The orders by custom (the seeds: identity −100, persona 0, tool guidance 100 to 199).
IDENTITY_ORDER: Final = -100
PERSONA_ORDER: Final = 0
DOMAIN_ORDER: Final = 20
TOOL_GUIDANCE_ORDER: Final = 100

IDENTITY_SECTION: Final = "harness:identity"
PERSONA_SECTION: Final = "deployment:persona"
"""The persona's slot: a section of this name in a scope takes the deployment's persona's place there."""

_MOST_ANSWERS_KEPT: Final = 64  # of one tool provider

TOOL_ORDER_REST: Final = "<unlisted-tools>"
"""Where a ``tool_order`` puts the tools that it does not list."""


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """All that a model sees of a tool.

    ``parameters`` is a JSON object (a JSON Schema); it is detached from what was handed over and cannot be changed in
    place, so no assembly can reach into another one.

    Raises:
        InvalidToolSchemaError: the parameters are no JSON object; names the path inside them.
    """

    name: str
    description: str
    parameters: Mapping[str, JsonValue]

    def __post_init__(self) -> None:
        if type(self.parameters) is FrozenDict:
            return
        if not isinstance(self.parameters, dict):
            raise InvalidToolSchemaError(
                str(self.name),
                f"parameters must be a JSON object (a dict), not {with_article(type(self.parameters).__name__)}",
            )
        try:
            detached = freeze(cast("dict[str, Any]", self.parameters))
        except NotJsonError as fault:
            why = f"parameters{fault.path} {fault.reason}"
            raise InvalidToolSchemaError(str(self.name), why) from fault
        object.__setattr__(self, "parameters", detached)


@dataclass(frozen=True, slots=True)
class ToolProviderResult:
    """What a tool provider answers.

    Attributes:
        schemas: the tools that are visible in the context's scope.
        known_names: the names it would show if nothing were hidden, which ``tool_order`` is checked against. None
            means the names of ``schemas``; an empty collection means that it knows none.
        origins: who brought the tools of these names, hidden ones too; whoever is not listed is the provider's own.
        hidden_by: what hides known names, for traces.
    """

    schemas: Iterable[ToolSchema]
    known_names: Iterable[str] | None = None
    origins: Mapping[str, Origin] = field(default_factory=dict[str, "Origin"])
    hidden_by: Mapping[str, EntryRef] = field(default_factory=dict[str, EntryRef])


@dataclass(frozen=True, slots=True)
class Placeholder:
    """As ``on_error``: the text to use, verbatim, when the provider fails."""

    text: str


OnError: TypeAlias = Literal["fail", "skip", "last_good"] | Placeholder
When: TypeAlias = "Callable[[AssembleContext], bool]"
TextProvider: TypeAlias = "Callable[[], str] | Callable[[AssembleContext], str] | Callable[[], Awaitable[str]] | Callable[[AssembleContext], Awaitable[str]]"  # noqa: E501
ValueProvider: TypeAlias = "Callable[[], str | None] | Callable[[AssembleContext], str | None] | Callable[[], Awaitable[str | None]] | Callable[[AssembleContext], Awaitable[str | None]]"  # noqa: E501
ToolsProvider: TypeAlias = "Callable[[], ToolProviderResult] | Callable[[AssembleContext], ToolProviderResult] | Callable[[], Awaitable[ToolProviderResult]] | Callable[[AssembleContext], Awaitable[ToolProviderResult]]"  # noqa: E501
Text: TypeAlias = "str | Path | TextProvider"
Value: TypeAlias = "str | ValueProvider | None"
Tools: TypeAlias = "ToolProviderResult | Iterable[ToolSchema] | ToolsProvider"


class Provider(Generic[T]):
    """A value, or the function that gives it; which of the two, and whether it is async, is known from the start."""

    __slots__ = ("call", "is_async", "required", "static", "takes_context")

    def __init__(self, static: T | None, call: Callable[..., Any] | None = None) -> None:
        self.static = static
        self.call = call
        self.is_async = call is not None and is_async_function(call)
        self.required = 0 if call is None else required_positional(call)
        self.takes_context = self.required > 0

    def ask(self, context: AssembleContext) -> Any:
        """Call the function (there must be one); what it gives is not checked yet, and is awaitable if async."""
        call = cast("Callable[..., Any]", self.call)
        return call(context) if self.takes_context else call()


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """What all contributions share. Entries compare by identity: a namesake is another entry."""

    name: str
    origin: Origin
    seq: int  # place in the registry's order of registration; a replaced entry hands it on
    provider: Provider[Any]
    when: When | None = None
    on_error: OnError = "fail"
    timeout: float | None = None  # seconds
    thread: bool = False  # the sync provider is called in a thread of ours
    last_good: LastGood | None = None  # where its good answers are kept, if they are
    owner: Owner | None = None

    KIND: ClassVar[str] = "entry"
    FLAGS: ClassVar[tuple[str, ...]] = ("thread",)  # the options that are true or false

    @property
    def ref(self) -> EntryRef:
        """The reference that errors carry."""
        return self.origin.ref(self.KIND, self.name)

    @property
    def is_awaited(self) -> bool:
        """Whether its answer has to be waited for: it is async, or comes from a thread."""
        return self.provider.is_async or self.thread

    def __str__(self) -> str:
        return str(self.ref)


@dataclass(frozen=True, slots=True, eq=False)
class OrderedText(Entry):
    """A section or a context: an ordered text."""

    order: float = 0
    verbatim: bool = False
    requires_tools: tuple[str, ...] = ()
    last: AssembledSection | AssembledContext | None = field(default=None, init=False, repr=False)  # that was assembled

    ASSEMBLED: ClassVar[type[AssembledSection] | type[AssembledContext]] = AssembledSection

    def assembled(self, text: str, *, verbatim: bool | None = None) -> Any:
        """The assembled entry of a text; the last one again if the text is the same, so its template is parsed once."""
        if verbatim is None:
            verbatim = self.verbatim
        last = self.last
        if last is not None and last.text == text and last.verbatim is verbatim:
            return last
        made = self.ASSEMBLED(self.name, text, self.origin, verbatim).standing()
        object.__setattr__(self, "last", made)
        return made

    def assembled_static(self) -> Any:
        """The assembled entry of its own text; only where it has no provider."""
        return self.assembled(cast("str", self.provider.static))

    def is_settled(self) -> bool:
        """Whether nothing about it depends on the step, the values of variables aside."""
        return self.provider.call is None and self.when is None and not self.requires_tools


@dataclass(frozen=True, slots=True, eq=False)
class Section(OrderedText):
    """A part of the system prompt."""

    complete: bool = False

    KIND: ClassVar[str] = "section"
    FLAGS: ClassVar[tuple[str, ...]] = ("complete", "verbatim", "thread")


@dataclass(frozen=True, slots=True, eq=False)
class RuntimeContext(OrderedText):
    """A part of the runtime-context snapshot: dynamic facts, kept out of the system prompt."""

    sensitive: bool = False

    KIND: ClassVar[str] = "context"
    FLAGS: ClassVar[tuple[str, ...]] = ("sensitive", "verbatim", "thread")
    ASSEMBLED: ClassVar[type[AssembledSection] | type[AssembledContext]] = AssembledContext


@dataclass(frozen=True, slots=True, eq=False)
class Variable(Entry):
    """A named value for ``{{name}}`` references."""

    sensitive: bool = False

    KIND: ClassVar[str] = "variable"
    FLAGS: ClassVar[tuple[str, ...]] = ("sensitive", "thread")


@dataclass(slots=True)
class ToolMemory:
    """What a tool source answered last: spares checking the same answer twice, and tells a typo from an outage."""

    schemas: tuple[ToolSchema, ...] | None = None
    known: frozenset[str] | None = None
    # answers that nobody can change (a tuple of schemas), by their ids; kept, so that the ids stay theirs: as given, as
    # a result, and what they came to. A provider may have one for each scope.
    frozen: dict[int, tuple[object, ToolProviderResult, tuple[ToolSchema, ...], frozenset[str]]] = field(
        default_factory=dict[Any, Any]
    )

    def keep(
        self, given: object, result: ToolProviderResult, schemas: tuple[ToolSchema, ...], known: frozenset[str]
    ) -> None:
        """Keep an answer that cannot change."""
        if len(self.frozen) >= _MOST_ANSWERS_KEPT:
            self.frozen = {}
        self.frozen[id(given)] = (given, result, schemas, known)


@dataclass(frozen=True, slots=True, eq=False)
class ToolSource(Entry):
    """A provider of tool schemas."""

    memory: ToolMemory = field(default_factory=ToolMemory)

    KIND: ClassVar[str] = "tool provider"


@dataclass(frozen=True, slots=True, eq=False)
class Override:
    """A deployment's last word on a section or context: whoever contributes one of that name, in whatever scope."""

    name: str
    origin: Origin
    enabled: bool
    order: float | None
    text: str | None
    why: str

    @property
    def ref(self) -> EntryRef:
        """The reference that errors carry."""
        return self.origin.ref("override", self.name)

    def applied(self, entry: OrderedText) -> Any:
        """The entry as the deployment wants it."""
        changed: Any = entry if self.order is None else replace(entry, order=self.order)
        if self.text is None:
            return changed
        origin = replace(entry.origin, source=self.origin.source)
        return replace(changed, provider=Provider(self.text), origin=origin, verbatim=False, on_error="fail",
                       timeout=None, thread=False, last_good=None)  # fmt: skip

    def __str__(self) -> str:
        return f"{self.ref}{f': {self.why}' if self.why else ''}"


@dataclass(frozen=True, slots=True, eq=False)
class Protection:
    """Names whose canonical state outlasts every listener."""

    origin: Origin
    sections: tuple[str, ...]
    tools: tuple[str, ...]

    @property
    def ref(self) -> EntryRef:
        """The reference that errors carry."""
        return self.origin.ref("protection", ", ".join((*self.sections, *self.tools)))

    def __str__(self) -> str:
        return str(self.ref)


@dataclass(frozen=True, slots=True, eq=False)
class Suppressor:
    """Says that there are no runtime contexts for whoever sees its layer."""

    origin: Origin

    def __str__(self) -> str:
        return str(self.origin.ref("suppressor", "runtime context"))


def required_positional(call: Callable[..., Any]) -> int:
    """How many positional arguments it requires; 0 if its signature cannot be read (builtins may have none)."""
    bound = isinstance(call, MethodType)
    function: object = call.__func__ if isinstance(call, MethodType) else call
    if isinstance(function, FunctionType) and not hasattr(function, "__wrapped__"):
        code = function.__code__  # the common case, many times faster than inspect.signature
        return max(0, code.co_argcount - len(function.__defaults__ or ()) - int(bound))
    try:
        parameters = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return 0
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    return sum(1 for each in positional if each.default is each.empty)
