"""Moments and durations in words: UTC throughout, since logs of several machines are read side by side."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["duration", "iso", "moment"]


def moment(milliseconds: int) -> str:
    """A moment for people: ``2026-11-30 09:33:12Z``."""
    return _at(milliseconds).strftime("%Y-%m-%d %H:%M:%SZ")


def iso(milliseconds: int) -> str:
    """A moment for programs: ISO 8601 with milliseconds."""
    return _at(milliseconds).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def duration(milliseconds: int) -> str:
    """A duration: ``340 ms``, ``1.2 s``, ``75 s``."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    return f"{milliseconds / 1000:.1f} s" if milliseconds < 10_000 else f"{milliseconds / 1000:,.0f} s"


def _at(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
