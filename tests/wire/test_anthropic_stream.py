"""The answer of a stream in Anthropic's messages format, read without a network; see also `test_answer_streams`."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.anthropic_events import arguments, block, call, delta, end, start, stop, text
from tests.support.strategies import json_values

from foreword.wire.anthropic_stream import AnswerReader, MalformedAnswerError
from foreword.wire.chunks import Chunk, Finish, TextChunk, ToolCallChunk, Usage
from foreword.wire.profiles import ANTHROPIC


def answer(*events: object) -> list[Chunk]:
    """What a stream of events is read as."""
    reader = AnswerReader(ANTHROPIC)
    return [*(chunk for event in events for chunk in reader.read(event)), reader.finish()]


def finish(*events: object) -> Finish:
    last = answer(*events)[-1]
    assert isinstance(last, Finish)
    return last


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([call(0, "c", "t"), arguments(0, '{"a"'), arguments(0, ": 1}"), end()], '{"a": 1}'),
        ([call(0, "c", "t"), arguments(0, ""), end()], "{}"),
        ([call(0, "c", "t"), end()], "{}"),
        ([call(0, "c", "t")], "{}"),
        ([call(0, "c", "t", {"a": 1}), end()], '{"a":1}'),
        ([call(0, "c", "t", {"a": 1}), arguments(0, '{"b": 2}'), end()], '{"b": 2}'),
        ([block(0, "tool_use", id="c", name="t"), end()], "{}"),
    ],
)
def test_ways_to_tell_arguments(events: list[Any], told: str) -> None:
    """Arguments come in pieces, or with the beginning of the call; a call without any has an empty object."""
    *chunks, last = answer(*events, stop("tool_use"))
    assert "".join(each.arguments for each in chunks if isinstance(each, ToolCallChunk)) == told
    assert isinstance(last, Finish)
    assert last.kind == "tool-calls"


def test_a_call_that_is_cut() -> None:
    """Arguments that the limit cut off stay as far as they came."""
    cut = answer(call(0, "c", "t"), arguments(0, '{"a'), end(), stop("max_tokens"))
    assert cut == [
        ToolCallChunk(0, "c", "t", ""),
        ToolCallChunk(0, "c", "t", '{"a'),
        Finish("max-tokens", None, raw_reason="max_tokens"),
    ]


def test_thoughts_are_no_answer() -> None:
    """Thoughts, signatures, citations and whatever is not known are passed over, and so are pings."""
    events = [
        start(),
        {"type": "ping"},
        block(0, "thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="Hm."),
        delta(0, "signature_delta", signature="xyz"),
        end(),
        block(1, "redacted_thinking", data="xyz"),
        end(1),
        {"type": "of tomorrow", "index": "x"},
        block(2, "of tomorrow", text="b"),
        delta(2, "citations_delta", citation={}),
        text("a", 2),
        end(2),
        stop(),
    ]
    assert answer(*events) == [TextChunk("a"), Finish("stop", Usage(12, 3), raw_reason="end_turn")]


@pytest.mark.parametrize("kind", ["server_tool_use", "mcp_tool_use", "of tomorrow"])
def test_calls_of_the_servers_own_tools(kind: str) -> None:
    """A tool that the server itself calls is none of ours: its arguments are passed over, and do not spoil the answer."""
    events = [
        start(),
        block(0, kind, id="s", name="search", input={}),
        arguments(0, '{"query": '),
        arguments(0, '"a"}'),
        end(),
        block(1, "of tomorrow_result", tool_use_id="s", content=[]),
        end(1),
        call(2, "c", "t"),
        arguments(2, "{}"),
        end(2),
        text("a", 3),
        stop(),
    ]
    assert answer(*events)[:-1] == [ToolCallChunk(0, "c", "t", ""), ToolCallChunk(0, "c", "t", "{}"), TextChunk("a")]


def test_an_index_that_is_used_again() -> None:
    """A block that begins anew at the index of one that was passed over is read."""
    events = [block(0, "of tomorrow"), arguments(0, "["), end(), call(0, "c", "t"), arguments(0, "{}"), end(), stop()]
    assert ToolCallChunk(0, "c", "t", "{}") in answer(*events)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "max-tokens"),
        ("model_context_window_exceeded", "max-tokens"),
    ],
)
def test_how_an_answer_ends(reason: str, kind: str) -> None:
    """The provider's words for the end are read as ours, and kept."""
    assert finish(text("a"), stop(reason)) == Finish(kind, raw_reason=reason)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("events", "code", "transient"),
    [
        ([stop("refusal")], "refusal", False),
        ([stop("of tomorrow")], "malformed_response", False),
        ([stop("tool_use")], "malformed_response", True),
        ([text("a"), stop(None)], "stream_cut", True),
        ([text("a"), end()], "stream_cut", True),
        ([], "stream_cut", True),
    ],
)
def test_an_end_that_is_a_failure(events: list[Any], code: str, transient: bool) -> None:
    """Ends that are no answer are failures, with the usage if it was told."""
    last = finish(start(input_tokens=5, output_tokens=1), *events)
    assert last.kind == "error"
    assert last.usage is not None
    assert last.usage.input_tokens == 5
    assert last.failure is not None
    assert (last.failure.code, last.failure.transient) == (code, transient)


def test_a_refusal_is_told() -> None:
    """What the provider says of a refusal is the failure's message."""
    details = {"type": "refusal", "category": "cyber", "explanation": "It could \ud83d harm."}
    failure = finish(stop("refusal", stop_details=details)).failure
    assert failure is not None
    assert failure.message == "the model refuses: It could \ufffd harm."


@pytest.mark.parametrize(
    ("first", "last", "cost"),
    [
        ({"input_tokens": 9, "output_tokens": 1}, 2, Usage(9, 2)),
        ({"input_tokens": 9, "output_tokens": 1}, None, Usage(9, 1)),
        (
            {"input_tokens": 9, "output_tokens": 1, "cache_read_input_tokens": 80, "cache_creation_input_tokens": 11},
            2,
            Usage(100, 2, 80, 11),
        ),
        (
            {"input_tokens": 9, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": None},
            2,
            Usage(9, 2, 0),
        ),
        ({"input_tokens": 2**53 - 1, "output_tokens": 1, "cache_read_input_tokens": 1}, 2, None),
        ({"input_tokens": 10**30, "output_tokens": 1}, 2, None),
        ({"input_tokens": True, "output_tokens": 1}, 2, None),
        ({"input_tokens": "many", "output_tokens": 1}, 2, None),
        ({"input_tokens": 9}, None, None),
    ],
)
def test_usage(first: dict[str, Any], last: int | None, cost: Usage | None) -> None:
    """The input counts whole: what was read from the cache and written to it are parts of it. The last word counts."""
    assert finish(start(**first), stop(output=last)).usage == cost


def test_usage_that_is_told_late() -> None:
    """What the end says of the input replaces what the beginning said."""
    late = stop()
    late["usage"] = {"input_tokens": 7, "output_tokens": 2, "cache_read_input_tokens": 3}
    assert finish(start(), late).usage == Usage(10, 2, 3)
    late["usage"] = None
    assert finish(start(), late).usage == Usage(12, 1)


# What is not in the format


@pytest.mark.parametrize(
    "event",
    [
        [],
        None,
        {"type": "message_start"},
        {"type": "content_block_start", "index": 0},
        {"type": "content_block_start", "content_block": {"type": "text"}},
        {"type": "content_block_delta", "index": 0, "delta": []},
        {"type": "content_block_delta", "index": "0", "delta": {}},
        {"type": "content_block_stop", "index": None},
        {"type": "message_delta"},
        text(7),  # type: ignore[arg-type]
        call(0, "", "t"),
        call(0, "c", ""),
        call(0, "c", "t", [1]),
        call(0, "c", 5),  # type: ignore[arg-type]
        arguments(0, "{"),
        stop(5),  # type: ignore[arg-type]
    ],
)
def test_what_is_malformed(event: object) -> None:
    """What cannot be understood is an error, never a guess."""
    with pytest.raises(MalformedAnswerError):
        answer(event)


def test_two_calls_at_one_index() -> None:
    """Pieces of two calls at one index could not be told apart."""
    with pytest.raises(MalformedAnswerError, match="same index"):
        answer(call(0, "c", "t"), call(0, "d", "u"))


kinds = st.sampled_from(
    ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta"]
)
fields = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_use", "text_delta", "input_json_delta"])},
    optional=dict.fromkeys(("text", "id", "name", "input", "partial_json", "stop_reason"), json_values),
)
spoilt = st.one_of(
    json_values,
    st.fixed_dictionaries(
        {"type": kinds},
        optional={
            "index": st.one_of(st.just(0), json_values),
            "message": json_values,
            "content_block": st.one_of(fields, json_values),
            "delta": st.one_of(fields, json_values),
            "usage": json_values,
        },
    ),
)


@given(st.lists(spoilt, max_size=3))
def test_nothing_else_is_raised(events: list[Any]) -> None:
    """Whatever JSON arrives, it is read or is a `MalformedAnswerError`; what is read can be logged."""
    try:
        chunks = answer(call(1, "c", "t"), *events)
    except MalformedAnswerError:
        return
    assert isinstance(chunks[-1], Finish)
    for chunk in chunks:
        repr(chunk).encode()
