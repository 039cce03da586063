"""Front matter: what stands between two lines ``---``, and where the text behind it begins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.prompt.front_matter import MAX_SIZE, split

PARTED = {
    "none": ("Body", {}, "Body", 1),
    "nothing at all": ("", {}, "", 1),
    "keys": ("---\nname: x\norder: 2\n---\nBody", {"name": "x", "order": 2}, "Body", 5),
    "blanks behind the lines": ("--- \nname: x\n---\t \nBody", {"name": "x"}, "Body", 4),
    "no keys": ("---\n---\nBody", {}, "Body", 3),
    "a comment only": ("---\n# none yet\n---\nBody", {}, "Body", 4),
    "no text": ("---\nname: x\n---", {"name": "x"}, "", 4),
    "no text but a line end": ("---\nname: x\n---\n", {"name": "x"}, "", 4),
    "an empty line behind it": ("---\nname: x\n---\n\nBody", {"name": "x"}, "Body", 5),
    "two empty lines behind it": ("---\nname: x\n---\n\n\nBody", {"name": "x"}, "\nBody", 5),
    "a rule in the text": ("---\nname: x\n---\na\n\n---\n\nb", {"name": "x"}, "a\n\n---\n\nb", 4),
    "a rule not at the top": ("\n---\nname: x\n---\n", {}, "\n---\nname: x\n---\n", 1),
    "four dashes": ("----\nname: x\n---\n", {}, "----\nname: x\n---\n", 1),
    "an indented line": (" ---\nBody", {}, " ---\nBody", 1),
    "a longer line inside": ("---\nname: |\n  ---x\n---\nBody", {"name": "---x\n"}, "Body", 5),
}


@pytest.mark.parametrize("how", PARTED)
def test_a_text_is_parted(how: str) -> None:
    """A first line ``---`` opens front matter, the next one closes it; one empty line behind it belongs to neither."""
    text, values, held, line = PARTED[how]
    matter = split(text, "a.md")
    assert (matter.values, matter.text, matter.line, matter.faults) == (values, held, line, ())


LATE = {
    "an empty line": ("\n---\norder: 1\nwhen_model: gpt-*\n---\nx", 2),
    "blank lines": ("\n \t\n---\nname: x\n---\nx", 3),
    "what YAML does not read": ("\n---\nwhen_model: *-mini\n---\nx", 2),
    "a list, and a comment": ("\n---\n# for some\nwhen_model:\n- a\n  - b\n\nname: x\n---\n", 2),
    "a key that nobody knows beside one": ("\n---\nnames: x\norder: 1\n---\n", 2),
}
NOT_LATE = {
    "a rule": "\n---\nText\n",
    "two rules": "\n---\nText\n---\n",
    "nothing between rules": "\n---\n---\n",
    "keys of something else": "\n---\ntitle: x\n---\n",
    "a key in prose": "\n---\nAsk for these:\nname: x\n---\n",
    "no end": "\n---\nname: x\n",
    "text above": "Text\n\n---\nname: x\n---\n",
}


@pytest.mark.parametrize("how", LATE)
def test_front_matter_below_empty_lines_is_a_fault(how: str) -> None:
    """It would go to the model as text, without a word."""
    text, line = LATE[how]
    matter = split(text, "a.md", ("name", "order", "when_model"))
    assert matter.values is None
    assert [(fault.line, fault.message.partition(";")[0]) for fault in matter.faults] == [
        (line, "front matter begins in line 1")
    ]


@pytest.mark.parametrize("how", NOT_LATE)
def test_a_text_may_begin_with_a_rule(how: str) -> None:
    """Below an empty line, what does not look like front matter with a known key is text."""
    text = NOT_LATE[how]
    matter = split(text, "a.md", ("name", "order", "when_model"))
    assert (matter.text, matter.faults) == (text, ())


@given(st.lists(st.sampled_from(["", "---", "text", "\tcode", "a: b"]), max_size=6))
def test_no_line_of_the_text_is_lost(lines: list[str]) -> None:
    """Behind front matter every line of the text is there, at its line of the file, but for one empty first line."""
    whole = ["---", "name: x", "---", *lines]
    matter = split("\n".join(whole), "a.md")
    assert matter.text.split("\n") == (whole[matter.line - 1 :] or [""])
    assert matter.line == (5 if len(lines) > 1 and lines[0] == "" else 4)


AT_FAULT = {
    "never closed": ("---\nname: x\nBody", 1, 'no line "---" closes'),
    "only opened": ("---", 1, 'no line "---" closes'),
    "a rule at the top": ("---\nOnce upon a time\n---\n", 2, "must be keys and values"),
    "a list": ("---\n- name\n---\n", 2, "must be keys and values"),
    "no YAML": ("---\nname: x\norder: [1\n---\n", 4, "this is no YAML"),
    "a key twice": ("---\nname: x\norder: 1\nname: y\n---\n", 4, "in line 2 already"),
    "a tag": ("---\nname: !!str 5\n---\n", 2, "tags such as !!str are not read"),
    "an alias": ("---\nname: &a x\nwhen_model: *a\n---\n", 3, "none are read here"),
    "a glob that YAML takes for an alias": ("---\nwhen_model: *-mini\n---\n", 2, 'put it in quotes: "*-mini"'),
    "a glob that YAML cannot read": ("---\nname: x\nwhen_model: *claude*\n---\n", 3, "begins with * needs quotes"),
    "such a glob in a list": ("---\nwhen_model:\n  - gpt-*\n  - *\n---\n", 4, "begins with * needs quotes"),
    "a second document": ("---\nname: x\n...\nname: y\n---\n", 4, ""),
    "a control character": ("---\nname: a\x1bb\n---\n", 2, "U+001B"),
    "too large": (f"---\nname: {'x' * MAX_SIZE}\n---\n", 1, "more than the limit of 16,384"),
}


@pytest.mark.parametrize("how", AT_FAULT)
def test_a_fault_has_its_line_in_the_file(how: str) -> None:
    """Whatever is wrong is told at its line of the file, counting the line that opens the front matter."""
    text, line, message = AT_FAULT[how]
    fault = split(text, "a.md").faults[0]
    assert (fault.file, fault.line) == ("a.md", line)
    assert message in fault.message


def test_what_is_not_at_fault_is_read() -> None:
    """A key at fault is named as such and has no value; the others have theirs, and their lines."""
    matter = split("---\nname: x\norder: 010\n'a.b': 0x\nverbatim: true\n---\nBody", "a.md")
    assert matter.values == {"name": "x", "a.b": "0x", "verbatim": True}
    assert matter.at_fault == {"order"}
    assert [matter.line_of(key) for key in ("name", "order", "verbatim", "when_model")] == [2, 3, 5, 1]


@pytest.mark.parametrize("text", ["---\nBody", "---\na: [\n---\nBody", "---\n- a\n---\nBody"])
def test_nothing_readable_is_not_the_same_as_nothing(text: str) -> None:
    """Front matter that cannot be read at all has no values; one that is empty has none of them at fault."""
    assert split(text, "a.md").values is None
    assert split("---\n---\nBody", "a.md").values == {}


def test_front_matter_of_just_the_limit_is_read() -> None:
    """The limit is in bytes of UTF-8, line ends included."""
    name = "ü" * ((MAX_SIZE - len("name: \n")) // 2) + "x"
    assert len(f"name: {name}\n".encode()) == MAX_SIZE
    assert split(f"---\nname: {name}\n---\n", "a.md").values == {"name": name}
    assert split(f"---\nname: {name}x\n---\n", "a.md").values is None
