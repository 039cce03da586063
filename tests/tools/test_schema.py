"""Schemas derived from Python functions: what a model is told of their parameters."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import partial, wraps
from typing import Annotated, Any, Literal, NamedTuple, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from foreword import ForewordError, InvalidToolSchemaError, ToolContext, ToolDefinition, freeze


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Item(BaseModel):
    """One line of an order."""

    title: str
    count: int = 1


class Node(BaseModel):
    below: list[Node] = []


@dataclass
class Point:
    x: int
    y: float = 0.5


class Pair(NamedTuple):
    first: int
    second: str


def properties(function: Callable[..., Any]) -> dict[str, Any]:
    """The schemas of a function's parameters, by name."""
    held: Any = ToolDefinition.of(function, name="tool").parameters["properties"]
    return dict(held)


def test_a_function_tells_its_parameters() -> None:
    """Types, defaults and which parameters are required come from the signature, descriptions from the docstring."""

    def search(query: str, limit: int = 10, sort: Literal["new", "old"] = "new") -> str:
        """Search the archive.

        Finds whole words only.

        Args:
            query: what to look for,
                in plain words.
            limit (int): how many hits at most.

        Returns:
            One hit a line.
        """
        return query

    tool = ToolDefinition.of(search)
    assert tool.name == "search"
    assert tool.description == "Search the archive.\n\nFinds whole words only.\n\nReturns:\n    One hit a line."
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "what to look for, in plain words."},
            "limit": {"type": "integer", "default": 10, "description": "how many hits at most."},
            "sort": {"type": "string", "enum": ["new", "old"], "default": "new"},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def test_parameters_stand_in_their_order() -> None:
    """A model reads parameters in the order in which the function takes them."""

    def tool(zebra: int, ant: int, *, mouse: int, bee: int = 0) -> None: ...

    assert list(properties(tool)) == ["zebra", "ant", "mouse", "bee"]
    assert ToolDefinition.of(tool).parameters["required"] == ["zebra", "ant", "mouse"]


def test_no_parameters() -> None:
    """A function that takes nothing has a schema all the same: of an object without properties."""

    def now() -> str:
        return ""

    assert ToolDefinition.of(now).parameters == {"type": "object", "properties": {}, "additionalProperties": False}


def test_titles_are_noise() -> None:
    """No schema has a title, at any depth; a property of that name stays."""

    def tool(item: Item, title: str, colours: list[Colour]) -> None: ...

    def titles(schema: Any, *, by_name: bool = False) -> int:
        if isinstance(schema, list):
            return sum(titles(each) for each in schema)
        if not isinstance(schema, dict):
            return 0
        own = 0 if by_name else int("title" in schema)
        return own + sum(titles(value, by_name=key in ("properties", "$defs")) for key, value in schema.items())

    parameters: Any = ToolDefinition.of(tool).parameters
    assert titles(parameters) == 0
    assert parameters["properties"]["title"] == {"type": "string"}
    assert list(parameters["$defs"]["Item"]["properties"]) == ["title", "count"]


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (int, {"type": "integer"}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}),  # noqa: UP045 - as users may write it
        (date, {"type": "string", "format": "date"}),
        (Annotated[int, Field(ge=1, le=9, description="A digit.")],
         {"type": "integer", "minimum": 1, "maximum": 9, "description": "A digit."}),
        (Any, {}),
    ],
)  # fmt: skip
def test_types(annotation: Any, schema: dict[str, Any]) -> None:
    """Annotations say what JSON they take, as pydantic has it."""

    def tool(value): ...  # type: ignore[no-untyped-def]

    tool.__annotations__ = {"value": annotation}
    assert properties(tool) == {"value": schema}


def test_models_of_all_kinds() -> None:
    """Models, dataclasses, named tuples, enums, and models that contain themselves, are told as definitions."""

    def tool(item: Item, point: Point, pair: Pair, colour: Colour, node: Node) -> None: ...

    definitions: Any = ToolDefinition.of(tool).parameters["$defs"]
    assert set(definitions) == {"Item", "Point", "Pair", "Colour", "Node"}
    assert definitions["Item"]["description"] == "One line of an order."
    assert "description" not in definitions["Point"]  # what a dataclass writes itself is no description
    assert definitions["Colour"] == {"enum": ["red", "blue"], "type": "string"}


def test_an_own_description_outdoes_the_docstring() -> None:
    """What `Field` says of a parameter counts before what the docstring says."""

    def tool(a: Annotated[int, Field(description="From the field.")], b: int = Field(3, description="Own.")) -> None:
        """Do.

        Args:
            a: From the docstring.
            b: From the docstring.
        """

    held = properties(tool)
    assert held["a"]["description"] == "From the field."
    assert held["b"] == {"type": "integer", "default": 3, "description": "Own."}


def test_an_alias_is_what_the_model_calls_it() -> None:
    """A parameter that cannot be called as the model should call it has an alias."""

    def tool(from_: Annotated[str, Field(alias="from")]) -> None: ...

    assert properties(tool) == {"from": {"type": "string"}}


@pytest.mark.parametrize(
    "name", ["copy", "json", "schema", "model_config", "model_fields", "validate", "_hidden", "self"]
)
def test_names_that_models_use_themselves(name: str) -> None:
    """Any name of a parameter will do, also one that a pydantic model has for itself."""
    namespace: dict[str, Any] = {}
    exec(f"def tool({name}: int) -> int: return {name}", namespace)
    assert properties(namespace["tool"]) == {name: {"type": "integer"}}


def test_a_default_that_json_cannot_spell() -> None:
    """Such a default is not told, and makes the parameter optional all the same."""

    def tool(value: Any = object()) -> None: ...  # noqa: B008

    tool_definition = ToolDefinition.of(tool)
    assert tool_definition.parameters["properties"] == {"value": {}}
    assert "required" not in tool_definition.parameters


def test_the_context_is_not_the_models() -> None:
    """A parameter annotated with ToolContext is not in the schema, whatever it is called, and may be described."""

    def tool(order: str, who: ToolContext) -> None:
        """Do.

        Args:
            order: which.
            who: not told to anybody.
        """

    def optional(order: str, who: ToolContext | None = None) -> None: ...

    assert list(properties(tool)) == ["order"]
    assert list(properties(optional)) == ["order"]


def test_names_around_a_function_are_seen() -> None:
    """With postponed annotations, a tool in a function may use the classes of that function."""
    from foreword import SystemPrompt, ToolRegistry

    class Local(BaseModel):
        size: int

    tools = ToolRegistry(SystemPrompt())

    @tools.register
    def bare(value: Local) -> None: ...

    @tools.register(name="with_options")
    def other(value: list[Local]) -> None: ...

    assert all("Local" in schema.parameters["$defs"] for schema in tools.schemas())


def test_callables_of_all_kinds() -> None:
    """Methods, partials, wrapped functions and objects that can be called are tools as well."""

    class Shop:
        def refund(self, order: str) -> str:
            """Refund an order."""
            return order

        async def __call__(self, cents: int) -> int:
            """Pay."""
            return cents

    def plain(order: str, cents: int) -> str:
        """Pay back."""
        return order

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    made = [
        ToolDefinition.of(Shop().refund),
        ToolDefinition.of(Shop(), name="pay"),
        ToolDefinition.of(partial(plain, cents=1), name="pay_back"),
        ToolDefinition.of(decorated(plain)),
    ]
    assert [tool.name for tool in made] == ["refund", "pay", "pay_back", "plain"]
    assert [tool.description for tool in made] == ["Refund an order.", "Pay.", "Pay back.", "Pay back."]
    assert [list(tool.parameters["properties"]) for tool in made] == [  # type: ignore[call-overload]
        ["order"], ["cents"], ["order", "cents"], ["order", "cents"],
    ]  # fmt: skip


def no_annotation(value) -> None: ...  # type: ignore[no-untyped-def]
def unresolved(value: NotThere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def any_number(*values: int) -> None: ...
def any_names(**values: int) -> None: ...
def odd_type(other: int, value: Callable[[], int]) -> None: ...
def huge(value: int = 2**60) -> None: ...
def two_contexts(one: ToolContext, two: ToolContext) -> None: ...
def context_by_position(context: ToolContext, /) -> None: ...


def yields(value: int) -> Any:
    yield value


async def yields_async(value: int) -> Any:
    yield value


def misdescribed(order: str) -> None:
    """Do.

    Args:
        ordr: which.
    """


def unreadable_section(order: str) -> None:
    """Do.

    Args:
        the order, of course
    """


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (no_annotation, "parameter value has no annotation"),
        (unresolved, "parameter value cannot be resolved: name 'NotThere' is not defined"),
        (any_number, "*values takes any number"),
        (any_names, "**values takes any number"),
        (odd_type, "parameter value has no JSON Schema"),
        (huge, ".properties.value.default is an integer beyond"),
        (two_contexts, "takes a ToolContext twice, as one and two"),
        (context_by_position, "it is given by name"),
        (yields, "its function yields"),
        (yields_async, "its function yields"),
        (misdescribed, 'describes "ordr", which it does not take; did you mean "order"?'),
        (unreadable_section, 'the line "the order, of course"'),
        (lambda: None, "give name=…"),
        (Item, "Item is a class"),
        (5, "is an int"),
        (print, "takes any number"),
    ],
)
def test_what_cannot_be_described(function: Any, told: str) -> None:
    """A function that does not say what it takes, or takes what JSON cannot hold, is refused; the tool is named."""
    with pytest.raises(InvalidToolSchemaError) as caught:
        ToolDefinition.of(function)
    assert told in str(caught.value)
    assert caught.value.tool == getattr(function, "__name__", None) or caught.value.tool is None


MODULE = """
import json, sys
from enum import Enum
from typing import Literal, Optional
from foreword import ToolDefinition

class Colour(Enum):
    RED = "red"
    BLUE = "blue"

def paint(
    colour: Colour, words: frozenset[str] = frozenset({"a", "b", "c", "d", "e"}), size: Optional[int] = None,
    mode: Literal["x", "b", "a"] = "a",
) -> str:
    '''Paint.

        Deeper.

    Args:
        colour: which
    '''
tool = ToolDefinition.of(paint)
print(json.dumps([tool.name, tool.description, tool.parameters]))
"""


def test_the_same_function_gives_the_same_bytes() -> None:
    """The schema of a function is one text, whatever the hash seed of the process is, and on every Python."""
    seen = {
        subprocess.run(
            [sys.executable, "-c", MODULE], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert seen == {
        '["paint", "Paint.\\n\\n    Deeper.", {"$defs": {"Colour": {"enum": ["red", "blue"], "type": "string"}}, '
        '"additionalProperties": false, "properties": {"colour": {"$ref": "#/$defs/Colour", "description": "which"}, '
        '"words": {"default": ["a", "b", "c", "d", "e"], "items": {"type": "string"}, "type": "array", '
        '"uniqueItems": true}, "size": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null}, '
        '"mode": {"default": "a", "enum": ["x", "b", "a"], "type": "string"}}, "required": ["colour"], '
        '"type": "object"}]\n'
    }


TYPES: dict[Any, Any] = {
    int: st.integers(-100, 100),
    str: st.text("ab", max_size=3),
    bool: st.booleans(),
    list[int]: st.lists(st.integers(-9, 9), max_size=3),
    str | None: st.one_of(st.none(), st.text("ab", max_size=3)),
}
IDENTIFIERS = st.sampled_from(["a", "b", "copy", "json", "schema", "title", "type", "order", "self", "cls"])


@st.composite
def signatures(draw: st.DrawFn) -> tuple[list[tuple[str, Any, bool, Any]], dict[str, Any]]:
    """Parameters (name, type, optional, default) and arguments that fit them."""
    taken = draw(st.lists(IDENTIFIERS, unique=True, max_size=5))
    made = []
    for name in taken:
        kind = draw(st.sampled_from(list(TYPES)))
        made.append((name, kind, draw(st.booleans()), draw(TYPES[kind])))
    given = {name: draw(TYPES[kind]) for name, kind, optional, _ in made if not optional or draw(st.booleans())}
    return made, given


@given(signatures())
def test_derived_schemas_hold(drawn: tuple[list[tuple[str, Any, bool, Any]], dict[str, Any]]) -> None:
    """Whatever the signature: its schema is frozen JSON, JSON Schema takes the arguments that fit, and the function
    gets just these, with its own defaults for the rest."""
    import jsonschema_rs

    from foreword.tools.arguments import read_arguments

    parameters, arguments = drawn
    spelled = ", ".join(f"{name}=default[{name!r}]" if optional else name for name, _, optional, _ in parameters)
    defaults = {name: default for name, _, optional, default in parameters if optional}
    namespace: dict[str, Any] = {"default": defaults}
    star = "*, " if parameters else ""
    exec(f"def tool({star}{spelled}): return locals()", namespace)
    namespace["tool"].__annotations__ = {name: kind for name, kind, _, _ in parameters}
    tool = ToolDefinition.of(namespace["tool"])
    assert freeze(dict(tool.parameters)) == json.loads(json.dumps(tool.parameters)) == tool.parameters
    assert list(tool.parameters["properties"]) == [name for name, *_ in parameters]  # type: ignore[call-overload]
    jsonschema_rs.validator_for(json.loads(json.dumps(tool.parameters))).validate(arguments)
    assert tool.binding is not None
    assert tool.binding.bind(read_arguments(arguments), ToolContext())() == {**defaults, **arguments}


def test_errors_are_ours() -> None:
    """A refused function raises nothing but our own error, also when an annotation's own code raises."""

    class Broken:
        @classmethod
        def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
            raise ZeroDivisionError("broken")

    def tool(value: int, other): ...  # type: ignore[no-untyped-def]

    tool.__annotations__ = {"value": int, "other": Broken}
    with pytest.raises(ForewordError, match="parameter other has no JSON Schema: broken"):
        ToolDefinition.of(tool)
