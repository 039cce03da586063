"""A request laid out as a provider reads it: one row of blocks, in the order of a cache profile.

    {"model":"openai:gpt-5","tools":[…],"system":"…","messages":[…]}

That JSON, without blanks and with its keys in the profile's order, is what the beginning of a request means here:
whatever two such texts have in common a provider can reuse. A setting that counts stands before its part, under
``tools_settings``, ``system_settings`` or ``messages_settings``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from foreword.explain.subject import PartTool, RequestMessage, Subject
from foreword.jsonvalue import thaw
from foreword.session import RUNTIME_CONTEXT, MessageSource
from foreword.wire.messages import UserMessage
from foreword.wire.request import canonical_json

if TYPE_CHECKING:
    from foreword.explain.profiles import CacheProfile, RequestPart

__all__ = ["Block", "BlockKind", "Layout", "common_prefix"]

BlockKind: TypeAlias = Literal["frame", "model", "setting", "tool", "system"]
T = TypeVar("T", str, bytes)


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a request before its messages. No block of a layout is the beginning of another in its place."""

    kind: BlockKind
    data: bytes
    name: str = ""
    tool: PartTool | None = None


class Layout:
    """A request in the order of a profile.

    Attributes:
        subject: the request.
        profile: whose order it is in.
        head: all before the messages.
        messages: the history; of a live prompt its snapshot, as the message that it is going to be.
    """

    __slots__ = ("head", "messages", "profile", "subject")

    def __init__(self, subject: Subject, profile: CacheProfile, last: Layout | None = None) -> None:
        """Lay a request out.

        Args:
            subject: the request.
            profile: in whose order.
            last: of the request before; what is the same there is taken from it.
        """
        self.subject, self.profile = subject, profile
        is_same = last is not None and last._has_head_of(subject, profile)
        self.head: tuple[Block, ...] = last.head if last is not None and is_same else _head(subject, profile)
        self.messages = subject.messages or _snapshot(subject)

    @property
    def serialised(self) -> bytes:
        """The whole as bytes."""
        told = b",".join(message_bytes(message) for message in self.messages)
        return b"".join((*(block.data for block in self.head), told, b"]}"))

    def _has_head_of(self, subject: Subject, profile: CacheProfile) -> bool:
        mine = self.subject
        return (
            self.profile is profile
            and mine.spans is subject.spans
            and mine.tools is subject.tools
            and mine.config is subject.config
        )


def message_bytes(message: RequestMessage) -> bytes:
    """A message as it stands in a layout."""
    return canonical_json(message.message.to_json())


def common_prefix(one: T, other: T) -> int:
    """With how many characters, or bytes, two texts begin in common."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while low < high:  # comparing slices is many times faster than comparing characters
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


# -- making it ---------------------------------------------------------------------------------------------------------


def _head(subject: Subject, profile: CacheProfile) -> tuple[Block, ...]:
    config = subject.config
    blocks = [Block("model", b'{"model":%s' % _json("" if config is None else str(config)), "model")]
    for part in profile.order:
        blocks += _settings(subject, profile, part)
        if part == "tools":
            blocks += _tools(subject)
        elif part == "system":
            blocks += (Block("frame", b',"system":'), Block("system", _json(subject.text)))
        else:
            blocks.append(Block("frame", b',"messages":['))
    return tuple(blocks)


def _settings(subject: Subject, profile: CacheProfile, part: RequestPart) -> Iterator[Block]:
    given: dict[str, Any] = {} if subject.config is None else dict(subject.config.settings)
    names = [each.name for each in profile.settings if each.before == part and each.name in given]
    for at, name in enumerate(names):
        opener = b',"%s_settings":{' % part.encode() if at == 0 else b","
        closer = b"}" if at == len(names) - 1 else b""
        yield Block("setting", opener + _json(name) + b":" + canonical_json(thaw(given[name])) + closer, name)


def _tools(subject: Subject) -> Iterator[Block]:
    yield Block("frame", b',"tools":[')
    for at, tool in enumerate(subject.tools):
        yield Block("tool", (b"," if at else b"") + tool.text.encode(), tool.name, tool)
    yield Block("frame", b"]")


def _snapshot(subject: Subject) -> tuple[RequestMessage, ...]:
    if not subject.snapshot:
        return ()
    return (RequestMessage(UserMessage(subject.snapshot), source=MessageSource(RUNTIME_CONTEXT, "foreword")),)


def _json(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode()
