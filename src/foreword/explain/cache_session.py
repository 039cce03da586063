"""A session's cache, step by step: what could be reused, what was, and the owners ranked by what they lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from foreword.explain.cache import CacheStep, Meter
from foreword.explain.steps import subjects

if TYPE_CHECKING:
    from foreword.explain.breaks import Break
    from foreword.explain.profiles import CacheProfile
    from foreword.explain.tokenizers import Tokenizer
    from foreword.jsonvalue import JsonValue
    from foreword.session import Log

__all__ = ["OwnerLoss", "SessionCache", "session_cache"]


@dataclass(frozen=True, slots=True)
class OwnerLoss:
    """What one owner lost in a session. What nobody owns (the model, the history, time) has no owner."""

    owner: str | None
    cause: str  # "section rules", "variable {{today}}", "the history", …: what it lost most by
    tokens: int
    steps: int
    cost: float | None  # in US dollars; None if some of it is not known

    def to_json(self) -> dict[str, JsonValue]:
        """The loss as JSON."""
        return {
            "owner": self.owner,
            "cause": self.cause,
            "tokens": self.tokens,
            "steps": self.steps,
            "cost_usd": self.cost,
        }


@dataclass(frozen=True, slots=True)
class SessionCache:
    """A session's requests, each held against the one before."""

    session: str
    steps: tuple[CacheStep, ...]
    tokenizer: str
    profiles: tuple[str, ...] = field(default=())

    @property
    def tokens(self) -> int:
        """Tokens of all requests."""
        return sum(step.tokens for step in self.steps)

    @property
    def predicted(self) -> int:
        """Of them, those that can be expected to come from the cache."""
        return sum(step.predicted for step in self.steps)

    @property
    def lost(self) -> int:
        """Tokens that changes kept from coming from there."""
        return sum(step.lost for step in self.steps)

    @property
    def cost(self) -> float | None:
        """What was lost in US dollars; None if some of it is not known."""
        return _sum([step.cost for step in self.steps if step.lost])

    @property
    def actual_share(self) -> float | None:
        """Which part of the input came from the cache, as the provider says, over the requests that say so."""
        told = [step for step in self.steps if step.actual_share is not None]
        whole = sum(step.input_tokens or 0 for step in told)
        return sum(step.cached_tokens or 0 for step in told) / whole if whole else None

    @property
    def predicted_share(self) -> float:
        """Which part of all tokens can be expected to come from the cache."""
        return self.predicted / self.tokens if self.tokens else 0.0

    @property
    def owners(self) -> tuple[OwnerLoss, ...]:
        """Who lost how much, the largest loss first."""
        found: dict[str | None, list[tuple[Break, CacheStep]]] = {}
        for step in self.steps:
            if step.broken_by is not None and step.lost:
                found.setdefault(step.broken_by.owner, []).append((step.broken_by, step))
        losses = [_loss(owner, told) for owner, told in found.items()]
        return tuple(sorted(losses, key=lambda loss: (-loss.tokens, loss.owner or "")))

    def to_json(self) -> dict[str, JsonValue]:
        """The session as JSON."""
        return {
            "session": self.session,
            "tokenizer": self.tokenizer,
            "profiles": list(self.profiles),
            "tokens": self.tokens,
            "predicted_tokens": self.predicted,
            "predicted_share": self.predicted_share,
            "actual_share": self.actual_share,
            "lost_tokens": self.lost,
            "cost_usd": self.cost,
            "owners": [owner.to_json() for owner in self.owners],
            "steps": [step.to_json() for step in self.steps],
        }


async def session_cache(
    log: Log,
    session: str,
    *,
    profile: CacheProfile | None = None,
    tokenizer: Tokenizer | None = None,
    lifetime: int | None = None,
    masked: bool = False,
) -> SessionCache:
    """A session's requests one by one: what could be reused, what was, and who broke it.

    Args:
        log: where it is.
        session: its id, the beginning of one, or ``last``.
        profile: the rules of a provider; None for those of each request's own.
        tokenizer: None for that of each request's model.
        lifetime: seconds after which the provider has forgotten; None for what the profile says.
        masked: tell what is sensitive only as such.

    Raises:
        SessionError: the session cannot be read; as `foreword.explain.steps.subjects` says.
    """
    meter, steps, name = Meter(profile, tokenizer, lifetime, masked=masked), list[CacheStep](), session
    async for subject in await subjects(log, session):
        steps.append(meter.step(subject))
        name = subject.location.session if subject.location is not None else name
    profiles = tuple(dict.fromkeys(step.profile for step in steps))
    return SessionCache(name, tuple(steps), ", ".join(meter.tokenizers), profiles)


def _loss(owner: str | None, told: Sequence[tuple[Break, CacheStep]]) -> OwnerLoss:
    by_cause: dict[str, int] = {}
    for broken_by, step in told:
        cause = _cause(broken_by)
        by_cause[cause] = by_cause.get(cause, 0) + step.lost
    worst = max(by_cause, key=lambda cause: by_cause[cause])
    costs = _sum([step.cost for _, step in told])
    return OwnerLoss(owner, worst, sum(step.lost for _, step in told), len(told), costs)


def _cause(broken_by: Break) -> str:
    match broken_by.cause:
        case "variable":
            return f"variable {{{{{broken_by.name}}}}}"
        case "model" | "history":
            return f"the {broken_by.cause}"
        case "lifetime":
            return "time"
        case _:
            return f"{broken_by.cause} {broken_by.name}"


def _sum(costs: Sequence[float | None]) -> float | None:
    told = [cost for cost in costs if cost is not None]
    return sum(told) if len(told) == len(costs) else None
