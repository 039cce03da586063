from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import RequestUsage
from tests.integrations.agents import Shop, clerk, model_of, play, read_all, script
from tests.integrations.support import CHAT, MESSAGES, RESPONSES, SOON, WIRES, Wire, foreword, rebuilt_in, sent_by
from tests.support.recording_server import RecordingServer

from foreword.errors import BodyNotRecordedError, RecordingFailedError
from foreword.explain import CacheStep, session_cache, subject_at
from foreword.integrations.pydantic_ai import Recorder
from foreword.integrations.rebuilding import rebuild_recorded
from foreword.session import RequestEnded, TurnEnd, open_log, rebuild, verify

pytestmark = pytest.mark.anyio


class Place(BaseModel):
    """Where a book is."""

    shelf: int


ANSWERS = ["It is ordered.", "Good bye."]
EVERY = pytest.mark.parametrize(
    ("wire", "stream"),
    [(wire, stream) for wire in WIRES for stream in (False, True)],
    ids=lambda given: given.name if isinstance(given, Wire) else "stream" if given else "whole",
)


@EVERY
async def test_the_wire_is_the_same_with_and_without(wire: Wire, stream: bool, tmp_path: Path) -> None:
    """Whatever goes over the wire, headers and bodies, is equal to the byte when the agent is recorded."""
    with RecordingServer(*script(wire, stream=stream)) as plain:
        assert await play(clerk(model_of(wire, plain), []), stream=stream) == ANSWERS
    with RecordingServer(*script(wire, stream=stream)) as recorded:
        recorder = Recorder(f"sqlite:{tmp_path}/log.db")
        assert await play(clerk(model_of(wire, recorded), [recorder]), stream=stream) == ANSWERS
    assert recorder.faults == ()
    assert len(plain.requests) == 5
    assert sent_by(recorded) == sent_by(plain)


@EVERY
async def test_the_log_holds_what_was_sent(wire: Wire, stream: bool, tmp_path: Path) -> None:
    """Each request on the wire, the SDK's retry among them, is an attempt in the log, and its bytes come back."""
    with RecordingServer(*script(wire, stream=stream)) as server:
        await play(clerk(model_of(wire, server), [Recorder(f"sqlite:{tmp_path}/log.db")]), stream=stream)
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        rebuilt = await rebuilt_in(log)
        assert [each.body for each in rebuilt] == [request.body for request in server.requests]
        assert {each.level for each in rebuilt} == {"wire"}
        assert [(each.location.number, each.location.attempt) for each in rebuilt] == [
            (1, 1),
            (2, 1),
            (2, 2),
            (3, 1),
            (4, 1),
        ]
        assert [each.outcome.finish for each in rebuilt if each.outcome] == [
            "tool-calls",
            "error",
            "tool-calls",
            "stop",
            "stop",
        ]
        assert (await verify(log)).intact


@EVERY
async def test_the_first_change_of_each_step_is_named(wire: Wire, stream: bool, tmp_path: Path) -> None:
    """Of each request that breaks the prefix of the one before, the part, its owner and the character are told."""
    with RecordingServer(*script(wire, stream=stream)) as server:
        await play(clerk(model_of(wire, server), [Recorder(f"sqlite:{tmp_path}/log.db")]), stream=stream)
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        told = await session_cache(log, "last")
    late_tool = ("tool", "order", "toolset:shelf", 0)
    # On responses the framework sends a late tool on a channel of its own; then the appended block is what differs.
    second = (
        ("section", "agent:stock", "clerk", len('<pyai:context id="agent:stock">\nStock: '))
        if wire is RESPONSES
        else late_tool
    )
    assert [_first_change(step) for step in told.steps] == [
        None,
        second,
        None,  # the retry
        ("section", "#4 It is", "clerk", len("It is 10:3")),
        ("section", "#4 It is", "clerk", len("It is 10:3")),
    ]
    assert told.steps[3].broken_by is not None
    assert (told.steps[3].broken_by.old, told.steps[3].broken_by.new) == ("30", "31")
    assert told.steps[0].actual_share == pytest.approx(1024 / 1200)


def _first_change(step: CacheStep) -> tuple[str, str, str | None, int | None] | None:
    told = step.broken_by
    return None if told is None else (told.cause, told.name, told.owner, told.at)


async def test_owners_are_as_fine_as_the_framework_tells(tmp_path: Path) -> None:
    """A section bears the id of its part, else its place and first words; capabilities and toolsets own what is theirs."""
    with RecordingServer(*script(CHAT, stream=False)) as server:
        await play(clerk(model_of(CHAT, server), [Recorder(f"sqlite:{tmp_path}/log.db")]), stream=False)
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        told = await subject_at(log, "last")
    assert [(part.name, part.origin.owner) for part in told.sections] == [
        ("agent", "clerk"),
        ("capability:budget", "capability:budget"),
        ("agent:stock", "clerk"),
        ("#4 It is", "clerk"),
        ("agent:limits", "clerk"),
    ]
    assert [(tool.name, tool.origin.owner) for tool in told.tools] == [
        ("find", "toolset:shelf"),
        ("order", "toolset:shelf"),
    ]


async def test_it_sees_what_other_capabilities_make_of_a_request(tmp_path: Path) -> None:
    """What a capability that is listed behind it puts into a request is in the log, also where no bytes are seen."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart("done")])

    agent = clerk(FunctionModel(answer), [Recorder(f"sqlite:{tmp_path}/log.db")])
    await agent.run("Hello.", deps=Shop())
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        rebuilt = await rebuild(log, "last")
    said = [message.text for message in rebuilt.request.messages]
    assert said == ["(edited by a capability)", "Hello.", "(hinted by a model)"]


async def test_a_session_is_a_conversation_and_a_turn_a_run(tmp_path: Path) -> None:
    """Two runs of one conversation are two turns of the session of its id; another conversation is another session."""
    recorder = Recorder(f"sqlite:{tmp_path}/log.db", labels={"tenant": "acme"})
    agent = Agent(TestModel(), name="clerk", capabilities=[recorder])
    first = await agent.run("One.", conversation_id="order-4711")
    await agent.run("Two.", message_history=first.all_messages())
    await agent.run("Three.", conversation_id="no id: of ours")
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        known, other = await log.sessions()
        assert known.id == "order-4711"
        assert (await log.start_of(known.id)).labels == {"tenant": "acme", "agent": "clerk"}
        assert (await log.start_of(other.id)).labels["conversation"] == "no id: of ours"
        events = [logged.event async for logged in await log.events(known.id)]
        assert [event.reason for event in events if isinstance(event, TurnEnd)] == ["completed", "completed"]


ODD_IDS = ["conv /äö@last", "user:42/7", "anna@example.com", "last", "-", "…", "", "x" * 300]
"""Of conversations; no session can be called so."""


@pytest.mark.parametrize("conversation", ODD_IDS)
async def test_any_conversation_has_one_session(conversation: str, tmp_path: Path) -> None:
    """Also one whose id no session can bear: its runs go on in one session, and what a later one breaks is told."""
    for day in ("Monday", "Tuesday"):
        recorder = Recorder(f"sqlite:{tmp_path}/log.db")
        agent = Agent(TestModel(), name="clerk", instructions=f"It is {day}.", capabilities=[recorder])
        await agent.run("Hello.", conversation_id=conversation)
        assert recorder.faults == ()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        (session,) = await log.sessions()
        assert (await log.start_of(session.id)).labels["conversation"] == conversation
        broken = (await session_cache(log, session.id)).steps[1].broken_by
    assert broken is not None
    assert (broken.cause, broken.old, broken.new) == ("section", "Monday", "Tuesday")


async def test_conversations_of_like_ids_do_not_meet(tmp_path: Path) -> None:
    """Ids that differ only in what no session's id can hold are those of different conversations."""
    recorder = Recorder(f"sqlite:{tmp_path}/log.db")
    agent = Agent(TestModel(), capabilities=[recorder])
    ids = ["user:42/7", "user/42:7", "user-42-7"]
    for conversation in ids:
        await agent.run("Hello.", conversation_id=conversation)
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        sessions = await log.sessions()
        starts = [await log.start_of(session.id) for session in sessions]
    assert [start.labels.get("conversation") for start in starts] == [*ids[:2], None]
    assert all(session.id.startswith("user-42-7") for session in sessions)


async def test_runs_of_one_conversation_at_once_do_not_meet(tmp_path: Path) -> None:
    """Of two runs of one conversation that go on at once, each has a session; both bear the conversation."""
    both = asyncio.Barrier(2)

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await both.wait()
        return ModelResponse(parts=[TextPart("done")])

    recorder = Recorder(f"sqlite:{tmp_path}/log.db")
    agent = Agent(FunctionModel(answer), capabilities=[recorder])
    await asyncio.gather(*(agent.run(f"Run {number}.", conversation_id="c") for number in range(2)))
    assert recorder.faults == ()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        sessions = await log.sessions()
        assert "c" in {session.id for session in sessions}
        beside = next(session for session in sessions if session.id != "c")
        assert (await log.start_of(beside.id)).labels["conversation"] == "c"
        assert (await verify(log)).intact


@pytest.mark.parametrize("stream", [False, True])
async def test_without_an_http_client_the_level_is_assembly(stream: bool, tmp_path: Path) -> None:
    """Of a model that shows no HTTP client, what the framework hands to it is logged, one attempt a call."""
    seen: list[tuple[str | None, list[str]]] = []

    def note(messages: list[ModelMessage], info: AgentInfo) -> None:
        texts = [
            str(part.content) for message in messages for part in message.parts if isinstance(part, UserPromptPart)
        ]
        seen.append((info.instructions, texts))

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        note(messages, info)
        return ModelResponse(parts=[TextPart("done")], usage=RequestUsage(input_tokens=50, cache_read_tokens=25))

    async def stream_answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        note(messages, info)
        yield "done"

    recorder = Recorder(f"sqlite:{tmp_path}/log.db")
    agent = Agent(
        FunctionModel(answer, stream_function=stream_answer), instructions="Be kind.", capabilities=[recorder]
    )
    await agent.run("Hello.", event_stream_handler=read_all if stream else None)
    assert recorder.faults == ()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        rebuilt = await rebuild(log, "last")
        assert rebuilt.level == "assembly"
        assert [(rebuilt.request.system, [message.text for message in rebuilt.request.messages])] == seen
        assert rebuilt.outcome is not None
        assert rebuilt.outcome.finish == "stop"
        with pytest.raises(BodyNotRecordedError, match=r"no recorder saw them, .* without --body") as caught:
            await rebuild_recorded(log, "last")
        assert caught.value.request == str(rebuilt.location)
    assert "was recorded, level assembly" in foreword(
        "log", "rebuild", "last", "--log", "sqlite:log.db", folder=tmp_path
    )


async def test_what_a_log_cannot_hold_is_spelled_out(tmp_path: Path) -> None:
    """Numbers that readers of JSON round are in the log as text, in their place, also where no bytes are seen."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart("done")])

    def order(number: Annotated[int, Field(le=2**63 - 1)]) -> str:
        return ""

    recorder = Recorder(f"sqlite:{tmp_path}/log.db")
    agent = Agent(FunctionModel(answer), tools=[order], capabilities=[recorder], model_settings={"seed": 2**60})
    await agent.run("Hello.")
    assert recorder.faults == ()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        request = (await rebuild(log, "last")).request
    assert request.config.settings == {"seed": {"$json": str(2**60)}}
    assert request.tools[0].parameters["properties"]["number"]["maximum"] == {"$json": str(2**63 - 1)}


async def test_how_a_run_ends_is_how_its_turn_ends(tmp_path: Path) -> None:
    """A run that fails ends its turn with error, one that is cancelled with aborted; the error is what it was."""
    started = asyncio.Event()

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if "fail" in str(messages):
            raise ModelHTTPError(429, "m")
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    agent = Agent(FunctionModel(answer), capabilities=[Recorder(f"sqlite:{tmp_path}/log.db")])
    with pytest.raises(ModelHTTPError):
        await agent.run("fail", conversation_id="failed")
    task = asyncio.create_task(agent.run("wait", conversation_id="cancelled"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        for session, finish, reason in (("failed", "error", "error"), ("cancelled", "aborted", "aborted")):
            events = [logged.event async for logged in await log.events(session)]
            assert [event.finish for event in events if isinstance(event, RequestEnded)] == [finish]
            assert [event.reason for event in events if isinstance(event, TurnEnd)] == [reason]


async def test_what_others_send_with_the_same_client_is_not_recorded(tmp_path: Path) -> None:
    """The client of a recorded agent's model may be used for other things; they are not the agent's."""
    with RecordingServer(CHAT.answer("Hello.", stream=False), CHAT.answer("Other.", stream=False)) as server:
        client = AsyncOpenAI(base_url=server.url, api_key="k")
        agent = Agent(
            OpenAIChatModel("gpt-5.2", provider=OpenAIProvider(openai_client=client)),
            capabilities=[Recorder(f"sqlite:{tmp_path}/log.db")],
        )
        await agent.run("Hello.")
        await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Other."}])
        await client.close()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        assert len(await rebuilt_in(log)) == 1


async def test_a_log_that_cannot_be_written_stops_no_agent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """By default the agent goes on, and the fault is told, once."""
    recorder = Recorder(f"sqlite:{tmp_path}/there/is/no/folder.db")
    agent = Agent(TestModel(), capabilities=[recorder])
    for _ in range(2):
        await agent.run("Hello.")
    assert len(recorder.faults) == 2
    assert [record.name for record in caplog.records] == ["foreword.integrations"]
    assert "cannot log a request" in caplog.text


async def test_or_stops_it_if_that_is_wanted(tmp_path: Path) -> None:
    """With on_error="raise" nothing is sent that is not in the log."""
    with RecordingServer() as server:
        recorder = Recorder(f"sqlite:{tmp_path}/there/is/no/folder.db", on_error="raise")
        agent = Agent(model_of(CHAT, server), capabilities=[recorder])
        async with agent:
            with pytest.raises(RecordingFailedError, match="was not sent"):
                await agent.run("Hello.")
        assert server.requests == []


@pytest.mark.slow
async def test_the_verbs_work_on_a_recorded_log(tmp_path: Path) -> None:
    """log, cache, diff, explain and tokens say of a recorded session what they say of any."""
    with RecordingServer(*script(MESSAGES, stream=True)) as server:
        await play(clerk(model_of(MESSAGES, server), [Recorder(f"sqlite:{tmp_path}/foreword.db")]), stream=True)
    bodies = [request.body.decode() for request in server.requests]

    def told(*arguments: str) -> str:
        return foreword(*arguments, folder=tmp_path)

    assert "agent=clerk" in told("log", "list")
    shown = told("log", "show")
    assert "recorder/shape" not in shown
    assert "1,200 tokens in (1,024 cached)" in shown
    assert told("log", "rebuild", "last@3", "--body").startswith(bodies[3] + "\n")
    assert "was recorded, level wire" in told("log", "rebuild", "last@3", "--text")
    assert json.loads(told("log", "rebuild", "last@3", "--json"))["level"] == "wire"
    assert "Log intact" in told("log", "verify")
    cached = told("cache", "last", "--steps")
    assert 'section #4 It is (clerk), char 10 "30" → "31"' in cached
    assert "(85% reported)" in cached
    assert "section #4 It is of clerk changed" in told("diff", "last@2", "last@3")
    assert "capability:budget" in told("explain", "last", "50 EUR")
    assert "toolset:shelf" in told("tokens", "last")


async def test_a_closed_recorder_records_nothing(tmp_path: Path) -> None:
    """The agent of a recorder that was closed goes on as if it had none."""
    with RecordingServer(otherwise=CHAT.answer("Hello.", stream=False)) as server:
        async with Recorder(f"sqlite:{tmp_path}/log.db") as recorder:
            agent = Agent(model_of(CHAT, server), capabilities=[recorder])
            async with agent:
                await agent.run("Hello.")
                await recorder.close()
                assert (await agent.run("Hello.")).output == "Hello."
        assert recorder.faults == ()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        assert len(await rebuilt_in(log)) == 1


async def test_an_agent_runs_in_several_loops_and_threads(tmp_path: Path) -> None:
    """One recorder serves runs of any thread and event loop."""
    recorder = Recorder(f"sqlite:{tmp_path}/log.db")
    agent = Agent(TestModel(), capabilities=[recorder])
    await asyncio.gather(*(asyncio.to_thread(asyncio.run, agent.run(f"Run {number}.")) for number in range(4)))
    assert recorder.faults == ()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        assert len(await log.sessions()) == 4
        assert (await verify(log)).intact


async def test_a_final_tool_call_and_its_answer_are_one_history(tmp_path: Path) -> None:
    """A structured answer is a tool call that ends the run; the next run of the conversation answers it."""
    seen: list[list[str]] = []

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append([part.part_kind for message in messages for part in message.parts])
        return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"shelf": 4}, f"c{len(seen)}")])

    recorder = Recorder(f"sqlite:{tmp_path}/log.db")
    agent = Agent(FunctionModel(answer), output_type=Place, capabilities=[recorder])
    first = await agent.run("Where is Emma?")
    await agent.run("And Persuasion?", message_history=first.all_messages())
    assert recorder.faults == ()
    assert seen[1] == ["user-prompt", "tool-call", "tool-return", "user-prompt"]
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        rebuilt = await rebuild(log, "last")
        roles = [message.to_json()["role"] for message in rebuilt.request.messages]
        assert roles == ["user", "assistant", "tool", "user"]
        assert (await verify(log)).intact


async def test_each_model_of_a_fallback_is_seen(tmp_path: Path) -> None:
    """Where one model gives way to another, the requests of both are there, each with its provider."""
    with (
        RecordingServer(otherwise=CHAT.failing(500, headers=SOON)) as down,
        RecordingServer(MESSAGES.answer("Hello.", stream=False)) as up,
    ):
        model = FallbackModel(model_of(CHAT, down), model_of(MESSAGES, up))
        recorder = Recorder(f"sqlite:{tmp_path}/log.db")
        agent = Agent(model, capabilities=[recorder], model_settings={"max_tokens": 1000})
        async with agent:
            assert (await agent.run("Hi.")).output == "Hello."
    assert recorder.faults == ()
    async with open_log(f"sqlite:{tmp_path}/log.db", read_only=True) as log:
        rebuilt = await rebuilt_in(log)
    assert [each.body for each in rebuilt] == [request.body for server in (down, up) for request in server.requests]
    assert [str(each.request.config) for each in rebuilt] == ["openai:gpt-5.2"] * 3 + ["anthropic:claude-opus-4-8"]
    assert [(each.location.number, each.location.attempt) for each in rebuilt] == [(1, 1), (1, 2), (1, 3), (2, 1)]
