"""The recorded answers hold, and the command that replays them tells what differs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from foreword import AssembleContext, JsonValue, PromptAssembly, SystemPrompt, SystemPromptConfig
from foreword.testing.conformance import (
    Answer,
    Door,
    Kernel,
    Place,
    Scenario,
    ScenarioError,
    Standalone,
    load,
    main,
    mismatches,
    run,
)

DATA = Path(__file__).parent / "data"
COUNTS = {"named": 86, "protections": 141, "random": 250}
SCENARIOS = [scenario for name in COUNTS for scenario in load(DATA / f"{name}.jsonl")]
MODULE = [sys.executable, "-m", "foreword.testing.conformance"]

HELLO: dict[str, JsonValue] = {
    "id": "hello",
    "about": "one section",
    "config": {"includeHarnessIdentity": False},
    "steps": [{"op": "section", "name": "s", "order": 1, "text": "Hello."}, {"op": "assemble"}, {"op": "changes"}],
    "expect": [
        None,
        {
            "sections": [["deployment:persona", ""], ["s", "Hello."]],
            "contexts": [],
            "tools": [],
            "variables": {},
            "prompt": "Hello.",
            "snapshot": "",
        },
        1,
    ],
}


def written(folder: Path, *lines: str | dict[str, JsonValue]) -> str:
    path = folder / "scenarios.jsonl"
    text = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return str(path)


def steps(*taken: dict[str, JsonValue], config: dict[str, JsonValue] | None = None) -> Scenario:
    return Scenario("made-here", taken, config or {})


def listening(*actions: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {"op": "listener", "actions": list(actions)}


def assembly(answer: Answer) -> dict[str, JsonValue]:
    assert isinstance(answer, dict)
    assert "error" not in answer
    return answer


# The recorded answers


def test_nothing_recorded_is_lost() -> None:
    """Every recorded scenario is replayed below, each under an id of its own."""
    assert {name: len(load(DATA / f"{name}.jsonl")) for name in COUNTS} == COUNTS
    assert len({scenario.id for scenario in SCENARIOS}) == 477


@pytest.mark.parametrize("door", ["sync", "async"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_recorded_answers(scenario: Scenario, door: Door) -> None:
    """What the original answered is what comes, from plain code and in a loop."""
    found = mismatches(scenario, door=door)
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize("backend", ["asyncio", pytest.param("trio", marks=pytest.mark.slow)])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_recorded_answers_of_a_kernel(scenario: Scenario, backend: str) -> None:
    """Served to plugins that come and go, the same prompt gives the same answers, on each event loop."""
    found = mismatches(scenario, door="async", driver=Kernel(), backend=backend)
    assert not found, "\n".join(map(str, found))


# What the runner makes of a scenario


def test_run_gives_one_answer_per_step(tmp_path: Path) -> None:
    """Answers come without any being recorded, in the recorded form."""
    [scenario] = load(written(tmp_path, {key: HELLO[key] for key in ("id", "config", "steps")}))
    assert scenario.expect is None
    assert run(scenario) == run(scenario, door="async") == HELLO["expect"]


def test_identity_is_the_recorded_one_unless_told() -> None:
    """Scenarios that say nothing of the identity were recorded with it; both spellings of the field count as saying."""
    told: list[dict[str, JsonValue]] = [{}, {"includeHarnessIdentity": False}, {"include_harness_identity": False}]
    shown = [assembly(run(steps({"op": "assemble"}, config=config))[0])["prompt"] for config in told]
    assert shown == ["You are an AI agent powered by DeepSeek Harness.", "", ""]


def test_a_failed_registration_is_answered_and_has_nothing_to_dispose() -> None:
    """The namesake that came first stays when the one that failed is disposed of."""
    section: dict[str, JsonValue] = {"op": "section", "name": "s", "order": 1, "text": "first"}
    dispose: dict[str, JsonValue] = {"op": "dispose", "what": "again"}
    answers = run(steps(section, {**section, "as": "again"}, dispose, {"op": "assemble"}))
    assert answers[:3] == [None, {"error": "duplicate_section"}, None]
    assert ["s", "first"] in cast("list[JsonValue]", assembly(answers[3])["sections"])


def test_providers_count_and_read_the_context() -> None:
    """A `count` provider counts for itself, a `who` provider reads the step's `who`."""
    answers = run(
        steps(
            {"op": "context", "name": "n", "order": 1, "text": {"provider": "count", "prefix": "call "}},
            {"op": "context", "name": "w", "order": 2, "text": {"provider": "who", "prefix": "for "}},
            {"op": "assemble", "who": "ann"},
            {"op": "assemble"},
        )
    )
    shown = [assembly(answer)["contexts"] for answer in answers[2:]]
    assert shown == [[["n", "call 1"], ["w", "for ann"]], [["n", "call 2"], ["w", "for nobody"]]]


def test_a_null_text_is_a_provider_without_an_answer() -> None:
    """Only a variable has a meaning for null; of a text the assembly says that it is none."""
    taken: dict[str, JsonValue] = {"op": "section", "name": "s", "order": 1, "text": None}
    assert run(steps(taken, {"op": "assemble"})) == [None, {"error": "provider_failed"}]


def test_places_nest_and_close() -> None:
    """A plugin in a scope goes with it; the scope can still be assembled for."""
    answers = run(
        steps(
            {"op": "scope", "as": "outer"},
            {"op": "scope", "as": "inner", "parent": "outer"},
            {"op": "plugin", "as": "p", "in": "outer"},
            {"op": "variable", "in": "p", "name": "x", "value": "1"},
            {"op": "assemble", "scope": "inner"},
            {"op": "dispose", "what": "outer"},
            {"op": "assemble", "scope": "inner"},
            {"op": "assemble", "scope": "outer"},
            {"op": "changes"},
        )
    )
    assert [assembly(answers[at])["variables"] for at in (4, 6, 7)] == [{"x": "1"}, {}, {}]
    assert answers[8] == 2


# What the comparison counts


def differing(expected: Answer, *taken: dict[str, JsonValue]) -> bool:
    scenario = Scenario("made-here", taken, expect=(*[None] * (len(taken) - 1), expected))
    return bool(mismatches(scenario))


def test_errors_compare_by_kind_alone() -> None:
    """What else was recorded of an error does not count."""
    taken: dict[str, JsonValue] = {"op": "variable", "name": "X", "value": "1"}
    assert not differing({"error": "invalid_variable_name", "message": "in other words"}, taken)
    assert differing({"error": "duplicate_variable"}, taken)
    assert differing(None, taken)


def test_a_snapshot_recorded_as_null_is_not_compared() -> None:
    """Null stands for a system that knew no snapshots; any text, the empty one too, is compared."""
    taken: tuple[dict[str, JsonValue], ...] = (
        {"op": "context", "name": "c", "order": 1, "text": "C"},
        {"op": "assemble"},
    )
    came = assembly(run(steps(*taken))[1])
    assert not differing(came, *taken)
    assert not differing({**came, "snapshot": None}, *taken)
    assert differing({**came, "snapshot": ""}, *taken)
    assert differing({**came, "prompt": None}, *taken)


def test_a_number_is_no_truth_value() -> None:
    """Answers compare as JSON, where 1 is not true and the order of keys does not count."""
    parameters: dict[str, JsonValue] = {"a": 1, "b": True}
    tool: dict[str, JsonValue] = {"name": "t", "description": "d", "parameters": parameters}
    taken: tuple[dict[str, JsonValue], ...] = ({"op": "tools", "schemas": [tool]}, {"op": "assemble"})
    came = assembly(run(steps(*taken))[1])
    assert not differing({**came, "tools": [{**tool, "parameters": {"b": True, "a": 1}}]}, *taken)
    assert differing({**came, "tools": [{**tool, "parameters": {"a": True, "b": 1}}]}, *taken)


@pytest.mark.parametrize(
    ("config", "expect"),
    [
        ({"toolOrder": ["a", "a"]}, (None, 0)),
        ({}, ({"mount": {"error": "tool_order_duplicate"}},)),
        ({"toolOrder": ["a"]}, ({"mount": {"error": "tool_order_duplicate"}},)),
    ],
)
def test_a_configuration_that_loads_on_one_side_only_is_one_mismatch(
    config: dict[str, JsonValue], expect: tuple[Answer, ...]
) -> None:
    """However many steps there are, there is one thing to tell: the configuration."""
    taken: tuple[dict[str, JsonValue], ...] = (
        {"op": "section", "name": "s", "order": 1, "text": ""},
        {"op": "changes"},
    )
    [mismatch] = mismatches(Scenario("made-here", taken, config, expect))
    assert mismatch.step == 0
    assert str(mismatch).startswith("made-here, configuration\n  mount\n    expected: ")


def test_nothing_recorded_cannot_be_compared() -> None:
    """A scenario without answers is not passed silently."""
    with pytest.raises(ScenarioError, match="made-here has no recorded answers"):
        mismatches(steps({"op": "changes"}))


# What is no answer surfaces as itself


class FailingPlace:
    """A root whose plugins fail to mount."""

    def __init__(self, prompt: SystemPrompt) -> None:
        self.prompt = prompt

    async def plugin(self, name: str) -> Place:
        raise LookupError(name)

    async def scope(self, name: str, parent: SystemPrompt | None) -> Place:
        raise LookupError(name)

    async def close(self) -> None:
        self.prompt.close()


class Failing:
    """A driver whose own code fails."""

    async def root(self, config: SystemPromptConfig) -> Place:
        return FailingPlace(SystemPrompt(config))


class Spoiled(SystemPrompt):
    """A prompt that hands its listeners something that is no assembly."""

    def on_assemble(self, listener: Any = None, *, prepend: bool = False) -> Any:
        async def spoiled(assembly: PromptAssembly, context: AssembleContext, call_next: Any) -> PromptAssembly:
            return cast("PromptAssembly", await listener(object(), context, call_next))

        return super().on_assemble(spoiled, prepend=prepend)


class Spoiling:
    """A driver of such prompts."""

    async def root(self, config: SystemPromptConfig) -> Place:
        return FailingPlace(Spoiled(config))


class Waiting(Standalone):
    """A driver that needs a loop."""

    async def root(self, config: SystemPromptConfig) -> Place:
        import anyio.lowlevel

        await anyio.lowlevel.checkpoint()
        return await super().root(config)


class Yielding(Standalone):
    """A driver that waits for something that no one will ever give it."""

    async def root(self, config: SystemPromptConfig) -> Place:
        await Never()
        return await super().root(config)


class Never:
    def __await__(self) -> Any:
        yield None


@pytest.mark.parametrize("door", ["sync", "async"])
def test_a_crash_of_the_driver_surfaces(door: Door) -> None:
    """Whatever is no `ForewordError` is no answer; it comes out as it is, with a note of the step."""
    with pytest.raises(LookupError, match="p") as caught:
        run(steps({"op": "plugin", "as": "p"}), driver=Failing(), door=door)
    assert caught.value.__notes__ == ["in made-here, step 1 of scenario made-here"]


@pytest.mark.parametrize("door", ["sync", "async"])
def test_a_crash_in_a_listener_of_the_runner_is_no_listener_error(door: Door) -> None:
    """The library reports what a listener raises; only the action `throw` means it."""
    edit = listening({"do": "edit_section", "name": "s", "text": ""}, {"do": "next"})
    with pytest.raises(AttributeError, match="sections"):
        run(steps(edit, {"op": "assemble"}), driver=Spoiling(), door=door)
    assert run(steps(listening({"do": "throw"}), {"op": "assemble"}), door=door) == [None, {"error": "listener_error"}]


def test_a_driver_that_waits_needs_the_async_door() -> None:
    """The sync door starts no loop for a driver, and says which door would."""
    with pytest.raises(RuntimeError, match="door='async'"):
        run(steps({"op": "changes"}), driver=Yielding())
    assert run(steps({"op": "changes"}), driver=Waiting(), door="async") == [0]


def test_the_kernel_driver_needs_the_async_door() -> None:
    """A kernel cannot run without a loop, whatever is asked of it."""
    with pytest.raises(RuntimeError):
        run(steps({"op": "changes"}), driver=Kernel())


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_places_of_a_kernel_are_plugins_and_scopes(backend: str) -> None:
    """What a plugin contributed, and what a scope's plugin did, goes when either is disposed of."""
    answers = run(
        steps(
            {"op": "plugin", "as": "p"},
            {"op": "scope", "as": "s"},
            {"op": "plugin", "as": "q", "in": "s"},
            {"op": "section", "in": "p", "name": "a", "order": 1, "text": "A"},
            {"op": "section", "in": "q", "name": "b", "order": 2, "text": "B"},
            {"op": "assemble", "scope": "s"},
            {"op": "dispose", "what": "p"},
            {"op": "assemble", "scope": "s"},
            {"op": "dispose", "what": "s"},
            {"op": "assemble", "scope": "s"},
            {"op": "section", "in": "q", "name": "c", "order": 2, "text": "C"},
            config={"includeHarnessIdentity": False},
        ),
        door="async",
        driver=Kernel(),
        backend=backend,
    )
    assert [assembly(answers[at])["prompt"] for at in (5, 7, 9)] == ["A\n\nB", "B", ""]
    assert answers[10] == {"error": "inactive_context"}


def test_the_sync_door_loads_no_event_loop() -> None:
    """Where nothing async is asked for, nothing async is imported."""
    code = """
import sys
from foreword.testing.conformance import Scenario, run
run(Scenario("plain", ({"op": "assemble"},)))
assert not {"asyncio", "anyio"} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# The command


def test_command_counts_what_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing but the count is said, and blank lines and other line separators in strings do no harm."""
    text = "one\u2028two"
    other: dict[str, JsonValue] = {
        **HELLO,
        "steps": [{"op": "section", "name": text, "order": 1, "text": text}],
        "expect": [None],
    }
    path = written(tmp_path, HELLO, "", json.dumps(other, ensure_ascii=False))
    assert main([path]) == main([path, "--door", "async"]) == 0
    assert capsys.readouterr().out == "2 passed, 0 failed\n" * 2


def test_command_has_both_drivers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A kernel replays what a prompt standing alone does, through the one door that it has."""
    path = written(tmp_path, HELLO)
    assert main([path, "--driver", "kernel"]) == main([path, "--driver", "standalone"]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n" * 2
    with pytest.raises(SystemExit) as refused:
        main([path, "--driver", "kernel", "--door", "sync"])
    assert refused.value.code == 2
    assert "use --door async" in capsys.readouterr().err


def test_command_tells_what_differs(tmp_path: Path) -> None:
    """A wrong answer is shown with file, scenario, step and both values, and makes the exit code 1."""
    came = cast("list[dict[str, JsonValue]]", HELLO["expect"])[1]
    expect: list[JsonValue] = [None, {**came, "prompt": "Bye.", "variables": {"x": "ü"}}, 2]
    wrong: dict[str, JsonValue] = {**HELLO, "id": "wrong", "expect": expect}
    path = written(tmp_path, HELLO, wrong)
    done = subprocess.run([*MODULE, path], capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        f"{path}: wrong (one section), step 2: assemble",
        "  variables",
        '    expected: {"x": "ü"}',
        "    came:     {}",
        "  prompt",
        '    expected: "Bye."',
        '    came:     "Hello."',
        f"{path}: wrong (one section), step 3: changes",
        "  expected: 2",
        "  came:     1",
        "1 passed, 1 failed",
    ]


def test_command_shows_what_the_terminal_cannot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A lone surrogate in an answer is shown escaped."""
    path = written(tmp_path, {**HELLO, "steps": [{"op": "changes"}], "expect": ["\ud800"]})
    assert main([path]) == 1
    assert '  expected: "\\ud800"\n' in capsys.readouterr().out


BAD: dict[str, tuple[str, str]] = {
    "no JSON": ("{", "line 1: is not JSON"),
    "no object": ("[]", "line 1: expected a JSON object, found []."),
    "no scenario": ("", "holds no scenario."),
    "no id": ('{"steps": []}', 'line 1: "id" must be a string, found nothing.'),
    "no steps": ('{"id": "a"}', 'line 1: "steps" must be a list, found nothing.'),
    "no list of objects": ('{"id": "a", "steps": [1]}', "line 1, steps 1: expected a JSON object, found 1."),
    "no configuration": ('{"id": "a", "steps": [], "config": 1}', '"config" must be a JSON object, found 1.'),
    "too few answers": ('{"id": "a", "steps": [{"op": "changes"}], "expect": []}', "a has 1 steps and 0 answers."),
    "no answers": ('{"id": "a", "steps": []}', "a has no recorded answers."),
    "too deep": ("[" * 100_000, "line 1: is not JSON"),
}

BAD_STEPS: dict[str, tuple[dict[str, JsonValue], str]] = {
    "no op": ({}, 'step 1: "op" must be a string, found nothing.'),
    "unknown op": ({"op": "dance"}, '"op" must be a known kind of step, found "dance".'),
    "unknown place": (
        {"op": "plugin", "as": "p", "in": "q"},
        '"in" must be a place made by an earlier step, found "q".',
    ),
    "unknown parent": ({"op": "scope", "as": "s", "parent": "q"}, '"parent" must be a place made by an earlier step'),
    "unknown scope": ({"op": "assemble", "scope": "q"}, '"scope" must be a place made by an earlier step'),
    "no order": ({"op": "section", "name": "s", "text": ""}, '"order" must be a number, or one of "NaN"'),
    "odd order": ({"op": "context", "name": "s", "text": "", "order": "1"}, '"order" must be a number'),
    "odd flag": (
        {"op": "section", "name": "s", "text": "", "order": 1, "complete": 1},
        '"complete" must be true or false, found 1.',
    ),
    "unknown provider": (
        {"op": "variable", "name": "x", "value": {"provider": "p"}},
        'step 1, value: "provider" must be "count" or "who", found "p".',
    ),
    "odd names": ({"op": "protect", "sections": [1]}, '"sections" must be a list of strings, found [1].'),
    "unknown action": (
        listening({"do": "dance"}),
        'step 1, actions 1: "do" must be a known action, found "dance".',
    ),
    "action without its field": (
        listening({"do": "next"}, {"do": "edit_tool", "name": "t"}),
        'step 1, actions 2: "description" must be a string, found nothing.',
    ),
}


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Give the one line that the command says when it cannot read its input."""
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    [line] = said.err.splitlines()
    return line


@pytest.mark.parametrize("fault", BAD)
def test_command_refuses_what_is_no_scenario(fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence with file and line, and exit code 2."""
    text, sentence = BAD[fault]
    path = written(tmp_path, text)
    line = refused([path], capsys)
    assert line.startswith(path)
    assert sentence in line


@pytest.mark.parametrize("fault", BAD_STEPS)
def test_command_refuses_steps_that_it_cannot_understand(
    fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A step is never guessed at, and its fault never passes for an answer of the library."""
    step, sentence = BAD_STEPS[fault]
    path = written(tmp_path, {"id": "a", "steps": [step], "expect": [None]})
    line = refused([path], capsys)
    assert line.startswith(f"{path}, line 1, step 1")
    assert sentence in line


def test_command_refuses_files_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is missing, a folder, or no UTF-8; and nothing is replayed before all files are read."""
    fine = written(tmp_path, HELLO)
    latin = tmp_path / "latin.jsonl"
    latin.write_bytes(b'{"id": "\xfc"}')
    assert f"{tmp_path / 'none.jsonl'}: cannot be read" in refused([fine, str(tmp_path / "none.jsonl")], capsys)
    assert f"{tmp_path}: cannot be read" in refused([str(tmp_path)], capsys)
    assert f"{latin}: is not UTF-8 text" in refused([str(latin)], capsys)


def test_command_without_a_file_exits_with_2() -> None:
    """The usage is shown."""
    done = subprocess.run(MODULE, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 2
    assert "FILE" in done.stderr
