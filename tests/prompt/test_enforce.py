"""What no listener can undo: protections, complete sections, suppressors, required tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.short import facts, listener, names, reasons, tool

from foreword import AssembledContext, AssembledSection, PromptAssembly, SystemPrompt, ToolProviderResult

Change = Callable[[PromptAssembly], object]


def texts(prompt: SystemPrompt) -> list[str]:
    return prompt.render_sync().text.split("\n\n")


def letters(text: str, protected: str = "") -> SystemPrompt:
    """A prompt of one-letter sections in alphabetical order of their places; the capital ones are protected."""
    prompt = SystemPrompt()
    for at, name in enumerate(text):
        prompt.section(name, name, order=at + 1)
    if protected:
        prompt.protect(sections=list(protected))
    return prompt


# Protected sections

ATTEMPTS: dict[str, tuple[Change, str, set[str]]] = {
    "dropping": (lambda a: a.sections.drop("P"), "aPbc", {"removed"}),
    "editing": (lambda a: a.sections.swap("P", text="hacked"), "aPbc", {"changed"}),
    "renaming": (lambda a: a.sections.swap("P", name="x"), "aPPbc", {"removed"}),
    "moving to the end": (lambda a: a.sections.append(a.sections.drop("P")), "aPbc", {"moved"}),
    "moving to the front": (lambda a: a.sections.insert(0, a.sections.drop("P")), "aPbc", {"moved"}),
    "forging": (lambda a: a.sections.insert(0, AssembledSection("P", "forged")), "aPbc", {"added", "changed", "moved"}),
    "forging twice": (
        lambda a: a.sections.extend([AssembledSection("P", "1"), AssembledSection("P", "2")]),
        "aPbc",
        {"added"},
    ),
    "replacing the list": (lambda a: setattr(a, "sections", []), "P", {"removed"}),
    "replacing the list by another": (
        lambda a: setattr(a, "sections", [AssembledSection("x", "x")]),
        "xP",
        {"removed"},
    ),
    "reversing": (lambda a: a.sections.reverse(), "Pcba", {"moved"}),
    "making it verbatim": (lambda a: a.sections.swap("P", verbatim=True), "aPbc", {"changed"}),
    "stealing its origin": (lambda a: a.sections.swap("P", origin=None), "aPbc", {"changed"}),
}


@pytest.mark.parametrize("how", ATTEMPTS)
def test_a_protected_section_outlasts_every_attempt(how: str) -> None:
    """However a listener gets at a protected section, its canonical entry is restored, and the attempt is in the trace
    with the listener that made it."""
    change, expected, actions = ATTEMPTS[how]
    prompt = letters("aPbc", "P")
    prompt.owner("attacker").on_assemble(listener(change))
    rendering = prompt.render_sync()
    assert rendering.text.replace("\n\n", "") == expected
    tried = [event for event in rendering.trace.about("P") if event.stage == "transform"]
    assert {event.action for event in tried} <= actions
    assert tried
    assert all(event.protected and event.by is not None and "of attacker" in event.by for event in tried)
    (restored,) = [event for event in rendering.trace.about("P") if event.stage == "enforce"]
    assert restored.action == "restored"
    assert "of attacker" in str(restored)


def test_an_untouched_protected_section_is_no_attempt() -> None:
    """Where no listener touches a protected entry the trace tells of no attempt and no restoring."""
    prompt = letters("aPbc", "P")
    prompt.on_assemble(listener(lambda a: a.sections.drop("a")))
    rendering = prompt.render_sync()
    assert rendering.text == "P\n\nb\n\nc"
    assert reasons(rendering, "P") == []
    assert not [event for event in rendering.trace.events if event.protected]


@pytest.mark.parametrize(
    ("canonical", "result", "expected"),
    [
        ("aPbc", "cb", "Pcb"),  # the contract's example: c is the first that comes later than P
        ("aPbc", "ba", "Pba"),
        ("aPbc", "abc", "aPbc"),
        ("aPbc", "ca", "Pca"),
        ("aPbc", "a", "aP"),
        ("aPbc", "", "P"),
        ("PabQ", "ba", "PbaQ"),
        ("PQab", "ba", "PQba"),
        ("aPbQc", "cba", "PQcba"),
        ("aPbQc", "bac", "PbaQc"),
        ("abcP", "cba", "cbaP"),
        ("aPb", "xby", "xPby"),
        ("aPb", "xy", "xyP"),
        ("aPbQ", "bPQa", "PbaQ"),
    ],
)
def test_where_protected_sections_come_back(canonical: str, result: str, expected: str) -> None:
    """Each protected original goes before the first unprotected entry of the result that comes later canonically, at
    the end when there is none; the listeners' order of unprotected entries stays."""
    prompt = letters(canonical, "PQ")

    def put(assembly: PromptAssembly) -> None:
        assembly.sections = [AssembledSection(name, name) for name in result]  # type: ignore[assignment]

    prompt.on_assemble(listener(put))
    assert prompt.render_sync().text.replace("\n\n", "") == expected


def test_absence_is_protected_too() -> None:
    """A protected name that has no canonical entry has none after all listeners, however often it was forged."""
    prompt = letters("ab", "X")
    prompt.owner("forger").on_assemble(listener(lambda a: a.sections.insert(1, AssembledSection("X", "forged"))))
    rendering = prompt.render_sync()
    assert rendering.text == "a\n\nb"
    assert [(stage, action) for stage, action, _ in reasons(rendering, "X")] == [
        ("transform", "added"),
        ("enforce", "restored"),
    ]


def test_absence_by_condition_is_protected_too() -> None:
    """A protected section that its condition left out cannot be put back by a listener."""
    prompt = SystemPrompt()
    prompt.section("P", "P", order=1, when=lambda context: False)
    prompt.protect(sections=["P"])
    prompt.on_assemble(listener(lambda a: a.sections.append(AssembledSection("P", "forged"))))
    assert prompt.render_sync().text == ""


def test_the_dynamic_text_of_this_run_comes_back() -> None:
    """What is restored is what the provider said in this very run; it is not asked again."""
    prompt = SystemPrompt()
    calls: list[str] = []
    prompt.section("P", lambda: calls.append("!") or f"run {len(calls)}", order=1)
    prompt.protect(sections=["P"])
    prompt.on_assemble(listener(lambda a: a.sections.clear()))
    assert [texts(prompt), texts(prompt)] == [["run 1"], ["run 2"]]


def test_protections_unite_along_the_chain() -> None:
    """Global and scoped protections add up, each as far as its scope reaches."""
    prompt = letters("ABC")
    prompt.protect(sections=["A"])
    team = prompt.scope("team")
    team.protect(sections=["B"])
    agent = prompt.scope("agent", parent=team)
    agent.protect(sections=["C"])
    prompt.on_assemble(listener(lambda a: a.sections.clear()))
    told = ["".join(view.render_sync().text.split("\n\n")) for view in (prompt, team, agent, prompt.scope("other"))]
    assert told == ["A", "AB", "ABC", "A"]


def test_a_scoped_protection_protects_what_the_scope_sees() -> None:
    """In a scope the canonical entry is the shadow, if the scope has one."""
    prompt = letters("P")
    agent = prompt.scope("agent")
    agent.section("P", "mine", order=1)
    agent.protect(sections=["P"])
    prompt.on_assemble(listener(lambda a: a.sections.clear()))
    assert (agent.render_sync().text, prompt.render_sync().text) == ("mine", "")


def test_an_undone_protection_protects_no_more() -> None:
    """A protection goes by its registration."""
    prompt = letters("P")
    registration = prompt.protect(sections=["P"])
    prompt.on_assemble(listener(lambda a: a.sections.clear()))
    assert texts(prompt) == ["P"]
    registration.close()
    assert texts(prompt) == [""]


def test_the_persona_can_be_protected() -> None:
    """The sections that the prompt registers itself can be protected like any other."""
    prompt = SystemPrompt(persona="P", identity="I")
    prompt.protect(sections=["deployment:persona", "harness:identity"])
    prompt.on_assemble(listener(lambda a: a.sections.clear()))
    assert prompt.render_sync().text == "I\n\nP"


# Protected tools


def test_protected_tools_outlast_every_attempt() -> None:
    """A protected tool comes back as it was, in canonical order; a forged one of an absent name goes."""
    prompt = SystemPrompt()
    prompt.tools([tool("a"), tool("p", "real"), tool("z")])
    prompt.protect(tools=["p", "hidden"])

    def attack(assembly: PromptAssembly) -> None:
        assembly.tools.swap("p", description="fake")
        assembly.tools.append(tool("p", "another"))
        assembly.tools.append(tool("hidden"))
        assembly.tools.drop("a")

    prompt.owner("attacker").on_assemble(listener(attack))
    rendering = prompt.render_sync()
    assert [(each.name, each.description) for each in rendering.tools] == [("p", "real"), ("z", "")]
    restored = {event.name for event in rendering.trace.events if event.action == "restored"}
    assert restored == {"p", "hidden"}


def test_all_protected_tools_of_one_name_come_back() -> None:
    """Where several tools bear a protected name canonically, all of them come back."""
    prompt = SystemPrompt()
    prompt.tools([tool("p", "1"), tool("p", "2"), tool("q")])
    prompt.protect(tools=["p"])
    prompt.on_assemble(listener(lambda a: setattr(a, "tools", [tool("q"), tool("p", "3")])))
    assert [(each.name, each.description) for each in prompt.render_sync().tools] == [("p", "1"), ("p", "2"), ("q", "")]


def test_sections_and_tools_are_protected_apart() -> None:
    """A protected tool name protects no section of that name, nor the other way round."""
    prompt = letters("x")
    prompt.tools([tool("x")])
    prompt.protect(tools=["x"])
    prompt.on_assemble(listener(lambda a: (a.sections.drop("x"), a.tools.drop("x"))))
    assert facts(prompt) == ("", "", ["x"])


# Complete sections


def test_a_complete_section_is_the_whole_prompt() -> None:
    """Whatever else is registered or added: only the complete section is told, as it was before the waterfall. Tools
    and contexts remain."""
    prompt = letters("ab")
    prompt.context("c", "C", order=1)
    prompt.tools([tool("t")])
    prompt.section("all", "all of {{v}}", order=1, complete=True)
    prompt.variable("v", "it")

    def add(assembly: PromptAssembly) -> None:
        assembly.sections.append(AssembledSection("more", "more"))
        assembly.sections.swap("all", text="edited")

    prompt.on_assemble(listener(add))
    assert facts(prompt) == ("all of it", "C", ["t"])
    assert names(prompt.assemble_sync().sections) == ["all"]


def test_a_listener_cannot_remove_a_complete_section() -> None:
    """A complete section comes back though a listener emptied the list."""
    prompt = SystemPrompt()
    prompt.section("all", "all", order=1, complete=True)
    prompt.on_assemble(listener(lambda a: a.sections.clear()))
    assert texts(prompt) == ["all"]


def test_a_complete_section_displaces_protected_ones() -> None:
    """Complete is no listener: it displaces protected sections, and each one displaced is in the trace as `complete`."""
    prompt = letters("aPQ", "PQ")
    agent = prompt.scope("agent")
    agent.section("all", "all", order=5, complete=True)
    rendering = agent.render_sync()
    assert rendering.text == "all"
    displaced = {
        event.name: (event.protected, event.by) for event in rendering.trace.events if event.reason == "complete"
    }
    assert set(displaced) == {"a", "P", "Q", "deployment:persona"}
    assert {name for name, (protected, _) in displaced.items() if protected} == {"P", "Q"}
    assert all(by is not None and 'section "all" of agent in scope agent' in by for _, by in displaced.values())
    assert prompt.render_sync().text == "a\n\nP\n\nQ"


def test_what_listeners_added_is_displaced_and_told() -> None:
    """A section that a listener put in beside a complete one is told as displaced, too."""
    prompt = SystemPrompt()
    prompt.section("all", "all", order=1, complete=True)
    prompt.on_assemble(listener(lambda a: a.sections.append(AssembledSection("more", "more"))))
    rendering = prompt.render_sync()
    assert reasons(rendering, "more") == [("transform", "added", None), ("enforce", "left_out", "complete")]


def test_a_complete_section_may_itself_be_protected() -> None:
    """Protection and completeness of one section do not get in each other's way."""
    prompt = letters("a")
    prompt.section("all", "all", order=1, complete=True)
    prompt.protect(sections=["all"])
    prompt.on_assemble(listener(lambda a: a.sections.drop("all")))
    rendering = prompt.render_sync()
    assert rendering.text == "all"
    assert ("enforce", "left_out", "complete") not in reasons(rendering, "all")


def test_an_undone_complete_section_gives_the_prompt_back() -> None:
    """When the complete section goes, the others are told again."""
    prompt = letters("ab")
    with prompt.section("all", "all", order=1, complete=True):
        assert texts(prompt) == ["all"]
    assert texts(prompt) == ["a", "b"]


def test_an_empty_complete_section_is_an_empty_prompt() -> None:
    """A complete section that renders to nothing leaves nothing; nobody takes its place."""
    prompt = letters("ab")
    prompt.section("all", "", order=1, complete=True)
    assert prompt.render_sync().text == ""


def test_a_verbatim_complete_section() -> None:
    """A complete section may be verbatim."""
    prompt = letters("ab")
    prompt.section("all", "{{ x }}", order=1, complete=True, verbatim=True)
    assert prompt.render_sync().text == "{{ x }}"


# Suppressors


def test_contexts_of_listeners_are_dropped_while_suppressed() -> None:
    """While contexts are suppressed, those that a listener adds are dropped, and the trace tells it."""
    prompt = SystemPrompt()
    prompt.suppress_runtime_context()
    prompt.on_assemble(listener(lambda a: a.contexts.append(AssembledContext("c", "C"))))
    rendering = prompt.render_sync()
    assert rendering.snapshot == ""
    assert reasons(rendering, "c") == [("transform", "added", None), ("enforce", "left_out", "suppressed")]
    assert list(prompt.assemble_sync().contexts) == []


def test_a_suppressed_context_s_trace_names_the_suppressor() -> None:
    """The trace tells which contexts were suppressed, and by whom."""
    prompt = SystemPrompt()
    prompt.context("c", "C", order=1)
    agent = prompt.scope("agent")
    agent.owner("quiet").suppress_runtime_context()
    (event,) = agent.render_sync().trace.about("c")
    assert (event.action, event.reason, event.by) == ("left_out", "suppressed", "quiet")


# Required tools


def guided(*shown: str, known: Any = None) -> SystemPrompt:
    prompt = SystemPrompt()
    prompt.section("tool:edit", "Use edit.", order=100, requires_tools=["edit"])
    prompt.context("tool:edit", "Edited.", order=100, requires_tools=["edit"])
    prompt.tools(lambda: ToolProviderResult([tool(name) for name in shown], known))
    return prompt


def test_guidance_goes_with_its_tool() -> None:
    """A section or context whose required tool is not there is left out, and the trace tells which tool it missed."""
    there, gone = guided("edit", "write"), guided("write", known=["edit", "write"])
    assert facts(there) == ("Use edit.", "Edited.", ["edit", "write"])
    assert facts(gone) == ("", "", ["write"])
    missing = gone.render_sync().trace.about("tool:edit")
    assert [(event.stage, event.kind, event.reason) for event in missing] == [
        ("enforce", "section", "requires_tools:edit"),
        ("enforce", "context", "requires_tools:edit"),
    ]


def test_guidance_goes_when_a_listener_takes_the_tool() -> None:
    """What counts is the tools after all listeners, so guidance goes with a tool that a listener removed."""
    prompt = guided("edit", "write")
    prompt.on_assemble(listener(lambda a: a.tools.drop("edit")))
    assert facts(prompt) == ("", "", ["write"])


def test_guidance_comes_when_a_listener_brings_the_tool() -> None:
    """A tool that a listener adds keeps its guidance."""
    prompt = guided("write")
    prompt.on_assemble(listener(lambda a: a.tools.append(tool("edit"))))
    assert facts(prompt) == ("Use edit.", "Edited.", ["write", "edit"])


def test_a_protected_tool_keeps_its_guidance() -> None:
    """Protections are restored first: guidance of a protected tool that a listener dropped stays."""
    prompt = guided("edit")
    prompt.protect(tools=["edit"])
    prompt.on_assemble(listener(lambda a: a.tools.clear()))
    assert facts(prompt) == ("Use edit.", "Edited.", ["edit"])


def test_guidance_of_a_missing_tool_cannot_be_forged() -> None:
    """An entry under a name that requires a missing tool goes, whoever put it there."""
    prompt = guided("write")

    def forge(assembly: PromptAssembly) -> None:
        assembly.sections.append(AssembledSection("tool:edit", "forged"))
        assembly.contexts.append(AssembledContext("tool:edit", "forged"))
        assembly.sections.append(AssembledSection("other", "other"))

    prompt.on_assemble(listener(forge))
    assert facts(prompt) == ("other", "", ["write"])


def test_a_context_s_requirement_does_not_touch_a_section() -> None:
    """Sections and contexts of one name have requirements of their own."""
    prompt = SystemPrompt()
    prompt.section("x", "section", order=1)
    prompt.context("x", "context", order=1, requires_tools=["edit"])
    assert facts(prompt) == ("section", "", [])


def test_a_protected_section_keeps_its_condition_on_tools() -> None:
    """Protection is no exception from `requires_tools`."""
    prompt = guided("write")
    prompt.protect(sections=["tool:edit"])
    assert facts(prompt) == ("", "", ["write"])


def test_the_first_missing_tool_is_named() -> None:
    """Of several required tools the first missing one is told; of a set, the first by name."""
    prompt = SystemPrompt()
    prompt.tools([tool("b")])
    prompt.section("list", "x", order=1, requires_tools=["b", "d", "c"])
    prompt.section("set", "x", order=1, requires_tools={"d", "b", "c"})
    prompt.section("met", "met", order=1, requires_tools=("b",))
    rendering = prompt.render_sync()
    assert rendering.text == "met"
    assert reasons(rendering, "list")[0][2] == "requires_tools:d"
    assert reasons(rendering, "set")[0][2] == "requires_tools:c"


def test_guidance_of_a_missing_tool_is_asked_all_the_same() -> None:
    """Which tools there are is known only after the waterfall: a provider is asked before."""
    prompt = SystemPrompt()
    asked: list[str] = []
    prompt.section("s", lambda: asked.append("!") or "x", order=1, requires_tools=["edit"])
    assert prompt.render_sync().text == ""
    assert asked == ["!"]


def test_listeners_still_see_guidance_that_will_go() -> None:
    """Requirements are enforced after the waterfall; inside it the entry is there to be seen."""
    prompt = guided("write")
    seen: list[list[str]] = []
    prompt.on_assemble(listener(lambda a: seen.append(names(a.sections))))
    assert prompt.render_sync().text == ""
    assert seen == [["deployment:persona", "tool:edit"]]


def test_a_shadow_has_requirements_of_its_own() -> None:
    """A scoped entry without requirements is not bound by those of what it shadows."""
    prompt = guided("write")
    agent = prompt.scope("agent")
    agent.section("tool:edit", "by hand", order=100)
    assert agent.render_sync().text == "by hand"
    assert prompt.render_sync().text == ""


def test_assembled_lists_lack_what_was_left_out() -> None:
    """The assembly's lists, made when first asked for, have nothing in them that enforcement took out."""
    assembly = guided("write").assemble_sync()
    assert names(assembly.sections) == ["deployment:persona"]
    assert names(assembly.contexts) == []
