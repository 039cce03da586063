"""The adapters of real models side by side: what each is made of, and what its server says. For tests of what they share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.support import anthropic_events, recording_server
from tests.support.recording_server import Answer, RecordingServer

from foreword.agent.models import Chunk, Finish, ModelAdapter
from foreword.agent.models.anthropic import AnthropicAdapter
from foreword.agent.models.openai import OpenAIAdapter
from foreword.wire.messages import UserMessage
from foreword.wire.profiles import ANTHROPIC, COMPATIBLE, COMPATIBLE_MESSAGES, OPENAI
from foreword.wire.request import ModelConfig, ModelRequest

KEY = "sk-a-key-that-nobody-may-see"

Adapter = OpenAIAdapter | AnthropicAdapter

Failed = tuple[Answer, str, int | None, bool, float | None]
"""An answer that is a failure, and what it is read as: code, status, whether it is transient, seconds to wait."""


@dataclass(frozen=True)
class Vendor:
    """An adapter, and what its server says."""

    name: str  # of the provider, of its SDK and of its extra
    kind: Callable[..., Any]  # the adapter's class
    url: Callable[[RecordingServer], str]  # what is given as the address of a server
    model: str
    address: str  # of the provider
    profiles: tuple[object, object]  # of the provider, and of others that speak its format
    variables: tuple[str, ...]  # those of the environment with what identifies its user, the key first
    headers_variable: str  # that of the environment from which its SDK takes further headers
    module: Any  # the events of its format: `recording_server`, `anthropic_events`
    end: Any  # the event that says how an answer ended
    ending: Callable[[str], Any]  # the same, with a reason
    error: Callable[[str], Any]  # a failure in the midst of a stream
    nonsense: bytes  # an event that is no JSON
    failures: Mapping[int, Answer]  # by status
    event: bytes = b""  # what stands in a stream before the data of an event
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])  # a setting of its own

    def __str__(self) -> str:
        return self.name

    def make(self, server: RecordingServer, **more: Any) -> Any:
        return self.kind(base_url=self.url(server), **{"api_key": KEY, **more})

    def config(self, **settings: Any) -> ModelConfig:
        return ModelConfig(self.name, self.model, settings)

    @property
    def request(self) -> ModelRequest:
        return ModelRequest("Be brief.", (), (UserMessage("Why is it late?"),), self.config())

    # what its server says

    def text(self, piece: str) -> Any:
        return self.module.text(piece)

    def said(self, words: str) -> Answer:
        answer: Answer = self.module.said(words)
        return answer

    def streaming(
        self, *events: Any, done: bool = True, end: Literal["whole", "cut", "silent"] = "whole", **more: Any
    ) -> Answer:
        how = {"end" if self.module is recording_server else "finish": end}
        answer: Answer = self.module.streaming(*events, done=done, **how, **more)
        return answer

    def raw(self, data: bytes) -> Answer:
        """A stream of one event with these data."""
        return self.streaming(self.event + b"data: " + data + b"\n\n")

    def begins(self, *events: Any) -> Answer:
        """An answer that begins, and then goes silent."""
        return self.streaming(*events, done=False, end="silent")

    def whole(self, *events: Any) -> Answer:
        return self.streaming(*events, self.end)

    def failing(self, status: int, message: str, **more: Any) -> Answer:
        answer: Answer = self.module.failing(status, message=message, **more)
        return answer


_chat, _messages = recording_server.failing, anthropic_events.failing

VENDORS = [
    Vendor(
        "openai",
        OpenAIAdapter,
        lambda server: server.url,
        "gpt-4o",
        "https://api.openai.com/v1",
        (OPENAI, COMPATIBLE),
        ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"),
        "OPENAI_CUSTOM_HEADERS",
        recording_server,
        recording_server.chunk(finish="stop"),
        lambda reason: recording_server.chunk(finish=reason),
        lambda message: {"error": {"message": message, "type": "server_error"}},
        b"data: {nonsense\n\n",
        {
            400: _chat(400, type="invalid_request_error"),
            401: _chat(401, code="invalid_api_key"),
            402: _chat(402),
            403: _chat(403),
            404: _chat(404, code="model_not_found", type="invalid_request_error"),
            429: _chat(429, headers={"retry-after": "2"}),
            500: _chat(500),
            529: _chat(529),
        },
    ),
    Vendor(
        "anthropic",
        AnthropicAdapter,
        lambda server: server.root,
        "claude-sonnet-4-5",
        "https://api.anthropic.com",
        (ANTHROPIC, COMPATIBLE_MESSAGES),
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        "ANTHROPIC_CUSTOM_HEADERS",
        anthropic_events,
        anthropic_events.stop(),
        lambda reason: anthropic_events.stop(reason),
        lambda message: anthropic_events.error("api_error", message),
        b"event: message_start\ndata: {nonsense\n\n",
        {
            400: _messages(400, "invalid_request_error"),
            401: _messages(401, "authentication_error"),
            402: _messages(402, "billing_error"),
            403: _messages(403, "permission_error"),
            404: _messages(404, "not_found_error"),
            429: _messages(429, "rate_limit_error", headers={"retry-after": "2"}),
            500: _messages(500, "api_error"),
            529: _messages(529, "overloaded_error"),
        },
        b"event: x\n",
        {"thinking": {"type": "adaptive"}},
    ),
]


async def answer_to(adapter: ModelAdapter, request: ModelRequest) -> list[Chunk]:
    return [chunk async for chunk in adapter.stream(request)]


async def finish_of(adapter: ModelAdapter, request: ModelRequest) -> Finish:
    """The one finish, which is the last chunk."""
    *before, last = await answer_to(adapter, request)
    assert isinstance(last, Finish)
    assert not any(isinstance(each, Finish) for each in before)
    return last


async def assert_fails(server: RecordingServer, adapter: ModelAdapter, request: ModelRequest, failed: Failed) -> None:
    """An answer is one finish with the right facts; nothing is raised, and nothing sent twice."""
    server.answer(failed[0])
    finish = await finish_of(adapter, request)
    failure = finish.failure
    assert finish.kind == "error"
    assert failure is not None
    assert (failure.code, failure.status, failure.transient, failure.retry_after) == failed[1:]
    assert failure.message
    assert len(server.requests) == 1
