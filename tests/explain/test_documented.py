"""What docs/how-to/explain.md shows is what happens: its commands are typed and compared, and its table is the data."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.support import COMMAND, clean_environment
from tests.cli.test_documented import FENCE, typed

from foreword.explain.absence import Reason
from foreword.explain.profiles import profile_named

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "explain.md"


def block(text: str, holding: str) -> str:
    """The Python block of the page that holds something."""
    return next(
        each["body"] for each in FENCE.finditer(text) if each["language"] == "python" and holding in each["body"]
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_the_page_is_true(tmp_path: Path) -> None:
    """Every console block, in one folder with the files that the page speaks of."""
    text = PAGE.read_text(encoding="utf-8")
    (tmp_path / "clerk.py").write_text(block(text, "def tomorrow"))
    (tmp_path / "chat.py").write_text(block(text, "# midnight"))
    (tmp_path / "policy.md").write_text("Be kind.\nNever promise a refund to {{customer}}.\n")
    subprocess.run([sys.executable, "chat.py"], cwd=tmp_path, check=True)
    count = 0
    for fence in (each for each in FENCE.finditer(text) if each["language"] == "console"):
        for command, shown in typed(fence["body"]):
            line = re.sub(r"^foreword\b", '"$@"', command)
            done = subprocess.run(
                ["sh", "-c", f"{line} 2>&1", "sh", *COMMAND],
                capture_output=True, encoding="utf-8", cwd=tmp_path, env=clean_environment({}), check=False,
            )  # fmt: skip
            assert done.stdout == shown, command
            count += 1
    assert count >= 5


def test_all_reasons_are_in_the_table() -> None:
    """Each reason for which something can be missing has its row."""
    text = PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert set(rows) == set(Reason.__args__)  # type: ignore[attr-defined]


def test_the_table_of_providers_is_the_data() -> None:
    """Order, steps and minimums are those of the profiles."""
    text = PAGE.read_text(encoding="utf-8")
    for name in ("Anthropic", "OpenAI", "DeepSeek", "Gemini"):
        profile = profile_named(name.lower())
        row = next(line for line in text.splitlines() if line.startswith(f"| {name} |"))
        order, step, minimum = (cell.strip() for cell in row.split("|")[2:5])
        assert order in ("", ", ".join(profile.order))
        assert (step == "128 tokens") == (profile.step == 128)
        assert step.startswith("tools") == profile.by_blocks
        told = sorted({each.tokens for each in profile.minimums})
        numbers = [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", minimum)]
        assert numbers == ([told[0], told[-1]] if len(told) > 1 else told)
