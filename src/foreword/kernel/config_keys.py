"""Keys of a config of which its pydantic model makes nothing: it would drop them in silence, misspelt ones with them.

A model that says what it does with further keys (``extra="allow"`` or ``"ignore"``) is left to it.
"""

from __future__ import annotations

import types
import typing
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from foreword.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Way", "unknown_keys"]

Way: TypeAlias = tuple[str | int, ...]
"""Where in a config something stands: keys and indices."""


def unknown_keys(annotation: Any, config: object) -> dict[Way, str]:
    """What is said of each unknown key of a config, by where it stands.

    Args:
        annotation: the config's class; keys are looked for in models, and in models inside them.
        config: the config, as dicts and lists.
    """
    return dict(_unknown_keys(annotation, config, ()))


def _unknown_keys(annotation: Any, config: object, path: Way) -> Iterator[tuple[Way, str]]:
    inside = [each for each in typing.get_args(annotation) if each is not type(None)]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        if len(inside) == 1:  # of several, one that takes the key may be meant
            yield from _unknown_keys(inside[0], config, path)
    elif isinstance(config, list) and inside:
        for at, item in enumerate(cast("list[object]", config)):
            yield from _unknown_keys(inside[0], item, (*path, at))
    elif isinstance(config, dict) and len(inside) == 2:
        for key, item in cast("dict[object, object]", config).items():
            yield from _unknown_keys(inside[1], item, (*path, str(key)))
    elif isinstance(config, dict) and isinstance(getattr(annotation, "model_fields", None), dict):
        yield from _unknown_to(annotation, cast("dict[object, object]", config), path)


def _unknown_to(model: Any, config: dict[object, object], path: Way) -> Iterator[tuple[Way, str]]:
    extra = model.model_config.get("extra")
    if extra not in (None, "forbid"):
        return
    way_out = "" if extra else '; if it is to be ignored, the plugin\'s class must say so: extra="ignore"'
    fields: dict[str, Any] = model.model_fields
    by_spelling = {spelling: each for name, each in fields.items() for spelling in _spellings(name, each)}
    for key, value in config.items():
        if isinstance(key, str) and key in by_spelling:
            yield from _unknown_keys(by_spelling[key].annotation, value, (*path, key))
        else:
            told = did_you_mean(str(key), by_spelling, "keys")
            yield (*path, str(key)), f"is no key of the plugin's config; {told}{way_out}"


def _spellings(name: str, field: Any) -> set[str]:
    """The keys that give a field its value, as far as they are plain names."""
    alias: Any = field.validation_alias
    choices: list[Any] = [alias, *getattr(alias, "choices", ())]
    paths = [getattr(each, "path", [None])[0] for each in choices]
    return {name, *(each for each in [field.alias, *choices, *paths] if isinstance(each, str))}
