"""Errors in words, for the log: the message with its causes, and a stable code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

from foreword.errors import ForewordError, message_of

__all__ = ["LONGEST", "code_of", "in_words"]

LONGEST: Final = 10_000
"""Characters of an error's words that are logged."""


def in_words(error: BaseException) -> str:
    """What happened: the error's message, the errors of a group in brackets, then the causes that say something new."""
    told: list[str] = []
    for each in _with_causes(error):
        words = _own_words(each)
        if not any(words in before for before in told):
            told.append(words)
    return ": ".join(told).encode("utf-8", "backslashreplace").decode()[:LONGEST]


def code_of(error: BaseException) -> str:
    """A stable word for an error: the kind of one of ours, ``unknown`` for anybody else's."""
    return error.kind if isinstance(error, ForewordError) else "unknown"


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each
        each = each.__cause__


def _own_words(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        members = cast("tuple[BaseException, ...]", error.exceptions)
        return f"{error.message} [{'; '.join(map(in_words, members))}]"
    return message_of(error) or type(error).__name__
