"""The pytest plugin: prompts kept in files, told as diffs with owners; and the check that they begin alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from foreword import AssembleContext, SystemPrompt
from foreword.testing import assert_stable_prefix

pytest_plugins = ["pytester"]

PLUGIN = ("-p", "foreword.testing.pytest_plugin", "-p", "no:cacheprovider")
BUILD = """
import pytest
from foreword import SystemPrompt, ToolSchema

def build(currency="EUR", rules="Quote prices in {{currency}}."):
    prompt = SystemPrompt(persona="You are a clerk.")
    prompt.owner("crm").variable("currency", currency)
    prompt.owner("crm").variable("code", "hunter2", sensitive=True)
    prompt.owner("billing").section("billing:rules", rules, order=5)
    prompt.owner("door").section("door", "It opens with {{code}}.", order=6)
    prompt.owner("shop").tools([ToolSchema("find_order", "Find an order.", {"type": "object"})])
    prompt.owner("clock").context("clock:time", "It is ten.", order=10)
    return prompt.render_sync()
"""
ONE = (
    BUILD
    + """
def test_one(prompt_snapshot):
    prompt_snapshot(build(), "support")
"""
)
FILE = """\
# The prompt as foreword rendered it, format 1. Written by pytest --prompt-update; not to be edited.

System text

  main             deployment:persona       │ You are a clerk.

  billing          billing:rules            │ Quote prices in EUR.

  door             door                     │ It opens with [sensitive].

Runtime contexts

  clock            clock:time               │ It is ten.

Tools

  shop             find_order               │ Find an order.
                                            │ {
                                            │   "type": "object"
                                            │ }

Variables

  crm              code                     │ [sensitive]

  crm              currency                 │ EUR
"""


def run(pytester: pytest.Pytester, code: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(test_shop=code)
    return pytester.runpytest_inprocess(*PLUGIN, *arguments)


def file_of(pytester: pytest.Pytester, name: str = "support") -> Path:
    return pytester.path / "prompt_snapshots" / "test_shop" / f"{name}.txt"


def test_a_snapshot_is_a_file_to_read(pytester: pytest.Pytester) -> None:
    """Texts, tools, contexts and variables with their owners in the margin; what is sensitive is not in it."""
    result = run(pytester, ONE, "--prompt-update")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["written   prompt_snapshots/test_shop/support.txt"])
    assert file_of(pytester).read_bytes() == FILE.encode()
    run(pytester, ONE).assert_outcomes(passed=1)


def test_one_that_is_not_there_yet(pytester: pytest.Pytester) -> None:
    """The test fails, and the message tells how the file is written; none is written unasked."""
    result = run(pytester, ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["there is no prompt_snapshots/test_shop/support.txt to *; pytest --prompt-update *"])
    assert not file_of(pytester).exists()


def test_a_difference_is_told_as_a_diff(pytester: pytest.Pytester) -> None:
    """Which section and variable, whose, where in the code, and word by word what."""
    run(pytester, ONE, "--prompt-update")
    result = run(pytester, ONE.replace("build()", 'build("USD")'))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "the prompt is not as in prompt_snapshots/test_shop/support.txt",
            "~ section billing:rules of billing (test_shop.py:8) changed",
            "    Quote prices in [[]-EUR-]{+USD+}.",
            "~ variable {{currency}} of crm (test_shop.py:6) changed",
            "if it is meant to be so: pytest --prompt-update",
        ]
    )
    run(pytester, ONE.replace("build()", 'build("USD")'), "--prompt-update").assert_outcomes(passed=1)
    assert "│ Quote prices in USD." in file_of(pytester).read_text(encoding="utf-8")


def test_another_owner_is_a_difference(pytester: pytest.Pytester) -> None:
    """The text is the same, and somebody else's."""
    run(pytester, ONE, "--prompt-update")
    result = run(pytester, ONE.replace('owner("billing")', 'owner("sales")'))
    result.stdout.fnmatch_lines(["= section billing:rules of sales (test_shop.py:8) taken over, was of billing"])


def test_hostile_texts(pytester: pytest.Pytester) -> None:
    """What acts on a terminal or is not seen is spelled out, and what a checkout or an editor takes away; unmistakably."""
    texts = ["\x1b[31m", "\r\n", "a \n", "\u202e", "\u200b", "\u2028", "⟨U+001B⟩[31m", "│", "\ttab", "\n"]
    code = BUILD + "".join(
        f"\ndef test_{at}(prompt_snapshot):\n    prompt_snapshot(build(rules={'<' + text + '>'!r}), 'text-{at}')\n"
        for at, text in enumerate(texts)
    )
    run(pytester, code, "--prompt-update").assert_outcomes(passed=len(texts))
    kept = [file_of(pytester, f"text-{at}").read_bytes().decode() for at in range(len(texts))]
    assert len(set(kept)) == len(texts)
    assert not any(unsafe in text for text in kept for unsafe in "\x1b\r\u202e\u200b\u2028")
    assert not any(line != line.rstrip() for text in kept for line in text.split("\n"))
    run(pytester, code).assert_outcomes(passed=len(texts))


def test_line_ends_of_windows(pytester: pytest.Pytester) -> None:
    """A checkout that turned LF into CRLF holds the same prompt, and is not written again."""
    run(pytester, ONE, "--prompt-update")
    there = FILE.replace("\n", "\r\n").encode()
    file_of(pytester).write_bytes(there)
    run(pytester, ONE).assert_outcomes(passed=1)
    run(pytester, ONE, "--prompt-update").assert_outcomes(passed=1)
    assert file_of(pytester).read_bytes() == there


@pytest.mark.parametrize("name", ["../x", "a/b", "a\\b", "", ".x", "con", "COM1.txt", "a b", "ä", "x" * 101, "a."])
def test_names_that_are_no_files(pytester: pytest.Pytester, name: str) -> None:
    """A name that some system cannot have as a file is refused, and nothing is written."""
    result = run(pytester, ONE.replace('"support"', repr(name)), "--prompt-update")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*cannot name a prompt snapshot on every system*"])
    assert not (pytester.path / "prompt_snapshots").exists()


def test_names_that_differ_by_capitals(pytester: pytest.Pytester) -> None:
    """They are one file on some systems, so they are refused on all."""
    code = ONE + '\ndef test_two(prompt_snapshot):\n    prompt_snapshot(build(), "Support")\n'
    run(pytester, code, "--prompt-update").stdout.fnmatch_lines(["*are one file where capitals do not count*"])


def test_parameters(pytester: pytest.Pytester) -> None:
    """Without a name a test's own counts, with its parameters, so that each has a file."""
    code = (
        BUILD
        + """
@pytest.mark.parametrize("currency", ["EUR", "US/D"])
def test_of(prompt_snapshot, currency):
    prompt_snapshot(build(currency))
"""
    )
    run(pytester, code, "--prompt-update").assert_outcomes(passed=2)
    assert "US/D" in file_of(pytester, "test_of-US-D").read_text(encoding="utf-8")
    run(pytester, code).assert_outcomes(passed=2)


def test_one_name_for_two_prompts(pytester: pytest.Pytester) -> None:
    """Two tests that would overwrite each other's file are told so; equal prompts may share one."""
    code = (
        BUILD
        + """
@pytest.mark.parametrize("currency", ["EUR", "USD"])
def test_of(prompt_snapshot, currency):
    prompt_snapshot(build(currency), "support")
"""
    )
    result = run(pytester, code, "--prompt-update")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(['two prompts are to be "support": that of test_shop.py::test_of[[]EUR]*'])
    run(pytester, code.replace("build(currency)", "build()"), "--prompt-update").assert_outcomes(passed=2)


def test_what_no_test_asks_for(pytester: pytest.Pytester) -> None:
    """It is reported, and deleted with --prompt-update: also of a module that is gone."""
    run(pytester, ONE, "--prompt-update")
    renamed = ONE.replace('"support"', '"other"')
    gone = pytester.path / "prompt_snapshots" / "test_gone" / "old.txt"
    gone.parent.mkdir()
    gone.write_text(FILE, encoding="utf-8")
    run(pytester, ONE).stdout.fnmatch_lines(["obsolete  prompt_snapshots/test_gone/old.txt"])
    run(pytester, renamed, "--prompt-update").stdout.fnmatch_lines(
        [
            "written   prompt_snapshots/test_shop/other.txt",
            "deleted   prompt_snapshots/test_gone/old.txt",
            "deleted   prompt_snapshots/test_shop/support.txt",
        ]
    )
    assert not gone.parent.exists()
    assert file_of(pytester, "other").exists()


@pytest.mark.parametrize("arguments", [["-k", "two"], ["test_shop.py::test_two"], ["-x"]])
def test_what_was_not_run_may_be_asked_for(pytester: pytest.Pytester, arguments: list[str]) -> None:
    """Where not every test of a module got to its end, nothing of it is called obsolete, or deleted."""
    run(pytester, ONE, "--prompt-update")
    code = (
        BUILD
        + """
def test_two(prompt_snapshot):
    prompt_snapshot(build(), "two")

def test_fails():
    assert False

def test_one(prompt_snapshot):
    prompt_snapshot(build(), "support")
"""
    )
    run(pytester, code, "--prompt-update", *arguments)
    assert file_of(pytester).exists()
    assert file_of(pytester, "two").exists()


@pytest.mark.parametrize("text", ["", "# something else\n", FILE + "a line\n", FILE.replace('"type"', "type")])
def test_a_file_that_was_edited(pytester: pytest.Pytester, text: str) -> None:
    """The test fails, says what is wrong with the file, and how it is written anew."""
    run(pytester, ONE, "--prompt-update")
    file_of(pytester).write_text(text, encoding="utf-8")
    result = run(pytester, ONE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*support.txt cannot be read: *; pytest --prompt-update writes it anew"])


def test_what_is_no_rendering(pytester: pytest.Pytester) -> None:
    """A prompt that was not rendered, or a text, is refused with the way out."""
    result = run(pytester, ONE.replace("build()", '"You are a clerk."'))
    result.stdout.fnmatch_lines(["*takes a Rendering, and this is a str; render it first: render_sync()*"])


@pytest.mark.slow
def test_under_xdist(pytester: pytest.Pytester) -> None:
    """Workers write their files, and the controller tells what was written and what is obsolete."""
    code = (
        BUILD
        + """
@pytest.mark.parametrize("number", range(6))
def test_of(prompt_snapshot, number):
    prompt_snapshot(build(str(number)), f"number-{number}")
"""
    )
    pytester.makepyfile(test_shop=code)
    old = file_of(pytester, "old")
    old.parent.mkdir(parents=True)
    old.write_text(FILE, encoding="utf-8")
    result = pytester.runpytest_subprocess(*PLUGIN, "-n", "2", "--prompt-update")
    result.assert_outcomes(passed=6)
    written = [f"written   prompt_snapshots/test_shop/number-{number}.txt" for number in range(6)]
    result.stdout.fnmatch_lines([*written, "deleted   prompt_snapshots/test_shop/old.txt"])
    assert sorted(path.stem for path in old.parent.iterdir()) == [f"number-{number}" for number in range(6)]


@pytest.mark.slow
def test_two_workers_and_one_name(pytester: pytest.Pytester) -> None:
    """Two prompts that are to be one file are found wherever they ran, and the run fails."""
    code = (
        BUILD
        + """
@pytest.mark.parametrize("number", range(2))
def test_of(prompt_snapshot, number):
    prompt_snapshot(build(str(number)), "support")
"""
    )
    pytester.makepyfile(test_shop=code)
    result = pytester.runpytest_subprocess(*PLUGIN, "-n", "2", "--prompt-update")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert any("name two files" in line for line in result.outlines)


# -- the beginning of a prompt -----------------------------------------------------------------------------------------

STABLE = """
from datetime import datetime, timedelta
import pytest
from foreword import AssembleContext, ContextKey, SystemPrompt

DAY = ContextKey("day", str)

def prompt_with(text):
    prompt = SystemPrompt(persona="You are a clerk.")
    prompt.owner("clock").section("date", text, order=5)
    prompt.owner("clock").context("time", lambda: str(datetime.now()), order=5)
    return prompt
"""


def test_a_beginning_that_stays(pytester: pytest.Pytester) -> None:
    """Runtime contexts may differ from step to step, and by the clock."""
    code = (
        STABLE
        + """
def test_stable(assert_stable_prefix):
    assert_stable_prefix(prompt_with("Be kind."))
    assert_stable_prefix(prompt_with("Be kind."), [AssembleContext()], clocks=[timedelta(days=400), datetime(2030, 1, 1)])
"""
    )
    run(pytester, code).assert_outcomes(passed=1)


def test_a_beginning_that_moves_with_the_clock(pytester: pytest.Pytester) -> None:
    """The failure names owner and place of the first character that differs, and the clock."""
    code = (
        STABLE
        + """
def test_unstable(assert_stable_prefix):
    assert_stable_prefix(prompt_with(lambda: f"It is {datetime.now():%Y}."), clocks=[timedelta(days=400)])
"""
    )
    result = run(pytester, code)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*step 1, 400 days, *from now, does not begin as step 1 does: section date (clock, *"])


def test_a_beginning_that_depends_on_the_context(pytester: pytest.Pytester) -> None:
    """Also without another clock."""
    code = (
        STABLE
        + """
def test_unstable(assert_stable_prefix):
    prompt = prompt_with(lambda context: f"It is {context[DAY]}.")
    assert_stable_prefix(prompt, [AssembleContext({DAY: day}) for day in ("Monday", "Tuesday")])
"""
    )
    result = run(pytester, code)
    result.stdout.fnmatch_lines(['*step 2 does not begin as step 1 does: section date (clock, *"Monday" → "Tuesday"'])


def test_nothing_to_hold_against(pytester: pytest.Pytester) -> None:
    """One step without another clock proves nothing, and is refused."""
    code = (
        STABLE
        + """
def test_one(assert_stable_prefix):
    assert_stable_prefix(prompt_with("Be kind."), [AssembleContext()])
"""
    )
    run(pytester, code).stdout.fnmatch_lines(["*ValueError: one step alone*give assert_stable_prefix two contexts*"])


@pytest.mark.parametrize(
    ("given", "options", "hint"),
    [
        ("x", {}, "takes a SystemPrompt, or a view of one, not 'x'"),
        (SystemPrompt(), {"contexts": 5}, "takes contexts as a list of AssembleContexts, not 5"),
        (SystemPrompt(), {"contexts": [5, AssembleContext()]}, "takes contexts as a list"),
        (SystemPrompt(), {"contexts": AssembleContext()}, "takes contexts as a list"),
        (SystemPrompt(), {"clocks": 5}, "takes clocks as a list of datetimes and timedeltas, not 5"),
        (SystemPrompt(), {"clocks": [400]}, "takes clocks as a list"),
    ],
)
def test_what_a_stable_prefix_is_asked_of(given: Any, options: dict[str, Any], hint: str) -> None:
    """Anything else is told by its name, with what it must be."""
    with pytest.raises(TypeError, match=hint):
        assert_stable_prefix(given, **options)
