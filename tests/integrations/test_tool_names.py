"""What tools are called whose schema is not where a function's is: custom ones, the provider's own, functions of old."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.integrations.support import CHAT, MESSAGES, RESPONSES, Wire, foreword, rebuilt_in
from tests.support.recording_server import RecordingServer

from foreword.explain import subject_at
from foreword.integrations.sdk import Recorder
from foreword.session import open_log

pytestmark = pytest.mark.anyio

Tools = list[dict[str, Any]]

ASKED = {"model": "m", "max_tokens": 100}
HISTORY = [{"role": "user", "content": "Where is Emma?"}]
PATHS = {CHAT: "chat/completions", RESPONSES: "responses", MESSAGES: "messages"}
CUSTOM: Tools = [{"type": "custom", "custom": {"name": name, "description": "Find it."}} for name in ("alpha", "beta")]


def body_of(wire: Wire, **lists: Tools | None) -> dict[str, Any]:
    return {**ASKED, "input" if wire is RESPONSES else "messages": HISTORY, **lists}


async def names_in(folder: Path, wire: Wire, **lists: Tools | None) -> list[str]:
    """What the tools of a recorded request are called; its bytes must come back."""
    with (
        RecordingServer(otherwise=wire.answer("On shelf 4.", stream=False)) as server,
        Recorder(f"sqlite:{folder}/foreword.db") as recorder,
        httpx2.Client(base_url=server.url) as client,
    ):
        recorder.attach(client, provider="openai")
        client.post(PATHS[wire], json=body_of(wire, **lists))
        assert recorder.faults == ()
    async with open_log(f"sqlite:{folder}/foreword.db", read_only=True) as log:
        assert [each.body for each in await rebuilt_in(log)] == [request.body for request in server.requests]
        return [tool.name for tool in (await subject_at(log, "last")).tools]


@pytest.mark.parametrize(
    ("wire", "tools", "names"),
    [
        (CHAT, CUSTOM, ["alpha", "beta"]),
        (RESPONSES, [{"type": "custom", "name": "alpha"}, {"type": "custom", "name": "beta"}], ["alpha", "beta"]),
        (CHAT, [{"type": "function", "function": {"name": "ping"}}], ["ping"]),  # without parameters
        (RESPONSES, [{"type": "web_search"}, {"type": "file_search", "vector_store_ids": []}], None),
        (RESPONSES, [{"type": "mcp", "server_label": name} for name in ("a", "b")], ["mcp:a", "mcp:b"]),
        (MESSAGES, [{"type": "web_search_20250305", "name": "web_search"}], ["web_search"]),
        (MESSAGES, [{"type": "mcp_toolset", "mcp_server_name": "a"}], ["mcp_toolset:a"]),
    ],
    ids=["custom", "custom-flat", "bare", "own", "servers", "own-named", "toolset"],
)
async def test_a_tool_is_called_as_it_says(wire: Wire, tools: Tools, names: list[str] | None, tmp_path: Path) -> None:
    """Wherever its name stands; one without a name is called by its type."""
    assert await names_in(tmp_path, wire, tools=tools) == (names or [tool["type"] for tool in tools])


async def test_functions_of_old_are_tools(tmp_path: Path) -> None:
    """They stand behind the tools, if there are some, each with its schema."""
    functions = [{"name": "find", "parameters": {"type": "object"}}, {"name": "order", "description": "Order it."}]
    assert await names_in(tmp_path, CHAT, functions=functions, tools=CUSTOM) == ["alpha", "beta", "find", "order"]
    async with open_log(f"sqlite:{tmp_path}/foreword.db", read_only=True) as log:
        (recorded,) = await rebuilt_in(log)
    request = recorded.request
    assert request.tools[2].parameters == {"type": "object"}
    assert "functions" not in request.config.settings


@pytest.mark.parametrize("wire", PATHS, ids=lambda wire: wire.name)
async def test_no_list_of_tools_is_none(wire: Wire, tmp_path: Path) -> None:
    """Null in its place is as if there were none."""
    assert await names_in(tmp_path, wire, tools=None) == []


@pytest.mark.slow
async def test_custom_tools_are_not_taken_for_one(tmp_path: Path) -> None:
    """`show --tools` lists each, and `lint` finds none that is sent twice."""
    await names_in(tmp_path, CHAT, tools=CUSTOM)
    shown = foreword("show", "last", "--tools", folder=tmp_path)
    assert "alpha" in shown
    assert "beta" in shown
    assert "FW306" not in foreword("lint", "last", folder=tmp_path)
