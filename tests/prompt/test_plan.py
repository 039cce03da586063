"""Plans: layers merged, shadows resolved, entries sorted, and never a stale one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.short import facts, listener, names, reasons, tool

from foreword import AssembleContext, ScopeKey, SystemPrompt, bind_parent


def texts(view: SystemPrompt) -> list[str]:
    return [section.text for section in view.assemble_sync().sections if section.text]


# Merging


def test_the_nearest_layer_wins_a_name() -> None:
    """Of one name the nearest layer's entry counts: global, then the chain, farthest first."""
    prompt = SystemPrompt()
    team = prompt.scope("team")
    agent = prompt.scope("agent", parent=team)
    for view in (agent, prompt, team):
        view.section("s", "{{v}}", order=1)
        view.context("c", view.key.name, order=1)
        view.variable("v", view.key.name)
    assert facts(prompt) == ("global", "global", [])
    assert facts(team) == ("team", "team", [])
    assert facts(agent) == ("agent", "agent", [])


def test_undoing_a_shadow_brings_the_next_one_back() -> None:
    """What was shadowed is there again when the shadow goes, layer by layer."""
    prompt = SystemPrompt()
    team = prompt.scope("team")
    agent = prompt.scope("agent", parent=team)
    registrations = [view.section("s", view.key.name, order=1) for view in (prompt, team, agent)]
    told = [agent.render_sync().text]
    for registration in reversed(registrations):
        registration.close()
        told.append(agent.render_sync().text)
    assert told == ["agent", "team", "global", ""]


def test_a_shadow_keeps_the_place_of_what_it_shadows() -> None:
    """Among equal orders a shadow stands where the shadowed entry stood, whenever it was registered."""
    prompt = SystemPrompt()
    agent = prompt.scope("agent")
    agent.section("own", "own", order=1)
    agent.section("b", "B'", order=1)
    for name in ("a", "b", "c"):
        prompt.section(name, name, order=1)
    assert texts(agent) == ["a", "B'", "c", "own"]


def test_a_shadow_of_another_order_moves() -> None:
    """A shadow has its own order; only ties are decided by the place of what it shadows."""
    prompt = SystemPrompt()
    for at, name in enumerate(("a", "b", "c")):
        prompt.section(name, name, order=at)
    agent = prompt.scope("agent")
    agent.section("a", "A'", order=1.5)
    agent.section("c", "C'", order=-7)
    assert texts(agent) == ["C'", "b", "A'"]


def test_a_shadow_of_a_shadow_keeps_the_place_of_the_first() -> None:
    """Along a chain each shadow inherits the place, back to the farthest entry of the name."""
    prompt = SystemPrompt()
    team = prompt.scope("team")
    agent = prompt.scope("agent", parent=team)
    agent.section("b", "B''", order=1)
    team.section("x", "x", order=1)
    team.section("b", "B'", order=1)
    for name in ("a", "b", "c"):
        prompt.section(name, name, order=1)
    assert texts(team) == ["a", "B'", "c", "x"]
    assert texts(agent) == ["a", "B''", "c", "x"]


def test_ties_keep_the_order_of_registration() -> None:
    """Equal orders, also an int and a float, stand in the order of their registration; a new one goes to the end."""
    prompt = SystemPrompt()
    first = prompt.section("z", "z", order=5)
    prompt.section("b", "b", order=5.0)
    prompt.section("a", "a", order=5)
    assert texts(prompt) == ["z", "b", "a"]
    first.close()
    prompt.section("z", "z", order=5)
    assert texts(prompt) == ["b", "a", "z"]


@pytest.mark.parametrize("registered", [("b", "a", "c"), ("c", "b", "a"), ("a", "c", "b")])
def test_ties_can_be_broken_by_name(registered: tuple[str, ...]) -> None:
    """With `section_ties="name"` equal orders stand by name, for sections and contexts, across layers."""
    prompt = SystemPrompt(section_ties="name")
    agent = prompt.scope("agent")
    for name in registered:
        view = agent if name == "b" else prompt
        view.section(name, name, order=5)
        view.context(name, name, order=5)
    assert facts(agent) == ("a\n\nb\n\nc", "a\n\nb\n\nc", [])


def test_layers_that_tie_stand_farthest_first() -> None:
    """Among equal orders the global layer's entries come first, then the chain's, nearest last."""
    prompt = SystemPrompt()
    team = prompt.scope("team")
    agent = prompt.scope("agent", parent=team)
    for view in (agent, team, prompt):
        view.section(view.key.name, view.key.name, order=1)
    assert texts(agent) == ["global", "team", "agent"]


def test_orders_may_be_negative_fractional_and_large() -> None:
    """Any finite number is an order."""
    prompt = SystemPrompt()
    for order in (10**30, 0.5, -3.25, 1e300, -(10**18), 0):
        prompt.section(f"s:{order}", f"{order}", order=order)
    assert texts(prompt) == [f"{order}" for order in (-(10**18), -3.25, 0, 0.5, 10**30, 1e300)]


def test_a_shadowed_variable_hides_though_it_has_no_value() -> None:
    """A variable without value in a scope hides the one behind it: it is valueless there, not the outer one."""
    prompt = SystemPrompt()
    prompt.variable("v", "V")
    agent = prompt.scope("agent")
    registration = agent.variable("v", None)
    assert agent.assemble_sync().variables == {"v": None}
    assert prompt.assemble_sync().variables == {"v": "V"}
    registration.close()
    assert agent.assemble_sync().variables == {"v": "V"}


def test_what_is_shadowed_is_not_asked() -> None:
    """Providers and conditions of shadowed entries are not called; those in force are, once an assembly."""
    prompt = SystemPrompt()
    asked: list[str] = []

    def provider(name: str) -> Any:
        return lambda: asked.append(name) or name

    def condition(name: str) -> Any:
        return lambda context: asked.append(f"when {name}") or True

    agent = prompt.scope("agent")
    for view in (prompt, agent):
        view.section("s", provider("section"), order=1, when=condition("section"))
        view.context("c", provider("context"), order=1, when=condition("context"))
        view.variable("v", provider("variable"), when=condition("variable"))
    facts(agent)
    kinds = ["variable", "section", "context"]
    assert asked == [f"when {kind}" for kind in kinds] + kinds


def test_a_shadow_that_leaves_itself_out_still_shadows() -> None:
    """A scoped entry whose condition does not hold leaves a gap: what it shadows does not come back."""
    prompt = SystemPrompt()
    prompt.section("s", "global", order=1)
    prompt.variable("v", "global")
    agent = prompt.scope("agent")
    agent.section("s", "agent", order=1, when=lambda context: False)
    agent.variable("v", "agent", when=lambda context: False)
    assembly = agent.assemble_sync()
    assert "s" not in names(assembly.sections)
    assert assembly.variables == {"v": None}


def test_the_trace_tells_who_shadows_whom() -> None:
    """Each shadowed entry is in the trace with the entry that hides it."""
    prompt = SystemPrompt()
    prompt.section("s", "global", order=1)
    agent = prompt.scope("agent")
    agent.section("s", "agent", order=1)
    (event,) = [event for event in agent.render_sync().trace.about("s") if event.action == "shadowed"]
    assert (event.stage, event.kind, event.owner, event.scope) == ("plan", "section", "main", None)
    assert event.by is not None
    assert 'section "s" of agent in scope agent' in event.by
    assert reasons(prompt.render_sync(), "s") == []


@pytest.mark.parametrize("kind", ["section", "context", "variable"])
def test_each_shadow_of_a_chain_is_told(kind: str) -> None:
    """Along a chain every entry that is hidden is told with the next nearer one of its name, for every kind."""
    prompt = SystemPrompt()
    team = prompt.scope("team")
    agent = prompt.scope("agent", parent=team)
    for view in (prompt, team, agent):
        if kind == "variable":
            view.variable("x", view.key.name)
        else:
            getattr(view, kind)("x", view.key.name, order=1)
    shadowed = [event for event in agent.render_sync().trace.about("x") if event.action == "shadowed"]
    assert [(event.kind, event.owner) for event in shadowed] == [(kind, "main"), (kind, "team")]
    assert [str(event.by).split(" in ")[0] for event in shadowed] == [f'{kind} "x" of team', f'{kind} "x" of agent']
    assert [event for event in prompt.render_sync().trace.events if event.action == "shadowed"] == []


# Never stale


def test_moving_a_scope_counts_from_the_next_assembly() -> None:
    """After `rebind` an agent sees its new ancestors, though its own layer did not change and was assembled before."""
    prompt = SystemPrompt()
    one, other = prompt.scope("one"), prompt.scope("other")
    for view in (one, other):
        view.section("s", view.key.name, order=1)
        view.variable("v", view.key.name)
        view.tools([tool(view.key.name)])
        view.context("c", "{{v}}", order=1)
    agent = prompt.scope("agent", parent=one)
    agent.section("own", "own", order=2)
    assert agent.binding is not None
    for parent in (other, None, one, one.key, other):
        agent.binding.rebind(parent.key if isinstance(parent, SystemPrompt) else parent)
        name = {one.key: "one", other.key: "other", None: ""}[agent.key.parent]
        assert facts(agent) == (f"{name}\n\nown".strip(), name, [name] if name else [])


def test_moving_an_ancestor_moves_all_below() -> None:
    """A scope follows its parent: rebinding the middle of a chain changes what the end of it sees."""
    prompt = SystemPrompt()
    one, other = prompt.scope("one"), prompt.scope("other")
    one.section("s", "one", order=1)
    other.section("s", "other", order=1)
    middle = prompt.scope("middle", parent=one)
    agent = prompt.scope("agent", parent=middle)
    assert agent.render_sync().text == "one"
    assert middle.binding is not None
    middle.binding.rebind(other.key)
    assert agent.render_sync().text == "other"


def test_an_emptied_and_refilled_layer_is_seen_anew() -> None:
    """A layer that was emptied and filled again with as many entries is not taken for the old one."""
    prompt = SystemPrompt()
    agent = prompt.scope("agent")
    for text in ("one", "two", "three"):
        with agent.section("s", text, order=1):
            assert agent.render_sync().text == text
        assert agent.render_sync().text == ""


def test_changing_the_global_layer_is_seen_in_every_scope() -> None:
    """A scope's plan does not outlive a change of the global layer, nor of an ancestor's."""
    prompt = SystemPrompt()
    team = prompt.scope("team")
    agent = prompt.scope("agent", parent=team)
    agent.section("a", "agent", order=9)
    assert agent.render_sync().text == "agent"
    with prompt.section("g", "global", order=1):
        assert agent.render_sync().text == "global\n\nagent"
        with team.section("t", "team", order=2):
            assert agent.render_sync().text == "global\n\nteam\n\nagent"
            assert prompt.render_sync().text == "global"
    assert agent.render_sync().text == "agent"


def test_binding_a_key_that_was_assembled_for_before() -> None:
    """A key may be bound after prompts were assembled for it: from then on its ancestors are seen."""
    prompt = SystemPrompt()
    team, key = prompt.scope("team"), ScopeKey("agent")
    team.section("t", "team", order=1)
    assert prompt.render_sync(AssembleContext(scope=key)).text == ""
    bind_parent(key, team.key)
    assert prompt.render_sync(AssembleContext(scope=key)).text == "team"


def test_protections_suppressors_and_listeners_follow_the_chain() -> None:
    """Not only texts: what a scope protects, suppresses and listens to counts below it, and only there."""
    prompt = SystemPrompt()
    prompt.section("s", "S", order=1)
    prompt.context("c", "C", order=1)
    prompt.on_assemble(listener(lambda assembly: assembly.sections.drop("s")))
    team = prompt.scope("team")
    team.protect(sections=["s"])
    team.suppress_runtime_context()
    team.on_assemble(listener(lambda assembly: assembly.variables.update(heard="yes")))
    agent = prompt.scope("agent", parent=team)
    assert facts(prompt) == ("", "C", [])
    assert facts(agent) == ("S", "", [])
    assert agent.assemble_sync().variables == {"heard": "yes"}
    assert agent.binding is not None
    agent.binding.rebind(None)
    assert facts(agent) == ("", "C", [])


def test_the_same_text_comes_back_when_nothing_changed() -> None:
    """Assembling again changes nothing: text, digest, spans and tools are equal, and the lists are new ones."""
    prompt = SystemPrompt(persona="{{v}}")
    prompt.variable("v", "V")
    prompt.tools([tool("b"), tool("a")])
    one, other = prompt.render_sync(), prompt.render_sync()
    assert (one.text, one.digest, one.spans, one.tools) == (other.text, other.digest, other.spans, other.tools)
    first, second = prompt.assemble_sync(), prompt.assemble_sync()
    assert first is not second
    assert first.sections is not second.sections
    assert first.variables is not second.variables
    first.variables["v"] = "changed"
    first.sections.clear()
    assert prompt.render_sync().text == "V"
