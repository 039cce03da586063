"""A diff as rows for people, and as JSON: a heading for each thing that changed, below it what in its text did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from foreword.cli.explain_words import loss_words, share
from foreword.cli.heading import count, heading
from foreword.cli.terminal import Piece
from foreword.cli.unstored_list import unstored_rows
from foreword.cli.wrapping import cell_len, wrapped
from foreword.explain.telling import SIGNS, about, break_words, change_words

if TYPE_CHECKING:
    from foreword.cli.terminal import Row, Screen
    from foreword.explain.cache import CacheStep
    from foreword.explain.diff import Change, Diff
    from foreword.explain.words import Piece as Word

__all__ = ["diff_document", "diff_rows", "effect_rows"]

_STYLES: Final = {
    "added": "green",
    "removed": "red",
    "now used": "green",
    "no longer used": "red",
    "moved": "cyan",
    "changed": "yellow",
    "moved and changed": "yellow",
    "taken over": "magenta",
}
_AROUND: Final = 40  # characters that are shown of what stayed, on each side of a change
_MOST_LINES: Final = 6  # of what came or went whole
_INDENT: Final = "  "


def diff_document(diff: Diff, effect: CacheStep) -> dict[str, Any]:
    """A diff as JSON, with what it does to the cache."""
    return {**diff.to_json(), "cache": effect.to_json()}


def diff_rows(diff: Diff, effect: CacheStep, screen: Screen, *, full: bool) -> Iterator[Row]:
    """The rows that tell a diff.

    Args:
        diff: what to tell.
        effect: what it does to the provider's cache.
        screen: where it is to be shown.
        full: tell texts whole.
    """
    arrow = "→" if screen.can_show("→") else "->"
    facts = "nothing differs" if diff.is_empty else count(_number(diff), "change")
    yield from heading(f"{diff.old_title} {arrow} {diff.new_title}", facts, screen)
    if diff.config is not None:
        old, new = ("no model" if each is None else _model(each) for each in diff.config)
        yield ()
        yield from _line("~", "yellow", f"model {old} {arrow} {new}", screen)
    for change in diff.changes:
        yield ()
        yield from _change_rows(change, screen, full=full)
    if diff.history is not None:
        history = diff.history
        told = f"history: {count(history.kept, 'message')} kept, {history.gone:,} gone, {len(history.came):,} new"
        yield ()
        yield from _line("~", "yellow", told, screen)
    if not diff.is_empty:
        yield ()
        yield from effect_rows(effect, screen)
    yield from unstored_rows(screen, *diff.unstored)


def effect_rows(effect: CacheStep, screen: Screen) -> Iterator[Row]:
    """What a change does to the beginning that a provider could reuse."""
    of = f"{'about ' if effect.is_estimate else ''}{effect.tokens:,} tokens"
    if effect.broken_by is None:
        told = f"cache: the beginning is unbroken; {effect.predicted:,} of {of} can be reused ({_share(effect)})"
        yield from _line("", "green", told, screen)
        return
    told = f"cache: {effect.predicted:,} of {of} can be reused ({_share(effect)}), {loss_words(effect)}"
    yield from _line("", "yellow", told, screen)
    yield from _line("", "", f"broken by {break_words(effect.broken_by)}", screen, indent=_INDENT)


def _share(effect: CacheStep) -> str:
    return share(effect.predicted_share)


def _number(diff: Diff) -> int:
    return len(diff.changes) + (diff.history is not None) + (diff.config is not None)


def _model(config: Any) -> str:
    settings = ", ".join(f"{name}={value!r}" for name, value in config.settings.items())
    return f"{config}{f' ({settings})' if settings else ''}"


def _change_rows(change: Change, screen: Screen, *, full: bool) -> Iterator[Row]:
    sign, style = SIGNS[change.action], _STYLES[change.action]
    yield from _line(sign, style, change_words(change), screen)
    for each in about(change.origin):
        yield from _line("", "dim", each, screen, indent=_INDENT)
    if change.is_whole:
        yield from _whole(change.new or change.old, sign, style, screen, full=full)
    elif change.words:
        yield from _words(change.words, screen, full=full)


def _whole(text: str, sign: str, style: str, screen: Screen, *, full: bool) -> Iterator[Row]:
    lines = text.split("\n")
    shown = lines if full else lines[:_MOST_LINES]
    for line in shown:
        for row in wrapped(screen.shown(line.replace("\t", "    ")), max(screen.width - 4, 8)):
            yield (Piece(f"{_INDENT}{sign} ", style), Piece(row, style))
    if len(shown) < len(lines):
        yield (Piece(f"{_INDENT}{sign} {count(len(lines) - len(shown), 'line')} more; --full shows all", "dim"),)


def _words(words: Sequence[Word], screen: Screen, *, full: bool) -> Iterator[Row]:
    """The changed stretches with what stands around them; marked by colour, or by brackets where there is none."""
    row: list[Piece] = []
    room = max(screen.width - len(_INDENT), 8)
    used = 0
    for piece in _marked(words, screen, full=full):
        for at, line in enumerate(piece.text.split("\n")):
            if at:
                yield (Piece(_INDENT), *row)
                row, used = [], 0
            rest = line
            if rest.isspace() and used + cell_len(rest) <= room:  # which wrapping takes for nothing
                row.append(Piece(rest, piece.style))
                used, rest = used + cell_len(rest), ""
            while rest:
                cut = wrapped(rest, room - used)[0] if room > used else ""
                if not cut.strip() and used:
                    cut = ""
                if cut and (cell_len(cut) <= room - used or not used):
                    row.append(Piece(cut, piece.style))
                    used += cell_len(cut)
                    rest = rest[len(cut) :]
                if rest:
                    yield (Piece(_INDENT), *row)
                    row, used, rest = [], 0, rest.lstrip(" ")
    if row:
        yield (Piece(_INDENT), *row)


def _marked(words: Sequence[Word], screen: Screen, *, full: bool) -> Iterator[Piece]:
    for at, word in enumerate(words):
        text = screen.shown(word.text.replace("\t", "    "))
        if word.what == "same":
            yield Piece(text if full else _cut(text, is_first=at == 0, is_last=at == len(words) - 1, screen=screen))
        elif screen.has_colours:
            style = "red strike" if word.what == "gone" else "bold green"
            yield Piece(text, style)
        else:
            yield Piece(f"[-{text}-]" if word.what == "gone" else f"{{+{text}+}}")


def _cut(text: str, *, is_first: bool, is_last: bool, screen: Screen) -> str:
    """What is shown of a stretch that stayed: its end before a change, its beginning after one."""
    dots = "…" if screen.can_show("…") else "..."
    head = "" if is_first else text[:_AROUND]
    tail = "" if is_last else text[-_AROUND:]
    if len(text) <= len(head) + len(tail):
        return text
    return f"{head}{dots}{tail}"


def _line(sign: str, style: str, text: str, screen: Screen, indent: str = "") -> Iterator[Row]:
    first = f"{indent}{sign} " if sign else indent
    for row in wrapped(screen.told(text).replace("\n", "\\n"), max(screen.width - len(first), 8)):
        yield (Piece(first, f"bold {style}".strip()), Piece(row, style if sign or not indent else "dim"))
        first = " " * len(first)
