"""What was registered as sensitive is in no output of any command, in text or JSON, unless --reveal asks for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.support import run, write

SAFE = '''
    from itertools import count
    from foreword import ModelAdapters, SystemPrompt, ToolRegistry, plugin
    from foreword.testing import Reply, ScriptedModel, call_tools

    @plugin(name="safe")
    def safe(prompt: SystemPrompt, tools: ToolRegistry) -> None:
        numbers = count(1)
        prompt.variable("code", lambda: f"hunter{next(numbers)}", sensitive=True)
        prompt.section("door", "It opens with {{code}} only.", order=10)
        prompt.section("tone", "Be brief.", order=20)
        prompt.context("owner", lambda: f"It belongs to Jane Doe, of house {next(numbers)}.", order=10, sensitive=True)
        prompt.context("hours", "Open until six.", order=20)

        @tools.register(sensitive=True)
        def unlock(code: str) -> str:
            """Unlock the door."""
            return f"the vault opened with {code}"

    @plugin(name="script")
    def script(models: ModelAdapters) -> None:
        models.register(ScriptedModel([call_tools(unlock={"code": "swordfish"}), Reply("Done.")] * 4))
'''
TEXT = """\
foreword: 1
system_prompt: {include_harness_identity: false, persona: You are a guard.}
plugins:
  - {id: safe, use: "safe:safe"}
  - {id: script, use: "safe:script"}
agents:
  guard: {model: "scripted:small"}
"""
SECRETS = ("hunter", "Jane Doe", "house ", "swordfish", "vault")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a deployment that has secrets of each kind, and a session in which they went out and changed."""
    made = tmp_path_factory.mktemp("safe")
    write(made, SAFE, "safe.py")
    (made / "foreword.yaml").write_text(TEXT)
    assert run("run", "foreword.yaml", "Open it.", folder=made).code == 0
    assert run("run", "foreword.yaml", "Again.", "--session", "last", folder=made).code == 0
    return made


COMMANDS = [
    ("show", "foreword.yaml"),
    ("show", "foreword.yaml", "--annotate", "--contexts", "--tools", "--trace"),
    ("show", "foreword.yaml", "--contexts"),
    ("show", "last", "--annotate", "--contexts", "--tools"),
    ("explain", "last", "It opens"),
    ("explain", "last", "--line", "3"),
    ("explain", "last", "--line", "3", "--contexts"),
    ("explain", "last", "--missing", "code"),
    ("explain", "foreword.yaml", "It opens"),
    ("explain", "foreword.yaml", "--missing", "owner"),
    ("diff", "last"),
    ("diff", "last", "--full"),
    ("diff", "last@1", "last@4", "--full"),
    ("diff", "last@4", "foreword.yaml"),
    ("tokens", "last"),
    ("cache", "last", "--steps"),
    ("cache", "last@2"),
    ("cache", "last@1", "foreword.yaml"),
    ("lint", "last"),
    ("lint", "foreword.yaml"),
    ("log", "list"),
    ("log", "find", "--text", "Open it."),
    ("log", "find", "--section", "door"),
    ("log", "show"),
    ("log", "show", "--full"),
    ("log", "show", "last@2"),
    ("log", "rebuild"),
    ("log", "rebuild", "--text"),
    ("log", "verify"),
    ("log", "head"),
    ("config",),
    ("plugins", "foreword.yaml"),
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_no_command_tells_it(folder: Path, arguments: tuple[str, ...], as_json: bool) -> None:
    """Values of variables, whole contexts, arguments and results of tools; nor what they were before they changed."""
    if as_json and arguments == ("log", "rebuild", "--text"):
        pytest.skip("these are two ways to print it")
    ran = run(*arguments, *(["--json"] if as_json else []), folder=folder)
    assert ran.code in (0, 1), ran.err
    for secret in SECRETS:
        assert secret not in ran.out + ran.err


@pytest.mark.parametrize(
    ("arguments", "secret"),
    [
        (("show", "foreword.yaml"), "hunter"),
        (("show", "foreword.yaml", "--json"), "Jane Doe"),
        (("show", "last", "--annotate"), "hunter"),
        (("explain", "last", "hunter"), "hunter"),
        (("diff", "last"), "hunter"),
        (("cache", "last", "--steps"), "hunter"),
        (("log", "find", "--text", "swordfish", "--json"), "swordfish"),
        (("log", "show"), "vault"),
        (("log", "show", "--json"), "Jane Doe"),
        (("log", "rebuild"), "hunter"),
        (("log", "rebuild", "--text"), "vault"),
        (("run", "foreword.yaml", "Once more.", "--json", "--log", "sqlite:other.db"), "swordfish"),
    ],
)
def test_reveal_tells_it(folder: Path, arguments: tuple[str, ...], secret: str) -> None:
    """It is there, and was only not told."""
    ran = run(*arguments, "--reveal", folder=folder)
    assert ran.code == 0, ran.err
    assert secret in ran.out


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_a_run_tells_nothing(folder: Path, arguments: tuple[str, ...]) -> None:
    """What a sensitive tool is asked and answers is not in what a turn tells while it runs."""
    ran = run("run", "foreword.yaml", "Open it.", "--log", "sqlite:other.db", *arguments, folder=folder)
    assert ran.code == 0
    assert "unlock" in ran.out + ran.err
    for secret in SECRETS:
        assert secret not in ran.out + ran.err


def test_a_change_is_told_without_its_text(folder: Path) -> None:
    """That a sensitive value changed, whose it is, and that it broke the cache: all but the value."""
    told = run("diff", "last", "--json", folder=folder)
    changes = {(each["kind"], each["name"]): each for each in json.loads(told.out)["changes"]}
    code = changes["variable", "code"]
    assert (code["old"], code["new"], code["owner"]) == ("[sensitive]", "[sensitive, changed]", "safe")
    assert changes["section", "door"]["new"] == "It opens with [sensitive, changed] only."
    broken_by = json.loads(told.out)["cache"]["broken_by"]
    assert (broken_by["name"], broken_by["inside"], broken_by["owner"]) == ("code", "door", "safe")
    steps = json.loads(run("cache", "last", "--json", folder=folder).out)["steps"]
    assert [step["broken_by"] and step["broken_by"]["name"] for step in steps] == [None, "code", "code", "code"]


def test_sizes_are_those_of_what_was_sent(folder: Path) -> None:
    """What is masked costs what it costs."""
    masked, revealed = (
        json.loads(run("cache", "last", "--json", *more, folder=folder).out)["tokens"] for more in ([], ["--reveal"])
    )
    assert masked == revealed


def test_what_is_masked_is_not_found(folder: Path) -> None:
    """Or guessing would tell it, word by word."""
    assert run("log", "find", "--text", "hunter", folder=folder).code == 1
    assert run("log", "find", "--text", "hunter", "--reveal", folder=folder).code == 0
    assert run("explain", "last", "swordfish", folder=folder).code == 2


def test_bytes_that_are_not_those_that_were_sent_say_so(folder: Path) -> None:
    """Where a command prints to the byte, stderr says that something is masked; a body cannot be."""
    for arguments in (("log", "rebuild"), ("show", "foreword.yaml")):
        assert "--reveal prints it as the model gets it" in run(*arguments, folder=folder).err
        assert "--reveal" not in run(*arguments, "--reveal", folder=folder).err
    ran = run("log", "rebuild", "--body", folder=folder)
    assert (ran.code, ran.out) == (2, "")
    assert "--reveal" in ran.err


@pytest.mark.parametrize("content", ["masked", "digests"])
def test_what_was_not_stored_is_told_by_nothing(folder: Path, content: str) -> None:
    """Not even with --reveal; and each command still answers."""
    file = folder / f"{content}.yaml"
    file.write_text(TEXT + f'log: {{store: "sqlite:{content}.db", content: {content}}}\n')
    assert run("run", file.name, "Open it.", folder=folder).code == 0
    for arguments in (
        ("explain", "last", "--line", "3"), ("diff", "last"), ("cache", "last", "--steps"), ("tokens", "last"),
        ("show", "last"), ("log", "show", "--full"), ("log", "find", "--section", "door"), ("log", "rebuild", "--mark"),
    ):  # fmt: skip
        reveal = [] if arguments[0] == "tokens" else ["--reveal"]
        ran = run(*arguments, *reveal, "--log", f"sqlite:{content}.db", folder=folder)
        assert ran.code == 0, (arguments, ran.err)
        for secret in SECRETS:
            assert secret not in ran.out + ran.err
