"""Tokens as tables: parts by cost, then owners by cost; and whether they are within a budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from foreword.cli.heading import count, heading
from foreword.cli.table import Column, table
from foreword.cli.terminal import Piece
from foreword.cli.unstored_list import unstored_rows
from foreword.cli.wrapping import wrapped
from foreword.explain.tokenizers import ESTIMATE

if TYPE_CHECKING:
    from foreword.cli.table import Cell
    from foreword.cli.terminal import Row, Screen
    from foreword.explain.tokens import Cost, OwnerCost, TokenReport

__all__ = ["token_rows"]

_TOKENS: Final = Column("tokens", least=6)
_SHARE: Final = Column("share", least=5)
_PARTS: Final = _TOKENS, _SHARE, Column("part", least=12), Column("owner", least=8)
_OWNERS: Final = _TOKENS, _SHARE, Column("owner", least=8), Column("parts", least=5)
_NARROW: Final = 60  # cells; below that the shares are left out
_BIGGEST: Final = 3  # owners that are named when a budget is broken


def token_rows(report: TokenReport, budget: int | None, screen: Screen) -> Iterator[Row]:
    """The rows that tell what a prompt costs."""
    about = "about " if report.is_estimate else ""
    is_guess = report.tokenizer == ESTIMATE.name
    how = "estimated: its tokenizer is not here" if is_guess else f"counted with {report.tokenizer}"
    facts = f"{about}{count(report.total, 'token')}, {count(report.bytes, 'byte')}, {how}"
    yield from heading(f"Tokens of {report.title}", facts, screen)
    if not report.costs:
        return
    yield ()
    yield from table(_PARTS, [_part(cost, report.total, screen) for cost in report.costs], screen)
    yield ()
    yield from table(_OWNERS, [_owner(each, report.total, screen) for each in report.owners], screen)
    yield from unstored_rows(screen, report.unstored)
    if budget is not None:
        yield ()
        yield from _verdict(report, budget, screen)


def _part(cost: Cost, total: int, screen: Screen) -> tuple[Cell, ...]:
    scope = () if cost.origin.scope is None else (Piece(screen.name(f"in scope {cost.origin.scope}"), "dim"),)
    return _number(cost.tokens, total), _share(cost.tokens, total, screen), (Piece(screen.name(_part_name(cost))),), (
        Piece(screen.name(cost.owner)), *scope
    )  # fmt: skip


def _part_name(cost: Cost) -> str:
    match cost.kind:
        case "variable":
            return f"variable {{{{{cost.name}}}}}"
        case "message":
            return "history"
        case "separator":
            return cost.name
        case _:
            return f"{cost.kind} {cost.name}"


def _owner(cost: OwnerCost, total: int, screen: Screen) -> tuple[Cell, ...]:
    parts = (Piece(str(cost.parts), "dim"),)
    return (
        _number(cost.tokens, total),
        _share(cost.tokens, total, screen),
        (Piece(screen.name(cost.owner), "bold"),),
        parts,
    )


def _number(tokens: int, total: int) -> Cell:
    return (Piece(f"{tokens:,}".rjust(max(len(f"{total:,}"), len("TOKENS"))), "bold"),)


def _share(tokens: int, total: int, screen: Screen) -> Cell:
    if screen.width < _NARROW:
        return ()
    part = tokens / total if total else 0.0
    return (Piece(f"{part:.0%}".rjust(5) if part >= 0.01 or not tokens else " <1%".rjust(5), "dim"),)


def _verdict(report: TokenReport, budget: int, screen: Screen) -> Iterator[Row]:
    over = report.over(budget)
    if not over:
        yield (Piece(f"within the budget of {count(budget, 'token')}, {budget - report.total:,} to spare", "green"),)
        return
    biggest = ", ".join(f"{each.owner} {each.tokens:,}" for each in report.owners[:_BIGGEST])
    told = f"over the budget of {count(budget, 'token')} by {over:,}; the biggest owners: {screen.name(biggest)}"
    yield from ((Piece(row, "bold red"),) for row in wrapped(told, screen.width))
