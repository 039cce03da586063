"""The lists of an assembly: lists in all they do, which know what nobody has touched."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from foreword import AssembledSection, PromptAssembly, UnknownEntryError
from foreword.prompt.entries import Entries

SOME = [AssembledSection(name, name.upper()) for name in "abcdefgh"]

entries = st.sampled_from(SOME)
several = st.lists(entries, max_size=4)
places = st.integers(-10, 10)
edges = st.none() | places
slices = st.builds(slice, edges, edges) | st.builds(slice, edges, edges, st.sampled_from([-2, -1, 1, 2]))
Edit = Callable[[list[Any]], object]


def edit(call: Callable[..., object], *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Edit]:
    """An edit that does the same to each list it is given."""
    return st.tuples(*arguments).map(lambda given: lambda entries: call(entries, *given))


def added(entries: list[Any], more: list[Any]) -> object:
    entries += more
    return None


def multiplied(entries: list[Any], times: int) -> object:
    entries *= times
    return None


edits = st.one_of(
    edit(lambda entries, at, entry: entries.__setitem__(at, entry), places, entries),
    edit(lambda entries, at, more: entries.__setitem__(at, more), slices, several),
    edit(lambda entries, at: entries.__delitem__(at), places),
    edit(lambda entries, at: entries.__delitem__(at), slices),
    edit(lambda entries, at: entries.pop(at), places),
    edit(lambda entries: entries.pop()),
    edit(lambda entries, at, entry: entries.insert(at, entry), places, entries),
    edit(lambda entries, entry: entries.append(entry), entries),
    edit(lambda entries, more: entries.extend(more), several),
    edit(lambda entries, more: entries.extend(each for each in more), several),
    edit(added, several),
    edit(multiplied, st.integers(-1, 2)),
    edit(lambda entries, entry: entries.remove(entry), entries),
    edit(lambda entries: entries.reverse()),
    edit(lambda entries: entries.clear()),
    edit(lambda entries: entries.sort(key=lambda entry: entry.name, reverse=True)),
    edit(lambda entries, seed: Random(seed).shuffle(entries), st.integers(0, 9)),
    edit(lambda entries: entries.extend(entries)),
    edit(lambda entries: entries.__setitem__(slice(1, 2), entries)),
)


def outcome(change: Edit, entries: list[Any]) -> object:
    """What an edit gives back or raises."""
    try:
        return change(entries)
    except (IndexError, ValueError) as error:
        return type(error)


def check(known: Entries[AssembledSection], state: tuple[AssembledSection, ...]) -> tuple[int, int]:
    """What is said of a state is true: so many entries at the beginning and the end are the very ones."""
    head, tail = known.untouched(state)
    assert head + tail <= min(len(known), len(state))
    assert [*map(id, known[:head])] == [*map(id, state[:head])]
    assert [*map(id, known[len(known) - tail :])] == [*map(id, state[len(state) - tail :])]
    return head, tail


@given(st.lists(entries, max_size=8).map(tuple), st.lists(st.none() | edits, max_size=10))
@example((), [None])
@example(tuple(SOME), [lambda each: each.insert(2, SOME[0]), lambda each: each.pop(0)])
@example(tuple(SOME), [lambda each: each.pop(3), lambda each: each.insert(3, SOME[0]), None, lambda each: each.pop(0)])
def test_a_list_of_entries_is_a_list_and_calls_nothing_untouched_that_was_not(
    first: tuple[AssembledSection, ...], changes: list[Edit | None]
) -> None:
    """Between the edits the state is taken, where None is drawn."""
    known, plain = Entries(first), list(first)
    last = first
    for change in changes:
        if change is None:
            last = known.state()
            assert last == tuple(plain)
            assert known.untouched(last) == (len(plain), 0)
        else:
            assert outcome(change, known) == outcome(change, plain)
        assert known == plain
        check(known, first)
        check(known, last)
    assert known.state() == tuple(plain)


@pytest.mark.parametrize(
    ("change", "untouched"),
    [
        (lambda entries: entries.swap("c", text="x"), (2, 5)),
        (lambda entries: entries.drop("c"), (2, 5)),
        (lambda entries: entries.place(SOME[0], before="c"), (2, 6)),
        (lambda entries: entries.place(SOME[0], after="c"), (3, 5)),
        (lambda entries: entries.__setitem__(-1, SOME[0]), (7, 0)),
        (lambda entries: entries.__setitem__(slice(2, 4), SOME[:1]), (2, 4)),
        (lambda entries: entries.__delitem__(slice(4, 2)), (4, 4)),
        (lambda entries: entries.append(SOME[0]), (8, 0)),
        (lambda entries: entries.insert(99, SOME[0]), (8, 0)),
        (lambda entries: entries.remove(SOME[6]), (6, 1)),
        (lambda entries: None, (8, 0)),
    ],
)
def test_an_edit_touches_the_entries_that_it_reaches_only(change: Edit, untouched: tuple[int, int]) -> None:
    state = tuple(SOME)
    known = Entries(state)
    change(known)
    assert check(known, state) == untouched


def test_of_a_list_that_it_was_not_made_of_nothing_is_known() -> None:
    known = Entries(SOME)
    assert known.untouched(tuple(SOME)) == (0, 0)
    first = known.state()
    known.append(SOME[0])
    second = known.state()
    known.append(SOME[1])
    third = known.state()
    assert [known.untouched(state) for state in (first, second, third)] == [(8, 0), (0, 0), (10, 0)]
    assert known.state() is third


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda entries: pickle.loads(pickle.dumps(entries))])
def test_a_copy_is_a_list_of_its_own(again: Callable[[Any], Any]) -> None:
    made = PromptAssembly(SOME).sections
    state = made.state()
    copied = again(made)
    assert (type(copied), copied, copied.kind) == (Entries, SOME, "section")
    copied.drop("a")
    assert made == SOME
    assert made.untouched(state) == (8, 0)
    with pytest.raises(UnknownEntryError, match='"a"'):
        copied.named("a")
