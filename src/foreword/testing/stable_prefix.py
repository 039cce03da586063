"""Whether a prompt begins alike in every step: what a provider can reuse depends on that."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar, cast

from foreword.errors import MissingExtraError
from foreword.kernel.names import shortened
from foreword.prompt.context import AssembleContext

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from datetime import datetime, timedelta

    from foreword.explain.subject import Subject
    from foreword.prompt.system_prompt import SystemPrompt

__all__ = ["assert_stable_prefix"]

T = TypeVar("T")

_TWO_STEPS: Final = (AssembleContext(), AssembleContext())


def assert_stable_prefix(
    prompt: SystemPrompt,
    contexts: Iterable[AssembleContext] = _TWO_STEPS,
    *,
    clocks: Iterable[datetime | timedelta] = (),
) -> None:
    """See that tools and system text are the same in several steps; runtime contexts may differ.

    Args:
        prompt: a prompt, or a view of one.
        contexts: of the steps, the first of which the others are held against. Without a clock, two of them at least.
        clocks: other times at which each step is made again, as moments or as how long from now.

    Raises:
        AssertionError: the beginnings differ; names the owner of the first character that does.
        ValueError: there is nothing to hold the first step against.
        MissingExtraError: clocks are given, and the extra ``lint`` is not installed, which moves them.
        ForewordError: the prompt cannot be assembled.
        TypeError: an argument is none of these.
    """
    __tracebackhide__ = True
    from foreword.explain.cache import compare
    from foreword.explain.telling import break_words

    prompt, contexts, clocks = _checked(prompt, contexts, clocks)
    steps = list(_steps(prompt, contexts, clocks))
    if len(steps) < 2:
        raise ValueError("one step alone is always like itself; give assert_stable_prefix two contexts, or a clock")
    first, *others = steps
    for step in others:
        broken_by = compare(first, step, masked=True).broken_by
        if broken_by is not None:
            raise AssertionError(f"{step.title} does not begin as {first.title} does: {break_words(broken_by)}")


def _checked(
    prompt: object, contexts: object, clocks: object
) -> tuple[SystemPrompt, tuple[AssembleContext, ...], tuple[datetime | timedelta, ...]]:
    """What was given, when it is what it must be."""
    from datetime import datetime, timedelta

    from foreword.prompt.system_prompt import SystemPrompt

    if not isinstance(prompt, SystemPrompt):
        raise TypeError(f"assert_stable_prefix takes a SystemPrompt, or a view of one, not {shortened(prompt)}")
    return (
        prompt,
        _all("contexts", contexts, (AssembleContext,), "AssembleContexts"),
        _all("clocks", clocks, (datetime, timedelta), "datetimes and timedeltas"),
    )


def _all(option: str, given: object, types: tuple[type[T], ...], wanted: str) -> tuple[T, ...]:
    told = shortened(given)
    members = tuple(cast("Iterable[object]", given)) if isinstance(given, Iterable) else None
    found = tuple(each for each in members or () if isinstance(each, types))
    if members is None or len(found) < len(members):
        raise TypeError(f"assert_stable_prefix takes {option} as a list of {wanted}, not {told}")
    return found


def _steps(
    prompt: SystemPrompt, contexts: tuple[AssembleContext, ...], clocks: tuple[datetime | timedelta, ...]
) -> Iterator[Subject]:
    """The prompt of each step under each clock, without what may change."""
    from foreword.explain.subject import subject_of
    from foreword.prompt.spans import Spans

    for clock in (None, *clocks):
        for number, context in enumerate(contexts, 1):
            with _under(clock):
                rendering = prompt.render_sync(context)
            yield replace(subject_of(rendering, _title(number, clock)), snapshot_spans=Spans())


def _title(number: int, clock: datetime | timedelta | None) -> str:
    from datetime import timedelta

    if clock is None:
        return f"step {number}"
    return f"step {number}, {f'{clock} from now' if isinstance(clock, timedelta) else f'at {clock}'},"


def _under(clock: datetime | timedelta | None) -> AbstractContextManager[None]:
    from foreword.explain.lint.clock import CLOCK_PACKAGE, can_move_clock, moved_clock

    if clock is None:
        return nullcontext()
    if not can_move_clock():
        raise MissingExtraError("assert_stable_prefix with clocks", "lint", CLOCK_PACKAGE)
    return moved_clock(clock)
