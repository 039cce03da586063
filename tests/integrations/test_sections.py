from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from foreword.integrations.sections import Namer, Piece, pieces_of
from foreword.integrations.told import Credit, Credits
from foreword.prompt.spans import SEPARATOR

TEXT = st.text("ab \n", min_size=1, max_size=12)
CREDITS = st.lists(
    st.builds(Credit, TEXT, st.none() | st.sampled_from(["x", "y"]), st.sampled_from(["p", "q"])), max_size=4
)


@given(st.lists(TEXT, max_size=4), CREDITS)
def test_the_pieces_make_up_the_text(instructions: list[str], parts: list[Credit]) -> None:
    """However a text is parted, the parts joined by blank lines are the text, and none is empty."""
    pieces = pieces_of(instructions, Credits("agent", tuple(parts)))
    assert SEPARATOR.join(piece.text for piece in pieces) == SEPARATOR.join(instructions)
    assert all(piece.text for piece in pieces)


@given(
    st.lists(
        TEXT.filter(lambda text: SEPARATOR not in text and text.strip("\n") == text),
        min_size=1,
        max_size=4,
        unique=True,
    )
)
def test_joined_parts_are_found(texts: list[str]) -> None:
    """Parts that a framework joins with blank lines are told apart, each with its name and owner."""
    whose = Credits("agent", tuple(Credit(text, f"part-{at}", f"owner-{at}") for at, text in enumerate(texts)))
    pieces = pieces_of([SEPARATOR.join(texts)], whose)
    assert pieces == [Piece(text, f"part-{at}", f"owner-{at}") for at, text in enumerate(texts)]


def test_a_part_in_a_wrapping_is_found() -> None:
    """What a framework puts round a part belongs to it."""
    whose = Credits("agent", (Credit("Be kind.", "tone", "style"), Credit("It is late.", "clock", "time")))
    text = "<a>\nBe kind.\n</a>\n\nAnd more.\n\n<b>\nIt is late.\n</b>"
    assert [(piece.text, piece.name) for piece in pieces_of([text], whose)] == [
        ("<a>\nBe kind.\n</a>", "tone"),
        ("And more.\n\n<b>\nIt is late.\n</b>", "clock"),
    ]


def names(*requests: list[tuple[str, str | None]]) -> list[list[str]]:
    namer = Namer()
    return [[each.name for each in namer.name([Piece(text, name, "o") for text, name in told])] for told in requests]


def test_a_part_without_a_name_is_called_by_place_and_first_words() -> None:
    """Up to four words, and none from the first with a digit on, since that one may change."""
    told = [("You are the clerk of a bookshop.", None), ("It is 10:29.", None), ("29", None), ("Be kind.", "tone")]
    assert names(told) == [["#1 You are the clerk", "#2 It is", "#3", "tone"]]


def test_it_keeps_its_name_while_it_can_be_recognised() -> None:
    """By its text wherever it stands, else by its place; so what changed is not told as what went and what came."""
    assert names(
        [("Be kind.", None), ("It is 10:29.", None)],
        [("Be kind.", None), ("Late it is.", None)],
        [("New.", None), ("Be kind.", None), ("Late it is.", None)],
    ) == [["#1 Be kind.", "#2 It is"], ["#1 Be kind.", "#2 It is"], ["#1 New.", "#1 Be kind.", "#2 It is"]]


def test_no_two_bear_one_name() -> None:
    """Namesakes are numbered."""
    assert names([("a", "x"), ("b", "x"), ("c", "x")]) == [["x", "x (2)", "x (3)"]]


@given(st.lists(st.lists(st.tuples(TEXT, st.none() | st.sampled_from(["x", "y"])), max_size=4), max_size=4))
def test_names_are_names(requests: list[list[tuple[str, str | None]]]) -> None:
    """In each request every part has a name of its own."""
    for told, request in zip(names(*requests), requests, strict=True):
        assert len(set(told)) == len(told) == len(request)
