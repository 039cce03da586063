"""The request header: all of a request that is not history, and how the log keeps it.

It compares by the bytes that a provider gets. In the log it is a tree of shared blobs: the configuration, the texts of
the sections, the tools, each stored once in the whole store. Where one of a hundred sections changes, that text and the
three nodes above it are new.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec

from foreword.prompt.contributions import ToolSchema
from foreword.prompt.spans import SEPARATOR
from foreword.session.blobs import NOTHING, BlobFault, add_blob, utf8
from foreword.session.placeholders import ERASED, erased_config, erased_tool
from foreword.session.records import ConfigContent, StableContent, ToolSchemaContent
from foreword.session.tree import read_root, write_root
from foreword.wire.request import ModelConfig, ModelRequest, canonical_json, tool_to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from foreword.prompt.rendering import Rendering
    from foreword.session.blobs import Blobs, Gone
    from foreword.session.events import HeaderPart
    from foreword.wire.messages import Message

T = TypeVar("T")

__all__ = ["RequestHeader", "WrittenHeader", "header_digests", "read_header", "write_header"]

_ERASED_CONFIG, _ERASED_TOOL = erased_config(), erased_tool(0)
_config = msgspec.json.Decoder(ConfigContent)
_tool = msgspec.json.Decoder(ToolSchemaContent)
_stable = msgspec.json.Decoder(StableContent)


@dataclass(frozen=True, slots=True, eq=False)
class RequestHeader:
    """Configuration, system text and tools of a request.

    Two headers are equal if a provider gets the same bytes from them: texts to the letter, the keys of schemas and
    settings in the same order.
    """

    config: ModelConfig
    sections: tuple[str, ...]  # rendered, none of them empty
    tools: tuple[ToolSchema, ...]
    stable_head: int = 0  # characters of the system text, from its start, that are the same in every step

    @classmethod
    def of(cls, rendering: Rendering, config: ModelConfig) -> RequestHeader:
        """The header of what an assembly rendered to."""
        return cls(config, rendering.sections, rendering.tools, rendering.stable_head)

    @property
    def system(self) -> str:
        """The system text; empty if there is none."""
        return SEPARATOR.join(self.sections)

    def request(self, messages: tuple[Message, ...]) -> ModelRequest:
        """The request of this header with a history."""
        return ModelRequest(self.system, self.tools, messages, self.config, stable_head=self.stable_head)

    def differs_in(self, other: RequestHeader) -> tuple[HeaderPart, ...]:
        """The parts that a provider gets other bytes of."""
        same: dict[HeaderPart, bool] = {
            "config": _same_config(self.config, other.config),
            "sections": (self.sections, self.stable_head) == (other.sections, other.stable_head),
            "tools": len(self.tools) == len(other.tools) and all(map(_same_tool, self.tools, other.tools)),
        }
        return tuple(part for part, is_same in same.items() if not is_same)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RequestHeader):
            return NotImplemented
        return not self.differs_in(other)

    def __hash__(self) -> int:
        return hash((self.sections, self.config.provider, self.config.model, len(self.tools)))


def _same_tool(one: ToolSchema, other: ToolSchema) -> bool:
    """Equal dicts may differ in the order of their keys, so it is the bytes that count."""
    return one is other or (one == other and _tool_bytes(one) == _tool_bytes(other))


def _same_config(one: ModelConfig, other: ModelConfig) -> bool:
    return one is other or (one == other and _config_bytes(one) == _config_bytes(other))


def _tool_bytes(tool: ToolSchema) -> bytes:
    if not isinstance(cast("object", tool), ToolSchema):
        raise TypeError(f"{tool!r} is no ToolSchema")
    return canonical_json(cast("object", tool_to_json(tool)))


def _config_bytes(config: ModelConfig) -> bytes:
    return canonical_json(cast("object", config.to_json()))


def _stable_bytes(header: RequestHeader) -> bytes:
    if not 0 < header.stable_head <= len(header.system):
        raise ValueError(f"its stable head is {header.stable_head} of {len(header.system)} characters")
    return canonical_json({"head": header.stable_head})


# -- in the log --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WrittenHeader:
    """A header and the digests of its parts, so that the next one need not take again those that are equal."""

    header: RequestHeader
    digest: bytes
    sections: tuple[bytes, ...]  # empty for one that was erased: what stands in its place has to be stored
    tools: tuple[bytes, ...]
    config: bytes
    erased: Mapping[bytes, str] = field(default_factory=dict[bytes, str])  # what is gone of it, and where, in words
    blobs: dict[bytes, bytes] = field(
        default_factory=dict[bytes, bytes], compare=False
    )  # what it added to the last one

    def without(self, blobs: AbstractSet[bytes]) -> WrittenHeader:
        """This header with placeholders for the parts that these blobs hold."""
        places = self._places()
        gone = {digest: place for digest, place in places.items() if digest in blobs}
        if not gone:
            return self
        header = self.header
        texts = zip(header.sections, self.sections, strict=True)
        schemas = enumerate(zip(header.tools, self.tools, strict=True))
        left = RequestHeader(
            erased_config() if self.config in gone else header.config,
            tuple(ERASED if digest in gone else text for text, digest in texts),
            tuple(erased_tool(at) if digest in gone else tool for at, (tool, digest) in schemas),
            0 if gone.keys() & set(self.sections) else header.stable_head,
        )
        sections, tools = (
            tuple(b"" if each in gone else each for each in part) for part in (self.sections, self.tools)
        )
        return WrittenHeader(left, self.digest, sections, tools, self.config, {**self.erased, **gone})

    def _places(self) -> dict[bytes, str]:
        """Where its parts are, in words, by their digests."""
        sections = {digest: f"section {number}" for number, digest in enumerate(self.sections, 1)}
        return {
            **sections,
            **{digest: f"tool {number}" for number, digest in enumerate(self.tools, 1)},
            self.config: "config",
        }


def write_header(header: RequestHeader, last: WrittenHeader | None = None) -> WrittenHeader:
    """The blobs and the digest of a header; those that the last one has already are left out.

    Raises:
        TypeError: it holds something of a wrong type.
        ValueError: it holds what cannot be stored.
    """
    known_texts = {} if last is None else dict(zip(last.header.sections, last.sections, strict=True))
    known_tools = {} if last is None else {id(tool): at for tool, at in zip(last.header.tools, last.tools, strict=True)}
    blobs: dict[bytes, bytes] = {}
    sections = tuple(known_texts.get(text) or add_blob(blobs, utf8(text)) for text in header.sections)
    tools = tuple(known_tools.get(id(tool)) or add_blob(blobs, _tool_bytes(tool)) for tool in header.tools)
    singles = [add_blob(blobs, _config_bytes(header.config))]
    if header.stable_head:
        singles.append(add_blob(blobs, _stable_bytes(header)))
    return WrittenHeader(
        header, write_root(blobs, (sections, tools), singles), sections, tools, singles[0], blobs=blobs
    )


async def read_header(blobs: Blobs, digest: bytes, gone: Gone = NOTHING) -> WrittenHeader:
    """A header from the log.

    Args:
        blobs: where from.
        digest: of the header.
        gone: what may be missing; placeholders stand in its place.

    Raises:
        BlobFault: a part of it is missing or wrong.
    """
    lists, singles = await read_root(blobs, digest)
    if len(lists) != 2 or len(singles) not in (1, 2):
        raise BlobFault(digest, "it is no header")
    (sections, tools), (config, *stable) = lists, singles
    contents = await blobs.read_what_is_left((config, *stable, *sections, *tools), gone)
    header = RequestHeader(
        _read_config(config, contents[config]),
        tuple(_text(each, contents[each]) for each in sections),
        tuple(_read_tool(each, contents[each]) for each in tools),
        *(_decoded(_stable, each, contents[each] or b"").head for each in stable),
    )
    written = WrittenHeader(header, digest, tuple(sections), tuple(tools), config)
    return written.without({each for each, content in contents.items() if content is None})


def header_digests(lists: Sequence[Sequence[bytes]], singles: Sequence[bytes]) -> dict[bytes, str]:
    """The blobs with content behind a header, as `read_root` gives them, and what each of them is."""
    sections, tools = lists
    return {**dict.fromkeys(sections, "section"), **dict.fromkeys(tools, "tool"), singles[0]: "config"}


def _read_config(digest: bytes, body: bytes | None) -> ModelConfig:
    if body is None:
        return _ERASED_CONFIG
    told = _decoded(_config, digest, body)
    return ModelConfig(told.provider, told.model, told.settings)


def _read_tool(digest: bytes, body: bytes | None) -> ToolSchema:
    if body is None:
        return _ERASED_TOOL
    told = _decoded(_tool, digest, body)
    return ToolSchema(told.name, told.description, told.parameters)


def _decoded(decoder: msgspec.json.Decoder[T], digest: bytes, body: bytes) -> T:
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise BlobFault(digest, f"it is no part of a header: {fault}") from None


def _text(digest: bytes, body: bytes | None) -> str:
    if body is None:
        return ERASED
    try:
        return body.decode()
    except UnicodeDecodeError as fault:
        raise BlobFault(digest, f"it is no text: {fault}") from None
