"""Settings of a model by their neutral names: what is wrong with a value, whatever the provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.errors import InvalidModelSettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foreword.jsonvalue import JsonValue
    from foreword.wire.request import ModelConfig

__all__ = ["LIMITS", "check_each"]

LIMITS = ("max_tokens", "max_completion_tokens")
"""The names of the limit of an answer's tokens."""


def check_each(config: ModelConfig, refused: Mapping[str, str]) -> None:
    """Look at each setting of a config by itself.

    Args:
        config: the config.
        refused: names that are no settings, and why.

    Raises:
        InvalidModelSettingError: the first that is refused, or whose value is of the wrong type.
    """
    for name, value in config.settings.items():
        why = refused.get(name) or _type_fault(name, value)
        if why:
            raise InvalidModelSettingError(str(config), name, why)


def _type_fault(name: str, value: JsonValue) -> str | None:
    """What is wrong with the value of a setting that we know; None if nothing is, or if we do not know it."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if name in LIMITS and not (type(value) is int and value > 0):
        return f"is {value!r}; give a positive number of tokens"
    if name in ("temperature", "top_p") and not is_number:
        return f"is {value!r}; give a number"
    if name == "reasoning_effort" and not isinstance(value, str):
        return f'is {value!r}; give a word, as in "low"'
    if name == "stop" and not _is_text_or_texts(value):
        return f"is {value!r}; give a text or a list of texts"
    return None


def _is_text_or_texts(value: JsonValue) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value))
