"""Diffs: applied to the old prompt they give the new one; a move is a move; every change has its owner."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.explain.support import OPENAI, a_subject, tool

from foreword import SystemPrompt
from foreword.errors import DiffMismatchError
from foreword.explain import Content, RequestMessage, Subject, diff_of, word_diff
from foreword.explain.listing import applied, edits
from foreword.explain.telling import diff_lines
from foreword.explain.words import new_text, old_text
from foreword.jsonvalue import JsonValue
from foreword.wire.messages import UserMessage
from foreword.wire.request import ModelConfig

NAMES = st.sampled_from("abcde")
TEXTS = st.sampled_from(["One.", "Two words here.", "Two other words.", "Drei 🦉 {{v}}.", "{{v}}", "", "line\nline\n"])
OWNERS = st.sampled_from(["acme", "legal"])
entries = st.lists(st.tuples(NAMES, st.integers(0, 3), TEXTS, OWNERS), unique_by=lambda each: each[0], max_size=5)
configs = st.sampled_from([None, OPENAI, ModelConfig("openai", "gpt-5.2", {"temperature": 0.5, "top_p": 1}),
                           ModelConfig("openai", "gpt-5.2", {"top_p": 1, "temperature": 0.5})])  # fmt: skip


@st.composite
def subjects(draw: st.DrawFn) -> Subject:
    """Prompts that share names, texts and owners, so that two of them differ in every way."""
    sections, contexts, tools = draw(entries), draw(entries), draw(entries)

    def build(prompt: SystemPrompt) -> None:
        prompt.owner(draw(OWNERS)).variable("v", draw(st.sampled_from(["29", "30"])))
        for name, order, text, owner in sections:
            prompt.owner(owner).section(name, text, order=order)
        for name, order, text, owner in contexts:
            prompt.owner(owner).context(name, text, order=order)
        for name, _, text, owner in tools:
            prompt.owner(owner).tools([tool(name, text)])

    said = draw(st.lists(st.sampled_from(["Hi.", "Bye."]), max_size=3))
    return a_subject(build, *map(UserMessage, said), config=draw(configs))


@given(subjects(), subjects())
def test_applying_a_diff_gives_the_new_prompt(old: Subject, new: Subject) -> None:
    """Texts, order, owners, tools, history and model: all of it comes out."""
    diff = diff_of(old, new)
    assert diff.apply(Content.of(old)) == Content.of(new)
    assert diff.is_empty == (Content.of(old) == Content.of(new))
    for change in diff.changes:
        assert change.origin.owner in ("acme", "legal")
        assert (change.action in ("added", "now used"), change.action in ("removed", "no longer used")) == (
            change.edit.old is None,
            change.edit.new is None,
        )
        if change.words:
            assert (old_text(change.words), new_text(change.words)) == (change.old, change.new)


@given(subjects())
def test_equal_prompts_differ_in_nothing(subject: Subject) -> None:
    """A diff of a prompt with itself is empty."""
    assert diff_of(subject, replace(subject, title="again")).is_empty


class Named:
    """For lists of anything that has a name."""

    def __init__(self, name: str, value: int) -> None:
        self.name, self.value = name, value

    def __repr__(self) -> str:
        return f"{self.name}{self.value}"


things = st.lists(st.builds(Named, st.sampled_from("abc"), st.integers(0, 2)), max_size=8)


@given(things, things)
def test_edits_of_lists_with_namesakes(old: list[Any], new: list[Any]) -> None:
    """Namesakes are kept apart: the edits lead from one list to the other, and no shorter set of moves would."""
    made = edits(old, new, lambda one, other: one.value == other.value)
    assert list(map(repr, applied(made, old))) == list(map(repr, new))


@given(st.permutations("abcdef"))
def test_moves_are_few(order: list[str]) -> None:
    """What did not move stays in its order; moving any fewer things would not do."""
    old, new = [Named(name, 0) for name in "abcdef"], [Named(name, 0) for name in order]
    moved = {edit.new.name for edit in edits(old, new, lambda one, other: True) if edit.new is not None}
    stayed = [name for name in order if name not in moved]
    assert stayed == sorted(stayed)
    longest = max(size for size in range(7) if any(True for _ in increasing(order, size)))
    assert len(stayed) == longest


def increasing(order: list[str], size: int) -> list[tuple[str, ...]]:
    return [each for each in combinations(order, size) if list(each) == sorted(each)]


texts = st.one_of(
    st.lists(st.sampled_from(["one ", "two ", "three", "\n", "29", ".", "🦉", "é"]), max_size=20).map("".join),
    st.text(max_size=12),
)


@given(texts, texts)
def test_a_word_diff_holds_both_texts(old: str, new: str) -> None:
    """What stayed and went is the old text, what stayed and came the new one; nothing is empty, no kind comes twice."""
    pieces = word_diff(old, new)
    assert (old_text(pieces), new_text(pieces)) == (old, new)
    assert all(piece.text for piece in pieces)
    assert all(one.what != other.what for one, other in pairwise(pieces))
    assert not [piece for piece in word_diff(old, old) if piece.what != "same"]


@pytest.mark.parametrize("size", [3_000, 60_000])
def test_large_texts_are_told_in_time(size: int) -> None:
    """Of large texts what did not change is still found, or they are told as one; either way both texts are there."""
    old = "".join(f"line {number} of many\n" for number in range(size))
    new = old.replace("line 7 ", "row 7 ").replace(f"line {size - 7} ", "row ") + "an end\n"
    pieces = word_diff(old, new)
    assert (old_text(pieces), new_text(pieces)) == (old, new)
    if size == 3_000:
        assert [piece.text for piece in pieces if piece.what == "gone"] == ["line", f"line {size - 7}"]


def test_words_are_not_cut() -> None:
    """A number or word that changed is told whole."""
    told = [(piece.what, piece.text) for piece in word_diff("It is the 29th today.", "It is the 30th today.")]
    assert told == [("same", "It is the "), ("gone", "29th"), ("came", "30th"), ("same", " today.")]


def test_a_section_that_moved_is_one_move() -> None:
    """It is no removal and no addition; whose it is, and from where to where, is told."""

    def build(order: int) -> Subject:
        def fill(prompt: SystemPrompt) -> None:
            for name, at in (("a", 1), ("b", order), ("c", 3), ("d", 4)):
                prompt.owner(f"owner-{name}").section(name, f"Text {name}.", order=at)

        return a_subject(fill)

    (change,) = diff_of(build(2), build(9)).changes
    assert (change.action, change.name, change.owner) == ("moved", "b", "owner-b")
    assert (change.edit.old_at, change.edit.new_at) == (1, 3)


def test_every_kind_of_change_is_told_with_its_owner() -> None:
    """Sections, contexts, variables, tools, model and history."""

    def before(prompt: SystemPrompt) -> None:
        prompt.owner("clock").variable("day", "29")
        prompt.owner("acme").section("rules", "Today is the {{day}}.", order=1)
        prompt.owner("acme").section("same", "The same.", order=2)
        prompt.owner("acme").context("git", "clean", order=1)
        prompt.owner("shop").tools([tool("find"), tool("refund")])

    def after(prompt: SystemPrompt) -> None:
        prompt.owner("clock").variable("day", "30")
        prompt.owner("acme").section("rules", "Today is the {{day}}.", order=1)
        prompt.owner("legal").section("same", "The same.", order=2)
        prompt.owner("acme").context("git", "3 changes", order=1)
        prompt.owner("shop").tools([tool("find", "Finds it.")])
        prompt.owner("shop").context("stock", "low", order=2)

    old = a_subject(before, UserMessage("Hi."))
    new = a_subject(after, UserMessage("Hi."), UserMessage("Well?"), config=ModelConfig("openai", "gpt-5.4"))
    diff = diff_of(old, new)
    assert [(each.kind, each.name, each.action, each.owner, each.old_owner) for each in diff.changes] == [
        ("tool", "refund", "removed", "shop", None),
        ("tool", "find", "changed", "shop", None),
        ("section", "rules", "changed", "acme", None),
        ("section", "same", "taken over", "legal", "acme"),
        ("variable", "day", "changed", "clock", None),
        ("context", "git", "changed", "acme", None),
        ("context", "stock", "added", "shop", None),
    ]
    assert diff.config == (OPENAI, ModelConfig("openai", "gpt-5.4"))
    assert diff.history is not None
    assert (diff.history.kept, diff.history.gone, diff.history.came) == (1, 0, (UserMessage("Well?"),))


def test_a_tool_that_carries_something_else_has_changed() -> None:
    """What it carries beside its schema is part of it: each key that changed is told, and in JSON, too."""

    def fill(prompt: SystemPrompt) -> None:
        prompt.owner("shop").tools([tool("find"), tool("refund")])

    def carrying(**extras: JsonValue) -> Subject:
        subject = a_subject(fill)
        return replace(subject, tools=(replace(subject.tools[0], extras=extras), subject.tools[1]))

    old, new = carrying(strict=True, level=1, note="x"), carrying(note="x", strict=1, many=[1, 2])
    diff = diff_of(old, new)
    (change,) = diff.changes
    assert (change.name, change.action, change.owner) == ("find", "changed", "shop")
    told = [("strict", "true", "1"), ("many", "", "[1,2]"), ("level", "1", "")]
    assert [(key.name, key.old, key.new) for key in change.keys] == told
    assert change.to_json()["keys"] == [{"key": key, "old": was or None, "new": now or None} for key, was, now in told]
    said = "changed, key strict true → 1, key many nothing → [1,2], key level 1 → nothing"
    assert next(diff_lines(diff)).endswith(said)
    assert diff.apply(Content.of(old)) == Content.of(new) != Content.of(old)
    assert diff_of(new, new).is_empty


def test_a_diff_is_refused_by_another_prompt() -> None:
    """Applied to what it was not made of, it says so."""
    one, two, three = (
        a_subject(lambda prompt, text=text: prompt.section("a", text, order=1)) for text in ("One.", "Two.", "Three.")
    )
    diff = diff_of(one, two)
    assert diff.apply(Content.of(one)) == Content.of(two)
    for other in (Content.of(three), Content.of(replace(one, tools=two.tools, spans=type(one.spans)()))):
        with pytest.raises(DiffMismatchError, match="not as it was"):
            diff.apply(other)


def test_a_long_history_is_compared_by_its_messages() -> None:
    """A message in the middle that changed is told as where the histories part."""
    one, two = (
        tuple(RequestMessage(UserMessage(text)) for text in texts) for texts in (["a", "b", "c"], ["a", "x", "c", "d"])
    )
    subject = a_subject(lambda prompt: None)
    history = diff_of(replace(subject, messages=one), replace(subject, messages=two)).history
    assert history is not None
    assert (history.kept, history.gone, len(history.came)) == (1, 2, 3)
