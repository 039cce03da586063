"""What docs/how-to/command-line.md shows is what happens: its commands are typed, one after the other, and compared."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.support import COMMAND, clean_environment

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "command-line.md"
BROKEN = """foreword: 1
variables: {seats: 3}
plugins:
  - {id: refunds, use: "refund:refunds", config: {key: "${env:SHOP_KEY}"}}
"""
FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
TIMES = re.compile(r"\d+\.\d ms")
OF_THIS_SQLITE = re.compile(r"^warning: SQLite .*\n", re.MULTILINE)  # told where Python has an old one


def typed(block: str) -> list[tuple[str, str]]:
    """The commands of a block, each with what it prints."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def pattern(shown: str) -> str:
    """What is shown, as a pattern: `…` stands for anything in a line, and times are never the same twice."""
    return re.escape(TIMES.sub("TIME", shown)).replace("…", ".*")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_the_page_is_true(tmp_path: Path) -> None:
    """Every console block of the page, in its order, in one shell's folder."""
    text = PAGE.read_text(encoding="utf-8")
    fences = list(FENCE.finditer(text))
    clerk = next(fence["body"] for fence in fences if fence["language"] == "python")
    shop = tmp_path / "shop"
    here = tmp_path
    for fence in (each for each in fences if each["language"] == "console"):
        for command, shown in typed(fence["body"]):
            if command.startswith("cd "):
                here = here / command.removeprefix("cd ")
                (shop / "clerk.py").write_text(clerk)
                (shop / "policy.md").write_text("Be kind.\nNever promise a refund to {{customer}}.\n")
                (shop / "broken.yaml").write_text(BROKEN)
                continue
            line = re.sub(r"^foreword\b", '"$@"', command)
            done = subprocess.run(
                ["sh", "-c", f'{line} 2>&1', "sh", *COMMAND],
                capture_output=True, encoding="utf-8", cwd=here, env=clean_environment({}), check=False,
            )  # fmt: skip
            said = OF_THIS_SQLITE.sub("", done.stdout)
            assert re.fullmatch(pattern(shown), TIMES.sub("TIME", said)), f"$ {command}\n{done.stdout}"
