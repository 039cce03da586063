"""What a tool carries beside its schema (``strict``, examples): a change in nothing else is told, with key and owner."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic_ai import Agent, Tool
from pydantic_ai.models import Model
from pydantic_ai.models.test import TestModel
from tests.integrations.agents import model_of
from tests.integrations.support import CHAT, MESSAGES, RESPONSES, WIRES, Wire, foreword, rebuilt_in, stored_in
from tests.support.recording_server import RecordingServer

from foreword.explain import Break, Change, diff_of, find_steps, session_cache, subject_at, subjects
from foreword.integrations.pydantic_ai import Recorder as AgentRecorder
from foreword.integrations.sdk import Recorder
from foreword.session import open_log, verify

pytestmark = pytest.mark.anyio

EVERY = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
RULES = "You are the clerk of a bookshop. " + "Be brief. " * 600
PARAMETERS = {"type": "object", "properties": {"title": {"type": "string"}}}
PATHS = {CHAT: "chat/completions", RESPONSES: "responses", MESSAGES: "messages"}

Tools = Mapping[str, Mapping[str, Any]]
"""What each tool carries beside its schema, by its name."""


def body_of(wire: Wire, tools: Tools) -> dict[str, Any]:
    """A request with some tools, as a user of that format writes it."""
    said = {"role": "user", "content": "Where is Emma?"}
    told = {name: {"name": name, "description": "Find it.", **more} for name, more in tools.items()}
    if wire is MESSAGES:
        given = [{**tool, "input_schema": PARAMETERS} for tool in told.values()]
        return {"model": "m", "system": RULES, "messages": [said], "tools": given}
    if wire is RESPONSES:
        given = [{"type": "function", **tool, "parameters": PARAMETERS} for tool in told.values()]
        return {"model": "m", "instructions": RULES, "input": [said], "tools": given}
    given = [{"type": "function", "function": {**tool, "parameters": PARAMETERS}} for tool in told.values()]
    return {"model": "m", "messages": [{"role": "system", "content": RULES}, said], "tools": given}


def record(folder: Path, wire: Wire, *requests: Tools) -> None:
    """Send some requests, in one session."""
    with (
        RecordingServer(otherwise=wire.answer("On shelf 4.", stream=False)) as server,
        Recorder(f"sqlite:{folder}/foreword.db") as recorder,
        httpx2.Client(base_url=server.url) as client,
    ):
        recorder.attach(client, provider="openai")
        for tools in requests:
            client.post(PATHS[wire], json=body_of(wire, tools))
        assert recorder.faults == ()


def find(title: str) -> str:
    """Find a book."""
    return title


async def ask(model: Model, folder: Path, *, strict: bool | None) -> None:
    """Have an agent of Pydantic AI, with a recorder of its own, go on with one conversation."""
    recorder = AgentRecorder(f"sqlite:{folder}/foreword.db")
    agent = Agent(model, name="clerk", tools=[Tool(find, strict=strict)], capabilities=[recorder])
    async with agent:  # closes the connections of its model behind it
        await agent.run("Where is Emma?", conversation_id="order-4711")


async def breaks_in(folder: Path) -> list[Break | None]:
    async with open_log(f"sqlite:{folder}/foreword.db", read_only=True) as log:
        return [step.broken_by for step in (await session_cache(log, "last")).steps]


async def changes_in(folder: Path) -> tuple[Change, ...]:
    """What the second request changed."""
    async with open_log(f"sqlite:{folder}/foreword.db", read_only=True) as log:
        return diff_of(await subject_at(log, "last@1"), await subject_at(log, "last@2")).changes


@EVERY
async def test_the_key_that_changed_is_named(wire: Wire, tmp_path: Path) -> None:
    """Both in what broke the prefix and in the diff: the tool, its owner, the key, its old and its new value."""
    more = {"examples": [{"title": "Emma"}]}
    record(tmp_path, wire, {"find": {"strict": False, **more}}, {"find": {"strict": True, **more}})
    _, broken = await breaks_in(tmp_path)
    assert broken is not None
    assert (broken.cause, broken.name, broken.action, broken.owner) == ("tool", "find", "changed", "application")
    assert (broken.key, broken.old, broken.new) == ("strict", "false", "true")
    (change,) = await changes_in(tmp_path)
    assert (change.kind, change.name, change.action, change.owner) == ("tool", "find", "changed", "application")
    assert [(key.name, key.old, key.new) for key in change.keys] == [("strict", "false", "true")]
    async with open_log(f"sqlite:{tmp_path}/foreword.db", read_only=True) as log:
        assert [each.level for each in await rebuilt_in(log)] == ["wire", "wire"]


@EVERY
async def test_a_key_that_came_or_went_is_named(wire: Wire, tmp_path: Path) -> None:
    """What was not there has no value; of a tool that comes with its keys the tool is named, and no other."""
    plain, examples = {"find": {}, "order": {}}, {"find": {}, "order": {"examples": ["Emma"]}}
    record(tmp_path, wire, plain, examples, plain, {"first": {"strict": True}, **plain}, plain)
    told = [each and (each.name, each.action, each.key, each.old, each.new) for each in await breaks_in(tmp_path)]
    assert told[:3] == [
        None,
        ("order", "changed", "examples", "", '["Emma"]'),
        ("order", "changed", "examples", '["Emma"]', ""),
    ]
    assert [each and each[:3] for each in told[3:]] == [("first", "added", None), ("first", "removed", None)]


@EVERY
async def test_keys_hold_until_they_change(wire: Wire, tmp_path: Path) -> None:
    """They are noted once, and each later request has them."""
    strict: Tools = {"find": {"strict": True}}
    record(tmp_path, wire, strict, strict, strict)
    assert await breaks_in(tmp_path) == [None] * 3
    async with open_log(f"sqlite:{tmp_path}/foreword.db", read_only=True) as log:
        told = [subject.tools[0].extras async for subject in await subjects(log, "last")]
        events = [each.event async for each in await log.events((await log.sessions())[0].id)]
    assert told == [{"strict": True}] * 3
    assert [getattr(event, "name", None) for event in events].count("recorder/tools") == 1


async def test_a_session_that_goes_on_tells_what_its_tools_no_longer_carry(tmp_path: Path) -> None:
    """A recorder that takes up a conversation notes anew what the tools of its requests carry, also if it is nothing."""
    for strict in (True, None):
        await ask(TestModel(call_tools=[]), tmp_path, strict=strict)
    (change,) = await changes_in(tmp_path)
    assert [(key.name, key.old, key.new) for key in change.keys] == [("strict", "true", "")]


async def test_marks_for_the_cache_are_no_change(tmp_path: Path) -> None:
    """Where a server is told to keep a beginning is no part of what it keeps."""
    mark = {"cache_control": {"type": "ephemeral"}}
    record(tmp_path, MESSAGES, {"find": mark, "order": {}}, {"find": {}, "order": mark})
    assert await breaks_in(tmp_path) == [None, None]
    assert await changes_in(tmp_path) == ()


async def test_a_providers_own_tool_is_told_whole(tmp_path: Path) -> None:
    """It has no schema, and all that it says is compared as if it were one."""
    body = body_of(MESSAGES, {})
    with (
        RecordingServer(otherwise=MESSAGES.answer("Yes.", stream=False)) as server,
        Recorder(f"sqlite:{tmp_path}/foreword.db") as recorder,
        httpx2.Client(base_url=server.url) as client,
    ):
        recorder.attach(client, provider="anthropic")
        for uses in (2, 3):
            search = {"type": "web_search_20250305", "name": "web_search", "max_uses": uses}
            client.post(PATHS[MESSAGES], json={**body, "tools": [search]})
    _, broken = await breaks_in(tmp_path)
    assert broken is not None
    assert (broken.name, broken.key, broken.old, broken.new) == ("web_search", None, "2", "3")


@pytest.mark.parametrize("wire", [CHAT, RESPONSES, None], ids=["openai-chat", "openai-responses", "no-bytes"])
async def test_owners_are_those_that_the_framework_tells(wire: Wire | None, tmp_path: Path) -> None:
    """Of an agent of Pydantic AI, whether its bytes are seen or not."""
    with RecordingServer(otherwise=(wire or CHAT).answer("On shelf 4.", stream=False)) as server:
        for strict in (False, True):
            model = TestModel(call_tools=[]) if wire is None else model_of(wire, server)
            await ask(model, tmp_path, strict=strict)
    changed = [change for change in await changes_in(tmp_path) if change.kind == "tool"]
    assert [(change.name, change.owner) for change in changed] == [("find", "clerk")]
    assert changed[0].keys[0].name == "strict"
    assert changed[0].keys[0].new == "true"


@EVERY
async def test_it_is_found_and_it_can_be_erased(wire: Wire, tmp_path: Path) -> None:
    """A text in such a key is found, in the first request that has it; once erased, nothing of it is left, and told."""
    record(tmp_path, wire, {"find": {}}, {"find": {"examples": ["Emma Woodhouse"]}})
    async with open_log(f"sqlite:{tmp_path}/foreword.db") as log:
        found = await find_steps(log, text="Emma Woodhouse")
        assert [(each.location.number, each.occurrences[0].name) for each in found] == [(2, "find")]
        await log.erase(match="Emma Woodhouse")
        assert (await verify(log)).intact
        told = [subject async for subject in await subjects(log, "last")]
    assert [each.unstored for each in told] == [(), ("what tools carry beside their schemas",)]
    assert b"Woodhouse" not in stored_in(tmp_path)


@pytest.mark.slow
async def test_the_commands_name_it(tmp_path: Path) -> None:
    """`cache`, `diff` and `explain` say it in one line each."""
    record(tmp_path, CHAT, {"find": {"strict": False}}, {"find": {"strict": True}})
    said = "tool find (application), key strict false → true"
    assert said in foreword("cache", "last", folder=tmp_path)
    diff = foreword("diff", "last", folder=tmp_path)
    assert "~ tool find of application changed, key strict false → true" in diff
    assert f"broken by {said}" in diff
    assert "| changed, `key strict false → true` |" in foreword("diff", "last", "--github", folder=tmp_path)
    explained = foreword("explain", "last", '"strict": true', folder=tmp_path)
    assert "Tool find" in explained
    assert "application" in explained
    assert "@2/1" in explained.partition("first seen")[2]
