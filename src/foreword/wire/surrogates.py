"""Halves of characters: UTF-16 spells what lies beyond its first plane in two, and some servers cut between them.

JSON can carry such a half (as an escape), UTF-8 cannot, so none may get into a message or into the log.
"""

from __future__ import annotations

__all__ = ["Joiner", "joined"]


def joined(text: str) -> str:
    """The text with halves that belong together joined, and lone ones replaced by U+FFFD."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class Joiner:
    """Joins halves that come in different pieces of a text."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def add(self, text: str) -> str:
        """What can be passed on now; a first half at the end is kept for the next piece."""
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return joined(text)

    def rest(self) -> str:
        """What is left at the end: a half without its other half, as U+FFFD."""
        half, self._half = self._half, ""
        return joined(half)
