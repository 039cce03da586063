"""The configuration of a `SystemPrompt`, checked as a whole: every fault is told at once.

A plain class, not a pydantic model: `import foreword` and a first prompt must not pay for one. The seeds' camelCase
names are accepted as aliases.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, cast

from foreword.errors import ConfigFault, InvalidConfigError, did_you_mean
from foreword.kernel.names import shortened
from foreword.prompt.contributions import TOOL_ORDER_REST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Unpack

__all__ = ["PromptLimits", "SystemPromptConfig"]

HARNESS_IDENTITY: Final = "You are an AI agent powered by DeepSeek Harness."
"""The seeds' identity sentence; used only where ``include_harness_identity`` asks for it."""

_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class PromptLimits:
    """Upper bounds in UTF-8 bytes: of one text, of one variable's value, of a rendered prompt or snapshot."""

    text: int = 4 * _MIB
    value: int = 4 * _MIB
    rendered: int = 16 * _MIB


class ConfigFields(TypedDict, total=False):
    """The fields of a `SystemPromptConfig`, in either spelling."""

    identity: str | None
    include_harness_identity: bool | None
    include_runtime_context: bool
    persona: str | Path
    tool_order: Sequence[str] | None
    section_ties: Literal["registration", "name"]
    limits: PromptLimits
    includeHarnessIdentity: bool | None
    includeRuntimeContext: bool
    toolOrder: Sequence[str] | None


_ALIASES: Final = {
    "includeHarnessIdentity": "include_harness_identity",
    "includeRuntimeContext": "include_runtime_context",
    "toolOrder": "tool_order",
}


class SystemPromptConfig:
    """How a `SystemPrompt` is set up. Immutable.

    Args:
        identity: the text of the section ``harness:identity`` (order −100); None for no such section.
        include_harness_identity: True gives the section the seeds' sentence where ``identity`` is None, False leaves it
            out; None (the default) is True only for a prompt that is mounted as a service.
        include_runtime_context: False keeps every runtime context out, and asks none.
        persona: the text of the section ``deployment:persona`` (order 0), a template; a `Path` is read once.
        tool_order: tool names in the order in which the model gets them, with one ``"<unlisted-tools>"`` where the
            others go, by name; None orders all by name.
        section_ties: what decides between equal orders, of sections and contexts: order of registration, or the name.
        limits: upper bounds of texts, values and prompts.

    Raises:
        InvalidConfigError: all faults of the fields at once.
    """

    __slots__ = (
        "identity",
        "include_harness_identity",
        "include_runtime_context",
        "limits",
        "persona",
        "section_ties",
        "tool_order",
    )

    identity: str | None
    include_harness_identity: bool | None
    include_runtime_context: bool
    persona: str | Path
    tool_order: tuple[str, ...] | None
    section_ties: Literal["registration", "name"]
    limits: PromptLimits

    def __init__(self, **fields: Unpack[ConfigFields]) -> None:
        given: dict[str, object] = dict(fields)
        faults = [*_unify_spellings(given), *_check(given)]
        if faults:
            raise InvalidConfigError(faults)
        order = given.get("tool_order")
        given["tool_order"] = None if order is None else tuple(cast("Sequence[str]", order))
        for name, default in _DEFAULTS.items():
            object.__setattr__(self, name, given.get(name, default))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a SystemPromptConfig cannot be changed; make another one with {name}=…")

    def __copy__(self) -> SystemPromptConfig:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> SystemPromptConfig:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _config_of, ({name: getattr(self, name) for name in _DEFAULTS},)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SystemPromptConfig) and all(
            getattr(self, name) == getattr(other, name) for name in _DEFAULTS
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        told = (f"{name}={getattr(self, name)!r}" for name in _DEFAULTS if getattr(self, name) != _DEFAULTS[name])
        return f"SystemPromptConfig({', '.join(told)})"


_DEFAULTS: Final[dict[str, Any]] = {
    "identity": None,
    "include_harness_identity": None,
    "include_runtime_context": True,
    "persona": "",
    "tool_order": None,
    "section_ties": "registration",
    "limits": PromptLimits(),
}


def _config_of(fields: ConfigFields) -> SystemPromptConfig:
    """Make a configuration from its fields; what pickling calls."""
    return SystemPromptConfig(**fields)


def _unify_spellings(given: dict[str, object]) -> list[ConfigFault]:
    faults: list[ConfigFault] = []
    for alias, name in _ALIASES.items():
        if alias in given and name in given:
            faults.append(ConfigFault("invalid_config", alias, f"is the same field as {name}; give one of them"))
        elif alias in given:
            given[name] = given.pop(alias)
    return faults


def _check(given: dict[str, object]) -> list[ConfigFault]:
    faults: list[ConfigFault] = []
    for name, value in given.items():
        if name in _ALIASES:
            continue  # given in both spellings: told already
        if name not in _CHECKS:
            faults.append(
                ConfigFault("invalid_config", name, f"is no field; {did_you_mean(name, _DEFAULTS, 'fields')}")
            )
        elif not _CHECKS[name][0](value):
            faults.append(ConfigFault("invalid_config", name, f"must be {_CHECKS[name][1]}, not {shortened(value)}"))
        elif name == "tool_order" and value is not None:
            faults += _check_tool_order(cast("Sequence[str]", value))
    if given.get("include_harness_identity") is False and given.get("identity"):
        why = "gives a text that include_harness_identity=False leaves out; drop one of the two"
        faults.append(ConfigFault("invalid_config", "identity", why))
    return faults


def _check_tool_order(order: Sequence[str]) -> list[ConfigFault]:
    """A name listed twice is told first, as in the seeds; then the missing rest marker."""
    twice = sorted({name for name in order if order.count(name) > 1})
    if twice:
        listed = ", ".join(f'"{name}"' for name in twice)
        return [ConfigFault("tool_order_duplicate", "tool_order", f"lists {listed} more than once")]
    if TOOL_ORDER_REST not in order:
        why = f'must contain "{TOOL_ORDER_REST}" once, where the tools go that it does not list'
        return [ConfigFault("tool_order_missing_rest", "tool_order", why)]
    return []


def _is_names(value: object) -> bool:
    return value is None or (
        isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in cast("list[object]", value))
    )


def _is_limits(value: object) -> bool:
    if not isinstance(value, PromptLimits):
        return False
    numbers = cast("tuple[object, ...]", (value.text, value.value, value.rendered))
    return all(isinstance(number, int) and not isinstance(number, bool) and number > 0 for number in numbers)


_CHECKS: Final[dict[str, tuple[Callable[[object], bool], str]]] = {
    "identity": (lambda value: value is None or isinstance(value, str), "a string or None"),
    "include_harness_identity": (lambda value: value is None or isinstance(value, bool), "True, False or None"),
    "include_runtime_context": (lambda value: isinstance(value, bool), "True or False"),
    "persona": (lambda value: isinstance(value, (str, Path)), "a string or a Path"),
    "tool_order": (_is_names, "a list of tool names, or None"),
    "section_ties": (lambda value: value in ("registration", "name"), '"registration" or "name"'),
    "limits": (_is_limits, "a PromptLimits of positive whole numbers"),
}
