"""What only the adapter for chat completions does, against a real server on this machine; see also `test_adapters`."""

from collections.abc import AsyncGenerator

import pytest
from tests.agent.models.vendors import KEY, Failed, answer_to, assert_fails, finish_of
from tests.support.recording_server import RecordingServer, call, chunk, failing, said, streaming, text, usage

from foreword.agent.models import Finish, TextChunk, ToolCallChunk, Usage
from foreword.agent.models.openai import OpenAIAdapter
from foreword.errors import ApiKeyError
from foreword.wire.messages import UserMessage
from foreword.wire.profiles import DEEPSEEK
from foreword.wire.request import ModelConfig, ModelRequest

pytestmark = [
    pytest.mark.anyio,
    # Under trio the SDK leaves its generators to the garbage collector, which trio remarks.
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
]

REQUEST = ModelRequest("Be brief.", (), (UserMessage("Why is it late?"),), ModelConfig("openai", "gpt-4o"))


@pytest.fixture
async def adapter(server: RecordingServer) -> AsyncGenerator[OpenAIAdapter]:
    async with OpenAIAdapter(base_url=server.url, api_key=KEY) as adapter:
        yield adapter


async def test_one_request_is_sent_with_its_key(server: RecordingServer, adapter: OpenAIAdapter) -> None:
    """It is a POST of JSON to the path of chat completions, with the key as bearer."""
    server.answer(said("Yes."))
    await answer_to(adapter, REQUEST)
    [request] = server.requests
    assert (request.method, request.path) == ("POST", "/v1/chat/completions")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert request.json == {
        "model": "gpt-4o",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why is it late?"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_nothing_is_added_to_a_config(adapter: OpenAIAdapter) -> None:
    """What is asked of a model is resolved to itself."""
    assert adapter.resolve(REQUEST.config) == REQUEST.config


# What comes back


async def test_text_comes_piece_by_piece(server: RecordingServer, adapter: OpenAIAdapter) -> None:
    """Each event with text is a chunk; the finish holds the provider's word and the usage, cached tokens included."""
    server.answer(streaming(text("Be"), text("cause."), chunk(finish="stop"), usage(100, 7, cached=64)))
    assert await answer_to(adapter, REQUEST) == [
        TextChunk("Be"),
        TextChunk("cause."),
        Finish("stop", Usage(100, 7, 64), raw_reason="stop"),
    ]


async def test_tool_calls_come_in_pieces(server: RecordingServer, adapter: OpenAIAdapter) -> None:
    """Pieces of several calls are told apart, each with the id and name of its call."""
    server.answer(
        streaming(
            call(0, id="c1", name="look_up"),
            call(0, '{"order"'),
            call(1, "{}", id="c2", name="clock"),
            call(0, ": 4711}"),
            chunk(finish="tool_calls"),
            usage(),
        )
    )
    assert await answer_to(adapter, REQUEST) == [
        ToolCallChunk(0, "c1", "look_up", ""),
        ToolCallChunk(0, "c1", "look_up", '{"order"'),
        ToolCallChunk(1, "c2", "clock", "{}"),
        ToolCallChunk(0, "c1", "look_up", ": 4711}"),
        Finish("tool-calls", Usage(12, 3), raw_reason="tool_calls"),
    ]


async def test_an_answer_is_whole_without_its_usage(server: RecordingServer, adapter: OpenAIAdapter) -> None:
    """If the connection breaks after the provider said how the answer ended, the answer stands, its usage unknown."""
    server.answer(streaming(text("Because."), chunk(finish="stop"), done=False, end="cut"))
    assert await answer_to(adapter, REQUEST) == [TextChunk("Because."), Finish("stop", None, raw_reason="stop")]


# What goes wrong, beside what goes wrong everywhere

FAILURES: dict[str, Failed] = {
    "context": (failing(400, code="context_length_exceeded"), "context_length", 400, False, None),
    "408": (failing(408), "timeout", 408, True, None),
    "409": (failing(409), "conflict", 409, True, None),
    "429, in milliseconds": (
        failing(429, headers={"retry-after-ms": "1500", "retry-after": "9"}),
        "rate_limit",
        429,
        True,
        1.5,
    ),
    "no money": (failing(429, code="insufficient_quota"), "quota", 429, False, None),
    "503": (failing(503), "overloaded", 503, True, None),
    "no time that can be read": (failing(529, headers={"retry-after": "soon"}), "overloaded", 529, True, None),
    "a status in the stream": (
        streaming({"error": {"message": "It did not work.", "code": 429}}),
        "rate_limit",
        None,
        True,
        None,
    ),
    "no choices": (streaming({"choices": 7}), "malformed_response", None, True, None),
    "filtered": (streaming(chunk(finish="content_filter")), "content_filter", None, False, None),
    "refused": (streaming(chunk({"refusal": "No."}), chunk(finish="stop")), "refusal", None, False, None),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_failure_is_a_finish(server: RecordingServer, adapter: OpenAIAdapter, name: str) -> None:
    """The provider's own words for a failure are understood."""
    await assert_fails(server, adapter, REQUEST, FAILURES[name])


async def test_a_date_to_wait_for(server: RecordingServer, adapter: OpenAIAdapter) -> None:
    """A date in `retry-after` that has passed means no wait."""
    server.answer(failing(429, headers={"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}))
    failure = (await finish_of(adapter, REQUEST)).failure
    assert failure is not None
    assert failure.retry_after == 0


# Other providers of the same format


def test_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each known provider has a variable of its own, which the error names."""
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    with pytest.raises(ApiKeyError, match="set DEEPSEEK_API_KEY"):
        OpenAIAdapter("deepseek")


def test_where_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its address and profile; the environment's address is OpenAI's only. A path of one's own stays."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://proxy/v1")
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    deepseek = OpenAIAdapter("deepseek")
    assert (deepseek.base_url, deepseek.profile) == ("https://api.deepseek.com", DEEPSEEK)
    assert OpenAIAdapter("mine", base_url="http://localhost:1/v1/").base_url == "http://localhost:1/v1"
