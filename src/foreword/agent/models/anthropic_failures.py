"""What the vendor's SDK raises, as a `ModelFailure`. Imported only where the SDK is (`anthropic_client`)."""

from __future__ import annotations

import time

import anthropic
import httpx2

from foreword.agent.models.failures import Answered, classify
from foreword.wire.chunks import ModelFailure

__all__ = ["failure_of"]

_TOO_LONG = ("prompt is too long", "input length and `max_tokens` exceed")  # it has no code of its own


def failure_of(error: Exception, *, begun: bool) -> ModelFailure:
    """The failure that an error stands for; its message as it came, whole and unmasked: `credentials.Mask` is next.

    Args:
        error: what was raised by sending a request or reading its answer.
        begun: whether an answer had begun.
    """
    match error:
        case anthropic.APIStatusError() if begun:  # an event of the stream; the status is that of its good beginning
            return classify(Answered(_message(error), None, _words(error)))
        case anthropic.APIStatusError():
            headers = {name.lower(): value for name, value in error.response.headers.items()}
            return classify(Answered(_message(error), error.status_code, _words(error), headers, time.time()))
        case anthropic.APITimeoutError() | httpx2.TimeoutException():
            return ModelFailure("the server was silent for longer than the timeout", "timeout", transient=True)
        case anthropic.APIConnectionError() | httpx2.TransportError() | httpx2.StreamError() | httpx2.DecodingError():
            code = "stream_cut" if begun else "connection"
            return ModelFailure(f"the connection failed: {_told(error.__cause__ or error)}", code, transient=True)
        case ValueError() | RecursionError():  # no JSON, no UTF-8, or not in the format
            return ModelFailure(f"the answer cannot be read: {_told(error)}", "malformed_response", transient=True)
        case _:
            return ModelFailure(f"the SDK failed: {_told(error)}", "unknown")


def _message(error: anthropic.APIStatusError) -> str:
    """What the provider says, without what the SDK puts around it."""
    if 300 <= error.status_code < 400:
        return "the server redirects, and a prompt goes nowhere but where you said; give base_url the new address"
    said = error.api_message or (error.body if isinstance(error.body, str) else None)
    return " ".join(said.split()) if isinstance(said, str) and said.strip() else error.message


def _words(error: anthropic.APIStatusError) -> tuple[str, ...]:
    """The provider's own words for it, the more telling first."""
    words = ("context_length_exceeded",) if _message(error).startswith(_TOO_LONG) else ()
    return (*words, *(str(word) for word in (error.error_code, error.type) if word is not None))


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
