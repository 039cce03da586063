"""The law of recorders: whatever an agent sends, in whatever order, each request comes back from the log as it was sent."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.integrations.support import CHAT, MESSAGES, RESPONSES, Wire, rebuilt_in
from tests.integrations.test_shapes import PATHS

from foreword.integrations.sdk import Recorder
from foreword.session import open_log, verify
from foreword.testing import MemoryStore

PATH_OF = {CHAT: "/v1/chat/completions", RESPONSES: "/v1/responses", MESSAGES: "/v1/messages"}
CALLS: list[list[tuple[str, str, str]]] = [[], [("a", "b", "{}")], [("1", "a", "{}"), ("2", "b", '{"x":1}')]]
LISTS = ("messages", "input")


def grown(body: dict[str, Any], by: dict[str, Any]) -> dict[str, Any]:
    """A body whose history goes on where that of another one ended, as that of an agent mostly does."""
    return {
        key: [*by[key], *value] if key in LISTS and isinstance(value, list) and isinstance(by.get(key), list) else value
        for key, value in body.items()
    }


@st.composite
def rows(draw: st.DrawFn, path: str) -> list[dict[str, Any]]:
    """The bodies that an agent sends one after the other: most go on, some begin anew, some take something back."""
    bodies: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 4))):
        body = draw(PATHS[path])
        bodies.append(grown(body, bodies[-1]) if bodies and draw(st.booleans()) else body)
    return bodies


@pytest.mark.parametrize("wire", PATH_OF, ids=lambda wire: wire.name)
@given(data=st.data())
def test_every_request_comes_back(wire: Wire, data: st.DataObject) -> None:
    """Bodies of any content, with answers that call tools or do not, are rebuilt to the byte; nothing is missed."""
    bodies = data.draw(rows(PATH_OF[wire]))
    answers = [data.draw(st.sampled_from(CALLS)) for _ in bodies]
    sent: list[bytes] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        calls = answers[len(sent)]
        sent.append(request.content)
        (told,) = wire.answer("Yes.", *calls, stream=False).pieces
        assert isinstance(told, bytes)
        return httpx2.Response(200, content=told, headers={"content-type": "application/json"})

    async def record() -> None:
        async with open_log(MemoryStore()) as log:
            with Recorder(log) as recorder, httpx2.Client(transport=httpx2.MockTransport(answer)) as client:
                recorder.attach(client)
                for body in bodies:
                    client.post(f"http://localhost{PATH_OF[wire]}", content=json.dumps(body).encode())
                assert recorder.faults == ()
            assert sorted(each.body or b"" for each in await rebuilt_in(log)) == sorted(sent)
            assert (await verify(log)).intact

    asyncio.run(record())
