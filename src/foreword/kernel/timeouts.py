"""How long somebody may be waited for: what counts as a number of seconds, for plugins as for providers and tools."""

from __future__ import annotations

__all__ = ["TIMEOUT_RULE", "is_timeout"]

_LONGEST = 10**7  # about four months; what is longer is a mistake, and event loops do not take just any number
TIMEOUT_RULE = f"must be a positive number of seconds, at most {_LONGEST:,}"


def is_timeout(value: object) -> bool:
    """Whether it keeps `TIMEOUT_RULE`."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= _LONGEST
