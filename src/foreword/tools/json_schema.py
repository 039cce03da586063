"""JSON Schema for tools that are no Python functions: the only module that knows the library behind the check.

Imported at the first such tool. Nothing is ever fetched: a schema that refers to another place is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import jsonschema_rs

from foreword.errors import InvalidToolSchemaError
from foreword.jsonvalue import thaw
from foreword.prompt.contributions import ToolSchema
from foreword.tools.arguments import ArgumentsError, path_of
from foreword.tools.signature import takes_one_dict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from foreword.tools.arguments import Given
    from foreword.tools.context import ToolContext

__all__ = ["SchemaBinding", "bound_to"]


def bound_to(
    tool: str, parameters: Mapping[str, Any], function: Callable[..., Any], local: Mapping[str, Any]
) -> SchemaBinding:
    """Bind a function that takes one dict to a JSON Schema.

    Args:
        tool: what the tool is called.
        parameters: the schema: drafts up to 2020-12, which counts where ``$schema`` does not say otherwise.
        function: which.
        local: names that are visible where it is defined, beside those of its module.

    Raises:
        InvalidToolSchemaError: the parameters are no JSON Schema of type "object" (names the place inside), or the
            function takes something else.
    """
    plain = thaw(dict(ToolSchema(tool, "", parameters).parameters))
    return SchemaBinding(function, _validator(tool, plain), takes_one_dict(tool, function, local))


def _validator(tool: str, parameters: dict[str, Any]) -> Any:
    if parameters.get("type") != "object":
        why = 'parameters must be a JSON Schema of type "object": {"type": "object", "properties": {…}}'
        raise InvalidToolSchemaError(tool, why)
    try:
        return jsonschema_rs.validator_for(parameters, retriever=_refuse)
    except ValueError as fault:
        place = path_of(("parameters", *getattr(fault, "instance_path", ())))
        message = getattr(fault, "message", str(fault)).splitlines()[0]
        raise InvalidToolSchemaError(tool, f"{place} is no JSON Schema: {message}") from fault


@dataclass(frozen=True, slots=True)
class SchemaBinding:
    """Calls a function with all arguments as one dict, held to a JSON Schema."""

    function: Callable[..., Any]
    validator: Any
    context: str | None  # the name of the parameter that is a `ToolContext`

    def bind(self, given: Given, context: ToolContext) -> Callable[[], Any]:
        """See `Binding.bind`."""
        faults = [f"{path_of(each.instance_path)}: {each.message}" for each in self.validator.iter_errors(given.value)]
        if faults:
            raise ArgumentsError.of(faults)
        return partial(self.function, given.value, **({} if self.context is None else {self.context: context}))


def _refuse(address: str) -> NoReturn:
    raise ValueError(f"{address} would have to be fetched, which is never done; put what it holds into the schema")
