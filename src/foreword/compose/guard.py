"""Between a plugin's code and whoever hears of its failure: no value of the environment goes through.

A plugin that is given secrets may say them when it fails ("cannot log in with …"). Where it does, another error comes
out in the place of its own, without the value, and without the cause, which would tell it, too. Errors that say no
secret come out as they are. The kernel passes everything through here before it keeps, logs or raises it.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from foreword.errors import PluginFailedError, message_of
from foreword.kernel.life import AFTER_SET_UP, SET_UP, when_it_failed
from foreword.kernel.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.compose.secrets import Secrets
    from foreword.kernel.context import Guard

__all__ = ["guard_of", "place_of", "told"]

_OURS = Path(__file__).resolve().parents[1]


def guard_of(secrets: Secrets) -> Guard:
    """What takes secrets out of the errors of plugins: for ``Context(guard=…)``."""

    def guard(plugin: str, phase: str, error: BaseException) -> BaseException:
        if not isinstance(error, Exception) or not _tells_any(error, secrets):
            return error
        message = secrets.hide(_words(error))
        if phase in (SET_UP, AFTER_SET_UP):
            return PluginFailedError(plugin, type(error).__name__, message, when_it_failed(phase))
        return RuntimeError(f"plugin {plugin} failed in {phase}: {type(error).__name__}: {message}")

    return guard


def told(error: BaseException, secrets: Secrets) -> str:
    """What an error of a plugin's code says, without secrets, and where it was raised."""
    place = place_of(error)
    words = _words(error)
    message = f"{type(error).__name__}: {words}" if words else type(error).__name__
    return secrets.hide(message) + ("" if place is None else f" (raised at {place})")


def place_of(error: BaseException) -> str | None:
    """The last line on the way to an error that is neither ours nor Python's."""
    cause = error.__cause__ if isinstance(error, PluginFailedError) and error.__cause__ is not None else error
    if isinstance(cause, SyntaxError) and cause.filename is not None:
        return str(Source(cause.filename, cause.lineno or 0))
    frames = [
        frame
        for frame in traceback.extract_tb(cause.__traceback__)
        if not frame.filename.startswith("<") and not Path(frame.filename).resolve().is_relative_to(_OURS)
    ]
    return str(Source(frames[-1].filename, frames[-1].lineno or 0)) if frames else None


def _tells_any(error: Exception, secrets: Secrets) -> bool:
    """Whether an error, or anything that it comes from, says a secret."""
    said = [*traceback.format_exception(error), *(repr(each.args) for each in _all_of(error))]
    everything = "".join(said)
    return secrets.hide(everything) != everything


def _all_of(error: BaseException) -> Iterator[BaseException]:
    """An error, and all that it comes from and consists of."""
    seen: set[int] = set()
    ahead: list[BaseException | None] = [error]
    while ahead:
        each = ahead.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            yield each
            ahead += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]


def _words(error: BaseException) -> str:
    """What an error says; of a group, with what its members say."""
    if not isinstance(error, BaseExceptionGroup):
        return message_of(error)
    members = cast("tuple[Any, ...]", error.exceptions)  # pyright: ignore[reportUnknownMemberType]
    return f"{error.message}: " + "; ".join(f"{type(each).__name__}: {_words(each)}" for each in members)
