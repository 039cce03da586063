"""The digest of a body, which a session takes faster from the body before it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.session.support import Stores, take_turn

from foreword.session.bodies import CHUNK, Bodies
from foreword.session.digests import body_digest

SIZES = st.integers(0, 3 * CHUNK) | st.sampled_from([CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK])
PIECES = st.builds(lambda byte, size: bytes([byte]) * size, st.integers(0, 3), SIZES | st.integers(0, 9))


@st.composite
def edits(draw: st.DrawFn) -> list[bytes]:
    """Bodies of which each is the last one with a stretch of it replaced: by more, by less, by as much, by nothing."""
    bodies = [b"".join(draw(st.lists(PIECES, max_size=4)))]
    for _ in range(draw(st.integers(1, 6))):
        last = bodies[-1]
        start = draw(st.integers(0, len(last)))
        stop = draw(st.integers(start, len(last)))
        bodies.append(last[:start] + draw(PIECES) + last[stop:])
    return bodies


@given(bodies=edits(), forgotten=st.sets(st.integers(0, 6)))
def test_a_digest_does_not_depend_on_the_body_before(bodies: list[bytes], forgotten: set[int]) -> None:
    """Whatever body came before, and whether it was forgotten since, a body has the digest that it has alone."""
    hashing = Bodies()
    for number, body in enumerate(bodies):
        assert hashing.digest(body) == body_digest(body)
        if number in forgotten:
            hashing.forget()


def test_only_the_last_body_is_kept() -> None:
    """What is kept is not more than the last body, however long those before it were."""
    hashing = Bodies()
    for size in (100 * CHUNK, 3 * CHUNK, 10):
        hashing.digest(bytes(size))
        assert hashing.kept <= size


def test_what_is_forgotten_is_not_kept() -> None:
    """Of a body that is forgotten nothing stays."""
    hashing = Bodies()
    hashing.digest(bytes(5 * CHUNK))
    assert hashing.kept
    hashing.forget()
    assert not hashing.kept


@pytest.mark.anyio
async def test_an_erasure_reaches_the_last_body(stores: Stores) -> None:
    """A session keeps nothing of a body in which was what is erased."""
    async with stores.log() as log:
        session = await log.create()
        take_turn(session, "My password is hunter2.")
        session.body_digest("json", "1", b"hunter2" * CHUNK)
        await session.erase(match="hunter2")
        assert session._bodies.kept == 0
