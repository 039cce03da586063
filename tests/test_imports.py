"""Importing Foreword is cheap and quiet: nothing is loaded before it is used, nothing is said."""

import subprocess
import sys

import pytest

HEAVY = {"anthropic", "anyio", "asyncio", "click", "msgspec", "openai", "pydantic", "rich", "trio", "yaml"}

IMPORT = "import foreword\n"

SIX_LINES = """\
from foreword import SystemPrompt
prompt = SystemPrompt(persona="You are {{company}}'s billing assistant.")
prompt.variable("company", "Acme")
prompt.section("rules", "Never promise a refund.", order=20)
prompt.section("tone", "Answer in two sentences.", order=30)
print(prompt.render_sync().text)
"""

SIX_LINES_TEXT = "You are Acme's billing assistant.\n\nNever promise a refund.\n\nAnswer in two sentences.\n"

# The list of modules goes to a file of its own, so that what the code itself says can be told apart. Logging is wide
# open, so that a record logged by anything shows on stderr.
HARNESS = """\
import logging, sys
logging.basicConfig(level=0)
{code}
modules = sorted(sys.modules)
import pathlib
pathlib.Path(sys.argv[1]).write_text(" ".join(modules))
"""


def run(code: str, tmp_path) -> tuple[str, str, set[str]]:
    """Stdout, stderr and the loaded top-level modules after running `code` in a fresh Python, warnings being errors."""
    record = tmp_path / "modules.json"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", HARNESS.format(code=code), str(record)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=tmp_path,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    modules = {name.partition(".")[0] for name in record.read_text().split()}
    return done.stdout, done.stderr, modules


@pytest.mark.parametrize("code", [IMPORT, SIX_LINES], ids=["import", "six lines"])
def test_nothing_heavy_is_imported(code: str, tmp_path) -> None:
    """Neither `import foreword` nor a prompt without anything async in it loads an event loop or a console library."""
    _, _, modules = run(code, tmp_path)
    assert "foreword" in modules
    assert not modules & HEAVY


SHOW = """\
import pathlib
pathlib.Path("foreword.yaml").write_text("foreword: 1")
from foreword.cli.main import main
given, sys.argv = sys.argv[1:], ["foreword", "show", "foreword.yaml"]
try:
    main()
except SystemExit as end:
    assert end.code in (0, None), end.code
sys.argv[1:] = given
"""


def test_a_deployment_is_shown_without_a_log(tmp_path) -> None:
    """Reading and writing logs is a quarter of what the command would load, and nobody has asked for one."""
    said, _, modules = run(SHOW, tmp_path)
    assert said
    assert "click" in modules
    assert "msgspec" not in modules


def test_import_says_nothing(tmp_path) -> None:
    """`import foreword` writes nothing to stdout or stderr, logs nothing and warns of nothing."""
    out, err, _ = run(IMPORT, tmp_path)
    assert (out, err) == ("", "")


def test_six_lines_print_the_prompt(tmp_path) -> None:
    """The first example of the README prints its three sections, and nothing else anywhere."""
    out, err, _ = run(SIX_LINES, tmp_path)
    assert (out, err) == (SIX_LINES_TEXT, "")
