"""The engine: what is looked at, in what order it is told, what is selected and ignored."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.explain.lint.support import clerk, codes, found, tool

import foreword.explain.lint as package
from foreword import InactiveContextError, InvalidConfigError, RunningLoopError, SystemPrompt
from foreword.explain import subject_of
from foreword.explain.lint import (
    RULES,
    Finding,
    LintConfig,
    Reads,
    Rule,
    Severity,
    Survey,
    aexamine,
    alint,
    examine,
    lint,
)

BAD = "{{nobody}} br\u200bief"


def two_owners() -> SystemPrompt:
    prompt = clerk(BAD)
    prompt.owner("art").section("art:x", "\u202e", order=30)
    return prompt


# -- findings ----------------------------------------------------------------------------------------------------------


def test_findings_come_worst_first() -> None:
    """By severity, then by code, owner and place, whatever the order of registration."""
    prompt = clerk()
    prompt.variable("unused", "x")
    prompt.section("z", "br\u200bief", order=30)
    prompt.section("a", "br\u200bief", order=40)
    prompt.section("b", "{{x}}", order=50)
    findings = lint(prompt)
    assert codes(findings) == ["FW201", "FW403", "FW403", "FW204"]
    assert [finding.severity for finding in findings] == sorted(
        (each.severity for each in findings), key=lambda s: s.rank
    )


def test_a_finding_says_whose_where_what_and_the_way_out() -> None:
    """All of its parts, as text and as JSON."""
    (finding,) = found(clerk("Hello {{nobody}}."), "FW201")
    assert (finding.owner, finding.scope, finding.name) == ("desk", None, "desk:text")
    assert str(finding) == (f"{finding.place}: FW201 error: {finding.message}; {finding.way_out}")
    assert re.fullmatch(r"(.*/)?support\.py:\d+", finding.place or "")
    assert json.loads(json.dumps(finding.to_json())) == {
        "code": "FW201", "severity": "error", "owner": "desk", "scope": None, "place": finding.place,
        "name": "desk:text", "message": finding.message, "way_out": finding.way_out,
    }  # fmt: skip


def test_a_clean_prompt_has_no_findings() -> None:
    """Nothing is said about a prompt with which nothing is wrong, and every rule has looked but that of processes."""
    report = examine(clerk("Be brief."))
    assert (report.findings, report.ignored, report.idle) == ((), (), ())
    assert [each.code for each in report.left_out] == ["FW105"]


def test_the_lint_changes_nothing() -> None:
    """The prompt renders to the same text before and after, and nothing is registered in between."""
    changes: list[None] = []
    prompt = two_owners()
    prompt.variable("nobody", "x")
    before = prompt.render_sync()
    prompt.on_change(lambda: changes.append(None))
    lint(prompt)
    assert (prompt.render_sync().text, changes) == (before.text, [])


# -- rules -------------------------------------------------------------------------------------------------------------


def test_rules_are_well_formed() -> None:
    """Codes are unique and in order, names are unique, each is of the group of its code, none is without words."""
    assert [rule.code for rule in RULES] == sorted({rule.code for rule in RULES})
    assert len({rule.name for rule in RULES}) == len(RULES) >= 16
    for rule in RULES:
        assert re.fullmatch(r"FW[1-5]\d\d", rule.code)
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
        assert rule.summary


def test_one_rule_a_file() -> None:
    """Each file of rules holds one rule, is named after it, and says its code in its first line."""
    folder = Path(package.__file__).parent / "rules"
    files = {path.stem: path.read_text("utf-8") for path in folder.glob("*.py") if path.stem != "__init__"}
    assert {name.replace("_", "-") for name in files} == {rule.name for rule in RULES}
    for name, text in files.items():
        (code,) = re.findall(r'^    "(FW\d+)",$', text, re.MULTILINE)
        assert text.startswith(f'"""{code}: '), name


def test_a_rule_of_your_own() -> None:
    """A rule is a value with a function; it sees what the others see, and can be selected and ignored like them."""

    def find(survey: Survey):
        for branch in survey.branches:
            for section in branch.sections:
                if "please" in section.text.lower():
                    yield mine.finding(section.origin, section.name, f"{section.label} begs", "say it plainly")

    mine = Rule("ACME1", "no-begging", Severity.NOTE, Reads.TEXTS, "a section that says please", find)
    prompt = clerk("Please be brief.")
    assert codes(lint(prompt, rules=[*RULES, mine])) == ["ACME1"]
    assert codes(lint(prompt.render_sync(), rules=[mine])) == ["ACME1"]
    assert lint(prompt, LintConfig(ignore={"ACME1:desk:text": "we are kind"}), rules=[mine]) == []


# -- what is looked at -------------------------------------------------------------------------------------------------


def test_every_scope_is_looked_at() -> None:
    """The global layer, scopes and the scopes below them, each entry once, with the scope that holds it."""
    prompt = clerk("br\u200bief")
    team = prompt.scope("team")
    team.section("t", "br\u200bief", order=30)
    prompt.scope("agent", parent=team).section("a", "br\u200bief", order=40)
    assert [(finding.name, finding.scope) for finding in found(prompt, "FW403")] == [
        ("a", "agent"), ("desk:text", None), ("t", "team"),
    ]  # fmt: skip


def test_a_scoped_view_is_looked_at_alone() -> None:
    """Of a scope's view what the scope sees, and what those below it see; nothing of its neighbours."""
    prompt = clerk("br\u200bief")
    team = prompt.scope("team")
    team.section("t", "br\u200bief", order=30)
    prompt.scope("agent", parent=team).section("a", "br\u200bief", order=40)
    prompt.scope("other").section("o", "br\u200bief", order=40)
    assert {finding.name for finding in found(team, "FW403")} == {"a", "desk:text", "t"}


def test_a_closed_view_is_refused() -> None:
    """As everywhere else."""
    view = clerk().owner("x")
    view.close()
    with pytest.raises(InactiveContextError):
        lint(view)


@pytest.mark.anyio
async def test_within_an_event_loop() -> None:
    """With something async in force `lint` refuses and `alint` works; a plain prompt works with either."""
    assert codes(lint(two_owners())) == codes(await alint(two_owners()))
    prompt = clerk()

    @prompt.section("slow", order=30)
    async def slow() -> str:
        return "br\u200bief"

    with pytest.raises(RunningLoopError):
        lint(prompt)
    assert codes(await alint(prompt)) == ["FW403"]


def test_async_providers_without_a_loop() -> None:
    """From plain code the lint starts a loop where it needs one."""
    prompt = clerk()

    @prompt.section("slow", order=30, timeout=5)
    async def slow() -> str:
        return "br\u200bief"

    assert codes(lint(prompt)) == ["FW403"]


@pytest.mark.anyio
async def test_agents_are_told_so() -> None:
    """The assemblies of scopes that are agents' have them as their agent, also of one that holds nothing."""
    seen: list[object] = []
    prompt = clerk(lambda context: seen.append(context.agent) or "x")
    agent, other = prompt.scope("agent").key, prompt.scope("other")
    other.section("x", "x", order=30)
    await aexamine(prompt, LintConfig(select=("FW2",)), agents=[agent])
    assert seen == [None, None, agent]


@pytest.mark.anyio
async def test_what_was_sent() -> None:
    """A rendering and a subject give the same findings, of rules that read texts."""
    prompt = clerk("br\u200bief \u202e")
    prompt.owner("shop").tools([tool("a.b")])
    rendering = await prompt.render()
    for target in (rendering, subject_of(rendering)):
        findings = await alint(target)
        assert [(finding.code, finding.owner) for finding in findings] == [
            ("FW304", "shop"), ("FW402", "desk"), ("FW403", "desk"),
        ]  # fmt: skip
        assert lint(target) == findings


# -- selecting and ignoring --------------------------------------------------------------------------------------------


def test_selecting() -> None:
    """Codes, and beginnings of codes."""
    assert codes(lint(two_owners(), LintConfig(select=("FW4",)))) == ["FW402", "FW403"]
    assert codes(lint(two_owners(), LintConfig(select=("FW201", "FW402")))) == ["FW201", "FW402"]


def test_ignoring() -> None:
    """A whole rule, a group, or one entry; what was ignored is in the report, with the reason."""
    config = LintConfig(ignore={"FW402": "quoted", "FW201:desk:text": "comes later", "FW403:art:x": "no such"})
    report = examine(two_owners(), config)
    assert codes(report.findings) == ["FW403"]
    assert [(each.finding.code, each.key, each.why) for each in report.ignored] == [
        ("FW201", "FW201:desk:text", "comes later"),
        ("FW402", "FW402", "quoted"),
    ]
    assert report.idle == ("FW403:art:x",)


def test_an_ignore_is_idle_only_if_its_rules_ran() -> None:
    """A rule that did not run may still need its ignore."""
    report = examine(clerk(), LintConfig(select=("FW2",), ignore={"FW105": "x", "FW201": "y", "FW4": "z"}))
    assert report.idle == ("FW201",)
    assert examine(clerk(), LintConfig(ignore={"FW105": "x", "FW1": "y", "FW101": "z"})).idle == ("FW101",)


@pytest.mark.parametrize(
    ("config", "fields"),
    [
        (LintConfig(select=("FW999", "201", "")), ["select"] * 3),
        (LintConfig(ignore={"FW9:x": "y", "volatile-text": "y"}), ["ignore"] * 2),
        (LintConfig(section_tokens=0), ["section_tokens"]),
    ],
)
def test_a_code_that_is_none_is_refused(config: LintConfig, fields: list[str]) -> None:
    """A misspelt code would do nothing; all of them are told at once, and nothing is asked before."""
    asked: list[int] = []
    with pytest.raises(InvalidConfigError) as caught:
        lint(clerk(lambda: asked.append(1) or "x"), config)
    assert [fault.field for fault in caught.value.faults] == fields
    assert asked == []


def test_without_the_library_that_moves_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule compares assemblies under one clock, and the report says that it did no more, and how to have it."""
    import sys
    import time

    monkeypatch.setitem(sys.modules, "time_machine", None)
    report = examine(clerk(lambda: f"{time.time() // 86400}"))
    assert report.findings == ()
    (why,) = [each.why for each in report.left_out if each.code == "FW101"]
    assert 'pip install "foreword[lint]"' in why


def test_findings_are_values() -> None:
    """They compare, hash and are told apart by what they say."""
    one, other = lint(two_owners()), lint(two_owners())
    assert one == other
    assert len({*one, *other}) == len(one)
    assert isinstance(one[0], Finding)


def test_aexamine_is_examine() -> None:
    """Both doors give the same report."""
    import anyio

    report = anyio.run(aexamine, two_owners())
    assert SimpleNamespace(**{name: getattr(report, name) for name in ("findings", "left_out")}) == SimpleNamespace(
        findings=examine(two_owners()).findings, left_out=report.left_out
    )
