"""Scenarios: read from files, one JSON object a line, and their fields, each read as the type it must have."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from foreword import JsonValue

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Answer", "Fields", "Scenario", "ScenarioError", "checked", "load", "mounting"]

Answer: TypeAlias = JsonValue


class ScenarioError(ValueError):
    """What was given is no scenario; the message is one sentence that says where and why.

    No `ForewordError`, because those are answers.
    """


@dataclass(frozen=True, slots=True)
class Scenario:
    """A configuration, the steps taken under it, and the answers recorded for them."""

    id: str
    steps: tuple[dict[str, JsonValue], ...]
    config: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    expect: tuple[Answer, ...] | None = None  # None: nothing recorded yet
    about: str = ""
    source: str = ""  # the file and line it was read from

    def __str__(self) -> str:
        about = f" ({self.about})" if self.about else ""
        return f"{self.id}{about}"


class Fields:
    """The fields of one JSON object, each read as the type it must have; what has another is a `ScenarioError`."""

    def __init__(self, values: JsonValue, where: str) -> None:
        if not isinstance(values, dict):
            raise ScenarioError(f"{where}: expected a JSON object, found {_short(values)}.")
        self.values = values
        self.where = where

    def fault(self, name: str, wanted: str) -> ScenarioError:
        """The error that a field is not what it must be."""
        found = _short(self.values[name]) if name in self.values else "nothing"
        return ScenarioError(f'{self.where}: "{name}" must be {wanted}, found {found}.')

    def text(self, name: str) -> str:
        """A string."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise self.fault(name, "a string")
        return value

    def text_or_none(self, name: str) -> str | None:
        """A string, or nothing."""
        return None if self.values.get(name) is None else self.text(name)

    def flag(self, name: str) -> bool:
        """True or false; false when absent."""
        value = self.values.get(name, False)
        if not isinstance(value, bool):
            raise self.fault(name, "true or false")
        return value

    def items(self, name: str) -> list[JsonValue]:
        """A list."""
        value = self.values.get(name)
        if not isinstance(value, list):
            raise self.fault(name, "a list")
        return value

    def items_or_none(self, name: str) -> list[JsonValue] | None:
        """A list, or nothing."""
        return None if self.values.get(name) is None else self.items(name)

    def objects(self, name: str) -> list[Fields]:
        """A list of objects."""
        return [Fields(item, f"{self.where}, {name} {at}") for at, item in enumerate(self.items(name), 1)]

    def names(self, name: str) -> list[str] | None:
        """A list of strings, or nothing."""
        found = self.items_or_none(name)
        if found is None:
            return None
        names = [item for item in found if isinstance(item, str)]
        if len(names) != len(found):
            raise self.fault(name, "a list of strings")
        return names

    def mapping(self, name: str) -> dict[str, JsonValue]:
        """An object; empty when absent."""
        value = self.values.get(name, {})
        if not isinstance(value, dict):
            raise self.fault(name, "a JSON object")
        return value

    def order(self) -> float:
        """A number, or one that JSON cannot spell."""
        value = self.values.get("order")
        if value in ("NaN", "Infinity", "-Infinity"):
            return float(value)
        if not isinstance(value, int | float):
            raise self.fault("order", 'a number, or one of "NaN", "Infinity" and "-Infinity"')
        return value


def _short(value: JsonValue, limit: int = 60) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[:limit]}…"


def load(path: str | Path) -> list[Scenario]:
    """Read the scenarios of a file, one a line; blank lines are passed over.

    Raises:
        ScenarioError: the file cannot be read, holds no scenario, or a line is none.
    """
    lines = _read(path).split("\n")  # not splitlines(): JSON strings may hold other line separators
    scenarios = [_scenario(line, f"{path}, line {at}") for at, line in enumerate(lines, 1) if line.strip()]
    if not scenarios:
        raise ScenarioError(f"{path}: holds no scenario.")
    return scenarios


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: is not UTF-8 text ({error.reason} at byte {error.start}).") from error
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read ({error.strerror or error}).") from error


def _scenario(line: str, where: str) -> Scenario:
    fields = Fields(_parsed(line, where), where)
    expect = fields.items_or_none("expect")
    scenario = Scenario(
        id=fields.text("id"),
        steps=tuple(step.values for step in fields.objects("steps")),
        config=fields.mapping("config"),
        expect=None if expect is None else tuple(expect),
        about=fields.text_or_none("about") or "",
        source=where,
    )
    return checked(scenario)


def _parsed(line: str, where: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"{where}: is not JSON ({error}).") from error
    return value


def checked(scenario: Scenario) -> Scenario:
    """See that there is one recorded answer per step, or that of a configuration which did not load.

    Raises:
        ScenarioError: there is not.
    """
    expect, steps = scenario.expect, scenario.steps
    if expect is not None and len(expect) != len(steps) and mounting(expect) is None:
        raise ScenarioError(f"{scenario.source}: {scenario.id} has {len(steps)} steps and {len(expect)} answers.")
    return scenario


def mounting(answers: Sequence[Answer]) -> Answer:
    """What kept a configuration from loading; None when it loaded."""
    first = answers[0] if len(answers) == 1 else None
    return first["mount"] if isinstance(first, dict) and "mount" in first else None
