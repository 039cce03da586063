"""From what a provider answers to a `ModelFailure`: which code it is, and whether trying again can help.

The same for all providers: HTTP's statuses say most of it, and the provider's own codes the rest. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import TYPE_CHECKING, Final

from foreword.wire.chunks import ModelFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Answered", "classify", "retry_after"]

_STATUS: Final = re.compile("[1-9][0-9]{2}")
_BY_STATUS: Final[Mapping[int, str]] = {
    400: "invalid_request",
    401: "authentication",
    402: "quota",
    403: "permission",
    404: "not_found",
    408: "timeout",
    409: "conflict",
    413: "context_length",
    429: "rate_limit",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
_BY_WORD: Final[Mapping[str, str]] = {  # a provider's code or type says more than the status
    "insufficient_quota": "quota",
    "billing_hard_limit_reached": "quota",
    "context_length_exceeded": "context_length",
    "content_filter": "content_filter",
    "content_policy_violation": "content_filter",
    "rate_limit_exceeded": "rate_limit",
    "invalid_api_key": "authentication",
    "invalid_request_error": "invalid_request",
    "overloaded_error": "overloaded",
    "server_error": "server_error",
    "api_error": "server_error",
    "authentication_error": "authentication",
    "billing_error": "quota",
    "not_found_error": "not_found",
    "permission_error": "permission",
    "rate_limit_error": "rate_limit",
    "request_too_large": "context_length",
    "timeout_error": "timeout",
}
_TRANSIENT: Final = frozenset(
    {
        "rate_limit",
        "overloaded",
        "server_error",
        "conflict",
        "timeout",
        "connection",
        "stream_cut",
        "malformed_response",
    }
)


@dataclass(frozen=True, slots=True)
class Answered:
    """What a provider answered in place of what was asked for."""

    message: str
    status: int | None = None  # None if it came in the middle of a stream that had begun well
    words: tuple[str, ...] = ()  # its own code and type, the more telling first
    headers: Mapping[str, str] | None = None  # names in lower case
    now: float = 0.0  # seconds since the epoch; a date in ``retry-after`` is counted from it


def classify(answered: Answered) -> ModelFailure:
    """The failure that an answer stands for."""
    code = _code(answered)
    headers = answered.headers or {}
    transient = {"true": True, "false": False}.get(headers.get("x-should-retry", ""), code in _TRANSIENT)
    message = answered.message.strip() or f"the provider answered with status {answered.status}"
    return ModelFailure(message, code, answered.status, transient, retry_after(headers, answered.now))


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that a provider asks to wait: from ``retry-after-ms``, else ``retry-after`` (seconds, or a date).

    Args:
        headers: of the answer, names in lower case.
        now: seconds since the epoch.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    told = headers.get("retry-after")
    seconds = _number(told)
    if seconds is not None or told is None:
        return seconds
    try:
        return max(parsedate_to_datetime(told).timestamp() - now, 0.0)
    except (ValueError, OverflowError):
        return None  # neither a number nor a date that there is: as if it were not there


def _code(answered: Answered) -> str:
    said = next((_BY_WORD[word] for word in answered.words if word in _BY_WORD), None)
    status = answered.status
    if status is None:  # some servers put the status that they would have sent in the place of a code
        status = next((int(word) for word in answered.words if _STATUS.fullmatch(word)), None)
    # A generic word ("invalid_request_error" with 401, 404, 429) must not hide a status that says more.
    if said is not None and (status is None or said not in ("invalid_request", "server_error")):
        return said
    if status is None:
        return "server_error"  # a stream that began well and then failed
    return _BY_STATUS.get(status) or _by_class(status)


def _by_class(status: int) -> str:
    if status >= 500:
        return "server_error"
    return "invalid_request" if status >= 400 else "unknown"


def _number(told: str | None) -> float | None:
    try:
        number = float(told or "")
    except ValueError:
        return None
    return number if isfinite(number) and number >= 0 else None
