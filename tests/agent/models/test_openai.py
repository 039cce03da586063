"""The adapter for chat completions, against a real server on this machine; see also `test_exchange`."""

import logging
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.recording_server import (
    Answer,
    RecordingServer,
    call,
    chunk,
    failing,
    said,
    streaming,
    text,
    usage,
)
from tests.support.strategies import CHARACTERS, json_objects

from foreword import ToolSchema
from foreword.agent.models import Chunk, Finish, ModelAdapter, TextChunk, ToolCallChunk, Usage
from foreword.agent.models.openai import OpenAIAdapter
from foreword.errors import ApiKeyError, InvalidModelSettingError, InvalidToolNameError
from foreword.wire.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from foreword.wire.profiles import COMPATIBLE, DEEPSEEK, OPENAI
from foreword.wire.request import ModelConfig, ModelRequest

pytestmark = [
    pytest.mark.anyio,
    # Under trio the SDK leaves its generators to the garbage collector, which trio remarks.
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
]

KEY = "sk-a-key-that-nobody-may-see"
REQUEST = ModelRequest("Be brief.", (), (UserMessage("Why is it late?"),), ModelConfig("openai", "gpt-4o"))


@pytest.fixture
def server() -> Iterator[RecordingServer]:
    with RecordingServer() as server:
        yield server


@pytest.fixture
async def adapter(server: RecordingServer) -> AsyncGenerator[OpenAIAdapter]:
    async with OpenAIAdapter(base_url=server.url, api_key=KEY) as adapter:
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
        "temperature": st.floats(0.5, 2),
        "max_tokens": st.integers(1, 4096),
        "stop": st.lists(texts, max_size=2),
        "reasoning_effort": st.just("low"),
        "metadata": json_objects,
    },
)
requests = st.builds(
    ModelRequest,
    st.one_of(st.just(""), texts),
    tools.map(tuple),
    st.lists(messages, max_size=4).map(tuple),
    st.builds(ModelConfig, st.just("openai"), st.sampled_from(["gpt-4o", "gpt-5", "ä"]), settings),
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
    adapter = OpenAIAdapter(base_url=agreeing.url, api_key=KEY)

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


async def test_one_request_is_sent_with_its_key(server: RecordingServer, adapter: OpenAIAdapter) -> None:
    """It is a POST of JSON to the path of chat completions, with the key as bearer."""
    server.answer(said("Yes."))
    await answer_to(adapter)
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


async def test_further_headers_are_sent(server: RecordingServer) -> None:
    """Headers of one's own reach the server."""
    server.answer(said("Yes."))
    async with OpenAIAdapter(base_url=server.url, api_key=KEY, headers={"X-Team": "billing"}) as adapter:
        await answer_to(adapter)
    assert server.requests[0].headers["x-team"] == "billing"


async def test_a_server_without_key_gets_none(server: RecordingServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of another kind gets nothing that the environment holds for OpenAI: no key, organization, project."""
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, KEY)
    server.answer(said("Yes."))
    async with OpenAIAdapter("local", base_url=server.url) as adapter:
        assert (await finish_of(adapter)).kind == "stop"
    headers = server.requests[0].headers
    assert "authorization" not in headers
    assert not [value for value in headers.values() if KEY in value]


# What comes back


async def test_text_comes_piece_by_piece(server: RecordingServer, adapter: OpenAIAdapter) -> None:
    """Each event with text is a chunk; the finish holds the provider's word and the usage, cached tokens included."""
    server.answer(streaming(text("Be"), text("cause."), chunk(finish="stop"), usage(100, 7, cached=64)))
    assert await answer_to(adapter) == [
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
    assert await answer_to(adapter) == [
        ToolCallChunk(0, "c1", "look_up", ""),
        ToolCallChunk(0, "c1", "look_up", '{"order"'),
        ToolCallChunk(1, "c2", "clock", "{}"),
        ToolCallChunk(0, "c1", "look_up", ": 4711}"),
        Finish("tool-calls", Usage(12, 3), raw_reason="tool_calls"),
    ]


async def test_an_answer_is_whole_without_its_usage(server: RecordingServer, adapter: OpenAIAdapter) -> None:
    """If the connection breaks after the provider said how the answer ended, the answer stands, its usage unknown."""
    server.answer(streaming(text("Because."), chunk(finish="stop"), done=False, end="cut"))
    assert await answer_to(adapter) == [TextChunk("Because."), Finish("stop", None, raw_reason="stop")]


# What goes wrong

FAILURES: dict[str, tuple[Answer, str, int | None, bool, float | None]] = {
    "400": (failing(400, type="invalid_request_error"), "invalid_request", 400, False, None),
    "context": (failing(400, code="context_length_exceeded"), "context_length", 400, False, None),
    "401": (failing(401, code="invalid_api_key"), "authentication", 401, False, None),
    "402": (failing(402), "quota", 402, False, None),
    "403": (failing(403), "permission", 403, False, None),
    "404": (failing(404, code="model_not_found", type="invalid_request_error"), "not_found", 404, False, None),
    "408": (failing(408), "timeout", 408, True, None),
    "409": (failing(409), "conflict", 409, True, None),
    "429": (failing(429, headers={"retry-after": "2"}), "rate_limit", 429, True, 2.0),
    "429, in milliseconds": (
        failing(429, headers={"retry-after-ms": "1500", "retry-after": "9"}),
        "rate_limit",
        429,
        True,
        1.5,
    ),
    "no money": (failing(429, code="insufficient_quota"), "quota", 429, False, None),
    "500": (failing(500), "server_error", 500, True, None),
    "502, a page": (
        Answer(502, {"content-type": "text/html"}, (b"<h1>It did not work.</h1>",)),
        "server_error",
        502,
        True,
        None,
    ),
    "503": (failing(503), "overloaded", 503, True, None),
    "529": (failing(529, headers={"retry-after": "soon"}), "overloaded", 529, True, None),
    "told not to": (failing(500, headers={"x-should-retry": "false"}), "server_error", 500, False, None),
    "a redirection": (Answer(307, {"location": "http://127.0.0.1:9/v1"}), "unknown", 307, False, None),
    "an empty body": (Answer(500), "server_error", 500, True, None),
    "an error in the stream": (
        streaming(text("a"), {"error": {"message": "It did not work.", "type": "server_error"}}),
        "server_error",
        None,
        True,
        None,
    ),
    "a status in the stream": (
        streaming({"error": {"message": "It did not work.", "code": 429}}),
        "rate_limit",
        None,
        True,
        None,
    ),
    "cut": (streaming(text("a"), done=False, end="cut"), "stream_cut", None, True, None),
    "ended early": (streaming(text("a"), done=False), "stream_cut", None, True, None),
    "done too early": (streaming(text("a")), "stream_cut", None, True, None),
    "nothing": (streaming(done=False), "stream_cut", None, True, None),
    "no JSON": (streaming("{'a': 1}"), "malformed_response", None, True, None),
    "no UTF-8": (streaming(b'data: {"a":"\xff"}\n\n'), "malformed_response", None, True, None),
    "no object": (streaming("[1]"), "malformed_response", None, True, None),
    "no choices": (streaming({"choices": 7}), "malformed_response", None, True, None),
    "too deep": (streaming("[" * 100_000), "malformed_response", None, True, None),
    "no gzip": (streaming(text("a"), headers={"content-encoding": "gzip"}), "stream_cut", None, True, None),
    "no stream": (Answer(200, {"content-type": "application/json"}, (b"{}",)), "malformed_response", None, True, None),
    "filtered": (streaming(chunk(finish="content_filter")), "content_filter", None, False, None),
    "refused": (streaming(chunk({"refusal": "No."}), chunk(finish="stop")), "refusal", None, False, None),
    "a reason unheard of": (streaming(chunk(finish="bored")), "malformed_response", None, False, None),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_failure_is_a_finish(server: RecordingServer, adapter: OpenAIAdapter, name: str) -> None:
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


@pytest.mark.parametrize("name", ["400", "429", "502, a page", "an error in the stream"])
async def test_a_failure_says_what_the_provider_says(
    server: RecordingServer, adapter: OpenAIAdapter, name: str
) -> None:
    """The message is the provider's own."""
    server.answer(FAILURES[name][0])
    failure = (await finish_of(adapter)).failure
    assert failure is not None
    assert "It did not work." in failure.message


async def test_a_failure_can_be_logged(server: RecordingServer, adapter: OpenAIAdapter) -> None:
    """Half of a character in what the provider says is told as U+FFFD, since no log could hold it."""
    server.answer(streaming({"error": {"message": "half \ud83d"}}), failing(500, "half \ud83d"))
    for _ in range(2):
        failure = (await finish_of(adapter)).failure
        assert failure is not None
        assert failure.message == "half \ufffd"


async def test_a_date_to_wait_for(server: RecordingServer, adapter: OpenAIAdapter) -> None:
    """A date in `retry-after` that has passed means no wait."""
    server.answer(failing(429, headers={"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}))
    failure = (await finish_of(adapter)).failure
    assert failure is not None
    assert failure.retry_after == 0


async def test_what_cannot_be_spelled_is_never_sent(server: RecordingServer, adapter: OpenAIAdapter) -> None:
    """A tool name that the provider refuses, or a setting that is none, is an error before anything is sent."""
    tool = ToolSchema("files.read", "", {})
    bad_tool = ModelRequest("", (tool,), (), ModelConfig("openai", "gpt-4o"))
    bad_setting = ModelRequest("", (), (), ModelConfig("openai", "gpt-4o", {"stream": False}))
    with pytest.raises(InvalidToolNameError, match=r"files\.read"):
        await anext(adapter.stream(bad_tool))
    with pytest.raises(InvalidModelSettingError, match="stream"):
        await anext(adapter.stream(bad_setting))
    with pytest.raises(InvalidModelSettingError, match="stream"):
        adapter.resolve(bad_setting.config)
    assert adapter.resolve(REQUEST.config) == REQUEST.config
    assert not server.requests


# Making one


async def test_the_key_is_never_shown(
    server: RecordingServer, adapter: OpenAIAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    """The key is in no repr, failure or log, even where the server says it."""
    caplog.set_level(logging.DEBUG)
    server.answer(
        failing(401, f"Incorrect API key provided: {KEY}."),
        Answer(500, {}, (KEY.encode(),)),
        streaming({"error": {"message": f"bad key {KEY}"}}),
        said("Yes."),
    )
    finishes = [await finish_of(adapter) for _ in range(4)]
    told = [repr(finishes), repr(adapter), str(adapter), caplog.text, *map(repr, vars(adapter).values())]
    assert finishes[0].failure is not None
    assert "(the API key)" in finishes[0].failure.message
    assert caplog.records
    assert not [each for each in told if KEY in each]


def test_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key, the error names the variable to set; a key that no header can hold is told without showing it."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    with pytest.raises(ApiKeyError, match="set OPENAI_API_KEY"):
        OpenAIAdapter()
    with pytest.raises(ApiKeyError, match="set DEEPSEEK_API_KEY"):
        OpenAIAdapter("deepseek")
    with pytest.raises(ApiKeyError, match="is empty"):
        OpenAIAdapter("local", base_url="http://localhost/v1", api_key="")
    with pytest.raises(ApiKeyError) as caught:
        OpenAIAdapter(api_key=f"{KEY}\n")
    assert KEY not in str(caught.value)


def test_where_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A known provider has its address, profile and key; OpenAI's address can come from the environment."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    openai, deepseek = OpenAIAdapter(), OpenAIAdapter("deepseek")
    assert (openai.base_url, openai.profile) == ("https://api.openai.com/v1", OPENAI)
    assert (deepseek.base_url, deepseek.profile) == ("https://api.deepseek.com", DEEPSEEK)
    assert OpenAIAdapter("mine", base_url="http://localhost:1/v1/").base_url == "http://localhost:1/v1"
    assert OpenAIAdapter("mine", base_url="http://localhost:1/v1").profile is COMPATIBLE
    monkeypatch.setenv("OPENAI_BASE_URL", "http://proxy/v1")
    assert OpenAIAdapter().base_url == "http://proxy/v1"
    assert OpenAIAdapter("deepseek").base_url == "https://api.deepseek.com"
    assert isinstance(openai, ModelAdapter)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        (None, "give base_url"),
        ("localhost:8000/v1", "must begin with http"),
        ("ftp://host/v1", "must begin with http"),
        ("http:///v1", "must begin with http"),
        ("http://me:secret@host/v1", "no user"),
        ("http://host/v1?key=secret", "query"),
    ],
)
def test_a_bad_address(address: str | None, why: str) -> None:
    """An address that cannot work, or that holds a secret, is refused when the adapter is made; it is not shown."""
    with pytest.raises(ValueError, match=why) as caught:
        OpenAIAdapter("mine", base_url=address)
    assert "secret" not in str(caught.value)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the SDK is not installed, importing the adapter says which extra is missing."""
    for name in [name for name in sys.modules if name.startswith("foreword.agent.models.openai")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ImportError, match=r'pip install "foreword\[openai\]"'):
        __import__("foreword.agent.models.openai")


def test_models_need_no_sdk() -> None:
    """`foreword.agent.models` loads without the SDK, which is there only for those who ask for its adapter."""
    code = "import sys, foreword.agent.models, foreword.testing.scripted_model; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
