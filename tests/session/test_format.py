"""The bytes of the log, worked out here a second time from what the format says, with nothing of the library."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

import pytest
from tests.session.support import (
    HEADER,
    Clock,
    Shelf,
    Stores,
    ask,
    clerk,
    counted_entropy,
    header_of,
    snapshot,
    take_tool_turn,
    take_turn,
)

from foreword.session import (
    AssistantSaid,
    BodyDigest,
    HeaderWritten,
    Log,
    Note,
    RequestAttempted,
    RequestEnded,
    RequestHeader,
    Session,
    StepEnd,
    StepStart,
    ToolAnswered,
    ToolCalled,
    TurnEnd,
    TurnStart,
    UserSaid,
    open_log,
    step_trace,
)
from foreword.session.store import BlobRow
from foreword.testing.memory_store import MemoryStore
from foreword.wire.chunks import ModelFailure
from foreword.wire.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage

pytestmark = pytest.mark.anyio

SECRET = "swordfish"


def frame(data: bytes) -> bytes:
    return len(data).to_bytes(8, "big") + data


def b2(*parts: bytes) -> bytes:
    return blake2b(b"".join(map(frame, parts)), digest_size=32).digest()


async def rows_of(log: Log, session: Session) -> tuple[Shelf, list[dict[str, Any]]]:
    """All rows, and the envelopes of a session."""
    await session.flush()
    shelf = await Shelf.of(log.store)
    return shelf, [json.loads(event.envelope) for event in shelf.kept_events[session.id]]


async def test_the_chain(stores: Stores) -> None:
    """Each event's digest is taken over the one before and the envelope as stored; the first over a random genesis."""
    async with stores.log() as log:
        session, other = await log.create(), await log.create()
        take_turn(session)
        await other.flush()
        shelf, _ = await rows_of(log, session)
        row = await shelf.session(session.id)
        assert row is not None
        digest = row.genesis
        for event in shelf.kept_events[session.id]:
            digest = b2(b"fw1/event", digest, event.envelope)
            assert event.digest == digest
        assert (row.head, row.count) == (digest, len(session.events))
        assert session.head == digest.hex() == await session.flush()
        assert len({each.genesis for each in shelf.rows}) == 2


async def test_the_envelope(stores: Stores) -> None:
    """An envelope is compact UTF-8 JSON with its keys in one order; its data holds no content."""
    async with stores.log(Clock(41)) as log:
        session = await log.create("clerk")
        session.append(TurnStart(1))
        shelf, envelopes = await rows_of(log, session)
        told = b'{"v":1,"seq":1,"time":43,"epoch":1,"type":"turn/start","data":{"turn":1},"refs":{}}'
        assert shelf.kept_events["clerk"][1].envelope == told
        take_tool_turn_with_everything(session)
        shelf, envelopes = await rows_of(log, session)
        assert {tuple(each) for each in envelopes} == {("v", "seq", "time", "epoch", "type", "data", "refs")}
        assert {each["type"] for each in envelopes} == {
            "session/start", "turn/start", "turn/end", "step/start", "step/end", "user/message", "assistant/message",
            "tool/call", "tool/result", "request/header", "request/attempt", "request/outcome", "history/replaced",
            "note",
        }  # fmt: skip
        assert not any(SECRET.encode() in event.envelope for event in shelf.kept_events["clerk"])


def take_tool_turn_with_everything(session: Session) -> None:
    """A turn with an event of each type, all content of which is a secret."""
    call = ToolCall("call-1", "search", f'{{"id": "{SECRET}"}}')
    session.append(StepStart(1, 1))
    session.append(UserSaid(UserMessage(SECRET)))
    session.append(snapshot(f"it is {SECRET}", SECRET))
    session.append(HeaderWritten(HEADER, "initial"))
    session.append(RequestAttempted(1, 1, 1, BodyDigest.of("json", "1", SECRET.encode())))
    session.append(RequestEnded(1, 1, 1, "error", failure=ModelFailure(SECRET, "overloaded", 529, transient=True)))
    session.append(RequestAttempted(1, 1, 2))
    session.append(RequestEnded(1, 1, 2, "tool-calls"))
    session.append(AssistantSaid(1, 1, AssistantMessage(SECRET, (call,))))
    session.append(ToolCalled(1, 1, ToolCall("call-1", "search", SECRET)))
    session.append(ToolAnswered(1, 1, ToolMessage("call-1", "search", SECRET, is_error=True), "boom"))
    session.append(StepEnd(1, 1))
    session.append(TurnEnd(1, "error", SECRET, "boom"))
    session.append(Note("n", {SECRET: [SECRET]}))
    session.replace_history(0, 0, UserMessage(SECRET))


async def test_private_content_is_salted(stores: Stores) -> None:
    """All content but header and trace lies in blobs with a random salt each, whose digests are taken over both."""
    async with stores.log() as log:
        session = await log.create(labels={"ticket": SECRET})
        session.append(TurnStart(1))
        take_tool_turn_with_everything(session)
        session.append(UserSaid(UserMessage(SECRET)))
        shelf, envelopes = await rows_of(log, session)
        holding = [blob for blob in shelf.kept_blobs.values() if SECRET.encode() in (blob.body or b"")]
        assert len(holding) == 11
        for blob in holding:
            assert blob.salt is not None
            assert len(blob.salt) == 16
            assert blob.digest == b2(b"fw1/p", blob.salt, blob.body or b"")
        assert len({blob.salt for blob in holding}) == len(holding)
        said = [each["refs"]["message"] for each in envelopes if each["type"] == "user/message"]
        assert said[0] != said[2]  # the same text, not the same blob
        assert envelopes[0]["refs"].keys() == {"label/ticket"}


async def test_the_body_is_not_guessed(stores: Stores) -> None:
    """The digest of a request's body lies in a private blob; the envelope names the adapter, not what it sent."""
    async with stores.log() as log:
        session = await log.create()
        session.append(TurnStart(1))
        take_tool_turn_with_everything(session)
        shelf, envelopes = await rows_of(log, session)
        first = next(each for each in envelopes if each["type"] == "request/attempt")
        blob = shelf.kept_blobs[bytes.fromhex(first["refs"]["body"])]
        assert (first["data"]["adapter"], first["data"]["version"]) == ("json", "1")
        assert blob.salt is not None
        assert blob.body == blake2b(frame(b"fw1/body") + SECRET.encode(), digest_size=32).digest()


async def test_shared_content_is_stored_once(stores: Stores) -> None:
    """Two sessions with the same prompt share its blobs, digests being taken over the bytes alone."""
    prompt, _ = clerk()
    rendering = prompt.render_sync()
    trace = step_trace(rendering)
    async with stores.log() as log:
        sizes: list[int] = []
        for _ in range(3):
            session = await log.create()
            session.append(TurnStart(1))
            session.append(StepStart(1, 1, trace))
            session.append(HeaderWritten(header_of(rendering), "initial"))
            await session.flush()
            shelf = await Shelf.of(log.store)
            sizes.append(len(shelf.kept_blobs))
        assert sizes[0] == sizes[1] == sizes[2] > 10
        assert all(blob.digest == b2(b"fw1/s", blob.body or b"") for blob in shelf.kept_blobs.values())
        assert BlobRow(b2(b"fw1/s", b"Be brief."), None, b"Be brief.") in shelf.kept_blobs.values()


def tree(leaves: list[bytes], blobs: dict[bytes, bytes]) -> bytes:
    """The root of a tree, as the format has it: at most five a node, filled from the left."""
    level = leaves
    while True:
        groups = [level[start : start + 5] for start in range(0, max(len(level), 1), 5)]
        level = []
        for group in groups:
            body = json.dumps({"k": [each.hex() for each in group]}, separators=(",", ":")).encode()
            level.append(b2(b"fw1/s", body))
            blobs[level[-1]] = body
        if len(level) == 1:
            return level[0]


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 25, 26, 126])
async def test_the_header_tree(stores: Stores, count: int) -> None:
    """A header is a root over the trees of section texts and of tools, in order, and the configuration."""
    header = RequestHeader(HEADER.config, tuple(f"section {number}" for number in range(count)), HEADER.tools)
    blobs: dict[bytes, bytes] = {}
    sections = tree([b2(b"fw1/s", text.encode()) for text in header.sections], blobs)
    tool = {"name": "search", "description": "Finds orders.", "parameters": dict(HEADER.tools[0].parameters)}
    config = {"provider": "openai", "model": "gpt-5", "settings": {"temperature": 0.5, "stop": ["END"]}}
    leaves = [b2(b"fw1/s", json.dumps(each, separators=(",", ":")).encode()) for each in (tool, config)]
    tools = tree([leaves[0]], blobs)
    root = {"k": [each.hex() for each in (sections, tools, leaves[1])], "n": [count, 1]}
    async with stores.log() as log:
        session = await log.create()
        ask(session, "x", header)
        shelf, envelopes = await rows_of(log, session)
        digest = next(each["refs"]["header"] for each in envelopes if each["type"] == "request/header")
        assert digest == b2(b"fw1/s", json.dumps(root, separators=(",", ":")).encode()).hex()
        assert all(shelf.kept_blobs[node].body == body for node, body in blobs.items())
        assert session.events[-1].event.header == bytes.fromhex(digest)  # type: ignore[union-attr]


async def test_the_history_is_rolling(stores: Stores) -> None:
    """The history's digest goes on from message to message, and anew from its root after a compaction."""
    empty = b2(b"fw1/h")
    async with stores.log() as log:
        session = await log.create()
        take_turn(session)
        session.replace_history(0, 0, UserMessage("sum"))
        ask(session, "more")
        _, envelopes = await rows_of(log, session)
        refs: list[bytes] = []
        for each in envelopes:
            message = bytes.fromhex(each["refs"].get("message", ""))
            if each["type"] in ("user/message", "assistant/message"):
                refs.append(message)
            elif each["type"] == "history/replaced":
                refs[each["data"]["first"] : each["data"]["last"] + 1] = [message]
            elif each["type"] == "request/attempt":
                history = empty
                for ref in refs:
                    history = b2(b"fw1/h", history, ref)
                assert each["data"]["history"] == history.hex()
                header = bytes.fromhex(each["data"]["header"])
                assert each["data"]["request"] == b2(b"fw1/request", header, history).hex()
        assert len(refs) == 3


async def test_raw_arguments_are_kept_as_text(stores: Stores) -> None:
    """A tool call's arguments are kept to the letter, JSON or not, and those of a call that runs are not kept twice."""
    raw = '{"b": 1.0, "a":  1e2, "a": "\\u00e9", broken \x07 é 🦜'
    async with stores.log() as log:
        session = await log.create()
        turn, step = ask(session)
        session.append(RequestEnded(turn, step, 1, "tool-calls"))
        session.append(AssistantSaid(turn, step, AssistantMessage("", (ToolCall("c", "search", raw),))))
        session.append(ToolCalled(turn, step, ToolCall("c", "search", raw)))
        shelf, envelopes = await rows_of(log, session)
        said, called = envelopes[-2:]
        assert called["data"] == {"turn": 1, "step": 1, "id": "c", "name": "search", "asked": 0}
        assert called["refs"] == said["refs"]
        assert [each.event for each in await session.read(5)] == [each.event for each in session.events[5:]]
        body = shelf.kept_blobs[bytes.fromhex(said["refs"]["message"])].body
        assert json.loads(body or b"")["tool_calls"][0]["arguments"] == raw


async def test_what_the_log_does_is_reproducible() -> None:
    """With a clock and an entropy of its own, a log writes the same bytes each time."""
    shelves: list[Shelf] = []
    for _ in range(2):
        store = MemoryStore()
        async with open_log(store, clock=Clock(), entropy=counted_entropy()) as log:
            session = await log.create(labels={"ticket": "4711", "tenant": "acme"})
            take_tool_turn(session)
            await session.fork("@1")
            await session.flush()
            shelves.append(await Shelf.of(store))
    assert shelves[0] == shelves[1]
