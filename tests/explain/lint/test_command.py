"""`foreword lint`: what is looked at, what is told, exit codes, what a deployment and the command line ignore."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.support import deployment, in_terminal, plain, run, write
from tests.cli.test_safety import KINDS, LEAKY, MARKER

from foreword import SystemPrompt, ToolRegistry
from foreword.explain.lint import RULES, Reads

ROOT = Path(__file__).parents[3]
OPEN = "system_prompt: {include_harness_identity: false, persona: You are a clerk.}\n"
LEGAL = 'plugins: [{id: legal, use: "plugs:legal"}]\n'
BILLING = 'plugins: [{id: billing, use: "plugs:billing"}]\n'
TARGET = """
    from foreword import SystemPrompt

    def build():
        prompt = SystemPrompt(persona="You are a clerk.")
        prompt.owner("desk").section("desk:text", "Be br\\u200bief, {{nobody}}.", order=20)
        return prompt

    def clean():
        return SystemPrompt(persona="You are a clerk.")

    async def later():
        return build()
"""


@pytest.fixture(autouse=True)
def trust(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of trusted files of the test's own."""
    monkeypatch.setenv("FOREWORD_TRUST", str(tmp_path_factory.mktemp("own") / "trust.json"))


# -- targets and codes -------------------------------------------------------------------------------------------------


def test_a_clean_target(tmp_path: Path) -> None:
    """Nothing found is said in one line, and the exit code is 0."""
    ran = run("lint", f"{write(tmp_path, TARGET)}:clean")
    assert (ran.code, ran.err) == (0, "")
    assert re.fullmatch(r"Lint of .*target\.py:clean\s+nothing found\n", ran.out)


@pytest.mark.parametrize("name", ["build", "later"])
def test_findings_are_told_by_owner(name: str, tmp_path: Path) -> None:
    """Each with its code, severity, place, message and way out, below its owner; the exit code is 1."""
    ran = run("lint", f"{write(tmp_path, TARGET)}:{name}", columns=None)
    assert (ran.code, ran.err) == (1, "")
    heading, *rows = ran.out.splitlines()
    assert heading.endswith("  1 error, 1 warning")
    assert rows[:2] == ["", "desk"]
    assert rows[2] == "  FW201 error  target.py:6"
    assert rows[3].startswith('    section "desk:text" refers to "{{nobody}}" (line 1, column ')
    assert rows[4] == "    → there are no known variables"
    assert rows[5] == "  FW403 warning  target.py:6"


def test_findings_as_json(tmp_path: Path) -> None:
    """One document with all there is to say."""
    ran = run("lint", f"{write(tmp_path, TARGET)}:build", "--json", "--ignore", "FW403")
    told = json.loads(ran.out)
    assert ran.code == 1
    assert told.keys() == {"target", "findings", "ignored", "idle_ignores", "left_out"}
    assert [each["code"] for each in told["findings"]] == ["FW201"]
    assert [(each["code"], each["ignored_by"], each["why"]) for each in told["ignored"]] == [
        ("FW403", "FW403", "on the command line")
    ]
    assert [each["code"] for each in told["left_out"]] == ["FW105"]


def test_selecting_and_ignoring(tmp_path: Path) -> None:
    """Several codes with commas or options; one entry alone; nothing left is good."""
    target = f"{write(tmp_path, TARGET)}:build"
    assert run("lint", target, "--select", "FW1,FW4").code == 1
    assert run("lint", target, "--select", "FW1", "--select", "FW3").code == 0
    ran = run("lint", target, "--ignore", "FW403,FW201:desk:text", columns=None)
    assert (ran.code, ran.out.endswith("  nothing found, 2 ignored\n")) == (0, True)
    assert run("lint", target, "--ignore", "FW403,FW201:other").code == 1


def test_an_ignore_that_is_not_needed_is_told(tmp_path: Path) -> None:
    """On stderr, and the exit code stays what it is."""
    ran = run("lint", f"{write(tmp_path, TARGET)}:clean", "--ignore", "FW405")
    assert (ran.code, ran.err) == (
        0,
        "warning: ignoring FW405 is not needed any more: it covers no finding; take it out\n",
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--select", "FW999"), 'there is no rule "FW999"'),
        (("--ignore", "FW1O1"), 'there is no rule "FW1O1"'),
        (("--agent", "a"), "--agent is for deployment files"),
        (("--markdown",), "--markdown goes with --list"),
        (("--list",), "--list looks at nothing"),
    ],
)
def test_misuse_is_an_error(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    """A misspelt code, options that do not go together: exit code 2, and nothing is run."""
    mark = tmp_path / "mark"
    target = write(tmp_path, f"open({str(mark)!r}, 'w')\n")
    ran = run("lint", f"{target}:build", *arguments)
    assert ran.code == 2
    assert said in ran.err
    assert not mark.exists()


def test_code_that_fails_is_an_error(tmp_path: Path) -> None:
    """What cannot be had cannot be looked at: exit code 2, with the place."""
    ran = run("lint", f"{write(tmp_path, 'def build(): raise LookupError(5)')}:build")
    assert ran.code == 2
    assert "target.py:1: LookupError: 5" in ran.err
    assert run("lint", f"{write(tmp_path, 'build = 5')}:build").code == 2


# -- rules -------------------------------------------------------------------------------------------------------------


def test_the_rules_are_listed() -> None:
    """As a table and as JSON: every rule, with what it finds."""
    ran = run("lint", "--list", columns=200)
    assert ran.code == 0
    assert [line.split()[0] for line in ran.out.splitlines()[3:]] == [rule.code for rule in RULES]
    told = json.loads(run("lint", "--list", "--json").out)["rules"]
    assert [(each["code"], each["name"], each["severity"], each["summary"]) for each in told] == [
        (rule.code, rule.name, rule.severity.value, rule.summary) for rule in RULES
    ]


# -- deployments -------------------------------------------------------------------------------------------------------


def test_a_deployment(tmp_path: Path) -> None:
    """A clean one is clean; what is wrong in the file is told with its line, and each agent is looked at."""
    file = deployment(tmp_path, OPEN + BILLING)
    assert run("lint", str(file)).code == 0
    file = deployment(
        tmp_path,
        OPEN + BILLING + 'variables: {seats: "3"}\nsections: {billing:ruls: {enabled: false}}\n'
        "agents: {intern: {persona: 'You serve {{nobody}}.'}}\n",
    )
    ran = run("lint", str(file))
    assert ran.code == 1
    assert re.findall(r"^  (FW\d+) \w+  (.*)$", ran.out, re.MULTILINE) == [
        ("FW201", "foreword.yaml:6  in scope intern"),
        ("FW208", "foreword.yaml:5"),
        ("FW204", "foreword.yaml:4"),
    ]


def test_one_agent_alone(tmp_path: Path) -> None:
    """With --agent only what that agent sees is looked at; an unknown one is an error with the nearest name."""
    agents = "agents: {one: {persona: 'You serve {{nobody}}.'}, two: {persona: You are kind.}}\n"
    file = str(deployment(tmp_path, OPEN + agents))
    assert run("lint", file, "--agent", "one").code == 1
    assert run("lint", file, "--agent", "two").code == 0
    ran = run("lint", file, "--agent", "on")
    assert (ran.code, 'did you mean "one"?' in ran.err) == (2, True)


def test_the_file_ignores_with_reasons(tmp_path: Path) -> None:
    """`lint: ignore` of the deployment, for a rule and for one entry; the reason is in the report."""
    body = OPEN + 'variables: {a: "1", b: "2"}\n'
    file = str(deployment(tmp_path, body + 'lint: {ignore: {"FW204:a": for plugins to come}}\n'))
    told = json.loads(run("lint", file, "--json").out)
    assert [each["name"] for each in told["findings"]] == ["b"]
    assert [(each["name"], each["why"]) for each in told["ignored"]] == [("a", "for plugins to come")]
    file = str(deployment(tmp_path, body + "lint: {ignore: {FW204: for plugins to come}, section_tokens: 1}\n"))
    assert [each["code"] for each in json.loads(run("lint", file, "--json").out)["findings"]] == ["FW502"]
    file = str(deployment(tmp_path, body + "lint: {select: [FW3]}\n"))
    assert run("lint", file).code == 0
    assert run("lint", file, "--select", "FW2").code == 1


def test_a_code_of_the_file_that_is_none(tmp_path: Path) -> None:
    """It is told with the file's name."""
    ran = run("lint", str(deployment(tmp_path, OPEN + "lint: {ignore: {FW999: x}}\n")))
    assert ran.code == 2
    assert 'foreword.yaml: lint.ignore: there is no rule "FW999"' in ran.err


def test_only_a_trusted_file_is_found(tmp_path: Path) -> None:
    """Without a name, the folder's file is taken if it is trusted; its plugins are code."""
    deployment(tmp_path, OPEN + BILLING)
    for options in ((), ("--deep",)):
        ran = run("lint", *options, folder=tmp_path)
        assert (ran.code, "trust" in ran.err) == (2, True)
    assert not (tmp_path / "mark").exists()
    run("trust", folder=tmp_path)
    assert run("lint", folder=tmp_path).code == 0


def test_secrets_are_not_told(tmp_path: Path) -> None:
    """What the environment gave to a plugin stands in no finding, neither in text nor in JSON."""
    write(
        tmp_path,
        """
        from pydantic import BaseModel, SecretStr
        from foreword import SystemPrompt, plugin

        class Config(BaseModel):
            key: SecretStr

        @plugin(name="crm", config=Config)
        def crm(config: Config, prompt: SystemPrompt) -> None:
            prompt.section("crm:" + config.key.get_secret_value(), "br\\u200bief", order=20)

            @prompt.section("crm:fails", order=30)
            def fails():
                raise ConnectionError(config.key.get_secret_value())
        """,
        "leaking.py",
    )
    file = deployment(tmp_path, OPEN + 'plugins: [{id: crm, use: "leaking:crm", config: {key: "${env:CRM_KEY}"}}]\n')
    for options in ((), ("--json",)):
        ran = run("lint", str(file), *options, CRM_KEY="hunter2-hunter2")
        assert ran.code == 1
        assert "hunter2" not in ran.out + ran.err
        assert "${env:CRM_KEY}" in ran.out


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_a_plugin_does_with_a_secret(kind: str, tmp_path: Path) -> None:
    """No output tells it, in whatever way the plugin fails or says it."""
    write(tmp_path, LEAKY, "leaky.py")
    deployment(tmp_path, f"plugins: [{{id: a, use: 'leaky:{kind}', config: {{key: '${{env:CLI_KEY}}'}}}}]\n")
    for options in ((), ("--json",), ("--traceback",)):
        ran = run("lint", "foreword.yaml", *options, folder=tmp_path, CLI_KEY=f"{MARKER}-and-more")
        assert MARKER not in ran.out + ran.err
        assert "report it" not in ran.err


def test_a_secret_is_hidden_before_it_is_cut(tmp_path: Path) -> None:
    """What is quoted is a short stretch; half a secret in it would not be known as one."""
    write(
        tmp_path,
        """
        import itertools
        from foreword import SystemPrompt, plugin

        @plugin(name="crm", config=dict)
        def crm(config: dict, prompt: SystemPrompt) -> None:
            numbers = itertools.count()
            key = config["key"]
            prompt.section("crm:a", lambda: f"with {next(numbers)}{key[:-4]}0{key}", order=20)
            prompt.section("crm:b", lambda: f"with {key}{next(numbers)}", order=21)
        """,
        "leaking.py",
    )
    file = deployment(tmp_path, OPEN + 'plugins: [{id: crm, use: "leaking:crm", config: {key: "${env:CRM_KEY}"}}]\n')
    ran = run("lint", str(file), CRM_KEY="hunter2-hunter2-hunter2-hunter2-hunter2")
    assert ran.out.count("FW101") == 2
    assert "hunter2" not in ran.out


def test_hostile_names_cannot_act(tmp_path: Path) -> None:
    """Names and texts with control characters reach a terminal spelled out."""
    write(
        tmp_path,
        """
        from foreword import SystemPrompt
        def build():
            prompt = SystemPrompt(persona="x")
            prompt.owner("a\\x1b[31m").section("b\\x1b[2J\\u202e", "{{x}} \\x1b[1m \\u202e", order=20)
            return prompt
        """,
    )
    ran = in_terminal("lint", "target.py:build", folder=tmp_path)
    assert ran.code == 1
    assert "\x1b" not in plain(ran.out)
    assert "\u202e" not in ran.out
    assert "a\\x1b[31m" in ran.out


def test_a_narrow_terminal(tmp_path: Path) -> None:
    """Rows are wrapped to its width."""
    write(tmp_path, TARGET)
    ran = in_terminal("lint", "target.py:build", folder=tmp_path, columns=40)
    assert all(len(line) <= 40 for line in plain(ran.out).splitlines())


# -- logs --------------------------------------------------------------------------------------------------------------


async def log_a_step(store: str) -> None:
    """One step of an agent whose prompt is not clean, in a store."""
    from foreword import Context, ModelAdapters, create_agent, open_log
    from foreword.testing import ScriptedModel

    async with open_log(store) as log, Context() as ctx:
        await ctx.mount(SystemPrompt, {"persona": "You are br\u200bief."}).ready()
        await ctx.mount(ToolRegistry).ready()
        await ctx.mount(ModelAdapters).ready()
        ctx.require(ModelAdapters).register(ScriptedModel(["Yes."]))
        agent = await create_agent(ctx, "clerk", model="scripted:demo", log=log)
        await agent.run("Are you?")


def test_a_step_of_a_log(tmp_path: Path) -> None:
    """By its address: rules that read texts look at what was sent, and it is told which rules did not run."""
    import anyio

    store = f"sqlite:{tmp_path / 'log.db'}"
    anyio.run(log_a_step, store)
    ran = run("lint", "last@1", "--log", store, columns=None)
    assert ran.code == 1
    assert re.findall(r"^  (FW\d+)", ran.out, re.MULTILINE) == ["FW403"]
    assert ran.err.endswith(" not run: only the rules that read texts are, on what was rendered or sent\n")
    told = re.findall(r"FW(\d+)(?: to FW(\d+))?", ran.err)
    codes = [f"FW{code}" for first, last in told for code in range(int(first), int(last or first) + 1)]
    assert codes == [rule.code for rule in RULES if rule.reads is not Reads.TEXTS]
    assert run("lint", "last", "--log", store, "--select", "FW402").code == 0
    assert run("lint", "last@9", "--log", store).code == 2
    assert run("lint", "last@1", "--log", store, "--deep").code == 2


# -- deep --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_deep_finds_what_no_single_process_shows(tmp_path: Path) -> None:
    """The order of a set, of plugins with a tie, what is made at the start: each with its owner and with what was
    changed; what was told is told once."""
    write(
        tmp_path,
        """
        import os
        from foreword import SystemPrompt, ToolSchema, plugin

        START = os.getpid()

        @plugin(name="sets")
        def sets(prompt: SystemPrompt) -> None:
            prompt.section("sets:topics", ", ".join({"orders", "refunds", "returns", "invoices"}), order=20)

        @plugin(name="one")
        def one(prompt: SystemPrompt) -> None:
            prompt.section("one:x", "x", order=40)

        @plugin(name="two")
        def two(prompt: SystemPrompt) -> None:
            prompt.section("two:x", "y", order=40)
            prompt.section("two:start", lambda: f"Started as {START}.", order=50)
        """,
        "made.py",
    )
    plugins = ", ".join(f'{{id: {name}, use: "made:{name}"}}' for name in ("sets", "one", "two"))
    file = str(deployment(tmp_path, f"{OPEN}plugins: [{plugins}]\n"))
    assert [each["code"] for each in json.loads(run("lint", file, "--json").out)["findings"]] == ["FW104"]
    told = json.loads(run("lint", file, "--deep", "--json").out)
    deep = {each["name"]: each for each in told["findings"] if each["code"] == "FW105"}
    assert deep.keys() == {"sets:topics", "one:x", "two:start"}
    assert "under another hash seed" in deep["sets:topics"]["message"]
    assert "in the opposite order" in deep["one:x"]["message"]
    assert "in another process" in deep["two:start"]["message"]
    assert [each["owner"] for each in deep.values()] == [each["name"].partition(":")[0] for each in deep.values()]
    assert told["left_out"] == []


@pytest.mark.slow
def test_deep_tells_nothing_sensitive(tmp_path: Path) -> None:
    """What is sensitive has another value in each process: that it differs is told, and none of its values; beside it,
    what is not sensitive is told as ever."""
    target = write(
        tmp_path,
        """
        import os
        from foreword import SystemPrompt
        def build():
            prompt = SystemPrompt(persona="Code {{code}}.")
            prompt.variable("code", lambda: f"SECRET-{os.urandom(4).hex()}", sensitive=True)
            prompt.section("both", "{{code}} of process {{pid}}", order=10)
            prompt.variable("pid", lambda: f"{os.getpid():09}")
            return prompt
        """,
    )
    ran = run("lint", f"{target}:build", "--deep", "--select", "FW105", "--json")
    assert "SECRET" not in ran.out + ran.err
    told = {each["name"]: each["message"] for each in json.loads(ran.out)["findings"]}
    assert told.keys() == {"deployment:persona", "both"}
    assert told["deployment:persona"].endswith("has another text in another process: how is sensitive")
    assert re.search(r"in another process: character \d+, '\d{9}' → '\d{9}'$", told["both"])


@pytest.mark.slow
def test_deep_tells_a_process_that_fails(tmp_path: Path) -> None:
    """A target that only one process can make: the others' error is told, with what was changed."""
    mark = tmp_path / "mark"
    target = write(
        tmp_path,
        f"""
        import os
        from foreword import SystemPrompt
        def build():
            os.mkdir({str(mark)!r})
            return SystemPrompt(persona="x")
        """,
    )
    ran = run("lint", f"{target}:build", "--deep")
    assert ran.code == 2
    assert "a fresh process could not make the prompt in another process: " in ran.err
    assert "FileExistsError" in ran.err


# -- what ships --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--deep",)])
def test_the_library_s_own_examples_are_clean(options: tuple[str, ...], tmp_path: Path) -> None:
    """The review example, what `foreword init` writes, and the plugin package's plugin."""
    review = str(ROOT / "examples" / "review" / "foreword.yaml")
    assert run("lint", review, *options, folder=tmp_path).out == f"Lint of {review}  nothing found\n"
    run("init", "shop", folder=tmp_path)
    assert run("lint", *options, folder=tmp_path / "shop").out == "Lint of foreword.yaml  nothing found\n"
    package = ROOT / "examples" / "plugin-package" / "src"
    config = "{avoid: [utilize], terms: terms.txt}"
    (tmp_path / "terms.txt").write_text("current account\n")
    (tmp_path / "style.yaml").write_text(
        f'foreword: 1\n{OPEN}plugins: [{{id: style, use: "acme_house_style:house_style", config: {config}}}]\n'
    )
    done = subprocess.run(
        [sys.executable, "-m", "foreword", "lint", "style.yaml", *options],
        capture_output=True, encoding="utf-8", cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(package)}, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("Lint of style.yaml  nothing found\n", 0), done.stderr
