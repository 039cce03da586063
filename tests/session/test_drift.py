"""Drift: which header a resumed session sends, by what was asked for when it was resumed."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from tests.session.support import HEADER, SEARCH, Stores, take_turn

from foreword import ToolSchema
from foreword.session import HeaderDriftError, RequestHeader
from foreword.wire.request import ModelConfig

pytestmark = pytest.mark.anyio

POET = replace(HEADER, sections=("You are a poet.", "Be brief.", "Rhyme."))
BUYER = replace(HEADER, tools=(replace(SEARCH, description="Finds more."), ToolSchema("buy", "Buys.", {})))
OTHER = replace(HEADER, config=ModelConfig("other", "m"))


@pytest.mark.parametrize(
    ("today", "parts", "told"),
    [
        (POET, ("sections",), r"section 1 \(recorded: 2 sections, today: 3\)"),
        (BUYER, ("tools",), "tool buy, search"),
        (OTHER, ("config",), r"the configuration \(openai:gpt-5, now other:m\)"),
    ],
)
async def test_policies(stores: Stores, today: RequestHeader, parts: tuple[str, ...], told: str) -> None:
    """Today's header, the recorded one, or an error that says what differs and what to do, and can be pickled."""
    async with stores.log() as log:
        session = await log.create("clerk")
        assert session.resumption.header(today) is today
        take_turn(session)
        await session.close()
        for policy in ("fresh", "recorded"):
            resumed = await log.resume("clerk", drift=policy)  # type: ignore[arg-type]
            assert resumed.resumption.header(today) == (today if policy == "fresh" else HEADER)
            take_turn(resumed, header=resumed.resumption.header(today))
            assert resumed.resumption.header(today) == (today if policy == "fresh" else HEADER)
            take_turn(resumed, header=HEADER)
            await resumed.close()
        resumed = await log.resume("clerk", drift="error")
        assert resumed.resumption.header(replace(HEADER, stable_head=3)).stable_head == 3  # the same to the model
        with pytest.raises(HeaderDriftError, match=told) as caught:
            resumed.resumption.header(today)
        assert caught.value.parts == parts
        assert (pickle.loads(pickle.dumps(caught.value)).args) == caught.value.args


async def test_a_recorded_header_that_was_erased(stores: Stores) -> None:
    """A header that cannot be had any more cannot go out again; one that lost nothing can."""
    async with stores.log() as log:
        session = await log.create("clerk")
        take_turn(session)
        await session.erase(match="clerk.")
        await session.close()
        resumed = await log.resume("clerk", drift="recorded")
        with pytest.raises(HeaderDriftError, match="section 1 of the recorded one is gone"):
            resumed.resumption.header(HEADER)
        await resumed.close()
        with pytest.raises(ValueError, match="'fresh', 'recorded', 'error'"):
            await log.resume("clerk", drift="no")  # type: ignore[arg-type]
