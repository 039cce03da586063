"""What differs between two prompts: sections, contexts, variables, tools, model and history, each with its owner.

A diff holds enough to be applied: `Diff.apply` makes the content of the new prompt from the old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, cast

from foreword.errors import DiffMismatchError
from foreword.explain.listing import Edit, applied, edits
from foreword.explain.masking import masked_pair
from foreword.explain.provenance import origin_to_json
from foreword.explain.subject import Part, PartTool, Variable
from foreword.explain.tool_keys import KeyChange, changed_keys
from foreword.explain.words import Piece, word_diff
from foreword.wire.request import canonical_json

if TYPE_CHECKING:
    from foreword.explain.subject import RequestMessage, Subject
    from foreword.jsonvalue import JsonValue
    from foreword.prompt.origin import Origin
    from foreword.wire.messages import Message
    from foreword.wire.request import ModelConfig

__all__ = ["Action", "Change", "ChangeKind", "Content", "Diff", "HistoryChange", "compared", "diff_of"]

ChangeKind: TypeAlias = Literal["section", "context", "variable", "tool"]
Action: TypeAlias = Literal[
    "added", "removed", "now used", "no longer used", "moved", "changed", "moved and changed", "taken over"
]
"""What became of something; stable words.

``now used``, ``no longer used``: of a variable, whose value came into the prompt or went out of it; whether it is
registered there, too, is another question. ``taken over``: the text is the same, and somebody else's, or of another
version.
"""


class _Owned(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def origin(self) -> Origin: ...


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one section, context, variable or tool."""

    kind: ChangeKind
    edit: Edit[Part] | Edit[PartTool] | Edit[Variable]
    words: tuple[Piece, ...] = ()  # of one that changed, what in its text did

    @property
    def name(self) -> str:
        """What it is called."""
        return self._one.name

    @property
    def origin(self) -> Origin:
        """Whose it is; of one that went, whose it was."""
        return self._one.origin

    @property
    def owner(self) -> str:
        """The plugin whose it is."""
        return self.origin.owner

    @property
    def old_owner(self) -> str | None:
        """Whose it was before, if that was somebody else."""
        old = cast("_Owned | None", self.edit.old)
        return None if old is None or old.origin.owner == self.owner else old.origin.owner

    @property
    def action(self) -> Action:
        """What became of it, in words."""
        edit = self.edit
        if edit.old is None:
            return "now used" if self.kind == "variable" else "added"
        if edit.new is None:
            return "no longer used" if self.kind == "variable" else "removed"
        if edit.is_moved:
            return "moved and changed" if self.words else "moved"
        return "changed" if self.words else "taken over"

    @property
    def is_whole(self) -> bool:
        """Whether it came or went as a whole."""
        return self.edit.old is None or self.edit.new is None

    @property
    def keys(self) -> tuple[KeyChange, ...]:
        """Of a tool that changed, what became of the keys that it carries behind its schema."""
        old, new = self.edit.old, self.edit.new
        return changed_keys(old, new) if isinstance(old, PartTool) and isinstance(new, PartTool) else ()

    @property
    def old(self) -> str:
        """Its text before; of a tool all of it as JSON; empty for one that came."""
        return "" if self.edit.old is None else _text(self.edit.old)

    @property
    def new(self) -> str:
        """Its text after; empty for one that went."""
        return "" if self.edit.new is None else _text(self.edit.new)

    def to_json(self) -> dict[str, JsonValue]:
        """The change as JSON."""
        return {
            "kind": self.kind,
            "name": self.name,
            "action": self.action,
            **origin_to_json(self.origin),
            "old_owner": self.old_owner,
            "old_at": self.edit.old_at,
            "new_at": self.edit.new_at,
            "old": None if self.edit.old is None else self.old,
            "new": None if self.edit.new is None else self.new,
            "words": [piece.to_json() for piece in self.words],
            "keys": [key.to_json() for key in self.keys],
        }

    @property
    def _one(self) -> _Owned:
        one = self.edit.old if self.edit.new is None else self.edit.new
        assert one is not None  # noqa: S101 - an edit has one of the two
        return one


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """What became of the history: how much of its beginning stayed, and what follows instead."""

    kept: int  # messages
    gone: int
    came: tuple[Message, ...]

    def to_json(self) -> dict[str, JsonValue]:
        """The change as JSON."""
        return {"kept": self.kept, "gone": self.gone, "came": [message.to_json() for message in self.came]}


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """What a diff is about: all of a prompt that can differ.

    Two are equal if texts, schemas, messages and model are, and whose each of them is; the lines of files do not count.
    """

    sections: tuple[Part, ...]
    contexts: tuple[Part, ...]
    tools: tuple[PartTool, ...]
    messages: tuple[Message, ...]
    config: ModelConfig | None

    @classmethod
    def of(cls, subject: Subject) -> Content:
        """The content of a prompt."""
        messages = tuple(each.message for each in subject.messages)
        return cls(subject.sections, subject.contexts, subject.tools, messages, subject.config)

    def to_json(self) -> dict[str, JsonValue]:
        """What of it counts when two contents are compared."""
        told: dict[str, JsonValue] = {
            "sections": [_counts(part) for part in self.sections],
            "contexts": [_counts(part) for part in self.contexts],
            "tools": [_counts(tool) for tool in self.tools],
            "messages": [message.to_json() for message in self.messages],
            "config": None if self.config is None else self.config.to_json(),
        }
        return told

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Content) and canonical_json(self.to_json()) == canonical_json(other.to_json())

    def __hash__(self) -> int:
        return hash(tuple(part.text for part in self.sections))


@dataclass(frozen=True, slots=True)
class Diff:
    """What differs between two prompts.

    Attributes:
        old_title: what the old one is.
        new_title: what the new one is.
        sections, contexts, tools, variables: what became of them; what did not change is not told.
        history: what became of the history; None if there is nothing to tell.
        config: model and settings before and after; None if they are the same.
        unstored: in words, what of each of the two the log does not hold: marks stand for it.
    """

    old_title: str
    new_title: str
    sections: tuple[Change, ...] = ()
    contexts: tuple[Change, ...] = ()
    tools: tuple[Change, ...] = ()
    variables: tuple[Change, ...] = ()
    history: HistoryChange | None = None
    config: tuple[ModelConfig | None, ModelConfig | None] | None = None
    unstored: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    _sizes: tuple[int, int, int] = field(default=(0, 0, 0), repr=False)

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes of sections, contexts, variables and tools."""
        return (*self.tools, *self.sections, *self.variables, *self.contexts)

    @property
    def is_empty(self) -> bool:
        """Whether the two prompts are the same, and everybody's as before."""
        return not self.changes and self.history is None and self.config is None

    def apply(self, old: Content) -> Content:
        """The content of the new prompt, made from that of the old one.

        Args:
            old: the content that the diff was made of.

        Raises:
            DiffMismatchError: it is another one.
        """
        for what, change in ((what, change) for what, changes in self._lists() for change in changes):
            _check(what, change, getattr(old, what))
        sizes = (len(old.sections), len(old.contexts), len(old.tools))
        if sizes != self._sizes or (self.config is not None and old.config != self.config[0]):
            raise DiffMismatchError("the prompt")
        messages = old.messages
        if self.history is not None:
            messages = (*messages[: self.history.kept], *self.history.came)
        return Content(
            applied(cast("list[Edit[Part]]", [change.edit for change in self.sections]), old.sections),
            applied(cast("list[Edit[Part]]", [change.edit for change in self.contexts]), old.contexts),
            applied(cast("list[Edit[PartTool]]", [change.edit for change in self.tools]), old.tools),
            messages,
            old.config if self.config is None else self.config[1],
        )

    def to_json(self) -> dict[str, JsonValue]:
        """The diff as JSON."""
        config = self.config
        return {
            "old": self.old_title,
            "new": self.new_title,
            "changes": [change.to_json() for change in self.changes],
            "history": None if self.history is None else self.history.to_json(),
            "unstored": [list(each) for each in self.unstored],
            "config": None if config is None else [None if each is None else each.to_json() for each in config],
        }

    def _lists(self) -> Iterable[tuple[str, tuple[Change, ...]]]:
        return ("sections", self.sections), ("contexts", self.contexts), ("tools", self.tools)


class _Comparable(Protocol):
    """What a diff can be made of; a `Subject` is one."""

    @property
    def title(self) -> str: ...
    @property
    def sections(self) -> tuple[Part, ...]: ...
    @property
    def contexts(self) -> tuple[Part, ...]: ...
    @property
    def tools(self) -> tuple[PartTool, ...]: ...
    @property
    def variables(self) -> tuple[Variable, ...]: ...
    @property
    def messages(self) -> tuple[RequestMessage, ...]: ...
    @property
    def config(self) -> ModelConfig | None: ...


def diff_of(old: Subject, new: Subject, *, masked: bool = False) -> Diff:
    """What differs between two prompts: of a log, of a deployment, of two agents; in any combination.

    Args:
        old: the prompt before.
        new: the prompt after.
        masked: tell what is sensitive only as such; then the diff cannot be applied.
    """
    lost = old.unstored, new.unstored
    if not masked:
        return replace(compared(old, new), unstored=lost)
    shown = masked_pair(old, new)
    # Messages that read the same when they are masked need not be the same.
    return replace(compared(*shown), history=_history(old.messages, new.messages, shown[1].messages), unstored=lost)


def compared(old: _Comparable, new: _Comparable) -> Diff:
    """What differs between two prompts, wherever they are from."""
    return Diff(
        old.title,
        new.title,
        _changes("section", old.sections, new.sections),
        _changes("context", old.contexts, new.contexts),
        _changes("tool", old.tools, new.tools),
        _variable_changes(old.variables, new.variables),
        _history(old.messages, new.messages, new.messages),
        None if _config(old) == _config(new) else (old.config, new.config),
        _sizes=(len(old.sections), len(old.contexts), len(old.tools)),
    )


# -- making it ---------------------------------------------------------------------------------------------------------


def _changes(
    kind: ChangeKind, old: Sequence[Part] | Sequence[PartTool], new: Sequence[Part] | Sequence[PartTool]
) -> tuple[Change, ...]:
    before, after = cast("Sequence[Part]", old), cast("Sequence[Part]", new)  # a tool is treated alike
    return tuple(_change(kind, edit) for edit in edits(before, after, _is_same))


def _variable_changes(old: Sequence[Variable], new: Sequence[Variable]) -> tuple[Change, ...]:
    return tuple(_change("variable", edit) for edit in edits(old, new, _is_same) if not edit.is_moved)


def _change(kind: ChangeKind, edit: Edit[Part] | Edit[Variable]) -> Change:
    old, new = edit.old, edit.new
    if old is None or new is None:
        return Change(kind, edit)
    before, after = _text(old), _text(new)
    return Change(kind, edit, () if before == after else word_diff(before, after))


def _is_same(one: Part | PartTool | Variable, other: Part | PartTool | Variable) -> bool:
    return _text(one) == _text(other) and _whose(one.origin) == _whose(other.origin)


def _whose(origin: Origin) -> tuple[str, str | None, str | None, str | None]:
    return origin.owner, origin.scope, origin.listener, origin.distribution


def _text(one: Part | PartTool | Variable) -> str:
    return one.value if isinstance(one, Variable) else one.text


def _counts(one: Part | PartTool) -> JsonValue:
    return [one.name, _text(one), *_whose(one.origin)]


def _config(subject: _Comparable) -> bytes:
    """Model and settings as bytes: the order of settings counts."""
    return b"" if subject.config is None else canonical_json(subject.config.to_json())


def _history(
    old: Sequence[RequestMessage], new: Sequence[RequestMessage], told: Sequence[RequestMessage]
) -> HistoryChange | None:
    """What became of the history; what came is taken from how the new one is told."""
    kept = 0
    for one, other in zip(old, new, strict=False):
        if not one.says_as(other):
            break
        kept += 1
    if kept == len(old) == len(new):
        return None
    return HistoryChange(kept, len(old) - kept, tuple(each.message for each in told[kept:]))


def _check(what: str, change: Change, things: Sequence[Part] | Sequence[PartTool]) -> None:
    """See that what a change is about is as the diff found it."""
    at, old = change.edit.old_at, change.edit.old
    if at is None or old is None:
        return
    if at >= len(things) or _counts(things[at]) != _counts(cast("Part | PartTool", old)):
        raise DiffMismatchError(f"{what.removesuffix('s')} {change.name}")
