"""What the benchmarks say of their figures: met or missed, moved or not."""

from pathlib import Path

import pytest
from benchmarks.figures import Figures
from benchmarks.goals import Goal, verdict
from benchmarks.results import Result, compared, read, write

GOAL = Goal("a step", ("small.ms", "large.ms"), must=(2, 8), goal=(1, 4))


@pytest.mark.parametrize(
    ("small", "large", "said"),
    [
        ([1.0, 9.0, 1.0], [4.0], "goal met"),  # the median counts
        ([1.0], [4.1], "must met"),
        ([2.0], [8.0], "must met"),
        ([2.1], [1.0], "missed"),
        ([1.0], None, "not measured"),
    ],
)
def test_a_row_stands_as_its_worst_figure(small: list[float], large: list[float] | None, said: str) -> None:
    """A row of several figures has met what all of them have met."""
    figures = Figures({"small.ms": small, **({} if large is None else {"large.ms": large})})
    assert verdict(GOAL, figures) == said


def result(**figures: list[float]) -> Result:
    named = {name.replace("_", "."): values for name, values in figures.items()}
    return Result("2026-01-01 09:00 UTC", "2 cores", {"foreword": "0.1.0"}, 3, Figures(named, {"jinja2": "no jinja2"}))


def test_a_written_result_reads_back(tmp_path: Path) -> None:
    """A later run compares with all that this one knew."""
    path = tmp_path / "results" / "run.json"
    written = result(step_ms=[1.0, 1.25])
    write(written, path)
    assert read(path) == written


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": 0}'])
def test_what_is_no_result_is_refused(text: str, tmp_path: Path) -> None:
    """A file of another kind is told by its name, before anything is measured."""
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"other\.json is no result"):
        read(path)


def test_only_what_has_moved_is_told() -> None:
    """A figure has moved if the spreads of the two runs do not meet and the medians lie a tenth apart."""
    before = result(slower_ms=[1.0, 1.1], within_ms=[1.0, 2.0], little_ms=[1.0], faster_ms=[4.0, 5.0], gone_ms=[1.0])
    now = result(slower_ms=[2.0, 2.1], within_ms=[1.9], little_ms=[1.05], faster_ms=[1.0], new_ms=[1.0])
    assert told(before, now) == [("slower.ms", "worse"), ("faster.ms", "better")]


def test_what_moved_of_others_alone_is_not_told() -> None:
    """A comparison is about Foreword: its own figures, and its ratios to others, but not theirs among each other."""
    before = result(step_foreword_ms=[1.0], step_jinja2_ms=[1.0], ratio_foreword_floor_times=[1.0], read_one_ms=[1.0])
    now = result(step_foreword_ms=[2.0], step_jinja2_ms=[9.0], ratio_foreword_floor_times=[3.0], read_one_ms=[4.0])
    assert [name for name, _ in told(before, now)] == ["read.one.ms", "ratio.foreword.floor.times", "step.foreword.ms"]


def told(before: Result, now: Result) -> list[tuple[str, str]]:
    """The figures in the comparison, and what it says of each."""
    rows = [line.split("|")[1:-1] for line in compared(before, now).splitlines() if line.startswith("|")][2:]
    return [(row[0].strip(), row[-1].strip()) for row in rows]
