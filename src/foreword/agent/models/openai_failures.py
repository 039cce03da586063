"""What the vendor's SDK raises, as a `ModelFailure`. Imported only where the SDK is (`openai`)."""

from __future__ import annotations

import time
from typing import cast

import openai

from foreword.agent.models.failures import Answered, classify
from foreword.wire.chunks import ModelFailure

__all__ = ["failure_of"]


def failure_of(error: Exception, *, begun: bool) -> ModelFailure:
    """The failure that an error stands for; its message as it came, whole and unmasked: `credentials.Mask` is next.

    Args:
        error: what was raised by sending a request or reading its answer.
        begun: whether an answer had begun.
    """
    match error:
        case openai.APIStatusError():
            headers = {name.lower(): value for name, value in error.response.headers.items()}
            return classify(Answered(_message(error), error.status_code, _words(error), headers, time.time()))
        case openai.APITimeoutError():
            return ModelFailure("the server was silent for longer than the timeout", "timeout", transient=True)
        case openai.APIConnectionError():
            code = "stream_cut" if begun else "connection"
            return ModelFailure(f"the connection failed: {_told(error.__cause__ or error)}", code, transient=True)
        case openai.APIError():  # in the middle of a stream
            return classify(Answered(_message(error), None, _words(error)))
        case ValueError() | RecursionError():  # no JSON, no UTF-8, or not in the format
            return ModelFailure(f"the answer cannot be read: {_told(error)}", "malformed_response", transient=True)
        case _:
            return ModelFailure(f"the SDK failed: {_told(error)}", "unknown")


def _message(error: openai.APIError) -> str:
    """What the provider says, without what the SDK puts around it."""
    if isinstance(error, openai.APIStatusError) and 300 <= error.status_code < 400:
        return "the server redirects, and a prompt goes nowhere but where you said; give base_url the new address"
    body = error.body
    said = cast("dict[str, object]", body).get("message") if isinstance(body, dict) else body
    return " ".join(said.split()) if isinstance(said, str) and said.strip() else error.message


def _words(error: openai.APIError) -> tuple[str, ...]:
    """The provider's own code and type."""
    return tuple(str(word) for word in (error.code, error.type) if word is not None)


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
