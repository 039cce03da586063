"""What goes out: exact bytes to a pipe; to a terminal text that cannot act on it, in its width, colours and encoding.

Prompts, names, paths and messages come from anywhere. A terminal obeys control characters, and a reader is deceived by
those that turn the direction of writing round or break lines unseen; so they are spelled out before they get there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "UNBOUNDED",
    "OutputError",
    "Piece",
    "Row",
    "Screen",
    "aside",
    "complain",
    "escaped",
    "say",
    "stream_json",
    "stream_text",
    "warn",
    "write_json",
    "write_rows",
    "write_text",
]

UNSAFE: Final = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, delete, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # change the direction of writing
    "\u2028\u2029"  # lines and paragraphs that end without a newline
    "\ud800-\udfff"  # halves of a surrogate pair: no encoding spells them
    "\U000e0000-\U000e007f"  # tags: letters that a model reads and no terminal shows
    "]"
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
UNBOUNDED: Final = 1_000_000
"""The width of a screen on which nothing is ever wrapped."""

_FALLBACK: Final = 100  # cells; the width of what is no terminal and says nothing in COLUMNS
_NARROWEST: Final = 16
_ROWS_AT_ONCE: Final = 500


def escaped(text: str) -> str:
    r"""The text with each unsafe character spelled out, as in ``\x1b`` or ``\u202e``."""
    return UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a row, and its style in rich's words; empty for none."""

    text: str
    style: str = ""


Row = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Screen:
    """What stdout can show."""

    width: int  # in cells
    has_colours: bool
    encoding: str
    hide: Callable[[str], str] = str  # takes out of names what nobody is to see

    @classmethod
    def of_stdout(cls, hide: Callable[[str], str] = str, *, fallback: int = _FALLBACK) -> Screen:
        """The screen behind stdout.

        Args:
            hide: takes out of names what nobody is to see.
            fallback: its width in cells, where it is no terminal and COLUMNS is not set.
        """
        width = shutil.get_terminal_size((fallback, 24)).columns
        return cls(max(width, _NARROWEST), _wants_colours(sys.stdout), _encoding(sys.stdout), hide)

    def can_show(self, text: str) -> bool:
        """Whether the encoding has all of these characters."""
        return _spelled(text, self.encoding) == text

    def shown(self, text: str) -> str:
        """The text as it can be shown: unsafe characters, and those that the encoding lacks, are spelled out."""
        return _spelled(escaped(text), self.encoding)

    def told(self, text: str) -> str:
        """The same for what is made of names: no text of a prompt, but something about it."""
        return self.shown(self.hide(text))

    def name(self, text: str) -> str:
        """The same for what has to stay in one line: a newline and a tab are spelled out, too."""
        return self.told(text).replace("\n", "\\n").replace("\t", "\\t")


def write_text(text: str) -> None:
    """Write a text and a newline to stdout: in UTF-8 and to the byte; but escaped if it is a terminal."""
    if sys.stdout.isatty():
        _write(_spelled(escaped(text), _encoding(sys.stdout)) + "\n")
    else:
        _write_bytes(f"{text}\n")


def write_json(value: object) -> None:
    """Write a JSON document and a newline to stdout; what a terminal must not get is escaped in JSON's own way."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    if not sys.stdout.isatty():
        _write_bytes(_SURROGATE.sub(_json_escape, text) + "\n")
        return
    text = UNSAFE.sub(_json_escape, text)
    if _spelled(text, _encoding(sys.stdout)) != text:
        text = json.dumps(value, indent=2)
    _write(text + "\n")


class OutputError(Exception):
    """Our own output cannot be written: whoever read it has gone, or the disk is full.

    Raised in the midst of somebody else's code, whose border would take an OSError for that code's.

    Args:
        why: what the system says.
    """

    def __init__(self, why: OSError) -> None:
        super().__init__(why)
        self.why = why


def stream_text(text: str, out: TextIO) -> None:
    """Write a piece of a text at once: as `write_text`, but without a newline, and to a stream that was stdout once.

    Raises:
        OutputError: it cannot be written.
    """
    try:
        if out.isatty():
            out.write(_spelled(escaped(text), _encoding(out)))
        else:
            out.buffer.write(text.encode("utf-8", "surrogatepass"))
        out.flush()
    except OSError as error:
        raise OutputError(error) from error


def stream_json(value: object, out: TextIO) -> None:
    """Write a JSON document in one line, at once.

    Raises:
        OutputError: it cannot be written.
    """
    text = json.dumps(value, ensure_ascii=False)
    unsafe = UNSAFE if out.isatty() else _SURROGATE
    stream_text(unsafe.sub(_json_escape, text) + "\n", out)


def write_rows(rows: Iterable[Row], screen: Screen) -> None:
    """Write rows of styled pieces to stdout; their text is written as it is, never read as markup."""
    if not screen.has_colours:
        sys.stdout.writelines("".join(piece.text for piece in row).rstrip() + "\n" for row in rows)
        return
    from rich.console import Console
    from rich.segment import Segment, Segments
    from rich.style import Style

    console = Console(file=sys.stdout, force_terminal=True, highlight=False, markup=False, emoji=False)
    segments: list[Segment] = []
    for row in rows:
        segments += [Segment(piece.text, Style.parse(piece.style)) for piece in _without_tail(row)]
        segments.append(Segment.line())
        if len(segments) > _ROWS_AT_ONCE:
            console.print(Segments(segments), end="", soft_wrap=True)
            segments = []
    console.print(Segments(segments), end="", soft_wrap=True)


def complain(message: str) -> None:
    """Say on stderr what is wrong."""
    _say("error:", "31", message)


def warn(message: str) -> None:
    """Say on stderr what is worth a look."""
    _say("warning:", "33", message)


def aside(message: str) -> None:
    """Say on stderr, in one line, what happens beside the output."""
    if _has_stderr():
        before, behind = ("\x1b[2m", "\x1b[0m") if _wants_colours(sys.stderr) else ("", "")
        sys.stderr.write(before)
        say(message)
        sys.stderr.write(f"{behind}\n")
        sys.stderr.flush()


def say(text: str) -> None:
    """Write a text to stderr, as a terminal can show it."""
    if _has_stderr():
        sys.stderr.write(_spelled(escaped(text), _encoding(sys.stderr)))


def _say(word: str, colour: str, message: str) -> None:
    if _has_stderr():
        sys.stderr.write(f"\x1b[1;{colour}m{word}\x1b[0m " if _wants_colours(sys.stderr) else f"{word} ")
        say(f"{message}\n")


def _has_stderr() -> bool:
    return getattr(sys, "stderr", None) is not None  # as where a shell closed it: foreword … 2>&-


def _without_tail(row: Row) -> Sequence[Piece]:
    """The row without the blanks at its end."""
    for at in range(len(row) - 1, -1, -1):
        if text := row[at].text.rstrip():
            return [*row[:at], Piece(text, row[at].style)]
    return []


def _wants_colours(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in ("dumb", "unknown")


def _encoding(stream: TextIO) -> str:
    return stream.encoding or "ascii"


def _spelled(text: str, encoding: str) -> str:
    if text.isascii():
        return text
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _json_escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


def _write(text: str) -> None:
    sys.stdout.write(text)


def _write_bytes(text: str) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
