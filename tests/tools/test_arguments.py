"""Arguments of a call: read strictly, checked before anything is called, and told to the model where they are wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from typing import Annotated, Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel
from tests.tools.support import OBJECT, registry

from foreword import ToolContext, ToolDefinition, ToolResult


class Strict(BaseModel, strict=True):
    day: date


class Line(BaseModel):
    title: str
    count: int = 1


def even(value: int) -> int:
    if value == 0:
        raise ZeroDivisionError("nothing")
    if value % 2:
        raise ValueError("must be even")
    return value


def called(tool: Callable[..., Any] | ToolDefinition, arguments: Any, **options: Any) -> ToolResult:
    """What comes of calling a tool."""
    _, tools = registry()
    tools.register(tool, **options)
    (schema,) = tools.schemas()
    return anyio.run(lambda: tools.call(schema.name, arguments))


def order(number: str, lines: list[Line], express: bool = False) -> str:
    """Order something."""
    return f"{number} {[(line.title, line.count) for line in lines]} {express}"


def test_arguments_become_what_the_function_takes() -> None:
    """JSON text or an object, the function gets its own types; what is left out is left to its defaults."""
    text = '{"number": "7", "lines": [{"title": "tea", "count": 2}, {"title": "milk"}]}'
    expected = "7 [('tea', 2), ('milk', 1)] False"
    assert called(order, text) == called(order, json.loads(text)) == ToolResult(expected, value=expected)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("{}", ["number: is required", "lines: is required"]),
        ('{"number": 7, "lines": []}', ["number: Input should be a valid string"]),
        ('{"number": "7", "lines": [{"title": "tea"}, {"count": "x"}]}',
         ["lines[1].title: is required", "lines[1].count: Input should be a valid integer"]),
        ('{"number": "7", "lines": [], "xpress": true}',
         ['xpress: is no parameter; did you mean "express"? known parameters: express, lines, number']),
        ("[]", ["the arguments must be a JSON object, not an array"]),
        ('"text"', ["the arguments must be a JSON object, not a string"]),
        ("null", ["the arguments must be a JSON object, not null"]),
        ("7", ["the arguments must be a JSON object, not an int"]),
        ('{"number": ', ["the arguments are no JSON: Expecting value: line 1 column 12"]),
        ('{"number": NaN}', ["NaN is no JSON number"]),
        ('{"number": 1e999}', ["the arguments are no JSON"]),
        ('{"number": "\\ud800", "lines": []}', ["half of a surrogate pair"]),
        ("[" * 100_000, ["nested too deeply"]),
        ("9" * 5000, ["the arguments are no JSON"]),
        pytest.param({"number": object()}, ["the arguments are no JSON"], id="object"),
        ({"number": float("nan")}, ["the arguments are no JSON"]),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_faults_are_told_to_the_model(arguments: Any, told: list[str]) -> None:
    """Each fault has its path and what was wrong; the tool is not called, and there is no traceback in the text."""
    result = called(order, arguments)
    assert (result.is_error, result.code, result.value) == (True, "INVALID_ARGS", None)
    assert result.text.startswith("Error: the arguments ")
    for each in told:
        assert each in result.text
    assert "Traceback" not in result.text
    assert "pydantic" not in result.text


def test_many_faults_are_cut() -> None:
    """A model that gets everything wrong is told the first twenty faults."""
    result = called(order, {"number": "7", "lines": [{} for _ in range(100)]})
    assert result.text.count("is required") == 20
    assert result.text.endswith("… and more")


@pytest.mark.parametrize("text", ["", "  \n", "{}"])
def test_no_arguments(text: str) -> None:
    """Models spell "no arguments" as an empty text, too."""

    def now() -> str:
        return "noon"

    assert called(now, text).text == "noon"
    assert called(lambda arguments: f"{arguments}", text, name="raw", parameters=OBJECT).text == "{}"


def test_parameters_of_all_kinds() -> None:
    """Parameters by position only are filled in by position, with their own default where one in front is left out."""

    def tool(a: int, b: int = 2, c: int = 3, /, d: int = 4, *, e: int = 5) -> list[int]:
        return [a, b, c, d, e]

    assert called(tool, {"a": 1}).value == [1, 2, 3, 4, 5]
    assert called(tool, {"a": 1, "c": 30, "e": 50}).value == [1, 2, 30, 4, 50]


def test_defaults_stay_the_functions_own() -> None:
    """A default that is left out is the very object that the function has, not a copy."""
    own: list[int] = []

    def tool(value: Any = own) -> bool:
        return value is own

    assert called(tool, {}).value is True


def test_json_has_no_dates() -> None:
    """What JSON spells as text arrives as the type that the parameter has, also in strict models."""

    def tool(plain: date, strict: Strict, words: set[str], pair: tuple[int, str]) -> str:
        return f"{plain:%d.%m.} {strict.day:%d.%m.} {sorted(words)} {pair}"

    arguments = {"plain": "2026-02-03", "strict": {"day": "2026-02-04"}, "words": ["b", "a", "b"], "pair": [1, "x"]}
    assert called(tool, arguments).text == "03.02. 04.02. ['a', 'b'] (1, 'x')"


def test_a_validator_of_ones_own() -> None:
    """What a validator refuses is told to the model; what it raises otherwise is an error of the tool."""

    def tool(value: Annotated[int, AfterValidator(even)]) -> int:
        return value

    assert called(tool, {"value": 1}).text.endswith("value: Value error, must be even")
    failed = called(tool, {"value": 0})
    assert (failed.code, failed.text) == ("TOOL_FAILED", "Error: ZeroDivisionError: nothing")
    assert isinstance(failed.error, ZeroDivisionError)


RAW: dict[str, Any] = {
    "type": "object",
    "properties": {
        "max-results": {"type": "integer", "maximum": 10},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["max-results"],
    "additionalProperties": False,
}


def test_a_tool_with_a_schema_of_its_own() -> None:
    """A function whose schema is given takes all arguments in one dict, which is its own to change."""

    def search(arguments: dict[str, Any], context: ToolContext) -> str:
        arguments["seen"] = context.tool
        return f"{arguments}"

    assert called(search, {"max-results": 3}, parameters=RAW).text == "{'max-results': 3, 'seen': 'search'}"
    given: dict[str, Any] = {"max-results": 3, "tags": ["a"]}
    called(search, given, parameters=RAW)
    assert given == {"max-results": 3, "tags": ["a"]}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, 'arguments: "max-results" is a required property'),
        ({"max-results": "3"}, 'max-results: "3" is not of type "integer"'),
        ({"max-results": 11}, "max-results: 11 is greater than the maximum of 10"),
        ({"max-results": 1, "tags": ["a", 2]}, 'tags[1]: 2 is not of type "string"'),
        ({"max-results": 1, "more": 2}, "'more' was unexpected"),
    ],
)
def test_given_schemas_are_held_to(arguments: dict[str, Any], told: str) -> None:
    """Arguments are checked against a given JSON Schema as those of a function are."""
    result = called(lambda arguments: "never", arguments, name="raw", parameters=RAW)
    assert (result.code, result.is_error) == ("INVALID_ARGS", True)
    assert told in result.text


def test_a_long_fault_is_cut() -> None:
    """A validator that quotes what it refuses does not flood the model."""
    result = called(lambda arguments: "never", {"max-results": "x" * 100_000}, name="raw", parameters=RAW)
    assert len(result.text) < 500


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.one_of(st.text(max_size=30), JSON.map(lambda value: json.dumps(value)), st.dictionaries(st.text(), JSON)))
def test_whatever_a_model_writes_gives_a_result(arguments: Any) -> None:
    """Arguments may be anything at all: the call gives a result, and the tool is called only with what fits."""
    seen: list[Any] = []

    def tool(value: int = 0) -> str:
        seen.append(value)
        return "called"

    for options in ({}, {"parameters": RAW, "name": "raw"}):
        function: Any = tool if not options else lambda arguments: "called"
        result = called(function, arguments, **options)
        assert result.is_error is (result.text != "called")
        assert result.code == ("INVALID_ARGS" if result.is_error else None)
    assert all(type(value) is int for value in seen)
