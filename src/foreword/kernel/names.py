"""Names of owners and scopes: errors show them and logs keep them, so each is a string that UTF-8 can spell."""

from __future__ import annotations

from foreword.errors import with_article

__all__ = ["NAME_RULE", "plain_name", "shortened", "spellable"]

NAME_RULE = "must be a non-empty string that UTF-8 can spell"
_LONGEST_VALUE_SHOWN = 60


def plain_name(name: object) -> str | None:
    """The name as an exact `str`; None where it breaks `NAME_RULE`."""
    if not isinstance(name, str) or not name or not spellable(name):
        return None
    return "".join((name,))  # a subclass may show itself as something else than what it holds


def spellable(text: str) -> bool:
    """Whether UTF-8 can spell it: it holds no half of a surrogate pair."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def shortened(value: object) -> str:
    """The repr of an argument, short enough for a message."""
    try:
        shown = repr(value)
    except ValueError:  # an int with too many digits to print
        return with_article(type(value).__name__)
    return shown if len(shown) <= _LONGEST_VALUE_SHOWN else f"{shown[:_LONGEST_VALUE_SHOWN]}…"
