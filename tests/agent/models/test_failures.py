"""What an HTTP answer stands for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.agent.models.failures import Answered, classify, retry_after
from foreword.wire.chunks import FAILURE_CODES


@pytest.mark.parametrize("status", [408, 409, 429, *range(500, 530)])
def test_what_may_be_tried_again(status: int) -> None:
    """Timeouts, conflicts, rate limits and every fault of the server are transient."""
    assert classify(Answered("x", status)).transient


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 413, 422, 300, 302])
def test_what_would_fail_again(status: int) -> None:
    """Faults of the request are not."""
    assert not classify(Answered("x", status)).transient


@pytest.mark.parametrize(
    ("status", "words", "code"),
    [
        (429, ("insufficient_quota", "insufficient_quota"), "quota"),
        (400, ("context_length_exceeded", "invalid_request_error"), "context_length"),
        (401, ("invalid_request_error",), "authentication"),
        (404, ("model_not_found", "invalid_request_error"), "not_found"),
        (503, ("server_error",), "overloaded"),
        (None, ("overloaded_error",), "overloaded"),
        (None, ("502",), "server_error"),
        (None, ("401",), "authentication"),
        (None, ("9" * 5000, "503"), "overloaded"),
        (None, ("9" * 5000,), "server_error"),
        (None, ("invalid_request_error",), "invalid_request"),
        (None, (), "server_error"),
    ],
)
def test_the_more_telling_word_counts(status: int | None, words: tuple[str, ...], code: str) -> None:
    """A provider's own word counts where it says more than the status, and in a stream it may stand for one."""
    assert classify(Answered("x", status, words)).code == code


@pytest.mark.parametrize(("said", "transient"), [("true", True), ("false", False), ("maybe", True), ("", True)])
def test_the_provider_decides(said: str, transient: bool) -> None:
    """A provider that says whether to try again is believed."""
    assert classify(Answered("x", 500, headers={"x-should-retry": said})).transient is transient


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "3"}, 3.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:27:00 GMT"}, 0.0),
        ({"retry-after": "Fri, 31 Dec 99999999999999 23:59:59 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds or a date; what is none of them is as if it were not there."""
    assert retry_after(headers, now=1445412480.0) == seconds


@given(
    st.one_of(st.none(), st.integers(100, 999)),
    st.lists(st.text(max_size=5), max_size=2).map(tuple),
    st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "x-should-retry"]), st.text(max_size=8)),
    st.text(),
)
def test_every_answer_is_a_failure(
    status: int | None, words: tuple[str, ...], headers: dict[str, str], message: str
) -> None:
    """Whatever is answered, there is a failure with a known code and some words, and no negative wait."""
    failure = classify(Answered(message, status, words, headers))
    assert failure.code in FAILURE_CODES
    assert failure.message
    assert failure.status == status
    assert failure.retry_after is None or failure.retry_after >= 0
