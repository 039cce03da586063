"""Plugins: functions that register things. What a plugin needs, its parameters say.

    @plugin(name="acme-billing", config=Config)
    def billing(config: Config, prompt: SystemPrompt) -> None: ...

A plugin is a function, an async function, or a generator (sync or async) with one ``yield`` and its teardown behind it.
Its parameters are services, found by their annotations (``X | None`` for one that may be missing), its config, and its
``Context``.
"""

from __future__ import annotations

import inspect
import types
import typing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from foreword.errors import (
    ConfigFault,
    ForewordError,
    InvalidPluginConfigError,
    InvalidPluginError,
    UnresolvedAnnotationError,
    message_of,
)
from foreword.kernel.config_keys import unknown_keys
from foreword.kernel.events import name_of
from foreword.kernel.names import NAME_RULE, plain_name, shortened
from foreword.kernel.services import Service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["Need", "PluginSpec", "copied", "dotted", "is_declared", "plugin", "spec_of", "validated"]

F = TypeVar("F", bound="Callable[..., Any]")
_MARK = "__foreword_plugin__"
_SHORTEST_SECRET = 4  # shorter texts are not blotted out of messages: that would garble them and hide nothing


@dataclass(frozen=True, slots=True)
class Need:
    """A service that a plugin takes."""

    parameter: str
    type: type
    optional: bool
    has_default: bool  # which stands when nobody provides the service


@dataclass(frozen=True, slots=True)
class PluginSpec:
    """A plugin as the kernel sees it."""

    name: str
    call: Callable[..., Any]
    config: type | None  # the class of its config
    config_parameter: str | None
    context_parameter: str | None
    needs: tuple[Need, ...]


@dataclass(frozen=True, slots=True)
class _Mark:
    name: str | None
    config: type | None


def plugin(*, name: str | None = None, config: type | None = None) -> Callable[[F], F]:
    """Declare a function to be a plugin; it stays callable as it is.

    Args:
        name: the plugin's name, which owns what it registers; None for the function's.
        config: the class of its config: a pydantic model, or any class that config objects are instances of.

    Raises:
        InvalidPluginError: when the function is declared: the name is no non-empty string that UTF-8 can spell, or the
            config is no class, or two parameters are annotated with it.
    """

    def mark(function: F) -> F:
        _check_mark(name, config, function)
        setattr(function, _MARK, _Mark(plain_name(name), config))
        return function

    return mark


def _check_mark(name: object, config: object, function: Callable[..., object]) -> None:
    if name is not None and plain_name(name) is None:
        why = f"its name {NAME_RULE}, not {shortened(name)}; without name=… it is called as its function"
        raise InvalidPluginError(name_of(function), why)
    if not isinstance(config, (type, types.NoneType)):
        why = f"its config must be a class, not {shortened(config)}; name the class that config objects are made of"
        raise InvalidPluginError(name_of(function), why)
    if config is None:
        return
    annotations: dict[str, object] = getattr(function, "__annotations__", {})
    taking = [each for each, told in annotations.items() if each != "return" and _means(told, config, function)]
    if len(taking) > 1:
        _check_first(plain_name(name) or name_of(function), "config", *taking[:2])


def _means(annotation: object, config: object, function: Callable[..., object]) -> bool:
    """Whether an annotation is the config's class, or its name; what else may stand for it, mounting finds out."""
    return annotation is config or (isinstance(annotation, str) and _globals(function).get(annotation) is config)


def is_declared(target: object) -> bool:
    """Whether something was declared to be a plugin, by `plugin`."""
    return isinstance(getattr(target, _MARK, None), _Mark)


def spec_of(target: object) -> PluginSpec:
    """Read what a plugin is called and needs.

    Raises:
        InvalidPluginError: the target is no function (nor a service class that can be mounted); or it takes its config
            or its context twice.
        UnresolvedAnnotationError: a parameter has no annotation, or one that cannot be resolved.
    """
    if isinstance(target, type) and issubclass(target, Service):
        target = target.as_plugin() or target
    if isinstance(target, type) or not callable(target):
        what = name_of(target) if callable(target) else repr(target)
        why = "is no plugin; mount a function, an async function or a generator function with one yield"
        raise InvalidPluginError(what, why)
    mark: _Mark = getattr(target, _MARK, _Mark(None, None))
    name = mark.name or name_of(target)
    try:
        parameters = list(inspect.signature(target).parameters.values())
    except ValueError as fault:
        raise InvalidPluginError(name, f"does not say which parameters it has: {fault}") from fault
    return _with_parameters(name, target, mark, parameters)


def _with_parameters(
    name: str, call: Callable[..., Any], mark: _Mark, parameters: list[inspect.Parameter]
) -> PluginSpec:
    from foreword.kernel.context import Context  # here, since a context mounts plugins

    config, config_parameter, context_parameter = mark.config, None, None
    needs: list[Need] = []
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise InvalidPluginError(name, f"takes {parameter.name} by position only; parameters are given by name")
        annotation = _annotation(name, call, parameter)
        if annotation is Context:
            _check_first(name, "context", context_parameter, parameter.name)
            context_parameter = parameter.name
        elif parameter.name == "config" or (annotation is config and config is not None):
            _check_first(name, "config", config_parameter, parameter.name)
            config, config_parameter = _config_class(name, parameter, annotation, mark.config), parameter.name
        else:
            needs.append(_need(name, parameter, annotation))
    for need in needs:  # those that stand before the parameter that tells what the config is, or may be None
        if need.type is config:
            _check_first(name, "config", need.parameter, config_parameter)
    return PluginSpec(name, call, config, config_parameter, context_parameter, tuple(needs))


def _check_first(name: str, what: str, first: str | None, second: str | None) -> None:
    """See that only one parameter takes what a plugin is given once."""
    if first is not None and second is not None:
        raise InvalidPluginError(
            name, f"takes its {what} twice, as {first} and as {second}; drop one of the parameters"
        )


def _annotation(name: str, call: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """The annotation of one parameter, resolved; that of others, and of what is returned, may be for checkers only."""
    if parameter.annotation is parameter.empty:
        raise UnresolvedAnnotationError(name, parameter.name, "has no annotation")
    holder = types.SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    try:
        return typing.get_type_hints(holder, globalns=_globals(call))[parameter.name]
    except Exception as fault:  # whatever evaluating a text can raise
        raise UnresolvedAnnotationError(name, parameter.name, f"cannot be resolved: {fault}") from fault


def _globals(call: Any) -> dict[str, Any]:
    """The names that a function's annotations are written with."""
    while isinstance(call, partial):
        call = call.func
    function = inspect.unwrap(call if hasattr(call, "__code__") or inspect.ismethod(call) else type(call).__call__)
    return getattr(function, "__globals__", {})


def _config_class(name: str, parameter: inspect.Parameter, annotation: Any, declared: type | None) -> type:
    member, _ = _single(annotation)
    found = object if member is Any else typing.get_origin(member) or member  # of `dict[str, int]` what can be checked
    if not isinstance(found, type) or found is types.UnionType:
        raise UnresolvedAnnotationError(name, parameter.name, f"is annotated with {annotation}, which is no class")
    if declared is not None and not issubclass(declared, found):
        why = f"is annotated with {found.__qualname__}, and the plugin's config is a {declared.__qualname__}"
        raise UnresolvedAnnotationError(name, parameter.name, why)
    return found if declared is None else declared


def _need(name: str, parameter: inspect.Parameter, annotation: Any) -> Need:
    has_default = parameter.default is not parameter.empty
    service, optional = _single(annotation)
    if not isinstance(service, type):
        why = f"is annotated with {annotation}, which is no single class"
        raise UnresolvedAnnotationError(name, parameter.name, why)
    return Need(parameter.name, service, optional or has_default, has_default)


def _single(annotation: Any) -> tuple[Any, bool]:
    """Of ``X | None`` the X, and that it may be None; other annotations as they are."""
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return annotation, False
    members = [each for each in typing.get_args(annotation) if each is not type(None)]
    optional = len(members) < len(typing.get_args(annotation))
    return (members[0] if len(members) == 1 else annotation), optional


def copied(raw: object) -> object:
    """A config that stays as it is when the dicts and lists that it was given in are changed later."""
    if type(raw) is dict:
        return {key: copied(value) for key, value in typing.cast("dict[object, object]", raw).items()}
    if type(raw) is list:
        return [copied(value) for value in typing.cast("list[object]", raw)]
    return raw


def validated(spec: PluginSpec, raw: object) -> object:
    """A plugin's config as its body gets it: defaults filled in, everything checked.

    Raises:
        InvalidPluginConfigError: it does not fit, or has a key that its model would drop in silence; every fault with
            its path, and no values, which may be secret.
    """
    if spec.config is None:
        if raw is not None and raw != {}:
            raise InvalidPluginConfigError(spec.name, [_fault("the plugin takes no config; drop it")])
        return None
    if isinstance(raw, spec.config):
        return copied(raw)
    given: object = {} if raw is None else copied(raw)
    if hasattr(spec.config, "model_validate"):
        return _by_pydantic(spec, given)
    if isinstance(given, dict):
        return _by_call(spec, typing.cast("dict[str, Any]", given))
    why = f"must be a {spec.config.__qualname__}, not a {type(raw).__name__}"
    raise InvalidPluginConfigError(spec.name, [_fault(why)])


def _fault(message: str, field: str = "") -> ConfigFault:
    return ConfigFault("invalid_plugin_config", field, message)


def _by_pydantic(spec: PluginSpec, given: object) -> object:
    from pydantic import ValidationError  # it is there: the config's class is one of its models

    model: Any = spec.config
    unknown = {dotted(way): why for way, why in unknown_keys(model, given).items()}
    faults = [_fault(why, field) for field, why in unknown.items()]
    try:
        config = model.model_validate(given)
    except ValidationError as error:
        faults += [
            _fault(_without_values(each["msg"], given), dotted(each["loc"]))
            for each in error.errors(include_input=False, include_url=False, include_context=False)
            if dotted(each["loc"]) not in unknown  # of a model that forbids them: told already, in better words
        ]
    else:
        if not faults:
            return config
    raise InvalidPluginConfigError(spec.name, faults)  # not from the error, whose text shows the values


def dotted(way: Iterable[str | int]) -> str:
    """A place in a config, as faults name it."""
    return ".".join(map(str, way))


def _by_call(spec: PluginSpec, given: dict[str, Any]) -> object:
    make: Any = spec.config
    try:
        return make(**given)
    except ForewordError:  # it says more than we could
        raise
    except (TypeError, ValueError) as error:
        fault = _fault(_without_values(message_of(error), given))
    raise InvalidPluginConfigError(spec.name, [fault])  # see above


def _without_values(message: str, given: object) -> str:
    """A message in which no text of a config stands: validators like to quote what they refuse."""
    for text in sorted(set(_texts(given)), key=len, reverse=True):
        if len(text) >= _SHORTEST_SECRET:
            message = message.replace(text, "…")
    return message


def _texts(given: object) -> Iterator[str]:
    if isinstance(given, dict):
        for value in typing.cast("dict[object, object]", given).values():
            yield from _texts(value)
    elif isinstance(given, (list, tuple, set, frozenset)):
        for value in typing.cast("list[object]", given):
            yield from _texts(value)
    elif isinstance(given, (str, int, float)) and not isinstance(given, bool):
        yield str(given)
    elif hasattr(given, "get_secret_value"):
        yield str(typing.cast("Any", given).get_secret_value())
