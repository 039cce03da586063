"""The first screen of the README is true: its agent is recorded, its commands print what is shown, its fix helps."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.support import COMMAND, clean_environment
from tests.cli.test_documented import FENCE, typed

README = Path(__file__).parents[2] / "README.md"


def applied(diff: str, text: str) -> str:
    """A text with the lines of a diff that go replaced by those that come."""
    old = "".join(line[1:] for line in diff.splitlines(keepends=True) if line[0] in " -")
    new = "".join(line[1:] for line in diff.splitlines(keepends=True) if line[0] in " +")
    assert text.count(old) == 1
    return text.replace(old, new)


def told(program: str, commands: str, folder: Path) -> None:
    """Run a program, then the commands of a block, and see that they print what the block says."""
    folder.mkdir()
    subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=folder, check=True)
    for command, shown in typed(commands):
        arguments = re.sub(r"^foreword ", "", command).split()
        done = subprocess.run(
            [*COMMAND, *arguments],
            capture_output=True,
            encoding="utf-8",
            cwd=folder,
            env=clean_environment({}),
            check=False,
        )
        assert done.stdout.rstrip("\n") == shown.rstrip("\n"), command


@pytest.mark.slow
def test_the_first_screen_is_true(tmp_path: Path) -> None:
    """The agent as it stands loses what is shown, and with the fix that is shown nothing."""
    fences = list(FENCE.finditer(README.read_text(encoding="utf-8")))
    program, before, diff, after = (fence["body"] for fence in fences[:4])
    assert [fence["language"] for fence in fences[:4]] == ["python", "console", "diff", "console"]
    told(program, before, tmp_path / "before")
    told(applied(diff, program), after, tmp_path / "after")
