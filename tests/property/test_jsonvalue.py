"""What `freeze` lets through is JSON, detached and immutable; what it refuses, it refuses at a place."""

from __future__ import annotations

import copy
import json
import math
import pickle
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.strategies import anything, json_objects, json_values

from foreword import InvalidToolSchemaError, NotJsonError, ToolSchema, freeze, thaw

# Every method that can change a dict or a list, with arguments that would; `__init__` refills what is made already and
# is no way to change a value.
CHANGES: dict[type, list[tuple[str, tuple[Any, ...]]]] = {
    dict: [
        ("__setitem__", ("new", 1)),
        ("__delitem__", ("k",)),
        ("__ior__", ({"new": 1},)),
        ("clear", ()),
        ("pop", ("k",)),
        ("pop", ("new", None)),
        ("popitem", ()),
        ("setdefault", ("new", 1)),
        ("update", ({"new": 1},)),
    ],
    list: [
        ("__setitem__", (0, 1)),
        ("__setitem__", (slice(0, 0), [1])),
        ("__delitem__", (0,)),
        ("__delitem__", (slice(None),)),
        ("__iadd__", ([1],)),
        ("__imul__", (2,)),
        ("append", (1,)),
        ("extend", ([1],)),
        ("insert", (0, 1)),
        ("pop", ()),
        ("remove", (1,)),
        ("clear", ()),
        ("sort", ()),
        ("reverse", ()),
    ],
}


def parts(value: Any) -> list[Any]:
    """A value and all that is inside it."""
    inside = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [value, *(part for each in inside for part in parts(each))]


@given(json_values)
def test_what_passes_equals_what_was_handed_over(value: Any) -> None:
    """In value, in type of each scalar, in order of keys; and dumps to the same JSON."""
    frozen: Any = freeze(value)
    assert frozen == value
    assert thaw(frozen) == value
    assert json.dumps(frozen, ensure_ascii=False) == json.dumps(value, ensure_ascii=False)
    assert json.loads(json.dumps(frozen)) == value
    assert [type(part) for part in parts(thaw(frozen))] == [type(part) for part in parts(value)]


@given(json_values)
def test_a_frozen_value_survives_pickle_copy_and_being_frozen_again(value: Any) -> None:
    """As the same kind of thing: what comes back cannot be changed either."""
    frozen = freeze(value)
    for other in (pickle.loads(pickle.dumps(frozen)), copy.copy(frozen), copy.deepcopy(frozen), freeze(frozen)):
        assert other == frozen
        assert [type(part) for part in parts(other)] == [type(part) for part in parts(frozen)]


@given(json_values)
def test_no_method_changes_a_frozen_value(value: Any) -> None:
    """Neither at its top nor anywhere inside, whatever the method is called."""
    frozen = freeze(value)
    for part in parts(frozen):
        for kind, changes in CHANGES.items():
            for name, arguments in changes if isinstance(part, kind) else ():
                with pytest.raises(TypeError, match="cannot be changed in place"):
                    getattr(part, name)(*arguments)
    assert frozen == value


def test_every_method_of_dicts_and_lists_is_known_to_change_or_not() -> None:
    """A method that a later Python adds is looked at before it is trusted."""
    harmless = {
        dict: {"copy", "fromkeys", "get", "items", "keys", "values"},
        list: {"copy", "count", "index"},
    }
    for kind, changes in CHANGES.items():
        public = {name for name in dir(kind) if not name.startswith("_")}
        assert public == harmless[kind] | {name for name, _ in changes if not name.startswith("_")}


@given(json_values)
def test_a_frozen_value_shares_nothing_with_what_was_handed_over(value: Any) -> None:
    """Emptying the original, inside and out, leaves it as it was."""
    frozen, expected = freeze(value), json.dumps(value)
    for part in parts(value):
        if isinstance(part, (dict, list)):
            part.clear()
    assert json.dumps(frozen) == expected


@given(json_values)
def test_a_thawed_value_is_plain_and_free(value: Any) -> None:
    """Changing it changes nothing else."""
    frozen = freeze(value)
    thawed = thaw(frozen)
    for part in parts(thawed):
        assert type(part) in (dict, list, str, int, float, bool, type(None))
    for part in parts(thawed):
        if isinstance(part, (dict, list)):
            part.clear()
    assert frozen == value


bad_scalars = st.one_of(
    st.sampled_from(
        (
            math.nan,
            math.inf,
            -math.inf,
            -0.0,
            2**53,
            -(2**53),
            10**400,
            b"x",
            1j,
            object(),
            (),
            (1,),
            {1},
            frozenset(),
            ...,
        )
    ),
    st.text(st.characters(categories=["Cs"]), min_size=1, max_size=2),
)
steps = st.one_of(st.integers(0, 2), st.text("abc", min_size=1, max_size=2))


def nested(value: Any, path: list[int | str]) -> tuple[Any, str]:
    """A value at the end of a path, and the path as errors spell it."""
    spelt = ""
    for step in reversed(path):
        if isinstance(step, int):
            value, spelt = [*[None] * step, value], f"[{step}]{spelt}"
        else:
            value, spelt = {"other": 1, step: value}, f".{step}{spelt}"
    return value, spelt


@given(bad_scalars, st.lists(steps, max_size=5))
def test_what_json_does_not_have_is_refused_with_its_path(bad: Any, path: list[int | str]) -> None:
    """The path leads to it, in the message and as an attribute."""
    value, spelt = nested(bad, path)
    with pytest.raises(NotJsonError) as caught:
        freeze(value)
    assert caught.value.path == spelt
    assert (spelt or "the value") in str(caught.value)


@given(st.one_of(st.integers(), st.none(), st.booleans(), st.tuples(), st.binary()), st.lists(steps, max_size=3))
def test_keys_that_are_no_strings_are_refused_with_their_path(key: Any, path: list[int | str]) -> None:
    """The path is that of the dict that holds the key."""
    value, spelt = nested({key: 1}, path)
    with pytest.raises(NotJsonError) as caught:
        freeze(value)
    assert caught.value.path == spelt


@given(st.integers(60, 70), st.lists(st.booleans(), min_size=70, max_size=70))
@example(64, [True] * 70)
@example(65, [False] * 70)
def test_values_are_nested_at_most_64_deep(depth: int, kinds: list[bool]) -> None:
    """Counted in dicts and lists; what contains itself is refused like what is too deep."""
    value: Any = 1
    for is_list in kinds[:depth]:
        value = [value] if is_list else {"k": value}
    if depth <= 64:
        assert freeze(value) == value
    else:
        with pytest.raises(NotJsonError, match="64 deep"):
            freeze(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    """Instead of being walked forever."""
    endless: dict[str, Any] = {}
    endless["again"] = [endless]
    with pytest.raises(NotJsonError, match="contains itself"):
        freeze(endless)


@given(st.one_of(json_values, anything, st.lists(anything, max_size=2), st.dictionaries(st.text(), anything)))
def test_whatever_is_handed_over_is_frozen_or_refused(value: Any) -> None:
    """There is no third way; and what passes is what `json` calls the same."""
    refused: list[str] = []
    frozen: Any = None
    try:
        frozen = freeze(value)
    except NotJsonError as error:
        refused.append(error.path)
    if not refused:
        assert json.loads(json.dumps(frozen, allow_nan=False)) == json.loads(json.dumps(value))


@given(json_objects)
def test_the_parameters_of_a_tool_are_frozen(parameters: dict[str, Any]) -> None:
    """They equal what was given, in the order of its keys, and are out of everybody's reach."""
    before = json.dumps(parameters)
    tool = ToolSchema("t", "", parameters)
    for part in parts(parameters):
        if isinstance(part, (dict, list)):
            part.clear()
    assert json.dumps(tool.parameters) == before
    with pytest.raises(TypeError):
        tool.parameters["new"] = 1  # type: ignore[index]


@given(bad_scalars, st.lists(steps, max_size=4))
def test_the_parameters_of_a_tool_are_refused_with_their_path(bad: Any, path: list[int | str]) -> None:
    """The message names the tool and the place."""
    value, spelt = nested(bad, ["top", *path])
    with pytest.raises(InvalidToolSchemaError, match="grep") as caught:
        ToolSchema("grep", "", value)
    assert spelt in str(caught.value)
