"""Protected entries outlast arbitrary listeners, and stand where the rule puts them, as a naive model applies it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.model import restored

from foreword import (
    AssembleContext,
    AssembledSection,
    PromptAssembly,
    SystemPrompt,
    ToolProviderResult,
    ToolSchema,
)

SECTIONS = ("a", "b", "c", "d", "e")
TOOLS = ("t", "u", "v", "w")
PERSONA = ("deployment:persona", "")

Pair = tuple[str, str]
places = st.integers(0, 6)
section_names = st.sampled_from((*SECTIONS, "new"))
tool_names = st.sampled_from((*TOOLS, "new"))


def edits(names: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.one_of(
        st.tuples(st.just("drop"), places),
        st.tuples(st.just("edit"), places, st.sampled_from(("x", "y"))),
        st.tuples(st.just("rename"), places, names),
        st.tuples(st.just("insert"), places, names, st.just("forged")),
        st.tuples(st.just("move"), places, places),
        st.tuples(st.just("twice"), places),
        st.just(("reverse",)),
        st.just(("clear",)),
    )


section_edits = st.lists(edits(section_names), max_size=4)
tool_edits = st.lists(edits(tool_names), max_size=4)


Make = Callable[[str, str], Any]
Change = Callable[..., Any]


def edited(entries: Any, edits_made: list[tuple[Any, ...]], make: Make, change: Change) -> list[Any]:
    """Edits on a list of entries; the same code edits the model's pairs and the assembly's entries."""
    entries = list(entries)
    for word, *given_ones in edits_made:
        if word == "reverse":
            entries.reverse()
        elif word == "clear":
            entries.clear()
        elif word == "insert":
            entries.insert(given_ones[0], make(*given_ones[1:]))
        elif entries:
            _edit_one(entries, word, given_ones[0] % len(entries), given_ones[1:], change)
    return entries


def _edit_one(entries: list[Any], word: str, at: int, given_ones: list[Any], change: Change) -> None:
    if word == "drop":
        entries.pop(at)
    elif word == "edit":
        entries[at] = change(entries[at], text=given_ones[0])
    elif word == "rename":
        entries[at] = change(entries[at], name=given_ones[0])
    elif word == "move":
        entries.insert(given_ones[0], entries.pop(at))
    elif word == "twice":
        entries.append(entries[at])


def change_pair(pair: Pair, *, name: str | None = None, text: str | None = None) -> Pair:
    return (pair[0] if name is None else name, pair[1] if text is None else text)


def change_tool(tool: ToolSchema, *, name: str | None = None, text: str | None = None) -> ToolSchema:
    return replace(tool, name=name or tool.name, description=text or tool.description)


def make_pair(name: str, text: str) -> Pair:
    return (name, text)


def make_tool(name: str, text: str) -> ToolSchema:
    return ToolSchema(name, text, {})


def name_of(pair: Pair) -> str:
    return pair[0]


def listener(before: Any, after: Any, *, calls_on: bool, another: bool) -> Any:
    """A listener that edits sections and tools before and after calling on, and may answer with another assembly."""

    async def listen(
        assembly: PromptAssembly, context: AssembleContext, call_next: Callable[[], Awaitable[PromptAssembly]]
    ) -> PromptAssembly:
        for what in (before, after):
            assembly.sections = edited(assembly.sections, what[0], AssembledSection, replace)
            assembly.tools = edited(assembly.tools, what[1], make_tool, change_tool)
            if what is before and calls_on:
                assembly = await call_next()
        if another:
            return PromptAssembly(assembly.sections, (), assembly.tools)
        return assembly

    return listen


turns = st.tuples(
    st.tuples(section_edits, tool_edits), st.tuples(section_edits, tool_edits), st.booleans(), st.booleans()
)


def modelled(turn_list: list[Any], sections: list[Pair], tools: list[Pair]) -> tuple[list[Pair], list[Pair]]:
    """What listeners leave behind, before anything is enforced."""
    if not turn_list:
        return sections, tools
    before, after, calls_on, _ = turn_list[0]
    sections = edited(sections, before[0], make_pair, change_pair)
    tools = edited(tools, before[1], make_pair, change_pair)
    if calls_on:
        sections, tools = modelled(turn_list[1:], sections, tools)
    return edited(sections, after[0], make_pair, change_pair), edited(tools, after[1], make_pair, change_pair)


def prompt_of(section_order: list[str], tools: list[Pair], turn_list: list[Any]) -> SystemPrompt:
    prompt = SystemPrompt()
    for place, name in enumerate(section_order):
        prompt.section(name, f"text of {name}", order=place + 1)
    prompt.tools(lambda: ToolProviderResult([make_tool(*tool) for tool in tools]))
    for before, after, calls_on, another in turn_list:
        prompt.on_assemble(listener(before, after, calls_on=calls_on, another=another))
    return prompt


def told(assembly: PromptAssembly) -> tuple[list[Pair], list[Pair]]:
    return (
        [(section.name, section.text) for section in assembly.sections],
        [(tool.name, tool.description) for tool in assembly.tools],
    )


@given(
    st.lists(st.sampled_from(SECTIONS), max_size=5, unique=True),
    st.lists(st.tuples(st.sampled_from(TOOLS), st.sampled_from(("one", "two"))), max_size=5),
    st.sets(section_names | st.just("deployment:persona"), max_size=4),
    st.sets(tool_names, max_size=3),
    st.lists(turns, min_size=1, max_size=3),
)
@example(["a", "b", "c"], [], {"b"}, set(), [(([("drop", 1), ("drop", 1), ("reverse",)], []), ([], []), True, False)])
def test_what_listeners_leave_is_mended_as_the_rule_says(
    section_order: list[str], tools: list[Pair], kept_sections: set[str], kept_tools: set[str], turn_list: list[Any]
) -> None:
    """Protected names have their canonical entries at the places of the rule; the others are as listeners left them."""
    prompt = prompt_of(section_order, tools, turn_list)
    if kept_sections or kept_tools:
        prompt.protect(sections=sorted(kept_sections), tools=sorted(kept_tools))
    canonical_sections = [PERSONA, *((name, f"text of {name}") for name in section_order)]
    canonical_tools = sorted(tools, key=name_of)
    left = modelled(turn_list, canonical_sections, canonical_tools)
    assert told(prompt.assemble_sync()) == (
        restored(canonical_sections, left[0], kept_sections, name_of),
        restored(canonical_tools, left[1], kept_tools, name_of),
    )


@given(
    st.lists(st.sampled_from(SECTIONS), max_size=5, unique=True),
    st.sets(st.sampled_from(SECTIONS), min_size=1, max_size=3),
    st.lists(turns, min_size=1, max_size=3),
)
def test_protected_entries_are_what_they_were_and_others_keep_the_listeners_order(
    section_order: list[str], kept: set[str], turn_list: list[Any]
) -> None:
    """Seen without the rule: the protected subsequence is the canonical one, the unprotected one the listeners'."""
    prompt = prompt_of(section_order, [], turn_list)
    (free, _), (before, _) = told(prompt.assemble_sync()), told(prompt_of(section_order, [], []).assemble_sync())
    prompt.protect(sections=sorted(kept))
    after, _ = told(prompt.assemble_sync())
    assert [pair for pair in after if pair[0] in kept] == [pair for pair in before if pair[0] in kept]
    assert [pair for pair in after if pair[0] not in kept] == [pair for pair in free if pair[0] not in kept]


@given(
    st.lists(st.sampled_from(SECTIONS), max_size=5, unique=True),
    st.sets(st.sampled_from(SECTIONS), min_size=1, max_size=2),
    st.sets(st.sampled_from(SECTIONS), min_size=1, max_size=2),
    st.lists(turns, min_size=1, max_size=2),
    st.booleans(),
)
def test_protections_of_the_chain_add_up_and_those_of_other_scopes_do_not_count(
    section_order: list[str], kept: set[str], scoped: set[str], turn_list: list[Any], inside: bool
) -> None:
    """A scope is held to the global protections and its own; its own bind nobody else."""
    prompt = prompt_of(section_order, [], turn_list)
    outer = prompt.scope("outer")
    inner, other = prompt.scope("inner", parent=outer), prompt.scope("other")
    prompt.protect(sections=sorted(kept))
    (inner if inside else outer).protect(sections=sorted(scoped))
    canonical = [PERSONA, *((name, f"text of {name}") for name in section_order)]
    left, _ = modelled(turn_list, canonical, [])
    for view in (prompt, outer, inner, other):
        names = kept | scoped if view is inner or (view is outer and not inside) else kept
        assert told(view.assemble_sync())[0] == restored(canonical, left, names, name_of)


@given(st.lists(st.sampled_from(SECTIONS), min_size=1, max_size=5, unique=True), st.data())
def test_every_attempt_on_a_protected_entry_is_in_the_trace(section_order: list[str], data: st.DataObject) -> None:
    """With the listener that made it, whichever entry it was and however it was done."""
    victim = data.draw(st.sampled_from(section_order))
    at = section_order.index(victim) + 1
    how = data.draw(st.sampled_from((("drop", at), ("edit", at, "x"), ("clear",), ("insert", 0, victim, "forged"))))
    prompt = prompt_of(section_order, [], [(([how], []), ([], []), True, False)])
    prompt.protect(sections=[victim])
    rendering = prompt.render_sync()
    attempts = [event for event in rendering.trace.events if event.name == victim and event.protected]
    assert attempts
    assert {event.stage for event in attempts} == {"transform", "enforce"}
    assert all("listen" in str(event.by or event.reason) for event in attempts)


@given(
    st.lists(st.sampled_from(SECTIONS), max_size=5, unique=True),
    st.sets(st.sampled_from(SECTIONS), max_size=3),
    st.lists(turns, max_size=3),
)
def test_a_complete_section_is_all_there_is(section_order: list[str], kept: set[str], turn_list: list[Any]) -> None:
    """As it was before the listeners, whatever they and protections say."""
    prompt = prompt_of(section_order, [], turn_list)
    prompt.section("whole", "the whole prompt", order=3, complete=True)
    if kept:
        prompt.protect(sections=sorted(kept))
    assert told(prompt.assemble_sync())[0] == [("whole", "the whole prompt")]
