"""What is told is a function of what is registered: not of who came first, and not of the seed of hashes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.model import tools_in_order
from tests.support.strategies import CHARACTERS

import foreword
from foreword import TOOL_ORDER_REST, SystemPrompt, ToolProviderResult, ToolSchema

tool_names = st.one_of(
    st.sampled_from(("mcp_b", "a", "B", "Z", "ä", "𝄞", "\uffff")), st.text(CHARACTERS, min_size=1, max_size=4)
)
tools = st.lists(
    st.builds(ToolSchema, tool_names, st.just("d"), st.sampled_from(({}, {"b": 1, "a": [None]}, {"a": 2}))),
    max_size=6,
    unique_by=lambda tool: tool.name,
)


def dumped(told: tuple[ToolSchema, ...]) -> str:
    return json.dumps([[tool.name, tool.description, tool.parameters] for tool in told])


@given(tools, st.randoms(use_true_random=False), st.integers(0, 7), st.booleans())
def test_tools_of_distinct_names_come_in_one_order_whoever_registered_first(
    offered: list[ToolSchema], random: object, listed: int, asked: bool
) -> None:
    """By name in code-point order, or as `tool_order` lists them, to the byte."""
    order = None if listed == 0 else [*(tool.name for tool in offered[: listed - 1]), TOOL_ORDER_REST]
    shuffled = list(offered)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    told: list[str] = []
    for sequence, each_alone in ((offered, True), (shuffled, True), (shuffled[::-1], False)):
        prompt = SystemPrompt(tool_order=order)
        for schemas in [[tool] for tool in sequence] if each_alone else [sequence]:
            prompt.tools((lambda schemas=schemas: ToolProviderResult(schemas)) if asked else schemas)
        told.append(dumped(prompt.render_sync().tools))
    assert told == [dumped(tuple(tools_in_order(offered, order, TOOL_ORDER_REST)))] * 3


@given(tools, st.data())
def test_a_provider_that_goes_and_comes_back_changes_nothing(offered: list[ToolSchema], data: st.DataObject) -> None:
    """After a reconnect the tools have the same bytes."""
    prompt = SystemPrompt()
    registrations = [prompt.tools([tool]) for tool in offered]
    before = dumped(prompt.render_sync().tools)
    for at in data.draw(st.lists(st.integers(0, max(len(offered) - 1, 0)), max_size=4)):
        if offered:
            registrations[at].close()
            registrations[at] = prompt.tools([offered[at]])
    assert dumped(prompt.render_sync().tools) == before


@given(
    st.lists(
        st.tuples(
            st.floats(allow_nan=False, allow_infinity=False) | st.integers(), st.sampled_from(("x", "y {{a}}", ""))
        ),
        max_size=7,
        unique_by=lambda entry: entry[0],
    ),
    st.randoms(use_true_random=False),
)
def test_sections_and_contexts_of_distinct_orders_give_one_text(
    placed: list[tuple[float, str]], random: object
) -> None:
    """Whatever the order of registering; and the one of their numbers."""
    placed = [(order, text) for order, text in placed if order != 0]  # where the persona stands
    shuffled = list(placed)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    told: list[tuple[object, ...]] = []
    for sequence in (placed, shuffled):
        prompt = SystemPrompt(persona="P")
        for order, text in sequence:
            prompt.section(f"s{order}", text, order=order)
            prompt.context(f"c{order}", text, order=order)
        prompt.variable("a", "A")
        rendering = prompt.render_sync()
        spans = [(span.start, span.end, span.kind, span.section, span.variable) for span in rendering.spans]
        told.append((rendering.text, rendering.snapshot, rendering.digest, spans))
    assert told[0] == told[1]
    texts = [text.replace("{{a}}", "A") for _, text in sorted([*placed, (0, "P")])]
    assert told[0][0] == "\n\n".join(filter(None, texts))


@given(st.lists(st.text("ab", min_size=1, max_size=3), max_size=6, unique=True), st.data())
def test_ties_are_broken_by_registration_or_by_name(names: list[str], data: st.DataObject) -> None:
    """As the configuration says; by name, the order of registering does not matter even among equals."""
    shuffled = data.draw(st.permutations(names))
    for ties, expected in (("registration", shuffled), ("name", sorted(names))):
        prompt = SystemPrompt(section_ties=ties)
        for name in shuffled:
            prompt.section(name, name, order=5)
            prompt.context(name, name, order=5)
        assembly = prompt.assemble_sync()
        assert [section.name for section in assembly.sections][1:] == list(expected)
        assert [context.name for context in assembly.contexts] == list(expected)


@pytest.mark.parametrize("same", [False, True])
def test_the_tools_are_always_the_latest_answer(same: bool) -> None:
    """However many different answers came before, whether as new schemas or as a list that its provider changes."""
    prompt = SystemPrompt()
    answer: list[ToolSchema] = []
    prompt.tools(lambda: answer)
    prompt.tools([ToolSchema("m", "always", {})])
    for step in range(300):
        schemas = [ToolSchema(f"{'az'[step % 2]}{at}", str(step), {"step": step}) for at in range(step % 3)]
        if same:
            answer[:] = schemas
        else:
            answer = schemas
        expected = tools_in_order([*schemas, ToolSchema("m", "always", {})], None, TOOL_ORDER_REST)
        assert list(prompt.assemble_sync().tools) == expected


PROGRAM = """
import json
from foreword import ForewordError, SystemPrompt, ToolProviderResult, ToolSchema

names = {"edit", "write", "bash", "glob", "grep", "find", "read", "task"}

def told(prompt):
    try:
        rendering = prompt.render_sync()
    except ForewordError as error:
        return [error.kind, str(error)]
    spans = [[span.start, span.end, span.owner, str(span.source)] for span in rendering.spans]
    tools = [[tool.name, tool.parameters] for tool in rendering.tools]
    return [rendering.text, rendering.snapshot, rendering.digest, tools, spans, rendering.trace.to_json()]

def built(**config):
    prompt = SystemPrompt(persona="{{a}}", **config)
    scope = prompt.scope("agent")
    for name in sorted(names):
        prompt.section(f"tool:{name}", f"Use {name} for {{{{a}}}}.", order=100, requires_tools={name, "read", "task"})
        prompt.context(name, f"about {name}", order=1, when=lambda context: name > "f")
        scope.variable(name, name)
        prompt.variable(name, None)
    prompt.variable("a", "x")
    prompt.tools([ToolSchema(name, "", {"known": sorted(names)}) for name in sorted(names) if name != "task"])
    prompt.tools(ToolProviderResult([], known_names=names | {"more"}))
    prompt.protect(sections=names, tools=names)
    return prompt, scope

prompt, scope = built()
answers = [told(prompt), told(scope)]

async def clears(assembly, context, call_next):
    assembly.sections.clear()
    assembly.tools.clear()
    assembly.variables.update(dict.fromkeys(sorted(names), "listened"))
    return await call_next()

prompt.on_assemble(clears)
answers += [told(prompt), told(scope)]
answers.append(told(built(tool_order=["no", "<unlisted-tools>", "nay"])[0]))
prompt.section("bad", "{{unknown}}", order=1000)
answers.append(told(prompt))
try:
    prompt.protect(sections=set())
except ForewordError as error:
    answers.append(str(error))
try:
    SystemPrompt(tool_order=[*sorted(names), *sorted(names)], identity=3, persona=4)
except ForewordError as error:
    answers.append(str(error))
print(json.dumps(answers))
"""


@pytest.mark.slow
def test_no_seed_of_hashes_shows_in_texts_tools_spans_traces_or_messages() -> None:
    """Sets handed over as options, known names, protections and errors included."""
    source = str(Path(foreword.__file__).parents[1])
    told = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONPATH": source, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "20240607")
    ]
    assert len(json.loads(told[0])) == 8
    assert told[1:] == told[:1] * 2
