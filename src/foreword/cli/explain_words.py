"""How owners, places and breaks are said in one line."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foreword.explain.breaks import Break
    from foreword.explain.cache import CacheStep
    from foreword.prompt.origin import Origin

__all__ = ["about", "break_words", "loss_words", "money", "share", "since", "thing_words", "when", "whose"]


def whose(origin: Origin) -> str:
    """Owner, version and place: ``acme-billing 1.4.0, rules.md:3``."""
    distribution, source = origin.distribution, origin.source
    owner = origin.owner
    if distribution is not None:
        name, _, version = distribution.rpartition(" ")
        owner = f"{owner} {version}" if name == owner else f"{owner} of {distribution}"
    return owner if source is None else f"{owner}, {source}"


def about(origin: Origin) -> tuple[str, ...]:
    """What is not usual about an origin: a scope, a listener, a package with its version."""
    told = [
        None if origin.scope is None else f"in scope {origin.scope}",
        None if origin.listener is None else f"by listener {origin.listener}",
        None if origin.distribution is None else f"from {origin.distribution}",
    ]
    return tuple(each for each in told if each is not None)


def thing_words(broken_by: Break) -> str:
    """What broke something: ``variable {{today}} in section acme:rules``."""
    match broken_by.cause:
        case "model":
            return "the model"
        case "lifetime":
            return "time"
        case "history":
            return f"the history, message {int(broken_by.name) + 1}"
        case "variable":
            return f"variable {{{{{broken_by.name}}}}} in {broken_by.inside_kind} {broken_by.inside}"
        case _:
            return f"{broken_by.cause} {broken_by.name}"


def break_words(broken_by: Break) -> str:
    """The whole of a break in one line, with its owner, its place, and what it was before."""
    if broken_by.cause == "lifetime":
        return f"{since(broken_by.new)} since the request before, and the provider keeps {since(broken_by.old)}"
    owner = "" if broken_by.origin is None else f" ({whose(broken_by.origin)})"
    at = "" if not broken_by.at else f", char {broken_by.at:,}"
    action = "" if broken_by.action == "changed" else f" {broken_by.action}"
    told = f' "{broken_by.old}" → "{broken_by.new}"' if broken_by.action == "changed" else ""
    return f"{thing_words(broken_by)}{action}{owner}{at}{told}"


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


def since(seconds: str) -> str:
    """A number of seconds, ``"400 s"``, in words."""
    number = int(seconds.removesuffix(" s"))
    if number < 120:
        return f"{number} s"
    if number < 7200:
        return f"{number // 60} min"
    return f"{number // 3600} h"


def when(milliseconds: int) -> str:
    """A time, in the zone that the machine is in."""
    return datetime.fromtimestamp(milliseconds / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
