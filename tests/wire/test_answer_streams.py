"""What holds for the answer of a stream in every format, read without a network."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import anthropic_events, recording_server
from tests.support.strategies import CHARACTERS

from foreword.wire import anthropic_stream, openai_chat_stream
from foreword.wire.chunks import Chunk, Finish, TextChunk, ToolCallChunk, Usage
from foreword.wire.profiles import ANTHROPIC, OPENAI


@dataclass(frozen=True)
class Format:
    """One format: its reader, and its events."""

    name: str
    reader: Callable[[], Any]
    text: Callable[[str], Any]
    call: Callable[[int, str, str], Any]  # the beginning of a call: index, id, name
    arguments: Callable[[int, str], Any]  # a piece of its arguments
    stop: Callable[[str], Any]  # how an answer ended
    words: Mapping[str, str]  # the format's words for the ends of ours
    begin: tuple[Any, ...] = ()  # what each answer begins with
    end: Callable[[int], tuple[Any, ...]] = lambda index: ()  # of a call
    usage: Usage | None = None  # what such an answer cost
    nothing: str = ""  # the arguments of a call that has none

    def __str__(self) -> str:
        return self.name

    def answer(self, *events: Any, end: str = "stop") -> list[Chunk]:
        """What a stream of events is read as."""
        reader = self.reader()
        whole = (*self.begin, *events, self.stop(self.words[end]))
        return [*(chunk for event in whole for chunk in reader.read(event)), reader.finish()]


FORMATS = [
    Format(
        "openai-chat",
        lambda: openai_chat_stream.AnswerReader(OPENAI),
        recording_server.text,
        lambda index, own, name: recording_server.call(index, id=own, name=name),
        recording_server.call,
        lambda reason: recording_server.chunk(finish=reason),
        {"stop": "stop", "tool-calls": "tool_calls", "max-tokens": "length"},
    ),
    Format(
        "anthropic",
        lambda: anthropic_stream.AnswerReader(ANTHROPIC),
        anthropic_events.text,
        anthropic_events.call,
        anthropic_events.arguments,
        anthropic_events.stop,
        {"stop": "end_turn", "tool-calls": "tool_use", "max-tokens": "max_tokens"},
        (anthropic_events.start(), anthropic_events.block(0, "text", text="")),
        lambda index: (anthropic_events.end(index),),
        Usage(12, 3),
        "{}",
    ),
]
EVERY = pytest.mark.parametrize("format", FORMATS, ids=str)

cuts = st.lists(st.integers(0, 12), max_size=4)
texts = st.text(st.one_of(CHARACTERS, st.sampled_from("😀𝄞é")), max_size=8)


def units(whole: str) -> str:
    """A text in the units of UTF-16: characters beyond the first plane as two halves."""
    encoded = whole.encode("utf-16-le")
    return "".join(chr(int.from_bytes(encoded[at : at + 2], "little")) for at in range(0, len(encoded), 2))


def pieces(whole: str, at: list[int]) -> list[str]:
    """A text cut at some places, also between the halves of a character."""
    cut = units(whole)
    places = [0, *sorted(min(each, len(cut)) for each in at), len(cut)]
    return [cut[start:stop] for start, stop in pairwise(places)]


@EVERY
@given(whole=texts, at=cuts)
def test_however_a_text_is_cut(format: Format, whole: str, at: list[int]) -> None:
    """The chunks make up the text wherever it was cut, none is empty, and each can be spelled in UTF-8."""
    *chunks, last = format.answer(*map(format.text, pieces(whole, at)))
    told = [each.text for each in chunks if isinstance(each, TextChunk)]
    assert "".join(told) == whole
    assert all(each.encode() for each in told)
    assert last == Finish("stop", format.usage, raw_reason=format.words["stop"])


@EVERY
@given(calls=st.lists(st.tuples(texts, cuts), min_size=1, max_size=3), data=st.data())
def test_however_calls_are_mixed(format: Format, calls: list[tuple[str, list[int]]], data: st.DataObject) -> None:
    """The pieces of several calls, in any mixture, make up the arguments of each; other blocks do not count."""
    waiting = {1 + 2 * at if format.begin else at: pieces(*each) for at, each in enumerate(calls)}
    names = {index: (at, f"c{index}", f"tool{index}") for at, index in enumerate(waiting)}
    events = [format.call(index, own, name) for index, (_, own, name) in names.items()]
    while waiting:
        index = data.draw(st.sampled_from(sorted(waiting)))
        events.append(format.arguments(index, waiting[index].pop(0)))
        if not waiting[index]:
            del waiting[index]
            events += format.end(index)
    *chunks, last = format.answer(*events, end="tool-calls")
    told: dict[tuple[int, str, str], str] = defaultdict(str)
    for each in chunks:
        assert isinstance(each, ToolCallChunk)
        told[each.index, each.id, each.name] += each.arguments
    assert told == {name: each[0] or format.nothing for name, each in zip(names.values(), calls, strict=True)}
    assert last == Finish("tool-calls", format.usage, raw_reason=format.words["tool-calls"])


@EVERY
def test_a_half_that_stays_alone(format: Format) -> None:
    """Half of a character, whose other half never comes, is told as U+FFFD."""
    assert format.answer(*map(format.text, ("a\ud83d", "b", "\ud83d")))[:-1] == [
        TextChunk("a"),
        TextChunk("\ufffdb"),
        TextChunk("\ufffd"),
    ]
    half = [format.call(1, "c", "t"), format.arguments(1, "\ud83d"), *format.end(1)]
    assert format.answer(*half)[1:-1] == [ToolCallChunk(0, "c", "t", ""), ToolCallChunk(0, "c", "t", "\ufffd")]


@EVERY
def test_calls_count_more_than_the_word(format: Format) -> None:
    """An answer with calls that ends as if it had none (a forced call does) ends in tool calls; one that was cut does not."""
    call = [format.call(1, "c", "t"), format.arguments(1, "{}"), *format.end(1)]
    ends = {end: format.answer(*call, end=end)[-1] for end in format.words}
    assert {end: last.kind for end, last in ends.items() if isinstance(last, Finish)} == {
        "stop": "tool-calls",
        "tool-calls": "tool-calls",
        "max-tokens": "max-tokens",
    }
