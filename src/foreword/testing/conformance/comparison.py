"""The comparison: the answers that came, against the recorded ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from foreword.testing.conformance.replay import run
from foreword.testing.conformance.scenario import ScenarioError, checked, mounting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from foreword.testing.conformance.drivers import Driver
    from foreword.testing.conformance.replay import Door
    from foreword.testing.conformance.scenario import Answer, Scenario

__all__ = ["Mismatch", "mismatches"]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One answer that is not the recorded one."""

    scenario: Scenario
    step: int  # counted from 1; 0 is the configuration
    expected: Answer
    actual: Answer

    def __str__(self) -> str:
        kind = "configuration" if self.step == 0 else f"step {self.step}: {self.scenario.steps[self.step - 1]['op']}"
        return "\n".join([f"{self.scenario}, {kind}", *_differences(self.expected, self.actual)])


def mismatches(
    scenario: Scenario, *, door: Door = "sync", driver: Driver | None = None, backend: str = "asyncio"
) -> list[Mismatch]:
    """Run a scenario (see `run`) and give every answer that differs from the recorded one.

    Errors compare by kind alone, objects whatever the order of their keys. A recorded snapshot of null says that the
    recorded system knew none: it is not compared. Where only one side's configuration loads, that is the one mismatch.
    """
    expect = _recorded(scenario)
    answers = run(scenario, door=door, driver=driver, backend=backend)
    if len(answers) != len(expect) or _mount(answers) != _mount(expect):
        return [Mismatch(scenario, 0, {"mount": _mount(expect)}, {"mount": _mount(answers)})]
    pairs = enumerate(zip(expect, answers, strict=True), 1)
    return [Mismatch(scenario, at, wanted, came) for at, (wanted, came) in pairs if _differ(wanted, came)]


def _recorded(scenario: Scenario) -> Sequence[Answer]:
    if scenario.expect is None:
        raise ScenarioError(f"{scenario.source or scenario.id}: {scenario.id} has no recorded answers.")
    return checked(scenario).expect or ()


def _mount(answers: Sequence[Answer]) -> Answer:
    return _essence(mounting(answers))


def _differ(expected: Answer, actual: Answer) -> bool:
    if isinstance(expected, dict) and isinstance(actual, dict) and expected.get("snapshot", "") is None:
        actual = {**actual, "snapshot": None}
    return _canonical(expected) != _canonical(actual)


def _canonical(answer: Answer) -> str:
    """Write an answer so that equal answers are equal texts; unlike Python, JSON tells true from 1."""
    return json.dumps(_essence(answer), sort_keys=True)


def _essence(answer: Answer) -> Answer:
    """Reduce an error, also one of an assembly's renderings, to its kind."""
    if not isinstance(answer, dict):
        return answer
    if "error" in answer:
        return {"error": answer["error"]}
    return {**answer, **{key: _essence(answer[key]) for key in ("mount", "prompt", "snapshot") if key in answer}}


def _differences(expected: Answer, actual: Answer) -> list[str]:
    """Tell two answers apart in indented lines; of two assemblies only the parts that differ."""
    if not (isinstance(expected, dict) and isinstance(actual, dict) and expected.keys() == actual.keys()):
        return _pair(expected, actual, "  ")
    lines: list[str] = []
    for key in expected:
        if _differ({key: expected[key]}, {key: actual[key]}):
            lines += [f"  {key}", *_pair(expected[key], actual[key], "    ")]
    return lines


def _pair(expected: Answer, actual: Answer, indent: str) -> list[str]:
    told = [(name, json.dumps(value, ensure_ascii=False)) for name, value in (("expected", expected), ("came", actual))]
    return [f"{indent}{name + ':':<10}{text}" for name, text in told]
