"""From a Python function to a schema and back: pydantic reads its parameters, and holds a call's arguments to them.

The schema is a function of the signature and the docstring alone, so the same function gives the same bytes on every
Python: parameters in their order, other keys sorted, no titles. Imported at the first tool made from a function.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from foreword.errors import InvalidToolSchemaError, did_you_mean
from foreword.tools.arguments import ArgumentsError, path_of
from foreword.tools.signature import read_signature

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from foreword.tools.arguments import Given
    from foreword.tools.context import ToolContext
    from foreword.tools.signature import Parameter, Signature

__all__ = ["FunctionBinding", "derive"]

_BY_NAME: Final = frozenset({"$defs", "definitions", "patternProperties", "properties"})
"""Keywords whose value holds schemas by name; a name may be ``title``."""
_VALUES: Final = frozenset({"const", "default", "discriminator", "enum", "examples"})
"""Keywords whose value is no schema."""


def derive(
    tool: str, function: Callable[..., Any], local: Mapping[str, Any]
) -> tuple[dict[str, Any], FunctionBinding, str]:
    """Derive a tool from a function.

    Args:
        tool: what it is called.
        function: which.
        local: names that are visible where it is defined, beside those of its module.

    Returns:
        Its parameters as a JSON Schema, what holds arguments to them, and its description.

    Raises:
        InvalidToolSchemaError: it does not say what it takes, or takes what JSON Schema cannot describe.
    """
    signature = read_signature(tool, function, local)
    fields = tuple(_field_of(at, each) for at, each in enumerate(signature.parameters))
    try:
        model = _model_of(fields)
        schema = model.model_json_schema(schema_generator=_Generator)
    except Exception as fault:  # an annotation may bring its own code along
        raise InvalidToolSchemaError(tool, _why_not(fields, fault)) from fault
    return _without_titles(schema), FunctionBinding(function, model, fields, signature), signature.description


class _Generator(GenerateJsonSchema):
    # a default that JSON cannot spell is left out: the parameter is optional all the same
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - as the base declares it

    def encode_default(self, dft: Any) -> Any:
        """A default as JSON; a set's in an order of its own, since not every pydantic sorts it."""
        encoded = super().encode_default(dft)
        return sorted(encoded, key=json.dumps) if isinstance(dft, (set, frozenset)) else encoded


@dataclass(frozen=True, slots=True)
class _Field:
    """A parameter as a field of a model, under another name: it may bear that of an attribute which models have."""

    key: str
    alias: str
    parameter: Parameter

    @property
    def definition(self) -> tuple[Any, Any]:
        """What makes a model's field; what the parameter's own `Field` says goes before what we say."""
        own = _own_field(self.parameter)
        description = own.description or self.parameter.description
        annotation: Any = self.parameter.annotation
        described = Annotated[annotation, Field(alias=self.alias, description=description)]
        return described, ... if self.parameter.is_required else self.parameter.default

    @property
    def has_own_default(self) -> bool:
        """Whether its default is a `Field`, which only pydantic knows how to fill in."""
        return isinstance(self.parameter.default, FieldInfo)


def _field_of(at: int, parameter: Parameter) -> _Field:
    return _Field(f"p{at}", _own_field(parameter).alias or parameter.name, parameter)


def _own_field(parameter: Parameter) -> FieldInfo:
    """What a parameter's annotation and default say of themselves."""
    if parameter.is_required:
        return FieldInfo.from_annotation(parameter.annotation)
    return FieldInfo.from_annotated_attribute(parameter.annotation, parameter.default)


def _model_of(fields: Sequence[_Field]) -> type[BaseModel]:
    definitions: dict[str, Any] = {field.key: field.definition for field in fields}
    return create_model("Arguments", __config__=ConfigDict(extra="forbid"), **definitions)


def _why_not(fields: Sequence[_Field], fault: Exception) -> str:
    """Which parameter has no schema, and why."""
    for field in fields:
        try:
            _model_of([field]).model_json_schema(schema_generator=_Generator)
        except Exception as error:  # see `derive`
            return f"parameter {field.parameter.name} has no JSON Schema: {_first_line(error)}"
    return f"its parameters have no JSON Schema: {_first_line(fault)}"


def _first_line(fault: Exception) -> str:
    message = fault.message if isinstance(fault, PydanticUserError) else str(fault)
    return (message.splitlines() or [type(fault).__name__])[0]


def _without_titles(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_titles(each) for each in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    keywords = cast("dict[str, Any]", schema).items()
    return {key: _part_without_titles(key, value) for key, value in keywords if key != "title"}


def _part_without_titles(key: str, value: Any) -> Any:
    if key in _VALUES:
        return value
    if key in _BY_NAME:
        return {name: _without_titles(each) for name, each in value.items()}
    return _without_titles(value)


@dataclass(frozen=True, slots=True)
class FunctionBinding:
    """Calls a function by its parameters."""

    function: Callable[..., Any]
    model: type[BaseModel]
    fields: tuple[_Field, ...]
    signature: Signature

    def bind(self, given: Given, context: ToolContext) -> Callable[[], Any]:
        """See `Binding.bind`. What the model left out is left to the function's own defaults."""
        try:
            checked = self.model.model_validate_json(given.json)
        except ValidationError as error:
            raise ArgumentsError.of(self._told(error)) from None
        by_position: list[Any] = []
        by_name: dict[str, Any] = {} if self.signature.context is None else {self.signature.context: context}
        for field in self.fields:
            is_given = field.key in checked.model_fields_set or field.has_own_default
            if field.parameter.by_position:
                by_position.append(getattr(checked, field.key) if is_given else field.parameter.default)
            elif is_given:
                by_name[field.parameter.name] = getattr(checked, field.key)
        return partial(self.function, *by_position, **by_name)

    def _told(self, error: ValidationError) -> Iterator[str]:
        known = [field.alias for field in self.fields]
        for each in error.errors(include_url=False, include_context=False, include_input=False):
            place = path_of(each["loc"])
            if each["type"] == "missing":
                yield f"{place}: is required"
            elif each["type"] == "extra_forbidden" and len(each["loc"]) == 1:
                yield f"{place}: is no parameter; {did_you_mean(str(each['loc'][0]), known, 'parameters')}"
            else:
                yield f"{place}: {each['msg']}"
