"""What a Python function says of itself: its name, its parameters with resolved annotations, its docstring.

One parameter may be annotated with `ToolContext`; it is filled in by us and is none of the model's.
"""

from __future__ import annotations

import inspect
import types
import typing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from foreword.errors import InvalidToolSchemaError, did_you_mean
from foreword.tools.context import ToolContext
from foreword.tools.docstring import Docstring, read_docstring

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Parameter", "Signature", "docstring_of", "name_of_function", "read_signature", "takes_one_dict"]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that a model fills in."""

    name: str
    annotation: Any
    default: Any  # `inspect.Parameter.empty` if it is required
    description: str | None
    by_position: bool  # it can be given in no other way

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes, and says that it does."""

    parameters: tuple[Parameter, ...]
    context: str | None  # the name of the parameter that is a `ToolContext`
    description: str


def name_of_function(function: Callable[..., Any]) -> str:
    """What a tool made from a function is called if nobody says otherwise.

    Raises:
        InvalidToolSchemaError: the function has no name of its own.
    """
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or not name.isidentifier():
        raise InvalidToolSchemaError(None, f"a tool needs a name, and {function!r} has none of its own; give name=…")
    return name


def docstring_of(tool: str, function: Callable[..., Any]) -> Docstring:
    """What the docstring of a function says.

    Raises:
        InvalidToolSchemaError: its ``Args:`` section cannot be read.
    """
    described = function.func if isinstance(function, partial) else function  # a partial has the docstring of its class
    text = described.__doc__ if inspect.isroutine(described) else type(described).__call__.__doc__
    try:
        return read_docstring(text)
    except ValueError as fault:
        raise InvalidToolSchemaError(tool, f"{fault}; mend it, or give parameters=… and description=…") from None


def read_signature(tool: str, function: Callable[..., Any], local: Mapping[str, Any]) -> Signature:
    """Read a function that a model is to call by its parameters.

    Args:
        tool: what the tool is called, for errors.
        function: which.
        local: names that are visible where the function is defined, beside those of its module.

    Raises:
        InvalidToolSchemaError: a parameter has no annotation, or one that cannot be resolved; there are parameters of
            any number; it yields; its docstring describes a parameter that it does not have.
    """
    _refuse_what_yields(tool, function)
    given = _inspected(tool, function).parameters.values()
    told = docstring_of(tool, function)
    context: str | None = None
    parameters: list[Parameter] = []
    for each in given:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            stars = "*" if each.kind is each.VAR_POSITIONAL else "**"
            why = f"{stars}{each.name} takes any number of arguments; name each of them, or give parameters=…"
            raise InvalidToolSchemaError(tool, why)
        if each.annotation is each.empty:
            raise InvalidToolSchemaError(tool, f"parameter {each.name} has no annotation; say which type it takes")
        annotation = _resolved(tool, function, each, local)
        if _is_context(annotation):
            context = _context(tool, each, context)
            continue
        by_position = each.kind is each.POSITIONAL_ONLY
        parameters.append(
            Parameter(each.name, annotation, each.default, told.parameters.get(each.name) or None, by_position)
        )
    _check_described(tool, told, [each.name for each in given])
    return Signature(tuple(parameters), context, told.description)


def takes_one_dict(tool: str, function: Callable[..., Any], local: Mapping[str, Any]) -> str | None:
    """See that a function takes all arguments as one dict, and give the name of its context's parameter, if it has one.

    Raises:
        InvalidToolSchemaError: it takes something else.
    """
    _refuse_what_yields(tool, function)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins do not say
        return None
    context: str | None = None
    for each in list(signature.parameters.values())[1:]:
        if each.annotation is not each.empty and _is_context(_resolved(tool, function, each, local)):
            context = _context(tool, each, context)
    try:
        signature.bind({}, **({} if context is None else {context: None}))
    except TypeError as fault:
        why = f"its function must take the arguments as one dict, since its parameters are given as a schema: {fault}"
        raise InvalidToolSchemaError(tool, why) from None
    return context


def _inspected(tool: str, function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as fault:
        why = f"its function does not say what it takes ({fault}); give parameters=…"
        raise InvalidToolSchemaError(tool, why) from None


def _refuse_what_yields(tool: str, function: Callable[..., Any]) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidToolSchemaError(tool, "its function yields; a tool gives one result, so let it return")
    if isinstance(function, type):
        raise InvalidToolSchemaError(tool, f"{function.__qualname__} is a class; register a function that uses it")


def _resolved(tool: str, function: Callable[..., Any], parameter: inspect.Parameter, local: Mapping[str, Any]) -> Any:
    holder = types.SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        hints = typing.get_type_hints(holder, _globals(function), local, include_extras=True)
    except Exception as fault:  # whatever evaluating a text can raise
        why = (
            f"the annotation of parameter {parameter.name} cannot be resolved: {fault}; import what it names at run "
            f"time, where the function is defined"
        )
        raise InvalidToolSchemaError(tool, why) from fault
    return hints[parameter.name]


def _globals(function: Any) -> dict[str, Any]:
    """The names that a function's annotations are written with."""
    while isinstance(function, partial):
        function = function.func
    plain = function if hasattr(function, "__code__") or inspect.ismethod(function) else type(function).__call__
    return getattr(inspect.unwrap(plain), "__globals__", {})


def _is_context(annotation: Any) -> bool:
    members = typing.get_args(annotation) if typing.get_origin(annotation) in (typing.Union, types.UnionType) else ()
    return annotation is ToolContext or ToolContext in members


def _context(tool: str, parameter: inspect.Parameter, found: str | None) -> str:
    if found is not None:
        raise InvalidToolSchemaError(tool, f"it takes a ToolContext twice, as {found} and {parameter.name}; drop one")
    if parameter.kind is parameter.POSITIONAL_ONLY:
        why = f"it takes its ToolContext, {parameter.name}, by position only; it is given by name"
        raise InvalidToolSchemaError(tool, why)
    return parameter.name


def _check_described(tool: str, told: Docstring, names: list[str]) -> None:
    for name in told.parameters:
        if name not in names:
            why = f'its docstring describes "{name}", which it does not take; {did_you_mean(name, names, "parameters")}'
            raise InvalidToolSchemaError(tool, why)
