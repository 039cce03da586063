"""Cutting lines by cells."""

from hypothesis import given
from hypothesis import strategies as st

from foreword.cli.wrapping import cell_len, clipped, padded, wrapped

CHARACTERS = st.sampled_from([*"ab  .-", "日", "、", "한", "e\u0301", "\u0301", "👨\u200d👩\u200d👧", "\u200d", "א"])
LINES = st.lists(CHARACTERS, max_size=60).map("".join)
WIDTHS = st.integers(2, 40)


@given(LINES, WIDTHS)
def test_rows_joined_are_the_line(line: str, width: int) -> None:
    """Wrapping loses and adds nothing, and makes no empty row of a line that is not empty."""
    rows = wrapped(line, width)
    assert "".join(rows) == line
    assert all(rows) or rows == [""]


@given(LINES, WIDTHS)
def test_no_row_is_too_wide(line: str, width: int) -> None:
    """A row fills no more cells than it may, blanks at its end aside, which nobody sees."""
    assert all(cell_len(row.rstrip(" ")) <= width for row in wrapped(line, width))


@given(LINES, WIDTHS)
def test_marks_stay_with_their_character(line: str, width: int) -> None:
    """No row begins with a mark that belongs to the character before it."""
    assert not any(row.startswith(("\u0301", "\u200d")) for row in wrapped(line, width)[1:])


@given(st.lists(st.text("abc", min_size=1, max_size=8), min_size=1, max_size=20), st.integers(8, 40))
def test_words_stay_whole_where_they_fit(words: list[str], width: int) -> None:
    """A word that fits a row is never cut."""
    line = " ".join(words)
    assert [word for row in wrapped(line, width) for word in row.split()] == words


def test_wide_characters_take_two_cells() -> None:
    """East Asian text is cut by the cells it takes, and no row begins with a closing mark."""
    assert wrapped("日本語のテキスト。", 8) == ["日本語の", "テキス", "ト。"]


def test_indentation_stays_with_its_text() -> None:
    """A row never holds nothing but the blanks in front of a long word."""
    assert wrapped("    " + "x" * 10, 8) == ["    xxxx", "xxxxxx"]


def test_padding_counts_cells() -> None:
    """Padding fills up to a width in cells, not in characters."""
    assert padded("日本", 6) == "日本  "
    assert padded("e\u0301", 3) == "e\u0301  "


def test_names_are_clipped_to_a_width() -> None:
    """Of many names as many are told as fit, then how many more there are; one is always told."""
    assert clipped(["a", "b", "c"], 5) == "a b c"
    assert clipped(["aa", "bb", "cc"], 7) == "aa +2"
    assert clipped(["aa", "bb", "cc", "dd"], 8) == "aa bb +2"
    assert clipped(["a-long-name", "b"], 4) == "a-long-name +1"
