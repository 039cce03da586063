"""Rebuilding: the request of any attempt, byte for byte as it was sent, from the log alone."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from tests.session.support import (
    CONFIG,
    HEADER,
    SEARCH,
    JsonAdapter,
    Shelf,
    Stores,
    answer,
    ask,
    attempt,
    body,
    clerk,
    end,
    header_of,
    snapshot,
    take_tool_turn,
    take_turn,
)

from foreword import SystemPrompt, ToolSchema
from foreword.session import (
    BodyDigest,
    DamagedLogError,
    ErasedContentError,
    HeaderWritten,
    Log,
    RequestAttempted,
    RequestEnded,
    RequestHeader,
    RequestMismatchError,
    Session,
    StepEnd,
    StepStart,
    Timings,
    TurnStart,
    UserSaid,
    rebuild,
    step_trace,
    verify_request,
)
from foreword.session.events import ContentErased
from foreword.wire.chunks import ModelFailure, Usage
from foreword.wire.messages import AssistantMessage, UserMessage
from foreword.wire.request import ModelConfig

pytestmark = pytest.mark.anyio


class Sent:
    """Takes part in a conversation and keeps what was sent."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.requests: list[tuple[int, int, int, bytes]] = []

    def attempt(self, header: RequestHeader, number: int = 1) -> None:
        sent = attempt(self.session, header, number)
        self.requests.append((self.session.turn, self.session.step, number, sent))

    def turn(self, text: str, header: RequestHeader = HEADER, failures: int = 0) -> None:
        session = self.session
        session.append(TurnStart(session.turn + 1))
        session.append(StepStart(session.turn, 1))
        session.append(UserSaid(UserMessage(text)))
        for number in range(1, failures + 1):
            self.attempt(header, number)
            failure = ModelFailure("try later", "overloaded", 529, transient=True)
            session.append(RequestEnded(session.turn, 1, number, "error", failure=failure))
        self.attempt(header, failures + 1)
        session.append(RequestEnded(session.turn, 1, failures + 1, "stop", Usage(1, 2), timings=Timings(10)))

    def close(self, text: str = "ok") -> None:
        from foreword.session import AssistantSaid

        self.session.append(AssistantSaid(self.session.turn, self.session.step, AssistantMessage(text)))
        end(self.session)


async def check(log: Log, session: Session, sent: Sent) -> None:
    """Each attempt is rebuilt as it was sent."""
    await session.flush()
    for turn, step, number, canonical in sent.requests:
        rebuilt = await rebuild(log, f"{session.id}@{turn}.{step}/{number}")
        assert rebuilt.canonical == canonical
        assert rebuilt.request.canonical() == canonical


async def test_every_attempt_is_rebuilt(stores: Stores) -> None:
    """Changes of persona, tools and model, retries, a compaction between attempts, a fork and a restart: each attempt
    comes out byte for byte as it was sent."""
    other = replace(HEADER, sections=("You are a poet.", *HEADER.sections[1:]))
    fewer = replace(HEADER, tools=())
    switched = replace(HEADER, config=ModelConfig("other", "m", {"max_tokens": 5, "b": {"z": 1, "a": [1.5, None]}}))
    async with stores.log() as log:
        session = await log.create("clerk")
        sent = Sent(session)
        sent.turn("one")
        sent.close()
        sent.turn("two", other, failures=2)
        sent.close("é\u2028\x7f\n\\")
        sent.turn("three", fewer)
        sent.session.append(RequestAttempted(3, 1, 2))
        sent.session.append(RequestEnded(3, 1, 2, "error"))
        session.replace_history(0, 2, UserMessage("summary"))
        sent.attempt(fewer, 3)
        session.append(RequestEnded(3, 1, 3, "stop"))
        sent.close()
        await check(log, session, sent)
        fork = await session.fork("@2")
        forked = Sent(fork)
        forked.requests = [each for each in sent.requests if each[0] <= 2]
        forked.turn("another three", switched)
        forked.close()
        await check(log, fork, forked)
        sent.turn("four", switched)
    async with stores.log() as log:
        resumed = await log.resume("clerk")
        sent.session = resumed
        sent.turn("five", HEADER)
        sent.close()
        await check(log, resumed, sent)
        assert len(sent.requests) == 8


async def test_the_keys_keep_their_order(stores: Stores) -> None:
    """Schemas and settings come out with their keys in the order that was sent; another order is another header."""
    tool = ToolSchema("t", "d", {"z": 1, "a": {"y": 1, "b": [{"d": 1, "c": 1.0}]}})
    turned = ToolSchema("t", "d", {"a": {"y": 1, "b": [{"d": 1, "c": 1.0}]}, "z": 1})
    header = RequestHeader(ModelConfig("p", "m", {"z": 1, "a": 2}), (), (tool,))
    assert tool == turned
    assert header != replace(header, tools=(turned,))
    assert header != replace(header, config=ModelConfig("p", "m", {"a": 2, "z": 1}))
    assert header == replace(header, tools=(replace(tool),))
    assert hash(header) == hash(replace(header, tools=(replace(tool),)))
    async with stores.log() as log:
        session = await log.create()
        sent = Sent(session)
        sent.turn("x", header)
        sent.close()
        sent.turn("y", replace(header, tools=(turned,)))
        assert [each.event.reason for each in session.events if isinstance(each.event, HeaderWritten)] == [
            "initial",
            "change",
        ]
        await check(log, session, sent)
        assert b'"system":""' in sent.requests[0][3]


async def test_all_plugins_are_gone(stores: Stores) -> None:
    """A prompt of the past, its tools and what explains it, come from the log when nobody contributes to it any more."""
    prompt, _ = clerk()
    rendering = prompt.render_sync()
    async with stores.log() as log:
        session = await log.create("clerk")
        session.append(TurnStart(1))
        session.append(StepStart(1, 1, step_trace(rendering)))
        session.append(UserSaid(UserMessage("hi")))
        session.append(snapshot(rendering.snapshot, rendering.snapshot.partition("\n\n")[2]))
        canonical = attempt(session, header_of(rendering))
        await session.flush()
    del prompt
    async with stores.log() as log:
        rebuilt = await rebuild(log, "clerk")
        assert rebuilt.canonical == canonical
        assert rebuilt.header == header_of(rendering)
        explained = rebuilt.explanation
        assert explained is not None
        assert explained.spans.text == rendering.text
        assert explained.snapshot_spans.text == rendering.snapshot


async def test_what_was_recorded_of_an_attempt(stores: Stores) -> None:
    """An attempt comes with its digests and its outcome; without an outcome it was perhaps sent."""
    async with stores.log() as log:
        session = await log.create("clerk")
        ask(session)
        await session.flush()
        assert (await rebuild(log, "clerk")).perhaps_sent
        failure = ModelFailure("try later", "overloaded", 529, transient=True, retry_after=1.5)
        session.append(RequestEnded(1, 1, 1, "error", failure=failure))
        attempt(session, number=2)
        answer_second = RequestEnded(1, 1, 2, "stop", Usage(120, 30, 100), timings=Timings(900, 210))
        session.append(answer_second)
        attempt(session, number=3)
        await session.flush()
        outcomes = [(await rebuild(log, f"clerk/{number}")).outcome for number in (1, 2, 3)]
        assert outcomes == [RequestEnded(1, 1, 1, "error", failure=failure), answer_second, None]
        rebuilt = await rebuild(log, "clerk/2")
        assert not rebuilt.perhaps_sent
        assert rebuilt.attempted in [each.event for each in session.events]
        assert str(rebuilt.location) == "clerk@1/2"
    async with stores.log() as log:
        await log.resume("clerk")
        rebuilt = await rebuild(log, "clerk")
        assert rebuilt.perhaps_sent
        assert rebuilt.outcome is not None


async def test_the_body_under_its_version(stores: Stores) -> None:
    """An adapter of the recorded name and version makes the body again; any other, or another body, is told apart."""
    async with stores.log() as log:
        session = await log.create("clerk")
        ask(session)
        session.append(RequestEnded(1, 1, 1, "error"))
        session.append(RequestAttempted(1, 1, 2))
        await session.flush()
        rebuilt = await rebuild(log, "clerk/1", adapter=JsonAdapter())
        assert rebuilt.body == body(rebuilt.request)
        with pytest.raises(RequestMismatchError, match="made by adapter json 1, not json 2"):
            await rebuild(log, "clerk/1", adapter=JsonAdapter(version="2"))
        with pytest.raises(RequestMismatchError, match="not openai 1"):
            await rebuild(log, "clerk/1", adapter=JsonAdapter("openai"))
        with pytest.raises(RequestMismatchError, match="none was recorded"):
            await rebuild(log, "clerk/2", adapter=JsonAdapter())

        class Changed(JsonAdapter):
            def body(self, request: object) -> bytes:
                return b"another"

        with pytest.raises(RequestMismatchError, match=r"the body of clerk@1/1 .* other bytes") as caught:
            await rebuild(log, "clerk/1", adapter=Changed())
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("part", ["section", "message", "trace"])
async def test_a_damaged_part_is_named(stores: Stores, part: str) -> None:
    """A flipped byte in any part of a request is an error that names the event and the blob, never another request."""
    prompt, _ = clerk()
    rendering = prompt.render_sync()
    async with stores.log() as log:
        session = await log.create("clerk")
        session.append(TurnStart(1))
        session.append(StepStart(1, 1, step_trace(rendering)))
        session.append(UserSaid(UserMessage("a secret")))
        attempt(session, header_of(rendering))
        await session.flush()
        shelf = await Shelf.of(log.store)
    holds = {"section": (b"Be brief.", 4), "message": (b"a secret", 3), "trace": (b'"stages"', 2)}
    text, seq = holds[part]
    digest, blob = next((digest, blob) for digest, blob in shelf.kept_blobs.items() if text in (blob.body or b""))
    shelf.kept_blobs[digest] = replace(blob, body=(blob.body or b"").replace(text, text.swapcase()))
    with pytest.raises(DamagedLogError, match="does not match its digest") as caught:
        await rebuild(shelf.log(), "clerk")
    if part != "trace":  # that of a trace is told at the attempt
        assert caught.value.seq == seq
    assert caught.value.blob == digest.hex()
    del shelf.kept_blobs[digest]
    with pytest.raises(DamagedLogError, match="it is missing"):
        await rebuild(shelf.log(), "clerk")


async def test_erased_content(stores: Stores) -> None:
    """A content that an event says was erased is told to be so; one that is only empty is damage."""
    async with stores.log() as log:
        session = await log.create("clerk")
        take_turn(session)
        await session.flush()
        shelf = await Shelf.of(log.store)
        digest = next(digest for digest, blob in shelf.kept_blobs.items() if b"Why is" in (blob.body or b""))
        emptied = replace(shelf.kept_blobs[digest], salt=None, body=None)
        shelf.kept_blobs[digest] = emptied
        with pytest.raises(DamagedLogError, match="no event says that it was erased"):
            await rebuild(shelf.log(), "clerk")
        session._ledger.append(ContentErased((digest,)))  # what erasing will do
        await session.flush()
        shelf = await Shelf.of(log.store)
        shelf.kept_blobs[digest] = emptied
        with pytest.raises(ErasedContentError, match=r"event 3 .* was erased") as caught:
            await rebuild(shelf.log(), "clerk")
        assert (caught.value.seq, caught.value.blob) == (3, digest.hex())
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


# -- what is sent, against the log -------------------------------------------------------------------------------------


async def test_a_request_that_is_not_the_logs(stores: Stores) -> None:
    """What is about to be sent must follow from the log: system, tools, configuration and each message."""
    async with stores.log() as log:
        session = await log.create("clerk")
        request = HEADER.request((UserMessage("x"),))
        with pytest.raises(RequestMismatchError, match="no attempt"):
            verify_request(session, request)
        ask(session)
        request = HEADER.request(session.messages)
        verify_request(session, request)
        other = ToolSchema("search", SEARCH.description, dict(reversed(SEARCH.parameters.items())))
        wrong = {
            "the system of a request": replace(request, system="You are a thief."),
            "the tools of a request": replace(request, tools=(other,)),
            "the config of a request": replace(
                request, config=ModelConfig("openai", "gpt-5", {**CONFIG.settings, "x": 1})
            ),
            "message 0 of a request": replace(request, messages=(UserMessage("another"),)),
            "the messages of a request": replace(request, messages=(*request.messages, UserMessage("unlogged"))),
        }
        for where, sent in wrong.items():
            with pytest.raises(RequestMismatchError, match=where):
                verify_request(session, sent)
        answer(session)
        with pytest.raises(RequestMismatchError, match="no attempt"):
            verify_request(session, request)


# -- what explains a step ----------------------------------------------------------------------------------------------


async def explained(stores: Stores, prompt: SystemPrompt, said: str | None = None) -> None:
    """What the log tells of a rendering is what the rendering tells itself."""
    rendering = prompt.render_sync()
    async with stores.log() as log:
        session = await log.create()
        session.append(TurnStart(1))
        session.append(StepStart(1, 1, step_trace(rendering)))
        if rendering.snapshot:
            session.append(snapshot(rendering.snapshot if said is None else said))
        attempt(session, header_of(rendering))
        await session.flush()
        told = (await rebuild(log, session.id)).explanation
    assert told is not None
    assert told.trace == rendering.trace
    assert told.trace.to_json() == rendering.trace.to_json()
    assert [str(origin) for origin in told.tool_origins] == [str(origin) for origin in rendering.tool_origins]
    spans = [(told.spans, rendering.spans)]
    spans.append((told.snapshot_spans, rendering.snapshot_spans if said is None else type(told.spans)()))
    for recorded, live in spans:
        assert recorded.text == live.text
        assert [
            (span.start, span.end, span.kind, str(span.origin), span.section, span.variable, str(span.source))
            for span in recorded
        ] == [
            (span.start, span.end, span.kind, str(span.origin), span.section, span.variable, str(span.source))
            for span in live
        ]
        assert [span.origin.distribution for span in recorded] == [span.origin.distribution for span in live]


async def test_spans_origins_and_trace_are_the_live_ones(stores: Stores, tmp_path: object) -> None:
    """Variables, escapes, files, scopes, listeners, shadows, empty and left-out entries: the log tells them all."""
    from pathlib import Path

    folder = Path(str(tmp_path))
    (folder / "rules.md").write_text("First {{company}}.\n\nThen\n{{company}} and {{nothing}} more.\n")
    prompt = SystemPrompt(persona="You are {{company}}'s clerk.")
    prompt.owner("acme").variable("company", "Acme é🦜")
    prompt.variable("nothing", "")
    prompt.variable("silent", None)
    prompt.section("rules", folder / "rules.md", order=20)
    prompt.section("empty", "", order=30)
    prompt.section("sometimes", "Not now.", order=40, when=lambda context: False)
    prompt.section("last", "The end.", order=50)
    prompt.context("git", "main, clean", order=1)
    prompt.context("quiet", lambda: "", order=2)
    prompt.owner("shop").tools([SEARCH, ToolSchema("buy", "Buys.", {})])
    await explained(stores, prompt)
    scope = prompt.scope("agent")
    scope.section("last", "Another end.", order=50)
    scope.section("own", "For {{company}} only.", order=60)
    await explained(stores, scope)
    await explained(stores, scope, said="a listener wrote this")


async def test_a_prompt_of_nothing(stores: Stores) -> None:
    """A prompt without sections, contexts and tools is explained as well."""
    await explained(stores, SystemPrompt())


async def test_an_unchanged_trace_costs_nothing() -> None:
    """The trace of a step like the last is the last one; whatever differs makes another."""
    prompt, told = clerk()
    first = step_trace(prompt.render_sync())
    assert step_trace(prompt.render_sync(), first) is first
    told[0] = "You are a poet."
    second = step_trace(prompt.render_sync(), first)
    assert second is not first
    assert second == first  # a plain section's blobs do not depend on its text
    prompt.context("mood", lambda: "", order=5)
    assert step_trace(prompt.render_sync(), second) != second


async def test_the_trace_of_another_header(stores: Stores) -> None:
    """A trace that explains other sections than the header has is told, rather than explained wrongly."""
    prompt, _ = clerk()
    async with stores.log() as log:
        session = await log.create()
        session.append(TurnStart(1))
        session.append(StepStart(1, 1, step_trace(prompt.render_sync())))
        attempt(session, replace(HEADER, sections=("one",)))
        session.append(RequestEnded(1, 1, 1, "stop"))
        session.append(StepEnd(1, 1))
        await session.flush()
        with pytest.raises(DamagedLogError, match="explains 2 sections, and the header has 1"):
            await rebuild(log, session.id)


async def test_the_digest_of_a_body() -> None:
    """Equal bodies have equal digests, whichever adapter made them."""
    assert BodyDigest.of("a", "1", b"x").digest == BodyDigest.of("b", "2", b"x").digest
    assert BodyDigest.of("a", "1", b"x") != BodyDigest.of("a", "1", b"y")


async def test_rebuilding_a_tool_turn(stores: Stores) -> None:
    """The second step of a turn holds call and answer; a step counts over all turns."""
    async with stores.log() as log:
        session = await log.create("clerk")
        take_tool_turn(session)
        await session.flush()
        rebuilt = await rebuild(log, "clerk@2")
        assert rebuilt.request.messages == session.messages[:3]
