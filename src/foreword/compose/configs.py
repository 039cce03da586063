"""A plugin's config against the plugin's own class: every fault at its path in the file, and no value of it shown."""

from __future__ import annotations

import types
import typing
from typing import TYPE_CHECKING, Any, cast

from foreword.compose.guard import told
from foreword.errors import ForewordError, InvalidPluginConfigError, did_you_mean
from foreword.kernel.plugins import PluginSpec, validated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.compose.faults import Faults
    from foreword.compose.secrets import Secrets
    from foreword.strictyaml import Path as Way

__all__ = ["check_config"]


def check_config(spec: PluginSpec, config: object, path: Way, faults: Faults, secrets: Secrets) -> None:
    """Note what a plugin's class finds wrong with a config, and keys that it would silently ignore.

    Args:
        spec: the plugin.
        config: the config, with what expressions stand for.
        path: where it stands in the file.
        faults: where to note them.
        secrets: what the messages must not show.
    """
    unknown = dict(_unknown_keys(spec.config, config, ()))
    for inside, message in unknown.items():
        faults.add((*path, *inside), message)
    try:
        validated(spec, config)
    except InvalidPluginConfigError as error:
        found = [(_way(config, fault.field), fault.message) for fault in error.faults]
        for inside, message in found:
            if inside not in unknown:  # where it is told already, in better words
                faults.add((*path, *inside), secrets.hide(message))
    except ForewordError as error:
        faults.add(path, secrets.hide(str(error)))
    except Exception as error:  # a validator is the plugin's code
        faults.add(path, f"checking it failed: {told(error, secrets)}")


def _way(config: object, field: str) -> Way:
    """A dotted field as a path.

    What is no key or index of the config is a step of the validator's own, and dropped, but for the last, which may be
    a key that is missing.
    """
    way: list[str | int] = []
    steps = field.split(".") if field else []
    here: Any = config
    for step in steps:
        if isinstance(here, dict) and step in here:
            way.append(step)
        elif isinstance(here, list) and step.isdecimal() and int(step) < len(here):  # pyright: ignore[reportUnknownArgumentType]
            way.append(int(step))
        elif isinstance(here, dict) and step is steps[-1]:
            return (*way, step)
        else:
            continue
        here = cast("Any", here)[way[-1]]
    return tuple(way)


def _unknown_keys(annotation: Any, config: object, path: Way) -> Iterator[tuple[Way, str]]:
    """Keys of which a pydantic model makes nothing, where it does not say that this is meant; also of models in it."""
    inside = [each for each in typing.get_args(annotation) if each is not type(None)]
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        if len(inside) == 1:  # of several, one that takes the key may be meant
            yield from _unknown_keys(inside[0], config, path)
    elif isinstance(config, list) and inside:
        for at, item in enumerate(cast("list[object]", config)):
            yield from _unknown_keys(inside[0], item, (*path, at))
    elif isinstance(config, dict) and len(inside) == 2:
        for key, item in cast("dict[str, object]", config).items():
            yield from _unknown_keys(inside[1], item, (*path, key))
    elif isinstance(config, dict) and isinstance(getattr(annotation, "model_fields", None), dict):
        yield from _unknown_to(annotation, cast("dict[str, object]", config), path)


def _unknown_to(model: Any, config: dict[str, object], path: Way) -> Iterator[tuple[Way, str]]:
    extra = model.model_config.get("extra")
    if extra not in (None, "forbid"):
        return
    way_out = "" if extra else '; if it is to be ignored, the plugin\'s class must say so: extra="ignore"'
    fields: dict[str, Any] = model.model_fields
    by_spelling = {spelling: each for name, each in fields.items() for spelling in _spellings(name, each)}
    for key, value in config.items():
        if key not in by_spelling:
            yield (*path, key), f"is no key of the plugin's config; {did_you_mean(key, by_spelling, 'keys')}{way_out}"
        else:
            yield from _unknown_keys(by_spelling[key].annotation, value, (*path, key))


def _spellings(name: str, field: Any) -> set[str]:
    """The keys that give a field its value, as far as they are plain names."""
    alias: Any = field.validation_alias
    choices: list[Any] = [alias, *getattr(alias, "choices", ())]
    paths = [getattr(each, "path", [None])[0] for each in choices]
    return {name, *(each for each in [field.alias, *choices, *paths] if isinstance(each, str))}
