"""The adapter for Anthropic's messages, against a real server on this machine; see also `test_exchange`."""

import logging
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import replace

import anyio
import anyio.from_thread
import pytest
from hypothesis import given
from hypothesis import strategies as st
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
from tests.support.recording_server import Answer, RecordingServer
from tests.support.strategies import CHARACTERS, json_objects

from foreword import CancelToken, ToolSchema
from foreword.agent.models import Chunk, Finish, ModelAdapter, TextChunk, ToolCallChunk, Usage
from foreword.agent.models.anthropic import AnthropicAdapter
from foreword.errors import ApiKeyError, InvalidModelSettingError, InvalidToolNameError
from foreword.wire.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from foreword.wire.profiles import ANTHROPIC, COMPATIBLE_MESSAGES
from foreword.wire.request import ModelConfig, ModelRequest

pytestmark = [
    pytest.mark.anyio,
    # Under trio the SDK leaves its generators to the garbage collector, which trio remarks.
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
]

KEY = "sk-ant-a-key-that-nobody-may-see"
CONFIG = ModelConfig("anthropic", "claude-sonnet-4-5")
REQUEST = ModelRequest("Be brief.", (), (UserMessage("Why is it late?"),), CONFIG)


@pytest.fixture
def server() -> Iterator[RecordingServer]:
    with RecordingServer() as server:
        yield server


@pytest.fixture
async def adapter(server: RecordingServer) -> AsyncGenerator[AnthropicAdapter]:
    async with AnthropicAdapter(base_url=server.root, api_key=KEY) as adapter:
        yield adapter


async def answer_to(adapter: ModelAdapter) -> list[Chunk]:
    return [chunk async for chunk in adapter.stream(REQUEST)]


async def finish_of(adapter: ModelAdapter) -> Finish:
    """The one finish, which is the last chunk."""
    *before, last = await answer_to(adapter)
    assert isinstance(last, Finish)
    assert not any(isinstance(each, Finish) for each in before)
    return last


# What arrives at the server

texts = st.text(CHARACTERS, max_size=12)
calls = st.builds(ToolCall, texts, texts, texts)
messages = st.one_of(
    st.builds(UserMessage, texts),
    st.builds(AssistantMessage, texts, st.lists(calls, max_size=2).map(tuple)),
    st.builds(ToolMessage, texts, texts, texts, st.booleans()),
)
tools = st.lists(
    st.builds(ToolSchema, st.from_regex(r"\A[a-zA-Z0-9_-]{1,12}\Z"), texts, json_objects),
    max_size=3,
    unique_by=lambda tool: tool.name,
)
settings = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.floats(0.5, 1),
        "max_tokens": st.integers(1, 4096),
        "stop": st.lists(texts, max_size=2),
        "reasoning_effort": st.just("low"),
        "thinking": st.just({"type": "adaptive"}),
        "metadata": json_objects,
    },
)
requests = st.builds(
    ModelRequest,
    st.one_of(st.just(""), texts),
    tools.map(tuple),
    st.lists(messages, max_size=4).map(tuple),
    st.builds(ModelConfig, st.just("anthropic"), st.sampled_from(["claude-sonnet-4-5", "ä"]), settings),
    stable_head=st.integers(0, 12),
)


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def portal(request: pytest.FixtureRequest) -> Iterator[anyio.from_thread.BlockingPortal]:
    with anyio.from_thread.start_blocking_portal(request.param) as portal:
        yield portal


@pytest.fixture(scope="module")
def agreeing() -> Iterator[RecordingServer]:
    with RecordingServer(otherwise=said("Yes.")) as server:
        yield server


@pytest.fixture(scope="module")
def asking(
    portal: anyio.from_thread.BlockingPortal, agreeing: RecordingServer
) -> Iterator[Callable[[ModelRequest], tuple[list[Chunk], bytes]]]:
    """Sends a request, and gives the answer and the body that the adapter says it sends."""
    adapter = AnthropicAdapter(base_url=agreeing.root, api_key=KEY)

    async def ask(request: ModelRequest) -> tuple[list[Chunk], bytes]:
        return [each async for each in adapter.stream(request)], adapter.body(request)

    yield lambda request: portal.call(ask, request)
    portal.call(adapter.aclose)


@given(request=requests)
def test_what_arrives_is_the_body(
    agreeing: RecordingServer, asking: Callable[[ModelRequest], tuple[list[Chunk], bytes]], request: ModelRequest
) -> None:
    """The server gets the bytes of `body`, whatever the request holds."""
    chunks, body = asking(request)
    assert chunks[0] == TextChunk("Yes.")
    assert agreeing.requests[-1].body == body


async def test_one_request_is_sent_with_its_key(server: RecordingServer, adapter: AnthropicAdapter) -> None:
    """It is a POST of JSON to the path of messages, with the key, and the version of the format."""
    server.answer(said("Yes."))
    await answer_to(adapter)
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


async def test_further_headers_are_sent(server: RecordingServer) -> None:
    """Headers of one's own reach the server."""
    server.answer(said("Yes."))
    headers = {"anthropic-beta": "context-1m-2025-08-07"}
    async with AnthropicAdapter(base_url=server.root, api_key=KEY, headers=headers) as adapter:
        await answer_to(adapter)
    assert server.requests[0].headers["anthropic-beta"] == "context-1m-2025-08-07"


async def test_a_server_without_key_gets_none(server: RecordingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of another kind gets nothing that the environment holds for Anthropic: no key, token or header."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", f"X-Team: {KEY}\nrubbish\nX-Other:{KEY}")
    server.answer(said("Yes."), said("Yes."))
    async with AnthropicAdapter("local", base_url=server.root) as adapter:
        assert (await finish_of(adapter)).kind == "stop"
    headers = server.requests[0].headers
    assert not {"authorization", "x-api-key", "x-team", "x-other"} & headers.keys()
    assert not [value for value in headers.values() if KEY in value]
    async with AnthropicAdapter(base_url=server.root) as adapter:  # the vendor's, maybe behind a proxy
        await finish_of(adapter)
    assert server.requests[1].headers["x-team"] == KEY


# What comes back


async def test_text_comes_piece_by_piece(server: RecordingServer, adapter: AnthropicAdapter) -> None:
    """Each event with text is a chunk; the finish holds the provider's word, and all that the request cost."""
    cost = {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 64, "cache_creation_input_tokens": 33}
    server.answer(
        streaming(start(**cost), block(0, "text", text=""), text("Be"), text("cause."), end(), stop(output=7))
    )
    assert await answer_to(adapter) == [
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
    assert await answer_to(adapter) == [
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
    assert await answer_to(adapter) == [TextChunk("Because."), Finish("stop", Usage(12, 3), raw_reason="end_turn")]


async def test_usage_of_what_was_cancelled(server: RecordingServer, adapter: AnthropicAdapter) -> None:
    """An answer that is cancelled has the usage that its beginning told."""
    server.answer(streaming(start(), text("Be"), done=False, finish="silent"))
    signal = CancelToken()
    stream = adapter.stream(REQUEST, signal)
    assert await anext(stream) == TextChunk("Be")
    signal.cancel()
    assert [each async for each in stream] == [Finish("aborted", Usage(12, 1), raw_reason="user")]


# What goes wrong

FAILURES: dict[str, tuple[Answer, str, int | None, bool, float | None]] = {
    "400": (failing(400, "invalid_request_error"), "invalid_request", 400, False, None),
    "too long": (
        failing(400, "invalid_request_error", "prompt is too long: 205000 tokens > 200000 maximum. It did not work."),
        "context_length",
        400,
        False,
        None,
    ),
    "401": (failing(401, "authentication_error"), "authentication", 401, False, None),
    "402": (failing(402, "billing_error"), "quota", 402, False, None),
    "403": (failing(403, "permission_error"), "permission", 403, False, None),
    "404": (failing(404, "not_found_error"), "not_found", 404, False, None),
    "413": (failing(413, "request_too_large"), "context_length", 413, False, None),
    "429": (failing(429, "rate_limit_error", headers={"retry-after": "2"}), "rate_limit", 429, True, 2.0),
    "500": (failing(500, "api_error"), "server_error", 500, True, None),
    "502, a page": (
        Answer(502, {"content-type": "text/html"}, (b"<h1>It did not work.</h1>",)),
        "server_error",
        502,
        True,
        None,
    ),
    "504": (failing(504, "timeout_error"), "timeout", 504, True, None),
    "529": (failing(529, "overloaded_error"), "overloaded", 529, True, None),
    "told not to": (failing(500, headers={"x-should-retry": "false"}), "server_error", 500, False, None),
    "a redirection": (Answer(307, {"location": "http://127.0.0.1:9/v1"}), "unknown", 307, False, None),
    "an empty body": (Answer(500), "server_error", 500, True, None),
    "overloaded in the stream": (
        streaming(start(), text("a"), error("overloaded_error")),
        "overloaded",
        None,
        True,
        None,
    ),
    "an error in the stream": (streaming(start(), error("api_error")), "server_error", None, True, None),
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
    "cut": (streaming(start(), text("a"), done=False, finish="cut"), "stream_cut", None, True, None),
    "ended early": (streaming(start(), text("a"), done=False), "stream_cut", None, True, None),
    "done too early": (streaming(start(), text("a")), "stream_cut", None, True, None),
    "nothing": (streaming(done=False), "stream_cut", None, True, None),
    "no JSON": (streaming(b"event: x\ndata: {'a': 1}\n\n"), "malformed_response", None, True, None),
    "no UTF-8": (streaming(b'event: x\ndata: {"a":"\xff"}\n\n'), "malformed_response", None, True, None),
    "no object": (streaming(b"event: x\ndata: [1]\n\n"), "malformed_response", None, True, None),
    "no index": (
        streaming({"type": "content_block_start", "content_block": {}}),
        "malformed_response",
        None,
        True,
        None,
    ),
    "too deep": (streaming(b"event: x\ndata: " + b"[" * 100_000 + b"\n\n"), "malformed_response", None, True, None),
    "no gzip": (streaming(text("a"), headers={"content-encoding": "gzip"}), "stream_cut", None, True, None),
    "no stream": (Answer(200, {"content-type": "application/json"}, (b"{}",)), "malformed_response", None, True, None),
    "refused": (streaming(start(), stop("refusal")), "refusal", None, False, None),
    "a reason unheard of": (streaming(start(), stop("bored")), "malformed_response", None, False, None),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_failure_is_a_finish(server: RecordingServer, adapter: AnthropicAdapter, name: str) -> None:
    """Whatever the server does, the stream ends in one finish with the right facts; nothing is raised or repeated."""
    answer, code, status, transient, retry_after = FAILURES[name]
    server.answer(answer)
    finish = await finish_of(adapter)
    assert finish.kind == "error"
    failure = finish.failure
    assert failure is not None
    assert (failure.code, failure.status, failure.transient, failure.retry_after) == (
        code,
        status,
        transient,
        retry_after,
    )
    assert failure.message
    assert len(server.requests) == 1


@pytest.mark.parametrize("name", ["400", "too long", "429", "502, a page", "an error in the stream"])
async def test_a_failure_says_what_the_provider_says(
    server: RecordingServer, adapter: AnthropicAdapter, name: str
) -> None:
    """The message is the provider's own."""
    server.answer(FAILURES[name][0])
    failure = (await finish_of(adapter)).failure
    assert failure is not None
    assert "It did not work." in failure.message


async def test_a_failure_can_be_logged(server: RecordingServer, adapter: AnthropicAdapter) -> None:
    """Half of a character in what the provider says is told as U+FFFD, since no log could hold it."""
    server.answer(streaming(error("api_error", "half \ud83d")), failing(500, message="half \ud83d"))
    for _ in range(2):
        failure = (await finish_of(adapter)).failure
        assert failure is not None
        assert failure.message == "half \ufffd"


async def test_what_cannot_be_spelled_is_never_sent(server: RecordingServer, adapter: AnthropicAdapter) -> None:
    """A tool name that the provider refuses, or a setting that is none, is an error before anything is sent."""
    bad_tool = replace(REQUEST, tools=(ToolSchema("files.read", "", {}),))
    bad_setting = replace(REQUEST, config=ModelConfig("anthropic", "claude-sonnet-4-5", {"stream": False}))
    with pytest.raises(InvalidToolNameError, match=r"files\.read"):
        await anext(adapter.stream(bad_tool))
    with pytest.raises(InvalidModelSettingError, match="stream"):
        await anext(adapter.stream(bad_setting))
    with pytest.raises(InvalidModelSettingError, match="stream"):
        adapter.resolve(bad_setting.config)
    assert not server.requests


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
        await answer_to(adapter)
    told = server.requests[0].json
    assert "cache_control" not in told["system"][0]
    assert told["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


# Making one


async def test_the_key_is_never_shown(
    server: RecordingServer, adapter: AnthropicAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    """The key is in no repr, failure or log, even where the server says it."""
    caplog.set_level(logging.DEBUG)
    server.answer(
        failing(401, "authentication_error", f"invalid x-api-key: {KEY}."),
        Answer(500, {}, (KEY.encode(),)),
        streaming(error("api_error", f"bad key {KEY}")),
        said("Yes."),
        calling(("c", "t", "{}")),
    )
    finishes = [await finish_of(adapter) for _ in range(5)]
    told = [repr(finishes), repr(adapter), str(adapter), caplog.text, *map(repr, vars(adapter).values())]
    assert finishes[0].failure is not None
    assert "(the API key)" in finishes[0].failure.message
    assert caplog.records
    assert not [each for each in told if KEY in each]


def test_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key, the error names the variable to set; a key that no header can hold is told without showing it."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ApiKeyError, match="set ANTHROPIC_API_KEY"):
        AnthropicAdapter()
    with pytest.raises(ApiKeyError, match="is empty"):
        AnthropicAdapter("local", base_url="http://localhost", api_key="")
    with pytest.raises(ApiKeyError) as caught:
        AnthropicAdapter(api_key=f"{KEY}\n")
    assert KEY not in str(caught.value)


def test_where_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The known provider has its address, profile and key; its address can come from the environment."""
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    known, mine = AnthropicAdapter(), AnthropicAdapter("mine", base_url="http://localhost:1/")
    assert (known.base_url, known.profile) == ("https://api.anthropic.com", ANTHROPIC)
    assert (mine.base_url, mine.profile) == ("http://localhost:1", COMPATIBLE_MESSAGES)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://proxy/anthropic")
    assert AnthropicAdapter().base_url == "http://proxy/anthropic"
    assert isinstance(known, ModelAdapter)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        (None, "give base_url"),
        ("localhost:8000", "must begin with http"),
        ("http://me:secret@host", "no user"),
        ("http://host/?key=secret", "query"),
        ("http://host/v1", "ends in /v1, which is added"),
        ("http://host/v1/messages/", "ends in /v1/messages, which is added"),
    ],
)
def test_a_bad_address(address: str | None, why: str) -> None:
    """An address that cannot work, or that holds a secret, is refused when the adapter is made; it is not shown."""
    with pytest.raises(ValueError, match=why) as caught:
        AnthropicAdapter("mine", base_url=address)
    assert "secret" not in str(caught.value)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the SDK is not installed, importing the adapter says which extra is missing."""
    for name in [name for name in sys.modules if name.startswith("foreword.agent.models.anthropic")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(ImportError, match=r'pip install "foreword\[anthropic\]"'):
        __import__("foreword.agent.models.anthropic")


def test_the_format_needs_no_sdk() -> None:
    """The pure functions, and the models in general, load without the SDK, which only its adapter needs."""
    code = (
        "import sys, foreword.agent.models, foreword.wire.anthropic, foreword.wire.anthropic_stream; "
        "sys.exit('anthropic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
