"""`foreword show` of a deployment: whose prompt it prints, what it says beside it, and what when there is none."""

import json
from pathlib import Path

import pytest
from tests.cli.support import Ran, deployment, piped, run, write

from foreword.compose import TrustStore

TEXT = """
    system_prompt: {include_harness_identity: false, persona: {file: persona.md}}
    variables: {company: Acme}
    plugins:
      - {id: billing, use: "plugs:billing", config: {currency: USD}}
    agents:
      clerk: {persona: "You are {{company}}'s clerk."}
      trainee: {tools: {deny: [refund]}}
"""
ALL = "You are Acme's assistant.\n\nQuote prices in USD.\n\nRefund once."


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "persona.md").write_text("You are {{company}}'s assistant.\n")
    return str(deployment(tmp_path, TEXT))


# -- whose prompt ------------------------------------------------------------------------------------------------------


def test_a_deployment_prints_its_prompt(file: str) -> None:
    """Of a named file the prompt is printed that all agents share; what plugins print goes to stderr."""
    assert run("show", file) == Ran(0, ALL + "\n", "importing plugs\n")


def test_the_bytes_behind_a_pipe(tmp_path: Path, file: str) -> None:
    """In a process of its own, stdout gets the text and a newline and nothing else."""
    assert piped("show", file, folder=tmp_path).stdout == f"{ALL}\n".encode()


def test_toml_does_as_well(tmp_path: Path) -> None:
    """A TOML file is a deployment like a YAML file."""
    text = 'variables = {company = "Acme"}\nsystem_prompt = {identity = "I am {{company}}."}\n'
    assert run("show", str(deployment(tmp_path, text, "other.toml"))).out == "I am Acme.\n"


def test_an_agent(file: str) -> None:
    """`--agent` prints the prompt of an agent, with its persona and without the tools it is denied."""
    clerk = ALL.replace("assistant", "clerk")
    assert run("show", file, "--agent", "clerk").out == clerk + "\n"
    assert run("show", file, "--agent", "trainee").out == ALL.removesuffix("\n\nRefund once.") + "\n"
    assert run("show", file, "--scope", "clerk").out == clerk + "\n"
    assert run("show", file, "--scope", "global").out == ALL + "\n"
    assert run("show", file, "--agent", "clerk", "--annotate").out.startswith("Prompt of agent clerk  ")
    assert json.loads(run("show", file, "--agent", "trainee", "--json").out)["tools"] == []


def test_an_agent_is_told_to_the_providers(tmp_path: Path) -> None:
    """What depends on the agent of an assembly sees the agent that is shown."""
    write(
        tmp_path,
        """
        def who(prompt: "SystemPrompt") -> None:
            prompt.section("who", lambda context: "For " + (context.agent.name if context.agent else "all"), order=1)
        from foreword import SystemPrompt
        """,
        "asking.py",
    )
    file = deployment(tmp_path, "plugins: [{id: a, use: 'asking:who'}]\nagents: {clerk: {persona: Clerk.}}")
    assert run("show", str(file)).out.endswith("For all\n")
    assert run("show", str(file), "--agent", "clerk").out.endswith("For clerk\n")


def test_an_unknown_agent(tmp_path: Path, file: str) -> None:
    """An agent that is not there is an error with the nearest one; so is one where there are none."""
    ran = run("show", file, "--agent", "clrek")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith(f'error: {file} has no agent "clrek"; did you mean "clerk"? known agents: clerk, trainee\n')
    without = str(deployment(tmp_path, "", "without.yaml"))
    why = "and no others: agents stand in it under the key agents"
    assert run("show", without, "--agent", "clerk").err == f'error: {without} has no agent "clerk", {why}\n'
    assert 'there is no scope "x"' in run("show", file, "--scope", "x").err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["plugs.py:x", "--agent", "a"], '--agent is for deployment files, and "plugs.py:x" is none'),
        (["foreword.yaml", "--agent", "a", "--scope", "b"], "--agent and --scope both say whose prompt it is"),
        (["foreword.yaml:clerk"], "is shown with: foreword.yaml --agent clerk"),
        (["."], '"." is a folder; name the deployment file in it: foreword.yaml'),
    ],
)
def test_wrong_usage(tmp_path: Path, file: str, arguments: list[str], why: str) -> None:
    """What does not go together is told in one line, and runs nothing."""
    ran = run("show", *arguments, folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert why in ran.err
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "mark").exists()


# -- without a file ----------------------------------------------------------------------------------------------------


def test_the_file_that_is_here(tmp_path: Path, file: str) -> None:
    """Without a target the current folder's deployment is shown once it is trusted, until it changes."""
    ran = run("show", folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "error: foreword.yaml was found, not named, and is not trusted, so nothing of it is run; read it, then name it "
        "in the command, or trust it: foreword trust foreword.yaml\n"
    )
    TrustStore().trust(file)
    assert run("show", folder=tmp_path).out == ALL + "\n"
    assert run("show", "--agent", "clerk", "--json", folder=tmp_path).code == 0
    Path(file).write_text(Path(file).read_text() + "#\n")
    assert "has changed since you trusted it" in run("show", folder=tmp_path).err


def test_nothing_is_here(tmp_path: Path) -> None:
    """Where there is no deployment, the error says what to do."""
    ran = run("show", folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        f"error: {tmp_path}: there is no foreword.yaml, foreword.yml, foreword.toml here; "
        "name a file, or write one with: foreword init\n"
    )


# -- what is said beside it --------------------------------------------------------------------------------------------


def test_every_option_works(tmp_path: Path, file: str) -> None:
    """Gutter, contexts, tools, trace and JSON are those of any other prompt."""
    assert run("show", file, "--contexts").out.endswith("\n\nOpen from nine to five.\n")
    out = run("show", file, "--annotate", "--contexts", "--tools", "--trace").out
    assert "acme-billing   billing:rules" in out
    assert "deployment     {{company}}" in out
    assert "Open from nine to five." in out
    assert "Refund an order." in out
    assert "collect" in out
    told = json.loads(run("show", file, "--json").out)
    assert (told["scope"], told["text"]) == (None, ALL)
    assert [tool["name"] for tool in told["tools"]] == ["refund"]


@pytest.mark.slow
def test_sources_are_told_from_the_deployments_folder(tmp_path: Path, file: str) -> None:
    """Wherever the command is typed, places are told relative to the deployment's folder, and are the same."""
    (tmp_path / "below" / "deeper").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path)
    here = piped("show", "foreword.yaml", "--json", folder=tmp_path).stdout
    told = json.loads(here)
    assert {span["source"] for span in told["spans"]} >= {"persona.md:1", "plugs.py:19"}
    assert told["tools"][0]["source"] == "plugs.py:18"
    ways = [
        ("../foreword.yaml", tmp_path / "below"),
        (f"{tmp_path.name}/foreword.yaml", tmp_path.parent),
        (file, Path("/")),
        ("link/foreword.yaml", tmp_path),
    ]
    for typed, folder in ways:
        assert piped("show", typed, "--json", folder=folder).stdout == here, typed


def test_sources_of_a_package_below(tmp_path: Path) -> None:
    """Also where the current folder is the one that the plugin's package stands in."""
    write(
        tmp_path / "parts",
        "def one(prompt: 'SystemPrompt'): prompt.section('s', 'x', order=1)\nfrom foreword import SystemPrompt\n",
        "one.py",
    )
    deployment(tmp_path, "plugins: [{id: a, use: 'parts.one:one'}]")
    done = piped("show", "../foreword.yaml", "--json", folder=tmp_path / "parts")
    assert json.loads(done.stdout)["spans"][-1]["source"] == "parts/one.py:1"


def test_warnings_go_to_stderr(tmp_path: Path) -> None:
    """What is worth a look in a deployment is told on stderr, a line for each, and is no error."""
    file = deployment(tmp_path, "agents: {a: {tools: {deny: ['x*', 'y?'], allow: []}}}", "a.yaml")
    ran = run("show", str(file))
    assert ran.code == 0
    assert ran.err.splitlines() == [
        f'warning: {file}:2: agents.a.tools.deny[{at}]: the pattern "{name}" matches no tool that is there now'
        for at, name in enumerate(["x*", "y?"])
    ]


# -- what goes wrong ---------------------------------------------------------------------------------------------------

TEN = """
    system_prompt: {persona: {file: nope.md}, unheard_of: 1}
    variables: {Bad: x, ok: 3}
    plugins:
      - {id: a, use: "nomod:x"}
      - {id: a, use: "acme"}
      - {id: "b c", use: "plugs:billing"}
      - {id: d, use: "bad:x"}
      - {id: e, use: "plugs:billing", config: {key: "${env:NOT_SET_ANYWHERE}"}}
"""


@pytest.mark.parametrize("command", ["show", "plugins"])
def test_ten_faults_are_ten_lines(tmp_path: Path, command: str) -> None:
    """All faults of a file and its plugins are told at once, each in a line of its own that begins with its place."""
    write(tmp_path, "raise RuntimeError('two\\nlines')", "bad.py")
    deployment(tmp_path, TEN)
    ran = run(command, "foreword.yaml", folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    first, *faults, last = ran.err.removeprefix("importing plugs\n").splitlines()
    assert first == "error: foreword.yaml has 10 faults:"
    assert last == "mend them all, then run the command again"
    assert [line.split(": ")[:2] for line in faults] == [
        ["  foreword.yaml:2", "system_prompt.persona.file"],
        ["  foreword.yaml:2", "system_prompt.unheard_of"],
        ["  foreword.yaml:3", "variables.Bad"],
        ["  foreword.yaml:3", "variables.ok"],
        ["  foreword.yaml:5", "plugins[0].use"],
        ["  foreword.yaml:6", "plugins[1].id"],
        ["  foreword.yaml:6", "plugins[1].use"],
        ["  foreword.yaml:7", "plugins[2].id"],
        ["  foreword.yaml:8", "plugins[3].use"],
        ["  foreword.yaml:9", "plugins[4].config.key"],
    ]
    assert "RuntimeError: two; lines (raised at bad.py:1)" in faults[8]


def test_one_fault_is_one_line(tmp_path: Path) -> None:
    """A single fault is the whole error."""
    deployment(tmp_path, "variables: {ok: 3}")
    ran = run("show", "foreword.yaml", folder=tmp_path)
    assert ran == Ran(2, "", "error: foreword.yaml:2: variables.ok: must be a string, not a number; put it in quotes\n")
    assert run("show", "nope.yaml", folder=tmp_path).err == ("error: nope.yaml: is not there; . holds foreword.yaml\n")


def test_a_traceback_only_if_wanted(tmp_path: Path) -> None:
    """`--traceback` shows what led to an error, and the error follows; without it there is only the error."""
    deployment(tmp_path, "variables: {ok: 3}")
    without, shown = (
        run("show", "foreword.yaml", folder=tmp_path),
        run("show", "foreword.yaml", "--traceback", folder=tmp_path),
    )
    assert "Traceback" not in without.err
    assert shown.err.startswith("Traceback (most recent call last):")
    assert shown.err.endswith(without.err)


FAILING = """
    import sys
    from foreword import SystemPrompt
    def provider(prompt: SystemPrompt) -> None:
        @prompt.section("s", order=1)
        def text(): raise ValueError("no text")
    def exits(prompt: SystemPrompt) -> None:
        sys.exit(7)
    async def exits_async(prompt: SystemPrompt) -> None:
        sys.exit(7)
    def exits_asked(prompt: SystemPrompt) -> None:
        prompt.section("s", lambda: sys.exit(7), order=1)
    def exits_leaving(prompt: SystemPrompt):
        yield
        sys.exit(7)
    def fails_leaving(prompt: SystemPrompt):
        yield
        raise ValueError("cannot go")
"""


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("provider", ['section "s" of provider (failing.py:5) raised ValueError: no text', "raised at failing.py:6"]),
        ("exits", ["failing.py:8: the code left with sys.exit(7) while rendering foreword.yaml"]),
        ("exits_async", ["failing.py:10: the code left with sys.exit(7)"]),
        ("exits_asked", ["failing.py:12: the code left with sys.exit(7)"]),
        ("exits_leaving", ["failing.py:15: the code left with sys.exit(7)"]),
        ("fails_leaving", ["failing.py:18: ValueError: cannot go", "plugin a (foreword.yaml:2) failed in teardown"]),
    ],
)
def test_a_plugin_that_fails(tmp_path: Path, name: str, told: list[str]) -> None:
    """Whatever a plugin does when it is loaded, asked or unloaded: an error with its place, and no prompt."""
    write(tmp_path, FAILING, "failing.py")
    deployment(tmp_path, f"plugins: [{{id: a, use: 'failing:{name}'}}]")
    ran = run("show", "foreword.yaml", folder=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert all(each in ran.err for each in told), ran.err
    assert "Traceback" not in ran.err
