"""A provider that is not there: an HTTP client for a vendor's SDK that answers by script, in the format it is asked in.

    client = openai.AsyncOpenAI(api_key="none", http_client=offline_client("It is late."))

So an agent runs as it is, SDK and bodies and all, without a key and without a network. It answers chat completions,
responses and Anthropic's messages; answers come whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from foreword.errors import MissingExtraError

if TYPE_CHECKING:
    import httpx2

__all__ = ["offline_client"]


def offline_client(*answers: str) -> httpx2.AsyncClient:
    """A client that gives these texts, one for each request.

    Args:
        answers: what the model says. A request beyond them, one that asks for a stream, or one in a format that is not
            known, is answered with status 400 and the reason.

    Returns:
        What the SDKs of OpenAI and Anthropic take as ``http_client=``.

    Raises:
        MissingExtraError: neither of their extras is installed.
    """
    try:
        import httpx2
    except ModuleNotFoundError as missing:
        raise MissingExtraError("a client for SDKs", "openai", "httpx2") from missing
    left = list(answers)

    def answer(request: httpx2.Request) -> httpx2.Response:
        written = next((make for path, make in _FORMATS.items() if request.url.path.endswith(path)), None)
        if written is None:
            return _refused(httpx2, f"nobody answers {request.url.path} here")
        if json.loads(request.content).get("stream"):
            return _refused(httpx2, "answers come whole here, and a stream was asked for")
        if not left:
            return _refused(httpx2, f"there were {len(answers)} answers, and this is a further request")
        return httpx2.Response(200, json=written(left.pop(0)))

    return httpx2.AsyncClient(transport=httpx2.MockTransport(answer))


def _refused(library: Any, why: str) -> httpx2.Response:
    refused: httpx2.Response = library.Response(400, json={"error": {"message": why, "type": "invalid_request_error"}})
    return refused


def _chat(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "offline", "choices": [choice]}


def _response(text: str) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    told = {"id": "resp_1", "object": "response", "created_at": 1, "model": "offline", "status": "completed"}
    return {**told, "output": [message], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}


def _message(text: str) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "offline",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


_FORMATS: Final[Mapping[str, Callable[[str], dict[str, Any]]]] = {
    "/chat/completions": _chat,
    "/responses": _response,
    "/v1/messages": _message,
}
