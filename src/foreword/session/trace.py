"""What explains a step later: who put which stretch of its prompt there, and what each stage of its assembly did.

It stands behind `step/start`, apart from the header, as shared blobs: one for each section and context (its name, its
origin, its spans), one for the tools' origins, one for the trace. Spans are kept by length, and the last of a section
without: so a plain text may change and its blob stays. What nothing changed costs nothing a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from foreword.kernel.source import Source
from foreword.prompt.origin import ASSEMBLER, Origin
from foreword.prompt.render import SNAPSHOT_OPENER
from foreword.prompt.spans import SEPARATOR, Span, Spans
from foreword.prompt.trace import StageTrace, Trace, TraceEvent
from foreword.session.blobs import NOTHING, BlobFault, add_blob
from foreword.session.placeholders import ERASED
from foreword.session.records import Natural, Record
from foreword.session.tree import read_root, write_root

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from foreword.prompt.contributions import ToolSchema
    from foreword.prompt.rendering import Rendering
    from foreword.session.blobs import Blobs, Gone

__all__ = [
    "TRACE_FIELDS",
    "RecordedOrigin",
    "StepExplanation",
    "StepTrace",
    "read_trace",
    "step_trace",
    "trace_digests",
]


@dataclass(frozen=True, slots=True)
class StepTrace:
    """Spans, origins and the deterministic trace of one rendering, as blobs of the log. Compares by its digest."""

    digest: bytes
    blobs: Mapping[bytes, bytes] = field(default_factory=dict[bytes, bytes], compare=False, repr=False)
    rendering: Rendering | None = field(default=None, compare=False, repr=False)  # that it was made of


@dataclass(frozen=True, slots=True)
class RecordedOrigin(Origin):
    """An origin from the log. It knows the version of the distribution as it was then."""

    recorded_distribution: str | None = None

    @property
    def distribution(self) -> str | None:
        """Name and version of the distribution that it came from; None for a project's own."""
        return self.recorded_distribution


@dataclass(frozen=True, slots=True)
class StepExplanation:
    """Who put what into the prompt of a past step, and why."""

    spans: Spans  # of the system text
    snapshot_spans: Spans  # of the snapshot; empty if the model sees none, or not the one that was rendered
    tool_origins: tuple[Origin | None, ...]  # in the order of the header's tools
    trace: Trace


def step_trace(rendering: Rendering, previous: StepTrace | None = None) -> StepTrace:
    """The trace of a rendering, to be given to `StepStart`.

    Args:
        rendering: what the step's assembly rendered to.
        previous: the trace of the step before; if nothing differs it comes back, which is many times faster.
    """
    before = None if previous is None else previous.rendering
    if previous is not None and before is not None and (before is rendering or before.explains_as(rendering)):
        return previous
    blobs: dict[bytes, bytes] = {}
    sections = list(_texts(rendering.spans, implied=True))
    contexts = list(_texts(rendering.snapshot_spans, implied=False))
    tools = [_tool(*pair) for pair in zip(rendering.tools, rendering.tool_origins, strict=True)]
    trace = _fold_trace(rendering.trace, _rendered(sections, contexts, tools))
    lists = [[_add(blobs, each) for each in texts] for texts in (sections, contexts)]
    return StepTrace(write_root(blobs, lists, (_add(blobs, tools), _add(blobs, trace))), blobs, rendering)


async def read_trace(
    blobs: Blobs, digest: bytes, sections: Sequence[str], snapshot: str, gone: Gone = NOTHING
) -> StepExplanation:
    """The explanation of a step from the log.

    Args:
        blobs: where from.
        digest: of the trace.
        sections: the texts in the step's header.
        snapshot: the text of the snapshot that the model sees; empty if there is none.
        gone: what may be missing of it. Of what a placeholder stands for nobody can say who wrote which words.

    Raises:
        BlobFault: a part of it is missing or wrong.
    """
    lists, singles = await read_root(blobs, digest)
    if len(lists) != 2 or len(singles) != 2:
        raise BlobFault(digest, "it is no trace")
    tools, trace = singles
    contents = await blobs.read_what_is_left((*lists[0], *lists[1], tools, trace), gone)
    told = [[_told(each, contents[each]) for each in leaves] for leaves in lists]
    listed, stages = contents[tools], contents[trace]
    brought: list[_Tool] = [] if listed is None else _decoded(list[_Tool], tools, listed)
    return StepExplanation(
        _text_spans(digest, told[0], sections),
        _snapshot_spans(told[1], snapshot),
        tuple(None if tool.origin is None else _read_origin(tool.origin) for tool in brought),
        Trace(())
        if stages is None
        else _unfold_trace(_decoded(_Stages, trace, stages), _rendered(told[0], told[1], brought)),
    )


def _told(digest: bytes, body: bytes | None) -> _Text:
    if body is None:
        return _Text(ERASED, _Origin(ERASED), (_Span(None),))
    text: _Text = _decoded(_Text, digest, body)
    return text


def trace_digests(lists: Sequence[Sequence[bytes]], singles: Sequence[bytes]) -> dict[bytes, str]:
    """The blobs with content behind a trace, as `read_root` gives them, and what each of them is."""
    return dict.fromkeys((*lists[0], *lists[1], *singles), "trace")


# -- as records --------------------------------------------------------------------------------------------------------


class _Origin(Record, frozen=True):
    owner: str
    scope: str | None = None
    file: str | None = None
    line: Natural | None = None
    listener: str | None = None
    distribution: str | None = None
    is_text: bool = False  # the file is the text itself, so lines count on inside it


class _Span(Record, frozen=True, array_like=True):
    size: Natural | None  # in code points; None: all that is left
    what: int | str | None = (
        None  # the variable that it is the value of; of a literal, the line if it has one of its own
    )


class _Text(Record, frozen=True):
    """A section or a context."""

    name: str
    origin: _Origin
    spans: tuple[_Span, ...]
    variables: dict[str, _Origin] = {}  # noqa: RUF012 - msgspec copies it


class _Tool(Record, frozen=True):
    name: str
    origin: _Origin | None = None


class _Added(Record, frozen=True, array_like=True):
    at: Natural
    name: str


class _Change(Record, frozen=True):
    """What became of a list of names: some went and some came, or another list."""

    without: tuple[str, ...] = ()
    added: tuple[_Added, ...] = ()
    names: tuple[str, ...] | None = None


class _Stage(Record, frozen=True):
    stage: str
    entered: dict[str, _Change]  # from what left the stage before, or was rendered; none where nothing changed
    left: dict[str, _Change]  # from what entered
    events: tuple[dict[str, Any], ...] = ()


class _Stages(Record, frozen=True):
    stages: tuple[_Stage, ...]


TRACE_FIELDS: Final = frozenset(
    [
        *(name for shape in (_Origin, _Text, _Tool, _Change, _Stage, _Stages) for name in shape.__struct_fields__),
        *TraceEvent.__slots__,
    ]
)
"""The names of fields in the JSON of a trace."""

Names: TypeAlias = Mapping[str, tuple[str, ...]]
"""Names by kind: sections, contexts, tools, variables."""


def _decoded(shape: Any, digest: bytes, body: bytes) -> Any:
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise BlobFault(digest, f"it is no part of a trace: {fault}") from None


def _add(blobs: dict[bytes, bytes], record: object) -> bytes:
    return add_blob(blobs, msgspec.json.encode(record))


# -- origins and spans -------------------------------------------------------------------------------------------------


def _origin(origin: Origin) -> _Origin:
    source = origin.source
    if source is None:
        return _Origin(origin.owner, origin.scope, listener=origin.listener)
    return _Origin(
        origin.owner, origin.scope, source.file, source.line, origin.listener, origin.distribution, source.is_text
    )


def _read_origin(told: _Origin) -> RecordedOrigin:
    source = None if told.file is None else Source(told.file, told.line or 1, told.is_text)
    return RecordedOrigin(told.owner, told.scope, source, told.listener, told.distribution)


def _tool(tool: ToolSchema, origin: Origin | None) -> _Tool:
    return _Tool(tool.name, None if origin is None else _origin(origin))


def _rendered(sections: list[_Text], contexts: list[_Text], tools: list[_Tool]) -> Names:
    """The names of what a rendering tells; most stages of its trace differ little from them."""
    return {
        "sections": tuple(section.name for section in sections),
        "contexts": tuple(context.name for context in contexts),
        "tools": tuple(tool.name for tool in tools),
    }


def _texts(spans: Spans, *, implied: bool) -> Iterator[_Text]:
    """The sections or contexts behind the spans of a text; ``implied``: the last size of each goes without saying."""
    group: list[Span] = []
    for span in (*spans, None):
        if span is not None and span.kind != "separator":
            group.append(span)
        elif group:
            yield _text(group, implied=implied)
            group = []


def _text(group: list[Span], *, implied: bool) -> _Text:
    origin = group[0].section_origin or ASSEMBLER
    told = [_span(span, origin, implied=implied and span is group[-1]) for span in group]
    variables = {span.variable: span.origin for span in group if span.variable is not None}
    origins = {name: _origin(variable) for name, variable in variables.items()}
    return _Text(group[0].section or "", _origin(origin), tuple(told), origins)


def _span(span: Span, section: Origin, *, implied: bool) -> _Span:
    size = None if implied else span.end - span.start
    if span.variable is not None:
        return _Span(size, span.variable)
    source = span.source
    return _Span(size) if source is None or source == section.source else _Span(size, source.line)


def _text_spans(digest: bytes, told: list[_Text], texts: Sequence[str]) -> Spans:
    if len(told) != len(texts):
        raise BlobFault(digest, f"it explains {len(told)} sections, and the header has {len(texts)}")
    told = [_whole(each) if text == ERASED else each for each, text in zip(told, texts, strict=True)]
    return Spans(_placed(told, [len(text) for text in texts], 0), SEPARATOR.join(texts))


def _whole(text: _Text) -> _Text:
    """Somebody's text, without who wrote which stretch of it."""
    return _Text(text.name, text.origin, (_Span(None),))


def _snapshot_spans(told: list[_Text], snapshot: str) -> Spans:
    sizes = [sum(span.size or 0 for span in text.spans) for text in told]
    opener = len(SNAPSHOT_OPENER + SEPARATOR)
    whole = opener + sum(sizes) + len(SEPARATOR) * (len(sizes) - 1)
    if not told or len(snapshot) != whole:
        return Spans()
    spans = [Span(0, opener, "separator", ASSEMBLER), *_placed(told, sizes, opener)]
    return Spans(spans, snapshot)


def _placed(told: list[_Text], sizes: list[int], at: int) -> Iterator[Span]:
    """The spans of texts that are joined by blank lines, from a position on."""
    for text, size in zip(told, sizes, strict=True):
        if text is not told[0]:
            yield Span(at, at + len(SEPARATOR), "separator", ASSEMBLER)
            at += len(SEPARATOR)
        end, origin = at + size, _read_origin(text.origin)
        owners = {name: _read_origin(owner) for name, owner in text.variables.items()}
        for span in text.spans:
            stop, what = end if span.size is None else at + span.size, span.what
            if isinstance(what, str):
                owner = owners.get(what, origin)
                yield Span(at, stop, "variable", owner, text.name, what, owner.source, origin)
            else:
                yield Span(at, stop, "literal", origin, text.name, None, _moved(origin.source, what), origin)
            at = stop


def _moved(source: Source | None, line: int | None) -> Source | None:
    return source if source is None or line is None else replace(source, line=line)


# -- the trace ---------------------------------------------------------------------------------------------------------


def _fold_trace(trace: Trace, rendered: Names) -> _Stages:
    """A trace as what differs: the first stage from what was rendered in the end, then from one list to the next."""
    stages: list[_Stage] = []
    before = rendered
    for stage in trace.stages:
        events = tuple(event.to_json() for event in stage.events)
        stages.append(_Stage(stage.stage, _changes(before, stage.entered), _changes(stage.entered, stage.left), events))
        before = stage.left
    return _Stages(tuple(stages))


def _unfold_trace(told: _Stages, rendered: Names) -> Trace:
    stages: list[StageTrace] = []
    before = rendered
    for stage in told.stages:
        entered = _changed(before, stage.entered)
        left = _changed(entered, stage.left)
        stages.append(StageTrace(stage.stage, entered, left, tuple(TraceEvent(**each) for each in stage.events)))
        before = left
    return Trace(tuple(stages))


def _changes(before: Names, after: Names) -> dict[str, _Change]:
    return {kind: _change(before.get(kind, ()), names) for kind, names in after.items() if before.get(kind) != names}


def _change(before: tuple[str, ...], after: tuple[str, ...]) -> _Change:
    was, is_now = set(before), set(after)
    without = tuple(name for name in before if name not in is_now)
    added = tuple(_Added(at, name) for at, name in enumerate(after) if name not in was)
    change = _Change(without, added)
    return change if _applied(change, before) == after else _Change(names=after)  # moved, or namesakes


def _changed(before: Names, changes: dict[str, _Change]) -> Names:
    return {**before, **{kind: _applied(change, before.get(kind, ())) for kind, change in changes.items()}}


def _applied(change: _Change, before: tuple[str, ...]) -> tuple[str, ...]:
    if change.names is not None:
        return change.names
    gone = set(change.without)
    names = [name for name in before if name not in gone]
    for added in change.added:
        names.insert(added.at, added.name)
    return tuple(names)
