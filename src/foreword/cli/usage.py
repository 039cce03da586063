"""What requests cost, added up and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foreword.wire.chunks import Usage

__all__ = ["Spent", "tokens"]


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens of some requests, as far as their provider told."""

    given: int = 0
    made: int = 0
    cached: int | None = None  # of those given; None if no answer said so

    def plus(self, usage: Usage | None) -> Spent:
        """With one more request."""
        if usage is None:
            return self
        cached = self.cached
        if usage.cached_tokens is not None:
            cached = (cached or 0) + usage.cached_tokens
        return Spent(self.given + usage.input_tokens, self.made + usage.output_tokens, cached)


def tokens(spent: Spent) -> list[str]:
    """The tokens in words: ``1,200 in (1,000 cached)``, ``45 out``; none where nothing is known."""
    if not spent.given and not spent.made:
        return []
    cached = "" if spent.cached is None else f" ({spent.cached:,} cached)"
    return [f"{spent.given:,} tokens in{cached}", f"{spent.made:,} out"]
