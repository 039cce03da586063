"""A session's cache as rows for people: the sum, who lost how much, then the requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from foreword.cli.explain_words import loss_words, money, share
from foreword.cli.heading import count, heading
from foreword.cli.table import Column, table
from foreword.cli.terminal import Piece
from foreword.cli.unstored_list import unstored_rows
from foreword.cli.wrapping import wrapped
from foreword.explain.telling import break_words

if TYPE_CHECKING:
    from foreword.cli.table import Cell
    from foreword.cli.terminal import Row, Screen
    from foreword.explain.cache import CacheStep
    from foreword.explain.cache_session import OwnerLoss, SessionCache

__all__ = ["session_rows", "step_rows"]

_LOSSES: Final = (
    Column("who", least=12),
    Column("lost", least=8),
    Column("cost", least=6),
    Column("mostly by", least=16),
    Column("requests", least=8),
)
_STEPS: Final = (
    Column("at", least=3),
    Column("tokens", least=6),
    Column("expected", least=8),
    Column("reported", least=8),
    Column("lost", least=6),
)


def session_rows(told: SessionCache, screen: Screen, *, all_steps: bool) -> Iterator[Row]:
    """The rows that tell a session's cache.

    Args:
        told: what to tell.
        screen: where it is to be shown.
        all_steps: tell all requests, not only those that lost something or were missed.
    """
    yield from heading(f"Cache of session {told.session}", _facts(told), screen)
    owners = told.owners
    if owners:
        yield ()
        yield from table(_LOSSES, [_loss(loss, screen) for loss in owners], screen)
    shown = [step for step in told.steps if all_steps or step.lost or step.is_unexplained]
    if all_steps and shown:
        yield ()
        yield from table(_STEPS, [_step(step, screen) for step in shown], screen)
    told_of = [step for step in shown if step.broken_by is not None or step.is_unexplained]
    if told_of:
        yield ()
    for step in told_of:
        yield from _sentence(step, screen)
    lossy = sum(bool(step.unstored) for step in told.steps)
    yield from unstored_rows(screen, (f"content of {count(lossy, 'request')}",) if lossy else ())


def step_rows(step: CacheStep, screen: Screen) -> Iterator[Row]:
    """The rows that tell one request, held against another."""
    size = f"{_about(step)}{count(step.tokens, 'token')}"
    facts = f"{size} for {step.model or 'an unknown model'}, by the rules of {_profile(step)}"
    yield from heading(f"Cache of {step.title}", facts, screen)
    yield ()
    kept = f"{step.predicted:,} tokens, {share(step.predicted_share)}"
    yield from _fact("expected from the cache", kept, screen)
    if step.actual_share is not None:
        yield from _fact(
            "reported by the provider", f"{step.cached_tokens:,} tokens, {share(step.actual_share)}", screen
        )
    prefix = f"{step.prefix.bytes:,} of {step.bytes:,} bytes, {step.prefix.tokens:,} tokens"
    yield from _fact("the same at the beginning", prefix, screen)
    if step.lost:
        yield from _fact("lost", loss_words(step).removeprefix("lost "), screen)
    yield ()
    yield from _sentence(step, screen)
    yield from unstored_rows(screen, step.unstored)


def _facts(told: SessionCache) -> str:
    if not told.steps:
        return "no request was made"
    reported = "" if told.actual_share is None else f" ({share(told.actual_share)} reported)"
    cost = "" if told.cost is None or not told.lost else f" ({money(told.cost)})"
    about = "about " if any(step.is_estimate for step in told.steps) else ""
    lost = f"{about}{told.lost:,} tokens lost{cost}" if told.lost else "nothing lost"
    return (
        f"{count(len(told.steps), 'request')}, {share(told.predicted_share)} expected from the cache{reported}, {lost}"
    )


def _loss(loss: OwnerLoss, screen: Screen) -> tuple[Cell, ...]:
    return (
        (Piece(screen.name(loss.owner or "nobody"), "bold" if loss.owner else "dim"),),
        (Piece(f"{loss.tokens:,}"),),
        () if loss.cost is None else (Piece(money(loss.cost)),),
        (Piece(screen.name(loss.cause)),),
        (Piece(str(loss.steps)),),
    )


def _step(step: CacheStep, screen: Screen) -> tuple[Cell, ...]:
    reported = "" if step.actual_share is None else share(step.actual_share)
    lost = f"{step.lost:,}" if step.lost else ""
    return (
        (Piece(screen.name(_address(step)), "bold"),),
        (Piece(f"{step.tokens:,}".rjust(6)),),
        (Piece(share(step.predicted_share).rjust(8)),),
        (Piece(reported.rjust(8)),) if reported else (),
        (Piece(lost.rjust(6), "yellow"),) if lost else (),
    )


def _sentence(step: CacheStep, screen: Screen) -> Iterator[Row]:
    """``@7 lost 18,412 tokens ($0.055): variable {{today}} …``."""
    address = _address(step)
    if step.broken_by is not None:
        told = f"{loss_words(step)}: {break_words(step.broken_by)}"
        yield from _told(address, told, screen, "yellow" if step.lost else "")
    if step.is_unexplained and step.actual_share is not None:
        expected, got = share(step.predicted_share), share(step.actual_share)
        told = f"{expected} could come from the cache, and the provider reports {got}: nothing of ours explains that"
        yield from _told(address, told, screen, "magenta")
    elif step.verdict == "kept":
        yield from _told(address, "the request before is its beginning: nothing broke", screen, "green")
    elif step.verdict == "first":
        yield from _told(address, "the first request of its session", screen, "dim")


def _address(step: CacheStep) -> str:
    """The request as it is told in its session: ``@7``, or ``@7/2`` for a further attempt."""
    _, at, number = step.title.partition("@")
    return step.title if not at else f"@{number.removesuffix('/1')}"


def _profile(step: CacheStep) -> str:
    return "no provider that is known" if step.profile == "unknown" else step.profile


def _about(step: CacheStep) -> str:
    return "about " if step.is_estimate else ""


def _told(label: str, text: str, screen: Screen, style: str) -> Iterator[Row]:
    whole = f"{screen.name(label)} {screen.told(text)}".replace("\n", "\\n")
    for at, row in enumerate(wrapped(whole, max(screen.width - 2, 8))):
        yield (Piece("" if at == 0 else "  "), Piece(row, style))


def _fact(label: str, text: str, screen: Screen) -> Iterator[Row]:
    width = 27 if screen.width >= 60 else 0
    if not width:
        yield (Piece(label, "bold"),)
    for at, row in enumerate(wrapped(text, max(screen.width - (width or 2), 8))):
        yield (Piece(label.ljust(width) if width and at == 0 else " " * (width or 2), "bold"), Piece(row))
