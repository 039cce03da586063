"""How owners, places, breaks and diffs are said in plain words and lines, for messages of any kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from foreword.explain.breaks import excerpts
from foreword.explain.unstored import MEANING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from foreword.explain.breaks import Break
    from foreword.explain.diff import Change, Diff
    from foreword.explain.words import Piece
    from foreword.prompt.origin import Origin

__all__ = [
    "SIGNS",
    "about",
    "break_words",
    "change_words",
    "diff_lines",
    "key_words",
    "since",
    "thing_words",
    "unstored_words",
    "whose",
]

SIGNS: Final = {
    "added": "+",
    "removed": "-",
    "now used": "+",
    "no longer used": "-",
    "moved": ">",
    "changed": "~",
    "moved and changed": ">",
    "taken over": "=",
}
"""What stands before a change, by what became of the thing."""

_MOST_NAMED: Final = 5


def whose(origin: Origin) -> str:
    """Owner, version and place: ``acme-billing 1.4.0, rules.md:3``."""
    distribution, source = origin.distribution, origin.source
    owner = origin.owner
    if distribution is not None:
        name, _, version = distribution.rpartition(" ")
        owner = f"{owner} {version}" if name == owner else f"{owner} of {distribution}"
    return owner if source is None else f"{owner}, {source}"


def about(origin: Origin) -> tuple[str, ...]:
    """What is not usual about an origin: a scope, a listener, a package with its version."""
    told = [
        None if origin.scope is None else f"in scope {origin.scope}",
        None if origin.listener is None else f"by listener {origin.listener}",
        None if origin.distribution is None else f"from {origin.distribution}",
    ]
    return tuple(each for each in told if each is not None)


def thing_words(broken_by: Break) -> str:
    """What broke something: ``variable {{today}} in section acme:rules``."""
    match broken_by.cause:
        case "model":
            return "the model"
        case "lifetime":
            return "time"
        case "history":
            return f"the history, message {int(broken_by.name) + 1}"
        case "variable":
            return f"variable {{{{{broken_by.name}}}}} in {broken_by.inside_kind} {broken_by.inside}"
        case _:
            return f"{broken_by.cause} {broken_by.name}"


def break_words(broken_by: Break) -> str:
    """The whole of a break in one line, with its owner, its place, and what it was before."""
    if broken_by.cause == "lifetime":
        return f"{since(broken_by.new)} since the request before, and the provider keeps {since(broken_by.old)}"
    owner = "" if broken_by.origin is None else f" ({whose(broken_by.origin)})"
    if broken_by.key is not None:
        return f"{thing_words(broken_by)}{owner}, {_key_words(broken_by.key, broken_by.old, broken_by.new)}"
    at = "" if not broken_by.at else f", char {broken_by.at:,}"
    action = "" if broken_by.action == "changed" else f" {broken_by.action}"
    told = f' "{broken_by.old}" → "{broken_by.new}"' if broken_by.action == "changed" else ""
    return f"{thing_words(broken_by)}{action}{owner}{at}{told}"


def unstored_words(*unstored: Sequence[str]) -> str:
    """What the log does not hold of some prompts, and how to read what stands in its place; empty if it holds all."""
    told = dict.fromkeys(each for some in unstored for each in some)
    if not told:
        return ""
    names = [*told] if len(told) <= _MOST_NAMED else [*list(told)[:_MOST_NAMED], f"{len(told) - _MOST_NAMED:,} more"]
    return f"not in the log: {', '.join(names)}. {MEANING}"


def since(seconds: str) -> str:
    """A number of seconds, ``"400 s"``, in words."""
    number = int(seconds.removesuffix(" s"))
    if number < 120:
        return f"{number} s"
    if number < 7200:
        return f"{number // 60} min"
    return f"{number // 3600} h"


# -- diffs -------------------------------------------------------------------------------------------------------------


def diff_lines(diff: Diff) -> Iterator[str]:
    """A diff as plain lines: what became of each thing, whose it is, and below it what in its text did.

    What stayed of a text that changed is told by its lines that hold a change; in these, what went stands in ``[-…-]``,
    what came in ``{+…+}``.
    """
    if diff.config is not None:
        old, new = ("no model" if each is None else str(each) for each in diff.config)
        yield f"~ model {old} -> {new}"
    for change in diff.changes:
        yield f"{SIGNS[change.action]} {change_words(change)}"
        if change.is_whole:
            yield from (f"    {SIGNS[change.action]} {line}" for line in (change.new or change.old).split("\n"))
        elif change.words:
            yield from (f"    {line}" for line in _changed_lines(change.words))


def change_words(change: Change) -> str:
    """What became of one thing: ``section rules of acme (rules.md:3) changed``."""
    name = f"{{{{{change.name}}}}}" if change.kind == "variable" else change.name
    was = "" if change.old_owner is None else f", was of {change.old_owner}"
    source = "" if change.origin.source is None else f" ({change.origin.source})"
    edit, moved = change.edit, ""
    if edit.is_moved and edit.old_at is not None and edit.new_at is not None:
        moved = f" from place {edit.old_at + 1} to {edit.new_at + 1}"
    keys = "".join(f", {words}" for words in key_words(change))
    return f"{change.kind} {name} of {change.owner}{source} {change.action}{was}{moved}{keys}"


def key_words(change: Change) -> Iterator[str]:
    """Of a tool, what became of the keys behind its schema: ``key strict false → true``."""
    return (_key_words(key.name, *excerpts(key.old, key.new)) for key in change.keys)


def _key_words(name: str, old: str, new: str) -> str:
    return f"key {name} {old or 'nothing'} → {new or 'nothing'}"


def _changed_lines(words: Sequence[Piece]) -> Iterator[str]:
    """The lines of a text in which something came or went."""
    line, has_change = "", False
    for piece in words:
        first, *others = piece.text.split("\n")
        for at, part in enumerate((first, *others)):
            if at:
                if has_change:
                    yield line
                line, has_change = "", False
            has_change = has_change or piece.what != "same"
            line += _marked(part, piece)
    if has_change:
        yield line


def _marked(text: str, piece: Piece) -> str:
    match piece.what:
        case "same":
            return text
        case "gone":
            return f"[-{text}-]"
        case "came":
            return f"{{+{text}+}}"
