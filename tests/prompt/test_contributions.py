"""What can be a provider, how it is called, and what is detached from whoever hands it over."""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
import pickle
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import pytest
from tests.support.short import facts, listener, names, tool

from foreword import (
    AssembleContext,
    InvalidToolSchemaError,
    ListenerError,
    ModelRef,
    NotAStringError,
    Placeholder,
    ProviderFailedError,
    SystemPrompt,
    ToolProviderResult,
    ToolSchema,
)

CONTEXT = AssembleContext(model=ModelRef("acme", "m-1"))


def told(context: AssembleContext) -> str:
    return "none" if context.model is None else context.model.name


# Signatures


def no_parameters() -> str:
    return "nothing"


def required(context: AssembleContext) -> str:
    return told(context)


def positional_only(context: AssembleContext, /) -> str:
    return told(context)


def with_default(context: AssembleContext | None = None) -> str:
    return "nothing" if context is None else told(context)


def required_and_default(context: AssembleContext, prefix: str = "m: ") -> str:
    return prefix + told(context)


def star_arguments(*arguments: Any) -> str:
    return f"{len(arguments)} arguments"


def required_and_star(context: AssembleContext, *arguments: Any, **options: Any) -> str:
    return f"{told(context)} and {len(arguments)}"


def keyword_only_with_default(*, name: str = "nothing") -> str:
    return name


def star_options(**options: Any) -> str:
    return f"{len(options)} options"


class Holder:
    def __init__(self, word: str = "held") -> None:
        self.word = word

    def bare(self) -> str:
        return self.word

    def asking(self, context: AssembleContext) -> str:
        return f"{self.word} {told(context)}"

    def defaulting(self, context: AssembleContext | None = None) -> str:
        return self.word if context is None else told(context)

    @classmethod
    def of_class(cls, context: AssembleContext) -> str:
        return f"{cls.__name__} {told(context)}"

    @staticmethod
    def of_nobody(context: AssembleContext) -> str:
        return told(context)

    def __call__(self, context: AssembleContext) -> str:
        return f"called {told(context)}"


class DefaultingCall:
    def __call__(self, context: AssembleContext | None = None) -> str:
        return "nothing" if context is None else told(context)


class BareCall:
    def __call__(self) -> str:
        return "called"


class Text(str):
    """A class is callable too: called without arguments it gives an empty text."""


def wrapping(function: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(function)
    def wrapper(*arguments: Any) -> str:
        return f"wrapped {function(*arguments)}"

    return wrapper


PROVIDERS: dict[str, tuple[Callable[..., Any], str]] = {
    "no parameters": (no_parameters, "nothing"),
    "one required": (required, "m-1"),
    "positional only": (positional_only, "m-1"),
    "a default": (with_default, "nothing"),
    "required, then a default": (required_and_default, "m: m-1"),
    "*args": (star_arguments, "0 arguments"),
    "required, then *args": (required_and_star, "m-1 and 0"),
    "keyword-only": (keyword_only_with_default, "nothing"),
    "**kwargs": (star_options, "0 options"),
    "lambda": (lambda: "lambda", "lambda"),
    "lambda of the context": (lambda context: told(context), "m-1"),
    "partial, none left": (functools.partial(required, CONTEXT), "m-1"),
    "partial, one left": (functools.partial(required_and_default, prefix=""), "m-1"),
    "bound method": (Holder().bare, "held"),
    "bound method of the context": (Holder().asking, "held m-1"),
    "bound method with a default": (Holder().defaulting, "held"),
    "class method": (Holder.of_class, "Holder m-1"),
    "static method": (Holder.of_nobody, "m-1"),
    "callable object": (Holder(), "called m-1"),
    "callable object without parameters": (BareCall(), "called"),
    "callable object with a default": (DefaultingCall(), "nothing"),
    "builtin method": ("text".upper, "TEXT"),
    "builtin method with a default": ("a b".title, "A B"),
    "a class": (Text, ""),
    "wrapper": (wrapping(no_parameters), "wrapped nothing"),
    "wrapper with a default": (wrapping(with_default), "wrapped nothing"),
    "partial with a default": (functools.partial(with_default), "nothing"),
    "wrapper of the context": (wrapping(required), "wrapped m-1"),
}


@pytest.mark.parametrize("how", PROVIDERS)
def test_a_provider_gets_the_context_if_it_must_have_it(how: str) -> None:
    """The context is passed when the first parameter is positional and required, and not otherwise."""
    provider, expected = PROVIDERS[how]
    prompt = SystemPrompt()
    prompt.section("s", provider, order=1)
    prompt.context("c", provider, order=1)
    prompt.variable("v", provider)
    assembly = prompt.assemble_sync(CONTEXT)
    assert assembly.sections.named("s").text == expected
    assert assembly.contexts.named("c").text == expected
    assert assembly.variables["v"] == expected


def test_conditions_and_tool_providers_are_called_alike() -> None:
    """A tool provider with or without parameter, sync or async, is called as a text's provider is."""
    prompt = SystemPrompt()

    async def of_the_context(context: AssembleContext) -> ToolProviderResult:
        return ToolProviderResult([tool(told(context))])

    prompt.tools(lambda: ToolProviderResult([tool("bare")]))
    prompt.tools(of_the_context)
    assert names(prompt.render_sync(CONTEXT).tools) == ["bare", "m-1"]


# Async providers


async def async_function() -> str:
    return "async"


async def async_of_the_context(context: AssembleContext) -> str:
    return f"async {told(context)}"


class AsyncHolder:
    async def method(self, context: AssembleContext) -> str:
        return f"method {told(context)}"

    async def __call__(self) -> str:
        return "object"

    @classmethod
    async def of_class(cls) -> str:
        return cls.__name__


ASYNC_PROVIDERS: dict[str, tuple[Callable[..., Any], str]] = {
    "function": (async_function, "async"),
    "function of the context": (async_of_the_context, "async m-1"),
    "partial": (functools.partial(async_of_the_context, CONTEXT), "async m-1"),
    "partial of partial": (functools.partial(functools.partial(async_of_the_context), CONTEXT), "async m-1"),
    "method": (AsyncHolder().method, "method m-1"),
    "class method": (AsyncHolder.of_class, "AsyncHolder"),
    "callable object": (AsyncHolder(), "object"),
    "partial of a callable object": (functools.partial(AsyncHolder()), "object"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("how", ASYNC_PROVIDERS)
async def test_every_async_callable_is_awaited(how: str) -> None:
    """Async functions, methods, partials and objects are known as such when they are registered, and awaited."""
    provider, expected = ASYNC_PROVIDERS[how]
    prompt = SystemPrompt()
    prompt.section("s", provider, order=1)
    prompt.context("c", provider, order=1)
    prompt.variable("v", provider)
    assembly = await prompt.assemble(CONTEXT)
    assert assembly.sections.named("s").text == expected
    assert assembly.contexts.named("c").text == expected
    assert assembly.variables["v"] == expected


def sync_giving_a_coroutine() -> Any:
    return async_function()


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["section", "context", "variable", "tools"])
async def test_a_sync_provider_of_an_awaitable_is_told_to_become_async(kind: str) -> None:
    """A plain function that gives an awaitable is refused with "make it async", and nobody warns of it later."""
    prompt = SystemPrompt()
    if kind in ("section", "context"):
        getattr(prompt, kind)("x", sync_giving_a_coroutine, order=1)
    elif kind == "variable":
        prompt.variable("x", sync_giving_a_coroutine)
    else:
        prompt.tools(sync_giving_a_coroutine)
    with pytest.raises(ProviderFailedError, match="make it async") as caught:
        await prompt.render()
    assert [failure.kind for failure in caught.value.failures] == ["not_a_string"]


# Answers


class Color(StrEnum):
    RED = "red"


class Loud(str):
    def __str__(self) -> str:
        return "LOUD"

    def __format__(self, spec: str) -> str:
        return "LOUD"


def test_subclasses_of_str_become_plain_strings() -> None:
    """A text or value counts by its characters, however its class likes to print itself."""
    prompt = SystemPrompt()
    prompt.section("a", Loud("quiet"), order=1)
    prompt.section("b", lambda: Loud("{{v}} {{w}}"), order=2)
    prompt.variable("v", Color.RED)
    prompt.variable("w", lambda: Loud("calm"))
    assembly = prompt.assemble_sync()
    assert prompt.render_sync().text == "quiet\n\nred calm"
    assert {type(value) for value in assembly.variables.values()} == {str}
    assert {type(section.text) for section in assembly.sections} == {str}


@pytest.mark.parametrize("answer", [None, 5, b"bytes", ["a"], True], ids=repr)
def test_a_text_provider_answers_with_a_string(answer: object) -> None:
    """A section's provider must give a string; None is one for variables only."""
    prompt = SystemPrompt()
    prompt.section("s", lambda: answer, order=1)  # type: ignore[arg-type, return-value]
    with pytest.raises(ProviderFailedError) as caught:
        prompt.render_sync()
    (failure,) = caught.value.failures
    assert (failure.entry.name, failure.kind, failure.error) == ("s", "not_a_string", "NotAStringError")
    assert isinstance(caught.value.__cause__, NotAStringError)


@pytest.mark.parametrize("answer", [5, b"bytes", 1.5], ids=repr)
def test_a_variable_s_provider_answers_with_a_string_or_none(answer: object) -> None:
    """A variable's provider gives a string, or None for "no value this time"; numbers are not turned into text."""
    prompt = SystemPrompt()
    prompt.variable("v", lambda: answer)  # type: ignore[arg-type, return-value]
    with pytest.raises(ProviderFailedError, match='variable "v" of main'):
        prompt.render_sync()


# Tools


SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


def test_parameters_are_detached() -> None:
    """What is done to the dict that was handed over, at any depth, does not reach the schema."""
    parameters = copy.deepcopy(SCHEMA)
    schema = ToolSchema("t", "", parameters)  # type: ignore[arg-type]
    parameters["properties"]["path"]["type"] = "integer"  # type: ignore[index]
    parameters["required"].append("mode")  # type: ignore[union-attr, attr-defined]
    assert schema.parameters == SCHEMA


def test_parameters_are_immutable_json() -> None:
    """A schema's parameters cannot be changed in place at any depth; json and pickle take them, keys in order."""
    given = {"z": 1, "a": [{"y": 2, "b": None}]}
    parameters: Any = ToolSchema("t", "", given).parameters  # type: ignore[arg-type]
    assert json.dumps(parameters) == json.dumps(given)
    assert pickle.loads(pickle.dumps(parameters)) == given
    for change in (
        lambda: parameters.update(z=2),
        lambda: parameters["a"].append(1),
        lambda: parameters["a"][0].pop("y"),
        lambda: parameters["a"].__iadd__([1]),
        lambda: parameters.__ior__({"z": 2}),
    ):
        with pytest.raises(TypeError, match="cannot be changed in place"):
            change()
    assert parameters == given


def test_a_listener_cannot_reach_into_another_assembly() -> None:
    """A listener that edits parameters in place fails, naming itself; the provider's schema is as it was."""
    prompt = SystemPrompt()
    schema = ToolSchema("t", "", SCHEMA)  # type: ignore[arg-type]
    prompt.tools([schema])
    change = prompt.on_assemble(listener(lambda assembly: assembly.tools[0].parameters.update(x=1)))  # type: ignore[attr-defined]
    with pytest.raises(ListenerError, match="cannot be changed in place"):
        prompt.render_sync()
    change.close()
    assert prompt.render_sync().tools == (schema,)


BAD_PARAMETERS: dict[str, tuple[Any, str]] = {
    "no dict": ([], "must be a JSON object"),
    "none": (None, "must be a JSON object"),
    "a set": ({"a": {"b": {1}}}, r"parameters\.a\.b is a set"),
    "a tuple": ({"a": (1,)}, r"parameters\.a is a tuple"),
    "a key": ({"a": [{1: 2}]}, r"parameters\.a\[0\] has the key 1"),
    "not a number": ({"a": float("nan")}, r"parameters\.a is nan"),
    "too large": ({"a": 2**53}, r"parameters\.a is an integer beyond"),
    "negative zero": ({"a": -0.0}, r"parameters\.a is −0\.0"),
    "a surrogate": ({"a": "\ud800"}, r"parameters\.a holds a lone surrogate"),
}


@pytest.mark.parametrize("how", BAD_PARAMETERS)
def test_parameters_must_be_json(how: str) -> None:
    """Parameters that are no JSON object are refused when the schema is made, naming tool and path."""
    parameters, message = BAD_PARAMETERS[how]
    with pytest.raises(InvalidToolSchemaError, match=message) as caught:
        ToolSchema("bash", "", parameters)
    assert "bash" in str(caught.value)


BAD_TOOLS: dict[str, Any] = {
    "a dict": [{"name": "bash"}],
    "no list": 5,
    "none": None,
    "a string": "bash",
    "an empty name": [ToolSchema("", "", {})],
    "a name that is no string": [ToolSchema(5, "", {})],  # type: ignore[arg-type]
    "a description that is no string": [ToolSchema("bash", None, {})],  # type: ignore[arg-type]
    "a bare schema": ToolSchema("bash", "", {}),
}


@pytest.mark.parametrize("how", BAD_TOOLS)
def test_static_tools_are_checked_at_the_call(how: str) -> None:
    """A static list is held to what tools must be when it is registered, and the owner is named."""
    prompt = SystemPrompt()
    with pytest.raises(InvalidToolSchemaError, match="of files") as caught:
        prompt.owner("files").tools(BAD_TOOLS[how])
    assert caught.value.kind == "invalid_tool_schema"
    assert prompt.render_sync().tools == ()


@pytest.mark.parametrize("how", BAD_TOOLS)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_provided_tools_are_checked_at_the_assembly(how: str, is_async: bool) -> None:
    """What a provider returns is held to the same; the failure names provider and owner."""
    prompt = SystemPrompt()

    def gives() -> Any:
        return BAD_TOOLS[how]

    async def gives_later() -> Any:
        return BAD_TOOLS[how]

    prompt.owner("files").tools(gives_later if is_async else gives)
    with pytest.raises(ProviderFailedError, match="of files") as caught:
        prompt.render_sync()
    (failure,) = caught.value.failures
    assert failure.kind == "invalid_tool_schema"
    assert failure.entry.kind == "tool provider"


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("known", [5, [5], "bash", [["nested"]]], ids=repr)
def test_known_names_are_a_list_of_names(known: Any, is_async: bool) -> None:
    """Known names that are no collection of strings are the provider's failure, with nothing of ours around it."""
    prompt = SystemPrompt()

    async def gives_later() -> ToolProviderResult:
        return ToolProviderResult([], known)

    prompt.tools(gives_later if is_async else lambda: ToolProviderResult([], known))
    with pytest.raises(ProviderFailedError) as caught:
        prompt.render_sync()
    assert [failure.entry.kind for failure in caught.value.failures] == ["tool provider"]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_failing_generator_of_schemas_is_its_provider_s_failure(is_async: bool) -> None:
    """Schemas may come from a generator; one that raises fails its provider, sync or async."""
    prompt = SystemPrompt()

    def schemas() -> Any:
        yield tool("a")
        raise OSError("gone")

    async def gives_later() -> ToolProviderResult:
        return ToolProviderResult(schemas())

    prompt.tools(gives_later if is_async else lambda: ToolProviderResult(schemas()))
    with pytest.raises(ProviderFailedError, match="OSError: gone") as caught:
        prompt.render_sync()
    assert isinstance(caught.value.__cause__, OSError)


def test_tools_come_in_several_shapes() -> None:
    """A list, a tuple, a generator and a result are all taken, as value and as answer."""
    shapes: list[Callable[[], Any]] = [
        lambda: [tool("t")],
        lambda: (tool("t"),),
        lambda: ToolProviderResult([tool("t")]),
        lambda: ToolProviderResult(iter([tool("t")]), known_names=iter(["t", "u"])),
    ]
    for shape in shapes:
        for given in (shape, shape()):
            prompt = SystemPrompt()
            prompt.tools(given)
            assert facts(prompt) == facts(prompt) == ("", "", ["t"])


def test_provider_results_may_be_mutated_afterwards() -> None:
    """What a provider does to its answer after giving it does not reach an assembly; the next one sees it."""
    prompt = SystemPrompt(tool_order=["b", "<unlisted-tools>"])
    schemas, known = [tool("a")], ["a", "b"]
    prompt.tools(lambda: ToolProviderResult(schemas, known))
    first = prompt.assemble_sync()
    second = prompt.assemble_sync()
    schemas[:] = [tool("a"), tool("b")]
    known.append("c")
    assert names(first.tools) == names(second.tools) == ["a"]
    assert names(prompt.assemble_sync().tools) == ["b", "a"]
    schemas[0] = tool("z")
    assert names(prompt.assemble_sync().tools) == ["b", "z"]


def test_one_answer_given_again_is_checked_against_what_it_holds_now() -> None:
    """A provider that hands out one and the same list each time may put something unfit into it later: that is told."""
    prompt = SystemPrompt()
    schemas: list[Any] = [tool("a")]
    prompt.tools(lambda: schemas)
    assert names(prompt.render_sync().tools) == ["a"]
    schemas[0] = "a"
    with pytest.raises(ProviderFailedError):
        prompt.render_sync()


# Placeholders and results are values


def test_values_compare_by_content_and_pickle() -> None:
    """Schemas, results and placeholders are frozen values: equal when their content is, and fit for pickling."""
    values = [ToolSchema("t", "d", SCHEMA), Placeholder("x"), ToolProviderResult((tool("t"),), ("t",))]  # type: ignore[arg-type]
    for value in values:
        assert pickle.loads(pickle.dumps(value)) == value
        with pytest.raises(AttributeError):
            setattr(value, dataclasses.fields(value)[0].name, "x")


def test_an_unnamed_callable_can_be_a_provider() -> None:
    """Objects without a name of their own, partials among them, get one in messages."""
    prompt = SystemPrompt()
    prompt.tools(functools.partial(lambda: 5))  # type: ignore[arg-type, return-value]
    with pytest.raises(ProviderFailedError, match='tool provider "') as caught:
        prompt.render_sync()
    assert 'tool provider ""' not in str(caught.value)


def test_tools_of_one_name_are_all_there() -> None:
    """Tool names need not be unique: equal ones keep the order in which they were collected."""
    prompt = SystemPrompt()
    agent = prompt.scope("agent")
    agent.tools([tool("t", "near")])
    prompt.tools([tool("t", "far")])
    assert [each.description for each in agent.render_sync().tools] == ["far", "near"]
