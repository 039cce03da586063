"""Helpers of the rules: what stands in code is blanked, how two texts differ is told shortly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.explain.lint.scanning import change, outside_code


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a `b` c", "a     c"),
        ("a ``b`c`` d", "a         d"),
        ("a ` b", "a   b"),  # alone, it opens nothing
        ("a `` b", "a    b"),
        ("```py\nb\n```\nc", "     \n \n   \nc"),
        ("```\nb\nc", "   \n \n "),  # a fence that is not closed goes to the end
        ("no code", "no code"),
        ("", ""),
        ("`", " "),
    ],
)
def test_code_is_blanked(text: str, left: str) -> None:
    """Backticks, runs of them, and fences; a backtick alone is prose."""
    assert outside_code(text) == left


@given(st.text("ab` \n", max_size=40))
def test_everything_keeps_its_place(text: str) -> None:
    """What is left has the length and the lines of the text, and each of its characters is the text's or a blank."""
    left = outside_code(text)
    assert len(left) == len(text)
    assert all(one == other or (one == " " and other != "\n") for one, other in zip(left, text, strict=True))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("It is 10:02.", "It is 17:15.", "character 8, '10:02.' → '17:15.'"),
        ("a\nb c", "a\nb d", "character 5, 'c' → 'd'"),
        ("same", "same, and more", "character 5, 'same' → 'same, and more'"),
        ("", "x", "character 1, '' → 'x'"),
        ("x" * 40, "y" * 40, f"character 1, {'x' * 24!r}… → {'y' * 24!r}…"),
        ("a b\nc", "a d\nc", "character 3, 'b' → 'd'"),
    ],
)
def test_how_two_texts_differ(before: str, after: str, told: str) -> None:
    """Where they part, and how each goes on from the beginning of that word, up to the end of the line."""
    assert change(before, after) == told
