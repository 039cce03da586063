"""Tool definitions: what a model sees of a tool, the function behind it, and how it is to be called.

``ToolDefinition.of(refund, timeout=5)`` derives the schema from a function and calls it by its parameters;
``ToolDefinition("refund", "Refund an order.", {"type": "object", …}, call)`` takes a schema as it is, and hands the
function all arguments in one dict.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from foreword.errors import InvalidToolSchemaError
from foreword.kernel.names import NAME_RULE, plain_name, shortened, spellable
from foreword.prompt.contributions import ToolSchema
from foreword.prompt.text import described
from foreword.tools.result import MAX_RESULT
from foreword.tools.signature import docstring_of, name_of_function

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foreword.jsonvalue import JsonValue
    from foreword.tools.arguments import Binding

__all__ = ["ToolDefinition"]


@dataclass(frozen=True, slots=True, eq=False)
class ToolDefinition:
    """A tool. Only name, description and parameters ever reach a model.

    Attributes:
        name: what the model calls it by; which names a provider takes is the wire's business.
        description: what it does, and when to use it.
        parameters: a JSON Schema of type "object"; frozen.
        function: sync or async; takes the arguments as one dict, or by its parameters if it was made by `of`. A
            parameter annotated with `ToolContext` is filled in, and is none of the model's. A sync function runs in a
            thread, so that it does not hold up the event loop.
        timeout: seconds that a call may take; None for any time.
        sensitive: its arguments and results are to be kept from whoever looks on.
        max_result: UTF-8 bytes that a result's text may have; the rest is cut off, visibly.
        binding: how arguments are checked and the function is called; what the other fields say, unless `of` made it.
        schema: what the model sees.

    Raises:
        InvalidToolSchemaError: the name is empty, the description is no string, the parameters are no JSON Schema of
            type "object", the function does not take one dict, ``sensitive`` is no bool or ``max_result`` no number.
    """

    name: str
    description: str
    parameters: Mapping[str, JsonValue]
    function: Callable[..., Any]
    timeout: float | None = None
    sensitive: bool = False
    max_result: int = MAX_RESULT
    binding: Binding | None = field(default=None, repr=False)
    schema: ToolSchema = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check(self)
        put = object.__setattr__
        put(self, "schema", ToolSchema(self.name, self.description, self.parameters))
        put(self, "parameters", self.schema.parameters)
        if self.binding is None:
            from foreword.tools.json_schema import bound_to

            put(self, "binding", bound_to(self.name, self.parameters, self.function, {}))

    @classmethod
    def of(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        parameters: Mapping[str, JsonValue] | None = None,
        timeout: float | None = None,
        sensitive: bool = False,
        max_result: int = MAX_RESULT,
        local: Mapping[str, Any] | None = None,
    ) -> ToolDefinition:
        """A tool made from a function: name and description, and its parameters where they are not given, are its own.

        Args:
            function: without `parameters`, each of its own needs an annotation that pydantic knows;
                ``Annotated[…, Field(…)]`` counts.
            name: None for the function's.
            description: None for the docstring, without its ``Args:`` section, which describes the parameters.
            parameters: a JSON Schema of type "object"; the function then takes all arguments as one dict.
            timeout: see the class, also for the options that follow.
            sensitive: see the class.
            max_result: see the class.
            local: names that annotations may use beside those of the function's module, as of a function around it.

        Raises:
            InvalidToolSchemaError: the function does not say what it takes, or takes what JSON cannot spell.
        """
        _check_function(name, function)
        called = name_of_function(function) if name is None else name
        binding: Binding
        if parameters is None:
            from foreword.tools.schema import derive

            given: Mapping[str, JsonValue]
            given, binding, docstring = derive(called, function, dict(local or {}))
        else:
            from foreword.tools.json_schema import bound_to

            given, binding = parameters, bound_to(called, parameters, function, dict(local or {}))
            docstring = docstring_of(called, function).description
        told = docstring if description is None else description
        return cls(called, told, given, function, timeout, sensitive, max_result, binding)


def _check(tool: ToolDefinition) -> None:
    name, description, most = cast("tuple[object, object, object]", (tool.name, tool.description, tool.max_result))
    plain = plain_name(name)
    if plain is None:
        raise InvalidToolSchemaError(None, f"the name of a tool {NAME_RULE}, not {shortened(name)}")
    if not isinstance(description, str) or not spellable(description):
        what = described(description) if not isinstance(description, str) else "text with half of a surrogate pair"
        raise InvalidToolSchemaError(plain, f"its description is {what}; give a string")
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise InvalidToolSchemaError(plain, f"max_result must be a positive number of bytes, not {shortened(most)}")
    if not isinstance(cast("object", tool.sensitive), bool):
        raise InvalidToolSchemaError(plain, f"sensitive must be True or False, not {shortened(tool.sensitive)}")
    _check_function(plain, tool.function)


def _check_function(name: str | None, function: object) -> None:
    if not callable(function):
        raise InvalidToolSchemaError(name, f"its function is {described(function)}; give a function")
