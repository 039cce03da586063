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
from typing import TYPE_CHECKING, Any, TypeVar

from foreword.errors import (
    ConfigFault,
    ForewordError,
    InvalidPluginConfigError,
    InvalidPluginError,
    UnresolvedAnnotationError,
)
from foreword.kernel.events import name_of
from foreword.kernel.services import Service

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Need", "PluginSpec", "plugin", "spec_of", "validated"]

F = TypeVar("F", bound="Callable[..., Any]")
_MARK = "__foreword_plugin__"


@dataclass(frozen=True, slots=True)
class Need:
    """A service that a plugin takes."""

    parameter: str
    type: type
    optional: bool


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
    """

    def mark(function: F) -> F:
        setattr(function, _MARK, _Mark(name, config))
        return function

    return mark


def spec_of(target: object) -> PluginSpec:
    """Read what a plugin is called and needs.

    Raises:
        InvalidPluginError: the target is no function (nor a service class that can be mounted).
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
    return _with_parameters(name, target, mark)


def _with_parameters(name: str, call: Callable[..., Any], mark: _Mark) -> PluginSpec:
    from foreword.kernel.context import Context  # here, since a context mounts plugins

    try:
        hints = typing.get_type_hints(call)
    except (NameError, TypeError, AttributeError) as fault:
        raise UnresolvedAnnotationError(name, "(one of them)", f"cannot be resolved: {fault}") from fault
    config, config_parameter, context_parameter = mark.config, None, None
    needs: list[Need] = []
    for parameter in inspect.signature(call).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        annotation: Any = hints.get(parameter.name)
        if annotation is None:
            raise UnresolvedAnnotationError(name, parameter.name, "has no annotation")
        if annotation is Context:
            context_parameter = parameter.name
        elif annotation is config or (config is None and parameter.name == "config"):
            config, config_parameter = annotation, parameter.name
        else:
            needs.append(_need(name, parameter.name, annotation))
    return PluginSpec(name, call, config, config_parameter, context_parameter, tuple(needs))


def _need(name: str, parameter: str, annotation: Any) -> Need:
    optional = False
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        members = [each for each in typing.get_args(annotation) if each is not type(None)]
        optional = len(members) < len(typing.get_args(annotation))
        annotation = members[0] if len(members) == 1 else annotation
    if not isinstance(annotation, type):
        raise UnresolvedAnnotationError(name, parameter, f"is annotated with {annotation}, which is no single class")
    return Need(parameter, annotation, optional)


def validated(spec: PluginSpec, raw: object) -> object:
    """A plugin's config as its body gets it: defaults filled in, everything checked.

    Raises:
        InvalidPluginConfigError: it does not fit; every fault with its path, and no values, which may be secret.
    """
    if spec.config is None:
        if raw not in (None, {}) and spec.config_parameter is None:
            fault = ConfigFault("invalid_plugin_config", "", "the plugin takes no config; drop it")
            raise InvalidPluginConfigError(spec.name, [fault])
        return raw
    if isinstance(raw, spec.config):
        return raw
    given: object = {} if raw is None else raw
    if hasattr(spec.config, "model_validate"):
        return _by_pydantic(spec, given)
    if isinstance(given, dict):
        return _by_call(spec, typing.cast("dict[str, Any]", given))
    why = f"must be a {spec.config.__qualname__}, not a {type(raw).__name__}"
    raise InvalidPluginConfigError(spec.name, [ConfigFault("invalid_plugin_config", "", why)])


def _by_pydantic(spec: PluginSpec, given: object) -> object:
    from pydantic import ValidationError  # it is there: the config's class is one of its models

    model: Any = spec.config
    try:
        return model.model_validate(given)
    except ValidationError as error:
        faults = [
            ConfigFault("invalid_plugin_config", ".".join(map(str, each["loc"])), each["msg"])
            for each in error.errors(include_input=False, include_url=False, include_context=False)
        ]
    raise InvalidPluginConfigError(spec.name, faults)  # not from the error, whose text shows the values


def _by_call(spec: PluginSpec, given: dict[str, Any]) -> object:
    make: Any = spec.config
    try:
        return make(**given)
    except ForewordError:  # it says more than we could
        raise
    except (TypeError, ValueError) as error:
        fault = ConfigFault("invalid_plugin_config", "", str(error))
        raise InvalidPluginConfigError(spec.name, [fault]) from error
