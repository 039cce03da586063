"""The first thing that broke the beginning of a request: what it is, whose, where in it, and what it was before.

Two layouts are given that differ. The difference is found by bytes; whose it is, by what the bytes belong to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from foreword.explain.layout import common_prefix
from foreword.explain.listing import Named, keyed, moved_keys
from foreword.explain.provenance import origin_to_json
from foreword.explain.subject import Part, PartKind
from foreword.explain.tokens import message_text
from foreword.explain.tool_keys import first_changed_key
from foreword.explain.unstored import MARK
from foreword.prompt.origin import Origin

if TYPE_CHECKING:
    from foreword.explain.layout import Block, Layout
    from foreword.jsonvalue import JsonValue
    from foreword.prompt.spans import Span, Spans

__all__ = ["Break", "BreakAction", "Cause", "excerpts", "first_break", "lifetime_passed"]

Cause: TypeAlias = Literal["model", "setting", "tool", "section", "variable", "context", "history", "lifetime"]
BreakAction: TypeAlias = Literal["added", "removed", "moved", "changed", "passed"]

_LONGEST = 60  # characters of an excerpt

N = TypeVar("N", bound=Named)


@dataclass(frozen=True, slots=True)
class Break:
    """What broke a beginning that could have been reused.

    Attributes:
        cause: what kind of thing it is.
        name: of the tool, section, variable, context or setting; of a message the number, from 0.
        action: what became of it.
        origin: whose it is; None for what is nobody's: the model, the history, a lifetime.
        inside: of a variable, the section or context that it stands in.
        inside_kind: which of the two it is.
        key: of a tool whose schema is as it was, which of its further keys is not, as ``strict``; old and new are its
            values as JSON.
        at: code points from the beginning of that section, context or tool to the difference.
        old: what stood there before, cut to what differs; empty if nothing did.
        new: what stands there now.
    """

    cause: Cause
    name: str
    action: BreakAction
    origin: Origin | None = None
    inside: str | None = None
    at: int | None = None
    old: str = ""
    new: str = ""
    inside_kind: PartKind | None = None
    key: str | None = None

    @property
    def owner(self) -> str | None:
        """The plugin that broke it."""
        return None if self.origin is None else self.origin.owner

    def to_json(self) -> dict[str, JsonValue]:
        """The break as JSON."""
        nobody: dict[str, JsonValue] = dict.fromkeys(origin_to_json(Origin("")))
        return {
            "cause": self.cause,
            "name": self.name,
            "action": self.action,
            **(nobody if self.origin is None else origin_to_json(self.origin)),
            "inside": self.inside,
            "inside_kind": self.inside_kind,
            "key": self.key,
            "at": self.at,
            "old": self.old,
            "new": self.new,
        }


def first_break(old: Layout, new: Layout, head: int | None, message: int) -> Break | None:
    """What broke the beginning.

    Args:
        old: the request before.
        new: the request after, in the order of the same profile.
        head: the first block before the messages that differs; None if none does.
        message: how many messages both begin with.

    Returns:
        None if one request is the beginning of the other: then nothing was lost.
    """
    if head is not None:
        return _in_head(old, new, old.head[head], new.head[head])
    if message >= min(len(old.messages), len(new.messages)):
        return None
    return _in_messages(old, new, message)


def lifetime_passed(seconds: int, lifetime: int) -> Break:
    """The break that nobody made: too much time passed."""
    return Break("lifetime", f"{lifetime} s", "passed", old=f"{lifetime} s", new=f"{seconds} s")


def excerpts(old: str, new: str) -> tuple[str, str]:
    """Of two texts what differs, short enough to be read: cut to whole words, long ones in the middle."""
    head = common_prefix(old, new)
    tail = common_prefix(old[head:][::-1], new[head:][::-1])
    before, after = _words(old, head, len(old) - tail), _words(new, head, len(new) - tail)
    return _short(before), _short(after)


# -- before the messages -----------------------------------------------------------------------------------------------


def _in_head(old: Layout, new: Layout, before: Block, after: Block) -> Break:
    if "model" in (before.kind, after.kind):
        was, now = _model(old), _model(new)
        return Break("model", now, "changed", old=was, new=now)
    if "setting" in (before.kind, after.kind):
        return _setting(old, new, before, after)
    if "tool" in (before.kind, after.kind):
        return _tool(old, new, before, after)
    return _in_text(old.subject.spans, new.subject.spans, old.subject.sections, new.subject.sections, "section")


def _model(layout: Layout) -> str:
    config = layout.subject.config
    return "" if config is None else str(config)


def _setting(old: Layout, new: Layout, before: Block, after: Block) -> Break:
    name = after.name if after.kind == "setting" else before.name
    was, now = _setting_value(old, name), _setting_value(new, name)
    action: BreakAction = "added" if not was else "removed" if not now else "changed"
    return Break("setting", name, action, old=was, new=now)


def _setting_value(layout: Layout, name: str) -> str:
    config = layout.subject.config
    return "" if config is None or name not in config.settings else _short(str(config.settings[name]))


def _tool(old: Layout, new: Layout, before: Block, after: Block) -> Break:
    """The tools differ first where these two blocks stand; one of the two may be what follows the tools."""
    was, now = before.tool, after.tool
    if was is not None and now is not None and was.name == now.name:
        key, at = first_changed_key(was, now), common_prefix(was.text, now.text)
        told = excerpts(was.text, now.text) if key is None else excerpts(key.old, key.new)
        return Break("tool", now.name, "changed", now.origin, None, at, *told, key=None if key is None else key.name)
    culprit, action = _who_moved(old.subject.tools, new.subject.tools, was, now)
    return Break("tool", culprit.name, action, culprit.origin, None, 0, *_came_or_went(action, culprit.text))


def _who_moved(old: Sequence[N], new: Sequence[N], was: N | None, now: N | None) -> tuple[N, BreakAction]:
    """Which of two things that meet at one place is to blame that they do, and what became of it."""
    keys = dict(zip(keyed(old), old, strict=True)), dict(zip(keyed(new), new, strict=True))
    missing = _key(keys[0], was)
    if was is not None and missing not in keys[1]:
        return was, "removed"
    extra = _key(keys[1], now)
    if now is not None and extra not in keys[0]:
        return now, "added"
    common = [key for key in keys[0] if key in keys[1]], [key for key in keys[1] if key in keys[0]]
    moved = moved_keys(*common)
    if now is None or (was is not None and missing in moved and extra not in moved):
        assert was is not None  # noqa: S101 - one of the two is there
        return was, "moved"
    return now, "moved"


def _key(things: dict[tuple[str, int], N], wanted: N | None) -> tuple[str, int] | None:
    return next((key for key, each in things.items() if each is wanted), None)


def _came_or_went(action: BreakAction, text: str) -> tuple[str, str]:
    shown = _short(text)
    return ("" if action == "added" else shown, "" if action == "removed" else shown)


# -- in a text of sections or contexts ---------------------------------------------------------------------------------


def _in_text(old: Spans, new: Spans, before: Sequence[Part], after: Sequence[Part], kind: PartKind) -> Break:
    """What broke one of the two texts that are made of parts."""
    at = common_prefix(old.text, new.text)
    was, now = _part_at(before, at), _part_at(after, at)
    if was is not None and now is not None and was.name == now.name and was.text != now.text:
        return _in_part(old, new, was, now, kind)
    if was is not None and now is not None and _is_shifted(before, after, was, now):
        # What stands there is the same in both, and only what stands before it pushed it there.
        was, now = _first_differing(before, after)
        if was is not None and now is not None and was.name == now.name:
            return _in_part(old, new, was, now, kind)
    if was is None and now is None:
        return Break(kind, "", "changed", None, None, at, *excerpts(old.text, new.text))
    culprit, action = _who_moved(before, after, was, now)
    return Break(kind, culprit.name, action, culprit.origin, None, 0, *_came_or_went(action, culprit.text))


def _part_at(parts: Sequence[Part], at: int) -> Part | None:
    """The part that a position belongs to; the blank line before a part is its own."""
    return next((part for part in parts if at < part.end), None)


def _is_shifted(before: Sequence[Part], after: Sequence[Part], was: Part, now: Part) -> bool:
    """Whether two parts that meet at one place are one and the same, in other places."""
    return was.name == now.name and was.text == now.text and _first_differing(before, after) != (None, None)


def _first_differing(before: Sequence[Part], after: Sequence[Part]) -> tuple[Part | None, Part | None]:
    """The first pair of parts, place by place, that is not the same."""
    for at in range(max(len(before), len(after))):
        was = before[at] if at < len(before) else None
        now = after[at] if at < len(after) else None
        if was is None or now is None or (was.name, was.text) != (now.name, now.text):
            return was, now
    return None, None


def _in_part(old: Spans, new: Spans, was: Part, now: Part, kind: PartKind) -> Break:
    """What changed inside a section or context: a variable's value, or its own text."""
    at = common_prefix(was.text, now.text)
    variable = _changed_variable(old.text, new.text, was, now, at)
    if variable is not None:
        before, after = variable
        values = (_value(old.text, before), _value(new.text, after))
        start = after.start - now.start if values[1] else before.start - was.start
        offset = start + common_prefix(*values)
        name, origin = after.variable or "", after.origin
        return Break("variable", name, "changed", origin, now.name, offset, *excerpts(*values), kind)
    return Break(kind, now.name, "changed", now.origin, None, at, *excerpts(was.text, now.text))


def _changed_variable(old: str, new: str, was: Part, now: Part, at: int) -> tuple[Span, Span] | None:
    """The variable whose other value explains a difference: the first in which the two templates differ at all."""
    for before, after in zip(was.spans, now.spans, strict=False):
        if _value(old, before) == _value(new, after) and before.variable == after.variable:
            continue
        is_value = before.variable is not None and before.variable == after.variable
        return (before, after) if is_value and before.start - was.start <= at else None
    return None


def _value(text: str, span: Span) -> str:
    return text[span.start : span.end]


# -- in the history ----------------------------------------------------------------------------------------------------


def _in_messages(old: Layout, new: Layout, at: int) -> Break:
    was, now = old.messages[at], new.messages[at]
    if was.is_snapshot and now.is_snapshot and was.seq is None:
        return _in_snapshot(old, new)
    texts = message_text(was.message), message_text(now.message)
    # Both may be placeholders.
    told = excerpts(*texts) if texts[0] != texts[1] else (_short(texts[0]), _short(texts[1]))
    return Break("history", str(at), "changed", None, None, None, *told)


def _in_snapshot(old: Layout, new: Layout) -> Break:
    """Of live prompts the runtime contexts are the last message, and those that changed are to be named."""
    mine, others = old.subject, new.subject
    return _in_text(mine.snapshot_spans, others.snapshot_spans, mine.contexts, others.contexts, "context")


# -- excerpts ----------------------------------------------------------------------------------------------------------


def _words(text: str, start: int, end: int) -> str:
    """A stretch of a text, widened to whole words, numbers, and marks of what the log does not hold."""
    while start > 0 and start < len(text) and text[start - 1].isalnum() and text[start].isalnum():
        start -= 1
    while 0 < end < len(text) and text[end - 1].isalnum() and text[end].isalnum():
        end += 1
    mark = next((each.span() for each in MARK.finditer(text) if each.start() <= start and end <= each.end()), None)
    return text[start:end] if mark is None else text[slice(*mark)]


def _short(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]}…{text[-half:]}"
