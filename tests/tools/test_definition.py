"""Definitions whose schema is given: what is refused, and what a model sees of them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from foreword import InvalidToolSchemaError, ToolContext, ToolDefinition, ToolSchema


def answer(arguments: dict[str, Any]) -> str:
    """Answer.

    Args:
        arguments: all of them.
    """
    return ""


def test_only_the_schema_is_the_models() -> None:
    """Name, description and parameters reach the model; function and settings do not."""
    tool = ToolDefinition("a", "An a.", {"type": "object"}, answer, timeout=3, sensitive=True)
    assert tool.schema == ToolSchema("a", "An a.", {"type": "object"})
    assert tool.schema is tool.schema


def test_parameters_are_detached() -> None:
    """Changing what was handed over changes no tool, and a tool's parameters cannot be changed in place."""
    parameters: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    tool = ToolDefinition("a", "", parameters, answer)
    parameters["properties"]["a"] = False
    assert tool.parameters["properties"] == {"a": {"type": "string"}}
    with pytest.raises(TypeError):
        tool.parameters["type"] = "array"  # type: ignore[index]


def test_a_given_schema_keeps_its_words() -> None:
    """A given schema goes to the model as it is: order of keys, titles and all."""
    parameters = {"title": "T", "type": "object", "properties": {"b": {"title": "B"}, "a": {}}}
    assert list(ToolDefinition("a", "", parameters, answer).parameters.items()) == list(parameters.items())


def test_of_with_parameters() -> None:
    """A function whose schema is given still tells its name and description."""
    tool = ToolDefinition.of(answer, parameters={"type": "object"})
    assert (tool.name, tool.description, tool.parameters) == ("answer", "Answer.", {"type": "object"})


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ("object", "must be a JSON object"),
        ({}, 'must be a JSON Schema of type "object"'),
        ({"type": "array"}, 'must be a JSON Schema of type "object"'),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, "parameters.properties.a.type is no JSON Schema"),
        ({"type": "object", "required": "a"}, "parameters.required is no JSON Schema"),
        ({"type": "object", "properties": {"a": {"pattern": "("}}}, "is no JSON Schema"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}, "'/$defs/b' does not exist"),
        ({"type": "object", "properties": {"a": {"$ref": "https://example.org/a.json"}}}, "would have to be fetched"),
        ({"type": "object", "$schema": "https://example.org/schema"}, "Unknown meta-schema"),
        ({"type": "object", "properties": {"a": {"default": float("inf")}}}, ".properties.a.default is inf"),
        ({"type": "object", "properties": {"a": {"const": (1, 2)}}}, "is a tuple"),
    ],
)
def test_what_is_no_schema(parameters: Any, told: str) -> None:
    """Parameters that are no JSON Schema of objects are refused at once; the place inside is named."""
    for make in (
        ToolDefinition,
        lambda name, _, given, function: ToolDefinition.of(function, name=name, parameters=given),
    ):
        with pytest.raises(InvalidToolSchemaError, match='tool "a"') as caught:
            make("a", "", parameters, answer)
        assert told in str(caught.value)


def test_drafts() -> None:
    """Drafts before 2020-12 are read as what they say they are."""
    parameters = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "definitions": {"a": {"type": "string"}},
        "properties": {"x": {"$ref": "#/definitions/a"}},
    }
    assert ToolDefinition("a", "", parameters, answer).parameters == parameters


def no_dict() -> str: ...  # type: ignore[empty-body]
def two(arguments: dict[str, Any], more: int) -> str: ...  # type: ignore[empty-body]
def with_context(arguments: dict[str, Any], *, context: ToolContext, more: int = 1) -> str: ...  # type: ignore[empty-body]
def unresolved(arguments: dict[str, Any], more: NotThere = None) -> str: ...  # type: ignore  # noqa: F821


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"name": ""}, "non-empty string"),
        ({"name": None}, "non-empty string"),
        ({"name": "\ud800"}, "that UTF-8 can spell"),
        ({"description": None}, "its description is None"),
        ({"description": "\ud800"}, "half of a surrogate pair"),
        ({"function": None}, "its function is None"),
        ({"function": no_dict}, "must take the arguments as one dict"),
        ({"function": two}, "must take the arguments as one dict"),
        ({"function": unresolved}, "parameter more cannot be resolved"),
        ({"max_result": 0}, "max_result must be a positive number of bytes"),
        ({"max_result": True}, "max_result must be a positive number of bytes"),
    ],
)
def test_what_is_no_tool(given: dict[str, Any], told: str) -> None:
    """Names, descriptions, functions and settings that cannot be are refused at once."""
    whole: Any = {"name": "a", "description": "", "parameters": {"type": "object"}, "function": answer, **given}
    with pytest.raises(InvalidToolSchemaError) as caught:
        ToolDefinition(**whole)
    assert told in str(caught.value)


def test_functions_that_take_a_dict() -> None:
    """A context by name, and parameters with defaults, may stand beside the dict; builtins need not say anything."""
    for function in (with_context, dict, str, lambda arguments: "", print):
        if not isinstance(function, type):
            ToolDefinition("a", "", {"type": "object"}, function)


def test_libraries_are_loaded_when_used() -> None:
    """The registry alone loads neither pydantic nor the JSON Schema library; each comes with its first kind of tool."""
    code = (
        "import sys\n"
        "from foreword import SystemPrompt, ToolDefinition, ToolRegistry\n"
        "tools = ToolRegistry(SystemPrompt())\n"
        "heavy = lambda: sorted({'pydantic', 'jsonschema_rs', 'anyio', 'asyncio'} & set(sys.modules))\n"
        "print(heavy())\n"
        "tools.register(ToolDefinition('a', '', {'type': 'object'}, print))\n"
        "print(heavy())\n"
        "@tools.register\n"
        "def b() -> None: ...\n"
        "print('pydantic' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n['jsonschema_rs']\nTrue\n"
