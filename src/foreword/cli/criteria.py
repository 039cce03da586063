"""What options say of the sessions and events that are meant: labels, and how long ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

import click

__all__ = ["age_or_date", "label"]

_AGE: Final = re.compile(r"(\d{1,6}(?:\.\d+)?)([mhdw])", re.ASCII)
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def age_or_date(text: str, option: str) -> datetime | timedelta:
    """An age as in ``2h``, or a date or time as in ``2026-11-30T09:30``; without a zone it is in UTC.

    Raises:
        click.UsageError: it is neither; names the option.
    """
    age = _AGE.fullmatch(text)
    if age is not None:
        return timedelta(**{_UNITS[age[2]]: float(age[1])})
    try:
        told = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(
            f"{option} {text!r} is no age as in 30d (m, h, d, w), and no date as in 2026-11-30"
        ) from None
    return told if told.tzinfo is not None else told.replace(tzinfo=UTC)


def label(text: str) -> tuple[str, str]:
    """A label as in ``ticket=4711``.

    Raises:
        click.UsageError: it is none.
    """
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.UsageError(f"--label {text!r} is no label as in ticket=4711")
    return name, value
