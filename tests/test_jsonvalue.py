"""What JSON is here: what passes, what is refused and where, and that what passed cannot change."""

from __future__ import annotations

import copy
import json
import math
import pickle
from collections import OrderedDict
from enum import IntEnum, StrEnum
from typing import Any

import pytest

from foreword import ForewordError, NotJsonError, freeze, thaw

MOST = 2**53 - 1


class Color(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Number(float):
    pass


PASSING: dict[str, tuple[Any, Any]] = {
    "none": (None, None),
    "booleans": ([True, False], [True, False]),
    "the largest ints": ([MOST, -MOST, 0], [MOST, -MOST, 0]),
    "floats": ([0.0, 1.5, -1e308, 5e-324], [0.0, 1.5, -1e308, 5e-324]),
    "strings": (["", "ä😀", "\0\u2028"], ["", "ä😀", "\0\u2028"]),
    "nothing in it": ([{}, []], [{}, []]),
    "nested": ({"a": [{"b": None}]}, {"a": [{"b": None}]}),
    "an empty key": ({"": 1}, {"": 1}),
    "a str enum": ([Color.RED, {Color.RED: 1}], ["red", {"red": 1}]),
    "an int enum": ([Level.HIGH], [3]),
    "a float subclass": ([Number(1.5)], [1.5]),
    "a dict subclass": (OrderedDict(a=1), {"a": 1}),
}


@pytest.mark.parametrize("how", PASSING)
def test_what_passes(how: str) -> None:
    """JSON values pass, come out equal, made of plain scalars, and are what `json` writes."""
    given, expected = PASSING[how]
    frozen = freeze(given)
    assert frozen == expected
    assert json.dumps(frozen) == json.dumps(expected)
    assert repr_of_types(frozen) == repr_of_types(expected)
    assert thaw(frozen) == expected


def repr_of_types(value: Any) -> str:
    """A text in which every scalar's exact type shows."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{type(key).__name__}: {repr_of_types(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(repr_of_types, value))}]"
    return type(value).__name__


REFUSED: dict[str, tuple[Any, str, str]] = {
    "an int too large": ({"a": [MOST + 1]}, ".a[0]", "beyond"),
    "an int too small": ([-MOST - 1], "[0]", "beyond"),
    "not a number": ([0, math.nan], "[1]", "nan"),
    "infinity": ({"a": math.inf}, ".a", "inf"),
    "negative zero": ({"a": -0.0}, ".a", "−0.0"),
    "a lone surrogate": ({"a": {"b": "x\ud800"}}, ".a.b", "lone surrogate at character 1"),
    "a tuple": ({"a": (1, 2)}, ".a", "tuple"),
    "a set": ([[{1}]], "[0][0]", "set"),
    "bytes": ({"a": b"x"}, ".a", "bytes"),
    "an object": ({"a": object()}, ".a", "object"),
    "a complex number": ([1j], "[0]", "complex"),
    "an int as a key": ({"a": {1: 2}}, ".a", "key 1"),
    "none as a key": ({None: 2}, "", "key None"),
    "a function": ([len], "[0]", "builtin_function_or_method"),
}


@pytest.mark.parametrize("how", REFUSED)
def test_what_is_refused(how: str) -> None:
    """Anything else is refused, with the path inside the value and what is wrong there."""
    given, path, reason = REFUSED[how]
    with pytest.raises(NotJsonError) as caught:
        freeze(given)
    error = caught.value
    assert (error.kind, error.path) == ("not_json", path)
    assert reason in error.reason
    assert isinstance(error, ValueError)
    assert isinstance(error, ForewordError)
    assert pickle.loads(pickle.dumps(error)).path == path


def test_a_lone_surrogate_in_a_key_is_refused() -> None:
    """Keys are held to what strings are held to."""
    with pytest.raises(NotJsonError, match="lone surrogate"):
        freeze({"a": {"\udc00": 1}})


def nested(levels: int) -> Any:
    value: Any = "leaf"
    for _ in range(levels):
        value = [value]
    return value


def test_values_may_be_nested_64_deep() -> None:
    """64 containers in one another pass, 65 do not; of either kind."""
    assert thaw(freeze(nested(64))) == nested(64)
    with pytest.raises(NotJsonError, match="more than 64 deep"):
        freeze(nested(65))
    with pytest.raises(NotJsonError, match="more than 64 deep"):
        freeze({"a": nested(64)})


def test_dicts_count_as_lists_do() -> None:
    """The depth counts containers of both kinds alike."""
    value: Any = "leaf"
    for at in range(64):
        value = {"a": value} if at % 2 else {"b": value}
    assert thaw(freeze(value)) == value
    with pytest.raises(NotJsonError, match="more than 64 deep"):
        freeze({"a": value})


def test_a_value_that_contains_itself_is_refused() -> None:
    """A cycle ends at the depth limit, and the message mentions it."""
    cycle: list[Any] = []
    cycle.append(cycle)
    with pytest.raises(NotJsonError, match="contains itself"):
        freeze(cycle)


def test_what_is_shared_is_no_cycle() -> None:
    """One object in two places is written twice."""
    shared = {"a": 1}
    assert freeze([shared, shared]) == [{"a": 1}, {"a": 1}]


def test_a_frozen_value_is_detached() -> None:
    """Later changes of what was handed over, at any depth, are not seen."""
    given = {"a": [{"b": 1}]}
    frozen = freeze(given)
    given["a"][0]["b"] = 2
    given["a"].append({})
    assert frozen == {"a": [{"b": 1}]}


CHANGES: dict[str, Any] = {
    "set an item": lambda value: value.__setitem__("a", 1),
    "delete an item": lambda value: value.__delitem__("a"),
    "update": lambda value: value.update(a=1),
    "merge": lambda value: value.__ior__({"a": 1}),
    "set a default": lambda value: value.setdefault("b", 1),
    "pop": lambda value: value.pop("a"),
    "pop an item": lambda value: value.popitem(),
    "clear": lambda value: value.clear(),
    "set a member": lambda value: value["a"].__setitem__(0, 1),
    "delete a member": lambda value: value["a"].__delitem__(0),
    "append": lambda value: value["a"].append(1),
    "extend": lambda value: value["a"].extend([1]),
    "extend in place": lambda value: value["a"].__iadd__([1]),
    "repeat in place": lambda value: value["a"].__imul__(2),
    "insert": lambda value: value["a"].insert(0, 1),
    "pop a member": lambda value: value["a"].pop(),
    "remove": lambda value: value["a"].remove(1),
    "clear the list": lambda value: value["a"].clear(),
    "sort": lambda value: value["a"].sort(),
    "reverse": lambda value: value["a"].reverse(),
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_frozen_value_cannot_be_changed_in_place(how: str) -> None:
    """Every change in place is refused, says how to get a copy that can be changed, and changes nothing."""
    frozen: Any = freeze({"a": [1, 2]})
    with pytest.raises(TypeError, match="thaw"):
        CHANGES[how](frozen)
    assert frozen == {"a": [1, 2]}


def test_a_thawed_value_is_free() -> None:
    """`thaw` gives a deep copy in plain dicts and lists."""
    frozen: Any = freeze({"a": [{"b": 1}]})
    free = thaw(frozen)
    free["a"][0]["b"] = 2
    free["a"].append(3)
    assert (type(free), type(free["a"]), type(free["a"][0])) == (dict, list, dict)
    assert frozen == {"a": [{"b": 1}]}


def test_a_frozen_value_copies_to_itself_and_pickles() -> None:
    """Copies of what cannot change are the same thing; a pickled one is equal and cannot change either."""
    frozen: Any = freeze({"a": [1]})
    assert copy.copy(frozen) is frozen
    assert copy.deepcopy(frozen)["a"] is frozen["a"]
    revived = pickle.loads(pickle.dumps(frozen))
    assert revived == frozen
    with pytest.raises(TypeError):
        revived["a"].append(1)
    with pytest.raises(TypeError):
        revived.update(a=2)


def test_key_order_is_kept() -> None:
    """Keys stay in the order in which they were given."""
    assert json.dumps(freeze({"z": 1, "a": 2, "m": 3})) == '{"z": 1, "a": 2, "m": 3}'


def test_a_frozen_value_freezes_to_an_equal_one() -> None:
    """Freezing twice is freezing once."""
    frozen = freeze({"a": [1.5, {"b": "x"}]})
    assert freeze(frozen) == frozen
