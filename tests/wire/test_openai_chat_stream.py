"""The answer of a chat-completions stream, read without a network; see also `test_answer_streams`."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.recording_server import call, chunk, text, usage
from tests.support.strategies import json_values

from foreword.wire.chunks import Chunk, Finish, TextChunk, ToolCallChunk, Usage
from foreword.wire.openai_chat_stream import AnswerReader, MalformedAnswerError
from foreword.wire.profiles import COMPATIBLE, DEEPSEEK, OPENAI, ChatProfile


def answer(*events: object, profile: ChatProfile = OPENAI) -> list[Chunk]:
    """What a stream of events is read as."""
    reader = AnswerReader(profile)
    return [*(chunk for event in events for chunk in reader.read(event)), reader.finish()]


def finish(*events: object, profile: ChatProfile = OPENAI) -> Finish:
    last = answer(*events, profile=profile)[-1]
    assert isinstance(last, Finish)
    return last


# How servers differ


@pytest.mark.parametrize(
    "events",
    [
        [call(0, "", id="c", name="t"), call(0, "{"), call(0, "}")],
        [call(0, "{", id="c", name="t"), call(0, "}", id="c", name="t")],
        [call(0, "{", id="c", name="t"), call(0, "}", id="")],
        [chunk({"tool_calls": [{"id": "c", "function": {"name": "t", "arguments": "{"}}]}),
         chunk({"tool_calls": [{"function": {"arguments": "}"}}]})],
        [call(0, "{", id="c", name="t"), chunk({"tool_calls": [{"function": {"arguments": "}"}}]})],
        [call(3, "{}", id="c", name="t")],
        [chunk({"content": None, "tool_calls": [{"index": 0, "id": "c", "function": {"name": "t", "arguments": None}}]}),
         call(0, "{}")],
    ],
    ids=["as documented", "id repeated", "empty id", "no index", "index told once", "first index not 0", "null arguments"],
)  # fmt: skip
def test_ways_to_tell_a_call(events: list[Any]) -> None:
    """What servers tell in different ways is the same call."""
    *chunks, last = answer(*events, chunk(finish="tool_calls"))
    assert {(each.index, each.id, each.name) for each in chunks if isinstance(each, ToolCallChunk)} == {(0, "c", "t")}
    assert "".join(each.arguments for each in chunks if isinstance(each, ToolCallChunk)) == "{}"
    assert isinstance(last, Finish)
    assert last.kind == "tool-calls"


def test_calls_that_share_an_index() -> None:
    """Another id at the same index is another call."""
    chunks = answer(call(0, "1", id="a", name="t"), call(0, "2", id="b", name="u"), chunk(finish="tool_calls"))
    assert chunks[:-1] == [ToolCallChunk(0, "a", "t", "1"), ToolCallChunk(1, "b", "u", "2")]


@pytest.mark.parametrize(
    ("reason", "kind", "profile"),
    [
        ("stop", "stop", OPENAI),
        ("length", "max-tokens", OPENAI),
        ("eos", "stop", COMPATIBLE),
        ("eos_token", "stop", COMPATIBLE),
    ],
)
def test_how_an_answer_ends(reason: str, kind: str, profile: ChatProfile) -> None:
    """The provider's words for the end are read as ours, and kept."""
    assert finish(text("a"), chunk(finish=reason), profile=profile) == Finish(kind, raw_reason=reason)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("events", "code", "transient", "profile"),
    [
        ([chunk(finish="content_filter")], "content_filter", False, OPENAI),
        ([chunk(finish="insufficient_system_resource")], "overloaded", True, DEEPSEEK),
        ([chunk(finish="insufficient_system_resource")], "malformed_response", False, OPENAI),
        ([chunk(finish="tool_calls")], "malformed_response", True, OPENAI),
        ([chunk({"refusal": "I can"}), chunk({"refusal": "not."}), chunk(finish="stop")], "refusal", False, OPENAI),
        ([text("a"), chunk(finish="")], "stream_cut", True, OPENAI),
        ([], "stream_cut", True, OPENAI),
    ],
)
def test_an_end_that_is_a_failure(events: list[Any], code: str, transient: bool, profile: ChatProfile) -> None:
    """Ends that are no answer are failures, with the usage if it was told."""
    last = finish(*events, usage(5, 1, 2), profile=profile)
    assert last.kind == "error"
    assert last.usage == Usage(5, 1, 2)
    assert last.failure is not None
    assert (last.failure.code, last.failure.transient) == (code, transient)


def test_a_refusal_is_told() -> None:
    """A refusal's words are the failure's."""
    failure = finish(chunk({"refusal": "I can"}), chunk({"refusal": "not."}), chunk(finish="stop")).failure
    assert failure is not None
    assert "I cannot." in failure.message


@pytest.mark.parametrize(
    ("told", "cost"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2}, Usage(9, 2)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(9, 2, 4)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 0}}, Usage(9, 2, 0)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None}, Usage(9, 2)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 8}, Usage(9, 2, 8)),
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": -8}, Usage(9, 2)),
        ({"prompt_tokens": 10**30, "completion_tokens": 2}, None),
        ({"prompt_tokens": True, "completion_tokens": 2}, None),
        ({"prompt_tokens": "many", "completion_tokens": 2}, None),
        ({"prompt_tokens": 9}, None),
        (None, None),
        ("many", None),
    ],
)
def test_usage(told: object, cost: Usage | None) -> None:
    """Usage is read in each provider's spelling, beside the last choice or after it; unreadable, it is not known."""
    assert finish(chunk(finish="stop"), chunk(choices=[], usage=told)).usage == cost
    assert finish(chunk(finish="stop", usage=told)).usage == cost
    assert finish(chunk(usage=usage(1, 1)["usage"]), chunk(finish="stop"), chunk(usage=told)).usage == (
        cost or Usage(1, 1)
    )


def test_other_choices_are_not_ours() -> None:
    """Only the first choice is read."""
    other = chunk()
    other["choices"][0] |= {"index": 1, "delta": {"content": "b"}, "finish_reason": "length"}
    assert answer(text("a"), other, chunk(finish="stop")) == [TextChunk("a"), Finish("stop", raw_reason="stop")]


def whole(message: Any, reason: str | None = None, **more: Any) -> dict[str, Any]:
    """An event with a message where a piece of it is expected."""
    return {"choices": [{"index": 0, "message": message, "finish_reason": reason, **more}]}


CALL = {"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}


@pytest.mark.parametrize("more", [{}, {"delta": None}, {"delta": {}}])
def test_a_message_in_place_of_pieces(more: dict[str, Any]) -> None:
    """A server that streams its answer as one whole message is read: the text, the calls, the refusal."""
    said = whole({"role": "assistant", "content": "a", "tool_calls": [CALL, CALL | {"id": "d"}]}, "tool_calls", **more)
    assert answer(chunk({"role": "assistant", "content": ""}), said) == [
        TextChunk("a"),
        ToolCallChunk(0, "c", "t", "{}"),
        ToolCallChunk(1, "d", "t", "{}"),
        Finish("tool-calls", raw_reason="tool_calls"),
    ]
    [refused] = answer(whole({"content": None, "refusal": "No."}, "stop", **more))
    assert isinstance(refused, Finish)
    assert refused.failure is not None
    assert refused.failure.message == "the model refuses: No."


@pytest.mark.parametrize("more", [{}, {"delta": {}}])
def test_a_message_after_its_pieces(more: dict[str, Any]) -> None:
    """Told again at the end, as a whole, it is not read twice."""
    assert answer(text("a"), text("b"), whole({"content": "ab"}, "stop", **more)) == [
        TextChunk("a"),
        TextChunk("b"),
        Finish("stop", raw_reason="stop"),
    ]


# What is not in the format


@pytest.mark.parametrize(
    "event",
    [
        [],
        None,
        {"choices": {}},
        {"choices": ["a"]},
        chunk({"content": 7}),
        chunk({"tool_calls": {}}),
        chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "t", "arguments": {}}}]}),
        call(0, "{}"),
        call(0, "{}", id="c"),
        call(0, "{}", name="t"),
        chunk({"tool_calls": [{"index": [], "id": "c", "function": {"name": "t"}}]}),
        {"choices": [{"index": 0, "delta": "a"}]},
        whole("a"),
        whole({"content": 7}),
        whole({"tool_calls": [{"id": "c"}]}),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": 1}]},
    ],
)
def test_what_is_malformed(event: object) -> None:
    """What cannot be understood is an error, never a guess."""
    with pytest.raises(MalformedAnswerError):
        answer(event)


@pytest.mark.parametrize("event", [whole({"content": "ab"}), text("b"), call(0, "{}", id="c", name="t")])
def test_more_of_a_whole_message(event: object) -> None:
    """Whether it goes on or begins anew, nobody can tell."""
    with pytest.raises(MalformedAnswerError, match="has come as a whole"):
        answer(whole({"content": "a"}), event)


spoilt = st.one_of(
    json_values,
    st.fixed_dictionaries({}, optional={"choices": json_values, "usage": json_values}),
    st.builds(lambda delta: {"choices": [{"delta": delta, "finish_reason": None}]}, json_values),
    st.builds(lambda calls: chunk({"tool_calls": calls}), st.lists(json_values, max_size=2)),
    st.builds(
        lambda index, own, function: chunk({"tool_calls": [{"index": index, "id": own, "function": function}]}),
        json_values,
        json_values,
        json_values,
    ),
    st.builds(whole, json_values),
    st.builds(lambda reason: {"choices": [{"finish_reason": reason}]}, json_values),
)


@given(st.lists(spoilt, max_size=3))
def test_nothing_else_is_raised(events: list[Any]) -> None:
    """Whatever JSON a server sends, it is read or it is malformed, and there is an end to it."""
    reader = AnswerReader(COMPATIBLE)
    for event in events:
        try:
            reader.read(event)
        except MalformedAnswerError:
            break
    assert isinstance(reader.finish(), Finish)
