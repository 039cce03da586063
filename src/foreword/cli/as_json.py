"""A rendering as one JSON document. Every key is always there; what does not apply is null or empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from foreword.cli.tool_list import size_of
from foreword.jsonvalue import thaw

if TYPE_CHECKING:
    from foreword.cli.hiding import Hiding
    from foreword.cli.shown import Rendered, Shown
    from foreword.errors import EntryRef
    from foreword.prompt.origin import Origin
    from foreword.prompt.spans import Span, Spans

__all__ = ["as_json", "ref_as_json", "without_secrets"]

_OUR_WORDS: Final = frozenset({"kind", "stage", "action", "source", "state"})
"""Keys whose values nobody else chooses."""


def as_json(shown: Shown) -> dict[str, Any]:
    """Text, snapshot, tools, where each stretch comes from, and the deterministic part of the trace.

    What the model gets is told as it is, but for what is sensitive, unless it is to be revealed; of the rest, what is
    to be hidden is.
    """
    rendering = shown.rendering
    spans, snapshot_spans = shown.spans, shown.snapshot_spans
    about = {
        "spans": _spans(spans),
        "snapshot_spans": _spans(snapshot_spans),
        "dropped": [ref_as_json(ref) for ref in rendering.dropped],
        "trace": rendering.trace.to_json(),
    }
    told = without_secrets(about, shown.hide)
    return {
        "scope": shown.scope,
        "text": spans.text,
        "snapshot": snapshot_spans.text,
        "digest": rendering.digest,
        "spans": told["spans"],
        "snapshot_spans": told["snapshot_spans"],
        "tools": _tools(rendering),
        "dropped": told["dropped"],
        "trace": told["trace"],
    }


def ref_as_json(ref: EntryRef) -> dict[str, str | None]:
    """Which contribution is meant."""
    return {"kind": ref.kind, "name": ref.name, "owner": ref.owner, "scope": ref.scope, "source": ref.source}


def without_secrets(value: Any, hide: Hiding) -> Any:
    """A JSON value with secrets taken out of the names in it, and out of reasons, which may be errors of a provider."""
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        return {key: item if key in _OUR_WORDS else _without(item, key, hide) for key, item in held.items()}
    if isinstance(value, (list, tuple)):
        return [without_secrets(item, hide) for item in cast("list[Any]", value)]
    return hide.name(value) if isinstance(value, str) else value


def _without(item: Any, key: str, hide: Hiding) -> Any:
    return hide(item) if key == "reason" and isinstance(item, str) else without_secrets(item, hide)


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


def _tools(rendering: Rendered) -> list[dict[str, Any]]:
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
