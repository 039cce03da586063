"""Findings and rules as lists, as JSON, and the rules as a page of the documents."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from foreword.cli.as_json import without_secrets
from foreword.cli.faults import in_one_line
from foreword.cli.heading import count, heading
from foreword.cli.table import Column, table
from foreword.cli.terminal import Piece, warn
from foreword.cli.wrapping import wrapped
from foreword.explain.lint.engine import NO_PROCESSES
from foreword.explain.lint.finding import Severity
from foreword.explain.lint.rule import Reads
from foreword.explain.lint.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from foreword.cli.hiding import Hiding
    from foreword.cli.terminal import Row, Screen
    from foreword.explain.lint.engine import Report
    from foreword.explain.lint.finding import Finding
    from foreword.explain.lint.rule import Rule

__all__ = ["report_document", "report_rows", "rules_document", "rules_page", "rules_rows", "tell_limits"]

_STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
_GROUPS: Final = {
    "1": "What breaks a cached prefix",
    "2": "References and structure",
    "3": "Tools and their guidance",
    "4": "Characters and secrets",
    "5": "What is paid for twice",
}


# -- findings ----------------------------------------------------------------------------------------------------------


def report_rows(target: str, report: Report, screen: Screen) -> Iterator[Row]:
    """The rows that tell findings to people: by owner, whoever has the worst first."""
    yield from heading(f"Lint of {target}", _facts(report), screen)
    owners: dict[str, list[Finding]] = {}
    for finding in report.findings:
        owners.setdefault(finding.owner, []).append(finding)
    for owner, findings in owners.items():
        yield ()
        yield from ((Piece(row, "bold"),) for row in wrapped(screen.name(owner), screen.width))
        for finding in findings:
            yield from _finding_rows(finding, screen)


def _facts(report: Report) -> str:
    by_severity = Counter(finding.severity for finding in report.findings)
    told = [count(by_severity[severity], str(severity)) for severity in Severity if by_severity[severity]]
    ignored = [f"{len(report.ignored)} ignored"] if report.ignored else []
    return ", ".join([*(told or ["nothing found"]), *ignored])


def _finding_rows(finding: Finding, screen: Screen) -> Iterator[Row]:
    code, severity = f"  {finding.code} ", str(finding.severity)
    scope = "" if finding.scope is None else f"  in scope {finding.scope}"
    where = screen.name(f"{finding.place or 'no place'}{scope}")
    yield (Piece(code, "bold"), Piece(severity, _STYLES[finding.severity]), Piece(f"  {where}", "dim"))
    for first, text, style in (("    ", finding.message, ""), ("    → ", finding.way_out, "green")):
        indent = " " * len(first)
        arrow = first if screen.can_show(first) else first.replace("→", "-")
        for at, row in enumerate(wrapped(screen.name(text), max(screen.width - len(first), 8))):
            yield (Piece(indent if at else arrow), Piece(row.rstrip(), style))


def report_document(target: str, report: Report, hide: Hiding) -> dict[str, Any]:
    """The same as JSON; every key is always there."""
    told = {
        "findings": [finding.to_json() for finding in report.findings],
        "ignored": [{**each.finding.to_json(), "ignored_by": each.key, "why": each.why} for each in report.ignored],
    }
    return {
        "target": target,
        **without_secrets(told, hide),
        "idle_ignores": list(report.idle),
        "left_out": [{"code": each.code, "why": each.why} for each in report.left_out],
    }


def tell_limits(report: Report, hide: Hiding) -> None:
    """Say on stderr what was not looked at for want of something, and which ignores are not needed any more."""
    why_not: dict[str, list[str]] = {}
    for each in report.left_out:
        if each.why != NO_PROCESSES:  # whoever wants that asks for it
            why_not.setdefault(each.why, []).append(each.code)
    for why, codes in why_not.items():
        warn(f"{', '.join(_ranges(codes))} {why}")
    for key in report.idle:
        warn(in_one_line(hide.name(f"ignoring {key} is not needed any more: it covers no finding; take it out")))


def _ranges(codes: Sequence[str]) -> Iterator[str]:
    """Codes in few words: those that follow on each other as one range."""
    start = last = codes[0]
    for code in (*codes[1:], ""):
        if code and int(code[2:]) == int(last[2:]) + 1:
            last = code
            continue
        yield start if start == last else f"{start} to {last}"
        start = last = code


# -- rules -------------------------------------------------------------------------------------------------------------


def rules_rows(screen: Screen) -> Iterator[Row]:
    """The rows of a table of rules."""
    yield from heading("Rules", f"{len(RULES)}, each with a page in docs/reference/lint", screen)
    yield ()
    columns = Column("code", least=5), Column("severity", least=8), Column("name", least=16), Column("finds", least=32)
    records = [
        (
            (Piece(rule.code, "bold"),),
            (Piece(str(rule.severity), _STYLES[rule.severity]),),
            (Piece(rule.name),),
            (Piece(screen.shown(rule.summary)),),
        )
        for rule in RULES
    ]
    yield from table(columns, records, screen)


def rules_document() -> dict[str, Any]:
    """The same as JSON."""
    return {"rules": [_rule(rule) for rule in RULES]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "reads": rule.reads.value,
        "group": _GROUPS[rule.code[2]],
        "summary": rule.summary,
    }


def rules_page() -> str:
    """The page of the documents that lists the rules."""
    lines = [
        "# The rules of foreword lint",
        "",
        "<!-- made by: foreword lint --list --markdown -->",
        "",
        "How to run them, and how to ignore what is meant: [Look for what will go wrong](../../how-to/lint.md).",
        "Codes are stable: the first digit is the group, and none is ever given to another rule.",
        "",
        "| severity | means |",
        "|---|---|",
        "| error | it fails, leaks or costs at every step |",
        "| warning | it works, and not as its author means it |",
        "| note | it may be meant |",
    ]
    for digit, group in _GROUPS.items():
        lines += ["", f"## {group}", "", "| code | severity | finds |", "|---|---|---|"]
        lines += [_line(rule) for rule in RULES if rule.code[2] == digit]
    texts = ", ".join(rule.code for rule in RULES if rule.reads is Reads.TEXTS)
    lines += ["", f"Of a rendering only the rules run that read texts: {texts}."]
    return "\n".join(lines)


def _line(rule: Rule) -> str:
    return f"| [{rule.code}]({rule.code}.md) {rule.name} | {rule.severity} | {rule.summary} |"
