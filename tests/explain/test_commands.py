"""The commands `explain`, `diff`, `tokens` and `cache`: on live prompts, deployments and logs, for people and machines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.cli.support import Ran, deployment, in_terminal, plain, run, write
from tests.explain.support import OPENAI, Script, tool

from foreword import Rendering, SystemPrompt, open_log
from foreword.cli.wrapping import cell_len
from foreword.wire.chunks import Usage

PROMPTS = """
    from pathlib import Path
    from foreword import SystemPrompt, ToolSchema

    def build(day="29", extra=False):
        prompt = SystemPrompt(persona="You are a clerk.")
        prompt.owner("crm").variable("customer", "Ada")
        prompt.owner("clock").variable("today", day)
        prompt.owner("policy").section("policy:refunds", Path(__file__).with_name("policy.md"), order=20)
        prompt.owner("clock").section("clock:date", "Today is the {{today}}th.", order=25)
        prompt.owner("shop").tools([ToolSchema("find_order", "Find an order.", {"type": "object"})])
        prompt.owner("clock").context("clock:time", "It is ten.", order=10)
        prompt.owner("sales").section("sales:offer", "Offer.", order=30, requires_tools=["offer"])
        if extra:
            prompt.owner("legal").section("legal:notice", "No advice.", order=10)
        return prompt

    def tomorrow():
        return build("30", True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, PROMPTS, "clerk.py")
    (tmp_path / "policy.md").write_text("Be kind.\nNever promise a refund to {{customer}}.\n")
    return tmp_path


LONG = "Many words follow one another. " * 400


def rendering(day: str, notice: bool = False) -> Rendering:
    prompt = SystemPrompt(persona="You are a clerk.")
    prompt.owner("clock").variable("today", day)
    prompt.owner("clock").section("clock:date", "Today is the {{today}}th.", order=5)
    prompt.owner("style").section("style", LONG, order=20)
    prompt.owner("shop").tools([tool("find_order")])
    prompt.owner("clock").context("clock:time", "It is ten.", order=1)
    if notice:
        prompt.owner("legal").section("legal:notice", "No advice.", order=1)
    return prompt.render_sync()


@pytest.fixture
def logged(tmp_path: Path) -> Path:
    """A folder with a log: a session of four steps, of which two break the prefix."""

    async def fill() -> None:
        async with open_log(f"sqlite:{tmp_path / 'foreword.db'}") as log:
            script = Script(await log.create("k3fa", labels={"tenant": "acme"}), None)  # type: ignore[arg-type]
            script.step(rendering("29"), "Where is it?", usage=Usage(2_500, 9, 0))
            script.step(rendering("29"), "And now?", usage=Usage(2_500, 9, 2_432))
            script.step(rendering("30"), "Still?", usage=Usage(2_500, 9, 0))
            script.step(rendering("30", notice=True), "Well.", usage=Usage(2_500, 9, 0), config=OPENAI)
            await script.session.flush()

    anyio.run(fill)
    return tmp_path


def told(ran: Ran) -> Any:
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


# -- explain ------------------------------------------------------------------------------------------------------------


def test_explain_tells_who_wrote_a_text(folder: Path) -> None:
    """Owner, section, variable and file with line; each stretch in a row of its own."""
    ran = run("explain", "clerk.py:build", "refund to Ada.", folder=folder)
    assert ran.code == 0
    assert ran.out == (
        "System text, line 4, column 17  in clerk.py:build\n\n"
        "TEXT        PLUGIN  WHAT IT IS                   WRITTEN IN\n"
        "refund to   policy  policy:refunds               policy.md:2\n"
        "Ada         crm     {{customer}}                 clerk.py:7\n"
        "                    in policy:refunds of policy\n"
        ".           policy  policy:refunds               policy.md:2\n"
    )


def test_explain_a_line(folder: Path) -> None:
    """Of the system text, or of the contexts."""
    assert "clock:date" in run("explain", "clerk.py:build", "--line", "6", folder=folder).out
    assert "clock:time" in run("explain", "clerk.py:build", "--line", "3", "--contexts", folder=folder).out


def test_explain_what_is_missing(folder: Path) -> None:
    """The reason, the way out, and of a tool that a section needs why that one is not there."""
    out = run("explain", "clerk.py:build", "--missing", "sales:offer", folder=folder).out
    assert 'goes with the tool "offer", which is not there' in out
    assert "way out     bring the tool back, or drop it from requires_tools" in out
    assert 'tool "offer"  which it needs' in out
    document = told(run("explain", "clerk.py:build", "--missing", "sales:offer", "--json", folder=folder))
    assert document["missing"]["reason"] == "requires_tools"
    assert document["missing"]["needs"]["reason"] == "never_registered"


def test_explain_a_tool_that_the_deployment_denies(tmp_path: Path) -> None:
    """It is hidden, by which line of the file; mending a listener, or protecting the tool, would work against that."""
    run("init", folder=tmp_path)
    file = tmp_path / "foreword.yaml"
    line = next(at for at, text in enumerate(file.read_text().splitlines(), 1) if "deny: [refund]" in text)
    arguments = ("explain", "foreword.yaml", "--missing", "refund", "--agent", "trainee")
    missing = told(run(*arguments, "--json", folder=tmp_path))["missing"]
    assert (missing["reason"], missing["kind"]) == ("hidden", "tool")
    assert missing["why"].startswith('tool "refund" is hidden by mask "agents.trainee.tools" of deployment')
    assert f"(foreword.yaml:{line})" in missing["by"]
    assert missing["way_out"] == "change the allow or deny list that hides it"


def test_explain_what_is_not_missing_at_all(folder: Path) -> None:
    """It is there, and whose it is."""
    ran = run("explain", "clerk.py:build", "--missing", "policy:refunds", folder=folder)
    assert (ran.code, ran.out) == (
        0,
        '"policy:refunds" is there  in clerk.py:build, 1 time\n\nsection     policy (policy.md:1)\n',
    )


def test_explain_a_logged_text_tells_when_it_was_first_seen(logged: Path) -> None:
    """With its address, and its time in UTC, wherever the machine stands; and in what, if that was something else."""
    ran = run("explain", "k3fa", "No advice.", folder=logged)
    listed = run("log", "find", "--section", "legal:notice", folder=logged).out
    moment = re.search(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ", listed)
    assert moment is not None
    assert ran.out.endswith(f"first seen  in k3fa@4/1, {moment[0]}\n")
    elsewhere = run("explain", "k3fa", "No advice.", folder=logged, TZ="Asia/Tokyo")
    assert elsewhere.out == ran.out
    still = run("explain", "k3fa@4", "Where is it?", folder=logged).out
    assert "first seen  in k3fa@1/1, " in still
    document = told(run("explain", "last@2", "Today", "--json", folder=logged))
    assert document["prompt"] == "k3fa@2/1"
    assert document["first_seen"]["address"] == "k3fa@1/1"
    assert document["occurrences"][0]["stretches"][0]["owner"] == "clock"


def test_first_seen_means_the_whole_store(tmp_path: Path) -> None:
    """A text that a section has now stood first in what the user said: there it was first seen."""

    async def fill() -> None:
        async with open_log(f"sqlite:{tmp_path / 'foreword.db'}") as log:
            script = Script(await log.create("k3fa"), None)  # type: ignore[arg-type]
            script.step(rendering("29"), "No advice. please")
            script.step(rendering("29", notice=True), "Well.")
            await script.session.flush()

    anyio.run(fill)
    ran = run("explain", "k3fa", "No advice.", folder=tmp_path)
    assert ran.out.startswith("System text, ")
    assert re.search(r"first seen  in k3fa@1/1, .*Z, there in the history, by the user$", ran.out, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["clerk.py:build"], "say what to explain"),
        (["clerk.py:build", "a", "--line", "1"], "one of the three"),
        (["clerk.py:build", "a", "--kind", "tool"], "--kind goes with --missing"),
        (["clerk.py:build", "be kind."], "other capitals"),
        (["clerk.py:build", "--line", "99"], "it has 6 lines"),
        (["clerk.py:build", "--missing", ""], "--missing is empty"),
        (["nobody@1", "a"], "foreword.db"),
        (["k3fa", "a", "--agent", "x"], "--agent is for deployments"),
        (["clerk.py:build", "a", "--agent", "x"], "--agent is for deployment files"),
    ],
)
def test_explain_refuses_in_one_line(folder: Path, arguments: list[str], message: str) -> None:
    """What is wrong, and what to do; exit code 2."""
    ran = run("explain", *arguments, folder=folder)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert ran.err.startswith("error: ")


def test_explain_what_a_shadow_hides(tmp_path: Path) -> None:
    """Of what is there it is told whom it shadows; of a variable that no text refers to, that none does."""
    write(
        tmp_path,
        """
        from foreword import SystemPrompt
        def build():
            prompt = SystemPrompt(persona="You are a clerk.")
            prompt.variable("spare", "x")
            team = prompt.scope("team")
            team.section("deployment:persona", "You are the team's.", order=0)
            return team
        """,
    )
    out = run("explain", "target.py:build", "--missing", "deployment:persona", folder=tmp_path, columns=200).out
    assert (
        'story       plan: section "deployment:persona" of main shadowed by section "deployment:persona" of team' in out
    )
    spare = run("explain", "target.py:build", "--missing", "spare", folder=tmp_path)
    assert spare.out == '"spare" is there  in target.py:build, though no text of it refers to it\n'


# -- diff ---------------------------------------------------------------------------------------------------------------


def test_diff_of_two_prompts(folder: Path) -> None:
    """Each change with its owner and place, what in the text changed, and what it does to the cache."""
    ran = run("diff", "clerk.py:build", "clerk.py:tomorrow", folder=folder)
    assert ran.code == 0
    assert ran.out.startswith("clerk.py:build → clerk.py:tomorrow  3 changes\n")
    for line in (
        "+ section legal:notice of legal (clerk.py:15) added\n  + No advice.\n",
        "~ section clock:date of clock (clerk.py:10) changed\n  Today is the [-29th-]{+30th+}.\n",
        "~ variable {{today}} of clock (clerk.py:8) changed\n  [-29-]{+30+}\n",
        "broken by section legal:notice added (legal, clerk.py:15)\n",
    ):
        assert line in ran.out


def test_diff_of_a_step_and_the_one_before(logged: Path) -> None:
    """One address is enough; the first step has nothing before it."""
    ran = run("diff", "k3fa@3", folder=logged)
    assert "Today is the [-29th-]{+30th+}." in ran.out
    assert "history: 4 messages kept, 0 gone, 2 new" in ran.out
    first = run("diff", "k3fa@1", folder=logged)
    assert (first.code, "is the first step of its session" in first.err) == (2, True)
    across = run("diff", "k3fa@1", "k3fa@4", "--json", folder=logged)
    assert [(each["kind"], each["name"], each["action"]) for each in told(across)["changes"]] == [
        ("section", "legal:notice", "added"),
        ("section", "clock:date", "changed"),
        ("variable", "today", "changed"),
    ]
    assert told(across)["cache"]["broken_by"]["name"] == "legal:notice"


def test_a_retried_step_is_held_against_the_step_before(tmp_path: Path) -> None:
    """A retry is like the attempt before it, which must not hide what the step changed; an attempt that is written is
    held against the request before."""

    async def fill() -> None:
        async with open_log(f"sqlite:{tmp_path / 'foreword.db'}") as log:
            script = Script(await log.create("k3fa"), None)  # type: ignore[arg-type]
            script.step(rendering("29"), "Where is it?", attempts=2)
            script.step(rendering("30"), "And now?", attempts=2)
            await script.session.flush()

    anyio.run(fill)
    for address in ("k3fa@2", "k3fa", "last@2.1"):
        ran = run("diff", address, "--check", folder=tmp_path)
        assert ran.code == 1
        assert ran.out.startswith("k3fa@1/2 → k3fa@2/2  ")
        assert "Today is the [-29th-]{+30th+}." in ran.out
    assert "variable {{today}}" in run("cache", "k3fa@2", folder=tmp_path).out
    assert run("diff", "k3fa@2/1", folder=tmp_path).out.startswith("k3fa@1/2 → k3fa@2/1  ")
    assert run("diff", "k3fa@2/2", "--check", folder=tmp_path) == Ran(0, "k3fa@2/1 → k3fa@2/2  nothing differs\n")
    assert "is the first step of its session" in run("diff", "k3fa@1", folder=tmp_path).err
    assert "is the first request of its session" in run("diff", "k3fa@1/1", folder=tmp_path).err


def test_a_variable_that_is_no_longer_used(tmp_path: Path) -> None:
    """Its value went out of the prompt, or came into it; that it was removed or added is not said: it is registered."""
    deployment(
        tmp_path,
        """
        variables: {company: Acme}
        agents: {a: {persona: "Clerk of {{company}}."}, b: {persona: Clerk.}}
        """,
    )
    forth = run("diff", "foreword.yaml", "--agent", "a", "--agent", "b", folder=tmp_path)
    assert "- variable {{company}} of deployment (foreword.yaml:2) no longer used\n  - Acme\n" in forth.out
    back = run("diff", "foreword.yaml", "--agent", "b", "--agent", "a", "--json", folder=tmp_path)
    assert [(each["kind"], each["action"]) for each in told(back)["changes"]] == [
        ("section", "changed"),
        ("variable", "now used"),
    ]
    assert "is there" in run("explain", "foreword.yaml", "--missing", "company", "--agent", "b", folder=tmp_path).out


def test_diff_of_two_agents_and_of_nothing(tmp_path: Path) -> None:
    """Of one deployment two agents are held against each other; with --check a difference is a finding."""
    file = deployment(
        tmp_path,
        """
        system_prompt: {include_harness_identity: false}
        plugins: [{id: acme-billing, use: "plugs:billing"}]
        agents:
          senior: {persona: Decide.}
          junior: {tools: {deny: [refund]}}
        """,
    )
    ran = run("diff", file.name, "--agent", "senior", "--agent", "junior", folder=tmp_path)
    assert ran.out.startswith("agent senior of foreword.yaml → agent junior of foreword.yaml")
    assert "- tool refund of acme-billing" in ran.out
    same = run("diff", file.name, file.name, "--check", folder=tmp_path)
    assert (same.code, same.out) == (0, "foreword.yaml → foreword.yaml  nothing differs\n")
    assert (
        run("diff", file.name, file.name, "--agent", "senior", "--agent", "junior", "--check", folder=tmp_path).code
        == 1
    )
    alone = run("diff", file.name, folder=tmp_path)
    assert (alone.code, "name a second prompt" in alone.err) == (2, True)


# -- tokens -------------------------------------------------------------------------------------------------------------


def test_tokens_by_part_and_owner(folder: Path) -> None:
    """Two tables, the largest first; the parts add up to the whole, and so do the owners."""
    ran = run("tokens", "clerk.py:build", "--tokenizer", "o200k_base", folder=folder)
    assert ran.code == 0
    total = int(re.search(r"(\d+) tokens, ", ran.out)[1])  # type: ignore[index]
    parts, owners = ran.out.split("OWNER  ")[0], ran.out.rpartition("TOKENS")[2]
    for table in (parts.partition("OWNER")[2], owners):
        counted = [int(number) for number in re.findall(r"^ *(\d+) +\d*<?\d+%", table, re.MULTILINE)]
        assert sum(counted) == total
        assert counted == sorted(counted, reverse=True)


def test_a_budget_is_kept_or_broken(folder: Path) -> None:
    """Over it the exit code is 1, and the biggest owners are named."""
    kept = run("tokens", "clerk.py:build", "--budget", "1000", folder=folder)
    assert (kept.code, "within the budget of 1,000 tokens" in kept.out) == (0, True)
    broken = run("tokens", "clerk.py:build", "--budget", "10", folder=folder)
    assert broken.code == 1
    assert re.search(r"over the budget of 10 tokens by \d+; the biggest owners: shop \d+", broken.out)
    assert json.loads(run("tokens", "clerk.py:build", "--budget", "10", "--json", folder=folder).out)["over_budget"] > 0


def test_tokens_of_a_step_and_of_an_agent(logged: Path) -> None:
    """The history of a step is counted; the model of the step says with what."""
    document = told(run("tokens", "k3fa", "--json", folder=logged))
    assert (document["tokenizer"], document["is_estimate"]) == ("o200k_base", False)
    assert {part["kind"] for part in document["parts"]} >= {"section", "context", "tool", "message", "variable"}
    assert sum(part["tokens"] for part in document["parts"]) == document["tokens"]


def test_an_unknown_tokenizer(folder: Path) -> None:
    """It is an error that names those that are known."""
    ran = run("tokens", "clerk.py:build", "--tokenizer", "gpt", folder=folder)
    assert (ran.code, "known tokenizers: cl100k_base, deepseek_v3, estimate, o200k_base" in ran.err) == (2, True)


# -- cache --------------------------------------------------------------------------------------------------------------


def test_cache_of_a_session(logged: Path) -> None:
    """The sum, the owners by what they lost, and each break in one line."""
    ran = run("cache", "k3fa", folder=logged, columns=200)
    assert ran.code == 0
    assert re.match(r"Cache of session k3fa  4 requests, \d+% expected from the cache \(\d+% reported\), ", ran.out)
    assert re.search(r"\nclock  2,\d{3}  \$0\.00\d+ +variable {{today}} +1\n", ran.out)
    assert re.search(
        r"\n@3 lost 2,\d{3} tokens \(\$0\.00\d+\): variable {{today}} in section clock:date "
        r"\(clock, .*test_commands\.py:\d+\), char 13 \"29\" → \"30\"\n",
        ran.out,
    )
    assert re.search(r"\n@4 lost 2,\d{3} tokens \(.*\): section legal:notice added \(legal, ", ran.out)
    every = run("cache", "k3fa", "--steps", folder=logged)
    assert re.search(r"\n@2 +2,\d{3} +9\d% +97%\n", every.out)


def test_cache_of_one_step_and_of_two_prompts(logged: Path) -> None:
    """What survived, in bytes and tokens, and what broke it."""
    write(logged, PROMPTS, "clerk.py")
    (logged / "policy.md").write_text("Be kind.")
    one = run("cache", "k3fa@2", folder=logged)
    assert "@2 the request before is its beginning: nothing broke" in one.out
    assert re.search(r"reported by the provider +2,432 tokens, 97%", one.out)
    two = told(run("cache", "clerk.py:build", "clerk.py:tomorrow", "--json", folder=logged))
    assert (two["verdict"], two["broken_by"]["name"], two["profile"]) == ("broken", "legal:notice", "unknown")
    session = told(run("cache", "k3fa", "--json", "--lifetime", "0", folder=logged))
    assert session["steps"][3]["verdict"] in ("expired", "broken")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["clerk.py:build"], "name a second prompt"),
        (["nobody"], "no address: no session"),
        (["k3fa@1"], "is the first step of its session"),
        (["k3fa", "--profile", "openia"], 'did you mean "openai"'),
        (["k3fa", "--lifetime", "1h"], '"1h" is no number of seconds; give one from 0 on, as in --lifetime 3600'),
    ],
)
def test_cache_refuses_in_one_line(logged: Path, arguments: list[str], message: str) -> None:
    """What is wrong, and what to do."""
    write(logged, PROMPTS, "clerk.py")
    ran = run("cache", *arguments, folder=logged)
    assert (ran.code, ran.out) == (2, "")
    assert message.partition(": ")[2] in ran.err if ": " in message else message in ran.err


# -- what an argument means ---------------------------------------------------------------------------------------------

VERBS = (("explain", "clerk"), ("tokens",), ("show",), ("lint",), ("diff",), ("cache",))


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
@pytest.mark.parametrize("address", ["last", "k3f"])
def test_files_and_folders_take_no_address(logged: Path, address: str, verb: tuple[str, ...]) -> None:
    """What can be an address is one, whatever else bears that name."""
    command, *rest = verb
    alone = run(command, address, *rest, folder=logged)
    (logged / "last").mkdir()
    (logged / "k3f").touch()
    assert run(command, address, *rest, folder=logged) == alone
    assert (alone.code, alone.err.startswith("error: ")) == (0, False)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_a_path_is_a_file(logged: Path, verb: tuple[str, ...]) -> None:
    """Written as a path it is no address: a deployment, if it is called so; of a folder it is told what to name."""
    command, *rest = verb
    other = [str(deployment(logged, ""))] if command in ("diff", "cache") else []
    (logged / "last").mkdir()
    (logged / "k3f").touch()
    folder = run(command, "./last", *other, *rest, folder=logged)
    assert (folder.code, folder.err) == (
        2,
        'error: "./last" is a folder; name the deployment file in it: last/foreword.yaml\n',
    )
    file = run(command, "./k3f", *other, *rest, folder=logged)
    assert (file.code, file.err) == (
        2,
        "error: k3f: is no deployment file by its name; call it something.yaml, .yml or .toml\n",
    )


# -- where the log is ---------------------------------------------------------------------------------------------------


def test_which_log_is_read(logged: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The one of --log, else FOREWORD_LOG, else the one here; a missing one is not made."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    url = f"sqlite:{logged / 'foreword.db'}"
    assert run("tokens", "k3fa", "--log", url, folder=elsewhere).code == 0
    assert run("tokens", "k3fa", folder=elsewhere, FOREWORD_LOG=url).code == 0
    missing = run("tokens", "k3fa", folder=elsewhere)
    assert (missing.code, "is not there" in missing.err) == (2, True)
    assert list(elsewhere.iterdir()) == []


def test_the_log_of_the_deployment(logged: Path) -> None:
    """In the folder of a deployment it is the one that the file names."""
    (logged / "foreword.db").rename(logged / "mine.db")
    assert run("tokens", "k3fa", folder=logged).code == 2
    deployment(logged, "log: {store: sqlite:mine.db}\n")
    assert run("tokens", "k3fa", folder=logged).code == 0


# -- how it looks -------------------------------------------------------------------------------------------------------

LOOKS = [
    ["explain", "k3fa", "Today is the 30th."],
    ["explain", "k3fa", "--missing", "nothing"],
    ["diff", "k3fa@4"],
    ["tokens", "k3fa", "--budget", "9"],
    ["cache", "k3fa", "--steps"],
    ["cache", "k3fa@4"],
]


@pytest.mark.parametrize("columns", [16, 40, 80, 200])
@pytest.mark.parametrize("arguments", LOOKS, ids=" ".join)
def test_nothing_is_wider_than_the_screen(logged: Path, arguments: list[str], columns: int) -> None:
    """In any width the rows fit, and no word of what is told is lost on the way."""
    ran = run(*arguments, folder=logged, columns=columns)
    assert ran.out
    if columns >= 40:
        assert max(map(cell_len, ran.out.splitlines())) <= columns


@pytest.mark.slow
@pytest.mark.parametrize("arguments", LOOKS, ids=" ".join)
def test_colours_add_nothing_but_colour(logged: Path, arguments: list[str]) -> None:
    """In a terminal there are colours; without them, or where NO_COLOR is set, the words are the same."""
    coloured = in_terminal(*arguments, folder=logged, columns=80)
    colourless = in_terminal(*arguments, folder=logged, columns=80, NO_COLOR="1")
    assert "\x1b[" in coloured.out
    assert "\x1b[" not in colourless.out
    unmarked = re.sub(r"\[-|-\]|\{\+|\+\}|\s+", "", colourless.out)
    assert re.sub(r"\s+", "", plain(coloured.out)) == unmarked


@pytest.mark.slow
def test_hostile_texts_cannot_act_on_a_terminal(tmp_path: Path) -> None:
    """Control characters in texts, names and values are spelled out in every command."""
    write(
        tmp_path,
        r"""
        from foreword import SystemPrompt
        def build(mark="\x1b[31m"):
            prompt = SystemPrompt(persona=f"red {mark} text")
            prompt.owner("o\u202en").section("s\x1b]0;x\x07", f"[bold]{mark}[/bold] :smile:", order=1)
            return prompt
        def other():
            return build("\x1b[32m")
        """,
        "bad.py",
    )
    for arguments in (
        ["explain", "bad.py:build", "text"],
        ["explain", "bad.py:build", "--missing", "x\x1b[0m"],
        ["diff", "bad.py:build", "bad.py:other"],
        ["tokens", "bad.py:build"],
        ["cache", "bad.py:build", "bad.py:other"],
    ):
        out = in_terminal(*arguments, folder=tmp_path, NO_COLOR="1").out
        assert not set(out) & set("\x1b\x07\u202e"), arguments
