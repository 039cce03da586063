"""`foreword show`: what it prints where, and in which form."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.support import COMMAND, piped, run, write

from foreword import SystemPrompt
from foreword.cli.wrapping import cell_len

PROMPT = """
    from foreword import SystemPrompt, ToolSchema, Placeholder

    def build():
        prompt = SystemPrompt(persona="You are {{company}}'s assistant.")
        prompt.owner("company").variable("company", "Acme")
        prompt.owner("rules").section("rules:all", "One.\\n\\nTwo.", order=20)
        prompt.owner("rules").section("rules:empty", "", order=21)
        prompt.owner("rules").section("rules:never", "Never.", order=22, when=lambda context: False)
        prompt.owner("clock").context("clock:now", "It is {{company}} o'clock.", order=1)
        team = prompt.scope("team")
        team.section("deployment:persona", "You are the team's.", order=0)
        return prompt
"""
TEXT = "You are Acme's assistant.\n\nOne.\n\nTwo."


@pytest.fixture
def target(tmp_path: Path) -> str:
    return f"{write(tmp_path, PROMPT)}:build"


# -- plain -------------------------------------------------------------------------------------------------------------


def test_a_pipe_gets_the_text_to_the_byte(tmp_path: Path) -> None:
    """Behind a pipe, `show` writes the prompt's UTF-8 and one newline: control characters, line ends and all."""
    text = "a\r\nb\x1b[31m\tc\u202ed\u2028e\x85f\x00 [red]日本[/red] :smile:\n\n"
    write(tmp_path, f"from foreword import SystemPrompt\nprompt = SystemPrompt(persona={text!r})\n")
    for environment in ({}, {"PYTHONIOENCODING": "ascii"}, {"COLUMNS": "20"}):
        done = piped("show", "target.py:prompt", folder=tmp_path, **environment)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{text}\n".encode(), b"")


def test_show_prints_what_render_gives(target: str) -> None:
    """Without options `show` prints the system text, with `--contexts` alone the snapshot, both exactly."""
    assert run("show", target).out == TEXT + "\n"
    snapshot = "Current runtime context. This snapshot supersedes earlier runtime-context snapshots.\n\n"
    assert run("show", target, "--contexts").out == f"{snapshot}It is Acme o'clock.\n"


def test_an_empty_prompt_prints_one_newline(tmp_path: Path) -> None:
    """A prompt that says nothing is no error."""
    target = write(tmp_path, "from foreword import SystemPrompt\nprompt = SystemPrompt()\n")
    assert run("show", f"{target}:prompt").out == "\n"
    assert run("show", f"{target}:prompt", "--contexts").out == "\n"
    everything = run("show", f"{target}:prompt", "--annotate", "--contexts", "--tools", "--trace")
    assert everything.code == 0
    assert "Prompt  0 characters, 0 sections by 0 owners" in everything.out


def test_what_the_users_code_prints_stays_out_of_stdout(tmp_path: Path) -> None:
    """Whatever the target's code prints, at import, when called or in a provider, goes to stderr."""
    target = write(
        tmp_path,
        """
        from foreword import SystemPrompt
        print("at import")
        def build():
            print("when called")
            prompt = SystemPrompt()
            @prompt.section("s", order=1)
            def text():
                print("in a provider")
                return "Text."
            return prompt
        """,
    )
    ran = run("show", f"{target}:build")
    assert ran.out == "Text.\n"
    assert ran.err == "at import\nwhen called\nin a provider\n"
    assert json.loads(run("show", f"{target}:build", "--json").out)["text"] == "Text."


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    """When whoever reads a pipe has seen enough, `show` ends quietly and well."""
    write(tmp_path, "from foreword import SystemPrompt\nprompt = SystemPrompt(persona='line\\n' * 100_000)\n")
    for options in ([], ["--annotate"], ["--json"]):
        with subprocess.Popen(
            [*COMMAND, "show", "target.py:prompt", *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.read(10)
            process.stdout.close()
            assert process.stderr.read() == b""
        assert process.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_full_disk_is_told(tmp_path: Path) -> None:
    """Output that cannot be written is an error in one line, also when it fits the buffer."""
    write(tmp_path, "from foreword import SystemPrompt\nprompt = SystemPrompt(persona='x')\n")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, "show", "target.py:prompt"], stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, check=False
        )
    assert done.returncode == 2
    assert done.stderr == b"error: the output cannot be written: No space left on device\n"


def test_plain_text_costs_no_console(tmp_path: Path) -> None:
    """Printing plain text of a prompt without anything async loads neither rich nor an event loop."""
    write(tmp_path, "from foreword import SystemPrompt\nprompt = SystemPrompt(persona='x')\n")
    code = (
        "import sys\nfrom foreword.cli.main import main\n"
        "try: main(['show', 'target.py:prompt'])\n"
        "except SystemExit: print(sorted({'rich', 'asyncio', 'anyio'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.stdout, done.stderr) == ("x\n[]\n", "")


# -- annotated ---------------------------------------------------------------------------------------------------------


def test_annotate_shows_owners_beside_the_text(target: str) -> None:
    """`--annotate` prints a title, then each section beside its owner, its name and its size."""
    assert run("show", target, "--annotate").out == (
        "Prompt  37 characters, 2 sections by 3 owners\n"
        "\n"
        "main     deployment:persona  25 │ You are Acme's assistant.\n"
        "company  {{company}}          4\n"
        "\n"
        "rules    rules:all           10 │ One.\n"
        "                                │\n"
        "                                │ Two.\n"
    )


def test_annotate_with_contexts_adds_the_snapshot(target: str) -> None:
    """With `--contexts` the snapshot follows, annotated likewise; its opener is nobody's and has no bar."""
    prompt, _, contexts = run("show", target, "--annotate", "--contexts").out.partition("\nRuntime contexts")
    assert prompt == run("show", target, "--annotate").out
    assert contexts == (
        "  105 characters, 1 context by 2 owners\n"
        "\n"
        "                                  Current runtime context. This snapshot supersedes earlier\n"
        "                                  runtime-context snapshots.\n"
        "\n"
        "clock    clock:now           19 │ It is Acme o'clock.\n"
        "company  {{company}}          4\n"
    )


@pytest.mark.parametrize("columns", [200, 100, 60, 40, 10])
def test_every_part_fits_every_width(target: str, columns: int) -> None:
    """No row of any part is wider than the terminal; below sixteen columns it is as if there were sixteen."""
    out = run("show", target, "--annotate", "--contexts", "--tools", "--trace", columns=columns).out
    assert max(map(cell_len, out.splitlines())) <= max(columns, 16)


def test_piped_annotations_have_a_width_of_their_own(tmp_path: Path, target: str) -> None:
    """Without a terminal and without COLUMNS, rows are laid out for a hundred columns."""
    done = piped("show", target, "--annotate", folder=tmp_path)
    assert done.stdout.decode() == run("show", target, "--annotate", columns=100).out


# -- scopes ------------------------------------------------------------------------------------------------------------


def test_scope_chooses_whose_prompt_it_is(tmp_path: Path, target: str) -> None:
    """`--scope` takes a scope by its name; 'global' is the prompt of no scope, also from a view in a scope."""
    assert run("show", target, "--scope", "team").out.startswith("You are the team's.\n")
    assert run("show", target, "--scope", "global").out == TEXT + "\n"
    assert "Prompt of scope team" in run("show", target, "--scope", "team", "--annotate").out
    path = write(
        tmp_path,
        """
        from foreword import SystemPrompt
        base = SystemPrompt(persona="Base.")
        empty = base.scope("empty")
        inner = base.scope("inner", empty)
        inner.section("s", "Inner.", order=1)
        view = base.scope("untouched")
        """,
        "scopes.py",
    )
    assert run("show", f"{path}:inner").out == "Base.\n\nInner.\n"
    assert run("show", f"{path}:inner", "--scope", "global").out == "Base.\n"
    assert run("show", f"{path}:base", "--scope", "inner").out == "Base.\n\nInner.\n"
    assert run("show", f"{path}:base", "--scope", "empty").out == "Base.\n"
    assert run("show", f"{path}:view", "--scope", "untouched").out == "Base.\n"


def test_an_unknown_scope_is_told_with_the_known_ones(target: str) -> None:
    """A scope that is not there is an error that suggests and lists those that are."""
    ran = run("show", target, "--scope", "taem")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == 'error: there is no scope "taem"; did you mean "team"? known scopes: global, team\n'


def test_two_scopes_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """A name that two scopes bear chooses neither; the error says how to show one of them."""
    target = write(
        tmp_path,
        """
        from foreword import SystemPrompt
        prompt = SystemPrompt()
        for _ in range(2):
            prompt.scope("twin").section("s", "x", order=1)
        """,
    )
    ran = run("show", f"{target}:prompt", "--scope", "twin")
    assert ran.code == 2
    assert 'there are 2 scopes called "twin"' in ran.err


# -- trace -------------------------------------------------------------------------------------------------------------


def test_trace_tells_stage_by_stage(target: str) -> None:
    """`--trace` tells for each stage what came in and left, and what was left out and why."""
    out = run("show", target, "--trace", "--scope", "team").out
    told = [row.split() for row in out.splitlines()]
    stages = ["plan", "collect", "order", "transform", "enforce", "render"]
    assert [row[0] for row in told if row and row[0] in stages] == stages
    one_line = " ".join(out.split())
    assert 'section "deployment:persona" of main shadowed by section "deployment:persona" of team' in one_line
    assert 'section "rules:never" of rules left out (when)' in one_line
    assert 'section "rules:empty" of rules empty' in one_line
    assert "collect 4 to 3 sections, 1 context, 1 variable" in one_line
    assert "sync providers" in one_line


# -- JSON --------------------------------------------------------------------------------------------------------------


def test_json_has_everything(target: str) -> None:
    """`--json` is one document with all of it, and its keys are always the same."""
    ran = run("show", target, "--json", "--annotate")
    told = json.loads(ran.out)
    assert list(told) == [
        "scope", "text", "snapshot", "digest", "spans", "snapshot_spans", "tools", "dropped", "trace",
    ]  # fmt: skip
    assert (told["scope"], told["text"]) == (None, TEXT)
    assert told["snapshot"] == run("show", target, "--contexts").out.removesuffix("\n")
    assert len(told["digest"]) == 64
    assert "".join(TEXT[span["start"] : span["end"]] for span in told["spans"]) == TEXT
    assert told["spans"][1] == {
        "start": 8, "end": 12, "kind": "variable", "section": "deployment:persona", "variable": "company",
        "owner": "company", "scope": None, "listener": None, "source": "target.py:6",
        "section_owner": "main", "section_scope": None,
    }  # fmt: skip
    keys = {tuple(span) for span in told["spans"] + told["snapshot_spans"]}
    assert len(keys) == 1
    assert told["dropped"] == [
        {"kind": "section", "name": "rules:empty", "owner": "rules", "scope": None, "source": "target.py:8"}
    ]
    assert next(stage["stage"] for stage in told["trace"]["stages"]) == "plan"


def test_json_is_the_same_each_time(tmp_path: Path, target: str) -> None:
    """The same prompt gives the same document, byte for byte, whatever the hash seed."""
    runs = {piped("show", target, "--json", folder=tmp_path, PYTHONHASHSEED=seed).stdout for seed in ("1", "2")}
    assert len(runs) == 1


def test_json_of_a_scope_with_tools(tmp_path: Path) -> None:
    """In JSON tools come with schema, size and origin, and the document says for which scope it is."""
    target = write(
        tmp_path,
        """
        from foreword import SystemPrompt, ToolSchema
        prompt = SystemPrompt().scope("inner")
        prompt.tools([ToolSchema("t", "Does it.", {"type": "object", "properties": {}})])
        """,
    )
    told = json.loads(run("show", f"{target}:prompt", "--json").out)
    assert told["scope"] == "inner"
    assert told["tools"] == [
        {
            "name": "t", "description": "Does it.", "parameters": {"type": "object", "properties": {}}, "size": 84,
            "owner": "inner", "scope": "inner", "listener": None, "source": "target.py:4",
        }
    ]  # fmt: skip


# -- the command itself ------------------------------------------------------------------------------------------------


def test_help_and_version() -> None:
    """`foreword` alone and `--help` explain, `--version` tells the version; all end well."""
    for arguments, expected in ([], "show"), (["--help"], "show"), (["show", "--help"], "--annotate"):
        ran = run(*arguments)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith("Usage: foreword")
        assert expected in ran.out
    version = run("--version")
    assert (version.code, version.err, version.out.split()[0].rstrip(",")) == (0, "", "foreword")


def test_the_module_runs_as_the_command(tmp_path: Path) -> None:
    """`python -m foreword` is the command, and calls itself so."""
    done = piped("show", "--help", folder=tmp_path)
    assert done.stdout.startswith(b"Usage: python -m foreword show")


def test_the_prompt_of_the_readme(tmp_path: Path) -> None:
    """What `show` prints is what `render_sync` gives."""
    target = write(
        tmp_path,
        """
        from foreword import SystemPrompt
        prompt = SystemPrompt(persona="You are {{company}}'s billing assistant.")
        prompt.variable("company", "Acme")
        prompt.section("rules", "Never promise a refund.", order=20)
        """,
    )
    prompt = SystemPrompt(persona="You are {{company}}'s billing assistant.")
    prompt.variable("company", "Acme")
    prompt.section("rules", "Never promise a refund.", order=20)
    assert run("show", f"{target}:prompt").out == prompt.render_sync().text + "\n"
