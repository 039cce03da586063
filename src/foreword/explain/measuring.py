"""Measuring requests: their bytes and tokens, and what two of them begin with in common.

Consecutive requests share most of what they are. A measurement takes over from the one before whatever is the same, so
measuring a step costs what is new in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from foreword.explain.layout import Layout, common_prefix, message_bytes
from foreword.explain.tokens import message_text

if TYPE_CHECKING:
    from foreword.explain.subject import RequestMessage
    from foreword.explain.tokenizers import Tokenizer

__all__ = ["Common", "Measured", "Prefix", "common_of"]


@dataclass(frozen=True, slots=True)
class Prefix:
    """What a request and the one before it begin with in common."""

    bytes: int  # of the request as the profile lays it out: see `foreword.explain.layout`
    tokens: int
    whole_tokens: int  # up to the end of the last tool, section or message that is the same


@dataclass(frozen=True, slots=True)
class Common:
    """A prefix, and where it ends."""

    prefix: Prefix
    head: int | None  # the first block before the messages that differs; None if none does
    messages: int  # that both begin with


class Measured:
    """A request, measured: how many bytes and tokens its head and its first messages have."""

    def __init__(self, layout: Layout, tokenizer: Tokenizer, last: Measured | None = None) -> None:
        """Measure a request, with what is known of the one before."""
        self.layout, self.tokenizer = layout, tokenizer
        known = last if last is not None and last.tokenizer is tokenizer else None
        self.head_bytes: int
        self.head_tokens: int
        if known is not None and known.layout.head is layout.head:
            self.head_bytes, self.head_tokens = known.head_bytes, known.head_tokens
        else:
            self.head_bytes = sum(len(block.data) for block in layout.head)
            texts = [tool.text for tool in layout.subject.tools]
            self.head_tokens = sum(len(tokenizer.sizes(text)) for text in (*texts, layout.subject.text))
        start = 0 if known is None else _same_messages(known.layout.messages, layout.messages)
        self.bytes: list[int] = [0] if known is None else known.bytes[: start + 1]  # of the first so many messages
        self.tokens: list[int] = [0] if known is None else known.tokens[: start + 1]
        for message in layout.messages[start:]:
            self.bytes.append(self.bytes[-1] + len(message_bytes(message)) + (len(self.bytes) > 1))
            self.tokens.append(self.tokens[-1] + len(tokenizer.sizes(message_text(message.message))))

    @property
    def whole_tokens(self) -> int:
        """Tokens of the whole."""
        return self.head_tokens + self.tokens[-1]

    @property
    def whole_bytes(self) -> int:
        """Bytes of the whole, as laid out."""
        return self.head_bytes + self.bytes[-1] + len(b"]}")


def _same_messages(old: Sequence[RequestMessage], new: Sequence[RequestMessage]) -> int:
    """With how many messages two histories begin in common."""
    size = min(len(old), len(new))
    if tuple(old[:size]) == tuple(new[:size]):  # by identity, as between the steps of a session
        return size
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (one, other) in pairs if not one.says_as(other)), size)


def common_of(last: Measured, now: Measured) -> Common:
    """What two requests begin with in common; they are laid out by the same profile."""
    old, new = last.layout, now.layout
    if old.head is not new.head:
        for at, (before, after) in enumerate(zip(old.head, new.head, strict=False)):
            if before.data != after.data:
                return Common(_head_prefix(last, now, at), at, 0)
    same = _same_messages(old.messages, new.messages)
    size = now.head_bytes + now.bytes[same]
    tokens = whole = now.head_tokens + now.tokens[same]
    if same < len(old.messages) and same < len(new.messages):
        texts = [message_text(layout.messages[same].message) for layout in (old, new)]
        tokens += _tokens_within(now.tokenizer, texts[1], common_prefix(texts[0].encode(), texts[1].encode()))
    rests = [_rest(measured, same) for measured in (last, now)]
    return Common(Prefix(size + common_prefix(*rests), tokens, whole), None, same)


def _rest(measured: Measured, same: int) -> bytes:
    """What follows so many messages: enough of it to find where two requests part."""
    messages = measured.layout.messages
    if same >= len(messages):
        return b"]}"
    return (b"," if same else b"") + message_bytes(messages[same])


def _head_prefix(last: Measured, now: Measured, at: int) -> Prefix:
    """The prefix of two requests whose heads differ from a block on."""
    old, new = last.layout, now.layout
    size = sum(len(block.data) for block in new.head[:at])
    size += common_prefix(old.head[at].data, new.head[at].data)
    sizes = now.tokenizer.sizes
    tokens = sum(len(sizes(_counted(new, number))) for number in range(at))
    whole = tokens
    before, after = old.head[at], new.head[at]
    if before.kind == after.kind == "system":
        chars = common_prefix(old.subject.text, new.subject.text)
        text = new.subject.text
        tokens += _tokens_within(now.tokenizer, text, len(text[:chars].encode()))
        last_end = max((part.end for part in new.subject.sections if part.end <= chars), default=0)
        whole += _tokens_within(now.tokenizer, text, len(text[:last_end].encode()))
    elif before.tool is not None and after.tool is not None:
        texts = [block.tool.text.encode() for block in (before, after) if block.tool is not None]
        tokens += _tokens_within(now.tokenizer, texts[1].decode(), common_prefix(*texts))
    return Prefix(size, tokens, whole)


def _counted(layout: Layout, number: int) -> str:
    """What is counted of a block before the messages."""
    block = layout.head[number]
    if block.tool is not None:
        return block.tool.text
    return layout.subject.text if block.kind == "system" else ""


def _tokens_within(tokenizer: Tokenizer, text: str, size: int) -> int:
    """How many tokens of a text lie within its first so many bytes."""
    at = tokens = 0
    for each in tokenizer.sizes(text):
        at += each
        if at > size:
            break
        tokens += 1
    return tokens
