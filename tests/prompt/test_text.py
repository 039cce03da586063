"""Texts from files: read once, cleaned, and still known by file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from foreword import (
    NotAStringError,
    PromptLimits,
    PromptTooLargeError,
    ProviderFailedError,
    SystemPrompt,
    UnknownVariableError,
    UnreadableTextError,
)

READ: dict[str, tuple[bytes, str]] = {
    "as it is": (b"Body", "Body"),
    "a BOM": (b"\xef\xbb\xbfBody", "Body"),
    "a final newline": (b"Body\n", "Body"),
    "two final newlines": (b"Body\n\n", "Body\n"),
    "CRLF": (b"one\r\ntwo\r\n", "one\ntwo"),
    "CRLF twice at the end": (b"one\r\n\r\n", "one\n"),
    "BOM and CRLF": (b"\xef\xbb\xbfone\r\ntwo\r\n", "one\ntwo"),
    "blanks at the ends": (b"  one \t\n", "  one \t"),
    "inner blank lines": (b"a\n\n\n\nb\n====\n##", "a\n\n\n\nb\n====\n##"),
    "tabs and fences": (b"```sh\n\techo\n```\n", "```sh\n\techo\n```"),
    "not ASCII": ("grüße 😀\n".encode(), "grüße 😀"),
    "a BOM inside": ("a\ufeffb".encode(), "a\ufeffb"),
    "only a BOM": (b"\xef\xbb\xbf", ""),
    "only a newline": (b"\n", ""),
    "nothing": (b"", ""),
}


@pytest.mark.parametrize("kind", ["section", "context"])
@pytest.mark.parametrize("how", READ)
def test_a_file_is_read_as_text(tmp_path: Path, kind: str, how: str) -> None:
    """A file is UTF-8; a BOM is dropped, CRLF folded, one final newline dropped, and all else kept as it is."""
    data, text = READ[how]
    file = tmp_path / "text.md"
    file.write_bytes(data)
    prompt = SystemPrompt()
    getattr(prompt, kind)("x", file, order=1, verbatim=True)
    assembly = prompt.assemble_sync()
    assert getattr(assembly, f"{kind}s").named("x").text == text


def test_a_file_is_read_once_at_the_call(tmp_path: Path) -> None:
    """What happens to the file afterwards does not reach the prompt; `replace` reads anew."""
    file = tmp_path / "text.md"
    file.write_text("old")
    prompt = SystemPrompt()
    registration = prompt.section("s", file, order=1)
    file.write_text("new")
    assert prompt.render_sync().text == "old"
    registration.replace(file)
    assert prompt.render_sync().text == "new"
    file.unlink()
    assert prompt.render_sync().text == "new"


def test_a_file_is_a_template(tmp_path: Path) -> None:
    """A file's text is interpolated like any other, unless it is verbatim."""
    file = tmp_path / "text.md"
    file.write_text("Hi {{name}}, {{{{x}}}}\n")
    prompt = SystemPrompt()
    prompt.variable("name", "Ada")
    prompt.section("s", file, order=1)
    prompt.section("v", file, order=2, verbatim=True)
    assert prompt.render_sync().text == "Hi Ada, {{x}}\n\nHi {{name}}, {{{{x}}}}"


def test_a_relative_path_counts_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is looked for in the current folder, at the call."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "style.md").write_text("Style.")
    monkeypatch.chdir(tmp_path)
    prompt = SystemPrompt()
    prompt.section("s", Path("prompts/style.md"), order=1)
    monkeypatch.chdir("/")
    assert prompt.render_sync().text == "Style."


UNREADABLE: dict[str, tuple[bytes, str]] = {
    "no UTF-8": (b"one\ntwo \xff\n", "0xFF at offset 8 (line 2) is not UTF-8"),
    "cut short": ("grüße".encode()[:3], "0xC3 at offset 2 (line 1) is not UTF-8"),
    "UTF-16": ("text".encode("utf-16"), "is not UTF-8"),
    "a surrogate": (b"\xed\xa0\x80", "is not UTF-8"),
}


@pytest.mark.parametrize("how", UNREADABLE)
def test_a_file_that_is_no_utf_8_is_told_with_its_place(tmp_path: Path, how: str) -> None:
    """Bytes that are no UTF-8 are refused at the call, with file, offset and line of the first bad one; nothing is
    replaced."""
    data, message = UNREADABLE[how]
    file = tmp_path / "text.md"
    file.write_bytes(data)
    prompt = SystemPrompt()
    with pytest.raises(UnreadableTextError) as caught:
        prompt.owner("plugin").section("s", file, order=1)
    error = caught.value
    assert error.kind == "unreadable_text"
    assert (error.entry.name, error.entry.owner) == ("s", "plugin")
    assert str(file) in str(error)
    assert message in str(error)
    assert prompt.render_sync().text == ""


@pytest.mark.parametrize("which", ["missing.md", ".", "missing/text.md", "null\0byte.md"])
def test_a_file_that_cannot_be_opened_is_told(tmp_path: Path, which: str) -> None:
    """A file that is not there, or is a folder, is refused at the call, and the message says where it was looked for."""
    file = tmp_path / which
    with pytest.raises(UnreadableTextError) as caught:
        SystemPrompt().section("s", file, order=1)
    assert str(tmp_path) in str(caught.value)
    assert 'section "s" of main' in str(caught.value)


def test_a_relative_path_that_is_not_there_is_told_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a relative path the message tells the folder that it was looked for in."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnreadableTextError) as caught:
        SystemPrompt().section("s", Path("style.md"), order=1)
    assert str(tmp_path / "style.md") in str(caught.value)


def test_a_variable_takes_no_path(tmp_path: Path) -> None:
    """A value is a string; a file's content would be read at the wrong time."""
    with pytest.raises(NotAStringError, match="a string, None or a provider"):
        SystemPrompt().variable("v", tmp_path)  # type: ignore[call-overload]


def test_a_provider_gives_text_and_no_path(tmp_path: Path) -> None:
    """A `Path` is read at the call only; a provider reads its files itself."""
    file = tmp_path / "text.md"
    file.write_text("x")
    prompt = SystemPrompt()
    prompt.section("s", lambda: file, order=1)  # type: ignore[arg-type, return-value]
    with pytest.raises(ProviderFailedError, match="not a string"):
        prompt.render_sync()


def test_a_file_is_held_to_the_limit_of_texts(tmp_path: Path) -> None:
    """A file's text is held to the same limit as a string."""
    file = tmp_path / "text.md"
    file.write_text("abcdef")
    prompt = SystemPrompt(limits=PromptLimits(text=5))
    with pytest.raises(PromptTooLargeError):
        prompt.section("s", file, order=1)


def test_spans_know_file_and_line(tmp_path: Path) -> None:
    """Each stretch of a file's text is traced to its line in the file, with CRLF and BOM not counted; a value to the
    line that registered it."""
    file = tmp_path / "text.md"
    file.write_bytes(b"\xef\xbb\xbfone {{v}}\r\ntwo\r\n\r\nfour {{v}} {{{{x}}}}\r\nfive {{v}}\r\n")
    prompt = SystemPrompt()
    prompt.section("s", file, order=1)
    prompt.variable("v", "V\nV")
    spans = prompt.render_sync().spans
    places: list[Any] = [(span.kind, span.source.file, span.source.line) for span in spans if span.source is not None]
    here = "tests/prompt/test_text.py"
    literal = [(kind, line) for kind, where, line in places if where.endswith("/text.md")]
    assert literal == [("literal", 1), ("literal", 1), ("literal", 4)]
    assert {where for kind, where, _ in places if kind == "variable"} == {here}


def test_a_relative_file_is_traced_relatively(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in the deployment's folder is named relative to it, with forward slashes."""
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "style.md").write_text("a\nb")
    monkeypatch.chdir(tmp_path)
    prompt = SystemPrompt()
    prompt.section("s", Path("prompts") / "style.md", order=1)
    (span,) = prompt.render_sync().spans
    assert span.source is not None
    assert str(span.source).endswith("prompts/style.md:1")
    assert not Path(span.source.file).is_absolute()


def test_a_fault_in_a_file_is_told_at_its_line(tmp_path: Path) -> None:
    """A fault in a file's text names the file, and the line in it."""
    file = tmp_path / "text.md"
    file.write_text("one\n\n{{nobody}}\n")
    prompt = SystemPrompt()
    prompt.section("s", file, order=1)
    with pytest.raises(UnknownVariableError) as caught:
        prompt.render_sync()
    assert (caught.value.line, caught.value.column) == (3, 1)
    assert "/text.md:3)" in str(caught.value)
    assert "line 3" in str(caught.value)


def test_a_text_in_code_is_traced_to_the_call() -> None:
    """A text given as a string is traced to the line of the registering call, whichever line of the text."""
    prompt = SystemPrompt()
    prompt.section("s", "one\ntwo {{v}}\nthree", order=1)
    prompt.variable("v", "V")
    spans = prompt.render_sync().spans
    lines = {span.source.line for span in spans if span.kind == "literal" and span.source}
    assert len(lines) == 1
    assert {span.source.file for span in spans if span.source} == {"tests/prompt/test_text.py"}
