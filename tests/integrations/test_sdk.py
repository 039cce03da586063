from __future__ import annotations

import asyncio
import gc
import gzip
import json
import logging
import pickle
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any

import httpx2
import openai
import pytest
from tests.integrations.sdks import ASKED, CALL, RULES, SAID, SDKS, Sdk
from tests.integrations.support import CHAT, JSON, SOON, foreword, rebuilt_in, sent_by, stored_in
from tests.session.test_flush import Faulty
from tests.support.recording_server import Answer, RecordingServer, chunk, failing, streaming, text

from foreword.errors import BodyNotRecordedError, InactiveContextError, NothingToRecordError, RecordingFailedError
from foreword.explain import session_cache, subject_at
from foreword.integrations.missed import MISSED
from foreword.integrations.rebuilding import rebuild_recorded
from foreword.integrations.sdk import Recorder
from foreword.session import Note, RequestEnded, TurnEnd, open_log, rebuild, verify

pytestmark = pytest.mark.anyio

EVERY = pytest.mark.parametrize("sdk", SDKS, ids=str)
STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def script(sdk: Sdk, *, stream: bool) -> list[Answer]:
    """A tool call, a failure that the SDK tries again, an answer."""
    return [
        sdk.wire.answer(SAID, CALL, stream=stream),
        sdk.wire.failing(529, headers=SOON),
        sdk.wire.answer("Shelf 4.", stream=stream),
    ]


async def converse(sdk: Sdk, client: Any, *, stream: bool) -> None:
    await sdk.ask(client, 29, after_call=False, stream=stream)
    await sdk.ask(client, 30, after_call=True, stream=stream)
    await sdk.close(client)


@EVERY
@STREAM
async def test_the_wire_is_the_same_with_and_without(sdk: Sdk, stream: bool, tmp_path: Path) -> None:
    """Whatever goes over the wire, headers and bodies, is equal to the byte when a client is recorded."""
    with RecordingServer(*script(sdk, stream=stream)) as plain:
        await converse(sdk, sdk.client(plain), stream=stream)
    with RecordingServer(*script(sdk, stream=stream)) as recorded, Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
        client = sdk.client(recorded)
        recorder.attach(client)
        await converse(sdk, client, stream=stream)
        assert recorder.faults == ()
    assert len(plain.requests) == 3
    assert sent_by(recorded) == sent_by(plain)


@EVERY
@STREAM
async def test_the_log_holds_what_was_sent(sdk: Sdk, stream: bool, tmp_path: Path) -> None:
    """Each request on the wire is an attempt, and its bytes come back; outcomes and usage are those of the answers."""
    with RecordingServer(*script(sdk, stream=stream)) as server, Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
        client = sdk.client(server)
        recorder.attach(client, provider="openai")
        await converse(sdk, client, stream=stream)
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        rebuilt = await rebuilt_in(log)
        assert [each.body for each in rebuilt] == [request.body for request in server.requests]
        assert {each.level for each in rebuilt} == {"wire"}
        assert [(each.location.number, each.location.attempt) for each in rebuilt] == [(1, 1), (2, 1), (2, 2)]
        outcomes = [each.outcome for each in rebuilt if each.outcome is not None]
        assert [outcome.finish for outcome in outcomes] == ["tool-calls", "error", "stop"]
        assert outcomes[1].failure is not None
        assert outcomes[1].failure.status == 529
        usages = [outcome.usage for outcome in outcomes if outcome.usage is not None]
        assert [(usage.input_tokens, usage.cached_tokens) for usage in usages] == [(1200, 1024), (1200, 1024)]
        assert rebuilt[0].request.system.startswith(RULES)
        assert rebuilt[0].request.messages[0].text == ASKED
        assert rebuilt[0].request.tools[0].name == "find"
        assert (await verify(log)).intact


@EVERY
@STREAM
async def test_the_first_change_is_named(sdk: Sdk, stream: bool, tmp_path: Path) -> None:
    """Each system message or block is a section, called by its place and first words; the one that changed is told."""
    with RecordingServer(*script(sdk, stream=stream)) as server, Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
        client = sdk.client(server)
        recorder.attach(client)
        await converse(sdk, client, stream=stream)
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        told = await session_cache(log, "last")
        assert [part.name for part in (await subject_at(log, "last")).sections] == ["#1 You are the clerk", "#2 It is"]
    broken = told.steps[1].broken_by
    assert broken is not None
    assert (broken.cause, broken.name, broken.owner, broken.at) == ("section", "#2 It is", "application", 9)
    assert (broken.old, broken.new) == ("29", "30")


@EVERY
async def test_what_a_log_cannot_hold_is_spelled_out(sdk: Sdk, tmp_path: Path) -> None:
    """Numbers that readers of JSON round, and schemas that are nested too deep, are in the log as text, in their place."""
    schema: dict[str, Any] = {"type": "object", "properties": {"n": {"maximum": 2**63 - 1, "default": -0.0}}}
    for _ in range(80):
        schema = {"type": "object", "properties": {"n": schema}}
    with RecordingServer(otherwise=sdk.wire.answer("Yes.", stream=False)) as server:
        client = sdk.client(server)
        with Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
            recorder.attach(client)
            for odd in ({"seed": 2**60}, {"seed": 2**60 + 1}, {"seed": 1, "metadata": schema, "limit": -0.0}):
                await sdk.ask(client, 29, after_call=False, stream=False, extra_body=odd, parameters=schema)
            assert recorder.faults == ()
        await sdk.close(client)
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        rebuilt = await rebuilt_in(log)
        assert [each.body for each in rebuilt] == [request.body for request in server.requests]
        seeds = [each.request.config.settings["seed"] for each in rebuilt]
        assert seeds == [{"$json": "1152921504606846976"}, {"$json": "1152921504606846977"}, 1]
        assert rebuilt[2].request.config.settings["limit"] == {"$json": "-0.0"}
        told = rebuilt[0].canonical.decode()
        assert str(2**63 - 1) in told
        assert "-0.0" in told
        assert (await verify(log)).intact


# -- sessions ----------------------------------------------------------------------------------------------------------


async def test_a_block_is_a_session(tmp_path: Path) -> None:
    """What is sent in a block is a session with its labels; what is sent outside of all is one, too."""
    sdk = SDKS[0]
    with RecordingServer(otherwise=CHAT.answer("Yes.", stream=False)) as server:
        client = sdk.client(server)
        with Recorder(f"sqlite:{tmp_path}/log.db", labels={"tenant": "acme"}) as recorder:
            recorder.attach(client)
            for ticket in ("1", "2"):
                with recorder.session(labels={"ticket": ticket}):
                    await sdk.ask(client, 29, after_call=False, stream=False)
            for _ in range(2):
                await sdk.ask(client, 29, after_call=False, stream=False)
        client.close()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        sessions = [await log.start_of(session.id) for session in await log.sessions()]
        assert [dict(session.labels) for session in sessions] == [
            {"tenant": "acme", "ticket": "1"},
            {"tenant": "acme", "ticket": "2"},
            {"tenant": "acme"},
        ]
        assert len(await rebuilt_in(log)) == 4
        events = [logged.event async for logged in await log.events("last")]
        assert [event.reason for event in events if isinstance(event, TurnEnd)] == ["completed", "completed"]


async def test_requests_at_once_stand_side_by_side(tmp_path: Path) -> None:
    """Requests that are under way at once go into sessions of their own; later ones go on with what they know."""
    sdk = SDKS[1]
    gate = Event()
    held = streaming(chunk({"role": "assistant"}), gate, text("Yes."), chunk(finish="stop"))
    with RecordingServer(held, held, otherwise=CHAT.answer("Yes.", stream=False)) as server:
        client = sdk.client(server)
        with Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
            recorder.attach(client)
            asked = [asyncio.create_task(sdk.ask(client, at, after_call=False, stream=True)) for at in (29, 30)]
            await asyncio.to_thread(server.wait_for_requests, 2)
            gate.set()
            await asyncio.gather(*asked)
            await sdk.ask(client, 31, after_call=False, stream=False)
            assert recorder.faults == ()
        await client.close()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        first, second = await log.sessions()
        labels = [(await log.start_of(session.id)).labels for session in (first, second)]
        assert sorted(map(dict, labels), key=len) == [{}, {"beside": min((first, second), key=lambda s: s.created).id}]
        assert len(await rebuilt_in(log)) == 3


async def test_a_history_that_was_changed_is_the_one_that_was_sent(tmp_path: Path) -> None:
    """Messages that were dropped, reworded or put together by the application are replaced in the log, too."""
    histories = [
        ["a"],
        ["a", "b", "c"],
        ["x"],
        ["x", "y", "z"],
        ["x", "q"],
        ["x"],
    ]
    with RecordingServer(otherwise=CHAT.answer("Yes.", stream=False)) as server:
        client = openai.OpenAI(base_url=server.url, api_key="k")
        with Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
            recorder.attach(client)
            for history in histories:
                roles = ("user", "assistant")
                messages: Any = [{"role": roles[at % 2], "content": said} for at, said in enumerate(history)]
                client.chat.completions.create(model="m", messages=messages)
            assert recorder.faults == ()
        client.close()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        rebuilt = await rebuilt_in(log)
        assert [[message.text for message in each.request.messages] for each in rebuilt] == histories
        assert [each.body for each in rebuilt] == [request.body for request in server.requests]


@pytest.mark.parametrize("form", ["chat", "responses"])
async def test_requests_without_a_message_stay_in_their_session(form: str, tmp_path: Path) -> None:
    """Whether they come first, one after the other, or after some with messages; each comes back as it was sent."""
    sdk = SDKS[0] if form == "chat" else SDKS[2]
    with RecordingServer(otherwise=sdk.wire.answer("Yes.", stream=False)) as server:
        client = sdk.client(server)

        def ask(*said: str) -> None:
            messages: Any = [{"role": "user", "content": text} for text in said]
            if form == "chat":
                client.chat.completions.create(model="m", messages=messages)
            elif said:
                client.responses.create(model="m", prompt={"id": "pmpt_1"}, input=messages)
            else:
                client.responses.create(model="m", prompt={"id": "pmpt_1"})

        with Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
            recorder.attach(client)
            with recorder.session():
                for said in ((), (), (), ("One.",), (), ("Two.", "Three.")):
                    ask(*said)
            assert recorder.faults == ()
        client.close()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        (session,) = await log.sessions()
        assert (await log.start_of(session.id)).labels == {}
        rebuilt = await rebuilt_in(log)
        assert [each.body for each in rebuilt] == [request.body for request in server.requests]
        said_in = [[message.text for message in each.request.messages if message.text] for each in rebuilt]
        assert said_in == [[], [], [], ["One."], [], ["Two.", "Three."]]
        assert [step.broken_by for step in (await session_cache(log, session.id)).steps[:3]] == [None] * 3
        assert (await verify(log)).intact


async def test_a_history_that_the_server_keeps_goes_on(tmp_path: Path) -> None:
    """With previous_response_id only what is new is sent; the log's history is all that the model sees."""
    sdk = SDKS[2]
    with RecordingServer(otherwise=sdk.wire.answer("Yes.", stream=False)) as server:
        client = sdk.client(server)
        with Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
            recorder.attach(client)
            first = client.responses.create(model="gpt-5.2", input="One.")
            client.responses.create(model="gpt-5.2", input="Two.", previous_response_id=first.id)
        client.close()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        last = await rebuild_recorded(log, "last")
        assert [message.text for message in last.request.messages] == ["One.", "Yes.", "Two."]
        assert last.body == server.requests[1].body


# -- answers -----------------------------------------------------------------------------------------------------------


async def test_an_answer_that_nobody_reads_to_its_end_is_aborted(tmp_path: Path) -> None:
    """A stream that is left early ends its attempt; what had arrived of it is in the log."""
    gate = Event()
    with RecordingServer(streaming(chunk({"role": "assistant"}), text("Ye"), gate)) as server:
        client = openai.OpenAI(base_url=server.url, api_key="k")
        with Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
            recorder.attach(client)
            with client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "?"}], stream=True
            ) as stream:
                for event in stream:
                    if event.choices[0].delta.content:
                        break
        client.close()
        gate.set()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        events = [logged.event async for logged in await log.events("last")]
        assert [event.finish for event in events if isinstance(event, RequestEnded)] == ["aborted"]
        assert [event.reason for event in events if isinstance(event, TurnEnd)] == ["aborted"]


async def test_an_answer_that_is_left_lying_is_over_when_it_is_gone(tmp_path: Path) -> None:
    """A stream that is neither read to its end nor closed ends its attempt when nobody has it any more."""
    gate = Event()
    held = streaming(chunk({"role": "assistant"}), text("Ye"), gate)
    with RecordingServer(held, otherwise=CHAT.answer("Yes.", stream=False)) as server:
        client = openai.OpenAI(base_url=server.url, api_key="k")
        with Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
            recorder.attach(client)
            stream = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}], stream=True)
            next(iter(stream))
            del stream
            gc.collect()
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "!"}])
            assert recorder.faults == ()
        client.close()
        gate.set()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        assert len(await log.sessions()) == 1
        finishes = [each.outcome.finish for each in await rebuilt_in(log) if each.outcome is not None]
        assert finishes == ["aborted", "stop"]


@pytest.mark.parametrize("sdk", SDKS[:2], ids=str)
async def test_a_server_that_is_not_there_is_an_outcome(sdk: Sdk, tmp_path: Path) -> None:
    """Of attempts without any answer the log says so, and the next request goes on in the same session."""
    with RecordingServer() as server:
        url = server.url
    with Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
        client = sdk.client(server).with_options(base_url=url, max_retries=1)
        recorder.attach(client)
        for _ in range(2):
            with pytest.raises(openai.APIConnectionError):
                await sdk.ask(client, 29, after_call=False, stream=False)
        await sdk.close(client)
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        assert len(await log.sessions()) == 1
        rebuilt = await rebuilt_in(log)
        assert [(each.location.number, each.location.attempt) for each in rebuilt] == [(1, 1), (1, 2), (2, 1), (2, 2)]
        assert {each.outcome.failure.code for each in rebuilt if each.outcome and each.outcome.failure} == {
            "connection"
        }


async def test_a_compressed_answer_is_read(tmp_path: Path) -> None:
    """An answer that comes compressed says what it says."""
    (told,) = CHAT.answer("Yes.", stream=False).pieces
    assert isinstance(told, bytes)
    with RecordingServer(Answer(200, {**JSON, "content-encoding": "gzip"}, (gzip.compress(told),))) as server:
        client = openai.OpenAI(base_url=server.url, api_key="k")
        with Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
            recorder.attach(client)
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
        client.close()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        (one,) = await rebuilt_in(log)
        assert one.outcome is not None
        assert one.outcome.finish == "stop"


async def test_an_answer_that_is_no_answer_is_a_failure(tmp_path: Path) -> None:
    """What cannot be read as an answer is logged as one that is malformed, and reaches the agent as it came."""
    with RecordingServer(Answer(200, JSON, (b'{"choices": 4}',))) as server:
        client = openai.OpenAI(base_url=server.url, api_key="k")
        with Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
            recorder.attach(client)
            got = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
            assert got.choices == 4
        client.close()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        (one,) = await rebuilt_in(log)
        assert one.outcome is not None
        assert one.outcome.failure is not None
        assert one.outcome.failure.code == "malformed_response"


# -- clients -----------------------------------------------------------------------------------------------------------


async def test_an_http_client_can_be_attached_and_handed_over(tmp_path: Path) -> None:
    """Where an SDK hides its HTTP client, one of one's own is attached and given to it."""
    store, yes = f"sqlite:{tmp_path}/log.db", CHAT.answer("Yes.", stream=False)
    with RecordingServer(otherwise=yes) as server, Recorder(store) as recorder, httpx2.Client() as http:
        recorder.attach(http)
        client = openai.OpenAI(base_url=server.url, api_key="k", http_client=http)
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        assert [each.body for each in await rebuilt_in(log)] == [request.body for request in server.requests]


def test_what_shows_no_http_client_cannot_be_attached(tmp_path: Path) -> None:
    """The error says what to do instead."""
    with pytest.raises(NothingToRecordError, match="http_client="):
        Recorder(f"sqlite:{tmp_path}/log.db").attach(object())


async def test_detaching_is_the_end_of_it(tmp_path: Path) -> None:
    """A client that was detached, or whose recorder was closed, sends as before; attaching twice records once."""
    with RecordingServer(otherwise=CHAT.answer("Yes.", stream=False)) as server:
        client = openai.OpenAI(base_url=server.url, api_key="k")
        before = client._client.event_hooks

        def ask() -> None:
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])

        with Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
            detach = recorder.attach(client)
            assert recorder.attach(client) is not None
            ask()
            detach()
            detach()
            ask()
            recorder.attach(client)
            ask()
        ask()
        assert client._client.event_hooks == before
        client.close()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        assert len(await rebuilt_in(log)) == 2


def test_a_closed_recorder_is_not_attached(tmp_path: Path) -> None:
    """It would record nothing, and tell so with each request; the client is left as it is."""
    with httpx2.Client() as client:
        before = client.event_hooks
        recorder = Recorder(f"sqlite:{tmp_path}/log.db")
        recorder.close()
        recorder.close()
        with pytest.raises(InactiveContextError, match="recorder is closed"):
            recorder.attach(client)
        assert client.event_hooks == before


async def test_other_requests_are_none_of_its_business(tmp_path: Path) -> None:
    """What is no request to a model, such as embeddings, is not recorded."""
    told = {"object": "list", "data": [], "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
    with RecordingServer(Answer(200, JSON, (json.dumps(told).encode(),))) as server:
        client = openai.OpenAI(base_url=server.url, api_key="k")
        with Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
            recorder.attach(client)
            client.embeddings.create(model="m", input="?", encoding_format="float")
            assert recorder.faults == ()
        client.close()
    assert not (tmp_path / "log.db").exists()


async def test_credentials_are_not_in_the_log(tmp_path: Path) -> None:
    """Headers are not recorded, so no key is."""
    with RecordingServer(otherwise=failing(401, "Wrong key.")) as server:
        client = openai.OpenAI(base_url=server.url, api_key="sk-secret-of-mine", max_retries=0)
        with Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
            recorder.attach(client)
            with pytest.raises(openai.AuthenticationError):
                client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
        client.close()
    assert b"sk-secret" not in stored_in(tmp_path)


# -- faults ------------------------------------------------------------------------------------------------------------


async def test_what_cannot_be_read_is_sent_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A body in no form that the recorder knows goes out; the next request that can be logged says that one is missing."""
    with RecordingServer(otherwise=CHAT.answer("Yes.", stream=False)) as server:
        client = openai.OpenAI(base_url=server.url, api_key="k")
        with Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
            recorder.attach(client)
            for _ in range(2):
                client.chat.completions.create(model="m", messages="?")  # type: ignore[call-overload]
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
            assert len(recorder.faults) == 2
        client.close()
    assert len(server.requests) == 3
    assert caplog.text.count("a recorder cannot read a request to /v1/chat/completions") == 1
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        notes = [logged.event async for logged in await log.events("last") if isinstance(logged.event, Note)]
        (missed,) = [note.data for note in notes if note.name == MISSED]
        assert missed["requests"] == 2
        assert len(missed["why"]) == 1


async def test_a_log_that_cannot_be_written_stops_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """By default requests go out, and the fault is told; with on_error="raise" none does."""
    store = f"sqlite:{tmp_path}/no/such/folder/log.db"
    with RecordingServer(otherwise=CHAT.answer("Yes.", stream=False)) as server:
        client = openai.OpenAI(base_url=server.url, api_key="k", max_retries=0)
        with Recorder(store) as recorder, caplog.at_level(logging.ERROR):
            recorder.attach(client)
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
            assert len(recorder.faults) == 1
        with Recorder(store, on_error="raise") as recorder:
            recorder.attach(client)
            with pytest.raises(RecordingFailedError, match="was not sent"):
                client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
        client.close()
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "error",
    [
        NothingToRecordError("builtins.object"),
        RecordingFailedError("it is full"),
        BodyNotRecordedError("s", "s@1/1", "nobody saw them"),
    ],
    ids=["nothing", "failed", "no-body"],
)
def test_errors_cross_a_process_border(error: Exception) -> None:
    """They come out of a pickle as they went in."""
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


async def test_what_cannot_be_made_again_says_so(tmp_path: Path) -> None:
    """Of a body in a form that nobody would write, the log has what it says; who asks for its bytes is told."""
    odd = b'{"model":"m","messages":[{"role":"user","content":"?"}],"temperature":1.50}'
    with (
        RecordingServer(otherwise=CHAT.answer("Yes.", stream=False)) as server,
        Recorder(f"sqlite:{tmp_path}/log.db") as recorder,
        httpx2.Client(base_url=server.url) as client,
    ):
        recorder.attach(client)
        client.post("chat/completions", content=odd)
        assert recorder.faults == ()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        assert (await rebuild(log, "last")).request.messages[0].text == "?"
        with pytest.raises(BodyNotRecordedError, match="only their digest"):
            await rebuild_recorded(log, "last")


def test_a_policy_that_is_none_is_refused(tmp_path: Path) -> None:
    """A misspelt on_error is told at once."""
    with pytest.raises(ValueError, match="on_error"):
        Recorder(f"sqlite:{tmp_path}/log.db", on_error="ignore")  # type: ignore[arg-type]


async def test_a_log_that_is_open_can_be_given(tmp_path: Path) -> None:
    """The recorder writes into a log of ours, with its content policy; of digests nothing that was said is stored."""
    with RecordingServer(otherwise=CHAT.answer("Yes, Emma.", stream=False)) as server:
        client = openai.OpenAI(base_url=server.url, api_key="k")
        async with open_log(f"sqlite:{tmp_path}/log.db", content="digests") as log:
            with Recorder(log) as recorder:
                recorder.attach(client)
                client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Is Emma there?"}])
                assert recorder.faults == ()
            assert (await verify(log)).intact
        client.close()
    assert b"Emma" not in stored_in(tmp_path)


async def test_what_is_erased_is_in_no_shape(tmp_path: Path) -> None:
    """Texts stand in the log once: when a message is erased, nothing of it is left in what rebuilds the bodies."""
    sdk = SDKS[0]
    with RecordingServer(*script(sdk, stream=False)) as server, Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
        client = sdk.client(server)
        recorder.attach(client)
        await converse(sdk, client, stream=False)
    async with open_log(f"sqlite:{tmp_path}/log.db") as log:
        await log.erase(match=ASKED)
        assert (await verify(log)).intact
        assert ASKED not in (await rebuild(log, "last", if_erased="mark")).canonical.decode()
    assert ASKED.encode() not in stored_in(tmp_path)


@pytest.mark.slow
async def test_the_verbs_work_on_a_recorded_log(tmp_path: Path) -> None:
    """The commands tell of an SDK's session what they tell of any."""
    sdk = SDKS[4]
    with RecordingServer(*script(sdk, stream=False)) as server, Recorder(f"sqlite:{tmp_path}/foreword.db") as recorder:
        client = sdk.client(server)
        recorder.attach(client, provider="anthropic")
        await converse(sdk, client, stream=False)
    body = foreword("log", "rebuild", "last@2", "--body", folder=tmp_path)
    assert body.encode().startswith(server.requests[2].body)
    assert "level wire" in body
    cached = foreword("cache", "last", "--steps", folder=tmp_path)
    assert 'section #2 It is (application), char 9 "29" → "30"' in cached
    assert "Shelf 4." in foreword("log", "show", folder=tmp_path)
    assert "#1 You are the clerk" in foreword("tokens", "last", folder=tmp_path)


async def test_what_could_not_be_written_comes_later(caplog: pytest.LogCaptureFixture) -> None:
    """While a store takes nothing, requests go out and wait in memory; with the next flush they are in the log."""
    store = Faulty()
    with RecordingServer(otherwise=CHAT.answer("Yes.", stream=False)) as server:
        client = openai.OpenAI(base_url=server.url, api_key="k")
        async with open_log(store) as log:
            with Recorder(log) as recorder:
                recorder.attach(client)
                for faults in ([], ["before", "before"], []):  # of the second request, before it is sent and after
                    store.fail = faults
                    client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
                assert len(recorder.faults) == 2
            assert [each.body for each in await rebuilt_in(log)] == [request.body for request in server.requests]
            assert (await verify(log)).intact
        client.close()
    assert "cannot write its log" in caplog.text


def test_a_request_is_in_the_log_before_it_is_sent(tmp_path: Path) -> None:
    """When the process dies while it waits for the answer, the log has the request, and says that it was perhaps sent."""
    program = """
import sys, openai
from foreword.integrations.sdk import Recorder
client = openai.OpenAI(base_url=sys.argv[1], api_key="k")
Recorder("sqlite:log.db").attach(client)
client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
"""
    with RecordingServer(Answer(200, JSON, (Event(),))) as server:
        process = subprocess.Popen([sys.executable, "-c", program, server.url], cwd=tmp_path)
        try:
            server.wait_for_requests(1)
        finally:
            process.kill()
            process.wait()

    async def look() -> None:
        async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
            (one,) = await rebuilt_in(log)
            assert one.body == server.requests[0].body
            assert one.perhaps_sent
            assert (await verify(log)).intact

    asyncio.run(look())


def test_no_sdk_is_imported_before_it_is_used() -> None:
    """The package imports no framework, and the recorder for SDKs no SDK: it looks at the client that it is given."""
    code = "import sys, foreword.integrations.sdk; print(*sorted({'anthropic', 'httpx2', 'openai', 'pydantic_ai'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == ""


def test_without_the_framework_the_extra_is_named() -> None:
    """Where Pydantic AI is not installed, its recorder says what to install."""
    code = """
import sys

class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name == "pydantic_ai":
            raise ModuleNotFoundError("No module named 'pydantic_ai'", name=name)

sys.meta_path.insert(0, Nowhere())
import foreword.integrations.pydantic_ai
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert "MissingExtraError: the recorder for Pydantic AI needs" in done.stderr
    assert 'pip install "foreword[pydantic-ai]"' in done.stderr


async def test_threads_stand_side_by_side(tmp_path: Path) -> None:
    """Threads that share a sync client are recorded, all that they send."""
    with RecordingServer(otherwise=CHAT.answer("Yes.", stream=False)) as server:
        client = openai.OpenAI(base_url=server.url, api_key="k")

        def ask(number: int) -> None:
            for _ in range(3):
                client.chat.completions.create(model="m", messages=[{"role": "user", "content": f"{number}?"}])

        with Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
            recorder.attach(client)
            await asyncio.gather(*(asyncio.to_thread(ask, number) for number in range(4)))
            assert recorder.faults == ()
        client.close()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        bodies = sorted(each.body or b"" for each in await rebuilt_in(log))
        assert bodies == sorted(request.body for request in server.requests)
        assert (await verify(log)).intact
