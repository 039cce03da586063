"""What holds for every adapter of a real model, against a real server on this machine; see also `test_exchange`."""

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import anyio.from_thread
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.models.vendors import KEY, VENDORS, Adapter, Failed, Vendor, answer_to, assert_fails, finish_of
from tests.support.recording_server import Answer, RecordingServer
from tests.support.strategies import CHARACTERS, json_objects

from foreword import ToolSchema
from foreword.agent.models import Chunk, ModelAdapter, TextChunk
from foreword.errors import ApiKeyError, InvalidModelSettingError, InvalidToolNameError
from foreword.wire.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from foreword.wire.request import ModelConfig, ModelRequest

pytestmark = [
    pytest.mark.anyio,
    # Under trio the SDKs leave their generators to the garbage collector, which trio remarks.
    pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning"),
]


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


def requests_to(vendor: Vendor) -> st.SearchStrategy[ModelRequest]:
    """Requests that a provider takes."""
    settings = st.fixed_dictionaries(
        {},
        optional={
            "temperature": st.floats(0.5, 1 if vendor.name == "anthropic" else 2),
            "max_tokens": st.integers(1, 4096),
            "stop": st.lists(texts, max_size=2),
            "reasoning_effort": st.just("low"),
            "metadata": json_objects,
            **{name: st.just(value) for name, value in vendor.settings.items()},
        },
    )
    return st.builds(
        ModelRequest,
        st.one_of(st.just(""), texts),
        tools.map(tuple),
        st.lists(messages, max_size=4).map(tuple),
        st.builds(ModelConfig, st.just(vendor.name), st.sampled_from([vendor.model, "gpt-5", "ä"]), settings),
        stable_head=st.integers(0, 12),
    )


REQUESTS = {vendor.name: requests_to(vendor) for vendor in VENDORS}


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def portal(request: pytest.FixtureRequest) -> Iterator[anyio.from_thread.BlockingPortal]:
    with anyio.from_thread.start_blocking_portal(request.param) as portal:
        yield portal


@pytest.fixture(scope="module")
def agreeing(vendor: Vendor) -> Iterator[RecordingServer]:
    with RecordingServer(otherwise=vendor.said("Yes.")) as server:
        yield server


@pytest.fixture(scope="module")
def asking(
    vendor: Vendor, portal: anyio.from_thread.BlockingPortal, agreeing: RecordingServer
) -> Iterator[Callable[[ModelRequest], tuple[list[Chunk], bytes]]]:
    """Sends a request, and gives the answer and the body that the adapter says it sends."""
    adapter = vendor.make(agreeing)

    async def ask(request: ModelRequest) -> tuple[list[Chunk], bytes]:
        return await answer_to(adapter, request), adapter.body(request)

    yield lambda request: portal.call(ask, request)
    portal.call(adapter.aclose)


@given(data=st.data())
def test_what_arrives_is_the_body(
    vendor: Vendor,
    agreeing: RecordingServer,
    asking: Callable[[ModelRequest], tuple[list[Chunk], bytes]],
    data: st.DataObject,
) -> None:
    """The server gets the bytes of `body`, whatever the request holds."""
    chunks, body = asking(data.draw(REQUESTS[vendor.name]))
    assert chunks[0] == TextChunk("Yes.")
    assert agreeing.requests[-1].body == body


async def test_further_headers_are_sent(vendor: Vendor, server: RecordingServer) -> None:
    """Headers of one's own reach the server."""
    server.answer(vendor.said("Yes."))
    headers = {"X-Team": "billing", "anthropic-beta": "context-1m-2025-08-07"}
    async with vendor.make(server, headers=headers) as adapter:
        await answer_to(adapter, vendor.request)
    sent = server.requests[0].headers
    assert {name: sent[name.lower()] for name in headers} == headers


async def test_a_server_without_key_gets_none(
    vendor: Vendor, server: RecordingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server of another kind gets nothing that the environment holds for the vendor's."""
    for name in vendor.variables:
        monkeypatch.setenv(name, KEY)
    server.answer(vendor.said("Yes."))
    async with vendor.kind("local", base_url=vendor.url(server)) as adapter:
        assert (await finish_of(adapter, vendor.request)).kind == "stop"
    headers = server.requests[0].headers
    assert not {"authorization", "x-api-key"} & headers.keys()
    assert not [value for value in headers.values() if KEY in value]


@pytest.mark.parametrize("key", [None, "a-key-of-its-own"])
@pytest.mark.parametrize("name", ["Authorization", "authorization", "X-Api-Key", "Accept", "X-Team"])
async def test_headers_of_the_environment_are_the_vendors(
    vendor: Vendor, server: RecordingServer, monkeypatch: pytest.MonkeyPatch, key: str | None, name: str
) -> None:
    """Headers that the environment holds go to no other server, and do not take the place of what goes there."""
    monkeypatch.setenv(vendor.headers_variable, f"rubbish\n{name}: Bearer {KEY}\nX-Other:{KEY}")
    server.answer(vendor.said("Yes."), vendor.said("Yes."))
    for headers in ({}, {name: "given"}):
        async with vendor.kind("local", base_url=vendor.url(server), api_key=key, headers=headers) as adapter:
            assert (await finish_of(adapter, vendor.request)).kind == "stop"
    bare, given = (request.headers for request in server.requests)
    assert not [value for value in (*bare.values(), *given.values()) if KEY in value]
    assert bare["accept"] == "text/event-stream"
    assert {value.removeprefix("Bearer ") for value in bare.values() if "own" in value} == ({key} if key else set())
    assert given[name.lower()] == "given"


async def test_what_cannot_be_spelled_is_never_sent(vendor: Vendor, server: RecordingServer, adapter: Adapter) -> None:
    """A tool name that the provider refuses, or a setting that is none, is an error before anything is sent."""
    bad_tool = replace(vendor.request, tools=(ToolSchema("files.read", "", {}),))
    bad_setting = replace(vendor.request, config=vendor.config(stream=False))
    with pytest.raises(InvalidToolNameError, match=r"files\.read"):
        await anext(adapter.stream(bad_tool))
    with pytest.raises(InvalidModelSettingError, match="stream"):
        await anext(adapter.stream(bad_setting))
    with pytest.raises(InvalidModelSettingError, match="stream"):
        adapter.resolve(bad_setting.config)
    assert not server.requests


# What goes wrong


def failures_of(vendor: Vendor) -> dict[str, Failed]:
    """What every server may do, in the words of one."""
    by_status = vendor.failures
    a, streaming = vendor.text("a"), vendor.streaming
    malformed = ("malformed_response", None, True, None)
    cut = ("stream_cut", None, True, None)
    return {
        "400": (by_status[400], "invalid_request", 400, False, None),
        "401": (by_status[401], "authentication", 401, False, None),
        "402": (by_status[402], "quota", 402, False, None),
        "403": (by_status[403], "permission", 403, False, None),
        "404": (by_status[404], "not_found", 404, False, None),
        "429": (by_status[429], "rate_limit", 429, True, 2.0),
        "500": (by_status[500], "server_error", 500, True, None),
        "502, a page": (
            Answer(502, {"content-type": "text/html"}, (b"<h1>It did not work.</h1>",)),
            "server_error",
            502,
            True,
            None,
        ),
        "529": (by_status[529], "overloaded", 529, True, None),
        "told not to": (
            vendor.failing(500, "It did not work.", headers={"x-should-retry": "false"}),
            "server_error",
            500,
            False,
            None,
        ),
        "a redirection": (Answer(307, {"location": "http://127.0.0.1:9/v1"}), "unknown", 307, False, None),
        "an empty body": (Answer(500), "server_error", 500, True, None),
        "an error in the stream": (streaming(a, vendor.error("It did not work.")), "server_error", None, True, None),
        "cut": (streaming(a, done=False, end="cut"), *cut),
        "ended early": (streaming(a, done=False), *cut),
        "done too early": (streaming(a), *cut),
        "nothing": (streaming(done=False), *cut),
        "no gzip": (streaming(a, headers={"content-encoding": "gzip"}), *cut),
        "no JSON": (vendor.raw(b"{'a': 1}"), *malformed),
        "no UTF-8": (vendor.raw(b'{"a":"\xff"}'), *malformed),
        "no object": (vendor.raw(b"[1]"), *malformed),
        "too deep": (vendor.raw(b"[" * 100_000), *malformed),
        "no stream": (Answer(200, {"content-type": "application/json"}, (b"{}",)), *malformed),
        "a reason unheard of": (streaming(vendor.ending("bored")), "malformed_response", None, False, None),
    }


FAILURES = {vendor.name: failures_of(vendor) for vendor in VENDORS}


@pytest.mark.parametrize("name", FAILURES["openai"])
async def test_a_failure_is_a_finish(vendor: Vendor, server: RecordingServer, adapter: Adapter, name: str) -> None:
    """Whatever the server does, the stream ends in one finish with the right facts; nothing is raised or repeated."""
    await assert_fails(server, adapter, vendor.request, FAILURES[vendor.name][name])


@pytest.mark.parametrize("name", ["400", "429", "502, a page", "an error in the stream"])
async def test_a_failure_says_what_the_provider_says(
    vendor: Vendor, server: RecordingServer, adapter: Adapter, name: str
) -> None:
    """The message is the provider's own."""
    server.answer(FAILURES[vendor.name][name][0])
    failure = (await finish_of(adapter, vendor.request)).failure
    assert failure is not None
    assert "It did not work." in failure.message


async def test_a_failure_can_be_logged(vendor: Vendor, server: RecordingServer, adapter: Adapter) -> None:
    """Half of a character in what the provider says is told as U+FFFD, since no log could hold it."""
    server.answer(vendor.streaming(vendor.error("half \ud83d")), vendor.failing(500, "half \ud83d"))
    for _ in range(2):
        failure = (await finish_of(adapter, vendor.request)).failure
        assert failure is not None
        assert failure.message == "half \ufffd"


async def test_the_key_is_never_shown(
    vendor: Vendor, server: RecordingServer, adapter: Adapter, caplog: pytest.LogCaptureFixture
) -> None:
    """The key is in no repr, failure or log, even where the server says it."""
    caplog.set_level(logging.DEBUG)
    server.answer(
        vendor.failing(401, f"Incorrect API key provided: {KEY}."),
        Answer(500, {}, (KEY.encode(),)),
        vendor.streaming(vendor.error(f"bad key {KEY}")),
        vendor.said("Yes."),
    )
    finishes = [await finish_of(adapter, vendor.request) for _ in range(4)]
    told = [repr(finishes), repr(adapter), str(adapter), caplog.text, *map(repr, vars(adapter).values())]
    assert finishes[0].failure is not None
    assert "(the API key)" in finishes[0].failure.message
    assert caplog.records
    assert not [each for each in told if KEY in each]


@pytest.mark.parametrize("at", [0, 940, 960, 971, 975, 985, 995, 1001, 1980])
async def test_no_part_of_the_key_is_shown(vendor: Vendor, server: RecordingServer, adapter: Adapter, at: int) -> None:
    """A long message is cut, but never in the midst of the key."""
    said = "x" * at + f" {KEY}"
    server.answer(vendor.failing(401, said), Answer(500, {}, (said.encode(),)), vendor.streaming(vendor.error(said)))
    for _ in range(3):
        failure = (await finish_of(adapter, vendor.request)).failure
        assert failure is not None
        assert len(failure.message) <= 1000
        assert KEY[:8] not in failure.message


@pytest.mark.parametrize(
    ("headers", "said", "told"),
    [
        ({"X-Gateway-Token": KEY}, f"token {KEY} refused", "token (a header) refused"),
        ({"Authorization": f"Bearer {KEY}"}, f"Bearer {KEY} refused", "Bearer (a header) refused"),
        ({"Authorization": f"Bearer {KEY}"}, f"who is {KEY}?", "who is (a header)?"),
        ({"Cookie": f"session={KEY}; team=billing"}, f"no session={KEY} here", "no (a header) here"),
        ({"X-A": "secret", "X-B": "secret-too"}, "secret-too, secret", "(a header), (a header)"),
        ({"X-Version": "1"}, "1 is no version", "1 is no version"),
        ({"Anthropic-Beta": "context-1m"}, "no context-1m here", "no context-1m here"),
    ],
)
async def test_headers_are_not_shown(
    vendor: Vendor,
    server: RecordingServer,
    caplog: pytest.LogCaptureFixture,
    headers: dict[str, str],
    said: str,
    told: str,
) -> None:
    """What further headers hold may be a secret, and is masked as the key is; what cannot be one stays."""
    caplog.set_level(logging.DEBUG)
    server.answer(vendor.failing(401, said), vendor.streaming(vendor.error(said)))
    async with vendor.kind("local", base_url=vendor.url(server), headers=headers) as adapter:
        for _ in range(2):
            failure = (await finish_of(adapter, vendor.request)).failure
            assert failure is not None
            assert failure.message == told
    assert caplog.records
    assert KEY not in caplog.text


async def test_headers_of_the_environment_are_not_shown(
    vendor: Vendor, server: RecordingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor are those that the SDK takes from the environment."""
    monkeypatch.setenv(vendor.headers_variable, "X-Team: a-secret-of-the-team")
    server.answer(vendor.failing(401, "who is a-secret-of-the-team?"))
    async with vendor.make(server) as adapter:
        failure = (await finish_of(adapter, vendor.request)).failure
    assert server.requests[0].headers["x-team"] == "a-secret-of-the-team"
    assert failure is not None
    assert failure.message == "who is (a header)?"


# Making one


def test_no_key(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key, the error names the variable to set; a key that no header can hold is told without showing it."""
    monkeypatch.delenv(vendor.variables[0], raising=False)
    with pytest.raises(ApiKeyError, match=f"set {vendor.variables[0]}"):
        vendor.kind()
    with pytest.raises(ApiKeyError, match="is empty"):
        vendor.kind("local", base_url="http://localhost", api_key="")
    with pytest.raises(ApiKeyError) as caught:
        vendor.kind(api_key=f"{KEY}\n")
    assert KEY not in str(caught.value)


def test_where_it_goes(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The known provider has its address, profile and key; its address can come from the environment."""
    variable = f"{vendor.name.upper()}_BASE_URL"
    monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(vendor.variables[0], KEY)
    known, mine = vendor.kind(), vendor.kind("mine", base_url="http://localhost:1/")
    assert (known.base_url, known.profile) == (vendor.address, vendor.profiles[0])
    assert (mine.base_url, mine.profile) == ("http://localhost:1", vendor.profiles[1])
    monkeypatch.setenv(variable, "http://proxy/path")
    assert vendor.kind().base_url == "http://proxy/path"
    assert isinstance(known, ModelAdapter)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        (None, "give base_url"),
        ("localhost:8000/api", "must begin with http"),
        ("ftp://host/api", "must begin with http"),
        ("http:///api", "must begin with http"),
        ("http://me:secret@host/api", "no user"),
        ("http://host/api?key=secret", "query"),
    ],
)
def test_a_bad_address(vendor: Vendor, address: str | None, why: str) -> None:
    """An address that cannot work, or that holds a secret, is refused when the adapter is made; it is not shown."""
    with pytest.raises(ValueError, match=why) as caught:
        vendor.kind("mine", base_url=address)
    assert "secret" not in str(caught.value)


def test_without_the_extra(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the SDK is not installed, importing the adapter says which extra is missing."""
    module = f"foreword.agent.models.{vendor.name}"
    for name in [name for name in sys.modules if name.startswith(module)]:
        monkeypatch.delitem(sys.modules, name)
    blocked: dict[str, Any] = sys.modules
    monkeypatch.setitem(blocked, vendor.name, None)
    with pytest.raises(ImportError, match=rf'pip install "foreword\[{vendor.name}\]"'):
        __import__(module)


def test_only_an_adapter_needs_its_sdk(vendor: Vendor) -> None:
    """Models in general, scripted ones and the pure functions of both formats load without an SDK."""
    modules = ["agent.models", "testing.scripted_model"]
    modules += [f"wire.{each}" for each in ("anthropic", "anthropic_stream", "openai_chat", "openai_chat_stream")]
    code = f"import sys, {', '.join(f'foreword.{each}' for each in modules)}; sys.exit({vendor.name!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
