"""What only the adapter for Anthropic's messages does, against a real server on this machine; see also `test_adapters`."""

from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest
from tests.agent.models.vendors import KEY, Failed, answer_to, assert_fails, finish_of
from tests.support.anthropic_events import (
    arguments,
    block,
    call,
    calling,
    end,
    error,
    failing,
    said,
    start,
    stop,
    streaming,
    text,
)
from tests.support.recording_server import RecordingServer

from foreword import CancelToken
from foreword.agent.models import Finish, TextChunk, ToolCallChunk, Usage
from foreword.agent.models.anthropic import AnthropicAdapter
from foreword.wire.messages import UserMessage
from foreword.wire.profiles import ANTHROPIC
from foreword.wire.request import ModelConfig, ModelRequest

pytestmark = [
    pytest.mark.anyio,
    # Under trio the SDK leaves its generators to the garbage collector, which trio remarks.
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
]

CONFIG = ModelConfig("anthropic", "claude-sonnet-4-5")
REQUEST = ModelRequest("Be brief.", (), (UserMessage("Why is it late?"),), CONFIG)


@pytest.fixture
async def adapter(server: RecordingServer) -> AsyncGenerator[AnthropicAdapter]:
    async with AnthropicAdapter(base_url=server.root, api_key=KEY) as adapter:
        yield adapter


async def test_one_request_is_sent_with_its_key(server: RecordingServer, adapter: AnthropicAdapter) -> None:
    """It is a POST of JSON to the path of messages, with the key, and the version of the format."""
    server.answer(said("Yes."))
    await answer_to(adapter, REQUEST)
    [request] = server.requests
    assert (request.method, request.path) == ("POST", "/v1/messages")
    assert KEY in (
        request.headers.get("x-api-key", ""),
        request.headers.get("authorization", "").removeprefix("Bearer "),
    )
    assert request.headers["anthropic-version"]
    assert request.headers["content-type"] == "application/json"
    mark = {"type": "ephemeral"}
    assert request.json == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 32_000,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": mark}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Why is it late?", "cache_control": mark}]}],
        "stream": True,
    }


async def test_headers_of_the_environment_are_the_vendors(
    server: RecordingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Headers that the environment holds go to the vendor's server, maybe behind a proxy, and to no other."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", f"X-Team: {KEY}\nrubbish\nX-Other:{KEY}")
    server.answer(said("Yes."), said("Yes."))
    async with AnthropicAdapter("local", base_url=server.root) as adapter:
        await finish_of(adapter, REQUEST)
    headers = server.requests[0].headers
    assert not {"x-team", "x-other"} & headers.keys()
    assert not [value for value in headers.values() if KEY in value]
    async with AnthropicAdapter(base_url=server.root) as adapter:
        await finish_of(adapter, REQUEST)
    assert server.requests[1].headers["x-team"] == KEY


# What comes back


async def test_text_comes_piece_by_piece(server: RecordingServer, adapter: AnthropicAdapter) -> None:
    """Each event with text is a chunk; the finish holds the provider's word, and all that the request cost."""
    cost = {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 64, "cache_creation_input_tokens": 33}
    server.answer(
        streaming(start(**cost), block(0, "text", text=""), text("Be"), text("cause."), end(), stop(output=7))
    )
    assert await answer_to(adapter, REQUEST) == [
        TextChunk("Be"),
        TextChunk("cause."),
        Finish("stop", Usage(100, 7, 64, 33), raw_reason="end_turn"),
    ]


async def test_tool_calls_come_in_pieces(server: RecordingServer, adapter: AnthropicAdapter) -> None:
    """Pieces of several calls are told apart, each with the id and name of its call; thoughts are passed over."""
    server.answer(
        streaming(
            start(),
            block(0, "thinking", thinking="", signature=""),
            end(0),
            call(1, "c1", "look_up"),
            arguments(1, '{"order"'),
            arguments(1, ": 4711}"),
            end(1),
            call(2, "c2", "clock"),
            end(2),
            stop("tool_use"),
        )
    )
    assert await answer_to(adapter, REQUEST) == [
        ToolCallChunk(0, "c1", "look_up", ""),
        ToolCallChunk(0, "c1", "look_up", '{"order"'),
        ToolCallChunk(0, "c1", "look_up", ": 4711}"),
        ToolCallChunk(1, "c2", "clock", ""),
        ToolCallChunk(1, "c2", "clock", "{}"),
        Finish("tool-calls", Usage(12, 3), raw_reason="tool_use"),
    ]


async def test_what_the_provider_has_said_is_whole(server: RecordingServer, adapter: AnthropicAdapter) -> None:
    """If the connection breaks after the provider said how the answer ended, the answer stands."""
    server.answer(streaming(start(), text("Because."), end(), stop(), done=False, finish="cut"))
    assert await answer_to(adapter, REQUEST) == [
        TextChunk("Because."),
        Finish("stop", Usage(12, 3), raw_reason="end_turn"),
    ]


async def test_usage_of_what_was_cancelled(server: RecordingServer, adapter: AnthropicAdapter) -> None:
    """An answer that is cancelled has the usage that its beginning told."""
    server.answer(streaming(start(), text("Be"), done=False, finish="silent"))
    signal = CancelToken()
    stream = adapter.stream(REQUEST, signal)
    assert await anext(stream) == TextChunk("Be")
    signal.cancel()
    assert [each async for each in stream] == [Finish("aborted", Usage(12, 1), raw_reason="user")]


# What goes wrong, beside what goes wrong everywhere

FAILURES: dict[str, Failed] = {
    "too long": (
        failing(400, "invalid_request_error", "prompt is too long: 205000 tokens > 200000 maximum. It did not work."),
        "context_length",
        400,
        False,
        None,
    ),
    "413": (failing(413, "request_too_large"), "context_length", 413, False, None),
    "504": (failing(504, "timeout_error"), "timeout", 504, True, None),
    "overloaded in the stream": (
        streaming(start(), text("a"), error("overloaded_error")),
        "overloaded",
        None,
        True,
        None,
    ),
    "an error at the beginning": (streaming(start(), error("api_error")), "server_error", None, True, None),
    "a bad request in the stream": (
        streaming(start(), error("invalid_request_error")),
        "invalid_request",
        None,
        False,
        None,
    ),
    "an error without JSON": (
        streaming(b"event: error\ndata: It did not work.\n\n"),
        "server_error",
        None,
        True,
        None,
    ),
    "no index": (
        streaming({"type": "content_block_start", "content_block": {}}),
        "malformed_response",
        None,
        True,
        None,
    ),
    "refused": (streaming(start(), stop("refusal")), "refusal", None, False, None),
    "a reason unheard of": (streaming(start(), stop("bored")), "malformed_response", None, False, None),
    "cut after the beginning": (
        streaming(start(), text("a"), done=False, finish="cut"),
        "stream_cut",
        None,
        True,
        None,
    ),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_failure_is_a_finish(server: RecordingServer, adapter: AnthropicAdapter, name: str) -> None:
    """The provider's own words for a failure are understood."""
    await assert_fails(server, adapter, REQUEST, FAILURES[name])


async def test_a_failure_says_what_the_provider_says(server: RecordingServer, adapter: AnthropicAdapter) -> None:
    """The message is the provider's own, also of what is too long."""
    server.answer(FAILURES["too long"][0])
    failure = (await finish_of(adapter, REQUEST)).failure
    assert failure is not None
    assert "It did not work." in failure.message


async def test_the_limit_is_told(adapter: AnthropicAdapter) -> None:
    """A config without a limit of tokens is resolved to one with the profile's, so that the log knows it."""
    assert adapter.resolve(CONFIG).settings == {"max_tokens": 32_000}
    mine = ModelConfig("anthropic", "claude-sonnet-4-5", {"temperature": 1, "max_tokens": 7})
    assert adapter.resolve(mine) == mine
    assert adapter.body(replace(REQUEST, config=adapter.resolve(CONFIG))) == adapter.body(REQUEST)


async def test_a_profile_of_ones_own(server: RecordingServer) -> None:
    """What is marked for the cache is the profile's to say."""
    server.answer(said("Yes."))
    profile = replace(ANTHROPIC, head_marks=0, message_marks=1, lifetime="1h")
    async with AnthropicAdapter(base_url=server.root, api_key=KEY, profile=profile) as adapter:
        await answer_to(adapter, REQUEST)
    told = server.requests[0].json
    assert "cache_control" not in told["system"][0]
    assert told["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


# Making one


async def test_calls_are_logged_without_the_key(
    server: RecordingServer, adapter: AnthropicAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    """An answer that calls tools is a finish like any, and nothing that is logged on its way holds the key."""
    caplog.set_level("DEBUG")
    server.answer(calling(("c", "t", "{}")))
    assert (await finish_of(adapter, REQUEST)).kind == "tool-calls"
    assert caplog.records
    assert KEY not in caplog.text


@pytest.mark.parametrize("address", ["http://host/v1", "http://host/v1/messages/"])
def test_a_bad_address(address: str) -> None:
    """An address with the path that is added is refused when the adapter is made."""
    ending = address.removeprefix("http://host").rstrip("/")
    with pytest.raises(ValueError, match=f"ends in {ending}, which is added"):
        AnthropicAdapter("mine", base_url=address)
