"""Docstrings of tools: the description, and what the Args section says of parameters."""

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.tools.docstring import Docstring, read_docstring


@pytest.mark.parametrize(
    ("text", "description", "parameters"),
    [
        (None, "", {}),
        ("", "", {}),
        ("  Refund an order.  ", "Refund an order.", {}),
        ("Do.\n\n    Args:\n        a: one\n        b: two", "Do.", {"a": "one", "b": "two"}),
        ("Do.\n\n    Arguments:\n      a (int, optional): one\n\n      b: two\n", "Do.", {"a": "one", "b": "two"}),
        (
            "Do.\n\n    Parameters:\n        a: one\n          and more\n          of it",
            "Do.",
            {"a": "one and more of it"},
        ),
        ("Do.\n\n    Args:\n        a:\n            below\n", "Do.", {"a": "below"}),
        ("Args:\n    a: one\n\nReturns:\n    It.", "Returns:\n    It.", {"a": "one"}),
        ("Do.\n\n    Args:\n        a: one\n\n    Returns:\n        It.", "Do.\n\nReturns:\n    It.", {"a": "one"}),
        ("Do.\n\n    Args:\n        a: of the form x: y", "Do.", {"a": "of the form x: y"}),
        ("Do.\n\n    Args: see above", "Do.\n\nArgs: see above", {}),
        ("Do.\n\n    Args:\n", "Do.", {}),
        ("Do.\n\n    Args:\n        *rest: more\n        **named: most", "Do.", {"rest": "more", "named": "most"}),
        ("Do.\n\n    Args:\n\ta: tabs\n\tb: too", "Do.", {"a": "tabs", "b": "too"}),
    ],
)
def test_docstrings(text: str | None, description: str, parameters: dict[str, str]) -> None:
    """The Args section is taken out and read; all else is the description."""
    assert read_docstring(text) == Docstring(description, parameters)


def test_a_line_that_is_no_entry() -> None:
    """A line of the section that nobody can read is a fault, and quoted."""
    with pytest.raises(ValueError, match='"the order" of its docstring'):
        read_docstring("Do.\n\nArgs:\n    the order")


WORDS = st.text("abc .,", min_size=1, max_size=20).map(lambda text: " ".join(text.split())).filter(bool)


@given(WORDS, st.dictionaries(st.sampled_from(["a", "b", "order", "cents"]), WORDS, max_size=4), st.integers(0, 8))
def test_what_is_written_is_read(description: str, parameters: dict[str, str], indent: int) -> None:
    """A docstring written by custom is read back, however deep it is indented (also as newer Pythons strip it)."""
    entries = "".join(f"    {name}: {text}\n" for name, text in parameters.items())
    written = f"{description}\n\nArgs:\n{entries}\nReturns:\n    It.\n"
    lines = written.split("\n")
    deeper = "\n".join([lines[0], *(" " * indent + line if line else line for line in lines[1:])])
    expected = Docstring(f"{description}\n\nReturns:\n    It.", parameters)
    assert read_docstring(deeper) == read_docstring(dedent(written)) == expected
