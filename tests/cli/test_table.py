"""Tables: they fit, they lose nothing, and they stand in line."""

from hypothesis import given
from hypothesis import strategies as st

from foreword.cli.table import Column, table
from foreword.cli.terminal import UNBOUNDED, Piece, Screen
from foreword.cli.wrapping import cell_len

words = st.text("ab c日é", max_size=30).map(str.strip)
cells = st.lists(words, max_size=3).map(lambda lines: tuple(Piece(line) for line in lines if line))
records = st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[cells] * width), min_size=1, max_size=5))


def rows(columns: list[Column], held: list[tuple[tuple[Piece, ...], ...]], width: int) -> list[str]:
    """The rows of a table as a terminal of that width shows them."""
    screen = Screen(width, False, "utf-8")
    return ["".join(piece.text for piece in row).rstrip() for row in table(columns, held, screen)]


def column(title: str, *texts: str) -> tuple[Column, list[tuple[Piece, ...]]]:
    return Column(title), [(Piece(text),) if text else () for text in texts]


@given(held=records, width=st.integers(20, 120))
def test_rows_fit_and_lose_nothing(held: list[tuple[tuple[Piece, ...], ...]], width: int) -> None:
    """No row is wider than the screen, and every character of every cell is there."""
    columns = [Column(f"c{at}") for at in range(len(held[0]))]
    told = rows(columns, held, width)
    assert all(cell_len(row) <= width for row in told)
    wanted = "".join(piece.text for record in held for cell in record for piece in cell)
    shown = "".join(told)
    assert all(shown.count(each) >= wanted.count(each) for each in "ab日é")


def test_side_by_side() -> None:
    """Columns stand in line below their titles; a line of a cell is a row; columns without anything are left out."""
    columns = [Column("name"), Column("empty"), Column("lines")]
    held = [
        ((Piece("a"),), (), (Piece("one"), Piece("two"))),
        ((Piece("日本"),), (), (Piece("three"),)),
    ]
    assert rows(columns, held, UNBOUNDED) == [
        "NAME  LINES",
        "a     one",
        "      two",
        "日本  three",
    ]


def test_the_widest_column_gives_way() -> None:
    """Where there is too little room, the column with most to spare is wrapped, down to what it needs at least."""
    columns = [Column("name", least=20), Column("text", least=10)]
    held = [((Piece("a-long-name"),), (Piece("some words that go on"),))]
    assert rows(columns, held, 26) == [
        "NAME         TEXT",
        "a-long-name  some words",
        "             that go on",
    ]


def test_blocks() -> None:
    """Where that is not enough, each record is a block; of a cell with several lines, what goes on is indented."""
    columns = [Column("name", least=20), Column("text", least=12), Column("no", least=4)]
    held = [
        ((Piece("a-long-name"),), (Piece("some words"), Piece("and more words that go on")), ()),
        ((), (), (Piece("7"),)),
    ]
    assert rows(columns, held, 24) == [
        "a-long-name",
        "  text  some words",
        "        and more words",
        "          that go on",
        "(name)",
        "  no    7",
    ]
