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
from foreword.session.placeholders import ERASED
from foreword.session.trace import resent_trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from foreword.prompt.rendering import Rendering
    from foreword.session.header import RequestHeader, WrittenHeader
    from foreword.session.trace import RecordedTrace, StepTrace

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
        trace: what explains the step that recorded it; None if nothing does.

    Attributes:
        policy: as given.
    """

    __slots__ = ("_resent", "_session", "_trace", "_written", "policy")

    def __init__(
        self, session: str, policy: Drift, recorded: WrittenHeader | None, trace: RecordedTrace | None = None
    ) -> None:
        self._session, self.policy = session, policy
        self._written = None if policy == "fresh" else recorded
        self._trace = trace
        self._resent: tuple[Rendering, StepTrace] | None = None  # the last

    def header(self, today: RequestHeader) -> RequestHeader:
        """The header to send, given what was assembled.

        Raises:
            HeaderDriftError: it is not the recorded one, and that was to be an error. Or the recorded one is to go out,
                and something of it is gone.
        """
        recorded = self._recorded
        if recorded is None or not (parts := replace(today, stable_head=recorded.stable_head).differs_in(recorded)):
            return today
        gone = () if self._written is None else self._written.gone.values()
        if self.policy == "recorded" and not gone:
            return recorded
        told = [*_differences(recorded, today), *(f"{place} of the recorded one is gone" for place in gone)]
        raise HeaderDriftError(self._session, parts, "; ".join(told))

    def prompt(self, today: RequestHeader) -> RequestHeader:
        """The same, looking at system text and tools alone: a configuration is known later."""
        recorded = self._recorded
        return today if recorded is None else self.header(replace(today, config=recorded.config))

    def went_on(self) -> None:
        """A header was sent; what changes from here on is no drift."""
        if self.policy == "error":
            self._written = None

    def trace(self, today: Rendering) -> StepTrace | None:
        """What explains a step in which the recorded header goes out: who put it there when it was recorded.

        Args:
            today: what was assembled, and is held back but for the runtime contexts.

        Returns:
            The trace; None if the log says nothing about that, or not any more.
        """
        if self._trace is None:
            return None
        last = self._resent
        if last is None or not (last[0] is today or last[0].explains_as(today)):
            last = today, resent_trace(self._trace, today, None if last is None else last[1])
        self._resent = today, last[1]
        return last[1]

    def forget(self, blobs: AbstractSet[bytes]) -> None:
        """These blobs were erased: what they held of the recorded header does not go out again."""
        if self._written is not None:
            self._written = self._written.without(dict.fromkeys(blobs, ERASED))
        if self._trace is not None and self._trace.leaves & blobs:
            self._trace = None
        self._resent = None

    @property
    def _recorded(self) -> RequestHeader | None:
        return None if self._written is None else self._written.header


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
