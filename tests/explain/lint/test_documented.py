"""What docs/how-to/lint.md shows is what happens: its commands are typed and compared. Its Python runs elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.support import run

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "lint.md"
FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_page_is_true(tmp_path: Path) -> None:
    """Every console block of the page; `…` stands for anything in a line."""
    fences = list(FENCE.finditer(PAGE.read_text(encoding="utf-8")))
    (tmp_path / "desk.py").write_text(next(fence["body"] for fence in fences if fence["language"] == "python"))
    typed = 0
    for fence in (each for each in fences if each["language"] == "console"):
        parts = re.split(r"^\$ foreword (.*)\n", fence["body"], flags=re.MULTILINE)
        for command, shown in zip(parts[1::2], parts[2::2], strict=True):
            ran = run(*command.split(), folder=tmp_path, columns=None)
            assert re.fullmatch(re.escape(shown).replace("…", ".*"), ran.out), f"$ foreword {command}\n{ran.out}"
            assert (ran.code, ran.err) == (1, "")
            typed += 1
    assert typed == 3
