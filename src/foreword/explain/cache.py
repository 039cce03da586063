"""Cache attribution: how much of a request a provider could reuse, what broke the rest, whose it was, and its price.

`compare` holds a request against the one before it. `foreword.explain.cache_session` does so for a whole session.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from foreword.explain.breaks import Break, first_break, lifetime_passed
from foreword.explain.layout import Layout
from foreword.explain.masking import masked_pair
from foreword.explain.measuring import Common, Measured, Prefix, common_of
from foreword.explain.profiles import CacheProfile, profile_for
from foreword.explain.tokenizers import Tokenizer, tokenizer_for

if TYPE_CHECKING:
    from foreword.explain.subject import Subject
    from foreword.jsonvalue import JsonValue

__all__ = ["CacheStep", "Meter", "Verdict", "compare"]

Verdict: TypeAlias = Literal["first", "kept", "broken", "expired"]
"""``first``: there is no request before. ``kept``: the one before is the beginning of this one. ``broken``: something
changed in it. ``expired``: too much time passed, whatever else changed."""


@dataclass(frozen=True, slots=True)
class CacheStep:
    """One request, held against the one before.

    Attributes:
        title: which request; an address, or what the prompt is.
        model: as "provider:model"; empty if it is not known.
        profile: the provider whose rules were applied.
        verdict: what became of the beginning.
        tokens: of the whole request.
        bytes: of the whole request, as laid out.
        prefix: what survived of the beginning; nothing for a first request.
        predicted: tokens that the provider can be expected to read from its cache.
        lost: tokens that would have come from the cache, had nothing broken it.
        broken_by: what broke it; None if nothing did.
        cost: what the loss costs in US dollars; None if a price is not known.
        input_tokens: of the request, as the provider counted; None if it was not logged.
        cached_tokens: of them, those that it says came from its cache.
        is_estimate: whether the tokens are not the model's own.
        unstored: in words, what of the request the log does not hold: sizes are those of what stands in its place.
    """

    title: str
    model: str
    profile: str
    verdict: Verdict
    tokens: int
    bytes: int
    prefix: Prefix
    predicted: int
    lost: int
    broken_by: Break | None = None
    cost: float | None = None
    input_tokens: int | None = None
    cached_tokens: int | None = None
    is_estimate: bool = False
    unstored: tuple[str, ...] = ()

    @property
    def predicted_share(self) -> float:
        """Which part of the request can be expected to come from the cache, from 0 to 1."""
        return self.predicted / self.tokens if self.tokens else 0.0

    @property
    def actual_share(self) -> float | None:
        """Which part did, as the provider says; None if it does not."""
        if not self.input_tokens or self.cached_tokens is None:
            return None
        return self.cached_tokens / self.input_tokens

    @property
    def is_unexplained(self) -> bool:
        """Whether the provider read much less from its cache than could be expected: nothing of ours broke it."""
        actual = self.actual_share
        return self.predicted > 0 and actual is not None and actual < self.predicted_share / 2

    def to_json(self) -> dict[str, JsonValue]:
        """The step as JSON."""
        return {
            "request": self.title,
            "model": self.model,
            "profile": self.profile,
            "verdict": self.verdict,
            "tokens": self.tokens,
            "bytes": self.bytes,
            "prefix_bytes": self.prefix.bytes,
            "prefix_tokens": self.prefix.tokens,
            "predicted_tokens": self.predicted,
            "predicted_share": self.predicted_share,
            "lost_tokens": self.lost,
            "cost_usd": self.cost,
            "broken_by": None if self.broken_by is None else self.broken_by.to_json(),
            "input_tokens": self.input_tokens,
            "cached_tokens": self.cached_tokens,
            "actual_share": self.actual_share,
            "unexplained": self.is_unexplained,
            "is_estimate": self.is_estimate,
            "unstored": list(self.unstored),
        }


def compare(
    old: Subject,
    new: Subject,
    *,
    profile: CacheProfile | None = None,
    tokenizer: Tokenizer | None = None,
    lifetime: int | None = None,
    masked: bool = False,
) -> CacheStep:
    """Hold a request against the one before it.

    Args:
        old: the request before.
        new: the request after. Where one of the two is for no model in particular, it is taken to be for the other's.
        profile: the provider's rules; None for those of the new request's provider.
        tokenizer: None for that of the new request's model.
        lifetime: seconds after which the provider has forgotten; None for what the profile says.
        masked: tell what is sensitive only as such.
    """
    meter = Meter(profile, tokenizer, lifetime, masked=masked)
    meter.step(old if old.config is not None else replace(old, config=new.config))
    return meter.step(new if new.config is not None else replace(new, config=old.config))


class Meter:
    """Measures requests, each against the last one; for rows of them, as a session's."""

    def __init__(
        self,
        profile: CacheProfile | None = None,
        tokenizer: Tokenizer | None = None,
        lifetime: int | None = None,
        *,
        masked: bool = False,
    ) -> None:
        """Make one; the arguments are those of `compare`."""
        self.profile, self.tokenizer, self.lifetime, self.masked = profile, tokenizer, lifetime, masked
        self.last: Measured | None = None
        self.tokenizers: dict[str, None] = {}

    def step(self, subject: Subject) -> CacheStep:
        """Measure a request."""
        config = subject.config
        profile = self.profile or profile_for(None if config is None else config.provider)
        tokenizer = self.tokenizer or tokenizer_for(config)
        self.tokenizers[tokenizer.name] = None
        last = self.last
        layout = Layout(subject, profile, None if last is None else last.layout)
        now = self.last = Measured(layout, tokenizer, last)
        if last is None:
            return self._told(now, "first", Prefix(0, 0, 0), None, 0, 0)
        if last.layout.profile is not profile or last.tokenizer is not tokenizer:
            last = Measured(Layout(last.layout.subject, profile), tokenizer)
        return self._held_against(last, now)

    def _held_against(self, last: Measured, now: Measured) -> CacheStep:
        common = common_of(last, now)
        prefix, broken_by = common.prefix, self._broken_by(last.layout, now.layout, common)
        usable = prefix.whole_tokens if now.layout.profile.by_blocks and broken_by is not None else prefix.tokens
        reusable = _reused(now, min(last.whole_tokens, now.whole_tokens))
        kept = min(_reused(now, usable), reusable)
        gone = self._expired(last, now)
        if gone is not None:
            return self._told(now, "expired", prefix, gone, 0, reusable)
        return self._told(now, "kept" if broken_by is None else "broken", prefix, broken_by, kept, reusable - kept)

    def _broken_by(self, old: Layout, new: Layout, common: Common) -> Break | None:
        found = first_break(old, new, common.head, common.messages)
        if found is None or not self.masked or not (old.subject.is_sensitive or new.subject.is_sensitive):
            return found
        # Where it broke is known; what is told of the place is read from texts that may be shown.
        shown = [Layout(each, new.profile) for each in masked_pair(old.subject, new.subject)]
        return first_break(shown[0], shown[1], common.head, common.messages)

    def _expired(self, last: Measured, now: Measured) -> Break | None:
        """Whether too much time passed; not if the provider says that it did read from its cache."""
        before, after = last.layout.subject, now.layout.subject
        if before.time is None or after.time is None or after.config is None:
            return None
        lifetime = self.lifetime if self.lifetime is not None else now.layout.profile.lifetime(after.config)
        seconds = (after.time - before.time) / 1000
        was_read = after.usage is not None and (after.usage.cached_tokens or 0) > 0
        return None if lifetime is None or seconds <= lifetime or was_read else lifetime_passed(int(seconds), lifetime)

    def _told(
        self, now: Measured, verdict: Verdict, prefix: Prefix, broken_by: Break | None, predicted: int, lost: int
    ) -> CacheStep:
        subject, profile = now.layout.subject, now.layout.profile
        config, usage = subject.config, subject.usage
        price = None if config is None else profile.price(config.model, now.whole_tokens)
        return CacheStep(
            subject.title,
            "" if config is None else str(config),
            profile.name,
            verdict,
            now.whole_tokens,
            now.whole_bytes,
            prefix,
            predicted,
            lost,
            broken_by,
            None if price is None else lost * (price.input - price.cached) / 1_000_000,
            None if usage is None else usage.input_tokens,
            None if usage is None else usage.cached_tokens,
            now.tokenizer.is_estimate,
            subject.unstored,
        )


def _reused(now: Measured, tokens: int) -> int:
    config = now.layout.subject.config
    return now.layout.profile.reused(tokens, "" if config is None else config.model)
