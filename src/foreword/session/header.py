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
from foreword.prompt.sensitive import SENSITIVE
from foreword.prompt.spans import SEPARATOR
from foreword.session.blobs import NOTHING, BlobFault, add_blob, utf8
from foreword.session.digests import SALT_SIZE, private_digest
from foreword.session.placeholders import NOT_STORED, config_in_place, tool_in_place
from foreword.session.records import ConfigContent, StableContent, ToolSchemaContent
from foreword.session.tree import read_whole_root, write_root
from foreword.wire.request import ModelConfig, ModelRequest, canonical_json, tool_to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from foreword.prompt.rendering import Rendering
    from foreword.session.blobs import Blobs, Gone
    from foreword.session.events import HeaderPart
    from foreword.wire.messages import Message

T = TypeVar("T")

__all__ = ["RequestHeader", "WrittenHeader", "header_digests", "read_header", "write_header"]

_SOME_CONFIG, _SOME_TOOL = config_in_place(), tool_in_place(0, "")  # until `without` puts the right ones there
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
    # How the sensitive sections read to whoever is not to see them, by position. No part of what is compared.
    masks: Mapping[int, str] = field(default_factory=dict[int, str], repr=False)
    in_place: frozenset[int] = field(default=frozenset(), repr=False)  # positions of sections that stand for lost ones

    @classmethod
    def of(cls, rendering: Rendering, config: ModelConfig) -> RequestHeader:
        """The header of what an assembly rendered to."""
        return cls(config, rendering.sections, rendering.tools, rendering.stable_head, rendering.masks)

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
            "sections": _same_text(self, other),
            "tools": _same_tools(self.tools, other.tools),
        }
        return tuple(part for part, is_same in same.items() if not is_same)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RequestHeader):
            return NotImplemented
        return (
            _same_text(self, other) and _same_tools(self.tools, other.tools) and _same_config(self.config, other.config)
        )

    def __hash__(self) -> int:
        return hash((self.sections, self.config.provider, self.config.model, len(self.tools)))


def _same_text(one: RequestHeader, other: RequestHeader) -> bool:
    sections = one.sections is other.sections or one.sections == other.sections
    return sections and one.stable_head == other.stable_head


def _same_tools(one: tuple[ToolSchema, ...], other: tuple[ToolSchema, ...]) -> bool:
    return one is other or (len(one) == len(other) and all(map(_same_tool, one, other)))


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
    sections: tuple[bytes, ...]  # empty for one that is gone: what stands in its place has to be stored
    tools: tuple[bytes, ...]
    config: bytes
    gone: Mapping[bytes, str] = field(default_factory=dict[bytes, str])  # where its parts were that are gone, in words
    # What it added to the last one: shared blobs, private ones with their salts, and which of them are content.
    blobs: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes], compare=False)
    salted: dict[bytes, tuple[bytes, bytes]] = field(default_factory=dict[bytes, tuple[bytes, bytes]], compare=False)
    contents: frozenset[bytes] = field(default=frozenset(), compare=False)

    def without(self, marks: Mapping[bytes, str]) -> WrittenHeader:
        """This header with placeholders for the parts that these blobs hold; given the text that marks each."""
        places = self._places()
        gone = {digest: place for digest, place in places.items() if digest in marks}
        if not gone:
            return self
        header = self.header
        left = RequestHeader(
            config_in_place() if self.config in gone else header.config,
            tuple(self._text(at, marks) for at in range(len(header.sections))),
            tuple(
                tool_in_place(at, marks[digest]) if digest in gone else tool
                for at, (tool, digest) in enumerate(zip(header.tools, self.tools, strict=True))
            ),
            0 if gone.keys() & set(self.sections) else header.stable_head,
            header.masks,
            header.in_place.union(at for at, digest in enumerate(self.sections) if digest in gone),
        )
        sections, tools = (
            tuple(b"" if each in gone else each for each in part) for part in (self.sections, self.tools)
        )
        return WrittenHeader(left, self.digest, sections, tools, self.config, {**self.gone, **gone})

    def _text(self, at: int, marks: Mapping[bytes, str]) -> str:
        """A section, or what stands for it; for one that was not to be stored, how it reads masked."""
        text, mark = self.header.sections[at], marks.get(self.sections[at])
        if mark is None:
            return text
        return self.header.masks.get(at, mark) if mark == NOT_STORED else mark

    def _places(self) -> dict[bytes, str]:
        """Where its parts are, in words, by their digests."""
        sections = {digest: f"section {number}" for number, digest in enumerate(self.sections, 1)}
        tools = {digest: f"tool {number}" for number, digest in enumerate(self.tools, 1)}
        return {**sections, **tools, self.config: "config"}


def write_header(header: RequestHeader, last: WrittenHeader | None, entropy: Callable[[int], bytes]) -> WrittenHeader:
    """The blobs and the digest of a header; those that the last one has already are left out.

    Args:
        header: to be written.
        last: the one before it.
        entropy: makes salts; sensitive sections are private.

    Raises:
        TypeError: it holds something of a wrong type.
        ValueError: it holds what cannot be stored.
    """
    known_texts = {} if last is None else _known_texts(last)
    known_tools = {} if last is None else {id(tool): at for tool, at in zip(last.header.tools, last.tools, strict=True)}
    blobs: dict[bytes, bytes] = {}
    salted: dict[bytes, tuple[bytes, bytes]] = {}

    def section(at: int, text: str) -> bytes:
        private = at in header.masks
        known = known_texts.get((text, private))
        if known or not private:
            return known or add_blob(blobs, utf8(text))
        salt, body = entropy(SALT_SIZE), utf8(text)
        digest = private_digest(salt, body)
        salted[digest] = salt, body
        return digest

    sections = tuple(section(at, text) for at, text in enumerate(header.sections))
    tools = tuple(known_tools.get(id(tool)) or add_blob(blobs, _tool_bytes(tool)) for tool in header.tools)
    lists = [sections, tools]
    if header.masks:
        lists.append(tuple(add_blob(blobs, utf8(header.masks[at])) for at in sorted(header.masks)))
    singles = [add_blob(blobs, _config_bytes(header.config))]
    contents = frozenset(blobs)
    if header.stable_head:
        singles.append(add_blob(blobs, _stable_bytes(header)))
    root = write_root(blobs, lists, singles, sorted(header.masks))
    return WrittenHeader(header, root, sections, tools, singles[0], blobs=blobs, salted=salted, contents=contents)


def _known_texts(last: WrittenHeader) -> dict[tuple[str, bool], bytes]:
    """The digests of a header's sections, by their texts and whether they are private."""
    pairs = enumerate(zip(last.header.sections, last.sections, strict=True))
    return {(text, at in last.header.masks): digest for at, (text, digest) in pairs}


async def read_header(blobs: Blobs, digest: bytes, gone: Gone = NOTHING) -> WrittenHeader:
    """A header from the log.

    Args:
        blobs: where from.
        digest: of the header.
        gone: what may be missing; placeholders stand in its place.

    Raises:
        BlobFault: a part of it is missing or wrong.
    """
    lists, singles, positions = await read_whole_root(blobs, digest)
    (sections, tools, *masks), (config, *stable) = _parts(digest, lists, singles, positions)
    shown = masks[0] if masks else []
    contents = await blobs.read_what_is_left((config, *stable, *sections, *tools, *shown), gone)
    masked = [_text(each, contents[each]) or SENSITIVE for each in shown]
    header = RequestHeader(
        _read_config(config, contents[config]),
        tuple(_text(each, contents[each]) for each in sections),
        tuple(_read_tool(each, contents[each]) for each in tools),
        next((_decoded(_stable, each, contents[each] or b"").head for each in stable), 0),
        dict(zip(positions, masked, strict=True)),
    )
    written = WrittenHeader(header, digest, tuple(sections), tuple(tools), config)
    return written.without({each: gone.mark(each) for each, content in contents.items() if content is None})


def _parts(
    digest: bytes, lists: list[list[bytes]], singles: list[bytes], positions: Sequence[int]
) -> tuple[list[list[bytes]], list[bytes]]:
    """The lists and single digests of a root, which must be those of a header."""
    masked = len(lists[2]) if len(lists) == 3 else 0
    sized = len(lists) in (2, 3) and len(singles) in (1, 2) and masked == len(positions)
    if not sized or any(at >= len(lists[0]) for at in positions):
        raise BlobFault(digest, "it is no header")
    return lists, singles


def header_digests(lists: Sequence[Sequence[bytes]], singles: Sequence[bytes]) -> dict[bytes, str]:
    """The blobs with content behind a header, as `read_root` gives them, and what each of them is."""
    sections, tools, *masks = lists
    texts = dict.fromkeys((*sections, *(each for shown in masks for each in shown)), "section")
    return {**texts, **dict.fromkeys(tools, "tool"), singles[0]: "config"}


def _read_config(digest: bytes, body: bytes | None) -> ModelConfig:
    if body is None:
        return _SOME_CONFIG
    told = _decoded(_config, digest, body)
    return ModelConfig(told.provider, told.model, told.settings)


def _read_tool(digest: bytes, body: bytes | None) -> ToolSchema:
    if body is None:
        return _SOME_TOOL
    told = _decoded(_tool, digest, body)
    return ToolSchema(told.name, told.description, told.parameters)


def _decoded(decoder: msgspec.json.Decoder[T], digest: bytes, body: bytes) -> T:
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as fault:
        raise BlobFault(digest, f"it is no part of a header: {fault}") from None


def _text(digest: bytes, body: bytes | None) -> str:
    if body is None:
        return ""
    try:
        return body.decode()
    except UnicodeDecodeError as fault:
        raise BlobFault(digest, f"it is no text: {fault}") from None
