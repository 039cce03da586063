"""What reaches a terminal is text: it cannot act on the terminal, deceive its reader, or be read as markup."""

import json
import os
import re
import signal
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.support import COLOUR, COMMAND, in_terminal, piped, plain, run, write

from foreword.cli.terminal import Screen, escaped
from foreword.cli.wrapping import cell_len

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals here")

HOSTILE = "[red]m[/red] [bold :smile: \x1b[31mansi\x1b]0;title\x07 \x00\x08\x0b\x0c\r \x7f \x85\x9b1m \u202erlo\u2066i\u061ca \u2028l\u2029p \U000e0041"
SPELLED = r"[red]m[/red] [bold :smile: \x1b[31mansi\x1b]0;title\x07 \x00\x08\x0b\x0c\r \x7f \x85\x9b1m \u202erlo\u2066i\u061ca \u2028l\u2029p \U000e0041"
HARMLESS = re.compile(r"\x1b\[[0-9;]*m")  # colours and the like

PROMPT = f"""
    from foreword import SystemPrompt, ToolSchema
    evil = {HOSTILE!r}
    def build():
        prompt = SystemPrompt(persona="Persona: {{{{v}}}}")
        owner = prompt.owner(evil)
        owner.variable("v", evil)
        owner.section(evil, "Text: " + evil, order=1)
        owner.section(evil + "gone", "x", order=1, when=lambda context: False)
        owner.context(evil, "Context: " + evil, order=1, verbatim=True)
        owner.tools([ToolSchema("t" + evil, evil, {{"type": "object", "properties": {{evil: {{"type": evil}}}}}})])
        inner = prompt.scope(evil)
        inner.section("inner", evil, order=2)
        return inner
    def fails():
        prompt = SystemPrompt()
        @prompt.owner(evil).section(evil, order=1)
        def text(): raise ValueError(evil)
        return prompt
    def raises(): raise ValueError(evil)
    simple = SystemPrompt(persona="You are {{{{who}}}}.")
    simple.owner("other").variable("who", "Ada")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, PROMPT)
    return tmp_path


def unsafe(text: str) -> set[str]:
    """The characters in a text that a terminal must not get, besides colours and newlines."""
    bare = HARMLESS.sub("", text).replace("\n", "")
    return {each for each in bare if unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp", "Cs")}


# -- the rule ----------------------------------------------------------------------------------------------------------


def test_unsafe_characters_are_spelled_out() -> None:
    """Control characters, bidirectional ones, line separators and tags are spelled; markup and other text is left."""
    assert escaped(HOSTILE) == SPELLED


@given(st.text())
def test_what_is_shown_is_safe(text: str) -> None:
    """No text reaches a screen with a control character but tab and newline, a direction changed, or a hidden line."""
    shown = Screen(80, False, "utf-8").shown(text)
    categories = {each: unicodedata.category(each) for each in shown if each not in "\t\n"}
    assert not {"Cc", "Zl", "Zp", "Cs"} & set(categories.values())
    assert not {each for each in shown if unicodedata.bidirectional(each) in ("LRE", "RLE", "LRO", "RLO", "PDF")}
    assert not {each for each in shown if unicodedata.bidirectional(each) in ("LRI", "RLI", "FSI", "PDI")}


@given(st.text())
def test_what_is_shown_fits_the_encoding(text: str) -> None:
    """Whatever the encoding lacks is spelled out, so nothing that is shown cannot be written."""
    for encoding in ("ascii", "latin-1", "utf-8"):
        Screen(80, False, encoding).shown(text).encode(encoding)


@given(st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"])))
def test_other_text_is_left_alone(text: str) -> None:
    """Letters, marks, symbols and blanks of every script are shown as they are."""
    assert escaped(text) == text


# -- in a terminal -----------------------------------------------------------------------------------------------------


def test_plain_text_is_escaped_in_a_terminal(folder: Path) -> None:
    """In a terminal plain `show` spells unsafe characters out; tab and newline stay."""
    ran = in_terminal("show", "target.py:build", folder=folder)
    assert ran.code == 0
    assert ran.out == f"Persona: {SPELLED}\n\nText: {SPELLED}\n\n{SPELLED}\n"


@pytest.mark.parametrize("columns", [200, 60])
def test_every_part_is_safe_in_a_terminal(folder: Path, columns: int) -> None:
    """With texts, names, scopes, tools and reasons all hostile, the terminal gets text and colours, and no row too wide."""
    options = ["--annotate", "--contexts", "--tools", "--trace"]
    ran = in_terminal("show", "target.py:build", *options, folder=folder, columns=columns)
    assert ran.code == 0
    assert not unsafe(ran.out)
    assert "[red]m[/red]" in plain(ran.out)
    assert max(cell_len(row) for row in plain(ran.out).split("\n")) <= columns


def test_annotations_are_escaped_in_a_pipe_too(folder: Path) -> None:
    """What is laid out for reading is escaped wherever it goes."""
    out = piped("show", "target.py:build", "--annotate", "--tools", "--trace", folder=folder).stdout.decode()
    assert not unsafe(out)
    assert "\x1b" not in out


def test_json_is_safe_in_a_terminal_and_stays_json(folder: Path) -> None:
    """In a terminal JSON escapes in its own way what is unsafe; it is still the same document."""
    in_pipe = json.loads(piped("show", "target.py:build", "--json", folder=folder).stdout)
    shown = in_terminal("show", "target.py:build", "--json", folder=folder).out
    assert not unsafe(shown)
    assert json.loads(shown) == in_pipe
    assert in_pipe["text"] == f"Persona: {HOSTILE}\n\nText: {HOSTILE}\n\n{HOSTILE}"


@pytest.mark.parametrize("name", ["fails", "raises", f"no{HOSTILE}".replace("\x00", ""), "build --scope"])
@pytest.mark.parametrize("extra", [[], ["--traceback"]])
def test_errors_are_safe(folder: Path, name: str, extra: list[str]) -> None:
    """Names and messages of an error are escaped, in a terminal and elsewhere, in the traceback, too."""
    name = name.partition(" --scope")[0]
    arguments = ["show", f"target.py:{name}", *extra]
    if name == "build":
        arguments += ["--scope", "\x1b[31m[red]"]
    shown = in_terminal(*arguments, folder=folder)
    assert shown.code == 2
    assert not unsafe(shown.out)
    assert "error: " in plain(shown.out)
    elsewhere = run(*arguments, folder=folder)
    assert not unsafe(elsewhere.err)
    assert "\x1b" not in elsewhere.err


def test_wrong_options_are_safe(folder: Path) -> None:
    """What was typed comes back escaped."""
    assert not unsafe(in_terminal("show", "--\x1b[31m\u202e", folder=folder).out)
    assert not unsafe(in_terminal("\x1b[31m\u202e", folder=folder).out)


# -- colours -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_terminal_gets_colours(folder: Path) -> None:
    """In a terminal owners have colours; without them the text is the same as in a pipe."""
    ran = in_terminal("show", "target.py:simple", "--annotate", folder=folder, columns=80)
    rows = ran.out.splitlines()
    (main,) = {colour for row in rows if "main" in row for colour in COLOUR.findall(row)[:1]}
    (other,) = {colour for row in rows if "other" in row for colour in COLOUR.findall(row)[:1]}
    assert main != other
    assert f"You are {other}Ada\x1b[0m." in ran.out
    assert f"{main}│" in ran.out
    assert plain(ran.out) == run("show", f"{folder}/target.py:simple", "--annotate", columns=80).out
    assert in_terminal("show", "target.py:simple", "--annotate", folder=folder, columns=80).out == ran.out


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_colours_can_be_off(folder: Path, environment: dict[str, str]) -> None:
    """With NO_COLOR, or a terminal that has none, there is not one escape sequence; errors included."""
    ran = in_terminal("show", "target.py:build", "--annotate", "--tools", "--trace", folder=folder, **environment)
    assert ran.code == 0
    assert "\x1b" not in ran.out
    assert "\x1b" not in in_terminal("show", "target.py:fails", folder=folder, **environment).out


def test_a_pipe_gets_no_colours(folder: Path) -> None:
    """Behind a pipe there are no colours, whatever other programs are told."""
    done = piped("show", "target.py:build", "--annotate", folder=folder, FORCE_COLOR="1", CLICOLOR_FORCE="1")
    assert b"\x1b" not in done.stdout


# -- width and encoding ------------------------------------------------------------------------------------------------


def test_width_is_the_terminals_or_that_of_columns(folder: Path) -> None:
    """Rows are laid out for the terminal's columns; COLUMNS overrules them."""
    narrow = in_terminal("show", "target.py:build", "--annotate", folder=folder, columns=60)
    assert max(cell_len(row) for row in plain(narrow.out).split("\n")) in range(50, 61)
    told = in_terminal("show", "target.py:build", "--annotate", folder=folder, columns=200, COLUMNS="60")
    assert told.out == narrow.out


@pytest.mark.slow
def test_an_ascii_terminal_gets_ascii(folder: Path) -> None:
    """Where stdout can only say ASCII, everything is told in ASCII, in every form."""
    write(folder, "from foreword import SystemPrompt\nprompt = SystemPrompt(persona='日本 é')\n", "wide.py")
    for options, expected in ([], r"\u65e5\u672c \xe9"), (["--annotate"], r"4 | \u65e5\u672c \xe9"), (["--json"], ""):
        ran = in_terminal("show", "wide.py:prompt", *options, folder=folder, PYTHONIOENCODING="ascii", NO_COLOR="1")
        assert ran.code == 0
        assert ran.out.isascii()
        assert expected in ran.out
    assert json.loads(ran.out)["text"] == "日本 é"
    done = piped("show", "wide.py:prompt", "--annotate", folder=folder, PYTHONIOENCODING="ascii")
    assert done.stdout.isascii()
    assert piped("show", "wide.py:日", folder=folder, PYTHONIOENCODING="ascii").stderr.isascii()


# -- being interrupted -------------------------------------------------------------------------------------------------


def test_interrupted_it_ends_quietly(folder: Path) -> None:
    """Ctrl-C while a provider keeps us waiting ends the command at once, without a traceback, with exit code 130."""
    write(
        folder,
        """
        import sys
        import anyio
        from foreword import SystemPrompt
        prompt = SystemPrompt()
        @prompt.section("s", order=1, timeout=50)
        async def text():
            print("waiting", file=sys.stderr, flush=True)
            await anyio.sleep(50)
        """,
        "waits.py",
    )
    with subprocess.Popen(
        [*COMMAND, "show", "waits.py:prompt"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
        env={**os.environ, "PYTHONUTF8": "1"},
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert process.stderr.readline() == b"waiting\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err.strip()) == (130, b"", b"")
