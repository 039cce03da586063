"""What explains a step later: who put which stretch of its prompt there, and what each stage of its assembly did.

It stands behind `step/start`, apart from the header, as shared blobs: one for each section and context (its name, its
origin, its spans), one for the tools' origins, one for the trace. Spans are kept by length, and the last of a section
without: so a plain text may change and its blob stays. Where only other lengths change, the step tells them itself (see
`resized`). What nothing changed costs nothing a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from foreword.kernel.source import Source
from foreword.prompt.origin import ASSEMBLER, Origin
from foreword.prompt.render import SNAPSHOT_OPENER
from foreword.prompt.spans import SEPARATOR, Span, Spans
from foreword.prompt.trace import StageTrace, Trace
from foreword.session.blobs import NOTHING, BlobFault, add_blob
from foreword.session.masking import contexts_as_masked, section_as_masked
from foreword.session.placeholders import ERASED
from foreword.session.resized import resized, with_sizes
from foreword.session.stages import Names, fold_trace, unfold_trace
from foreword.session.told import ToldOrigin, ToldSpan, ToldStages, ToldText, ToldTool
from foreword.session.tree import read_root, write_root

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from foreword.prompt.contributions import ToolSchema
    from foreword.prompt.rendering import Rendering
    from foreword.session.blobs import Blobs, Gone
    from foreword.session.header import RequestHeader
    from foreword.session.records import Resized

__all__ = [
    "RecordedOrigin",
    "RecordedTrace",
    "StepExplanation",
    "StepTrace",
    "read_recorded_trace",
    "read_trace",
    "resent_trace",
    "step_trace",
    "trace_digests",
]


@dataclass(frozen=True, slots=True)
class StepTrace:
    """Spans, origins and the deterministic trace of one rendering, as blobs of the log. Compares by what it tells."""

    digest: bytes
    resized: tuple[Resized, ...] = ()  # texts with other sizes than the blobs say
    blobs: Mapping[bytes, bytes] = field(default_factory=dict[bytes, bytes], compare=False, repr=False)
    rendering: Rendering | None = field(default=None, compare=False, repr=False)  # that it was made of
    told: Told | None = field(default=None, compare=False, repr=False)  # what its blobs hold


class Told(NamedTuple):
    """What the blobs of a trace hold."""

    sections: list[ToldText]
    contexts: list[ToldText]
    tools: list[ToldTool]
    stages: ToldStages


@dataclass(frozen=True, slots=True)
class RecordedOrigin(Origin):
    """An origin from the log. It knows the version of the distribution as it was then."""

    recorded_distribution: str | None = None

    @property
    def distribution(self) -> str | None:
        """Name and version of the distribution that it came from; None for a project's own."""
        return self.recorded_distribution


@dataclass(frozen=True, slots=True)
class RecordedTrace:
    """The trace of a step that recorded a header, read back to be told again with it."""

    trace: StepTrace  # as that step has it
    told: Told  # the same with the sizes of that step
    leaves: frozenset[bytes]  # the blobs that it was read from


@dataclass(frozen=True, slots=True)
class StepExplanation:
    """Who put what into the prompt of a past step, and why."""

    spans: Spans  # of the system text
    snapshot_spans: Spans  # of the snapshot; empty if the model sees none, or not the one that was rendered
    tool_origins: tuple[Origin | None, ...]  # in the order of the header's tools
    trace: Trace


def step_trace(
    rendering: Rendering,
    previous: StepTrace | None = None,
    *,
    tool_origins: Sequence[Origin | None] | None = None,
) -> StepTrace:
    """The trace of a rendering, to be given to `StepStart`.

    Args:
        rendering: what the step's assembly rendered to.
        previous: the trace of the step before; if nothing differs it comes back, which is many times faster.
        tool_origins: who brought each tool, for an assembly that was made by hand, whose rendering cannot say.
    """
    before = None if previous is None else previous.rendering
    if previous is not None and before is not None and (before is rendering or before.explains_as(rendering)):
        return previous
    told = _tell(rendering, rendering.tool_origins if tool_origins is None else tool_origins)
    kept = None if previous is None else _kept(previous, rendering, told)
    return _written(rendering, told) if kept is None else kept


def resent_trace(recorded: RecordedTrace, rendering: Rendering, previous: StepTrace | None = None) -> StepTrace:
    """The trace of a step in which a recorded header goes out again, whatever was assembled.

    Sections and tools are explained as they were when the header was recorded. Runtime contexts are no part of a
    header: they are today's.

    Args:
        recorded: the trace of the step that recorded the header.
        rendering: what today's assembly rendered to.
        previous: the trace of the step before; if nothing differs it comes back.
    """
    sections, _, tools, _ = was = recorded.told
    contexts = list(_texts(rendering.snapshot_spans, implied=False))
    trace = _with_contexts(unfold_trace(was.stages, _rendered(sections, was.contexts, tools)), rendering.trace)
    told = Told(sections, contexts, tools, fold_trace(trace, _rendered(sections, contexts, tools)))
    kept = _kept(recorded.trace if previous is None else previous, None, told)
    return _written(None, told) if kept is None else kept


def _with_contexts(trace: Trace, other: Trace) -> Trace:
    """A trace that tells of contexts what another one does."""
    others = {stage.stage: stage for stage in other.stages}
    return Trace(tuple(_stage_with_contexts(stage, others.get(stage.stage, stage)) for stage in trace.stages))


def _stage_with_contexts(stage: StageTrace, other: StageTrace) -> StageTrace:
    entered, left = (
        {**names, "contexts": others.get("contexts", ())}
        for names, others in ((stage.entered, other.entered), (stage.left, other.left))
    )
    events = [event for event in stage.events if event.kind != "context"]
    events += [event for event in other.events if event.kind == "context"]
    return replace(stage, entered=entered, left=left, events=tuple(events))


def _tell(rendering: Rendering, tool_origins: Sequence[Origin | None]) -> Told:
    sections = list(_texts(rendering.spans, implied=True))
    contexts = list(_texts(rendering.snapshot_spans, implied=False))
    tools = [_tool(*pair) for pair in zip(rendering.tools, tool_origins, strict=True)]
    return Told(sections, contexts, tools, fold_trace(rendering.trace, _rendered(sections, contexts, tools)))


def _kept(previous: StepTrace, rendering: Rendering | None, told: Told) -> StepTrace | None:
    """The trace of the step before, with other sizes; None if more than sizes differ."""
    was = previous.told
    if was is None or len(was.sections) != len(told.sections) or was.tools != told.tools or was.stages != told.stages:
        return None
    others = resized((*was.sections, *was.contexts), (*told.sections, *told.contexts))
    return None if others is None else replace(previous, resized=others, rendering=rendering)


def _written(rendering: Rendering | None, told: Told) -> StepTrace:
    blobs: dict[bytes, bytes] = {}
    lists = [[_add(blobs, each) for each in texts] for texts in (told.sections, told.contexts)]
    root = write_root(blobs, lists, (_add(blobs, told.tools), _add(blobs, told.stages)))
    return StepTrace(root, (), blobs, rendering, told)


async def read_trace(
    blobs: Blobs, recorded: StepTrace, header: RequestHeader, snapshot: str, gone: Gone = NOTHING
) -> StepExplanation:
    """The explanation of a step from the log.

    Args:
        blobs: where from.
        recorded: the trace as `StepStart` holds it.
        header: that of the step.
        snapshot: the text of the snapshot that the model sees; empty if there is none.
        gone: what may be missing of it.

    Raises:
        BlobFault: a part of it is missing or wrong.
    """
    digest = recorded.digest
    lists, (tools, trace) = await _read_root(blobs, digest)
    contents = await blobs.read_what_is_left((*lists[0], *lists[1], tools, trace), gone)
    sections, contexts = _with_sizes(recorded, lists, contents)
    listed, stages = contents[tools], contents[trace]
    brought: list[ToldTool] = [] if listed is None else _decoded(list[ToldTool], tools, listed)
    return StepExplanation(
        _text_spans(digest, sections, header),
        _snapshot_spans(contexts, snapshot),
        tuple(None if tool.origin is None else _read_origin(tool.origin) for tool in brought),
        Trace(())
        if stages is None
        else unfold_trace(_decoded(ToldStages, trace, stages), _rendered(sections, contexts, brought)),
    )


async def read_recorded_trace(blobs: Blobs, recorded: StepTrace, header: RequestHeader) -> RecordedTrace | None:
    """The trace of a step that recorded a header, to be told again with it.

    Args:
        blobs: where from.
        recorded: the trace as `StepStart` holds it.
        header: what the step recorded.

    Returns:
        The trace; None if something of it was erased, or it does not explain that header.

    Raises:
        BlobFault: a part of it is missing or wrong.
    """
    lists, (tools, trace) = await _read_root(blobs, recorded.digest)
    contents = await blobs.held((*lists[0], *lists[1], tools, trace))
    listed, stages = contents[tools], contents[trace]
    if listed is None or stages is None or None in contents.values() or len(lists[0]) != len(header.sections):
        return None
    brought: list[ToldTool] = _decoded(list[ToldTool], tools, listed)
    told_stages: ToldStages = _decoded(ToldStages, trace, stages)
    held = Told(
        [_told(each, contents[each]) for each in lists[0]],
        [_told(each, contents[each]) for each in lists[1]],
        brought,
        told_stages,
    )
    sections, contexts = _with_sizes(recorded, lists, contents)
    told = Told(sections, contexts, brought, told_stages)
    return RecordedTrace(replace(recorded, told=held), told, frozenset(contents))


async def _read_root(blobs: Blobs, digest: bytes) -> tuple[list[list[bytes]], list[bytes]]:
    lists, singles = await read_root(blobs, digest)
    if len(lists) != 2 or len(singles) != 2:
        raise BlobFault(digest, "it is no trace")
    return lists, singles


def _with_sizes(
    recorded: StepTrace, lists: list[list[bytes]], contents: Mapping[bytes, bytes | None]
) -> tuple[list[ToldText], list[ToldText]]:
    """The sections and contexts behind a trace, with the sizes that the step told."""
    leaves = [*lists[0], *lists[1]]
    others = [each for each in recorded.resized if each.text >= len(leaves) or contents[leaves[each.text]] is not None]
    try:
        texts = with_sizes([_told(each, contents[each]) for each in leaves], others)
    except ValueError as fault:
        raise BlobFault(recorded.digest, f"it is not the trace of this step: {fault}") from None
    return texts[: len(lists[0])], texts[len(lists[0]) :]


def _told(digest: bytes, body: bytes | None) -> ToldText:
    if body is None:
        return ToldText(ERASED, ToldOrigin(ERASED), (ToldSpan(None),))
    text: ToldText = _decoded(ToldText, digest, body)
    return text


def trace_digests(lists: Sequence[Sequence[bytes]], singles: Sequence[bytes]) -> dict[bytes, str]:
    """The blobs with content behind a trace, as `read_root` gives them, and what each of them is."""
    return dict.fromkeys((*lists[0], *lists[1], *singles), "trace")


def _decoded(shape: Any, digest: bytes, body: bytes) -> Any:
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise BlobFault(digest, f"it is no part of a trace: {fault}") from None


def _add(blobs: dict[bytes, bytes], record: object) -> bytes:
    return add_blob(blobs, msgspec.json.encode(record))


# -- origins and spans -------------------------------------------------------------------------------------------------


def _origin(origin: Origin) -> ToldOrigin:
    source = origin.source
    if source is None:
        return ToldOrigin(origin.owner, origin.scope, listener=origin.listener)
    return ToldOrigin(
        origin.owner, origin.scope, source.file, source.line, origin.listener, origin.distribution, source.is_text
    )


def _read_origin(told: ToldOrigin) -> RecordedOrigin:
    source = None if told.file is None else Source(told.file, told.line or 1, told.is_text)
    return RecordedOrigin(told.owner, told.scope, source, told.listener, told.distribution)


def _tool(tool: ToolSchema, origin: Origin | None) -> ToldTool:
    return ToldTool(tool.name, None if origin is None else _origin(origin))


def _rendered(sections: list[ToldText], contexts: list[ToldText], tools: list[ToldTool]) -> Names:
    """The names of what a rendering tells; most stages of its trace differ little from them."""
    return {
        "sections": tuple(section.name for section in sections),
        "contexts": tuple(context.name for context in contexts),
        "tools": tuple(tool.name for tool in tools),
    }


def _texts(spans: Spans, *, implied: bool) -> Iterator[ToldText]:
    """The sections or contexts behind the spans of a text; ``implied``: the last size of each goes without saying."""
    group: list[Span] = []
    for span in (*spans, None):
        if span is not None and span.kind != "separator":
            group.append(span)
        elif group:
            yield _text(group, implied=implied)
            group = []


def _text(group: list[Span], *, implied: bool) -> ToldText:
    origin = group[0].section_origin or ASSEMBLER
    told = [_span(span, origin, implied=implied and span is group[-1]) for span in group]
    variables = {span.variable: span.origin for span in group if span.variable is not None}
    origins = {name: _origin(variable) for name, variable in variables.items()}
    return ToldText(group[0].section or "", _origin(origin), tuple(told), origins)


def _span(span: Span, section: Origin, *, implied: bool) -> ToldSpan:
    size = None if implied else span.end - span.start
    if span.variable is not None:
        return ToldSpan(size, span.variable)
    source = span.source
    return ToldSpan(size) if source is None or source == section.source else ToldSpan(size, source.line)


def _text_spans(digest: bytes, told: list[ToldText], header: RequestHeader) -> Spans:
    texts = header.sections
    if len(told) != len(texts):
        raise BlobFault(digest, f"it explains {len(told)} sections, and the header has {len(texts)}")
    told = [_in_place(each, texts[at]) if at in header.in_place else each for at, each in enumerate(told)]
    return Spans(_placed(told, [len(text) for text in texts], 0), SEPARATOR.join(texts))


def _in_place(told: ToldText, text: str) -> ToldText:
    """Somebody's text that the log does not hold: as it reads masked, or else nobody can say who wrote which words."""
    return section_as_masked(told, text) or ToldText(told.name, told.origin, (ToldSpan(None),))


def _snapshot_spans(told: list[ToldText], snapshot: str) -> Spans:
    opener = len(SNAPSHOT_OPENER + SEPARATOR)
    shown = contexts_as_masked(told, snapshot[opener:])
    if not shown:
        return Spans()
    sizes = [sum(span.size or 0 for span in text.spans) for text in shown]
    spans = [Span(0, opener, "separator", ASSEMBLER), *_placed(shown, sizes, opener)]
    return Spans(spans, snapshot)


def _placed(told: list[ToldText], sizes: list[int], at: int) -> Iterator[Span]:
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
