"""The trace: for each stage what came in, what left, and why."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.support.short import listener, tool

from foreword import AssembledContext, AssembledSection, Placeholder, PromptAssembly, SystemPrompt, Trace, freeze

STAGES = ["plan", "collect", "order", "transform", "enforce", "render"]


def failing() -> Any:
    raise ValueError("boom")


def eventful() -> SystemPrompt:
    """A scope's view of a prompt where something happens at every stage."""
    prompt = SystemPrompt(persona="P {{v}}")
    prompt.section("s", "global", order=1)
    prompt.section("guarded", "guarded", order=2)
    prompt.section("needs", "x", order=3, requires_tools=["nobody"])
    prompt.section("off", "x", order=4, when=lambda context: False)
    prompt.section("empty", "", order=5)
    prompt.context("c", "C", order=1)
    prompt.context("broken", failing, order=2, on_error="skip")
    prompt.variable("v", failing, on_error=Placeholder("?"))
    prompt.tools([tool("b"), tool("a")])
    prompt.protect(sections=["guarded"])
    agent = prompt.scope("agent")
    agent.section("s", "mine", order=1)

    def change(assembly: PromptAssembly) -> None:
        assembly.sections.drop("guarded")
        assembly.sections.append(AssembledSection("added", "added"))
        assembly.sections.swap("s", text="edited")
        assembly.contexts.append(AssembledContext("d", "D"))
        assembly.tools.insert(0, assembly.tools.drop("b"))
        assembly.variables["w"] = "W"

    agent.owner("plugin").on_assemble(listener(change))
    return agent


def events(trace: Trace, stage: str) -> list[tuple[str, str, str]]:
    return [(event.action, event.kind, event.name) for event in trace.events if event.stage == stage]


def test_the_stages_in_order() -> None:
    """A trace has the six stages, in the order in which an assembly goes through them."""
    trace = SystemPrompt().render_sync().trace
    assert [stage.stage for stage in trace.stages] == STAGES
    assert trace.events[0].stage == "render"


def test_what_happened_at_each_stage() -> None:
    """Each stage tells what it did: shadows, left-out entries and placeholders, changes of listeners, what was
    restored, what was empty."""
    trace = eventful().render_sync().trace
    assert events(trace, "plan") == [("shadowed", "section", "s")]
    assert events(trace, "collect") == [
        ("left_out", "section", "off"),
        ("left_out", "context", "broken"),
        ("placeholder", "variable", "v"),
    ]
    assert events(trace, "order") == []
    transformed = events(trace, "transform")
    (moved,) = [event for event in transformed if event[0] == "moved"]  # of two tools that swapped either may be told
    assert moved in [("moved", "tool", "a"), ("moved", "tool", "b")]
    assert sorted(event for event in transformed if event != moved) == [
        ("added", "context", "d"),
        ("added", "section", "added"),
        ("added", "variable", "w"),
        ("changed", "section", "s"),
        ("removed", "section", "guarded"),
    ]
    assert events(trace, "enforce") == [("restored", "section", "guarded"), ("left_out", "section", "needs")]
    assert events(trace, "render") == [("empty", "section", "empty")]


def test_what_came_in_and_what_left() -> None:
    """Each stage lists the names that entered and that left, by kind; one stage's end is the next one's beginning."""
    trace = eventful().render_sync().trace
    stages = {stage.stage: stage for stage in trace.stages}
    assert sorted(stages["plan"].entered["sections"]).count("s") == 2
    planned = ("deployment:persona", "s", "guarded", "needs", "off", "empty")
    assert stages["plan"].left["sections"] == planned
    collected = tuple(name for name in planned if name != "off")
    assert stages["collect"].left["sections"] == collected
    assert stages["collect"].left["contexts"] == ("c",)
    assert stages["order"].left["tools"] == ("a", "b")
    assert stages["transform"].left["tools"] == ("b", "a")
    assert stages["transform"].left["sections"] == ("deployment:persona", "s", "needs", "empty", "added")
    assert stages["enforce"].left["sections"] == ("deployment:persona", "s", "guarded", "empty", "added")
    assert stages["render"].left["sections"] == ("deployment:persona", "s", "guarded", "added")
    assert stages["render"].left["contexts"] == ("c", "d")
    assert stages["render"].left["variables"] == ("v", "w")
    for before, after in zip(trace.stages, trace.stages[1:], strict=False):
        assert before.left == after.entered, after.stage


def test_events_know_whose_and_by_whom() -> None:
    """An event tells whose entry it is about and who did it."""
    trace = eventful().render_sync().trace
    shadowed, removed = trace.about("s")[0], trace.about("guarded")[0]
    assert (shadowed.owner, shadowed.scope) == ("main", None)
    assert 'section "s" of agent in scope agent' in str(shadowed.by)
    assert (removed.owner, removed.protected) == ("main", True)
    assert "of plugin in scope agent" in str(removed.by)
    restored = trace.about("guarded")[1]
    assert "of plugin" in str(restored)
    assert str(trace.about("off")[0]) == 'collect: section "off" of main left out (when)'
    agent = SystemPrompt().scope("agent")
    agent.section("off", "x", order=1, when=lambda context: False)
    (event,) = agent.render_sync().trace.about("off")
    assert str(event) == 'collect: section "off" of agent in scope agent left out (when)'


def test_a_trace_is_json_and_deterministic() -> None:
    """`to_json` is JSON as defined here, without timings, and the same for the same registrations, in any registry."""
    one, other = (eventful().render_sync().trace for _ in range(2))
    told = one.to_json()
    assert freeze(told) == told
    assert json.loads(json.dumps(told)) == told
    assert "timings" not in json.dumps(told)
    assert json.dumps(told) == json.dumps(other.to_json())
    assert list(told) == ["stages"]


def test_a_trace_is_a_value() -> None:
    """Traces compare by what happened, never by how long it took."""
    one, other = (eventful().render_sync().trace for _ in range(2))
    assert one == other
    assert one.timings.keys() == other.timings.keys()
    quiet = SystemPrompt().render_sync().trace
    assert quiet != one


def test_a_trace_is_the_same_when_read_again() -> None:
    """A trace is worked out when it is read: what happens to assembly and registry in between does not matter."""
    agent = eventful()
    early, late = agent.render_sync(), agent.render_sync()
    told = early.trace.to_json()
    agent.close()
    agent = eventful()
    assert late.trace.to_json() == told


def test_with_values_of_listeners_nothing_secret_is_told() -> None:
    """A trace tells names, never values."""
    prompt = SystemPrompt()
    prompt.variable("key", "hunter2")
    prompt.on_assemble(listener(lambda assembly: assembly.variables.update(key="hunter3")))
    prompt.section("s", "{{key}}", order=1)
    assert "hunter" not in json.dumps(prompt.render_sync().trace.to_json())


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        ("abc", "abc", ""),
        ("abc", "cab", "c"),
        ("abc", "bca", "a"),
        ("abcd", "abdc", "?"),
        ("abcdef", "bcdefa", "a"),
        ("abcde", "abde", ""),
        ("abc", "xaybzc", ""),
    ],
)
def test_moved_is_told_of_the_fewest(before: str, after: str, moved: str) -> None:
    """Of a list in another order as few entries as possible are told as moved; what was added or removed moves
    nobody."""
    prompt = SystemPrompt()
    for at, name in enumerate(before):
        prompt.section(name, name, order=at + 1)

    def put(assembly: PromptAssembly) -> None:
        held = {section.name: section for section in assembly.sections}
        persona = held["deployment:persona"]
        assembly.sections = [persona, *(held.get(name) or AssembledSection(name, name) for name in after)]  # type: ignore[assignment]

    prompt.on_assemble(listener(put))
    trace = prompt.render_sync().trace
    told = "".join(event.name for event in trace.events if event.action == "moved")
    assert told == moved or (moved == "?" and len(told) == 1)


def test_each_listener_s_doings_are_its_own() -> None:
    """With several listeners each change is told of the one that made it, on the way in or out."""
    prompt = SystemPrompt()
    prompt.section("s", "S", order=1)

    def both_ways(before: str, after: str) -> Any:
        async def change(assembly: PromptAssembly, context: Any, call_next: Any) -> PromptAssembly:
            assembly.sections.append(AssembledSection(before, "x"))
            result: PromptAssembly = await call_next()
            result.sections.append(AssembledSection(after, "x"))
            return result

        return change

    prompt.owner("outer").on_assemble(both_ways("1", "4"))
    prompt.owner("inner").on_assemble(both_ways("2", "3"))
    told = [
        (event.name, "outer" if "of outer" in str(event.by) else "inner")
        for event in prompt.render_sync().trace.events
        if event.stage == "transform"
    ]
    assert told == [("1", "outer"), ("2", "inner"), ("3", "inner"), ("4", "outer")]


def test_an_untouched_assembly_has_no_transform_events() -> None:
    """A listener that only looks leaves no event, though it asked for every list."""
    prompt = SystemPrompt(persona="P")
    prompt.tools([tool("t")])
    prompt.context("c", "C", order=1)
    prompt.on_assemble(listener(lambda a: [list(a.sections), list(a.contexts), list(a.tools), dict(a.variables)]))
    assert prompt.render_sync().trace.events == ()


def test_an_event_s_json_leaves_out_what_is_empty() -> None:
    """As JSON an event has the fields that say something, and no others."""
    events = {event.stage: event.to_json() for event in eventful().render_sync().trace.about("guarded")}
    assert events["transform"].pop("by")
    assert events["transform"] == {
        "stage": "transform",
        "action": "removed",
        "kind": "section",
        "name": "guarded",
        "owner": "main",
        "protected": True,
    }
    (off,) = eventful().render_sync().trace.about("off")
    assert off.to_json() == {
        "stage": "collect",
        "action": "left_out",
        "kind": "section",
        "name": "off",
        "owner": "main",
        "reason": "when",
    }
