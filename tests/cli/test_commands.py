"""What all commands have in common: quick help, outputs that go away, terminals that nothing acts on, exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.cli.support import COMMAND, deployment, in_terminal, piped, plain, run, write

from foreword.cli.main import main
from foreword.cli.wrapping import cell_len
from foreword.compose import TrustStore

COMMANDS = sorted(main.commands)
GROUPS = {name: group for name, group in main.commands.items() if isinstance(group, click.Group)}
SINGLE = [
    *([name] for name in COMMANDS if name not in GROUPS),
    *([name, each] for name in GROUPS for each in GROUPS[name].commands),
]
EVIL = "x\x1b[31m\u202ey[bold]z"
SPELLED = r"x\x1b[31m\u202ey[bold]z"
ON_A_FILE = [["show"], ["show", "--trace"], ["plugins"], ["config"], ["trust"]]
DATA = [
    ["show", "foreword.yaml", "--json"], ["config", "foreword.yaml", "--json"], ["plugins", "foreword.yaml", "--json"],
    ["plugins", "--installed", "--json"], ["schema"], ["schema", "--json"], ["trust", "foreword.yaml", "--json"],
    ["trust", "--list", "--json"], ["init", "new", "--json"], ["trust", "--remove", "foreword.yaml", "--json"],
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A deployment with a name in it that would act on a terminal."""
    write(
        tmp_path,
        f"""
        from foreword import SystemPrompt, plugin
        evil = {EVIL!r}
        @plugin(name=evil)
        def odd(prompt: SystemPrompt) -> None:
            prompt.section(evil, "Text.", order=1)
            prompt.section(evil + "gone", "Text.", order=1, when=lambda context: False)
        """,
        "odd.py",
    )
    quoted = json.dumps(EVIL)
    deployment(
        tmp_path,
        f"plugins: [{{id: {json.dumps(EVIL.replace(' ', ''))}, use: 'odd:odd'}}]\n"
        f"agents: {{{quoted}: {{persona: {quoted}}}, other: {{tools: {{deny: [{json.dumps(EVIL + '*')}]}}}}}}\n",
    )
    return tmp_path


def test_help_lists_every_command_once() -> None:
    """The help has each command, under what it is for."""
    told = run("--help").out
    listed = [line.split()[0] for line in told.splitlines() if line.startswith("  ") and "  " in line.strip()]
    assert sorted(each for each in listed if not each.startswith("-")) == COMMANDS
    assert told.index("Look at a prompt:") < told.index("  show ") < told.index("Set up a deployment:")


@pytest.mark.parametrize("command", SINGLE, ids=" ".join)
def test_every_command_explains_itself(command: list[str]) -> None:
    """`--help` ends well and names the options that all commands have."""
    ran = run(*command, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert "--traceback" in ran.out
    assert "--json" in ran.out


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_lists_its_commands(group: str) -> None:
    """Without a command, a group explains itself, and ends well."""
    ran = run(group)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == run(group, "--help").out
    listed = [line.split()[0] for line in ran.out.partition("Commands:")[2].splitlines() if line.strip()]
    assert listed == list(GROUPS[group].commands)


def test_help_is_quick(tmp_path: Path) -> None:
    """Help loads none of what commands work with."""
    code = (
        "import sys\nfrom foreword.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print(sorted({'rich', 'asyncio', 'anyio', 'pydantic', 'yaml', 'importlib.metadata', "
        "'foreword.compose', 'foreword.prompt', 'foreword.kernel'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("arguments", DATA, ids=" ".join)
def test_data_as_json(folder: Path, arguments: list[str]) -> None:
    """Behind a pipe `--json` gives one document and nothing else on stdout."""
    if "--remove" in arguments:
        TrustStore().trust(folder / "foreword.yaml")
    done = piped(*arguments, folder=folder)
    assert done.returncode == 0, done.stderr
    assert isinstance(json.loads(done.stdout), dict)


# -- outputs that go away ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["config", "big.yaml"], ["config", "big.yaml", "--json"], ["show", "big.yaml"]])
def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path, arguments: list[str]) -> None:
    """When whoever reads a pipe has seen enough, commands end quietly and well."""
    deployment(
        tmp_path, f"variables: {{big: '{'line ' * 50_000}'}}\nsystem_prompt: {{persona: '{{{{big}}}}'}}\n", "big.yaml"
    )
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
@pytest.mark.parametrize("arguments", [*ON_A_FILE, ["schema"], ["init", "new"]], ids=" ".join)
def test_closed_outputs(folder: Path, arguments: list[str]) -> None:
    """Where a shell closed stdout that is told; where it closed stderr the command does what it does."""
    command, *options = arguments
    line = [*COMMAND, command, *([] if command in ("schema", "init") else ["foreword.yaml"]), *options]
    closed = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *line], capture_output=True, cwd=folder, check=False)
    assert (closed.returncode, closed.stdout) == (2, b"")
    assert closed.stderr == b"error: there is nowhere to write to: stdout is closed\n"
    done = subprocess.run(["sh", "-c", '"$@" 2>&-', "sh", *line], capture_output=True, cwd=folder, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout
    failed = subprocess.run(
        ["sh", "-c", '"$@" 2>&-', "sh", *COMMAND, "show", "nope.yaml", "--traceback"],
        capture_output=True, cwd=folder, check=False,
    )  # fmt: skip
    assert (failed.returncode, failed.stdout, failed.stderr) == (2, b"", b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize("arguments", ON_A_FILE, ids=" ".join)
def test_a_full_disk_is_told(folder: Path, arguments: list[str]) -> None:
    """Output that cannot be written is an error in one line."""
    command, *options = arguments
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, command, "foreword.yaml", *options], stdout=full, stderr=subprocess.PIPE, cwd=folder, check=False
        )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == b"error: the output cannot be written: No space left on device"


# -- terminals ---------------------------------------------------------------------------------------------------------

terminals = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals here")


@terminals
@pytest.mark.slow
@pytest.mark.parametrize("columns", [200, 80, 40])
@pytest.mark.parametrize("arguments", ON_A_FILE, ids=" ".join)
def test_what_a_terminal_gets(folder: Path, arguments: list[str], columns: int) -> None:
    """Names of others are spelled out, never obeyed; reports fit the width; with NO_COLOR the text is the same."""
    command, *options = arguments
    TrustStore().trust(folder / "foreword.yaml")
    in_colour = in_terminal(command, "foreword.yaml", *options, folder=folder, columns=columns)
    without = in_terminal(command, "foreword.yaml", *options, folder=folder, columns=columns, NO_COLOR="1")
    assert in_colour.code == without.code == 0
    without_times = [re.sub(r"\d+\.\d ms", "", out) for out in (plain(in_colour.out), without.out)]
    assert without_times[0] == without_times[1]
    assert "\x1b" not in without.out
    assert "\u202e" not in in_colour.out
    if arguments != ["show"]:  # which prints the text alone
        assert SPELLED in "".join(without.out.split())
        reported = [row for row in without.out.splitlines() if not row.startswith(("warning:", "sha256", "trusted as"))]
        assert max(map(cell_len, reported)) <= columns


@terminals
@pytest.mark.slow
@pytest.mark.parametrize("arguments", [each for each in DATA if "show" not in each], ids=" ".join)
def test_json_in_a_terminal(folder: Path, arguments: list[str]) -> None:
    """JSON in a terminal is the same document, escaped in JSON's own way."""
    if "--remove" in arguments:
        TrustStore().trust(folder / "foreword.yaml")
    out = in_terminal(*arguments, folder=folder, NO_COLOR="1").out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert isinstance(json.loads(out[out.index("{\n") :]), dict)  # warnings come first


@terminals
@pytest.mark.slow
def test_errors_in_a_terminal(folder: Path) -> None:
    """So do errors and warnings, which have a coloured word in front."""
    ran = in_terminal("show", "foreword.yaml", "--agent", EVIL + "x", folder=folder)
    assert ran.code == 2
    assert "\x1b[1;31merror:\x1b[0m foreword.yaml has no agent" in ran.out
    assert "\x1b[1;33mwarning:\x1b[0m foreword.yaml:3: agents.other.tools.deny[0]: the pattern" in ran.out
    assert "\u202e" not in ran.out
    assert "\x1b" not in plain(ran.out)
    assert "\x1b" not in in_terminal("show", "foreword.yaml", "--agent", "x", folder=folder, NO_COLOR="1").out
