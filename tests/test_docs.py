"""What the documents show is true: their Python runs, prints what they say, and their links lead somewhere.

Every ```python block runs by itself, in a fresh Python and an empty folder. Two comments, invisible to readers, say more:

* `<!-- output -->` before the ```text block that follows a Python block: this is exactly what it prints.
* `<!-- not run: why -->` before a Python block: it needs something that tests do not have.
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
RUN_IN = [README, *sorted(ROOT.glob("docs/**/*.md"))]
LINKED_IN = sorted({*ROOT.glob("*.md"), *RUN_IN, *ROOT.glob("examples/**/*.md")})

FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>```+)(?P<language>[\w-]*)[^\n`]*\n(?P<body>.*?)^ *(?P=ticks) *$",
    re.MULTILINE | re.DOTALL,
)
COMMENT_BEFORE = re.compile(r"<!--\s*(?P<word>output|not run:[^>]*\w[^>]*?)\s*-->\s*\Z")
LINK = re.compile(r"\]\((?P<target>[^()\s]+)(?:\s+\"[^\"]*\")?\)|^\[[^\]]+\]:\s*(?P<reference>\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """One Python block, and what the document says that it prints (None: it does not say)."""

    place: str  # file:line
    code: str
    output: str | None


def examples(text: str, name: str) -> list[Example]:
    """The Python blocks of a document that are to be run."""
    found: list[Example] = []
    end = 0
    previous_runs = False
    for fence in FENCE.finditer(text):
        comment = COMMENT_BEFORE.search(text, end, fence.start())
        word = comment["word"] if comment else ""
        body = "".join(line.removeprefix(fence["indent"]) for line in fence["body"].splitlines(keepends=True))
        place = f"{name}:{text.count(chr(10), 0, fence.start()) + 1}"
        if word == "output":
            assert previous_runs, f"{place} is said to be output, but no Python block that runs stands before it"
            found[-1] = Example(found[-1].place, found[-1].code, body)
        previous_runs = fence["language"] == "python" and not word
        if previous_runs:
            found.append(Example(place, body, None))
        end = fence.end()
    return found


def links(text: str) -> list[str]:
    """The relative targets of a document's links, without their `#…`."""
    prose = re.sub(r"`[^`\n]+`", "", FENCE.sub("", text))
    targets = (match["target"] or match["reference"] for match in LINK.finditer(prose))
    return [target.partition("#")[0] for target in targets if not re.match(r"[a-z][a-z0-9+.-]*:|#", target)]


def document_examples() -> list[Example]:
    return [
        example
        for path in RUN_IN
        if path.exists()
        for example in examples(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    ]


def test_readme_opens_with_python() -> None:
    """There is a README, and it shows Python that runs."""
    assert README.exists()
    assert examples(README.read_text(encoding="utf-8"), "README.md")


@pytest.mark.parametrize("example", document_examples(), ids=lambda example: example.place)
def test_example_runs(example: Example, tmp_path: Path) -> None:
    """A Python block runs without a word on stderr and, where its output is shown, prints exactly that."""
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-W", "error", "-c", example.code],
        capture_output=True,
        encoding="utf-8",
        cwd=tmp_path,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, ""), example.place
    if example.output is not None:
        assert done.stdout == example.output, example.place


@pytest.mark.parametrize("path", LINKED_IN, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    """A relative link names a file or folder that exists."""
    targets = links(path.read_text(encoding="utf-8")) if path.exists() else []
    broken = [target for target in targets if not (path.parent / target).exists()]
    assert not broken


def test_examples_are_found() -> None:
    """Blocks are told apart by language, output belongs to the block before it, and a reason spares a block."""
    text = (
        "```python\nprint(1)\n```\n\nIt prints:\n\n<!-- output -->\n```text\n1\n```\n"
        "```console\n$ ls\n```\n<!-- not run: needs a key -->\n```python\ncall()\n```\n"
        "* item\n\n  ```python\n  if x:\n      y\n  ```\n"
    )
    assert examples(text, "a.md") == [
        Example("a.md:1", "print(1)\n", "1\n"),
        Example("a.md:20", "if x:\n    y\n", None),
    ]


def test_links_are_found() -> None:
    """Relative targets are checked; addresses, anchors and whatever stands in code are not."""
    text = '[a](docs/a.md#x) [b](https://b) [c](#c) `[d](d)`\n```text\n[e](e)\n```\n[f](f.md "title")\n\n[g]: g.md\n'
    assert links(text) == ["docs/a.md", "f.md", "g.md"]
