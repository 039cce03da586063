"""The session whose prefix is measured: what Foreword's agent sends is what a careful hand would lay out."""

import pytest
from benchmarks.prefix import ours
from benchmarks.prefix.__main__ import common, measured
from benchmarks.prefix.by_hand import appended


@pytest.mark.slow
def test_fifty_steps_with_a_changing_fact_each() -> None:
    """System text and tools stay to the byte, and each step appends one snapshot; a prefix costs 0.98 at most."""
    requests = ours.requests()
    assert [request.sent() for request in requests] == [request.sent() for request in appended(changed_only=False)]
    assert len({(request.system, request.tools) for request in requests}) == 1
    assert measured(requests)["cost.index"] <= 0.98


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [(b"", b"", 0), (b"abc", b"abz", 2), (b"abc", b"abc", 3), (b"ab", b"abc", 2), (b"x", b"y", 0)],
)
def test_what_two_requests_begin_with_alike(one: bytes, other: bytes, alike: int) -> None:
    """The common prefix is counted in bytes, up to the end of the shorter one."""
    assert common(one, other) == alike
