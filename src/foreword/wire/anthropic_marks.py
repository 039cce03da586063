"""The marks in a body that tell Anthropic which beginnings of the request to keep (``cache_control``).

A request is read in the order tools, system, messages. Whatever stands before a mark, itself included, is kept, and a
later request that begins with the same bytes pays a fraction for it. So a mark belongs where something ends that comes
again: the tools and the stable head of the system text (in other sessions), all of the system text (in the next step),
the user's last turns (the last one is where the next step goes on, the one before is where this step finds what the
last step had kept). Never more than the server takes, and never on a block without text.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

from foreword.wire.anthropic_messages import text_block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foreword.wire.profiles import MarkPlace, MessagesProfile

__all__ = ["count_marks", "mark_head", "mark_messages", "system_blocks"]

_KEY: Final = "cache_control"


def system_blocks(text: str, stable_head: int) -> list[dict[str, Any]]:
    """The system text as blocks, which make up the text: its stable head and the rest, or all of it.

    None for a blank text. A head or a rest that is blank makes no block of its own.
    """
    head, rest = text[:stable_head], text[stable_head:]
    if head.strip() and rest.strip():
        return [text_block(head), text_block(rest)]
    return [text_block(text)] if text.strip() else []


def mark_head(
    tools: Sequence[dict[str, Any]], system: Sequence[dict[str, Any]], profile: MessagesProfile, most: int
) -> int:
    """Mark the ends of tools and system text.

    Args:
        tools: as they stand in the body.
        system: what `system_blocks` gave.
        profile: where marks are worth most, and how many there are to be.
        most: how many there may be.

    Returns:
        How many there are now.
    """
    ends: dict[MarkPlace, dict[str, Any]] = {}
    if system:
        ends["system"] = system[-1]
    if len(system) > 1:
        ends["stable-head"] = system[0]
    if tools:
        ends["tools"] = tools[-1]
    marked = [ends[place] for place in profile.mark_places if place in ends][: max(min(profile.head_marks, most), 0)]
    for block in marked:
        _mark(block, profile)
    return len(marked)


def mark_messages(turns: Sequence[dict[str, Any]], profile: MessagesProfile, most: int) -> None:
    """Mark the ends of the user's last turns.

    Args:
        turns: those that were made here.
        profile: how many are to be marked.
        most: how many may be.
    """
    own = [turn for turn in reversed(turns) if turn["role"] == "user"]
    ends = (next(filter(_says_something, reversed(turn["content"])), None) for turn in own)
    for block in islice((block for block in ends if block is not None), max(min(profile.message_marks, most), 0)):
        _mark(block, profile)


def count_marks(value: object) -> int:
    """How many marks somebody has put into a JSON value."""
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return (fields.get(_KEY) is not None) + sum(map(count_marks, fields.values()))
    if isinstance(value, list | tuple):
        return sum(map(count_marks, cast("list[object]", value)))
    return 0


def _says_something(block: dict[str, Any]) -> bool:
    return bool(block.get("text") or block.get("content"))


def _mark(block: dict[str, Any], profile: MessagesProfile) -> None:
    block[_KEY] = {"type": "ephemeral"} if profile.lifetime is None else {"type": "ephemeral", "ttl": profile.lifetime}
