"""What a folder that somebody else made can do, and what of the environment can get out: nothing.

A file that was not named runs only if it is trusted. What the environment gives to plugins is in no output of ours,
whatever a plugin does with it but print it itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.support import Ran, deployment, run, write

from foreword.compose import TrustStore

# -- folders of others -------------------------------------------------------------------------------------------------

MARKING = "import os, pathlib\npathlib.Path(os.environ['CLI_MARK']).write_text(__file__)\n"
MODULES = [
    "plugs",
    "refunds",
    "yaml",
    "rich",
    "click",
    "pydantic",
    "anyio",
    "platformdirs",
    "sitecustomize",
    "conftest",
]
WITHOUT_FILE = [
    (["show"], 2), (["show", "--json"], 2), (["show", "--agent", "a", "--annotate"], 2), (["show", "--traceback"], 2),
    (["plugins"], 2), (["plugins", "--json"], 2), (["plugins", "--installed"], 0), (["config"], 0),
    (["config", "--json"], 0), (["schema"], 0), (["init"], 2), (["trust", "--list"], 0), (["trust", "--remove"], 2),
    (["catalog"], 0), (["--help"], 0), (["--version"], 0), (["run", "Hello"], 2), (["run", "--agent", "a", "Hello"], 2),
    (["run", "--json", "Hello"], 2), (["log", "list"], 2), (["log", "show"], 2), (["log", "rebuild"], 2),
    (["log", "verify"], 2), (["log", "head"], 2), (["demo"], 0),
]  # fmt: skip


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder that somebody else made: a deployment, and modules of all names that might be imported."""
    folder = tmp_path / "clone"
    write(folder, MARKING, "plugs.py")
    for name in MODULES:
        (folder / f"{name}.py").write_text(MARKING)
    (folder / "foreword.yaml").write_text(
        "foreword: 1\nsystem_prompt: {persona: {file: persona.md}}\nplugins: [{id: a, use: 'plugs:x'}]\n"
    )
    (folder / "persona.md").write_text("Obey.")
    return folder


def as_installed(arguments: Sequence[str], folder: Path, mark: Path) -> int:
    """Run as the installed script does, which has no current folder among the folders of modules; the exit code."""
    environment = {**os.environ, "CLI_MARK": str(mark), "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "foreword", *arguments],
        capture_output=True, cwd=folder, env=environment, check=False, timeout=60,
    )  # fmt: skip
    assert b"Obey" not in done.stdout + done.stderr
    return done.returncode


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "code"), WITHOUT_FILE, ids=[" ".join(each) for each, _ in WITHOUT_FILE])
def test_a_cloned_folder_runs_nothing(tmp_path: Path, clone: Path, arguments: list[str], code: int) -> None:
    """Without being told a file, no command runs what stands in a folder that somebody else made."""
    mark = tmp_path / "mark"
    assert as_installed(arguments, clone, mark) == code
    assert not mark.exists(), mark.read_text()


@pytest.mark.slow
def test_trusting_it_runs_nothing_either(tmp_path: Path, clone: Path) -> None:
    """Trusting a file shows what it names, and runs none of it; what runs it is the next command."""
    mark = tmp_path / "mark"
    assert as_installed(["trust"], clone, mark) == 0
    assert not mark.exists()
    assert as_installed(["show"], clone, mark) == 2  # its plugin is none
    assert mark.read_text() == str(clone / "plugs.py")


@pytest.mark.parametrize("command", ["show", "plugins", "config", "trust"])
def test_what_is_no_file(tmp_path: Path, command: str) -> None:
    """A pipe, a folder or a link to nowhere in the place of the file is told, and nothing waits for it."""
    os.mkfifo(tmp_path / "foreword.yaml")
    ran = run(command, folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "error: foreword.yaml: is no plain file\n"
    (tmp_path / "foreword.yaml").unlink()
    (tmp_path / "foreword.yaml").symlink_to(tmp_path / "nowhere")
    assert "is not there" in run(command, folder=tmp_path).err


@pytest.mark.parametrize("command", ["show", "plugins", "config", "trust", "init"])
def test_a_folder_that_is_gone(tmp_path: Path, command: str) -> None:
    """In a folder that somebody removed, the error says so."""
    code = f"import os, sys\nos.mkdir('gone')\nos.chdir('gone')\nos.rmdir('../gone')\nsys.argv[1:] = ['{command}']\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}from foreword.cli.main import main\nmain()"],
        capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: the current folder is gone; change to one that exists\n"


# -- secrets -----------------------------------------------------------------------------------------------------------

MARKER = "Zq9xK7wB"  # begins every secret, so that no spelling of it goes unseen
LEAKY = """
    import sys
    from pydantic import BaseModel, field_validator
    from foreword import SystemPrompt, ToolSchema, plugin

    class Picky(BaseModel):
        key: str
        @field_validator("key")
        @classmethod
        def check(cls, key): raise ValueError(f"not {key}")

    class Weird(BaseException): ...

    @plugin(config=Picky)
    def picky(config: Picky) -> None: ...
    def fails(config: dict) -> None: raise ConnectionError("no", config["key"]) from ValueError(config["key"])
    async def fails_async(config: dict) -> None: raise ConnectionError(f"no {config!r}")
    def leaves(config: dict) -> None: sys.exit(f"no {config['key']}")
    def odd(config: dict) -> None: raise Weird(config["key"])
    def late(config: dict):
        yield
        raise ValueError(f"no {config['key']}")
    def late_leaving(config: dict):
        yield
        sys.exit(config["key"])
    def section(config: dict, prompt: SystemPrompt) -> None:
        @prompt.section("s", order=1)
        def text():
            error = ValueError(f"no {config['key']}")
            error.add_note(config["key"])
            raise error
    def both(config: dict, prompt: SystemPrompt) -> None:
        section(config, prompt)
        @prompt.context("c", order=1)
        async def text(): raise ExceptionGroup("all", [KeyError(config["key"])])
    def skipped(config: dict, prompt: SystemPrompt) -> None:
        @prompt.section("s", order=1, on_error="skip")
        def text(): raise ValueError(f"no {config['key']}")
    def asked(config: dict, prompt: SystemPrompt) -> None:
        @prompt.section("s", order=1)
        def text(): sys.exit(config["key"])
    def tools(config: dict, prompt: SystemPrompt) -> None:
        @prompt.tools
        def offer(): raise ValueError(config["key"])
    def listener(config: dict, prompt: SystemPrompt) -> None:
        @prompt.on_assemble
        async def listen(assembly, context, call_next): raise ValueError(config["key"])
    def condition(config: dict, prompt: SystemPrompt) -> None:
        def when(context): raise ValueError(config["key"])
        prompt.section("s", "x", order=1, when=when)
    def variable(config: dict, prompt: SystemPrompt) -> None:
        prompt.section("s", "{{" + "nobody" + "}} " + config["key"], order=1)
    def named(config: dict, prompt: SystemPrompt) -> None:
        prompt.section(config["key"], "x", order=1)
        prompt.context(config["key"], "x", order=1, when=lambda context: False)
        prompt.tools([ToolSchema("t", "", {"type": "object"})])
"""
KINDS = [
    line.split("(")[0].split()[-1] for line in dedent(LEAKY).splitlines() if line.startswith(("def ", "async def "))
]
COMMANDS = [
    ["show"], ["show", "--json"], ["show", "--annotate", "--tools", "--contexts", "--trace"], ["show", "--traceback"],
    ["plugins"], ["plugins", "--json"], ["plugins", "--traceback"], ["config"], ["config", "--json"], ["trust"],
    ["trust", "--json"],
]  # fmt: skip
secrets = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40).map(MARKER.__add__)


def every_output(folder: Path, kind: str, secret: str) -> list[Ran]:
    """What all commands say about a deployment whose plugin is given a secret and does something with it."""
    write(folder, LEAKY, "leaky.py")
    deployment(folder, f"plugins: [{{id: a, use: 'leaky:{kind}', config: {{key: '${{env:CLI_KEY}}'}}}}]\n")
    return [run(command, "foreword.yaml", *options, folder=folder, CLI_KEY=secret) for command, *options in COMMANDS]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_command_tells_a_secret(tmp_path: Path, kind: str) -> None:
    """Whatever a plugin does with a secret: no output of any command has it, with traceback or without."""
    for secret in (f"{MARKER}-and-more", f"{MARKER}'\"\\\n{MARKER} second line, \x1b[31mü\u2028"):
        outputs = every_output(tmp_path, kind, secret)
        told = [(ran.out + ran.err) for ran in outputs]
        assert not [text for text in told if MARKER in text]
        assert any("CLI_KEY" in text for text in told)
        assert {ran.code for ran in outputs} <= {0, 2}
        assert "report it" not in "".join(told)


@pytest.mark.slow
@settings(max_examples=10)
@given(kind=st.sampled_from(KINDS), secret=secrets)
def test_no_secret_is_told(tmp_path_factory: pytest.TempPathFactory, kind: str, secret: str) -> None:
    """The same for any secret."""
    for ran in every_output(tmp_path_factory.mktemp("leaky"), kind, secret):
        assert MARKER not in ran.out + ran.err


def test_a_short_secret_costs_no_more_than_it_must(tmp_path: Path) -> None:
    """Where a value is too short to be found in a text, what a plugin's code says is withheld; names and places stay."""
    write(tmp_path, LEAKY, "leaky.py")
    for kind in ("section", "skipped"):
        deployment(tmp_path, f"plugins: [{{id: a, use: 'leaky:{kind}', config: {{key: '${{env:CLI_KEY}}'}}}}]\n")
        ran = run("show", "foreword.yaml", "--trace", folder=tmp_path, CLI_KEY="s")
        words = " ".join((ran.out + ran.err).split())
        assert "(withheld, since it holds the value of ${env:CLI_KEY})" in words
        assert f'section "s" of {kind}' in words
        assert "no s" not in words


def test_an_untrusted_file_is_no_way_to_a_secret(tmp_path: Path) -> None:
    """A file that was only found may ask for whatever it likes: `config` tells the names."""
    deployment(tmp_path, "plugins: [{id: a, use: 'plugs:x', config: {a: '${env:CLI_KEY}', b: '${env:HOME:-x}'}}]\n")
    for options in ([], ["--json"], ["--traceback"]):
        ran = run("config", *options, folder=tmp_path, CLI_KEY=MARKER)
        assert MARKER not in ran.out + ran.err
        assert "${env:CLI_KEY} (set)" in ran.out
    assert TrustStore().entries() == ()
