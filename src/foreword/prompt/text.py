"""Texts as they come in: read from files, held to their limits, found to be strings."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from foreword.errors import NotAStringError, PromptTooLargeError, UnreadableTextError, with_article

if TYPE_CHECKING:
    from pathlib import Path

    from foreword.errors import EntryRef

__all__ = [
    "described",
    "is_unawaited",
    "plain_string",
    "read_text",
    "refuse_awaitable",
    "within",
]


def read_text(path: Path, entry: EntryRef) -> str:
    """The text of a file: UTF-8, without BOM, with LF line ends, without its final newline; inner text as it is.

    Raises:
        UnreadableTextError: the file cannot be read or is no UTF-8; names the place of the first bad byte.
    """
    try:
        data = path.read_bytes()
    except OSError as fault:
        raise UnreadableTextError(entry, str(path.absolute()), fault.strerror or str(fault)) from fault
    except ValueError as fault:  # a name that no file can have: a NUL, half of a surrogate pair
        raise UnreadableTextError(entry, repr(str(path)), str(fault)) from fault
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        why = f"byte 0x{data[fault.start]:02X} at offset {fault.start} (line {line}) is not UTF-8; save it as UTF-8"
        raise UnreadableTextError(entry, str(path.absolute()), why) from fault
    return text.replace("\r\n", "\n").removesuffix("\n")


def plain_string(answer: object, what: str) -> str:
    """The answer as an exact `str`.

    Raises:
        NotAStringError: it is none; an awaitable is told to come from an async function.
    """
    if type(answer) is str:
        return answer
    if isinstance(answer, str):
        return "".join((answer,))  # a subclass may render differently from what it holds
    refuse_awaitable(answer, what)
    raise NotAStringError(what, described(answer))


def refuse_awaitable(answer: object, what: str) -> None:
    """Tell a plain function that gives an awaitable to become an async one.

    Raises:
        NotAStringError: the answer is an awaitable.
    """
    if is_unawaited(answer):
        raise NotAStringError(what, "an awaitable", "make it async: define the provider with `async def`")


def is_unawaited(answer: object) -> bool:
    """Whether an answer is an awaitable, which nobody will await: said now, and not in a warning at some later time."""
    if inspect.iscoroutine(answer):
        answer.close()
    return inspect.isawaitable(answer)


def described(value: object) -> str:
    """What kind of thing this is, without showing it: values may be secret."""
    return "None" if value is None else with_article(type(value).__name__)


def within(limit: int, text: str, what: str) -> None:
    """Hold a text to a limit in UTF-8 bytes.

    Raises:
        PromptTooLargeError: it is larger.
    """
    if len(text) * 4 <= limit:  # a code point has at most 4 bytes, so the exact count is rarely needed
        return
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    if size > limit:
        raise PromptTooLargeError(what, size, limit)
