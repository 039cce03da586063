"""How what explains a step looks on disk: the contents of the blobs behind a trace, as records."""

from __future__ import annotations

from typing import Any, Final

from foreword.prompt.trace import TraceEvent
from foreword.session.records import Natural, Record

__all__ = [
    "TRACE_FIELDS",
    "ToldAdded",
    "ToldChange",
    "ToldOrigin",
    "ToldSpan",
    "ToldStage",
    "ToldStages",
    "ToldText",
    "ToldTool",
]


class ToldOrigin(Record, frozen=True):
    """Who contributed something, and from where."""

    owner: str
    scope: str | None = None
    file: str | None = None
    line: Natural | None = None
    listener: str | None = None
    distribution: str | None = None
    is_text: bool = False  # the file is the text itself, so lines count on inside it


class ToldSpan(Record, frozen=True, array_like=True):
    """A stretch of a text."""

    size: Natural | None  # in code points; None: all that is left
    # The variable that it is the value of; of a literal, the line if it has one of its own.
    what: int | str | None = None


class ToldText(Record, frozen=True):
    """A section or a context."""

    name: str
    origin: ToldOrigin
    spans: tuple[ToldSpan, ...]
    variables: dict[str, ToldOrigin] = {}  # noqa: RUF012 - msgspec copies it


class ToldTool(Record, frozen=True):
    """A tool, and who brought it."""

    name: str
    origin: ToldOrigin | None = None


class ToldAdded(Record, frozen=True, array_like=True):
    """A name that came into a list, and where it stands then."""

    at: Natural
    name: str


class ToldChange(Record, frozen=True):
    """What became of a list of names: some went and some came, or another list."""

    without: tuple[str, ...] = ()
    added: tuple[ToldAdded, ...] = ()
    names: tuple[str, ...] | None = None


class ToldStage(Record, frozen=True):
    """What one stage of an assembly found and left."""

    stage: str
    entered: dict[str, ToldChange]  # from what left the stage before, or was rendered; none where nothing changed
    left: dict[str, ToldChange]  # from what entered
    events: tuple[dict[str, Any], ...] = ()


class ToldStages(Record, frozen=True):
    """All stages of an assembly."""

    stages: tuple[ToldStage, ...]


TRACE_FIELDS: Final = frozenset(
    [
        *(
            name
            for shape in (ToldOrigin, ToldText, ToldTool, ToldChange, ToldStage, ToldStages)
            for name in shape.__struct_fields__
        ),
        *TraceEvent.__slots__,
    ]
)
"""The names of fields in the JSON of a trace."""
