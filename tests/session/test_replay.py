"""Small case 27 from practice: what was sent in a past step can be had again, to the byte, or it is said what is wrong."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from tests.session.support import SEARCH, Shelf, Stores, answer, attempt, header_of

from foreword import SystemPrompt, ToolSchema
from foreword.session import DamagedLogError, StepEnd, StepStart, TurnStart, UserSaid, rebuild, step_trace, verify
from foreword.wire.messages import UserMessage

pytestmark = pytest.mark.anyio


async def test_case_27_replay(stores: Stores) -> None:
    """Five steps with changes of persona, variable and tools: with all providers gone each is rebuilt as it was sent; a
    flipped byte is an error that names the entry; what did not change is stored once."""
    told = {"company": "Acme", "persona": "You are {{company}}'s clerk."}
    prompt = SystemPrompt()
    persona = prompt.section("clerk:persona", lambda: told["persona"], order=0)
    prompt.variable("company", lambda: told["company"])
    rules = [prompt.section(f"rules:{number}", f"Rule {number}.", order=20) for number in range(20)]
    search = prompt.tools([SEARCH])
    sent: list[bytes] = []
    async with stores.log() as log:
        session = await log.create("clerk")
        session.append(TurnStart(1))
        for number in range(1, 6):
            if number == 2:
                told["persona"] = "You are {{company}}'s poet."
            elif number == 3:
                told["company"] = "Apex"
            elif number == 4:
                search.close()
                prompt.tools([ToolSchema("buy", "Buys.", {"type": "object"})])
            rendering = prompt.render_sync()
            session.append(StepStart(1, number, step_trace(rendering, session.trace)))
            session.append(UserSaid(UserMessage(f"question {number}")))
            sent.append(attempt(session, header_of(rendering)))
            answer(session)
            session.append(StepEnd(1, number))
        await session.flush()
        shelf = await Shelf.of(log.store)
    for registration in (persona, *rules):
        registration.close()
    del prompt
    async with stores.log() as log:
        for number, canonical in enumerate(sent, 1):
            rebuilt = await rebuild(log, f"clerk@{number}")
            assert rebuilt.canonical == canonical
            assert hashlib.sha256(rebuilt.canonical).digest() == hashlib.sha256(canonical).digest()
        assert len({canonical.partition(b'"messages"')[0] for canonical in sent}) == 4

    texts = [blob.body for blob in shelf.kept_blobs.values() if (blob.body or b"").startswith(b"Rule ")]
    assert sorted(texts) == sorted(f"Rule {number}.".encode() for number in range(20))

    events = shelf.kept_events["clerk"]
    at = events[17]
    events[17] = replace(at, envelope=at.envelope[:30] + bytes([at.envelope[30] ^ 1]) + at.envelope[31:])
    with pytest.raises(DamagedLogError, match="at event 17") as caught:
        await rebuild(shelf.log(), "clerk@5")
    assert caught.value.seq == 17
    [report] = (await verify(shelf.log())).sessions
    assert report.fault is not None
    assert report.fault.seq == 17
    assert (await rebuild(shelf.log(), "clerk@1")).canonical == sent[0]  # what stands before it is whole
