"""The subject of an explanation: a prompt with all that is known about it, just rendered or logged long ago.

Everything in this package works on a `Subject`. `subject_of` makes one of a live rendering, `foreword.explain.steps`
those of a log; what comes after cannot tell the two apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from foreword.kernel.source import Source
from foreword.prompt.origin import Origin
from foreword.prompt.spans import Span, Spans
from foreword.session.events import RUNTIME_CONTEXT
from foreword.session.trace import RecordedOrigin
from foreword.wire.request import canonical_json, tool_to_json

if TYPE_CHECKING:
    from foreword.jsonvalue import JsonValue
    from foreword.prompt.contributions import ToolSchema
    from foreword.prompt.rendering import Rendering
    from foreword.prompt.trace import Trace
    from foreword.session import Location
    from foreword.session.events import MessageSource
    from foreword.wire.chunks import Usage
    from foreword.wire.messages import Message
    from foreword.wire.request import ModelConfig
    from foreword.wire.tool_extras import ToolExtras

__all__ = [
    "UNKNOWN",
    "Part",
    "PartKind",
    "PartTool",
    "RequestMessage",
    "Sensitive",
    "Subject",
    "Variable",
    "subject_of",
]

PartKind: TypeAlias = Literal["section", "context"]

UNKNOWN = Origin("unknown")
"""The origin of what the log holds without saying who brought it."""


@dataclass(frozen=True, slots=True)
class Part:
    """A section or a runtime context of a prompt, as it was rendered. It is never empty."""

    kind: PartKind
    name: str
    text: str
    origin: Origin
    spans: tuple[Span, ...]  # positions count from the beginning of the whole text
    start: int  # in the whole text, in code points

    @property
    def end(self) -> int:
        """Where it ends in the whole text, exclusive."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class PartTool:
    """A tool of a prompt, and who brought it."""

    schema: ToolSchema
    origin: Origin
    extras: ToolExtras = field(
        default_factory=dict[str, "JsonValue"]
    )  # what else it carries in a request that was recorded, as ``strict``

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.schema.name

    @property
    def text(self) -> str:
        """The whole of it as JSON without blanks: its schema, and behind that what else it carries."""
        return canonical_json({**tool_to_json(self.schema), **self.extras}).decode()


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that the prompt refers to, with the value that stands in it. It is never empty."""

    name: str
    value: str
    origin: Origin
    used_in: tuple[str, ...]  # sections and contexts, in order


@dataclass(frozen=True, slots=True, eq=False)
class RequestMessage:
    """A message of a request's history. Compares by identity: the same one stands in all requests that have it."""

    message: Message
    seq: int | None = None  # of the event that brought it
    source: MessageSource | None = None  # who wrote it, if it was not the user, the model or a tool
    replaced: int = 0  # if it stands for others (a compaction), how many
    shown: RequestMessage | None = None  # as it may be shown, if something in it is sensitive
    unstored: bytes | None = None  # if the log does not hold it, the digest of what it stands for

    @property
    def is_snapshot(self) -> bool:
        """Whether it tells the runtime contexts."""
        return self.source is not None and self.source.kind == RUNTIME_CONTEXT

    def says_as(self, other: RequestMessage) -> bool:
        """Whether it says what another one does; of what the log does not hold, only if that is sure."""
        return self is other or (self.message == other.message and self.unstored == other.unstored)


@dataclass(frozen=True, slots=True)
class Sensitive:
    """What of a prompt is not to be shown, by name; see `foreword.explain.masking`."""

    variables: frozenset[str] = frozenset()  # their values, wherever they stand
    sections: frozenset[str] = frozenset()  # as wholes
    contexts: frozenset[str] = frozenset()  # as wholes

    def united(self, other: Sensitive) -> Sensitive:
        """What is sensitive in one of two prompts."""
        return Sensitive(
            self.variables | other.variables, self.sections | other.sections, self.contexts | other.contexts
        )


@dataclass(frozen=True, slots=True)
class Subject:
    """A prompt to explain.

    Attributes:
        title: what it is, for people: a file, an agent, an address.
        spans: of the system text; with the text.
        snapshot_spans: the same of the snapshot of the runtime contexts, as the model sees it.
        tools: in the order in which the model gets them.
        trace: what each stage of the assembly did; empty if nobody recorded it.
        messages: the history; empty for a prompt that is not part of a request.
        config: the model and its settings, if they are known.
        location: where in the log it is; None for a live prompt.
        time: when its request was about to be sent, in milliseconds since 1970; None for a live prompt.
        usage: what the provider says that the request cost, if it was logged.
        sensitive: what of it is not to be shown; of messages each says so itself.
        unstored_parts: in words, what of it but messages the log does not hold: marks stand for it, see
            `foreword.explain.unstored`; of messages each says so itself.
        is_recorded: it was logged as it was sent, and nobody knows how it was assembled: a recorder's.
    """

    title: str
    spans: Spans
    snapshot_spans: Spans
    tools: tuple[PartTool, ...]
    trace: Trace
    messages: tuple[RequestMessage, ...] = ()
    config: ModelConfig | None = None
    location: Location | None = None
    time: int | None = None
    usage: Usage | None = None
    sensitive: Sensitive = field(default_factory=Sensitive)
    unstored_parts: tuple[str, ...] = ()
    is_recorded: bool = False

    @property
    def unstored(self) -> tuple[str, ...]:
        """In words, what of it the log does not hold. Sizes are those of what stands in its place."""
        messages = sum(each.unstored is not None for each in self.messages)
        told = (f"{messages:,} message{'' if messages == 1 else 's'}",) if messages else ()
        return (*self.unstored_parts, *told)

    @property
    def is_sensitive(self) -> bool:
        """Whether something of it is not to be shown."""
        return self.sensitive != Sensitive() or any(each.shown is not None for each in self.messages)

    @property
    def held_snapshot(self) -> RequestMessage | None:
        """The message that tells the runtime contexts which the model goes by: the newest."""
        return next((each for each in reversed(self.messages) if each.is_snapshot), None)

    @property
    def text(self) -> str:
        """The system text."""
        return self.spans.text

    @property
    def snapshot(self) -> str:
        """The snapshot of the runtime contexts; empty if the model sees none."""
        return self.snapshot_spans.text

    @property
    def sections(self) -> tuple[Part, ...]:
        """The sections that say something, in order."""
        return tuple(_parts(self.spans, "section"))

    @property
    def contexts(self) -> tuple[Part, ...]:
        """The runtime contexts that the model sees, in order."""
        return tuple(_parts(self.snapshot_spans, "context"))

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables whose values stand in the prompt, by name."""
        found: dict[str, Variable] = {}
        for spans in (self.spans, self.snapshot_spans):
            for span in spans:
                if span.variable is not None:
                    _note_variable(found, span, spans.text[span.start : span.end])
        return tuple(found[name] for name in sorted(found))


def subject_of(rendering: Rendering, title: str = "the prompt", *, config: ModelConfig | None = None) -> Subject:
    """The subject of a live rendering.

    Places in files are told as they are now: relative to what stands on `sys.path`, with the versions of the installed
    distributions. So a subject can be kept, and looked at elsewhere.

    Args:
        rendering: of a prompt.
        title: what it is, for people.
        config: the model that it is for, if it is for one.
    """
    settle = _settler()
    pairs = zip(rendering.tools, rendering.tool_origins, strict=True)
    variables, contexts = rendering.sensitive
    return Subject(
        title,
        _settled(rendering.spans, rendering.text, settle),
        _settled(rendering.snapshot_spans, rendering.snapshot, settle),
        tuple(PartTool(tool, UNKNOWN if origin is None else settle(origin)) for tool, origin in pairs),
        rendering.trace,
        config=config,
        sensitive=Sensitive(variables, contexts=contexts),
    )


# -- parts -------------------------------------------------------------------------------------------------------------


def _parts(spans: Spans, kind: PartKind) -> Iterator[Part]:
    group: list[Span] = []
    for span in (*spans, None):
        if span is not None and span.kind != "separator":
            group.append(span)
        elif group:
            start, end = group[0].start, group[-1].end
            origin = group[0].section_origin or group[0].origin
            yield Part(kind, group[0].section or "", spans.text[start:end], origin, tuple(group), start)
            group = []


def _note_variable(found: dict[str, Variable], span: Span, value: str) -> None:
    assert span.variable is not None  # noqa: S101 - the caller has looked
    known = found.get(span.variable)
    used_in = () if known is None else known.used_in
    if span.section is not None and span.section not in used_in:
        used_in = (*used_in, span.section)
    found[span.variable] = Variable(span.variable, value, span.origin, used_in)


# -- origins that no longer depend on where we are ---------------------------------------------------------------------


def _settler() -> Callable[[Origin], Origin]:
    """A function that settles origins; each once, since they are shared and asking for distributions is slow."""
    known: dict[int, tuple[Origin, Origin]] = {}  # the first keeps the id taken

    def settle(origin: Origin) -> Origin:
        pair = known.get(id(origin))
        if pair is None:
            pair = known[id(origin)] = (origin, _settled_origin(origin))
        return pair[1]

    return settle


def _settled_origin(origin: Origin) -> Origin:
    if origin.source is None:
        return origin
    return RecordedOrigin(
        origin.owner, origin.scope, _settled_source(origin.source), origin.listener, origin.distribution
    )


def _settled_source(source: Source) -> Source:
    return replace(source, path=source.file)


def _settled(spans: Spans, text: str, settle: Callable[[Origin], Origin]) -> Spans:
    settled = [
        replace(
            span,
            origin=settle(span.origin),
            source=None if span.source is None else _settled_source(span.source),
            section_origin=None if span.section_origin is None else settle(span.section_origin),
        )
        for span in spans
    ]
    return Spans(settled, text)
