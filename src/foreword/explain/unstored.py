"""What the log does not hold of a header: marks that tell one content from another, though neither is there.

A log may be told not to store what is sensitive, or nothing at all, and content can be erased. Its placeholder is the
same whatever stood there, so a value that changed would look as if it had not. But the digests are there: each
placeholder gets the beginning of its own, ``[not stored, 3f2a9c1e]``. The same mark is the same content. Another one is
another content, unless it is salted: what is sensitive gets a new salt in each session, and whenever one is resumed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from foreword.prompt.sensitive import SENSITIVE
from foreword.session.placeholders import ERASED, NOT_STORED, config_in_place, tool_in_place
from foreword.session.tree import read_whole_root
from foreword.wire.request import ModelConfig

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from foreword.prompt.contributions import ToolSchema
    from foreword.session.blobs import Blobs
    from foreword.session.header import RequestHeader

__all__ = ["MARK", "MEANING", "MarkedHeader", "is_lossy", "lost_text", "lost_tools", "marked_header"]

_PLACEHOLDERS: Final = (NOT_STORED, ERASED, SENSITIVE)
_SHOWN: Final = 8  # hex digits of a digest
_NAMELESS: Final = "gone"

MARK: Final = re.compile(r"\[(?:not stored|erased|sensitive)(?:, (?:changed|(?:salted )?[0-9a-f]{8}))?\]")
"""What stands in the place of something that the log does not hold, or that is not to be shown."""

MEANING: Final = (
    "The same mark stands for the same content, another one for another; but a salted one is new in each session, and "
    "once more when that is resumed, so there nobody can tell. Sizes are those of the marks."
)
"""What a reader of marks has to know."""


@dataclass(frozen=True, slots=True)
class MarkedHeader:
    """A header whose placeholders are marked."""

    header: RequestHeader
    sections: frozenset[int] = frozenset()  # the positions of those that the log does not hold
    tools: frozenset[int] = frozenset()
    config: bool = False  # whether model and settings are not there


def is_lossy(header: RequestHeader) -> bool:
    """Whether placeholders stand in a header, as it was read from a log."""
    return bool(header.in_place or lost_tools(header)) or header.config == config_in_place()


async def marked_header(blobs: Blobs, digest: bytes, header: RequestHeader, erased: AbstractSet[bytes]) -> MarkedHeader:
    """A header with its placeholders marked.

    A tool of which nothing is left is named after its mark, not after its position: that one changes with every tool
    that comes or goes ahead of it, and whoever compares two headers would take others for the same.

    Args:
        blobs: where its tree is.
        digest: of its root.
        header: as it was read, with placeholders.
        erased: the digests of what was erased; all else that is not there was never stored.

    Raises:
        BlobFault: the tree is missing or wrong.
    """
    (sections, tools, *_), (config, *_), salted = await read_whole_root(blobs, digest)
    texts = [
        _marked(text, sections[at], is_salted=at in salted) if at in header.in_place else text
        for at, text in enumerate(header.sections)
    ]
    lost = lost_tools(header)
    schemas = [_marked_tool(tool, tools[at]) if at in lost else tool for at, tool in enumerate(header.tools)]
    is_lost = header.config == config_in_place()
    mark = ERASED if config in erased else NOT_STORED
    told = ModelConfig(mark, config.hex()[:_SHOWN]) if is_lost else header.config
    marked = replace(header, sections=tuple(texts), tools=tuple(schemas), config=told)
    return MarkedHeader(marked, header.in_place, lost, is_lost)


def lost_tools(header: RequestHeader) -> frozenset[int]:
    """The positions of a header's tools that are placeholders."""
    marks = (NOT_STORED, ERASED)
    return frozenset(
        at for at, tool in enumerate(header.tools) if any(tool == tool_in_place(at, mark) for mark in marks)
    )


def lost_text(header: RequestHeader) -> str | None:
    """What stands for figures of a system text of which sections are not there; None if all are."""
    if not header.in_place:
        return None
    return ERASED if any(header.sections[at] == ERASED for at in header.in_place) else NOT_STORED


def _marked_tool(tool: ToolSchema, digest: bytes) -> ToolSchema:
    name = f"{_NAMELESS}_{digest.hex()[:_SHOWN]}"
    return replace(tool, name=name, description=_marked(tool.description, digest))


def _marked(text: str, digest: bytes, *, is_salted: bool = False) -> str:
    """A placeholder, or a text that holds some, with the digest of what it stands for."""
    mark = f"{'salted ' if is_salted else ''}{digest.hex()[:_SHOWN]}"
    told = text
    for each in _PLACEHOLDERS:
        told = told.replace(each, f"{each[:-1]}, {mark}]")
    return told
