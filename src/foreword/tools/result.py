"""What comes of a call: a text for the model, always; and what the rest of a program may want to know.

Failures are results, too. Their texts begin with ``Error:`` and say what a model can act on; codes tell them apart:

* ``UNKNOWN_TOOL``: its scope has no such tool (or may not see it, which is the same);
* ``INVALID_ARGS``: the arguments do not fit; nothing was called;
* ``ABORTED_BEFORE_DISPATCH``, ``ABORTED``: the call was cancelled, before the tool began or while it ran;
* ``TIMEOUT``: the tool took too long;
* ``TOOL_FAILED``: the tool raised;
* ``INVALID_TOOL_OUTPUT``: it gave back what is neither text nor JSON, or a `ToolResult` of wrong parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast

from foreword.errors import NotJsonError, words_of
from foreword.jsonvalue import freeze
from foreword.kernel.names import spellable
from foreword.prompt.text import described
from foreword.wire.request import canonical_json

if TYPE_CHECKING:
    from foreword.jsonvalue import JsonValue

__all__ = ["MAX_RESULT", "ToolResult", "failure", "raised", "result_of", "unusable"]

MAX_RESULT: Final = 256 * 1024
"""UTF-8 bytes of a result's text, unless a tool says otherwise; far more than a model should be told at once."""

_LONGEST_MESSAGE: Final = 2000


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call. A tool may give one back itself, to say that it failed: ``ToolResult("…", is_error=True)``.

    Attributes:
        text: what the model is told.
        is_error: whether that is a failure.
        code: which kind of failure; a tool may have codes of its own.
        value: what the tool gave back, as frozen JSON.
        error: what the tool raised, whole, for logs and people. Under a kernel the guard has seen it.
    """

    text: str
    is_error: bool = False
    code: str | None = None
    value: JsonValue = None
    error: BaseException | None = field(default=None, repr=False, compare=False)


def failure(code: str, why: str, error: BaseException | None = None) -> ToolResult:
    """The result of a call that failed."""
    return ToolResult(f"Error: {why}", is_error=True, code=code, error=error)


def raised(error: BaseException) -> ToolResult:
    """The result of a call whose tool raised: the model is told its type and message, not more."""
    return failure("TOOL_FAILED", _words(error), error)


def result_of(answer: object, max_bytes: int) -> ToolResult:
    """The result of a call whose tool gave something back.

    Args:
        answer: a string, a `ToolResult`, or what JSON can hold: also through pydantic, as its models, dataclasses,
            dates and tuples are.
        max_bytes: of the text; what is beyond is cut off, and the text says so.

    Raises:
        Exception: it is none of these, or its own code raised.
    """
    result = _checked(answer) if isinstance(answer, ToolResult) else _made(answer)
    return replace(result, text=_cut(result.text, max_bytes))


def unusable(error: BaseException) -> ToolResult:
    """The result of a call whose tool gave back what `result_of` refused."""
    return failure("INVALID_TOOL_OUTPUT", f"the tool gave back what cannot be told: {_words(error)}", error)


def _made(answer: object) -> ToolResult:
    value = freeze(_plain(answer))
    return ToolResult(value if isinstance(value, str) else canonical_json(value).decode(), value=value)


def _plain(answer: object) -> Any:
    """The answer as JSON, as far as it can be told without pydantic; the rest with it."""
    if answer is None or isinstance(answer, (str, bool, int)):
        return answer
    if isinstance(answer, float):
        return _unsigned(answer)
    if type(answer) is dict:
        return {key: _plain(value) for key, value in cast("dict[object, object]", answer).items()}
    if type(answer) is list:
        return [_plain(each) for each in cast("list[object]", answer)]
    if isinstance(answer, (set, frozenset)):  # in an order of its own, not in that of this process
        return sorted(map(_plain, cast("set[object]", answer)), key=canonical_json)
    from pydantic_core import to_jsonable_python

    return _with_plain_zeros(to_jsonable_python(answer))


def _with_plain_zeros(value: Any) -> Any:
    if isinstance(value, float):
        return _unsigned(value)
    if isinstance(value, dict):
        return {key: _with_plain_zeros(each) for key, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_with_plain_zeros(each) for each in cast("list[object]", value)]
    return value


def _unsigned(number: float) -> float:
    return number or abs(number)  # −0.0 says no more than 0, and comes of any rounding


def _checked(result: ToolResult) -> ToolResult:
    """A result held to what it says it is, of plain parts; one that a tool made may be anything, and logs take less.

    Raises:
        TypeError, NotJsonError: it is not.
    """
    text, is_error, code = cast("tuple[object, object, object]", (result.text, result.is_error, result.code))
    if not isinstance(is_error, bool):
        raise TypeError(f"the is_error of its ToolResult is {described(is_error)}; give True or False")
    return replace(
        result,
        text=_spelled(text, "text", "give a string"),
        code=None if code is None else _spelled(code, "code", "give a string or None"),
        value=freeze(result.value),
    )


def _spelled(part: object, name: str, way_out: str) -> str:
    """A part of a result as an exact `str`: a subclass, as of a template engine, may show itself as something else."""
    if not isinstance(part, str):
        raise TypeError(f"the {name} of its ToolResult is {described(part)}; {way_out}")
    plain = "".join((part,))
    if not spellable(plain):
        raise NotJsonError(f"the {name}", "holds half of a surrogate pair; repair it where it is read")
    return plain


def _cut(text: str, max_bytes: int) -> str:
    """The text within its limit; cut between two characters, and it says so."""
    if len(text) * 4 <= max_bytes:
        return text
    encoded = text.encode()
    if len(encoded) <= max_bytes:
        return text
    kept = encoded[:max_bytes].decode(errors="ignore")
    return f"{kept}\n[cut off here: the result has {len(encoded):,} bytes, and only {max_bytes:,} are shown]"


def _words(error: BaseException) -> str:
    """What an error says; of a group, what its members say."""
    if isinstance(error, BaseExceptionGroup):
        members = cast("tuple[BaseException, ...]", error.exceptions)
        return _cut_message("; ".join(map(_words, members)))
    return _cut_message(words_of(error))


def _cut_message(message: str) -> str:
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}…"
