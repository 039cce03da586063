"""A plugin's config against the plugin's own class: every fault at its path in the file, and no value of it shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from foreword.compose.guard import told
from foreword.errors import ForewordError, InvalidPluginConfigError
from foreword.kernel.config_keys import unknown_keys
from foreword.kernel.plugins import PluginSpec, dotted, validated

if TYPE_CHECKING:
    from foreword.compose.faults import Faults
    from foreword.compose.secrets import Secrets
    from foreword.strictyaml import Path as Way

__all__ = ["check_config"]


def check_config(spec: PluginSpec, config: object, path: Way, faults: Faults, secrets: Secrets) -> None:
    """Note what is wrong with a config: what `validated` finds, at its place in the file.

    Args:
        spec: the plugin.
        config: the config, with what expressions stand for.
        path: where it stands in the file.
        faults: where to note them.
        secrets: what the messages must not show.
    """
    unknown = unknown_keys(spec.config, config)
    for inside, message in unknown.items():
        faults.add((*path, *inside), message)
    try:
        validated(spec, config)
    except InvalidPluginConfigError as error:
        told_already = set(map(dotted, unknown))  # at the very key, which a dotted field need not lead to
        for fault in error.faults:
            if fault.field not in told_already:
                faults.add((*path, *_way(config, fault.field)), secrets.hide(fault.message))
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
