"""A rendering as one JSON document. Every key is always there; what does not apply is null or empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from foreword.cli.tool_list import size_of
from foreword.jsonvalue import thaw

if TYPE_CHECKING:
    from foreword.cli.targets import Shown
    from foreword.prompt.origin import Origin
    from foreword.prompt.rendering import Rendering
    from foreword.prompt.spans import Span, Spans

__all__ = ["as_json"]


def as_json(shown: Shown) -> dict[str, Any]:
    """Text, snapshot, tools, where each stretch comes from, and the deterministic part of the trace."""
    rendering = shown.rendering
    return {
        "scope": shown.scope,
        "text": rendering.text,
        "snapshot": rendering.snapshot,
        "digest": rendering.digest,
        "spans": _spans(rendering.spans),
        "snapshot_spans": _spans(rendering.snapshot_spans),
        "tools": _tools(rendering),
        "dropped": [
            {"kind": ref.kind, "name": ref.name, "owner": ref.owner, "scope": ref.scope, "source": ref.source}
            for ref in rendering.dropped
        ],
        "trace": rendering.trace.to_json(),
    }


def _spans(spans: Spans) -> list[dict[str, Any]]:
    return [_span(span) for span in spans]


def _span(span: Span) -> dict[str, Any]:
    """Positions are code points, the end exclusive; ``section`` also names a runtime context."""
    return {
        "start": span.start,
        "end": span.end,
        "kind": span.kind,
        "section": span.section,
        "variable": span.variable,
        **_origin(span.origin),
        "source": None if span.source is None else str(span.source),
        "section_owner": None if span.section_origin is None else span.section_origin.owner,
        "section_scope": None if span.section_origin is None else span.section_origin.scope,
    }


def _tools(rendering: Rendering) -> list[dict[str, Any]]:
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": thaw(dict(tool.parameters)),
            "size": size_of(tool),
            **_origin(origin),
        }
        for tool, origin in zip(rendering.tools, rendering.tool_origins, strict=True)
    ]


def _origin(origin: Origin | None) -> dict[str, Any]:
    if origin is None:
        return {"owner": None, "scope": None, "listener": None, "source": None}
    return {
        "owner": origin.owner,
        "scope": origin.scope,
        "listener": origin.listener,
        "source": None if origin.source is None else str(origin.source),
    }
