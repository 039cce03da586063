"""A diff as Markdown, for the comments of a pull request: a table of what changed, and the texts folded away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import TYPE_CHECKING

from foreword.cli.explain_words import loss_words, share
from foreword.cli.terminal import escaped
from foreword.explain.telling import break_words, key_words, unstored_words

if TYPE_CHECKING:
    from foreword.explain.cache import CacheStep
    from foreword.explain.diff import Change, Diff

__all__ = ["agents_markdown", "diff_markdown"]


def diff_markdown(diff: Diff, effect: CacheStep, tokens: tuple[int, int]) -> str:
    """The page of a diff.

    Args:
        diff: what to tell.
        effect: what it does to the provider's cache.
        tokens: what the old and the new prompt cost.
    """
    return "\n".join(_lines(diff, effect, tokens))


def agents_markdown(gone: Sequence[str], came: Sequence[str], told: int) -> str:
    """What stands below the diffs of all agents: which of them have no counterpart."""
    lines = [f"Removed agent {_code(name)}." for name in gone] + [f"Added agent {_code(name)}." for name in came]
    return "\n\n".join(lines) if lines else f"{told} agents, none added, none removed."


def _lines(diff: Diff, effect: CacheStep, tokens: tuple[int, int]) -> Iterator[str]:
    yield f"### {_code(diff.old_title)} → {_code(diff.new_title)}"
    yield ""
    if diff.is_empty:
        yield "Nothing differs."
        return
    old, new = tokens
    about = "about " if effect.is_estimate else ""
    yield f"{about}{old:,} → {new:,} tokens ({new - old:+,}). {_cache(effect)}"
    yield ""
    yield "| what | name | owner | |"
    yield "|---|---|---|---|"
    for change in diff.changes:
        keys = "".join(f", {_code(words)}" for words in key_words(change))
        yield f"| {change.kind} | {_code(change.name)} | {_code(change.owner)} | {change.action}{keys} |"
    if diff.config is not None:
        models = " → ".join("none" if each is None else str(each) for each in diff.config)
        yield f"| model | {_code(models)} | | changed |"
    for change in diff.changes:
        yield from _details(change)
    lost = unstored_words(*diff.unstored)
    if lost:
        yield ""
        yield _html(lost)


def _cache(effect: CacheStep) -> str:
    if effect.broken_by is None:
        return "The beginning is unbroken."
    kept = f"{share(effect.predicted_share)} can be reused, {loss_words(effect)}"
    return f"Of the beginning {kept}: {_code(break_words(effect.broken_by))}."


def _details(change: Change) -> Iterator[str]:
    if change.action in ("moved", "taken over"):
        return
    yield ""
    yield f"<details><summary>{change.kind} <code>{_html(change.name)}</code>, {change.action}</summary>"
    yield ""
    lines = list(unified_diff(_split(change.old), _split(change.new), n=2, lineterm=""))[2:]
    fence = "`" * max(3, 1 + max((_longest_run(line) for line in lines), default=0))
    yield f"{fence}diff"
    yield from lines
    yield fence
    yield ""
    yield "</details>"


def _split(text: str) -> list[str]:
    return escaped(text).split("\n") if text else []


def _longest_run(line: str) -> int:
    """How many backticks stand behind one another: a fence has to be longer."""
    longest = run = 0
    for character in line:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest


def _code(text: str) -> str:
    """A text as code, where nothing of it acts: no markup, no mention, no reference."""
    shown = escaped(text).replace("\n", " ").replace("|", "\\|")
    marks = "`" * (1 + _longest_run(shown))
    return f"{marks} {shown} {marks}" if "`" in shown else f"`{shown}`"


def _html(text: str) -> str:
    from html import escape

    return escape(escaped(text).replace("\n", " "))
