"""The rows of the demo: what it is, a line a step, and what it came to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from foreword.cli.demo.script import STORY
from foreword.cli.heading import count, heading
from foreword.cli.table import Column, table
from foreword.cli.terminal import Piece
from foreword.cli.wrapping import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.cli.demo.proof import Proof, ProvenStep
    from foreword.cli.demo.script import Played
    from foreword.cli.table import Cell
    from foreword.cli.terminal import Row, Screen

__all__ = ["rows"]

_COLUMNS: Final = (
    Column("step", least=4), Column("model", least=5), Column("what happens", least=16), Column("system", least=8),
    Column("tools", least=5), Column("messages", least=8), Column("rebuilt", least=7),
)  # fmt: skip
_DIGITS: Final = 8


def rows(store: str, play: Played, proof: Proof, screen: Screen, *, leading: str) -> Iterator[Row]:
    """All rows.

    Args:
        store: where the session was logged.
        play: what was played.
        proof: what came of it.
        screen: where it is shown.
        leading: what commands need behind them to look there.
    """
    yield from heading("A support agent of a bookshop", "played by a script: no key, no network", screen)
    yield ()
    yield from table(_COLUMNS, [_record(step) for step in proof.steps], screen)
    yield ()
    commands = f"foreword log show{leading}, foreword log rebuild last@5{leading}"
    yield from _lines(f"logged in {store}; see {commands}", screen)
    yield from _lines(_result(play, proof), screen, _style(proof))


def _record(step: ProvenStep) -> tuple[Cell, ...]:
    story = STORY[step.number - 1] if step.number <= len(STORY) else ""
    whole = step.equal == step.requests
    return (
        (Piece(str(step.number), "bold"),),
        (Piece(step.model),),
        (Piece(story),),
        (Piece(step.system[:_DIGITS], "dim"),),
        (Piece(str(step.tools)),),
        (Piece(str(step.messages)),),
        (Piece(f"{step.equal} of {step.requests}", "green" if whole else "red"),),
    )


def _result(play: Played, proof: Proof) -> str:
    steps, requests = count(len(proof.steps), "step"), count(proof.requests, "request")
    whole = proof.equal == proof.requests == len(play.sent)
    lost = "all" if whole else f"of {len(play.sent)} sent {proof.equal}"
    state = f"{count(proof.report.events, 'event')} intact" if proof.report.intact else f"damaged: {proof.report.fault}"
    return f"{steps}, {requests}, {lost} rebuilt byte for byte ({proof.size:,} bytes); {state}"


def _style(proof: Proof) -> str:
    return "green" if proof.report.intact and proof.equal == proof.requests else "red"


def _lines(text: str, screen: Screen, style: str = "dim") -> Iterator[Row]:
    for row in wrapped(screen.shown(text), screen.width):
        yield (Piece(row, style),)
