"""FW105: another process makes another prompt: another hash seed, order of plugins, clock, or just another process.

Only ``foreword lint --deep`` has runs of other processes to compare.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foreword.explain.lint.finding import Finding, Severity
from foreword.explain.lint.rule import Reads, Rule
from foreword.explain.lint.scanning import change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foreword.explain.lint.processes import Piece, Run
    from foreword.explain.lint.survey import Survey

_WAY_OUT = "sort what comes from sets and folders, give ties an order, and keep what changes in runtime contexts"


def find(survey: Survey) -> Iterator[Finding]:
    """Compare each run with the first, branch by branch; of each entry the first difference is told."""
    if not survey.runs:
        return
    first, *others = survey.runs
    told: set[tuple[str, str]] = set()
    for run in others:
        for piece, what in _differences(first, run):
            if (piece.kind, piece.name) not in told:
                told.add((piece.kind, piece.name))
                message = f'{piece.kind} "{piece.name}" {what}'
                yield Finding(
                    RULE.code, RULE.severity, piece.owner, piece.scope, piece.source, message, _WAY_OUT, piece.name
                )


def _differences(first: Run, other: Run) -> Iterator[tuple[Piece, str]]:
    before, after = ({(each.branch, each.kind, each.name): each for each in run.pieces} for run in (first, other))
    for key in dict.fromkeys([*before, *after]):
        if key not in after:
            yield before[key], f"is not there {other.variation}"
        elif key not in before:
            yield after[key], f"is there only {other.variation}"
        elif before[key].digest != after[key].digest:
            yield before[key], f"has another text {other.variation}: {_how(before[key].shown, after[key].shown)}"
    common_before, common_after = [key for key in before if key in after], [key for key in after if key in before]
    for one, other_key in zip(common_before, common_after, strict=True):
        if one != other_key:
            yield before[one], f"stands at another place {other.variation}"
            return


def _how(before: str, after: str) -> str:
    return "how is sensitive" if before == after else change(before, after)


RULE = Rule(
    "FW105",
    "differs-between-processes",
    Severity.ERROR,
    Reads.PROCESSES,
    "text or tools that differ between processes: hash seed, order of plugins, clock; only with --deep",
    find,
)
