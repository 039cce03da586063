"""The stable head of a header, and what an attempt wrote to a provider's cache: kept where there is something to keep."""

from dataclasses import replace

import pytest
from tests.session.support import HEADER, Stores, ask, end

from foreword import SystemPrompt
from foreword.session import HeaderWritten, RequestEnded, RequestHeader
from foreword.session.rebuild import rebuild
from foreword.session.verify import verify
from foreword.wire.chunks import Usage

pytestmark = pytest.mark.anyio


async def test_it_comes_back(stores: Stores) -> None:
    """It is part of the header: it is rebuilt with it, also after a restart, and a change of it alone is a change."""
    changed = replace(HEADER, stable_head=5)
    assert changed != HEADER
    assert changed.differs_in(HEADER) == ("sections",)
    async with stores.log() as log:
        session = await log.create("clerk")
        for header in (HEADER, changed, changed):
            ask(session, "Hi.", header)
            session.append(RequestEnded(session.turn, 1, 1, "stop", Usage(9, 1, 5, 3)))
            end(session)
        written = [each.event.reason for each in session.events if isinstance(each.event, HeaderWritten)]
        assert written == ["initial", "change"]
        await session.flush()
    async with stores.log() as log:
        rebuilt = [await rebuild(log, f"clerk@{step}") for step in (1, 2, 3)]
        assert [each.header.stable_head for each in rebuilt] == [0, 5, 5]
        assert [each.request.stable_head for each in rebuilt] == [0, 5, 5]
        outcome = rebuilt[0].outcome
        assert outcome is not None
        assert outcome.usage == Usage(9, 1, 5, 3)
        assert (await verify(log)).intact


async def test_it_is_no_part_of_the_canonical_bytes(stores: Stores) -> None:
    """What a model is told is the same with and without it."""
    told = [replace(HEADER, stable_head=head).request(()).canonical() for head in (0, 5)]
    assert told[0] == told[1]


@pytest.mark.parametrize("head", [-1, len(HEADER.system) + 1])
async def test_one_that_is_none(stores: Stores, head: int) -> None:
    """A head that is longer than the text, or negative, is refused when it is written."""
    async with stores.log() as log:
        session = await log.create()
        with pytest.raises(Exception, match="stable head"):
            ask(session, "Hi.", replace(HEADER, stable_head=head))


def test_a_rendering_says_it() -> None:
    """The header of a rendering has the rendering's."""
    prompt = SystemPrompt(include_harness_identity=False)
    prompt.section("a", "A", order=1)
    prompt.section("b", lambda: "B", order=2)
    header = RequestHeader.of(prompt.render_sync(), HEADER.config)
    assert header.system[: header.stable_head] == "A"
