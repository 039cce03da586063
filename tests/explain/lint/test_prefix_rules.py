"""FW1: what breaks a cached prefix."""

from __future__ import annotations

import itertools
import os
import runpy
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent
from time import time

import pytest
from tests.explain.lint.support import clerk, codes, found, only, tool

from foreword import AssembleContext, SystemPrompt, ToolProviderResult
from foreword.explain.lint import LintConfig, alint, examine, lint
from foreword.explain.lint.processes import Piece, Run

# -- FW101 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "now",
    [
        lambda: f"It is {datetime.now():%H:%M}.",
        lambda: f"Today is {datetime.now(UTC).date()}.",
        lambda: f"It is {datetime.now():%A}.",
        lambda: f"{time() // 3600:.0f} hours since then.",
    ],
)
def test_a_clock_is_found(now) -> None:
    """A time of day, a date, a day of the week: each is another one when the clock is moved."""
    finding = only(clerk(now), "FW101")
    assert (finding.owner, finding.name) == ("desk", "desk:text")
    assert "when the clock is moved: character " in finding.message
    assert 'prompt.context("desk:text", …)' in finding.way_out


def test_the_clock_is_as_it_was() -> None:
    """After the lint the time is the real one again, and so it is while it goes on between the assemblies."""
    before = time()
    lint(clerk(lambda: "x"))
    assert before <= time() < before + 3600


def test_what_changes_from_step_to_step_is_found() -> None:
    """A counter, and the variable behind a text; each is told once, with its own owner."""
    numbers = itertools.count()
    prompt = clerk("You have had {{calls}} calls.")
    prompt.owner("phone").variable("calls", lambda: str(next(numbers)))
    finding = only(prompt, "FW101")
    assert (finding.owner, finding.name) == ("phone", "calls")
    assert 'which section "desk:text" refers to, differs from one assembly to the next' in finding.message


@pytest.mark.parametrize("code", ["FW101", "FW102"])
def test_what_all_scopes_share_is_told_once(code: str) -> None:
    """However many agents use a variable, and whatever its values in them are: it is one fault, of one owner."""
    prompt = clerk("You have had {{calls}} calls.")
    for name in ("first", "second", "third"):
        prompt.scope(name).section("desk:name", f"You are {name}.", order=30)
    kept: list[object] = []  # or each had the address of the one before

    def calls() -> str:
        kept.append(object())
        return f"{datetime.now(UTC).isoformat()} {kept[-1]}"

    prompt.owner("phone").variable("calls", calls)
    finding = only(prompt, code)
    assert (finding.owner, finding.name, finding.scope) == ("phone", "calls", None)


def test_what_scopes_have_of_their_own_is_told_for_each() -> None:
    """Namesakes in several scopes are several faults, each with its scope."""
    prompt = clerk("You have had {{calls}} calls.")
    prompt.variable("calls", "no")
    for name in ("first", "second"):
        prompt.scope(name).variable("calls", lambda: f"{datetime.now(UTC).isoformat()}")
    assert sorted(str(finding.scope) for finding in found(prompt, "FW101")) == ["first", "second"]


def test_a_condition_that_changes_is_found() -> None:
    """A section that is there in one assembly and not in the next."""
    turns = itertools.cycle([True, False])
    finding = only(clerk("Be brief.", when=lambda _: next(turns)), "FW101")
    assert finding.message == 'section "desk:text" is gone from one assembly to the next'
    turns = itertools.cycle([False, True])
    finding = only(clerk("Be brief.", when=lambda _: next(turns)), "FW101")
    assert finding.message == 'section "desk:text" comes in from one assembly to the next'
    values = itertools.cycle([None, "Ada"])
    prompt = clerk("Hello {{name}}.")
    prompt.variable("name", lambda: next(values))
    assert "differs from one assembly to the next: character 1, '' → 'Ada'" in only(prompt, "FW101").message


def test_tools_that_change_are_found() -> None:
    """A tool that goes, one that comes, and one whose schema is another one each time; each with its owner."""
    prompt, steps = clerk(), itertools.count()

    @prompt.owner("shop").tools
    def offer() -> ToolProviderResult:
        step = next(steps)
        return ToolProviderResult([tool("stock", f"{step} items"), tool("new") if step else tool("gone")])

    findings = found(prompt, "FW101")
    assert [finding.message for finding in findings] == [
        'the schema of tool "stock" differs from one assembly to the next',
        'tool "gone" is gone from one assembly to the next',
        'tool "new" comes in from one assembly to the next',
    ]
    assert [finding.owner for finding in findings] == ["shop"] * 3


@pytest.mark.anyio
async def test_a_listener_that_shuffles_is_found() -> None:
    """The order of sections that a listener gives another one each time, whatever it drops besides."""
    prompt, turns = clerk("Be brief."), itertools.count()
    prompt.section("dropped", "x", order=-5)

    @prompt.on_assemble
    async def shuffle(assembly, context, call_next):
        if next(turns) % 2:
            assembly.sections.drop("dropped")
            assembly.sections.reverse()
        return await call_next()

    findings = await alint(prompt, LintConfig(select=("FW101",)))
    assert sorted(finding.message for finding in findings) == [
        'section "deployment:persona" stands at another place from one assembly to the next',
        'section "dropped" is gone from one assembly to the next',
    ]


def test_what_stays_is_quiet() -> None:
    """Providers that say the same each time; a clock in a runtime context; a variable that no section uses."""
    prompt = clerk(lambda: "Be brief.")
    prompt.variable("now", lambda: str(time()))
    prompt.context("clock", lambda: f"{time()} {{{{now}}}}", order=10)
    assert found(prompt, "FW101") == []


def test_only_rules_that_need_it_assemble_again() -> None:
    """A provider is asked three times for FW101, and once for rules that look at one assembly."""
    asked: list[int] = []
    prompt = clerk(lambda: asked.append(1) or "x")
    lint(prompt, LintConfig(select=("FW2",)))
    assert len(asked) == 1
    lint(prompt)
    assert len(asked) == 4


# -- FW102 -------------------------------------------------------------------------------------------------------------


def made(folder: Path, expression: str) -> SystemPrompt:
    """A prompt whose section is made by an expression in a file."""
    file = folder / "made.py"
    file.write_text(
        dedent(f"""
        import os, tempfile, uuid, datetime
        from foreword import SystemPrompt
        prompt = SystemPrompt(persona="You are a clerk.")
        def made(): ...
        prompt.owner("desk").section("desk:text", {expression}, order=20)
        """)
    )
    return runpy.run_path(str(file))["prompt"]


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("f'See {object()}.'", "the address of an object"),
        ("f'See {made}.'", "the address of an object"),
        ("f'Write to {tempfile.mkdtemp(dir=\"/tmp\")}.'", "the path of a temporary file"),
        ("f'You are process {os.getpid()}.'", "the id of the process"),
        ("f'Session {uuid.uuid4()}.'", "a UUID"),
        ("f'Session {uuid.uuid1()}.'", "a UUID"),
        ("f'Today is {datetime.date.today()}.'", "today's date"),
        (
            "f'Today is {datetime.date.today():%B} {datetime.date.today().day}, {datetime.date.today().year}.'",
            "today's date",
        ),
    ],
)
def test_what_a_process_makes_is_found(expression: str, what: str, tmp_path: Path) -> None:
    """Each kind is told by its form, in a text that is the same in every assembly."""
    prompt = made(tmp_path, expression)
    assert found(prompt, "FW101") == []
    finding = only(prompt, "FW102")
    assert f'section "desk:text" holds {what} (' in finding.message


@pytest.mark.parametrize(
    "expression",
    [
        "'Project 3f2504e0-4f89-41d3-9a0c-0305e82c3301.'",  # written there
        pytest.param(f"'Valid from {datetime.now().date()}.'", id="today"),  # written there, if only today
        "'Write scratch files to /tmp/agent and read /tmp/input.txt.'",
        "'An address looks like 0x7f4712ec4ea0; a template like tmp_file.'",
        pytest.param(f"'Answer in {os.getpid()} characters.'", id="a number like that of the process"),
        "lambda: 'Project 3f2504e0-4f89-41d3-9a0c-' + '0305e82c3301.'",  # a provider may have read it
    ],
)
def test_what_is_written_is_quiet(expression: str, tmp_path: Path) -> None:
    """A UUID or date that stands in the module; paths, numbers and addresses that are prose."""
    assert found(made(tmp_path, expression), "FW102") == []


def test_text_files_are_written(tmp_path: Path) -> None:
    """A UUID in a text file is no finding; a temporary file's name is one wherever it stands, with its line."""
    file = tmp_path / "text.md"
    file.write_text(f"Project 3f2504e0-4f89-41d3-9a0c-0305e82c3301.\n\nSee {tempfile.gettempdir()}/tmpab12cd34.\n")
    finding = only(clerk(file), "FW102")
    assert finding.message.startswith('section "desk:text" holds the path of a temporary file')
    assert finding.place is not None
    assert finding.place.endswith("text.md:3")


def test_values_count_where_sections_use_them(tmp_path: Path) -> None:
    """The value of a variable is looked at if a section refers to it, and belongs to the variable's owner."""
    prompt = clerk("Session {{session}}.")
    prompt.owner("crm").variable("session", f"{object()}")
    prompt.owner("crm").variable("unused", f"{object()}")
    finding = only(prompt, "FW102")
    assert (finding.owner, finding.name) == ("crm", "session")


# -- FW103 -------------------------------------------------------------------------------------------------------------

LONG = "Say what you will do before you do it. " * 40


@pytest.mark.parametrize("text", [lambda: "x", lambda context: "x", "Tenant {{tenant}}."])
def test_a_dynamic_section_ahead_is_found(text) -> None:
    """A provider's text, and a reference to a variable that depends on the step, ahead of a long fixed text."""
    prompt = clerk(text)
    prompt.variable("tenant", lambda context: "acme")
    prompt.section("handbook", LONG, order=30)
    prompt.scope("team").section("team:x", "x", order=40)
    finding = only(prompt, "FW103")
    assert finding.name == "desk:text"
    assert "tokens of fixed text stand behind it" in finding.message


def test_a_dynamic_section_behind_is_quiet() -> None:
    """Behind the fixed ones, or ahead of little; and a variable that is the same for all steps is fixed."""
    prompt = clerk(lambda: "x")
    prompt.section("handbook", LONG, order=10)
    prompt.section("end", "Be brief.", order=30)
    assert found(prompt, "FW103") == []
    prompt = clerk("Firm {{firm}}.")
    prompt.variable("firm", lambda: "Acme")
    prompt.section("handbook", LONG, order=30)
    assert found(prompt, "FW103") == []


# -- FW104 -------------------------------------------------------------------------------------------------------------


def test_ties_between_plugins_are_found() -> None:
    """Sections and contexts of two owners with one order, in the global layer and in a scope; each pair once."""
    prompt = clerk("Be brief.")
    prompt.owner("b").section("b:x", "x", order=20.0)
    prompt.owner("a").context("a:y", "y", order=1)
    prompt.owner("b").context("b:y", "y", order=1)
    scope = prompt.scope("team")
    scope.section("t:one", "x", order=7)
    prompt.scope(scope.key).owner("other").section("t:two", "y", order=7)
    findings = found(prompt, "FW104")
    assert [(finding.name, finding.scope) for finding in findings] == [("b:x", None), ("b:y", None), ("t:two", "team")]
    assert 'like section "desk:text" of desk' in findings[0].message


def test_what_is_decided_is_quiet() -> None:
    """One owner's ties, different orders, a tie between a scope and the global layer, ties by name."""
    prompt = clerk("Be brief.")
    prompt.owner("b").section("b:x", "x", order=21)
    owner = prompt.owner("c")
    owner.section("c:1", "x", order=30)
    owner.section("c:2", "y", order=30)
    prompt.scope("team").section("t:x", "x", order=20)
    assert found(prompt, "FW104") == []
    by_name = SystemPrompt(persona="x", section_ties="name")
    by_name.owner("a").section("a", "x", order=1)
    by_name.owner("b").section("b", "y", order=1)
    assert found(by_name, "FW104") == []


def test_a_shadow_ties_where_what_it_hides_stands() -> None:
    """A shadow takes the place of what it hides among equals, so its tie with a global section is one of loading."""
    prompt = clerk("Be brief.")
    prompt.owner("b").section("b:x", "x", order=50)
    prompt.scope("team").section("b:x", "y", order=20)
    assert [(finding.name, finding.scope) for finding in found(prompt, "FW104")] == [("b:x", "team")]


def test_a_move_of_the_deployment_silences_a_tie() -> None:
    """An override that gives one of them another order counts."""
    prompt = clerk("Be brief.")
    prompt.owner("b").section("b:x", "x", order=20)
    assert codes(found(prompt, "FW104")) == ["FW104"]
    prompt.override("b:x", order=21)
    assert found(prompt, "FW104") == []


# -- FW105 -------------------------------------------------------------------------------------------------------------


def test_runs_are_compared_by_entry() -> None:
    """What differs between two runs is told with the entry's owner and with what was changed; equal runs are quiet."""

    def piece(name: str, text: str, kind: str = "section") -> Piece:
        return Piece("global", kind, name, "desk", None, "desk.py:3", text, f"digest of {text}")

    first = Run("", (piece("a", "x"), piece("b", "y"), piece("c", "z"), piece("t", "{}", "tool")))
    seed = Run("under another hash seed", (piece("a", "x"), piece("b", "Y"), piece("c", "z"), piece("t", "[]", "tool")))
    order = Run("in the opposite order", (piece("c", "z"), piece("a", "x"), piece("b", "y"), piece("t", "{}", "tool")))
    fewer = Run("at another time", first.pieces[1:])

    def told(*runs: Run) -> list[tuple[str, str | None, str]]:
        import anyio

        from foreword.explain.lint import aexamine

        async def look():
            return await aexamine(clerk(), LintConfig(select=("FW105",)), runs=(first, *runs))

        return [(each.owner, each.place, each.message) for each in anyio.run(look).findings]

    assert told(first) == []
    assert told(Run.from_json(seed.to_json())) == [
        ("desk", "desk.py:3", "section \"b\" has another text under another hash seed: character 1, 'y' → 'Y'"),
        ("desk", "desk.py:3", "tool \"t\" has another text under another hash seed: character 1, '{}' → '[]'"),
    ]
    masked = Run("in another process", (replace(first.pieces[0], digest="another"), *first.pieces[1:]))
    assert told(masked) == [
        ("desk", "desk.py:3", 'section "a" has another text in another process: how is sensitive'),
    ]
    assert told(order) == [("desk", "desk.py:3", 'section "a" stands at another place in the opposite order')]
    both = Run("in turn", (order.pieces[0], order.pieces[2], order.pieces[3]))
    assert told(both) == [
        ("desk", "desk.py:3", 'section "a" is not there in turn'),
        ("desk", "desk.py:3", 'section "b" stands at another place in turn'),
    ]
    assert told(fewer) == [("desk", "desk.py:3", 'section "a" is not there at another time')]


def test_without_runs_the_rule_says_so() -> None:
    """`lint` alone starts no processes, and the report tells that the rule did not run."""
    report = examine(clerk(), LintConfig(select=("FW105",)))
    assert report.findings == ()
    assert [each.code for each in report.left_out] == ["FW105"]


def test_context_is_handed_on() -> None:
    """Assemblies are made for the context that is given."""
    seen: list[object] = []
    prompt = clerk(lambda context: seen.append(context.model) or "x")
    lint(prompt, LintConfig(select=("FW2",)), context=AssembleContext())
    assert seen == [None]
