"""The gutter: what it shows of any prompt, at any width."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword import PromptAssembly, Rendering, SystemPrompt
from foreword.cli.annotate import blocks_of
from foreword.cli.gutter import Gutter, Palette
from foreword.cli.terminal import Screen
from foreword.cli.wrapping import cell_len

BAR = re.compile("[│╎┃╏] ?")
CallNext = Callable[[], Awaitable[PromptAssembly]]


@dataclass(frozen=True)
class Told:
    """One row, taken apart."""

    notes: str
    bar: str
    text: str


def told(rendering: Rendering, width: int, encoding: str = "utf-8") -> list[Told]:
    """The rows of a rendering's text beside its gutter."""
    screen = Screen(width, False, encoding)
    blocks = blocks_of(rendering.text, rendering.spans, screen)
    rows: list[Told] = []
    for row in Gutter(blocks, screen, Palette([])).rows(blocks):
        at = next((at for at, piece in enumerate(row) if BAR.fullmatch(piece.text)), len(row))
        texts = [piece.text for piece in row]
        bar = texts[at].strip() if at < len(row) else ""
        rows.append(Told("".join(texts[:at]), bar, "".join(texts[at + 1 :])))
    return rows


def lines_of(rows: list[Told]) -> list[str]:
    """The lines of the text, as somebody who knows what the bars mean reads them."""
    lines: list[str] = []
    for row in rows:
        if row.bar in ("╎", "╏"):
            lines[-1] += row.text
        elif row.bar:
            lines.append(row.text)
    return lines


TEXTS = st.text(st.sampled_from("ab \n日e\u0301"), min_size=1, max_size=80)
VALUES = st.text(st.sampled_from("xy \nф"), max_size=30)


@given(st.lists(TEXTS, min_size=1, max_size=4), VALUES, st.integers(16, 140))
def test_the_text_can_be_read_back(texts: list[str], value: str, width: int) -> None:
    """Beside solid bars begin the lines of the sections, broken ones go on with them, and nothing else has a bar."""
    prompt = SystemPrompt()
    prompt.owner("values").variable("v", value)
    for at, text in enumerate(texts):
        prompt.owner(f"owner{at}").section(f"section:{at}", f"{text}{{{{v}}}}{text}", order=at)
    rows = told(prompt.render_sync(), width)
    assert lines_of(rows) == [line for text in texts for line in f"{text}{value}{text}".split("\n")]


@given(st.lists(TEXTS, min_size=1, max_size=4), st.text("日本ab", min_size=1, max_size=50), st.integers(16, 140))
def test_no_row_is_wider_than_the_terminal(texts: list[str], name: str, width: int) -> None:
    """Whatever texts and names there are, every row fits the terminal."""
    prompt = SystemPrompt()
    prompt.owner(name).variable("v", "x" * 50)
    for at, text in enumerate(texts):
        prompt.owner(name * (at + 1)).section(f"{name}:{at}", f"{text}{{{{v}}}}", order=at)
    for row in told(prompt.render_sync(), width):
        assert cell_len(f"{row.notes}{row.bar and '| '}{row.text}".rstrip()) <= width


def test_notes_stand_beside_what_they_are_about() -> None:
    """A section's owner, name and size stand beside its first row; a variable's beside the row where its value begins."""
    prompt = SystemPrompt()
    prompt.owner("values").variable("v", "1,234")
    prompt.owner("rules").section("rules:all", "First.\n\nThen {{v}} more.", order=1)
    rows = told(prompt.render_sync(), 100)
    assert [(row.notes.split(), row.bar, row.text) for row in rows] == [
        (["rules", "rules:all", "24"], "│", "First."),
        ([], "│", ""),
        (["values", "{{v}}", "5"], "│", "Then 1,234 more."),
    ]


def test_blank_lines_between_sections_have_no_bar() -> None:
    """The assembler's blank line can be told from one inside a section."""
    prompt = SystemPrompt(persona="a\n\nb")
    prompt.section("next", "c", order=1)
    assert [(row.bar, row.text) for row in told(prompt.render_sync(), 100)] == [
        ("│", "a"), ("│", ""), ("│", "b"), ("", ""), ("│", "c"),
    ]  # fmt: skip


def test_rows_that_are_all_value_have_a_heavy_bar() -> None:
    """Without colours, too, the rows that a variable filled can be told."""
    prompt = SystemPrompt(persona="Log:\n{{log}}\nEnd.")
    prompt.variable("log", f"{'x' * 60}\n\ny")
    bars = [row.bar for row in told(prompt.render_sync(), 80)]
    assert bars == ["│", "┃", "╏", "┃", "┃", "│"]


def test_a_narrow_terminal_has_the_notes_above_the_text() -> None:
    """Where the gutter would leave too little room, owner, name and size head the section."""
    prompt = SystemPrompt()
    prompt.owner("values").variable("v", "Acme")
    prompt.owner("rules").section("rules:all", "We are {{v}}.", order=1)
    rows = told(prompt.render_sync(), 50)
    assert [(row.notes.split(), row.bar, row.text) for row in rows] == [
        (["rules", "rules:all", "12"], "", ""),
        (["values", "{{v}}", "4"], "", ""),
        ([], "│", "We are Acme."),
    ]


def test_many_variables_are_told_together() -> None:
    """The variables of one owner in one row make one note, which says how many it does not name."""
    prompt = SystemPrompt()
    names = [f"v{at}" for at in range(20)]
    for name in names:
        prompt.variable(name, "x")
    prompt.section("tiny", "".join(f"{{{{{name}}}}}" for name in names), order=1)
    rows = told(prompt.render_sync(), 100)
    assert [row.notes.split() for row in rows] == [
        ["main", "tiny", "20"],
        ["main", "{{v0}}", "{{v1}}", "{{v2}}", "+17", "20"],
    ]


def test_a_long_section_is_named_again() -> None:
    """Beside a long section its owner comes again before it has scrolled away, without a size."""
    prompt = SystemPrompt()
    prompt.owner("long").section("long:one", "line\n" * 80, order=1)
    notes = [row.notes.split() for row in told(prompt.render_sync(), 100)]
    assert notes[0] == ["long", "long:one", "400"]
    again = [at for at, note in enumerate(notes) if note == ["long", "long:one", "…"]]
    assert again
    assert all(later - earlier <= 24 for earlier, later in zip([0, *again], again, strict=False))


async def brief(assembly: PromptAssembly, context: object, call_next: CallNext) -> PromptAssembly:
    assembly.sections.swap("deployment:persona", text="new")
    return await call_next()


def test_scope_and_listener_are_told() -> None:
    """What stands in a scope says so, and what a listener put there names the listener."""
    prompt = SystemPrompt(persona="old")
    inner = prompt.scope("inner")
    inner.section("own", "Mine.", order=1)
    prompt.owner("editor").on_assemble(brief)
    notes = "\n".join(row.notes for row in told(inner.render_sync(), 120))
    assert re.search(r"^editor +deployment:persona +3 *\n *by listener brief", notes)
    assert re.search(r"^inner +own +5 *\n +in scope inner", notes, re.MULTILINE)


def test_a_section_that_is_all_variable_keeps_its_owner() -> None:
    """Of a section that is nothing but a value, the section's owner and the variable's are both told."""
    prompt = SystemPrompt()
    prompt.owner("values").variable("v", "Acme")
    prompt.owner("rules").section("rules:all", "{{v}}", order=1)
    notes = [row.notes.split() for row in told(prompt.render_sync(), 100)]
    assert notes == [["rules", "rules:all", "4"], ["values", "{{v}}", "4"]]


def test_an_encoding_without_bars_gets_others() -> None:
    """Where the encoding lacks the bars, ASCII takes their place, and what it lacks of a text is spelled out."""
    prompt = SystemPrompt(persona="日")
    screen = Screen(100, False, "ascii")
    rendering = prompt.render_sync()
    blocks = blocks_of(rendering.text, rendering.spans, screen)
    (row,) = Gutter(blocks, screen, Palette([])).rows(blocks)
    assert "".join(piece.text for piece in row).endswith(r"1 | \u65e5")


@given(st.sets(st.text(min_size=1, max_size=5), max_size=12))
def test_owners_have_colours_of_their_own(owners: set[str]) -> None:
    """Up to a dozen owners have each its own colour, which does not depend on the order in which they come."""
    palette, reverse = Palette(sorted(owners)), Palette(sorted(owners, reverse=True))
    assert len({palette.style(owner) for owner in owners}) == len(owners)
    assert all(palette.style(owner) == reverse.style(owner) for owner in owners)


@pytest.mark.parametrize("width", [200, 100, 60, 40])
def test_tabs_and_long_words_are_shown(width: int) -> None:
    """A tab becomes four blanks, and a word of 300 characters goes over several rows and loses nothing."""
    rows = told(SystemPrompt(persona=f"\tif x:\n{'y' * 300}").render_sync(), width)
    assert lines_of(rows) == ["    if x:", "y" * 300]
