"""The workload of the benchmarks: what is timed is the work that was asked for, and the same work for all."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from benchmarks.entrants import floor, handwritten, ours
from benchmarks.workload import SECTION_CHARACTERS, SIZES, Workload

NODE = Path(__file__).parents[2] / "benchmarks" / "node"
UNEVEN = Workload(sections=37, variables=7, tools=13, scopes=5)

ENTRANTS = [
    pytest.param(module, variant, id=f"{module.__name__.rpartition('.')[2]} {variant}")
    for module in (ours, floor, handwritten)
    for variant in module.VARIANTS
]


def made(module: Any, variant: str, load: Workload) -> Any:
    entrant = module.Entrant(load, variant)
    for scope in range(load.scopes):
        entrant.add_scope(scope)
    return entrant


@pytest.mark.parametrize("load", [SIZES["small"], UNEVEN], ids=["small", "uneven"])
@pytest.mark.parametrize(("module", "variant"), ENTRANTS)
def test_everybody_comes_to_the_expected_prompt(module: Any, variant: str, load: Workload) -> None:
    """In each scope, at its first visit and at a further one: the text to the letter, the tools by their names."""
    entrant = made(module, variant, load)
    wanted = sorted((tool["name"], tool["description"], tool["parameters"]) for tool in load.tool_list())
    for scope in [*range(load.scopes), *range(load.scopes)]:
        text, tools = entrant.step(scope)
        assert text == load.expected(scope)
        assert [entrant.view(tool) for tool in tools] == wanted


def test_a_section_registered_for_all_is_in_every_scope() -> None:
    """What is timed after a change is a step that has the change in it; undone, the prompt is as before."""
    load = SIZES["small"]
    entrant = made(ours, "default", load)
    before = [entrant.step(scope)[0] for scope in range(load.scopes)]
    (undo,) = entrant.register(["A further section."])
    assert [entrant.step(scope)[0] for scope in range(load.scopes)] == [
        f"{text}\n\nA further section." for text in before
    ]
    undo()
    assert [entrant.step(scope)[0] for scope in range(load.scopes)] == before


def test_sections_are_as_long_as_is_said() -> None:
    """Every section of the rendered prompt has the characters that the tables go by."""
    texts = SIZES["medium"].expected(7).split("\n\n")
    assert {len(text) for text in texts} == {SECTION_CHARACTERS}


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node here")
def test_the_original_gets_the_same_workload() -> None:
    """The formulas on Node give the same prompts and tools as those in Python."""
    program = """
        import { Workload } from './workload.mjs'
        const load = new Workload('small', JSON.parse(process.argv[1]))
        const texts = [...Array(load.scopes).keys()].map((scope) => load.expected(scope))
        console.log(JSON.stringify([texts, load.toolList(), [...Array(load.sections).keys()].map((at) => load.isDynamic(at))]))
    """
    numbers = {name: getattr(UNEVEN, name) for name in ("sections", "variables", "tools", "scopes")}
    command = ["node", "--input-type=module", "-e", program, json.dumps(numbers)]
    done = subprocess.run(command, cwd=NODE, capture_output=True, text=True, encoding="utf-8", check=True, timeout=60)
    texts, tools, dynamic = json.loads(done.stdout)
    assert texts == [UNEVEN.expected(scope) for scope in range(UNEVEN.scopes)]
    assert tools == UNEVEN.tool_list()
    assert dynamic == [UNEVEN.is_dynamic(at) for at in range(UNEVEN.sections)]
