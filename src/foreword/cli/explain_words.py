"""How losses and shares are said in one line; owners and places are in `foreword.explain.telling`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foreword.explain.cache import CacheStep

__all__ = ["loss_words", "money", "share"]


def loss_words(step: CacheStep) -> str:
    """What a request lost: ``lost 18,412 tokens ($0.055)``."""
    tokens = f"{'about ' if step.is_estimate else ''}{step.lost:,} token{'' if step.lost == 1 else 's'}"
    return f"lost {tokens}{'' if step.cost is None or not step.lost else f' ({money(step.cost)})'}"


def money(dollars: float) -> str:
    """US dollars, with as many digits as say something."""
    if dollars >= 1 or dollars == 0:
        return f"${dollars:,.2f}"
    return f"${dollars:.3f}" if dollars >= 0.01 else f"${dollars:.2g}"


def share(part: float) -> str:
    """A share of a whole, in per cent."""
    return f"{part:.0%}"
