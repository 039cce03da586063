"""YAML without its traps: what is read is what was meant, and each trap is a fault with its line and column."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreword.errors import Fault, YamlError
from foreword.strictyaml import MAX_DEPTH, MAX_SIZE, load, read, spelled


def faults(text: str | bytes) -> list[tuple[int | None, int | None, str, str]]:
    """What is wrong with a text: line, column, path, message."""
    with pytest.raises(YamlError) as caught:
        load(text, "it.yaml")
    return [(each.line, each.column, each.path, each.message) for each in caught.value.faults]


def only_fault(text: str | bytes) -> tuple[int | None, int | None, str, str]:
    found = faults(text)
    assert len(found) == 1, found
    return found[0]


# -- what words mean ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "word",
    ["on", "off", "yes", "no", "y", "n", "On", "NO", "2026-11-30", "12:30", "1:20:30", "0b11", "1_000", "=", "tRue",
     "2026-11-30 12:00:00", "0o8", "0xg", "1e", ".e3", "+.5.", "nul", "Infinity", "NaN"],
)  # fmt: skip
def test_plain_words_stay_words(word: str) -> None:
    """What YAML 1.1 takes for booleans, dates, times and other numbers is only a word."""
    assert load(f"key: {word}\n{word}: value\n", "it.yaml").value == {"key": word, word: "value"}


@pytest.mark.parametrize(
    ("word", "value"),
    [("true", True), ("False", False), ("TRUE", True), ("null", None), ("~", None), ("", None), ("Null", None),
     ("0", 0), ("-17", -17), ("+3", 3), ("0o17", 15), ("0x1F", 31), ("9007199254740991", 2**53 - 1),
     ("1.5", 1.5), ("-.5", -0.5), ("1.", 1.0), ("1e3", 1000.0), ("2.5E-3", 0.0025), ("0.0", 0.0), ("00.5", 0.5)],
)  # fmt: skip
def test_core_values(word: str, value: object) -> None:
    """What YAML 1.2's core schema takes for a boolean, null or number is one, of just that type."""
    read_value = load(f"- {word}", "it.yaml").value[0]
    assert (read_value, type(read_value)) == (value, type(value))


@pytest.mark.parametrize("quoted", ['"true"', "'null'", '"12"', "|\n  12", ">\n  true"])
def test_quoted_is_text(quoted: str) -> None:
    """What stands in quotes or in a block is text."""
    assert isinstance(load(f"key: {quoted}", "it.yaml").value["key"], str)


def test_minus_zero_is_zero() -> None:
    """−0.0, which does not survive JSON, is read as 0.0."""
    assert str(load("-0.0", "it.yaml").value) == "0.0"


_TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"], exclude_characters="\ufeff"), max_size=20
)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number or 0.0)
    | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(_JSON)
def test_json_is_read_as_json(value: object) -> None:
    """Every JSON text of printable characters is YAML, and means the same."""
    text = json.dumps(value, ensure_ascii=False)
    assert load(text, "it.yaml").value == value


@given(st.text() | st.binary() | st.text("[]{}:,-&*!|>'\"#%@? \n\tab01"))
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    """Whatever the text, there is a plain value or a `YamlError`, and nothing else."""
    document, found = read(text, "it.yaml")
    assert found or document is not None
    if document is not None:
        json.dumps(document.value, allow_nan=False)
    assert all(each.line is not None and each.line >= 1 and each.column is not None for each in found)


# -- traps -------------------------------------------------------------------------------------------------------------


def test_duplicate_key() -> None:
    """A key that stands twice is a fault at the second, which names the line of the first."""
    line, column, path, message = only_fault("a:\n  b: 1\n  c: 2\n  b: 3\n")
    assert (line, column, path) == (4, 3, "a.b")
    assert "line 2" in message


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system", "!!str", "!mine", "!", "!!binary", "!<tag:x>"])
def test_tags(tag: str) -> None:
    """Any tag is a fault, at its value, on scalars and collections alike."""
    assert only_fault(f"a: 1\nb: {tag} x")[:3] == (2, 4, "b")
    assert only_fault(f"a: 1\nb: {tag} [x]")[:3] == (2, 4, "b")


def test_nothing_is_made_of_a_tag() -> None:
    """The value of a tag that Python would run is text, where it is read at all."""
    document, found = read("a: !!python/object/apply:os.system [exit 3]", "it.yaml")
    assert document is not None
    assert document.value == {"a": ["exit 3"]}
    assert "!!python/object/apply:os.system" in found[0].message


@pytest.mark.parametrize(
    ("key", "what"),
    [("1", "an int"), ("1.5", "a float"), ("true", "a bool"), ("~", "null"), ("? [a]\n", "a list or mapping"),
     ("? {a: b}\n", "a list or mapping"), ("<<", "merge keys"), ("? *x\n", "alias")],
)  # fmt: skip
def test_keys_are_strings(key: str, what: str) -> None:
    """A key that is no string is a fault that says what it is; what stands beside it is read."""
    document, found = read(f"first: &x 1\n{key}: 2\nlast: 3\n", "it.yaml")
    assert document is not None
    assert document.value == {"first": 1, "last": 3}
    assert [each.line for each in found] == [2]
    assert what in found[0].message


@pytest.mark.parametrize(
    "number", ["010", "-07", "00", ".inf", "-.INF", ".nan", "9007199254740993", "1e999", "-" + "9" * 5000]
)
def test_numbers_that_readers_disagree_on(number: str) -> None:
    """A number that readers take differently, or that JSON has not, is a fault."""
    assert only_fault(f"a: {number}")[:3] == (1, 4, "a")


def test_aliases_are_read() -> None:
    """An alias stands for its anchor's value."""
    assert load("a: &x [1, {b: 2}]\nc: *x\n", "it.yaml").value == {"a": [1, {"b": 2}], "c": [1, {"b": 2}]}


def test_aliases_that_explode() -> None:
    """Aliases that stand for a billion values are a fault, found at once."""
    text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    text += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10))
    *_, last = faults(text)
    assert "10,000" in last[3]


def test_aliases_of_long_texts() -> None:
    """Long texts count for what they hold: an alias to one, a thousand times, is a fault."""
    text = f"a: &x '{'y' * 10_000}'\nb: [{', '.join(['*x'] * 1000)}]\n"
    assert "10,000" in faults(text)[-1][3]


@pytest.mark.parametrize(
    ("text", "why"), [("a: &x [*x]", "part of"), ("a: *y", "unknown"), ("b: &one 1\na: *on", "one")]
)
def test_aliases_without_a_value(text: str, why: str) -> None:
    """An alias that contains itself, or has no anchor, is a fault; the nearest anchor is told."""
    assert why in only_fault(text)[3]


def test_aliases_do_not_lead_deeper() -> None:
    """What is nested too deep by way of an alias is a fault, too."""
    deep = "[" * 40 + "]" * 40
    assert "64 deep" in only_fault(f"a: &x {deep}\nb: {'[' * 40}*x{']' * 40}")[3]


def test_depth() -> None:
    """64 levels are read; one more, or a hundred thousand, is a fault."""
    assert load("[" * MAX_DEPTH + "]" * MAX_DEPTH, "it.yaml").value
    assert only_fault("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))[:2] == (1, 65)
    assert "nest" in faults("[" * 100_000)[-1][3]
    assert "64 deep" in faults("- " * 100_000)[-1][3]


def test_size() -> None:
    """A text of 1 MiB is read, one byte more is a fault; bytes count, not characters."""
    assert load("a: " + "x" * (MAX_SIZE - 3), "it.yaml").value
    assert "1,048,577 bytes" in only_fault("a: " + "x" * (MAX_SIZE - 2))[3]
    assert "bytes" in only_fault("a: " + "ä" * (MAX_SIZE // 2))[3]
    assert "bytes" in only_fault(b"a" * (MAX_SIZE + 1))[3]


def test_many_values() -> None:
    """A text with more values than any file of this kind needs is a fault."""
    assert "100,000 values" in faults("- a\n" * 100_001)[-1][3]


def test_several_documents() -> None:
    """A second document is a fault where it begins."""
    assert only_fault("a: 1\n---\nb: 2\n")[:2] == (2, 1)


def test_yaml_1_1_is_refused() -> None:
    """A file that asks for YAML 1.1 would mean something else; 1.2 is what it gets."""
    assert "YAML 1.1" in only_fault("%YAML 1.1\n---\na: on\n")[3]
    assert load("%YAML 1.2\n---\na: on\n", "it.yaml").value == {"a": "on"}


def test_bytes_that_are_no_utf8() -> None:
    """Invalid UTF-8 is a fault at its byte."""
    line, column, _, message = only_fault("ä: 1\nb: ".encode() + b"\xff")
    assert (line, column) == (2, 4)
    assert "0xFF" in message
    assert only_fault("a: 1".encode("utf-16"))[3].startswith("byte 0xFF")


@pytest.mark.parametrize("character", ["\0", "\x1b", "\x7f", "\x85", "\u2028", "\u2029", "\ufeff", "\ud800", "\uffff"])
def test_characters_that_nobody_sees(character: str) -> None:
    """Control characters, line ends that only YAML knows, stray BOMs and surrogates are faults where they stand."""
    line, column, _, message = only_fault(f"a: 1\nb: 'x{character}y'\n")
    assert (line, column) == (2, 6)
    assert f"U+{ord(character):04X}" in message


def test_a_nul_by_escape_is_refused() -> None:
    """Also a NUL that is written as an escape is a fault."""
    assert "U+0000" in only_fault('a: "x\\0y"')[3]
    assert load('a: "\\x1b\\u2028"', "it.yaml").value == {"a": "\x1b\u2028"}


def test_a_leading_bom_is_dropped() -> None:
    """A BOM at the start is no part of the text, in bytes and in strings."""
    assert load("\ufeffa: 1", "it.yaml").value == load(b"\xef\xbb\xbfa: 1", "it.yaml").value == {"a": 1}


@pytest.mark.parametrize(
    "text", ["a: [1", "a: b: c", "a:\n\t- b", "a: 'x", "- a\nb: c", "@x", "a: {b}}", "%YAML 2.0\n---\na"]
)
def test_syntax(text: str) -> None:
    """A fault of the syntax has a line and says that this is no YAML."""
    line, column, _, message = only_fault(text)
    assert line is not None
    assert column is not None
    assert message.startswith("this is no YAML: ")


# -- many at once ------------------------------------------------------------------------------------------------------


def test_all_faults_at_once() -> None:
    """Faults before one of the syntax are told with it; the reader goes on behind all others."""
    text = "a: 010\na: 2\n1: x\nb: !t y\nc: *nobody\nd: [\n"
    assert [each[0] for each in faults(text)] == [1, 2, 3, 4, 5, 7]


def test_a_hundred_thousand_faults() -> None:
    """A text with more faults than anybody reads is told the first of them, and that there are more."""
    found = faults("a: 1\n" * 100_000)
    assert len(found) < 300
    assert "more faults" in found[-1][3]


def test_the_rest_is_read_all_the_same() -> None:
    """`read` gives what is not at fault, so that other checks can go on."""
    document, found = read("a: 1\na: 2\nb: [010, 3]\n", "it.yaml")
    assert document is not None
    assert document.value == {"a": 1, "b": [None, 3]}
    assert len(found) == 2


# -- places ------------------------------------------------------------------------------------------------------------

PLACED = """\
# a comment
first: 1
list:
  - one
  - {two: 2, "th ree": [x,
      y]}
  - deep:
      er: end
shared: &s {key: value}
again: *s
"""


@pytest.mark.parametrize(
    ("path", "place"),
    [((), (2, 1)), (("first",), (2, 1)), (("list",), (3, 1)), (("list", 0), (4, 5)), (("list", 1), (5, 5)),
     (("list", 1, "two"), (5, 6)), (("list", 1, "th ree"), (5, 14)), (("list", 1, "th ree", 1), (6, 7)),
     (("list", 2, "deep", "er"), (8, 7)), (("again",), (10, 1)), (("again", "key"), (9, 13)),
     (("nobody",), None), (("first", "x"), None), (("list", 9), None)],
)  # fmt: skip
def test_places(path: tuple[str | int, ...], place: tuple[int, int] | None) -> None:
    """A place is that of the key or list item, from 1; behind an alias it is where the value stands."""
    assert load(PLACED, "it.yaml").place(path) == place


@given(_JSON)
def test_everything_has_a_place(value: object) -> None:
    """Each part of a document has a place, in the order in which it was written."""
    document = load(json.dumps(value, ensure_ascii=False, indent=1), "it.yaml")

    def places(part: object, path: tuple[str | int, ...]) -> list[tuple[int, int]]:
        items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        here = document.place(path)
        assert here is not None
        return [here, *(place for key, item in items for place in places(item, (*path, key)))]

    found = places(document.value, ())
    assert found == sorted(found)


def test_spelled_paths() -> None:
    """A path is spelled with dots and brackets; keys that would be unclear are quoted."""
    assert (
        spelled(("plugins", 1, "config", "a.b", "growth:upsell", "x y"))
        == 'plugins[1].config["a.b"].growth:upsell["x y"]'
    )
    assert spelled(()) == ""


# -- the error ---------------------------------------------------------------------------------------------------------


def test_the_error_tells_all() -> None:
    """The error lists each fault as file, line and what is wrong, and survives pickling."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - that it is one is the point
        load("a: 010\nb: [c,\n  d: e f\n", "conf/it.yaml")
    error = caught.value
    assert isinstance(error, YamlError)
    assert error.kind == "yaml_fault"
    assert "conf/it.yaml:1: a: " in str(error)
    assert "conf/it.yaml:4:1: this is no YAML" in str(error)
    assert "begins in line 2" in str(error)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.faults) == (str(error), error.faults)


def test_faults_as_text() -> None:
    """A fault shows file and line, then the path if it has one, else the column."""
    assert str(Fault("f.yaml", 3, "a.b", "is wrong", 7)) == "f.yaml:3: a.b: is wrong"
    assert str(Fault("f.yaml", 3, "", "is wrong", 7)) == "f.yaml:3:7: is wrong"
    assert str(Fault("f.toml", None, "a.b", "is wrong")) == "f.toml: a.b: is wrong"
    assert str(Fault("f.toml", None, "", "is wrong")) == "f.toml: is wrong"


def test_yaml_is_imported_late() -> None:
    """Importing the module imports no YAML library."""
    code = "import sys, foreword.strictyaml; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
