"""Settings of a model as Anthropic's format spells them: which cannot be, and where the others go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from foreword.errors import InvalidModelSettingError
from foreword.jsonvalue import thaw
from foreword.wire.request import ModelConfig
from foreword.wire.settings import check_each

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foreword.jsonvalue import JsonValue
    from foreword.wire.profiles import MessagesProfile

__all__ = ["check_settings", "check_thinking", "spelled", "with_limit"]

_LIMIT: Final = "max_tokens"
_OURS: Final = {
    "model": "is the model's name; it stands in the config itself",
    "messages": "is the history; hand messages to the request",
    "system": "is the prompt's text; register sections",
    "tools": "are contributed; register them with the prompt or the tool registry",
    "stream": "is decided by whoever sends the request",
    "betas": 'go into a header; give the adapter headers={"anthropic-beta": "…"}',
    "max_completion_tokens": f"is called {_LIMIT} here",
}
_OBJECTS: Final = {
    "thinking": '{"type": "adaptive"}',
    "tool_choice": '{"type": "auto"}',
    "output_config": '{"effort": "low"}',
    "cache_control": '{"type": "ephemeral"}',
}
_TWICE: Final = "is given by two names, here and as {}; give it once"


def check_settings(config: ModelConfig) -> None:
    """See that a config's settings can go into a body.

    Raises:
        InvalidModelSettingError: one is not a setting but another part of the body, is of the wrong type, or is given
            twice by different names.
    """
    check_each(config, _OURS)
    for name, value in config.settings.items():
        why = _type_fault(name, value)
        if why:
            raise InvalidModelSettingError(str(config), name, why)
    given = config.settings
    if "stop" in given and "stop_sequences" in given:
        raise InvalidModelSettingError(str(config), "stop", _TWICE.format("stop_sequences"))
    output = given.get("output_config")
    if "reasoning_effort" in given and isinstance(output, dict) and "effort" in output:
        raise InvalidModelSettingError(str(config), "reasoning_effort", _TWICE.format("output_config.effort"))


def check_thinking(config: ModelConfig) -> None:
    """See that a request with tools asks for no thinking that has to be sent back: a neutral history holds no thoughts.

    Raises:
        InvalidModelSettingError: it does, so the request after the first tool call would be refused.
    """
    thinking = config.settings.get("thinking")
    if isinstance(thinking, dict) and thinking.get("type") == "enabled":
        why = (
            'is of type "enabled", and then the model must be sent its thoughts with the results of its tools, but '
            'they are not kept; give {"type": "adaptive"}, or leave it out'
        )
        raise InvalidModelSettingError(str(config), "thinking", why)


def with_limit(config: ModelConfig, profile: MessagesProfile) -> ModelConfig:
    """The config with a limit of tokens, since the format asks for one: its own, else the profile's."""
    if _LIMIT in config.settings:
        return config
    return ModelConfig(config.provider, config.model, {_LIMIT: profile.max_tokens, **config.settings})


def spelled(settings: Mapping[str, JsonValue]) -> dict[str, Any]:
    """Checked settings as they go into a body, in their order, the limit first."""
    made: dict[str, Any] = {_LIMIT: settings[_LIMIT]}
    for name, value in settings.items():
        given = thaw(value)
        match name:
            case "stop":
                made["stop_sequences"] = [given] if isinstance(given, str) else given
            case "reasoning_effort":
                made["output_config"] = {**made.get("output_config", {}), "effort": given}
            case "output_config":
                made["output_config"] = {**given, **made.get("output_config", {})}
            case _:
                made[name] = given
    return made


def _type_fault(name: str, value: JsonValue) -> str | None:
    if name in _OBJECTS and not isinstance(value, dict):
        return f"is {value!r}; give an object, as in {_OBJECTS[name]}"
    if name == "top_k" and type(value) is not int:
        return f"is {value!r}; give a number"
    if name == "stop_sequences" and not isinstance(value, list):
        return f"is {value!r}; give a list of texts"
    return None
