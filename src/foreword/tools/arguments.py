"""The arguments of a call, as a model writes them: read once, strictly, and told to it where they are wrong.

Faults here are the model's, so they are worded for it: where, what was wrong, and which names there are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, cast

from foreword.errors import with_article

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from foreword.tools.context import ToolContext

__all__ = ["ArgumentsError", "Binding", "Given", "path_of", "read_arguments"]

_MOST_FAULTS: Final = 20
_LONGEST_FAULT: Final = 300


class ArgumentsError(Exception):
    """Arguments that do not fit; never leaves this package. Its message is for the model."""

    @classmethod
    def of(cls, faults: Iterable[str]) -> ArgumentsError:
        """The error of some faults, each a line."""
        told = [each if len(each) <= _LONGEST_FAULT else f"{each[:_LONGEST_FAULT]}…" for each in _most(faults)]
        return cls("the arguments do not fit the parameters:" + "".join(f"\n  {each}" for each in told))


@dataclass(frozen=True, slots=True)
class Given:
    """Arguments that are a JSON object; whether they fit is not known yet."""

    value: dict[str, Any]  # of this call alone, so that a tool may keep or change it
    json: bytes


class Binding(Protocol):
    """From arguments to a call of the tool's function."""

    def bind(self, given: Given, context: ToolContext) -> Callable[[], Any]:
        """The function with its arguments, checked; calling it calls the tool.

        Raises:
            ArgumentsError: they do not fit.
        """
        ...


def read_arguments(arguments: str | Mapping[str, Any]) -> Given:
    """Read the arguments of a call.

    Args:
        arguments: as a model writes them, an empty text standing for none; or an object that JSON can hold.

    Raises:
        ArgumentsError: they are no JSON object.
    """
    try:
        text = arguments if isinstance(arguments, str) else _dumped(dict(arguments)).decode()
        value = json.loads(text if text.strip() else "{}", parse_constant=_refuse)
        held = _dumped(value)  # once more: an escape can spell half of a surrogate pair, a number one too large
    except RecursionError:
        raise ArgumentsError("the arguments are nested too deeply") from None
    except (TypeError, ValueError) as fault:
        raise ArgumentsError(f"the arguments are no JSON: {_worded(fault)}") from None
    if not isinstance(value, dict):
        what = {"list": "an array", "str": "a string", "NoneType": "null"}.get(type(value).__name__)
        raise ArgumentsError(f"the arguments must be a JSON object, not {what or with_article(type(value).__name__)}")
    return Given(cast("dict[str, Any]", value), held)


def path_of(steps: Sequence[str | int]) -> str:
    """A place inside the arguments: ``items[0].count``; ``arguments`` for the whole."""
    spelled = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return spelled.removeprefix(".") or "arguments"


def _dumped(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _worded(fault: Exception) -> str:
    return "half of a surrogate pair, which stands for no character" if isinstance(fault, UnicodeError) else str(fault)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")


def _most(faults: Iterable[str]) -> list[str]:
    held = list(islice(faults, _MOST_FAULTS + 1))
    return held if len(held) <= _MOST_FAULTS else [*held[:_MOST_FAULTS], "… and more"]
