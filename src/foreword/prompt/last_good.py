"""The last good answers of a provider, for ``on_error="last_good"``.

An answer is reused only where it would have been given: for the same registration, scope and model, and for equal
values of every key in ``last_good_by``. With no key named, only assemblies without any values keep or reuse one, so
that one tenant's text can never reach another by an option left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Hashable

    from foreword.kernel.scope import ScopeKey
    from foreword.prompt.context import AssembleContext, ContextKey

__all__ = ["MOST_KEPT", "LastGood"]

MOST_KEPT: Final = 256
"""Answers that are kept of one registration; the oldest goes."""


class LastGood:
    """The last good answers of one registration."""

    __slots__ = ("_answers", "_by")

    def __init__(self, by: tuple[ContextKey[Any], ...]) -> None:
        self._by = by
        self._answers: dict[Hashable, Any] = {}

    def emptied(self) -> LastGood:
        """Another one with nothing in it, for another value of the registration."""
        return LastGood(self._by)

    def keep(self, scope: ScopeKey, context: AssembleContext, answer: Any) -> None:
        """Keep an answer.

        Raises:
            TypeError: a value that answers are told apart by cannot be hashed.
        """
        key = self._key(scope, context)
        if key is None:
            return
        self._answers.pop(key, None)
        self._answers[key] = answer
        if len(self._answers) > MOST_KEPT:
            self._answers.pop(next(iter(self._answers)), None)

    def reuse(self, scope: ScopeKey, context: AssembleContext) -> tuple[Any] | None:
        """The answer to use again, in a tuple; None if there is none."""
        key = self._key(scope, context)
        return (self._answers[key],) if key is not None and key in self._answers else None

    def _key(self, scope: ScopeKey, context: AssembleContext) -> Hashable | None:
        given = tuple(context.keys)
        if any(key not in given for key in self._by) or (given and not self._by):
            return None
        for key in self._by:
            _check_hashable(key, context[key])
        return (scope, context.model, tuple(context[key] for key in self._by))


def _check_hashable(key: ContextKey[Any], value: object) -> None:
    try:
        hash(value)
    except TypeError as error:
        why = f"its last good answers are told apart by {key!r}, whose value cannot be hashed: {error}"
        raise TypeError(f"{why}; give one that cannot change, as a tuple") from None
