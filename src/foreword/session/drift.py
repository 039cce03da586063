"""Drift: a session goes on, and what is assembled today is not what its log has recorded.

    fresh       today's goes out, and the header in the log says in which parts it differs
    recorded    the recorded one goes out again, until the session is closed
    error       nothing goes out

It is the header that counts: configuration, system text, tools. What can be called is always today's set.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

from foreword.errors import HeaderDriftError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from foreword.session.header import RequestHeader, WrittenHeader

__all__ = ["Drift", "Resumption", "checked_drift"]

Drift: TypeAlias = Literal["fresh", "recorded", "error"]
"""What goes out if today's header differs from the recorded one; see the module."""

_POLICIES: Final[tuple[str, ...]] = get_args(Drift)


def checked_drift(drift: str) -> Drift:
    """A policy, checked.

    Raises:
        ValueError: it is none.
    """
    if drift not in _POLICIES:
        raise ValueError(f"drift is {drift!r}; it is one of {', '.join(map(repr, _POLICIES))}")
    return cast("Drift", drift)


class Resumption:
    """How a session goes on.

    Args:
        session: its id, for errors.
        policy: what to do about drift.
        recorded: the header in force when it was resumed; None if there was none, or it is new.

    Attributes:
        policy: as given.
    """

    __slots__ = ("_erased", "_recorded", "_session", "policy")

    def __init__(self, session: str, policy: Drift, recorded: WrittenHeader | None) -> None:
        self._session, self.policy = session, policy
        self._recorded = None if policy == "fresh" or recorded is None else recorded.header
        self._erased = () if recorded is None else tuple(recorded.gone.values())

    def header(self, today: RequestHeader) -> RequestHeader:
        """The header to send, given what was assembled.

        Raises:
            HeaderDriftError: it is not the recorded one, and that was to be an error. Or the recorded one is to go out,
                and something of it is gone.
        """
        recorded = self._recorded
        if recorded is None or not (parts := replace(today, stable_head=recorded.stable_head).differs_in(recorded)):
            return today
        if self.policy == "recorded" and not self._erased:
            return recorded
        told = [*_differences(recorded, today), *(f"{place} of the recorded one is gone" for place in self._erased)]
        raise HeaderDriftError(self._session, parts, "; ".join(told))

    def prompt(self, today: RequestHeader) -> RequestHeader:
        """The same, looking at system text and tools alone: a configuration is known later."""
        recorded = self._recorded
        return today if recorded is None else self.header(replace(today, config=recorded.config))

    def went_on(self) -> None:
        """A header was sent; what changes from here on is no drift."""
        if self.policy == "error":
            self._recorded = None


def _differences(recorded: RequestHeader, today: RequestHeader) -> Iterator[str]:
    """In words, what differs."""
    if recorded.sections != today.sections:
        pairs = zip(recorded.sections, today.sections, strict=False)
        changed = [str(number) for number, (one, other) in enumerate(pairs, 1) if one != other]
        counts = f"recorded: {len(recorded.sections)} sections, today: {len(today.sections)}"
        yield f"section {', '.join(changed[:10])} ({counts})" if changed else counts
    tools: list[Mapping[str, Any]] = [{tool.name: tool for tool in header.tools} for header in (recorded, today)]
    if recorded.tools != today.tools:
        names = sorted(name for name in {**tools[0], **tools[1]} if tools[0].get(name) != tools[1].get(name))
        yield f"tool {', '.join(names[:10])}" if names else "the order of the tools"
    if recorded.config != today.config:
        yield f"the configuration ({recorded.config}, now {today.config})"
