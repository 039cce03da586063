"""`sections_from`: a folder of Markdown files becomes sections, all or none of them."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.kernel import kernel, made
from tests.support.short import Bell, facts, names, reasons, tool

from foreword import (
    AssembleContext,
    DuplicateEntryError,
    InactiveContextError,
    InvalidSectionFilesError,
    ModelRef,
    NonFiniteOrderError,
    PromptLimits,
    ProtectedSectionShadowError,
    ProtectionConflictError,
    SystemPrompt,
    UnknownVariableError,
    UnreadableTextError,
    WrongThreadError,
)

Fill = Callable[[Mapping[str, str | bytes]], Path]


def filled(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


@pytest.fixture
def fill(tmp_path: Path) -> Fill:
    """Write files into a folder, and give it."""
    return lambda files: filled(tmp_path, files)


def sections(prompt: SystemPrompt) -> list[tuple[str, str]]:
    """Names and texts of the sections, without the persona."""
    return [(each.name, each.text) for each in prompt.assemble_sync().sections if each.name != "deployment:persona"]


def refused(folder: Path, **options: Any) -> InvalidSectionFilesError:
    """The error of a folder, which leaves the prompt as it was."""
    prompt = SystemPrompt()
    with pytest.raises(InvalidSectionFilesError) as caught:
        prompt.owner("billing").sections_from(folder, **options)
    assert sections(prompt) == []
    return caught.value


def told(folder: Path, **options: Any) -> list[str]:
    """The faults of a folder as messages show them, the folder left out."""
    return [str(fault).replace(fault.file, Path(fault.file).name) for fault in refused(folder, **options).faults]


# -- what is read ------------------------------------------------------------------------------------------------------


def test_each_file_is_a_section(fill: Fill) -> None:
    """Each file is a section, called by its front matter, or by owner and stem; they stand in their orders."""
    folder = fill({
        "tone.md": "---\norder: 30\n---\nBe brief.\n",
        "rules.md": "---\nname: acme:rules\norder: 20.5\n---\nNever promise a refund.\n",
        "a.b.md": "---\norder: 31\n---\nBye.\n",
    })  # fmt: skip
    prompt = SystemPrompt()
    prompt.owner("billing").sections_from(folder)
    assert sections(prompt) == [
        ("acme:rules", "Never promise a refund."),
        ("billing:tone", "Be brief."),
        ("billing:a.b", "Bye."),
    ]
    assert {span.owner for span in prompt.render_sync().owner_of("Be brief")} == {"billing"}


def test_byte_order_mark_and_windows_line_ends(fill: Fill) -> None:
    """A BOM is dropped, CRLF folded, one final newline dropped, in front matter and text alike."""
    folder = fill({"a.md": b"\xef\xbb\xbf---\r\nname: x\r\norder: 1\r\n---\r\nBody\r\n"})
    prompt = SystemPrompt()
    prompt.sections_from(folder)
    assert sections(prompt) == [("x", "Body")]
    assert "\r" not in prompt.render_sync().text


def test_inner_text_stays_as_it_is(fill: Fill) -> None:
    """Inner blank lines, tabs, rules and code fences are text like any other."""
    body = "a\n\n\n\nb\n====\n##\n---\n```sh\n\techo\n```  \n"
    prompt = SystemPrompt()
    prompt.sections_from(fill({"a.md": f"---\norder: 1\n---\n{body}\n", "b.md": f"{body}\n"}), order=2)
    assert sections(prompt) == [("main:a", body), ("main:b", body)]


@given(st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_without_front_matter_a_file_is_read_like_a_path(data: bytes) -> None:
    """Whatever bytes a file has, `sections_from` makes of it what `section` makes of its path, with front matter or
    without."""
    assume(b"---" not in data[:6])  # it has no front matter of its own
    with TemporaryDirectory() as name:
        folder = filled(Path(name), {"a.md": data, "b.md": b"---\norder: 5\n---\nx" + data})
        (folder / "c").write_bytes(b"x" + data)
        prompt, other = SystemPrompt(), SystemPrompt()
        try:
            prompt.section("main:a", folder / "a.md", order=1)
            prompt.section("main:b", folder / "c", order=5)
        except UnreadableTextError:
            assert [fault.file[-4:] for fault in refused(folder, order=1).faults] == ["a.md", "b.md"]
            return
        other.sections_from(folder, order=1)
        assert sections(other) == sections(prompt)


def test_files_are_read_once_at_the_call(fill: Fill) -> None:
    """What happens to a file afterwards does not reach the prompt."""
    folder = fill({"a.md": "old"})
    prompt = SystemPrompt()
    prompt.sections_from(folder, order=1)
    (folder / "a.md").write_text("new")
    (folder / "b.md").write_text("another")
    assert prompt.render_sync().text == "old"


def test_a_relative_folder_counts_from_the_current_one(fill: Fill, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is looked for in the current folder, at the call."""
    monkeypatch.chdir(fill({"a.md": "A"}))
    prompt = SystemPrompt()
    prompt.sections_from(Path(), order=1)
    monkeypatch.chdir("/")
    assert prompt.render_sync().text == "A"


def test_equal_orders_stand_by_file_name(fill: Fill) -> None:
    """Files of equal order stand by the code points of their names, whatever order the folder gives them in."""
    listed = ["é.md", "b.md", "B.md", "a1.md", "a10.md", "a2.md", "_.md"]
    prompt = SystemPrompt()
    prompt.sections_from(fill(dict.fromkeys(listed, "x")), order=1)
    assert [name for name, _ in sections(prompt)] == [f"main:{name[:-3]}" for name in sorted(listed)]
    assert min(listed) == "B.md"


def test_a_default_order_is_for_files_without_one(fill: Fill) -> None:
    """`order=` gives a place to those files that say none, and to no other."""
    folder = fill({"a.md": "A", "b.md": "---\nverbatim: true\n---\nB", "c.md": "---\norder: 0.5\n---\nC"})
    prompt = SystemPrompt()
    prompt.sections_from(folder, order=1)
    assert prompt.render_sync().text == "C\n\nA\n\nB"


def test_what_is_no_section_file_is_left_alone(fill: Fill) -> None:
    """Hidden files, files of other kinds and sub-folders are not looked at, whatever is in them."""
    folder = fill({"a.md": "A", ".draft.md": b"\xff", "notes.txt": b"\xff", "a.md~": b"\xff", ".md": b"\xff"})
    (folder / "old").mkdir()
    (folder / "old" / "b.md").write_bytes(b"\xff")
    prompt = SystemPrompt()
    prompt.sections_from(folder, order=1)
    assert sections(prompt) == [("main:a", "A")]


def test_links_are_followed(fill: Fill, tmp_path: Path) -> None:
    """A link to a file, or to the folder, stands for what it leads to."""
    (tmp_path / "real").mkdir()
    (tmp_path / "elsewhere.txt").write_text("A")
    (tmp_path / "real" / "a.md").symlink_to(tmp_path / "elsewhere.txt")
    (tmp_path / "link").symlink_to("real")
    prompt = SystemPrompt()
    prompt.sections_from(tmp_path / "link", order=1)
    assert sections(prompt) == [("main:a", "A")]


# -- what front matter says --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelled", "models", "there"),
    [
        ("gpt-*", "openai:gpt-5", True),
        ("gpt-*", "openai:o3", False),
        ("'*'", "openai:o3", True),
        ("azure:*", "azure:gpt-5", True),
        ("azure:*", "openai:gpt-5", False),
        ("[gpt-*, o3]", "openai:o3", True),
        ("[gpt-*, o3]", "openai:o1", False),
        ("['*']", "", False),
    ],
)
def test_sections_for_some_models(fill: Fill, spelled: str, models: str, there: bool) -> None:
    """`when_model` is a glob or a list of some, as `ModelRef.matches` takes them; without a model it is false."""
    folder = fill({"a.md": f"---\norder: 1\nwhen_model: {spelled}\n---\nA"})
    prompt = SystemPrompt()
    prompt.sections_from(folder)
    model = ModelRef(*models.split(":")) if models else None
    rendering = prompt.render_sync(AssembleContext(model=model))
    assert rendering.text == ("A" if there else "")
    assert (reasons(rendering, "main:a") == []) is there


@pytest.mark.parametrize("spelled", ["bash", "[bash]", "\n  - bash\n  - read"])
def test_sections_that_need_tools(fill: Fill, spelled: str) -> None:
    """`requires_tools` names a tool, or a list of some; without one of them the section goes."""
    prompt = SystemPrompt()
    prompt.sections_from(fill({"a.md": f"---\norder: 1\nrequires_tools: {spelled}\n---\nA"}))
    prompt.tools([tool("read")])
    assert facts(prompt)[0] == ""
    prompt.tools([tool("bash")])
    assert facts(prompt)[0] == "A"


def test_an_empty_list_of_tools_requires_none(fill: Fill) -> None:
    """`requires_tools: []` says what leaving it out says."""
    prompt = SystemPrompt()
    prompt.sections_from(fill({"a.md": "---\norder: 1\nrequires_tools: []\n---\nA"}))
    assert facts(prompt)[0] == "A"


def test_front_matter_below_an_empty_line_is_refused(fill: Fill) -> None:
    """A default order would let it through, and the model would read it; a text that begins with a rule is none."""
    prompt = SystemPrompt()
    with pytest.raises(InvalidSectionFilesError, match=r"a\.md:2: front matter begins in line 1; drop the empty line"):
        prompt.sections_from(fill({"a.md": "\n---\norder: 1\nwhen_model: gpt-*\n---\nx"}), order=30)
    prompt.sections_from(fill({"a.md": "\n---\nA rule.\n---\n"}), order=30)
    assert facts(prompt)[0] == "\n---\nA rule.\n---"


def test_a_text_is_a_template_unless_verbatim(fill: Fill) -> None:
    """References are resolved, except where `verbatim` says that the text is no template."""
    folder = fill(
        {"a.md": "{{name}}", "b.md": "---\nverbatim: true\n---\n{{ b }}", "c.md": "---\nverbatim: false\n---\n"}
    )
    prompt = SystemPrompt()
    prompt.variable("name", "Ada")
    prompt.sections_from(folder, order=1)
    assert prompt.render_sync().text == "Ada\n\n{{ b }}"


WRONG = {
    "order: high": "2: order: must be a number, not 'high'",
    "order:": "2: order: must be a number, not null",
    "order: '20'": "2: order: must be a number, not '20'",
    "order: true": "2: order: must be a number, not true",
    "order: 010": "2: order: is a number with a leading zero, which readers take in two ways; quote it, or drop the zero",
    "order: [1]": "2: order: must be a number, not a list",
    "order: .inf": "2: order: .inf is no number that JSON has; quote it if it is a word",
    "name: ''": "2: name: must be a text that is not empty, not ''",
    "name: 5": "2: name: must be a text that is not empty, not 5; put it in quotes",
    "name: {a: b}": "2: name: must be a text that is not empty, not keys and values",
    "verbatim: yes": "2: verbatim: must be true or false, not 'yes'",
    "verbatim: 1": "2: verbatim: must be true or false, not 1",
    "when_model: []": "2: when_model: must be a glob, such as gpt-*, or a list of some: [gpt-*, o3], not an empty list",
    "when_model: gpt-*, o3": "2: when_model: must be a glob, such as gpt-*, or a list of some: [gpt-*, o3], not 'gpt-*, o3'",
    "requires_tools: read write": "2: requires_tools: must be a tool, or a list of some: [read, write], not 'read write'",
    "requires_tools: [5]": "2: requires_tools: must be a tool, or a list of some: [read, write], not a list that holds 5; "
    "put it in quotes",
    "requires_tools: [read, '']": "2: requires_tools: must be a tool, or a list of some: [read, write], not a list that "
    "holds ''",
    "when_model: 4": "2: when_model: must be a glob, such as gpt-*, or a list of some: [gpt-*, o3], not 4; put it in quotes",
    "ordr: 5": '2: ordr: is no key of a section file; did you mean "order"? known keys: name, order, requires_tools, '
    "verbatim, when_model",
    "complete: true": "2: complete: is no key of a section file; known keys: name, order, requires_tools, verbatim, "
    "when_model",
    "a.b: 1": '2: ["a.b"]: is no key of a section file; known keys: name, order, requires_tools, verbatim, when_model',
}  # fmt: skip


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_value_is_told_with_its_line(fill: Fill, line: str) -> None:
    """A value that does not fit, or a key that nobody knows, is told with its line and what would fit."""
    folder = fill({"a.md": f"---\n{line}\n---\nA"})
    assert told(folder, order=1) == [f"a.md:{WRONG[line]}"]


def test_a_file_without_an_order_is_told_the_two_ways_out(fill: Fill) -> None:
    """Without an order, of its own or by default, nobody could say where a section goes."""
    folder = fill({"a.md": "A", "b.md": "---\nname: b\n---\nB", "c.md": "---\norder: 5\n---\nC"})
    way_out = "give it one in its front matter, or all without one a default: sections_from(…, order=…)"
    assert told(folder) == [f"a.md:1: has no order; {way_out}", f"b.md:1: has no order; {way_out}"]


# -- faults of all files at once ---------------------------------------------------------------------------------------


def test_all_faults_of_all_files_are_told_at_once(fill: Fill) -> None:
    """One call tells everything that is wrong, file by file and line by line, and registers nothing."""
    folder = fill({
        "a.md": "---\nverbatim: no\nname: 5\nordr: 1\n---\nA",
        "b.md": "fine",
        "c.md": b"one\ntwo \xff\n",
        "d.md": "---\nname: x\n---\nD",
        "e.md": "---\nrequires_tools: 1\nname: x\n---\nE",
        "f.md": "---\nF",
    })  # fmt: skip
    assert [line.partition(": ")[0] for line in told(folder, order=1)] == [
        "a.md:2", "a.md:3", "a.md:4", "c.md:2", "e.md:2", "e.md:3", "f.md:1",
    ]  # fmt: skip
    error = refused(folder, order=1)
    assert str(error).startswith("the section files of billing (tests/prompt/test_section_files.py:")
    assert "have 7 faults, and none was registered:\n" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_what_could_not_be_read_is_told_once(fill: Fill) -> None:
    """A key that is there, though at fault, is not told to be missing, and a name that is not known takes none."""
    folder = fill({
        "a.md": "---\nverbatim: no\norder: 010\nname: !a x\n---\n",
        "b.md": "---\norder: 1\nname: billing:a\n---\n",
        "c.md": "---\norder: [\n---\n",
        "d.md": "---\norder: 1\nname: billing:c\n---\n",
    })  # fmt: skip
    places = [line.partition(": ")[0] for line in told(folder)]
    assert places == ["a.md:2", "a.md:3", "a.md:4", "c.md:3:1"]


KINDS: dict[str, tuple[dict[str, str | bytes], str]] = {
    "unreadable_text": ({"a.md": b"\xff", "b.md": b"x\xff"}, "is not UTF-8; save it as UTF-8"),
    "duplicate_section": ({"a.md": "---\nname: x\n---\n", "b.md": "---\nname: x\n---\n"}, '"x" is already the name of'),
    "prompt_too_large": ({"a.md": "x" * 101}, "has 101 bytes in UTF-8, more than the limit of 100"),
    "invalid_section_files": ({"a.md": "---\nname: 5\n---\n", "b.md": b"\xff"}, "name: must be a text"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_faults_of_one_kind_give_the_error_its_kind(fill: Fill, kind: str) -> None:
    """Where all faults are of a kind that a single text could have, that is the kind; else it is the folder's own."""
    files, message = KINDS[kind]
    with pytest.raises(InvalidSectionFilesError) as caught:
        SystemPrompt(limits=PromptLimits(text=100)).sections_from(fill(files), order=1)
    assert caught.value.kind == kind
    assert message in str(caught.value)


def test_a_folder_full_of_faults_is_not_told_to_the_end(tmp_path: Path) -> None:
    """After 200 faults the message says that there are more."""
    for at in range(300):
        (tmp_path / f"{at:03}.md").write_text("x")
    faults = told(tmp_path)
    assert len(faults) == 201
    assert faults[-1] == "200.md: there are more faults than these; mend them first"


@pytest.mark.parametrize(
    ("which", "why"),
    [
        ("missing", "is not there; a relative path starts at the current folder"),
        ("file.txt", "is no folder; one file is registered with section(name, Path(…), order=…)"),
        ("empty", "holds no .md file; hidden files and sub-folders are not looked at"),
        ("null\0byte", "cannot be read: "),
    ],
)
def test_a_folder_without_sections_is_told(tmp_path: Path, which: str, why: str) -> None:
    """A folder that is not there, is none, or has no section file is refused: a prompt that lacks parts is no prompt."""
    (tmp_path / "file.txt").write_text("x")
    (tmp_path / "empty" / "sub.md.d").mkdir(parents=True)
    error = refused(tmp_path / which)
    assert error.kind == "unreadable_text"
    (fault,) = error.faults
    assert (fault.file, fault.line) == (str(tmp_path / which).replace("\0", "\\x00"), None)
    assert fault.message.startswith(why)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders here")
def test_what_is_no_plain_file_is_told(tmp_path: Path) -> None:
    """A pipe, a folder or a dead link that is called like a section file is refused, and nothing is waited for."""
    os.mkfifo(tmp_path / "a.md")
    (tmp_path / "b.md").mkdir()
    (tmp_path / "c.md").symlink_to("nowhere")
    (tmp_path / "d.md").symlink_to("d.md")
    assert [line.partition(" (")[0] for line in told(tmp_path)][:3] == [
        "a.md: is no plain file", "b.md: is no plain file", "c.md: cannot be read: No such file or directory",
    ]  # fmt: skip
    assert told(tmp_path)[3].startswith("d.md: ")


@pytest.mark.parametrize("name", ["a.MD", "a.Md"])
def test_a_suffix_in_capitals_is_told(fill: Fill, name: str) -> None:
    """What some file systems take for ``.md`` and others do not is refused, since the prompt must not depend on that."""
    why = f"its name ends in {name[-3:]}; rename it, so that it ends in .md"
    assert told(fill({name: "A"}), order=1) == [f"{name}: {why}"]


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    """A file whose name no text can spell may be a section, but not lend it its name."""
    try:
        (tmp_path / os.fsdecode(b"a\xff.md")).write_text("---\norder: 1\n---\nA")
    except OSError:
        pytest.skip("this file system has no such names")
    (fault,) = refused(tmp_path).faults
    assert fault.file.endswith("a\\udcff.md")
    assert fault.message == "rename it, or give it a name in its front matter: this one is no UTF-8"
    (tmp_path / os.fsdecode(b"a\xff.md")).write_text("---\norder: 1\nname: a\n---\nA")
    prompt = SystemPrompt()
    prompt.sections_from(tmp_path)
    assert sections(prompt) == [("a", "A")]


def test_odd_file_names_keep_messages_readable(fill: Fill) -> None:
    """A file name that would break lines or act on a terminal is spelled out."""
    error = refused(fill({"a\nb\x1b[31m\u202e.md": "A"}))
    assert len(str(error).split("\n")) == 2
    assert all(line.isprintable() for line in str(error).split("\n"))
    assert "a\\nb\\x1b[31m\\u202e.md:1" in str(error)


@pytest.mark.parametrize(
    ("content", "fits"),
    [("x" * 100, True), ("x" * 101, False), ("ü" * 50 + "\n", True), ("x\r\n" * 50 + "\r\n", True), ("x" * 99 + "ü", False),
     ("---\nname: n\n---\n" + "x" * 100, True), ("x" * 1_000_000, False), ("---\n" + "x" * 1_000_000, False)],
)  # fmt: skip
def test_a_text_is_held_to_the_limit_of_texts(fill: Fill, content: str, fits: bool) -> None:
    """The limit is that of texts, front matter, BOM and CR not counted; what is far beyond is not read."""
    prompt = SystemPrompt(limits=PromptLimits(text=100))
    folder = fill({"a.md": content})
    if fits:
        prompt.sections_from(folder, order=1)
        return
    with pytest.raises(InvalidSectionFilesError, match="more than the limit of 100; shorten it or raise the limit"):
        prompt.sections_from(folder, order=1)


def test_arguments_of_the_wrong_type(tmp_path: Path) -> None:
    """A string is no path, since everywhere else it is a text; the default order is a finite number."""
    prompt = SystemPrompt()
    with pytest.raises(TypeError, match=re.escape("sections_from takes a Path, not a str: sections_from(Path(…))")):
        prompt.sections_from(str(tmp_path))  # type: ignore[arg-type]
    with pytest.raises(NonFiniteOrderError, match=re.escape('the order of section "main:*" of main')):
        prompt.sections_from(tmp_path, order=float("nan"))


# -- places ------------------------------------------------------------------------------------------------------------


def test_spans_count_the_front_matter(fill: Fill) -> None:
    """Each stretch of a text is traced to its line of the file, behind front matter and one empty line."""
    folder = fill({
        "a.md": b"\xef\xbb\xbf---\r\norder: 1\r\n---\r\none {{v}}\r\ntwo {{v}}\r\n",
        "b.md": "---\norder: 2\n# more\n---\n\none {{v}}\n\nthree {{v}}\n",
        "c.md": "one {{v}}\ntwo {{v}}",
    })  # fmt: skip
    prompt = SystemPrompt()
    prompt.variable("v", "V")
    prompt.sections_from(folder, order=3)
    spans = prompt.render_sync().spans
    places = [(span.source.file[-4:], span.source.line) for span in spans if span.kind == "literal" and span.source]
    assert places == [("a.md", 4), ("a.md", 4), ("b.md", 6), ("b.md", 6), ("c.md", 1), ("c.md", 1)]
    at = spans.text.index("three")
    (span,) = spans.between(at, at + len("three"))
    assert span.source is not None
    assert span.source.line == 8


def test_a_fault_of_a_text_has_its_line_in_the_file(fill: Fill) -> None:
    """A reference that cannot be resolved is told with its line in the file, as an editor counts them."""
    prompt = SystemPrompt()
    prompt.sections_from(fill({"a.md": "---\norder: 1\n---\nfine\n{{nobody}}\n"}))
    with pytest.raises(UnknownVariableError) as caught:
        prompt.render_sync()
    assert "/a.md:5), line 2, column 1:" in str(caught.value)


# -- one registration --------------------------------------------------------------------------------------------------


def test_closing_undoes_all(fill: Fill) -> None:
    """The registration holds all the sections; closing it, or the view, takes them all."""
    folder = fill({"a.md": "A", "b.md": "B"})
    prompt = SystemPrompt()
    registration = prompt.sections_from(folder, order=1)
    assert re.fullmatch(r"<Registration 2 sections from \S+ of main \(tests/prompt/\S+:\d+\)>", repr(registration))
    registration.close()
    assert sections(prompt) == []
    registration.close()
    with prompt.owner("o") as view:
        view.sections_from(folder, order=1)
        assert [name for name, _ in sections(prompt)] == ["o:a", "o:b"]
    assert sections(prompt) == []
    with pytest.raises(InactiveContextError):
        view.sections_from(folder, order=1)


def test_an_old_undo_removes_no_namesake(fill: Fill) -> None:
    """Closed, a registration stays closed: what bears the names now is not its own."""
    folder = fill({"a.md": "A"})
    prompt = SystemPrompt()
    first = prompt.sections_from(folder, order=1)
    first.close()
    prompt.sections_from(folder, order=1)
    first.close()
    assert sections(prompt) == [("main:a", "A")]


def test_it_is_one_change(fill: Fill) -> None:
    """However many files there are, change listeners hear once when they come and once when they go; a refused folder
    is not heard of."""
    prompt, bell = SystemPrompt(), Bell()
    prompt.on_change(bell)
    registration = prompt.sections_from(fill({"a.md": "A", "b.md": "B", "c.md": "C"}), order=1)
    assert bell.rung == 1
    registration.close()
    assert bell.rung == 2
    with pytest.raises(InvalidSectionFilesError):
        prompt.sections_from(fill({"d.md": b"\xff"}), order=1)
    assert bell.rung == 2


def test_a_change_is_seen_whole(fill: Fill) -> None:
    """A listener never sees a part of a folder."""
    prompt = SystemPrompt()
    seen: list[list[str]] = []
    prompt.on_change(lambda: seen.append([name for name, _ in sections(prompt)]))
    prompt.sections_from(fill({"a.md": "A", "b.md": "B"}), order=1).close()
    assert seen == [["main:a", "main:b"], []]


@pytest.mark.parametrize("scoped", [False, True])
def test_a_raising_listener_takes_all_back(fill: Fill, scoped: bool) -> None:
    """A change listener that raises takes every file back, hears of that, and its error comes through."""
    folder = fill({"a.md": "A", "b.md": "B"})
    prompt, bell = SystemPrompt(), Bell(OSError("disk"))
    prompt.on_change(bell)
    view = prompt.scope("agent") if scoped else prompt
    with pytest.raises(OSError, match="disk"):
        view.sections_from(folder, order=1)
    assert bell.rung == 2
    assert sections(view) == []
    prompt.protect(sections=["agent:a"])  # no scope has such a section any more
    if not scoped:
        view.sections_from(folder, order=1)
        assert len(sections(view)) == 2


def test_a_name_that_is_taken(fill: Fill) -> None:
    """A name that the layer has already is refused as `section` refuses it, with both places, and nothing is there."""
    prompt = SystemPrompt()
    prompt.owner("other").section("main:b", "Theirs.", order=1)
    with pytest.raises(DuplicateEntryError) as caught:
        prompt.sections_from(fill({"a.md": "A", "b.md": "---\norder: 2\n---\nB"}), order=1)
    assert caught.value.kind == "duplicate_section"
    assert "/b.md:4) is already registered in this layer" in str(caught.value)
    assert 'section "main:b" of other (tests/prompt/test_section_files.py:' in str(caught.value)
    assert sections(prompt) == [("main:b", "Theirs.")]


# -- scopes and kernels ------------------------------------------------------------------------------------------------


def test_in_a_scope_they_shadow(fill: Fill) -> None:
    """In a scope a file takes the place of a namesake further out, and is the scope's own."""
    prompt = SystemPrompt(persona="P")
    prompt.section("rules", "Global.", order=5)
    agent = prompt.scope("agent")
    agent.sections_from(fill({"a.md": "---\nname: rules\n---\nScoped."}), order=5)
    assert prompt.render_sync().text == "P\n\nGlobal."
    assert agent.render_sync().text == "P\n\nScoped."
    assert [span.origin.scope for span in agent.render_sync().owner_of("Scoped")] == ["agent"]


def test_protections_know_them(fill: Fill) -> None:
    """A file in a scope may not bear a globally protected name, and its name cannot be protected globally while it
    stands."""
    folder = fill({"a.md": "A", "b.md": "B"})
    prompt = SystemPrompt()
    agent = prompt.scope("agent")
    with prompt.protect(sections=["agent:b"]), pytest.raises(ProtectedSectionShadowError, match=r"/b\.md:1"):
        agent.sections_from(folder, order=1)
    assert sections(agent) == []
    with agent.sections_from(folder, order=1), pytest.raises(ProtectionConflictError, match=r"/b\.md:1"):
        prompt.protect(sections=["agent:b"])
    prompt.protect(sections=["agent:b"])


def test_ties_may_be_broken_by_name(fill: Fill) -> None:
    """With ``section_ties="name"`` it is the name that counts, not that of the file."""
    folder = fill({"a.md": "---\nname: z\n---\nZ", "b.md": "---\nname: y\n---\nY"})
    prompt = SystemPrompt(section_ties="name")
    prompt.sections_from(folder, order=1)
    assert names(prompt.assemble_sync().sections)[-2:] == ["y", "z"]


@pytest.mark.anyio
async def test_under_a_kernel_they_belong_to_the_plugin(fill: Fill) -> None:
    """A plugin's files are called after it, and go with it; another thread is refused before a file is read."""
    import anyio.to_thread

    folder = fill({"a.md": "A", "b.md": "B"})
    async with kernel() as ctx:
        await ctx.mount(SystemPrompt, {"include_harness_identity": False}).ready()
        prompt = ctx.require(SystemPrompt)

        def contribute(ctx: Any, prompt: SystemPrompt) -> None:
            prompt.sections_from(folder, order=1)

        fiber = await ctx.mount(made("acme", contribute, needs=[SystemPrompt])).ready()
        assert [each.name for each in (await prompt.assemble()).sections][1:] == ["acme:a", "acme:b"]
        with pytest.raises(WrongThreadError):
            await anyio.to_thread.run_sync(lambda: prompt.sections_from(folder / "missing"))
        await fiber.dispose()
        assert (await prompt.render()).text == ""
