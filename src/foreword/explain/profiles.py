"""How providers reuse the unchanged beginning of a request: data, with the source and the date of each number.

The data is `cache_profiles.toml`. A number whose source was not read is not in it, and then nothing is predicted from
it: no minimum, no lifetime, no money. `UNKNOWN_PROVIDER` knows nothing but the usual order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from foreword.errors import UnknownCacheProfileError

if TYPE_CHECKING:
    from foreword.wire.request import ModelConfig

__all__ = [
    "UNKNOWN_PROVIDER",
    "CacheProfile",
    "CacheSetting",
    "Lifetime",
    "Minimum",
    "Price",
    "RequestPart",
    "Sourced",
    "profile_for",
    "profile_named",
    "profile_names",
]

RequestPart: TypeAlias = Literal["tools", "system", "messages"]

_DATA: Final = Path(__file__).with_name("cache_profiles.toml")
_PROVIDERS: Final = {"google": "gemini"}  # other names of a provider

R = TypeVar("R", "Minimum", "Lifetime", "Price")


@dataclass(frozen=True, slots=True)
class Sourced:
    """Where a fact was read, and when."""

    url: str
    read: date

    def __str__(self) -> str:
        return f"{self.url} ({self.read})"


@dataclass(frozen=True, slots=True)
class Minimum:
    """How long a beginning must be to be reused."""

    models: tuple[str, ...]  # globs
    tokens: int
    sources: tuple[Sourced, ...]


@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long after its last use a beginning is kept."""

    models: tuple[str, ...]
    seconds: int
    sources: tuple[Sourced, ...]
    setting: Mapping[str, str]  # that the request must have, by name; empty for any request


@dataclass(frozen=True, slots=True)
class Price:
    """What a million input tokens cost, in US dollars."""

    models: tuple[str, ...]
    input: float
    cached: float
    sources: tuple[Sourced, ...]
    up_to: int | None = None  # tokens of a request; what larger ones cost is not known


@dataclass(frozen=True, slots=True)
class CacheSetting:
    """A setting that is part of the beginning."""

    name: str
    before: RequestPart  # which part it stands before
    sources: tuple[Sourced, ...]


@dataclass(frozen=True, slots=True)
class CacheProfile:
    """How one provider reuses the beginning of a request.

    Attributes:
        name: of the provider.
        order: in which it reads the parts of a request; messages come last.
        step: tokens in which a hit is counted, 1 if nothing is known.
        by_blocks: whether a hit ends where a block does: a tool, a section, a message.
        breakpoints: how many places of a request may be marked for reuse; None if none have to be.
        minimums, lifetimes, prices, settings: what is known of its models; the first that fits a model counts.
        sources: of `order`, `step`, `by_blocks` and `breakpoints`.
    """

    name: str
    order: tuple[RequestPart, ...] = ("tools", "system", "messages")
    step: int = 1
    by_blocks: bool = False
    breakpoints: int | None = None
    minimums: tuple[Minimum, ...] = ()
    lifetimes: tuple[Lifetime, ...] = ()
    prices: tuple[Price, ...] = ()
    settings: tuple[CacheSetting, ...] = ()
    sources: tuple[Sourced, ...] = ()

    def minimum(self, model: str) -> int:
        """Tokens that a beginning must have to be reused; 0 if it is not known."""
        rule = _fitting(self.minimums, model)
        return 0 if rule is None else rule.tokens

    def lifetime(self, config: ModelConfig) -> int | None:
        """Seconds after its last use for which a beginning is kept; None if it is not known."""
        fitting = [
            rule
            for rule in self.lifetimes
            if all(config.settings.get(name) == value for name, value in rule.setting.items())
        ]
        rule = _fitting(fitting, config.model)
        return None if rule is None else rule.seconds

    def price(self, model: str, tokens: int) -> Price | None:
        """What a request of so many tokens pays for one; None if it is not known."""
        rule = _fitting(self.prices, model)
        return None if rule is None or (rule.up_to is not None and tokens > rule.up_to) else rule

    def reused(self, tokens: int, model: str) -> int:
        """How many tokens of a beginning that is in the cache are read from there."""
        return 0 if tokens < self.minimum(model) else tokens // self.step * self.step


UNKNOWN_PROVIDER: Final = CacheProfile("unknown")
"""Of a provider that is not known: bytes and owners can be told, in the usual order; no minimum, no money."""


def profile_for(provider: str | None) -> CacheProfile:
    """The profile of a provider by its name in a `ModelConfig`; `UNKNOWN_PROVIDER` for one that is not known."""
    name = _PROVIDERS.get(provider or "", provider or "")
    return _profiles().get(name, UNKNOWN_PROVIDER)


def profile_named(name: str) -> CacheProfile:
    """A profile that must be there.

    Raises:
        UnknownCacheProfileError: it is not.
    """
    profile = _profiles().get(_PROVIDERS.get(name, name))
    if profile is None:
        raise UnknownCacheProfileError(name, profile_names())
    return profile


def profile_names() -> tuple[str, ...]:
    """The providers that are known."""
    return tuple(_profiles())


def _fitting(rules: Sequence[R], model: str) -> R | None:
    return next((rule for rule in rules if any(fnmatchcase(model, glob) for glob in rule.models)), None)


# -- reading the data --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _profiles() -> Mapping[str, CacheProfile]:
    import tomllib

    data = tomllib.loads(_DATA.read_text(encoding="utf-8"))
    sources = {name: Sourced(told["url"], told["read"]) for name, told in data["sources"].items()}
    return MappingProxyType({name: _profile(name, told, sources) for name, told in data["profiles"].items()})


def _profile(name: str, told: Mapping[str, Any], sources: Mapping[str, Sourced]) -> CacheProfile:
    def of(fact: Mapping[str, Any]) -> tuple[Sourced, ...]:
        return tuple(sources[fact[key]] for key in ("source", "and") if key in fact)

    facts = [told[key] for key in ("order", "step", "blocks", "breakpoints") if key in told]
    return CacheProfile(
        name,
        tuple(told["order"]["parts"]) if "order" in told else UNKNOWN_PROVIDER.order,
        told["step"]["tokens"] if "step" in told else 1,
        "blocks" in told,
        told["breakpoints"]["count"] if "breakpoints" in told else None,
        tuple(Minimum(tuple(each["models"]), each["tokens"], of(each)) for each in told.get("minimum", ())),
        tuple(
            Lifetime(tuple(each["models"]), each["seconds"], of(each), MappingProxyType(each.get("setting", {})))
            for each in told.get("lifetime", ())
        ),
        tuple(
            Price(tuple(each["models"]), each["input"], each["cached"], of(each), each.get("up_to"))
            for each in told.get("price", ())
        ),
        tuple(CacheSetting(each["name"], each["before"], of(each)) for each in told.get("settings", ())),
        tuple(dict.fromkeys(source for fact in facts for source in of(fact))),
    )
